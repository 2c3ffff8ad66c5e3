"""Reads labelled pairs, cuts premises as the service does, and makes further pairs from them.

Writes `pairs.jsonl` (claim, sentences, label, source, weight) and `texts.jsonl` (every distinct
text once). Refuses files whose name says `eval` or `dev`, and texts of given evaluation files.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from guardrail_service.text.sentences import merge_short, split_sentences

LABELS = {"entailment": 0, "contradiction": 1, "neutral": 2, "not_entailment": 3}
MAX_SENTENCES = 40
Pair = dict[str, Any]

_NUMBER = re.compile(r"\b\d[\d,]*(?:\.\d+)?\b")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+(?: [A-Z][a-z]+)*")
_MONTHS = "January February March April May June July August September October November December".split()
_FLIPS = [
    ("increased", "decreased"), ("increase", "decrease"), ("higher", "lower"), ("more", "fewer"),
    ("before", "after"), ("first", "last"), ("largest", "smallest"), ("larger", "smaller"),
    ("all", "none"), ("always", "never"), ("north", "south"), ("east", "west"), ("won", "lost"),
    ("with", "without"), ("most", "least"), ("above", "below"), ("old", "new"), ("male", "female"),
    ("opened", "closed"), ("start", "end"), ("started", "ended"), ("early", "late"),
    ("allowed", "forbidden"), ("minimum", "maximum"), ("at least", "at most"), ("up to", "at least"),
    ("free", "charged"), ("daily", "weekly"), ("weekly", "monthly"), ("days", "weeks"),
    ("hours", "minutes"), ("months", "years"), ("optional", "required"), ("can", "cannot"),
]  # fmt: skip
_OPENERS = (
    "yes, ", "no, ", "i think ", "oh wow, ", "did you know that ", "i believe ", "well, ",
    "that's right, ", "yeah, ", "actually, ", "according to the passage, ", "i know that ",
    "interesting! ", "haha, ", "sure! ",
)  # fmt: skip


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a JSONL file, compressed or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def refuse_held_out(path: Path) -> None:
    """Raise unless a file may be trained on, by its name."""
    if "eval" in path.name or "dev" in path.name:
        raise SystemExit(f"{path.name}: a held-out file in the training mix; expected training data")


def key(text: str) -> str:
    """Return a text as it is compared with evaluation texts."""
    return " ".join(re.findall(r"\w+", text.lower()))


def held_out_keys(paths: Iterable[Path]) -> set[str]:
    """Return the hypotheses and premises of evaluation files.

    Very short texts ("a man is outside") repeat by chance and are left out.
    """
    found: set[str] = set()
    for path in paths:
        for row in read(path):
            found.update(key(row[name]) for name in ("premise", "hypothesis"))
    return {text for text in found if len(text.split()) >= 8}


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
            made.append(
                {"source": row["src"], "claim": claim, "sentences": cut, "label": label}
            )
    return made


def swap_number(text: str, rng: random.Random) -> str | None:
    """Return the text with one number (or month) changed, None if it has none."""
    months = [m for m in _MONTHS if f" {m} " in f" {text} " and m != "May"]
    if months and rng.random() < 0.5:
        month = rng.choice(months)
        return text.replace(month, rng.choice([m for m in _MONTHS if m != month]), 1)
    hits = list(_NUMBER.finditer(text))
    if not hits:
        return None
    hit = rng.choice(hits)
    old = hit.group().replace(",", "")
    if "." in old:
        new = f"{float(old) * rng.choice((0.5, 1.3, 2.0, 3.1)):.{len(old.split('.')[1])}f}"
    elif len(old) == 4 and old[:2] in ("17", "18", "19", "20"):
        new = str(int(old) + rng.choice((-31, -12, -7, -3, -1, 1, 2, 4, 9, 15)))
    else:
        value = int(old)
        new = str(max(0, rng.choice((value + 1, value * 2, value + 5, value * 10, value - 1, value // 2))))
        new = f"{int(new):,}" if "," in hit.group() else new
    if new == old:
        return None
    return text[: hit.start()] + new + text[hit.end() :]


def swap_name(text: str, others: list[str], rng: random.Random) -> str | None:
    """Return the text with two of its names exchanged, or one replaced."""
    names = list(dict.fromkeys(_NAME.findall(text)))
    if len(names) >= 2 and rng.random() < 0.5:
        a, b = rng.sample(names, 2)
        if a not in b and b not in a:
            return text.replace(a, "\0").replace(b, a).replace("\0", b)
    outside = [name for name in others if name not in text]
    if not names or not outside:
        return None
    return text.replace(rng.choice(names), rng.choice(outside))


def flip_word(text: str, rng: random.Random) -> str | None:
    """Return the text with one word turned into its opposite."""
    fits = [(a, b) for pair in _FLIPS for a, b in (pair, pair[::-1]) if f" {a} " in text]
    if not fits:
        return None
    a, b = rng.choice(fits)
    return text.replace(f" {a} ", f" {b} ", 1)


def negate(text: str, rng: random.Random) -> str | None:
    """Return the text with a negation put in or taken out."""
    if " not " in text:
        return text.replace(" not ", " ", 1)
    for verb in rng.sample([" is ", " was ", " are ", " were ", " can ", " has been ", " will "], 7):
        if verb in text:
            first = verb.split()[0]
            return text.replace(verb, f" {first} not{verb[1 + len(first):]}", 1)
    return None


def edited_pairs(sources: list[list[str]], count: int, rng: random.Random) -> list[Pair]:
    """Return claims made from passage sentences: copied, joined, cut, and with one fact changed."""
    made: list[Pair] = []
    usable = [cut for cut in sources if len(cut) >= 1]
    everyone = [name for cut in usable[:4000] for s in cut for name in _NAME.findall(s)]
    while len(made) < count:
        cut = rng.choice(usable)
        base = rng.choice(cut)
        if not 30 <= len(base) <= 260:
            continue
        inside = [name for s in cut for name in _NAME.findall(s)]
        pool = inside if rng.random() < 0.6 else rng.sample(everyone, min(20, len(everyone)))
        makers = (
            ("number", lambda: swap_number(base, rng)),
            ("number", lambda: swap_number(base, rng)),
            ("name", lambda: swap_name(base, pool, rng)),
            ("flip", lambda: flip_word(base, rng)),
            ("negate", lambda: negate(base, rng)),
        )
        name, maker = rng.choice(makers)
        changed = maker()
        if changed is None or changed == base:
            continue
        kept, false = _shorten(base, changed, rng)
        made.append({"source": f"edit_{name}", "claim": kept, "sentences": cut, "label": 0})
        made.append({"source": f"edit_{name}", "claim": false, "sentences": cut, "label": 1})
        if rng.random() < 0.25:
            foreign = rng.choice(rng.choice(usable))
            if len(foreign) <= 160 and foreign not in cut:
                claim = f"{base.rstrip('.')}, and {foreign[:1].lower()}{foreign[1:]}"
                made.append({"source": "edit_add", "claim": claim, "sentences": cut, "label": 2})
        if len(cut) >= 2 and rng.random() < 0.25:
            second = rng.choice(cut)
            if second != base and len(second) <= 160:
                claim = f"{base.rstrip('.')}, and {second}"
                made.append({"source": "edit_join", "claim": claim, "sentences": cut, "label": 0})
    return made


def _shorten(base: str, changed: str, rng: random.Random) -> tuple[str, str]:
    """Cut both texts at the same late comma now and then, so that copies are not always whole."""
    if rng.random() < 0.4:
        at, to = base.rfind(", "), changed.rfind(", ")
        if at > 30 and base[:at] != changed[:to] and base[at:] == changed[to:]:
            return base[:at] + ".", changed[:to] + "."
    return base, changed


def chatty(pair: Pair, rng: random.Random) -> Pair:
    """Return the pair with the claim said as people do in a conversation."""
    claim = pair["claim"]
    text = rng.choice(_OPENERS) + claim[:1].lower() + claim[1:]
    if rng.random() < 0.5:
        text = text.lower()
    return {**pair, "claim": text, "source": pair["source"] + "+chat"}


def build_mix(config: dict[str, Any], data: dict[str, Path], held_out: list[Path]) -> list[Pair]:
    """Return the training pairs of a configuration, seeded."""
    for path in data.values():
        refuse_held_out(path)
    rng = random.Random(config["seed"])
    pairs = pairs_of(data["pairs"], config["caps"], rng)
    forbidden = held_out_keys(held_out)
    dropped = len(pairs)
    pairs = [p for p in pairs if key(p["claim"]) not in forbidden]
    pairs = [p for p in pairs if key(" ".join(p["sentences"])) not in forbidden]
    print(f"{dropped - len(pairs)} pairs share a text with the held-out files and are left out")
    if "qa" in data:
        pairs += qa_pairs(data["qa"], set(config["qa_sources"]), rng)
    prose = [p["sentences"] for p in pairs if p["source"] in config["edit_sources"]]
    pairs += edited_pairs(prose, config["edits"], rng)
    chats = [p for p in pairs if p["source"] in config["chat_sources"] and p["label"] != 2]
    pairs += [chatty(p, rng) for p in rng.sample(chats, min(config["chats"], len(chats)))]
    rng.shuffle(pairs)
    return pairs
