"""Reads labelled texts of every source: what is known of each label, and how much it counts.

Refuses files whose name says `eval` or `dev` for training, and texts of given evaluation files.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

from corpora import read

TOXICITY = ("toxicity", "severe_toxicity", "obscene", "threat", "insult", "identity_attack")
BIAS = ("gender", "group", "framing")
TRAINED = (*TOXICITY, *BIAS, "hate")
"""The labels to train on; `hate` joins toxicity and identity_attack when the model is exported."""

Known = dict[str, tuple[float, float]]
"""Label -> (value in [0, 1], weight)."""
Row = dict[str, Any]

_JIGSAW = {
    "toxic": "toxicity",
    "severe_toxic": "severe_toxicity",
    "obscene": "obscene",
    "threat": "threat",
    "insult": "insult",
    "identity_hate": "identity_attack",
}
_NOTHING = dict.fromkeys((*TOXICITY, *BIAS, "hate"), (0.0, 1.0))


def known(row: dict[str, Any]) -> Known:
    """Return what a record says about each label; labels that are not returned are unknown."""
    rule = _RULES.get(row["source"])
    if rule is None:
        raise SystemExit(f"found source {row['source']!r}; expected one of {', '.join(_RULES)}")
    found: Known = rule(row)
    return found


def _jigsaw(row: dict[str, Any]) -> Known:
    labels = row["labels"]
    found = {ours: (float(labels[theirs]), 1.0) for theirs, ours in _JIGSAW.items()}
    found["hate"] = (float(labels["identity_hate"]), 0.5)
    if not labels["toxic"]:
        # People who argue on talk pages seldom stereotype; it keeps the heads from mere topics.
        found |= dict.fromkeys(("gender", "group"), (0.0, 0.2))
    return found


def _civil(row: dict[str, Any]) -> Known:
    labels = row["labels"]
    names = ("insult", "threat", "identity_attack", "obscene")
    found = {name: (float(labels[name]), 0.7) for name in names}
    return found | {"toxicity": (0.9, 0.6), "hate": (float(labels["identity_attack"]), 0.7)}


def _hatexplain(row: dict[str, Any]) -> Known:
    found: Known = {"toxicity": (float(row["label"]), 1.0)}
    if row["cls"] != "offensive":
        value = float(row["cls"] == "hate")
        found |= {"hate": (value, 1.0), "identity_attack": (value, 0.7)}
    return found


def _hatemoji(row: dict[str, Any]) -> Known:
    value = float(row["label"])
    return {"toxicity": (value, 1.0), "hate": (value, 1.0), "identity_attack": (value, 0.7)}


def _convabuse(row: dict[str, Any]) -> Known:
    # Judged with the conversation in view, which is not in the data: "yea" is abuse there.
    return {"toxicity": (float(row["label"]), 0.3)}


def _one(label: str, others: float = 0.0) -> Any:
    def rule(row: dict[str, Any]) -> Known:
        found: Known = {label: (float(row["label"]), 1.0)}
        if others:
            found |= dict.fromkeys(("toxicity", "hate", "gender", "group"), (0.0, others))
        return found

    return rule


def _written(row: dict[str, Any]) -> Known:
    return {name: (float(value), 1.0) for name, value in row["labels"].items()}


_RULES: dict[str, Any] = {
    "jigsaw": _jigsaw,
    "civil_toxic_spans": _civil,
    "hatexplain": _hatexplain,
    "hatemoji_build": _hatemoji,
    "convabuse": _convabuse,
    "edos": _one("gender"),
    "redditbias": _one("group"),
    "stereoset": _one("group"),
    "wiki_npov": _one("framing", 0.2),
    "bold_wiki": lambda _row: _NOTHING,
    "prose": lambda _row: _NOTHING,
    # Fiction and opinion are among these: they are not framed neutrally.
    "prose_mixed": lambda _row: {k: v for k, v in _NOTHING.items() if k != "framing"},
    "written": _written,
    "pairs": _written,
}


def prose(qa: Path | None, pairs: Path | None, count: int, rng: random.Random) -> list[Row]:
    """Return plain prose in which nothing is toxic or biased: passages, answers and premises."""
    found: dict[str, dict[str, None]] = {"prose": {}, "prose_mixed": {}}
    for row in read(qa) if qa else ():
        if row["src"] in ("covidqa", "pubmedqa"):
            found["prose"].update(dict.fromkeys(row["answer"] or ()))
            found["prose"].update(dict.fromkeys(_cut(c["text"], rng) for c in row["contexts"]))
    for row in read(pairs) if pairs else ():
        if row["source"] in ("fever_dev", "boolq", "fm2", "taxinli", "mnli", "cad_nli"):
            kind = "prose" if row["source"] in ("fever_dev", "boolq", "fm2") else "prose_mixed"
            text = row["premise"] if rng.random() < 0.7 else row["hypothesis"]
            found[kind][_cut(text, rng)] = None
    rows = []
    for kind, share in (("prose", 0.7), ("prose_mixed", 0.3)):
        texts = sorted(t for t in found[kind] if len(t.split()) > 3)
        picked = rng.sample(texts, min(int(count * share), len(texts)))
        rows += [{"text": t, "source": kind, "task": "neutral"} for t in picked]
    return rows


def _cut(text: str, rng: random.Random) -> str:
    """Return some neighbouring sentences of a passage, at most about 60 words."""
    pieces = re.split(r"(?<=[.!?]) ", text)
    first = rng.randrange(len(pieces))
    kept = pieces[first]
    for piece in pieces[first + 1 :]:
        if len(kept.split()) + len(piece.split()) > 60:
            break
        kept = f"{kept} {piece}"
    return " ".join(kept.split()[:120])
