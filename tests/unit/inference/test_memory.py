"""The memory of outputs: one computation per text, bounded, the same bits."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from guardrail_service.errors import RowFailed
from guardrail_service.inference.memory import AT_ONCE, OVERHEAD_BYTES, Memory
from guardrail_service.types import RowOutput, RowResult


class Work:
    """Computes made-up outputs, counts, and waits in each run if asked to."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.gate: threading.Event | None = None

    def get(self, memory: Memory, text: str) -> RowResult:
        """Return a text's outputs through a memory."""
        return memory.get(text, lambda: self._compute(text))

    def _compute(self, text: str) -> RowResult:
        self.runs.append(text)
        if self.gate is not None:
            self.gate.wait(10)
        if text == "fail":
            raise RowFailed("too long")
        return RowResult({"states": np.full((8, 4), len(text), np.float32)}, 1.0, 2.0)


ENTRY = OVERHEAD_BYTES + 8 * 4 * 4


def test_a_text_is_computed_once() -> None:
    """The second caller pays nothing and gets the same array."""
    memory, work = Memory(10 * ENTRY), Work()
    first, again = work.get(memory, "a"), work.get(memory, "a")
    assert work.runs == ["a"]
    assert (first.tokenize_ms, first.inference_ms) == (1.0, 2.0)
    assert (again.tokenize_ms, again.inference_ms) == (0.0, 0.0)
    assert again.outputs["states"] is first.outputs["states"]


def test_the_text_used_longest_ago_goes_first() -> None:
    """Two texts fit here."""
    memory, work = Memory(2 * ENTRY), Work()
    for text in ("a", "b", "a", "c", "a", "b"):
        work.get(memory, text)
    assert work.runs == ["a", "b", "c", "b"]


def test_what_does_not_fit_is_given_and_not_kept() -> None:
    """A memory that is too small for one text still answers."""
    memory, work = Memory(ENTRY - 1), Work()
    assert work.get(memory, "a").outputs["states"].shape == (8, 4)
    work.get(memory, "a")
    assert work.runs == ["a", "a"]


def test_nobody_can_change_what_is_kept() -> None:
    """Requests share the arrays."""
    with pytest.raises(ValueError, match="read-only"):
        Work().get(Memory(10 * ENTRY), "a").outputs["states"][0] = 1.0


def test_a_failure_is_not_kept_and_fails_alone() -> None:
    """The next one tries again."""
    memory, work = Memory(10 * ENTRY), Work()
    for _ in range(2):
        with pytest.raises(RowFailed):
            work.get(memory, "fail")
    assert work.runs == ["fail", "fail"]
    assert work.get(memory, "a").outputs


def test_nobody_waits_for_a_text_in_flight() -> None:
    """A worker that waited would be lost to other rows; both get the array that is kept."""
    memory, work = Memory(10 * ENTRY), Work()
    meeting = threading.Barrier(2, timeout=20)

    def compute(text: str) -> RowResult:
        meeting.wait()  # breaks unless both are inside at once
        return work._compute(text)

    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(memory.get, "a", lambda: compute("a")) for _ in range(2)]
        first, second = (f.result(20).outputs["states"] for f in found)
    assert first is second


def test_of_several_texts_those_in_flight_come_last() -> None:
    """By then they are there, so two workers that need the same texts share them out."""
    memory, work = Memory(10 * ENTRY), Work()
    entered, leave = threading.Event(), threading.Event()

    def held(text: str) -> RowResult:
        entered.set()
        assert leave.wait(20)
        return work._compute(text)

    def compute(texts: list[str]) -> list[RowResult]:
        calls.append(texts)
        leave.set()
        assert done.result(20)
        return [work._compute(text) for text in texts]

    calls: list[list[str]] = []
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(memory.get, "a", lambda: held("a"))
        assert entered.wait(20)
        found = memory.get_all(["a", "bb", "ccc", "bb"], compute)
    assert calls == [["bb", "ccc"]]
    assert work.runs == ["a", "bb", "ccc"]
    assert [r.outputs["states"][0, 0] for r in found] == [1, 2, 3, 2]


def test_a_text_that_stays_in_flight_is_computed_here_as_well() -> None:
    """Waiting for a stalled worker would stall this one, too."""
    memory, work = Memory(10 * ENTRY), Work()
    entered, leave = threading.Event(), threading.Event()

    def stalled() -> RowResult:
        entered.set()
        assert leave.wait(20)
        return work._compute("a")

    with ThreadPoolExecutor(1) as pool:
        pool.submit(memory.get, "a", stalled)
        assert entered.wait(20)
        assert len(memory.get_all(["a"], lambda texts: [work._compute(t) for t in texts])) == 1
        leave.set()


def test_peeking_computes_nothing() -> None:
    """It tells what is at hand."""
    memory, work = Memory(10 * ENTRY), Work()
    assert memory.peek(["a"]) == [None]
    kept = work.get(memory, "a").outputs
    found, missing = memory.peek(["a", "b"])
    assert found is kept
    assert missing is None
    assert work.runs == ["a"]


def test_a_memory_counts_what_it_did_and_holds() -> None:
    """For /metrics and /v1/info."""
    memory, work = Memory(10 * ENTRY), Work()
    for text in ("a", "b", "a"):
        work.get(memory, text)
    assert memory.stats() == (1, 2, 0, 2, 2 * ENTRY, 10 * ENTRY)


class Dictionary:
    """A shelf in memory."""

    def __init__(self) -> None:
        self.kept: dict[bytes, RowOutput] = {}

    def get(self, key: bytes) -> RowOutput | None:
        """Return what was put."""
        return self.kept.get(key)

    def put(self, key: bytes, outputs: RowOutput) -> None:
        """Keep outputs."""
        self.kept[key] = outputs


def test_what_a_shelf_holds_is_not_computed_again() -> None:
    """A second memory, as after a restart, finds it there, bit for bit."""
    shelf, work = Dictionary(), Work()
    before, after = Memory(10 * ENTRY), Memory(10 * ENTRY)
    before.shelf = after.shelf = shelf
    computed = work.get(before, "a").outputs["states"]
    found = work.get(after, "a")
    assert work.runs == ["a"]
    assert found.outputs["states"].tobytes() == computed.tobytes()
    assert found.inference_ms == 0.0
    assert (after.stats().restored, after.stats().misses) == (1, 0)


def test_a_lone_surrogate_is_a_text_like_any_other() -> None:
    """JSON may carry one; it has no UTF-8 form."""
    memory, work = Memory(10 * ENTRY), Work()
    work.get(memory, "\ud800")
    work.get(memory, "\ud800")
    assert len(work.runs) == 1


def test_many_texts_compute_together_what_is_not_kept() -> None:
    """In the order asked; a text that comes twice is computed and counted once."""
    memory, work = Memory(10 * ENTRY), Work()
    calls: list[list[str]] = []

    def compute(texts: list[str]) -> list[RowResult]:
        calls.append(texts)
        return [work._compute(text) for text in texts]

    work.get(memory, "b")
    found = memory.get_many(["ccc", "b", "aa", "ccc"], compute)
    assert calls == [["ccc", "aa"]]
    assert [result.outputs["states"][0, 0] for result in found] == [3, 1, 2, 3]
    assert [result.inference_ms for result in found] == [2.0, 0.0, 2.0, 2.0]
    assert (memory.stats().hits, memory.stats().misses) == (1, 3)
    with pytest.raises(RowFailed):
        memory.get_many(["d", "fail"], compute)
    assert memory.peek(["d"]) == [None]
    memory.get_many(["aa", "b"], compute)
    assert len(calls) == 2


def test_two_threads_that_need_the_same_texts_share_them_out() -> None:
    """Each takes some at a time, so the other finds texts that nobody is computing."""
    memory, texts = Memory(1_000 * ENTRY), [f"text {n}" for n in range(4 * AT_ONCE)]
    computed: list[str] = []
    both, calls = threading.Barrier(2), itertools.count()

    def compute(some: list[str]) -> list[RowResult]:
        if next(calls) < 2:
            both.wait(20)  # each of the first two calls goes on when the other one has begun
        computed.extend(some)
        return [RowResult({"states": np.ones((1, 1))}, 0.0, 1.0) for _ in some]

    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(memory.get_all, texts, compute) for _ in range(2)]
        assert [len(done.result(20)) for done in found] == [len(texts)] * 2
    assert len(computed) - len(texts) <= AT_ONCE
    assert set(computed) == set(texts)
