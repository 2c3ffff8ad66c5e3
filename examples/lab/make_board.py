"""Writes board.jsonl anew: what five other models would have answered, made from its `gold` rows.

    python examples/lab/make_board.py

The 60 rows of `gold` are written by hand; nothing else is. Which sentence stands for which question
is drawn with a fixed seed, so that the same rows come out every time.
"""

from __future__ import annotations

import json
import random
import re  # noqa: TID251 - reads our own texts only
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

BOARD = Path(__file__).with_name("board.jsonl")
SEED = 22
SPOKEN = 6
"""How many of its 60 questions the silent model answers."""
ABSTENTION = "I cannot answer that from the documents I was given."
LEAD_IN = "Thank you for asking, that is a very good question."

_AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|may|must|should|shall|will|could|would|might)\b(?! not\b)"
)
_IMPERATIVE = re.compile(
    r"^(Choose|Clean|Cut|Charge|Fry|Note|Please notify|Rinse|Run|Sign|Take|Turn|Watch)\b"
)
_DENIED = re.compile(r"\b(do not|not|no more than) ", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:]| (?:if|because|unless|once|while|when|which|who) ")

Row = dict[str, Any]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return re.split(r"(?<=[.!?])\s+(?=[A-Z0-9])", text)


def negated_sentence(text: str) -> str:
    """Return a sentence that says the contrary, by rules of its words.

    The words before the first clause decide: "open if it is not raining" denies nothing.
    """
    if text.startswith("Yes"):
        return "No" + text[3:]
    if not text.endswith("."):
        return f"not {text}"
    found = _CLAUSE.search(text)
    end = found.start() if found else len(text)
    main, rest = text[:end], text[end:]
    if _DENIED.search(main):
        return _DENIED.sub("", main, count=1) + rest
    if _AUXILIARY.search(main):
        return _AUXILIARY.sub(lambda found: f"{found.group()} not", main, count=1) + rest
    if _IMPERATIVE.search(main):
        return f"Do not {text[0].lower()}{text[1:]}"
    return f"It is not true that {text[0].lower()}{text[1:]}"


def negated(row: Row, _other: Row) -> str:
    """Return the contrary of every sentence."""
    return " ".join(map(negated_sentence, sentences(row["answer"])))


def truncated(row: Row, _other: Row) -> str:
    """Return the first half of the words, or of a single word's letters."""
    words = row["answer"].split()
    if len(words) == 1:
        return str(words[0][: (len(words[0]) + 1) // 2])
    return " ".join(words[: len(words) // 2])


def shuffled(_row: Row, other: Row) -> str:
    """Return the right answer to another question."""
    return str(other["answer"])


def verbose(row: Row, other: Row) -> str:
    """Return the answer between courtesy, what nobody asked for and what another passage says."""
    answer = row["answer"].rstrip(".")
    unasked = sentences(row["contexts"][-1])[-1]
    return f"{LEAD_IN} {answer}. {unasked} {sentences(other['contexts'][0])[0]}"


def silent(row: Row, _other: Row, answers: bool) -> str:
    """Return the right answer to few questions and an abstention to all others."""
    return str(row["answer"]) if answers else ABSTENTION


MODELS: dict[str, Callable[[Row, Row], str]] = {
    "verbose": verbose,
    "truncated": truncated,
    "negated": negated,
    "shuffled": shuffled,
}


def others(gold: Sequence[Row], rng: random.Random) -> list[Row]:
    """Return another question's row for each row, every one once."""
    order = list(range(len(gold)))
    rng.shuffle(order)
    following = dict(zip(order, order[1:] + order[:1], strict=True))
    return [gold[following[place]] for place in range(len(gold))]


def board(gold: Sequence[Row]) -> list[Row]:
    """Return all rows: those of `gold` and the same questions answered by the other models."""
    rng = random.Random(SEED)  # noqa: S311 - which text goes where, no secrets
    pairs = list(zip(gold, others(gold, rng), strict=True))
    rows = list(gold)
    for model, answer in MODELS.items():
        rows += [_row(row, model, answer(row, other)) for row, other in pairs]
    spoken = set(rng.sample(range(len(gold)), SPOKEN))
    for place, (row, other) in enumerate(pairs):
        rows.append(_row(row, "silent", silent(row, other, place in spoken)))
    return rows


def _row(row: Row, model: str, answer: str) -> Row:
    key = f"{row['key'].removesuffix('gold')}{model}"
    return {**row, "key": key, "answer": answer, "model_key": model}


def read_gold() -> list[Row]:
    """Return the rows that were written by hand."""
    rows = [json.loads(line) for line in BOARD.read_text("utf-8").splitlines()]
    return [row for row in rows if row["model_key"] == "gold"]


def text(rows: Sequence[Row]) -> str:
    """Return the file's content."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


if __name__ == "__main__":
    BOARD.write_text(text(board(read_gold())), "utf-8")
