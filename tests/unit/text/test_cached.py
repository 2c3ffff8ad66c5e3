"""Cached properties: one computation for an object, and none that waits for another object's."""

from __future__ import annotations

import threading

from guardrail_service.text.cached import cached_property

BUDGET_S = 30.0


class Text:
    """A text whose length is slow to find, if somebody holds it up."""

    def __init__(self, text: str, leave: threading.Event) -> None:
        self.text = text
        self.leave = leave
        self.begun = threading.Event()
        self.computed = 0

    @cached_property
    def length(self) -> int:
        """Return the length once the text may be left."""
        self.computed += 1
        self.begun.set()
        assert self.leave.wait(BUDGET_S)
        return len(self.text)


def test_a_value_is_computed_once() -> None:
    """And belongs to its object."""
    leave = threading.Event()
    leave.set()
    one, other = Text("a", leave), Text("bc", leave)
    assert (one.length, one.length, other.length) == (1, 1, 2)
    assert (one.computed, other.computed) == (1, 1)


def test_nobody_waits_for_the_value_of_another_object() -> None:
    """In Python 3.11 an ordinary check stood behind a huge one here."""
    leave, free = threading.Event(), threading.Event()
    free.set()
    huge, small = Text("huge", leave), Text("small", free)
    found: list[int] = []
    slow = threading.Thread(target=lambda: found.append(huge.length))
    quick = threading.Thread(target=lambda: found.append(small.length))
    slow.start()
    assert huge.begun.wait(BUDGET_S)
    quick.start()
    quick.join(BUDGET_S)
    before = list(found)
    leave.set()
    slow.join(BUDGET_S)
    assert before == [5]
    assert found == [5, 4]
