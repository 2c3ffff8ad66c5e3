"""Reads labelled pairs, cuts premises as the service does, and makes further pairs from them.

Refuses files whose name says `eval` or `dev`, and texts of given evaluation files.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import edits
import numpy as np

from corpora import held_out_keys, key, read, refuse_held_out
from guardrail_service.text.segmentation.sentences import merge_short, split_sentences

LABELS = {"entailment": 0, "contradiction": 1, "neutral": 2, "not_entailment": 3}
MAX_SENTENCES = 80
Pair = dict[str, Any]

_OPENERS = (
    "yes, ", "no, ", "i think ", "oh wow, ", "did you know that ", "i believe ", "well, ",
    "that's right, ", "yeah, ", "actually, ", "according to the passage, ", "i know that ",
    "interesting! ", "haha, ", "sure! ", "from what i know, ", "i'm not sure, but ", "it's great. ",
)  # fmt: skip
_TAILS = (
    "Do you like it?",
    "What about you?",
    "I love that!",
    "Have you ever been there?",
    "Isn't it?",
    "It's so interesting.",
    "Did you know that?",
    "I'd like to know more.",
    "That's amazing!",
)


def sentences(text: str) -> list[str]:
    """Return a passage's sentences as the service reads them."""
    return [s.text for s in merge_short(split_sentences(text), text)][:MAX_SENTENCES]


def pairs_of(path: Path, caps: dict[str, int], rng: random.Random) -> list[Pair]:
    """Return a file's pairs, at most `caps[source]` of a source."""
    by_source: dict[str, list[Pair]] = {}
    for row in read(path):
        by_source.setdefault(row["source"], []).append(row)
    kept = []
    for source in sorted(by_source):
        rows = by_source[source]
        rng.shuffle(rows)
        for row in rows[: caps.get(source, len(rows))]:
            kept.append(
                {
                    "source": source,
                    "claim": row["hypothesis"],
                    "sentences": sentences(row["premise"]),
                    "label": LABELS[row["label"]],
                }
            )
    return [pair for pair in kept if pair["sentences"]]


def qa_pairs(path: Path, sources: set[str], rng: random.Random) -> list[Pair]:
    """Return question+answer claims, right ones and ones with another passage's answer."""
    rows = [r for r in read(path) if r["src"] in sources and r["answer"] and r["contexts"]]
    made: list[Pair] = []
    for row in rows:
        cut = [s for context in row["contexts"] for s in sentences(context["text"])]
        answer = " ".join(row["answer"][0].split())
        # Answers are compared within a source, so that style does not give the label away.
        other = rng.choice([r for r in rng.sample(rows, 12) if r["src"] == row["src"]] or [row])
        wrong = " ".join(other["answer"][0].split())
        for text, label in ((answer, 0), (wrong, 3)):
            if label and key(text) == key(answer):
                continue
            # The service reads a short answer together with its question.
            claim = f"{row['question'].strip()} {text}" if len(text) <= 80 else text
            made.append({"source": row["src"], "claim": claim, "sentences": cut, "label": label})
    return made


def edited_pairs(pairs: list[Pair], count: int, rng: random.Random) -> list[Pair]:
    """Return claims with one fact changed beside true ones, in groups that share their passage.

    Half of them start from a passage sentence, half from a supported claim in other words. Now and
    then the passage is changed instead, so that no wording is always false.
    """
    made: list[Pair] = []
    while len(made) < count:
        pair = rng.choice(pairs)
        cut = pair["sentences"]
        own = pair["label"] == 0 and rng.random() < 0.5
        base = pair["claim"] if own else rng.choice(cut)
        found = edits.changed(base, cut, rng) if 20 <= len(base) <= 260 else None
        if found is None:
            continue
        kind, false = found
        if not own and rng.random() < 0.35:
            cut = [false if sentence == base else sentence for sentence in cut]
            base, false = false, base
        true = base
        if rng.random() < 0.5:
            true = edits.reword(base, cut, rng) or base
        label = 3 if kind in ("quantifier", "name") else 1
        source = f"edit_{kind}"
        made.append({"source": source, "claim": true, "sentences": cut, "label": 0})
        made.append({"source": source, "claim": false, "sentences": cut, "label": label})
        if len(cut) >= 2 and rng.random() < 0.3:
            made += joined_pairs(base, false, cut, rng.choice(rng.choice(pairs)["sentences"]), rng)
    return made


def joined_pairs(
    base: str, false: str, cut: list[str], foreign: str, rng: random.Random
) -> list[Pair]:
    """Return claims of two clauses: both in the passage, one changed, one from elsewhere."""
    second = rng.choice([sentence for sentence in cut if sentence != base] or cut)
    made: list[Pair] = []
    for one, two, label in ((base, second, 0), (false, second, 1), (base, foreign, 3)):
        if max(len(one), len(two)) <= 160:
            first, last = (two, one) if rng.random() < 0.5 else (one, two)
            claim = f"{first.rstrip('.')}{rng.choice((', and ', '; ', ', while '))}{last}"
            made.append({"source": "edit_join", "claim": claim, "sentences": cut, "label": label})
    return made


def chatty(pair: Pair, rng: random.Random) -> Pair:
    """Return the pair with the claim said as people do in a conversation."""
    claim = pair["claim"].strip()
    topic = edits.NAME.match(claim)
    if topic and topic.end() > 4 and rng.random() < 0.4:
        claim = rng.choice(("It", "They", "He", "She", "That")) + claim[topic.end() :]
    if rng.random() < 0.75:
        claim = rng.choice(_OPENERS) + claim[:1].lower() + claim[1:]
    if rng.random() < 0.35:
        claim = f"{claim.rstrip('.')}. {rng.choice(_TAILS)}"
    if rng.random() < 0.4:
        claim = claim.lower()
    return {**pair, "claim": claim, "source": pair["source"] + "+chat"}


def build_mix(config: dict[str, Any], data: dict[str, Path], held_out: list[Path]) -> list[Pair]:
    """Return the training pairs of a configuration, seeded."""
    for path in data.values():
        refuse_held_out(path)
    rng = random.Random(config["seed"])
    pairs = pairs_of(data["pairs"], config["caps"], rng)
    forbidden = held_out_keys(held_out, ("premise", "hypothesis"), 8)
    dropped = len(pairs)
    pairs = [p for p in pairs if key(p["claim"]) not in forbidden]
    pairs = [p for p in pairs if key(" ".join(p["sentences"])) not in forbidden]
    print(f"{dropped - len(pairs)} pairs share a text with the held-out files and are left out")
    if "qa" in data:
        pairs += qa_pairs(data["qa"], set(config["qa_sources"]), rng)
    prose = [p for p in pairs if p["source"] in config["edit_sources"]]
    pairs += edited_pairs(prose, config["edits"], rng)
    chats = [p for p in pairs if p["source"] in config["chat_sources"]]
    pairs += [chatty(p, rng) for p in rng.sample(chats, min(config["chats"], len(chats)))]
    rng.shuffle(pairs)
    return pairs


def by_part(rows: list[dict[str, Any]], weights: Any, config: dict[str, Any]) -> Any:
    """Return weights under which every part of the mix has its share.

    In a part a source has the square root of its size times its weight, and where the source is
    written, both labels the same. `parts` says each part's share and how its sources' names begin;
    a part without names takes the rest.
    """
    parts: dict[str, dict[str, Any]] = config["parts"]
    named = {start: part for part, about in parts.items() for start in about.get("sources", ())}
    rest = next(part for part, about in parts.items() if "sources" not in about)
    sources = [row["source"].split("+")[0] for row in rows]
    found = [
        next((p for s, p in named.items() if source.startswith(s)), rest) for source in sources
    ]
    cells = [
        (part, source, part == rest and row["label"] == 0)
        for part, source, row in zip(found, sources, rows, strict=True)
    ]
    sizes, labels = Counter(zip(found, sources, strict=True)), Counter(cells)
    signs = Counter((part, source) for part, source, _ in labels)
    each = np.array(
        [
            weight * sizes[cell[:2]] ** 0.5 / signs[cell[:2]] / labels[cell]
            for weight, cell in zip(weights, cells, strict=True)
        ]
    )
    for part, about in parts.items():
        inside = np.array([p == part for p in found])
        if inside.any():
            each[inside] *= about["share"] / each[inside].sum()
    return each


def beside(rows: list[dict[str, Any]], drawn: list[int], most: int) -> list[int]:
    """Return the rows of one group to draw together, at most so many: the first and others.

    Beside passages in several versions each claim comes twice, once true and once false, so that
    nothing but the passage tells which it is.
    """
    if "group" not in rows[drawn[0]]:
        return list(dict.fromkeys(drawn))[:most]
    kept: dict[int, dict[bool, int]] = {}
    for i in drawn:
        kept.setdefault(rows[i]["claim"], {}).setdefault(rows[i]["label"] == 0, i)
    return [i for both in kept.values() for i in both.values()][:most]
