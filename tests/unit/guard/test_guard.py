"""The guard: rows once, states not verdicts, overrides, cancellation. Runners are functions."""

from __future__ import annotations

import dataclasses
import gc
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import field_validator

import guardrail_service.detectors  # noqa: F401 - registers the built-in detectors
from guardrail_service.detectors.registry import (
    REGISTRY,
    Detector,
    DetectorSpec,
    MetricSpec,
    Parameters,
)
from guardrail_service.detectors.registry import Registry as RealRegistry
from guardrail_service.errors import (
    Cancelled,
    InputError,
    LimitExceeded,
    NotReady,
    Overloaded,
    OverrideRefused,
    UnknownPolicy,
)
from guardrail_service.guard import check as module
from guardrail_service.guard import guard as guard_module
from guardrail_service.guard.guard import Guard
from guardrail_service.guard.overrides import Override
from guardrail_service.guard.waiting import Cancellation, Turns
from guardrail_service.inference.queue.cost import QueuePlace
from guardrail_service.inference.queue.scheduler import Scheduler
from guardrail_service.policy.decide import Cut, Policy, Rule
from guardrail_service.text.sample import SegmentedSample, TokenSpan
from guardrail_service.types import (
    Action,
    Coverage,
    Direction,
    Outcome,
    Passage,
    Row,
    RowOutput,
    RowResult,
    Sample,
    Span,
    State,
    Verdict,
)
from tests.waiting import until

ANSWER = "Guests may stay for two weeks."


class Knobs(Parameters):
    """What a test can turn."""

    level: float = 0.5
    note: str | None = None


class Fake(Detector[Knobs]):
    """A model detector made of two functions."""

    parameters = Knobs
    spec: ClassVar[DetectorSpec]

    def __init__(self, name: str, encode: Any, reduce: Any, **changes: Any) -> None:
        spec = DetectorSpec(
            id=name,
            summary="Made up.",
            metrics=(
                MetricSpec("good", Direction.HIGHER, gating=True),
                MetricSpec("bad", Direction.LOWER),
            ),
            inputs=frozenset({"answer"}),
            roles=frozenset({"embedding"}),
            cost="model",
            request_parameters=frozenset({"note"}),
        )
        self.spec = dataclasses.replace(spec, **changes)  # type: ignore[misc]
        self._encode = encode
        self._reduce = reduce

    def encode(self, sample: SegmentedSample, parameters: Knobs) -> Sequence[Row]:
        """Return what the test says."""
        rows: Sequence[Row] = self._encode(sample, parameters)
        return rows

    def reduce(
        self, sample: SegmentedSample, outputs: Sequence[RowOutput], parameters: Knobs
    ) -> Outcome:
        """Return what the test says."""
        outcome: Outcome = self._reduce(sample, outputs, parameters)
        return outcome


def row(text: str) -> Row:
    """Return a model row."""
    return Row("embedding", text)


def rows(*texts: str) -> Callable[..., Sequence[Row]]:
    """Return an `encode` that always asks for these rows."""
    return lambda _sample, _parameters: [row(text) for text in texts]


def scores(good: Any = 1.0, bad: Any = 0.0) -> Callable[..., Outcome]:
    """Return a `reduce` that always gives these scores."""
    return lambda _sample, _outputs, _parameters: Outcome.evaluated({"good": good, "bad": bad})


class Model:
    """A runner that remembers its rows."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.entered = threading.Event()
        self.open = threading.Event()
        self.open.set()

    def __call__(self, found: Row) -> RowResult:
        """Answer with the text's length."""
        self.entered.set()
        assert self.open.wait(30)
        if found.text == "fail":
            raise ValueError("zq9: text of the caller")
        self.ran.append(found.text)
        return RowResult({"sentence_embedding": np.array([len(found.text)])}, 1.0, 2.0)


class Bench:
    """A guard over made-up detectors."""

    def __init__(
        self, detectors: Sequence[Fake], model: Model, max_sentences: int = 100, **policy: Any
    ) -> None:
        registry = RealRegistry()
        for detector in detectors:
            registry.detectors[detector.spec.id] = detector
        self.model = model
        self.scheduler = Scheduler({"embedding": model}, 1, 100)
        self.rules = {
            d.spec.id: Rule(d.spec, Knobs(), {"good": Cut(0.5, calibrated=True)}) for d in detectors
        }
        self.guard = Guard(
            {"p": Policy("p", "1", "0" * 64, self.rules, **policy)},
            registry,
            self.scheduler,
            windowers={},
            languages={},
            max_sentences=max_sentences,
        )

    def check(self, answer: str = ANSWER, **options: Any) -> Verdict:
        """Judge an answer."""
        return self.guard.check(Sample(answer), **options)


@pytest.fixture
def bench() -> Iterator[Callable[..., Bench]]:
    """Make guards whose workers end with the test."""
    with ExitStack() as stack:

        def make(*detectors: Fake, **options: Any) -> Bench:
            made = Bench(detectors, Model(), **options)
            stack.callback(made.scheduler.close)
            stack.callback(made.model.open.set)
            return made

        yield make


def test_a_row_that_several_detectors_need_runs_once(bench: Callable[..., Bench]) -> None:
    """And each gets its outputs in the order of its own rows."""
    seen: dict[str, list[float]] = {}

    def note(name: str) -> Callable[..., Outcome]:
        def reduce(_: SegmentedSample, outputs: Sequence[RowOutput], __: Knobs) -> Outcome:
            seen[name] = [float(out["sentence_embedding"][0]) for out in outputs]
            return Outcome.evaluated({"good": 1.0, "bad": 0.0})

        return reduce

    made = bench(
        Fake("one", rows("a", "bb", "a"), note("one")), Fake("two", rows("bb", "ccc"), note("two"))
    )
    made.check()
    assert made.model.ran == ["a", "bb", "ccc"]
    assert seen == {"one": [1.0, 2.0, 1.0], "two": [2.0, 3.0]}


def test_a_detector_without_rows_is_reduced_without_waiting(bench: Callable[..., Bench]) -> None:
    """While another one's rows are held up."""
    pattern = Fake("pattern", rows("never"), scores(0.9), cost="pattern")
    made = bench(Fake("model", rows("slow"), scores()), pattern)
    made.model.open.clear()
    verdict = made.check(deadline_ms=1)
    assert verdict.detectors["pattern"].metrics["good"].score == 0.9
    assert verdict.detectors["model"].state is State.NOT_EVALUATED
    assert verdict.status == "partial"
    made.model.open.set()
    assert made.check().status == "complete"
    assert "never" not in made.model.ran


def test_the_deadline_counts_from_the_start_of_the_check(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What segmentation takes is part of it, and of the total."""
    made = bench(Fake("model", rows("late"), scores()))
    behind_s = [100.0]
    clock = SimpleNamespace(
        thread_time=time.thread_time,
        monotonic=lambda: time.monotonic() - behind_s[0],
        perf_counter=lambda: time.perf_counter() - behind_s[0],
    )
    monkeypatch.setattr(module, "time", clock)
    limit = made.guard._limit_sentences

    def slow(sample: SegmentedSample) -> None:
        behind_s[0] = 0.0  # segmentation took 100 seconds
        limit(sample)

    monkeypatch.setattr(made.guard, "_limit_sentences", slow)
    verdict = made.check(deadline_ms=50_000)
    assert verdict.detectors["model"].state is State.NOT_EVALUATED
    assert verdict.timings.total >= 100_000
    assert made.model.ran == []


@pytest.mark.parametrize("budget", [None, float("inf")])
def test_without_a_deadline_every_row_is_awaited(
    budget: float | None, bench: Callable[..., Bench]
) -> None:
    """Infinity also overrides the policy's own deadline."""
    made = bench(Fake("model", rows("a"), scores()), deadline_ms=None if budget is None else 1)
    assert made.check(deadline_ms=budget).status == "complete"


def raises(error: Exception) -> Callable[..., Any]:
    """Return a function that raises."""

    def fail(*_: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    ("encode", "reduce", "reason"),
    [
        (raises(KeyError("zq9")), scores(), "KeyError"),
        (rows("a"), raises(ZeroDivisionError("zq9")), "ZeroDivisionError"),
        (rows("a", "fail"), scores(), "row_failed"),
        (rows("a"), scores(good=float("nan")), "score_out_of_range"),
        (rows("a"), scores(good=1.1), "score_out_of_range"),
        (rows("a"), scores(bad=-0.1), "score_out_of_range"),
        (rows("a"), scores(good="high"), "TypeError"),
        (rows("a"), lambda *_: Outcome.evaluated({"good": 1.0}), "missing_metric"),
        (rows("a"), lambda *_: Outcome.evaluated({}), "missing_metric"),
        (
            rows("a"),
            lambda *_: Outcome.evaluated({"good": 1.0, "bad": 0.0, "else": 0.0}),
            "unknown_metric",
        ),
        (rows("a"), lambda *_: None, "AttributeError"),
    ],
)
def test_a_fault_is_an_error_of_one_detector(
    encode: Any,
    reduce: Any,
    reason: str,
    bench: Callable[..., Bench],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Never a verdict and never the end of the others; the log says where, not what."""
    made = bench(Fake("broken", encode, reduce), Fake("fine", rows("a"), scores(0.7)))
    verdict = made.check()
    broken = verdict.detectors["broken"]
    assert (broken.state, broken.reason, broken.metrics) == (State.ERROR, reason, {})
    assert broken.flagged  # on_error: flag
    assert verdict.detectors["fine"].metrics["good"].score == 0.7
    assert verdict.status == "complete"
    assert "zq9" not in caplog.text


ABSTENTION = "I could not find this in the documents."


@pytest.mark.parametrize(
    ("answer", "abstains"),
    [
        (ABSTENTION, True),
        (f"{ABSTENTION} The pool opens at seven in the morning, and dogs are allowed.", False),
        (ANSWER, False),
    ],
)
def test_a_whole_abstention_has_no_claims_to_judge(
    answer: str, abstains: bool, bench: Callable[..., Bench]
) -> None:
    """Its rows are not even run; an abstention followed by claims is scored."""
    claims = Fake("claims", rows("claim"), scores(0.0), skip_on_abstention=True)
    always = Fake("always", rows("always"), scores(0.9))
    made = bench(claims, always)
    verdict = made.check(answer)
    assert verdict.detectors["always"].state is State.EVALUATED
    judged = verdict.detectors["claims"]
    if abstains:
        assert (judged.state, judged.reason) == (State.NOT_APPLICABLE, "abstention")
        assert (verdict.decision, made.model.ran) == ("pass", ["always"])
    else:
        assert (judged.state, verdict.decision) == (State.EVALUATED, "flag")


def reads_level(_: SegmentedSample, __: Sequence[RowOutput], parameters: Knobs) -> Outcome:
    """Score what the parameters say."""
    return Outcome.evaluated({"good": parameters.level, "bad": 0.0})


def test_an_override_changes_one_request_only(bench: Callable[..., Bench]) -> None:
    """Thresholds and parameters; the verdict then is not calibrated."""
    made = bench(Fake("risk", rows("a"), reads_level), allow_overrides=True)
    first = made.check()
    changed = made.check(overrides={"risk": Override({"good": 0.9}, {"level": 0.8})})
    assert changed.detectors["risk"].metrics["good"].threshold == 0.9
    assert changed.detectors["risk"].metrics["good"].score == 0.8
    assert (changed.decision, changed.calibrated) == ("flag", False)
    for verdict in (first, made.check()):
        assert verdict.detectors["risk"].metrics["good"].threshold == 0.5
        assert (verdict.decision, verdict.calibrated) == ("pass", True)


def test_a_closed_policy_takes_only_what_belongs_to_the_sample(
    bench: Callable[..., Bench],
) -> None:
    """Request parameters are free; everything else is refused by name of the detector."""
    made = bench(Fake("risk", rows("a"), reads_level))
    assert made.check(overrides={"risk": Override(parameters={"note": "x"})}).decision == "pass"
    assert made.check(overrides={"risk": Override()}).decision == "pass"
    for refused in (
        Override(thresholds={"good": 0.1}),
        Override(parameters={"level": 0.1}),
        Override(parameters={"note": "x", "level": 0.1}),
        Override(parameters={"unknown": 1}),
    ):
        with pytest.raises(OverrideRefused, match=r"risk: .*lets requests set note"):
            made.check(overrides={"risk": refused})


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (Override({"zq9": 0.5}), "detectors.risk.thresholds: expected one of good, bad"),
        (Override({"good": 1.5}), r"thresholds: expected a number in \[0, 1\]"),
        (Override({"good": float("nan")}), r"thresholds: expected a number in \[0, 1\]"),
        (Override({}, {"zq9": 1}), "risk.parameters: Extra inputs"),
        (Override({}, {"level": "zq9"}), r"parameters\.level: Input should be a valid number"),
    ],
)
def test_an_override_that_does_not_fit_is_refused_without_quoting_it(
    override: Override, message: str, bench: Callable[..., Bench]
) -> None:
    """The message has our names and what was expected."""
    made = bench(Fake("risk", rows("a"), reads_level), allow_overrides=True)
    with pytest.raises(InputError, match=message) as caught:
        made.check(overrides={"risk": override})
    assert "zq9" not in str(caught.value)
    assert made.model.ran == []


class Quoting(Knobs):
    """Parameters whose validators quote what they found, as is right for a file."""

    @field_validator("note", "level")
    @classmethod
    def _never(cls, value: Any) -> Any:
        if value not in (0.5, None):
            raise ValueError(f"found {value}; expected something else")
        return value


def test_a_detectors_own_words_reach_a_caller_only_about_request_parameters(
    bench: Callable[..., Bench],
) -> None:
    """Whoever writes other validators need not know that a request could read them."""
    quoting = Fake("risk", rows("a"), scores())
    quoting.parameters = Quoting
    made = bench(quoting, allow_overrides=True)
    for name, value, message in (
        ("note", "x", "note: found x; expected something else"),
        ("level", 0.7, "level: does not fit; expected a value that the documentation lists"),
    ):
        with pytest.raises(InputError) as caught:
            made.check(overrides={"risk": Override(parameters={name: value})})
        assert str(caught.value) == f"detectors.risk.parameters.{message}"


@pytest.mark.parametrize("name", ["zq9", "", "P"])
def test_an_unknown_policy_is_refused_with_the_known_ones(
    name: str, bench: Callable[..., Bench]
) -> None:
    """An empty name is a mistake of the caller, not the default."""
    with pytest.raises(UnknownPolicy, match="expected one of p") as caught:
        bench(Fake("risk", rows("a"), scores())).check(policy=name)
    assert "zq9" not in str(caught.value)


@pytest.mark.parametrize("name", ["zq9", "risk "])
def test_an_override_of_what_does_not_run_is_refused(
    name: str, bench: Callable[..., Bench]
) -> None:
    """It would otherwise look as if it had been judged."""
    made = bench(Fake("risk", rows("a"), scores()), allow_overrides=True)
    with pytest.raises(InputError, match=r"^detectors: .*does not run it; expected .*risk"):
        made.check(overrides={name: Override()})


def test_more_sentences_than_allowed_are_refused_before_any_row(
    bench: Callable[..., Bench],
) -> None:
    """Answer and passages together; the message has both numbers."""
    made = bench(Fake("risk", rows("a"), scores()), max_sentences=3)
    long = "The pool opens at seven in the morning. " * 2
    assert made.guard.check(Sample(long)).decision == "pass"
    with pytest.raises(LimitExceeded, match=r"contexts: .*4 sentences; expected at most 3"):
        made.guard.check(Sample(long, contexts=(Passage(long),)))
    assert made.model.ran == ["a"]


def test_a_cancelled_check_ends_and_runs_no_further_row(bench: Callable[..., Bench]) -> None:
    """Its thread is free at once, although the model is still busy."""
    made = bench(Fake("risk", rows("first", "second", "third"), scores()))
    made.model.open.clear()
    cancellation = Cancellation()
    ended: list[BaseException] = []

    def judge() -> None:
        try:
            made.check(cancellation=cancellation)
        except Cancelled as error:
            ended.append(error)

    judging = threading.Thread(target=judge)
    judging.start()
    assert made.model.entered.wait(30)
    cancellation.cancel()
    until(lambda: made.scheduler.depth() == 0)  # it may still be taking its ticket
    made.model.open.set()
    judging.join(30)
    assert len(ended) == 1
    assert made.model.ran in (["first"], [])


def test_a_check_cancelled_before_it_begins_runs_nothing(bench: Callable[..., Bench]) -> None:
    """The caller may leave while the request waits for a thread."""
    made = bench(Fake("risk", rows("a", "b"), scores()))
    made.model.open.clear()
    made.scheduler.submit([row("other")])
    assert made.model.entered.wait(30)
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(Cancelled):
        made.check(cancellation=cancellation)
    made.model.open.set()
    made.scheduler.close(30)
    assert made.model.ran == ["other"]


def test_a_check_cancelled_while_it_waits_for_its_turn_ends_at_once(
    bench: Callable[..., Bench],
) -> None:
    """Although those who compute go on."""
    made = bench(Fake("risk", rows("a"), scores()))
    made.guard.turns = Turns(1, patience_s=30)
    cancellation = Cancellation()
    with ThreadPoolExecutor(1) as pool, made.guard.turns.turn(QueuePlace(0.0), None):
        judging = pool.submit(made.check, cancellation=cancellation)
        until(lambda: made.guard.turns.waiting() == 1)
        cancellation.cancel()
        with pytest.raises(Cancelled):
            judging.result(30)
    assert made.model.ran == []


def test_at_its_deadline_a_check_that_got_no_turn_says_what_it_can(
    bench: Callable[..., Bench],
) -> None:
    """Others may compute for long; what needs no model is judged still, and waiting is queueing."""
    pattern = Fake("pattern", rows(), scores(0.9), cost="pattern")
    made = bench(Fake("model", rows("a"), scores()), pattern)
    made.guard.turns = Turns(1, patience_s=30)
    with made.guard.turns.turn(QueuePlace(0.0), None):
        verdict = made.check(deadline_ms=100)
    assert verdict.detectors["pattern"].metrics["good"].score == 0.9
    assert verdict.detectors["model"].state is State.NOT_EVALUATED
    assert verdict.status == "partial"
    assert 1 < verdict.timings.queue <= verdict.timings.total


def test_a_check_cancelled_on_its_way_back_ends_at_once(bench: Callable[..., Bench]) -> None:
    """Its rows are dropped; it needs no turn to say that its caller left."""
    made = bench(Fake("risk", rows("a"), scores()))
    made.guard.turns = Turns(1, patience_s=30)
    made.model.open.clear()
    cancellation = Cancellation()
    with ThreadPoolExecutor(1) as pool:
        judging = pool.submit(made.check, cancellation=cancellation)
        assert made.model.entered.wait(30)
        until(lambda: not made.guard.turns._held)
        with made.guard.turns.turn(QueuePlace(0.0), None):
            cancellation.cancel()
            with pytest.raises(Cancelled):
                judging.result(30)


def test_who_waits_for_a_turn_when_the_service_ends_computes_nothing(
    bench: Callable[..., Bench],
) -> None:
    """All would at once, and who waits for them has a second."""
    encoded: list[str] = []

    def note(sample: SegmentedSample, _parameters: Knobs) -> Sequence[Row]:
        encoded.append(sample.answer)
        return ()

    made = bench(Fake("risk", note, scores()))
    made.guard.turns = Turns(1, patience_s=30)
    with ThreadPoolExecutor(1) as pool, made.guard.turns.turn(QueuePlace(0.0), None):
        judging = pool.submit(made.check)
        until(lambda: made.guard.turns.waiting() == 1)
        made.guard.turns.close()
        with pytest.raises(NotReady, match="shutting down"):
            judging.result(30)
    assert encoded == []


def test_while_models_run_other_checks_compute(bench: Callable[..., Bench]) -> None:
    """A check that waits for its rows leaves its turn to those who can go on."""
    computed: list[str] = []

    def note(sample: SegmentedSample, *_: Any) -> Outcome:
        computed.append(sample.answer)
        return Outcome.evaluated({"good": 1.0, "bad": 0.0})

    pattern = Fake("pattern", rows(), note, cost="pattern")
    made = bench(Fake("model", rows("slow"), scores()), pattern)
    made.guard.turns = Turns(1, patience_s=30)
    made.model.open.clear()
    with ThreadPoolExecutor(3) as pool:
        judging = [pool.submit(made.check, answer) for answer in ("One.", "Two.", "Three.")]
        until(lambda: len(computed) == 3)
        assert not any(future.done() for future in judging)
        made.model.open.set()
        assert {future.result(30).status for future in judging} == {"complete"}


def test_a_check_leaves_nothing_to_the_garbage_collector(bench: Callable[..., Bench]) -> None:
    """Or every row's outputs stay until it comes, and all threads stand still while it looks.

    Rows that fail are another matter: a traceback holds the frames that hold it.
    """
    model = Fake("model", rows("a", "bb"), scores())
    made = bench(model, Fake("other", rows("a", "ccc"), scores()))
    made.check()
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            made.check(cancellation=Cancellation())
            made.check(cancellation=Cancellation(owner=object()))
        assert made.check(deadline_ms=0).status == "partial"
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = {type(found).__name__ for found in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left.isdisjoint({"Job", "Run", "Row", "Waiter", "Cancellation", "Ticket", "ndarray"})


def test_a_closed_guard_judges_nothing(bench: Callable[..., Bench]) -> None:
    """No verdict after the workers have gone."""
    made = bench(Fake("risk", rows("a"), scores()))
    made.scheduler.close()
    with pytest.raises(NotReady):
        made.check()


def test_findings_of_all_detectors_are_redacted(bench: Callable[..., Bench]) -> None:
    """Only spans with a replacement."""

    def finds(*spans: Span) -> Callable[..., Outcome]:
        return lambda *_: Outcome.evaluated(
            {"good": 0.0, "bad": 0.0}, spans, Coverage((6, len(ANSWER)))
        )

    made = bench(
        Fake("one", rows(), finds(Span(0, 6, "who", replacement="[WHO]"), Span(7, 10, "kept"))),
        Fake("two", rows(), finds(Span(20, 29, "time", replacement="[TIME]"))),
    )
    verdict = made.check()
    assert verdict.redacted_answer == "[WHO] may stay for [TIME]."
    assert verdict.detectors["one"].coverage == Coverage((6, len(ANSWER)))


def test_times_are_of_this_check(bench: Callable[..., Bench]) -> None:
    """Rows' times are summed, each distinct row once; no detector is later than the end."""
    verdict = bench(Fake("one", rows("a", "b"), scores()), Fake("two", rows("b"), scores())).check()
    assert (verdict.timings.tokenize, verdict.timings.inference) == (2.0, 4.0)
    assert verdict.timings.queue >= 0
    assert 0 <= max(d.latency_ms for d in verdict.detectors.values()) <= verdict.timings.total


def test_the_mode_reaches_the_policy(bench: Callable[..., Bench]) -> None:
    """Shadow reports the decision and allows."""
    made = bench(Fake("risk", rows("a"), scores(0.0)))
    assert (made.check().action, made.check(mode="shadow").action) == (Action.FLAG, Action.ALLOW)
    assert made.check(mode="shadow").decision == "flag"


def test_published_defaults_of_the_real_registry_are_in_range() -> None:
    """Every shipped threshold is one its metric can take."""
    for detector in REGISTRY:
        defaults: Mapping[str, float] = detector.spec.default_thresholds or {}
        for key, value in defaults.items():
            assert detector.spec.metric(key).holds(value)


def test_a_check_that_waits_when_the_service_ends_is_no_verdict(
    bench: Callable[..., Bench],
) -> None:
    """Its rows were dropped: neither "too late" nor an error of a detector."""
    made = bench(Fake("risk", rows("a"), scores()))
    made.model.open.clear()
    ended: list[BaseException] = []

    def judge() -> None:
        try:
            made.check()
        except NotReady as error:
            ended.append(error)

    judging = threading.Thread(target=judge)
    judging.start()
    assert made.model.entered.wait(30)
    closing = threading.Thread(target=made.scheduler.close)
    closing.start()
    judging.join(30)
    assert len(ended) == 1
    made.model.open.set()
    closing.join(30)


def test_a_deadline_counts_from_when_the_request_arrived(bench: Callable[..., Bench]) -> None:
    """Waiting for a thread is part of it; what is too late is not even encoded."""
    encoded: list[str] = []

    def encode(_sample: SegmentedSample, _parameters: Knobs) -> Sequence[Row]:
        encoded.append("encoded")
        return [row("late")]

    pattern = Fake("pattern", rows("never"), scores(0.9), cost="pattern")
    made = bench(Fake("model", encode, scores()), pattern)
    verdict = made.check(deadline_ms=50, arrived=time.monotonic() - 1)
    assert verdict.detectors["model"].reason == "deadline"
    assert verdict.detectors["pattern"].state is State.EVALUATED
    assert verdict.timings.total >= 1_000
    assert (encoded, made.model.ran) == ([], [])


def test_a_check_that_others_make_impossible_is_refused_before_it_is_read(
    bench: Callable[..., Bench],
) -> None:
    """Estimated by its size from the checks before it; alone, it is let in."""
    made = bench(Fake("risk", rows("a"), scores()), deadline_ms=500)
    made.scheduler.costs.learn("check", 100, 400.0)
    now = 1_000.0
    made.scheduler._clock = lambda: now
    made.guard.expect(100, None, None, now, "first")
    with pytest.raises(Overloaded) as caught:
        made.guard.expect(100, None, None, now, "second")
    assert caught.value.retry_after_s == pytest.approx(0.4 + 0.4 - 0.5)
    made.guard.expect(100, None, 100, now, "would not fit on an idle service")
    made.guard.expect(100, None, float("inf"), now, "without a deadline")
    made.guard.expect(100, "unknown", None, now, "refused later")


def test_checks_teach_what_checks_cost(bench: Callable[..., Bench]) -> None:
    """Rows and everything around them, by the sample's size."""
    made = bench(Fake("risk", rows("a"), scores()))
    made.scheduler.costs.learn("embedding", 2, 300.0)
    made.check()
    assert 300.0 <= made.scheduler.costs.estimate("check", len(ANSWER)) < 1_300.0


def test_what_the_time_ended_does_not_teach_that_checks_are_cheap(
    bench: Callable[..., Bench],
) -> None:
    """A huge text that was cut off after 0.2 s would have taken more."""
    made = bench(Fake("risk", rows("a"), scores()))
    for _ in range(3):
        made.scheduler.costs.learn("check", len(ANSWER), 900.0)
        made.check(deadline_ms=0.001)
    assert made.scheduler.costs.estimate("check", len(ANSWER)) == pytest.approx(900.0)


def test_of_a_late_huge_text_nothing_is_looked_at(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ordinary one has a little time even then, so that patterns are searched."""
    made = bench(Fake("pattern", rows(), scores(0.9), cost="pattern"))
    for _ in range(50):
        made.scheduler.costs.learn("text", 100, 10.0)
    with monkeypatch.context() as patched:
        patched.setattr(SegmentedSample, "sentence_count", failing)
        huge = made.guard.check(Sample("Words. " * 1_000), deadline_ms=0.001)
    assert huge.detectors["pattern"].reason == "deadline"
    assert made.check(deadline_ms=0.001).detectors["pattern"].state is State.EVALUATED


def failing(*_arguments: Any) -> Any:
    """Fail: nobody may call this."""
    raise AssertionError("called")


def test_rows_have_the_place_of_their_check(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A huge answer's single row does not go before those of ordinary ones."""
    made, places = bench(Fake("risk", rows("a"), scores())), []
    submit = made.scheduler.submit

    def noting(*given: Any, not_before: QueuePlace, **more: Any) -> Any:
        places.append(not_before)
        return submit(*given, not_before=not_before, **more)

    monkeypatch.setattr(made.scheduler, "submit", noting)
    for ms, size in ((10.0, 100), (5_000.0, 50_000)):
        for _ in range(50):
            made.scheduler.costs.learn("check", size, ms)
    for answer in ("Words. " * 90, ANSWER):
        made.check(answer, deadline_ms=500.0)
    assert places[0].slack_s > places[1].slack_s
    assert places[0].order > places[1].order


def test_the_items_of_a_batch_do_not_refuse_each_other(bench: Callable[..., Bench]) -> None:
    """Their rows have one owner, however many there are."""
    many = [f"row {n}" for n in range(90)]
    made = bench(Fake("risk", lambda s, _: [row(f"{s.answer} {t}") for t in many], scores()))
    made.model.open.clear()
    batch = object()
    judging = [
        threading.Thread(
            target=made.check, args=(answer,), kwargs={"cancellation": Cancellation(batch)}
        )
        for answer in ("One answer.", "Another answer.")
    ]
    for thread in judging:
        thread.start()
    until(lambda: made.scheduler.depth() == 179)  # all but the one that runs
    with pytest.raises(Overloaded):
        made.check("Somebody else's answer.")
    made.model.open.set()
    for thread in judging:
        thread.join(30)
    assert len(made.model.ran) == 180


def warming(bench: Callable[..., Bench]) -> Bench:
    """Return a guard that knows how to compute passages ahead."""
    made = bench(Fake("risk", rows("a"), scores()))
    made.guard._windowers = {"embedding": Whole()}
    made.guard._warming = (row,)
    return made


class Whole:
    """A model that reads every sentence whole."""

    max_tokens = 100

    def tokens(self, text: str) -> Sequence[TokenSpan]:
        """Return one token."""
        return [TokenSpan(0, len(text), known=True)]


PASSAGES = (Passage("The pool opens at seven. Dogs may stay."), Passage("Dogs may stay here."))


def test_passages_are_computed_ahead_sentence_by_sentence(bench: Callable[..., Bench]) -> None:
    """Each distinct one once, in order; a sentence without a run was known."""
    made = warming(bench)
    assert made.guard.warm((*PASSAGES, *PASSAGES), Cancellation()) == (3, 0, 0)
    assert made.model.ran == ["The pool opens at seven.", "Dogs may stay.", "Dogs may stay here."]


def test_a_sentence_that_fails_is_counted(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks will say what is wrong with it."""
    made = warming(bench)
    monkeypatch.setitem(made.scheduler._runners, "embedding", raises(ValueError("zq9")))
    assert made.guard.warm(PASSAGES, Cancellation()) == (0, 0, 3)


def test_too_many_sentences_are_not_computed_ahead_either(bench: Callable[..., Bench]) -> None:
    """The limit of a check; the field is named."""
    made = warming(bench)
    made.guard._max_sentences = 1
    with pytest.raises(LimitExceeded, match="contexts"):
        made.guard.warm(PASSAGES, Cancellation())


def test_warming_stops_when_its_caller_leaves(bench: Callable[..., Bench]) -> None:
    """What is queued is dropped."""
    made = warming(bench)
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(Cancelled):
        made.guard.warm(PASSAGES, cancellation)


def test_a_model_pack_that_keeps_nothing_warms_nothing(bench: Callable[..., Bench]) -> None:
    """No row is run whose outputs nobody would find again."""
    made = bench(Fake("risk", rows("a"), scores()))
    assert made.guard.warm(PASSAGES, Cancellation()) == (0, 0, 0)


@pytest.mark.parametrize("answer", ["a@a." * 25_000, "One. " * 3_000])
def test_a_sample_whose_time_is_over_is_told_so_and_no_detector_fails(
    answer: str, bench: Callable[..., Bench]
) -> None:
    """What was not looked at has no verdict: the policy says what follows."""
    made = bench(Fake("model", rows("late"), scores()))
    made.guard._cpu_s = 0.0
    verdict = made.guard.check(Sample(answer))
    found = verdict.detectors["model"]
    assert (found.state, found.reason) == (State.NOT_EVALUATED, "deadline")
    assert verdict.status == "partial"
    assert made.model.ran == []


class OneIsSlow(Model):
    """A runner that ends the row `slow` when it is told to."""

    def __call__(self, found: Row) -> RowResult:
        """Answer as the others do."""
        if found.text == "slow":
            return super().__call__(found)
        self.ran.append(found.text)
        return RowResult({"sentence_embedding": np.array([1.0])}, 1.0, 2.0)


def test_model_rows_end_without_a_deadline_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """When those that ran have taken so many times what a half of the check may; the rest waits
    for nobody, and detectors that had their rows keep their verdict."""
    monkeypatch.setattr(module, "ROWS_LOOK_S", 0.01)
    monkeypatch.setattr(guard_module, "ROWS_TIMES", 1e-4)
    model = OneIsSlow()
    model.open.clear()
    made = Bench([Fake("quick", rows("a"), scores()), Fake("slow", rows("slow"), scores())], model)
    made.guard._cpu_s = 20.0
    try:
        verdict = made.check(deadline_ms=math.inf)
    finally:
        model.open.set()
        made.scheduler.close()
    assert verdict.detectors["quick"].state is State.EVALUATED
    found = verdict.detectors["slow"]
    assert (found.state, found.reason) == (State.NOT_EVALUATED, "deadline")
    assert verdict.status == "partial"
