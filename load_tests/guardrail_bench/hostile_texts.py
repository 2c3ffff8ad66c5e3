"""Texts that cost as much as they can: each kind is long, and hard for some part of a check."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

CHARS = 100_000
"""Code points: as many as an answer may have."""
_PASSAGE = "Refunds are paid within 30 days. The station opened in 1902 and has four tracks."


def _repeated(unit: str) -> Callable[[random.Random], str]:
    return lambda _rng: unit * (CHARS // len(unit) + 1)


def _drawn(letters: str, between: str, shortest: int, longest: int) -> Callable[[Any], str]:
    """Return a maker of words of some letters with something between them."""

    def make(rng: random.Random) -> str:
        words: list[str] = []
        size = 0
        while size < CHARS:
            word = "".join(rng.choices(letters, k=rng.randint(shortest, longest)))
            words.append(word)
            size += len(word) + len(between)
        return between.join(words)

    return make


def _base64(rng: random.Random) -> str:
    """Return text that was encoded three times."""
    found = "".join(rng.choices("abcdef ghij", k=CHARS // 3)).encode()
    for _ in range(3):
        found = base64.b64encode(found)
    return found.decode()


def _sentences(rng: random.Random) -> str:
    """Return short sentences, each of its own."""
    return " ".join(f"Line {n} says {rng.randrange(10**6)}." for n in range(3_900))


def _clauses(rng: random.Random) -> str:
    names = [f"track {n}" for n in range(300)]
    return "".join(f"the {rng.choice(names)} is closed and " for _ in range(5_000))


_LOWER = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
KINDS: dict[str, Callable[[random.Random], str]] = {
    "e-mail-like": _repeated("a@a."),
    "e-mail, long local part": _repeated("a.b-c_d+e"),
    "URL-like": _repeated("http://a.b/c?d=e&"),
    "card-like digits": _drawn(_DIGITS, " ", 4, 4),
    "digits, no blanks": _drawn(_DIGITS, "", 60, 60),
    "many numbers": _drawn(_DIGITS, ", ", 1, 9),
    "one long word": _drawn(_LOWER, "", 60, 60),
    "long words": _drawn(_LOWER, " ", 900, 1_000),
    "one letter": _repeated("a"),
    "nested markup": _repeated("<div><b>[a](b)**_"),
    "list and table marks": _repeated("| - * 1. "),
    "many sentences": _sentences,
    "sentence ends": _repeated("a. B? C! "),
    "base64": _base64,
    "percent and entities": _repeated("%41&#65;\\u0041"),
    "combining marks": _repeated("e\u0301\u0302\u0303\u0304"),
    "CJK without blanks": _drawn("的一是不了人我在有他这为之大来以个中上们", "", 60, 60),
    "nested JSON": _repeated('{"a":['),
    "repeated clauses": _clauses,
    "secret-like": _drawn(_LOWER + _LOWER.upper() + _DIGITS, "\nkey = ", 40, 40),
    "invisible signs": _repeated("a\u200bb\u200d"),
    "look-alike letters": _drawn("аеорсухі", " ", 3, 9),  # noqa: RUF001
}
"""By name, what makes a text of that kind; at least `CHARS` long, and cut there."""


def hostile_answer(kind: str, seed: int) -> str:
    """Return a text of one kind; another seed gives another one where the kind has several."""
    return KINDS[kind](random.Random(seed))[:CHARS]  # noqa: S311 - no secret


def hostile_body(kind: str, deadline_ms: float | None, seed: int = 0) -> bytes:
    """Return a request for `/v1/check` with an answer of one kind."""
    body: dict[str, Any] = {
        "question": "When are refunds paid?",
        "answer": hostile_answer(kind, seed),
        "contexts": [_PASSAGE],
    }
    if deadline_ms is not None:
        body["deadline_ms"] = deadline_ms
    return json.dumps(body).encode()
