"""What may work on a text, and when it stops."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from guardrail_service.detectors.hallucination.reading import without_layout, without_opaque
from guardrail_service.detectors.looping import compression_ratio, longest_repeated_substring
from guardrail_service.detectors.no_answer.detector import is_courtesy
from guardrail_service.errors import OutOfTime
from guardrail_service.text import budget as module
from guardrail_service.text.budget import FREE_S, LOOK_S, Budget, check_time, spending
from guardrail_service.text.decoding.decode import search as decoded
from guardrail_service.text.language import identify
from guardrail_service.text.patterns.search import Pattern, PatternSet
from guardrail_service.text.segmentation.sentences import split_sentences


class Clocks:
    """Time as a test moves it: on the wall and on this thread's processor, which takes as long."""

    def __init__(self) -> None:
        self.wall = self._cpu = 0.0

    @property
    def cpu(self) -> float:
        """Return the seconds of processor time."""
        return self._cpu

    @cpu.setter
    def cpu(self, seconds: float) -> None:
        self.wall += max(0.0, seconds - self._cpu)
        self._cpu = seconds

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
        (10.0, FREE_S / 2, False),  # late on a busy machine, and has hardly worked
        (10.0, FREE_S, True),
    ],
)
def test_what_is_left(wall: float, cpu: float, spent: bool, clocks: Clocks) -> None:
    """A small text is done although its deadline has passed; a huge one is cut off."""
    found = Budget(due=10.0, cpu_s=5.0)
    clocks.cpu = cpu
    clocks.wall += wall
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


HUGE = {
    "sentences": (split_sentences, "a. B? C! " * 9_000),
    "language": (identify, "wort und satz " * 9_000),
    "decoding of percent signs": (decoded, "%41%42 " * 9_000),
    "decoding of base64": (decoded, "aGVsbG8gd29ybGQ= " * 6_000),
    "decoding of look-alikes": (decoded, "\u0430\u0435 " * 30_000),
    "the longest repeat": (longest_repeated_substring, "to and fro " * 9_000),
    "compression": (compression_ratio, "abcdefgh " * 9_000),
    "clauses": (is_courtesy, "i hope this helps, " * 5_000),
    "opaque words": (without_opaque, ("x" * 40 + "1 ") * 2_000),
    "layout": (lambda text: without_layout(text, keep_brackets=False), "[a] | " * 9_000),
    "patterns": (PatternSet([Pattern("word", r"[a-z]+")]).scan, "word " * 9_000),
}


@pytest.mark.parametrize("step", HUGE)
def test_every_step_that_reads_a_text_ends_when_the_time_is_over(step: str, clocks: Clocks) -> None:
    """Not at once, and not only when it is done: each looks at the time inside its loop."""
    work, text = HUGE[step]
    ends = Budget(due=None, cpu_s=1.0)
    looks = 0

    def spend() -> None:
        nonlocal looks
        looks += 1
        clocks.cpu += 0.3

    ends._give_way = spend
    clocks.cpu = 0.1
    with spending(ends), pytest.raises(OutOfTime):
        work(text)
    assert looks > 1


def test_work_gives_way_now_and_then(clocks: Clocks) -> None:
    """Not at every look: that takes a lock."""
    given: list[float] = []
    found = Budget(None, 5.0, give_way=lambda: given.append(clocks.cpu))
    for _ in range(100):
        clocks.cpu += LOOK_S / 10
        assert not found.is_spent()
    assert 8 <= len(given) <= 10


def test_processor_time_is_asked_for_only_when_something_can_have_changed(clocks: Clocks) -> None:
    """Asking takes half a microsecond and more; the clock on the wall a tenth of that."""
    asked: list[float] = []
    module.time.thread_time = lambda: asked.append(clocks.wall) or clocks.cpu
    found = Budget(due=2.0, cpu_s=5.0)
    for _ in range(1_000):
        clocks.cpu += LOOK_S / 500
        assert not found.is_spent()
    assert len(asked) <= 5  # at the start, and once for each time to look whether others wait
    clocks.cpu = FREE_S
    clocks.wall = 1.9
    assert not found.is_spent()
    clocks.wall = 2.0
    assert found.is_spent()
