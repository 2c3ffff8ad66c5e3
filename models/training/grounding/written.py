"""Reads claims that models and people wrote against whole documents, as the service reads them.

A folder has a file per source; rows say which documents are for training (`split`). An answer is
cut into claims. Of an unsupported answer only claims that are certainly unsupported are kept: the
only one, or those under a marked span.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from documents import document_pairs
from edits import content
from texts import LABELS, Pair, sentences

from corpora import held_out_keys, key, read
from guardrail_service.detectors import groundedness
from guardrail_service.detectors.hallucination.reading import MIN_CLAIM_CHARS, without_layout
from guardrail_service.text.segmentation.sentences import Sentence, merge_short, split_sentences

SPAN_SHARE = 0.5
"""A claim is unsupported if so much of a marked span lies in it."""


def claims_of(answer: str, question: str | None) -> list[tuple[Sentence, str]]:
    """Return an answer's claims where they stand, and as the model reads them."""
    pieces = merge_short(split_sentences(answer), answer, MIN_CLAIM_CHARS)
    found = [(piece, without_layout(piece.text, keep_brackets=True)) for piece in pieces]
    asked = (question or "").strip()
    is_short = len(found) == 1 and len(pieces[0].text) <= groundedness.MIN_CLAIM_CHARS
    if is_short and 0 < len(asked) <= groundedness.MAX_QUESTION_CHARS:
        found = [(pieces[0], f"{asked} {found[0][1]}")]
    return [(piece, text) for piece, text in found if any(map(str.isalnum, text))]


def labelled_claims(row: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the claims of a row whose label is certain."""
    pieces = claims_of(row["hypothesis"], row.get("question"))
    label = LABELS[row["label"]]
    if "group" in row and len(pieces) > 1:
        return  # its sentences would be true beside one version and unknown beside the other
    spans = row.get("spans") or ()
    for piece, text in pieces:
        if label == 0 or len(pieces) == 1 or any(_inside(piece, *span) for span in spans):
            yield text, label


def _inside(piece: Sentence, start: int, end: int) -> bool:
    shared = min(piece.end, end) - max(piece.start, start)
    return shared >= SPAN_SHARE * (end - start)


def sources_of(folder: Path, split: str, skipped: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a split by source."""
    paths = sorted(p for p in folder.iterdir() if p.name.endswith((".jsonl", ".jsonl.gz")))
    names = {path.name.split(".")[0]: path for path in paths}
    return {
        name: [pair for row in read(path) if row.get("split") == split for pair in _pairs(row)]
        for name, path in names.items()
        if name not in skipped
    }


_SAYS = {"supported": "entailment", "contradicted": "contradiction", "not_mentioned": "neutral"}


def _pairs(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row, or one for each claim of a record of several about the same passages."""
    if "claims" not in row:
        return [row]
    premise = "\n\n".join(row["passages"])
    return [
        {"premise": premise, "hypothesis": claim["text"], "label": _SAYS[claim["label"]]}
        for claim in row["claims"]
        if "change" not in claim
    ] + _versions(row)


def _versions(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the claims that a change of the passages turns round, beside four versions of them.

    Each change decides about its own claims, whatever the others are. So the passages are read as
    they are, with all changes, with a half of them and with the other half: every claim is as often
    true as false, and none gives away by itself which it is. Claims that a change leaves open are
    left out.
    """
    changes = row.get("changes", [])
    numbers = range(len(changes))
    half = set(random.Random("".join(row["passages"])).sample(numbers, len(numbers) // 2))
    made = []
    for taken in (set(), set(numbers), half, set(numbers) - half):
        premise = _changed("\n\n".join(row["passages"]), [changes[i] for i in taken])
        for claim in row["claims"]:
            if "change" not in claim or taken.intersection(claim.get("open_after", ())):
                continue
            label = _SAYS[claim["label"]]
            if claim["change"] in taken:
                label = "not_entailment" if label == "entailment" else "entailment"
            made.append(
                {"premise": premise, "hypothesis": claim["text"], "label": label,
                 "group": row["passages"][0]}
            )  # fmt: skip
    # A claim whose own change and one that leaves it open are made together has one label only.
    told = {(pair["hypothesis"], pair["label"] == "entailment") for pair in made}
    return [pair for pair in made if {(pair["hypothesis"], sign) for sign in (True, False)} <= told]


def _changed(text: str, changes: list[dict[str, Any]]) -> str:
    """Return a text with edits made; what an edit replaces stands in it once."""
    edits = [(text.index(old), old, new) for change in changes for old, new in change["edits"]]
    if any(text.count(old) != 1 for _, old, _ in edits):
        raise ValueError("changes: expected edits of words that stand in the passages once")
    for start, old, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[start + len(old) :]
    return text


def written_pairs(folder: Path, config: dict[str, Any], rng: random.Random) -> list[Pair]:
    """Return the training pairs of a folder, at most `caps[source]` rows of a source.

    Both labels get half of the cap where there are as many.
    """
    made: list[Pair] = []
    for source, rows in sources_of(folder, "train", config.get("leave_out", [])).items():
        documents: dict[tuple[str, str | None], list[tuple[str, int]]] = {}
        for row in halved(rows, config["caps"].get(source, len(rows)), rng):
            document = row["premise"], row.get("group")
            documents.setdefault(document, []).extend(labelled_claims(row))
        groups = {
            group: number for number, group in enumerate(dict.fromkeys(g for _, g in documents))
        }
        for (premise, group), claims in documents.items():
            cut = near(sentences(premise), [text for text, _ in claims], config["near"])
            same = {"group": f"{source} {groups[group]}"} if group else {}
            made += [
                {
                    "source": source + ("_versions" if group else ""),
                    "claim": text,
                    "sentences": cut,
                    "label": label,
                    **same,
                }
                for text, label in claims
                if cut
            ]
    return made


def near(cut: list[str], claims: list[str], most: int) -> list[str]:
    """Return a document's sentences that some claim shares most with, in order.

    Words that few sentences hold count more. Claims read their six nearest sentences, so others
    need not be encoded.
    """
    words = [content(sentence) for sentence in cut]
    often = Counter(word for found in words for word in found)
    kept: set[int] = set()
    for claim in claims:
        wanted = content(claim)
        scores = [sum(1 / often[word] for word in wanted & found) for found in words]
        kept.update(sorted(range(len(cut)), key=lambda i: -scores[i])[:most])
    return [cut[i] for i in sorted(kept)]


def halved(rows: list[dict[str, Any]], most: int, rng: random.Random) -> list[dict[str, Any]]:
    """Return at most so many rows; the rarer label keeps its rows up to half of them."""
    good = [row for row in rows if row["label"] == "entailment"]
    bad = [row for row in rows if row["label"] != "entailment"]
    few, many = sorted((good, bad), key=len)
    kept = rng.sample(few, min(len(few), most // 2))
    return kept + rng.sample(many, min(len(many), most - len(kept)))


def document_mix(config: dict[str, Any], folder: Path, held_out: list[Path]) -> list[Pair]:
    """Return written pairs and what is made from their documents, seeded."""
    rng = random.Random(config["seed"])
    forbidden = held_out_keys(held_out, ("premise", "hypothesis"), 8)
    pairs = [p for p in written_pairs(folder, config, rng) if key(p["claim"]) not in forbidden]
    prose = [p for p in pairs if p["source"] in config["document_sources"]]
    return pairs + document_pairs(prose, config["documents"], rng)


def written_development(folder: Path, config: dict[str, Any], rng: random.Random) -> list[Pair]:
    """Return development records of all sources: a pair for each claim, with its record."""
    made: list[Pair] = []
    most = config["near"]
    for source, rows in sources_of(folder, "dev", []).items():
        for number, row in enumerate(halved(rows, config["written_dev"], rng)):
            texts = [text for _, text in claims_of(row["hypothesis"], row.get("question"))]
            cut = near(sentences(row["premise"]), texts, most)
            label, record = LABELS[row["label"]], f"{source} {number}"
            made += [
                {"source": source, "claim": text, "sentences": cut, "label": label,
                 "record": record}
                for text in texts
                if cut
            ]  # fmt: skip
    return made
