"""Measures the text that a stream holds back, and how long judging a part takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from guardrail_service.server.runtime import Runtime
from guardrail_service.streaming.guarded import Release, StreamedCheck
from guardrail_service.types import Passage, Sample

QUESTION = "How long may guests stay, and what does it cost to bring a dog?"
PASSAGES = (
    "Guests may stay for two weeks at most. Longer stays need the manager's consent in writing. "
    "The pool opens at seven in the morning and closes at nine in the evening.",
    "Dogs are welcome in the garden rooms for 15 euros a night. They may not go near the pool.",
    "Breakfast is served from seven until ten every day. Parking behind the house is free.",
)
PROSE = (
    "Guests may stay for two weeks at most. ",
    "For a longer stay you need the manager's consent in writing. ",
    "Dogs are welcome in the garden rooms, but not near the pool. ",
    "The pool opens at seven in the morning and closes at nine in the evening. ",
    "Breakfast is served every day, and parking behind the house is free. ",
)
NUMBERS = (
    "A dog costs 15 euros a night [2]. ",
    "Breakfast is from 7:00 to 10:00 every day. ",
    "In 2023 the house had 4,180 guests from 31 countries. ",
    "A late check-out costs 20 euros; the sauna is 12 euros. ",
    "Call us between 8 and 20 o'clock. ",
)
LIST = (
    "The rules are:\n\n",
    "- No dogs near the pool\n",
    "- No smoking in the rooms\n",
    "- Quiet from 22:00\n",
)
CODE = (
    "```json\n",
    '{"pool": {"opens": "07:00", "closes": "21:00"},\n',
    ' "dogs": true}\n',
    "```\n",
)
TEXTS = {"prose": PROSE, "numbers": NUMBERS, "list": LIST, "code": CODE}
SENTENCES = 20
TOKEN_CHARS = 4
"""About what a language model's token holds in English."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """One kind of text.

    Attributes:
        held: Characters that had arrived and not left, seen at every token; p50 and p99.
        judged_ms: From the call to the release of each part; p50 and p99.
        parts: How many parts left before the end.
    """

    text: str
    held: tuple[int, int]
    judged_ms: tuple[float, float]
    parts: int


def run(
    repeats: int, policy: str | None, advance: Callable[[], None], runtime: Runtime
) -> list[HeldBack]:
    """Return one row per kind of text, measured in this process without HTTP.

    Args:
        repeats: How often each text is streamed; the first time does not count.
        policy: Name of a loaded policy; None takes the default one.
        advance: Called after each stream.
        runtime: The loaded service.
    """
    return [_row(name, runtime, repeats, policy, advance) for name in TEXTS]


def _row(
    name: str, runtime: Runtime, repeats: int, policy: str | None, advance: Callable[[], None]
) -> HeldBack:
    held: list[int] = []
    took: list[float] = []
    parts = 0
    for repeat in range(repeats + 1):
        # A text of its own each time: the models' outputs for known sentences are cached.
        text = "".join(_sentences(TEXTS[name], repeat))
        seen = _stream(runtime, text, policy)
        if repeat:
            held += seen[0]
            took += seen[1]
            parts = len(seen[1])
        advance()
    return HeldBack(name, _both(held), _both(took), parts)


def _sentences(texts: Sequence[str], repeat: int) -> Iterator[str]:
    words = ("guests", "visitors", "people", "travellers", "families", "friends", "couples")
    for number in range(SENTENCES):
        word = words[(repeat * SENTENCES + number) % len(words)]
        yield texts[number % len(texts)].replace("guests", word).replace("Guests", word.title())


def _stream(runtime: Runtime, text: str, policy: str | None) -> tuple[list[int], list[float]]:
    """Return what was held at each token and what each part took, in milliseconds."""
    contexts = tuple(Passage(passage) for passage in PASSAGES)
    rules = runtime.guard.policy_for(policy, {})
    check = StreamedCheck(runtime.guard, rules, Sample("", QUESTION, contexts), mode="shadow")
    held: list[int] = []
    took: list[float] = []
    for at in range(0, len(text), TOKEN_CHARS):
        check.feed(text[at : at + TOKEN_CHARS])
        while check.due():
            started = time.perf_counter()
            if not isinstance(check.step(), Release):
                break
            took.append((time.perf_counter() - started) * 1e3)
        held.append(len(check.state.held))
    return held, took


def _both(values: Sequence[Any]) -> tuple[Any, Any]:
    """Return the median and the 99th percentile, both values that occurred; zeros for none."""
    ordered = sorted(values)
    if not ordered:
        return 0, 0
    return tuple(ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.99))


def render(rows: Sequence[HeldBack]) -> Table:
    """Return the rows as people read them."""
    table = Table("text", "held p50", "held p99", "ms per part p50", "p99", "parts")
    for row in rows:
        table.add_row(
            row.text,
            *map(str, row.held),
            *(f"{value:.1f}" for value in row.judged_ms),
            str(row.parts),
        )
    return table
