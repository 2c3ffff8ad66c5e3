"""What may work on a text, and when it stops."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from guardrail_service.errors import OutOfTime
from guardrail_service.text import budget as module
from guardrail_service.text.budget import FREE_S, Budget, check_time, spending
from guardrail_service.text.patterns.search import Pattern, PatternSet
from guardrail_service.text.segmentation.sentences import split_sentences


class Clocks:
    """Time as a test moves it: on the wall and on this thread's processor."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def namespace(self) -> SimpleNamespace:
        """Return what stands in place of the module `time`."""
        return SimpleNamespace(monotonic=lambda: self.wall, thread_time=lambda: self.cpu)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    """Let the budget read these clocks."""
    made = Clocks()
    monkeypatch.setattr(module, "time", made.namespace())
    return made


@pytest.mark.parametrize(
    ("wall", "cpu", "spent"),
    [
        (0.0, 4.9, False),  # before the deadline only the hard limit counts
        (0.0, 5.0, True),
        (1.0, FREE_S / 2, False),  # late on a busy machine, and has hardly worked
        (1.0, FREE_S, True),
    ],
)
def test_what_is_left(wall: float, cpu: float, spent: bool, clocks: Clocks) -> None:
    """A small text is done although its deadline has passed; a huge one is cut off."""
    found = Budget(due=1.0, cpu_s=5.0)
    clocks.wall, clocks.cpu = wall, cpu
    assert found.is_spent() is spent


def test_without_a_deadline_only_the_hard_limit_counts(clocks: Clocks) -> None:
    """However long it waits."""
    found = Budget(due=None, cpu_s=5.0)
    clocks.wall, clocks.cpu = 1e9, 4.9
    assert not found.is_spent()
    clocks.cpu = 5.0
    assert found.is_spent()


def test_outside_of_a_check_nothing_is_refused() -> None:
    """Offline runs and tools use the same functions."""
    check_time()
    with spending(Budget(None, 0.0)), pytest.raises(OutOfTime):
        check_time()
    check_time()


def test_cutting_and_searching_stop_inside_a_huge_text() -> None:
    """Not only between two texts."""
    patterns = PatternSet([Pattern("at", "a@")])
    with spending(Budget(None, 0.0)):
        with pytest.raises(OutOfTime):
            split_sentences("a. " * 1_000)
        with pytest.raises(OutOfTime):
            patterns.scan("a@" * 1_000)
