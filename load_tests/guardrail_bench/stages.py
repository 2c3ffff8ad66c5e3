"""Measures the processor time of one check part by part, one after another on one thread.

No HTTP and no queue: `guardrail bench latency` measures those. Model rows run on the thread that
asks for them, so that parts do not overlap and their sum can be compared with the whole.
"""

from __future__ import annotations

import json
import math
import time
import timeit
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, get_args

import onnxruntime as ort
from pydantic import BaseModel, ConfigDict, Field
from rich.table import Table

from guardrail_bench.components import Planner
from guardrail_bench.output import busy_warning, markdown_table, replace_part, shown, write_json
from guardrail_bench.samples import SCENARIOS, Passages, SampleSource, read_texts
from guardrail_bench.server import busy_share, machine
from guardrail_service.commands.console import out
from guardrail_service.detectors import relevancy
from guardrail_service.detectors.registry import REGISTRY, AnyDetector, CostClass, Registry
from guardrail_service.guard import check as check_module
from guardrail_service.guard import guard as guard_module
from guardrail_service.guard.guard import Guard
from guardrail_service.inference.models.session import Session, Tokenizer
from guardrail_service.inference.queue.backlog import RowDone
from guardrail_service.inference.queue.cost import PATIENCE_S, QueuePlace
from guardrail_service.inference.queue.scheduler import Scheduler, Ticket
from guardrail_service.server.collecting import seldom_collecting
from guardrail_service.server.runtime import READS, batches
from guardrail_service.server.translate import (
    decode,
    parse_check,
    to_overrides,
    to_reply,
    to_sample,
)
from guardrail_service.settings import Limits, Settings
from guardrail_service.text import sample as segmented
from guardrail_service.text.budget import Budget, in_time, spending
from guardrail_service.types import Role, Row

P = ParamSpec("P")
T = TypeVar("T")
WARM_UP = 2
PART = "bench stages"
_PATCHED: tuple[tuple[ModuleType | type, str, Part], ...] = (
    (segmented, "split_sentences", "sentences"),
    (segmented, "merge_short", "sentences"),
    (segmented, "windows", "sentences"),
    (segmented, "identify", "language"),
    (relevancy, "same_language", "language"),
    (Tokenizer, "tokens", "tokens"),
    (Tokenizer, "encoded", "tokens"),
    (Tokenizer, "raw_ids", "tokens"),
    (ort.InferenceSession, "run", "inference"),
    (check_module, "abstains", "rules"),
    (guard_module, "decide", "decide"),
    (guard_module, "redact", "decide"),
)
"""Functions that the check calls by these names; while it is measured, a clock is around them."""
_REDUCED: Mapping[CostClass, Part] = {"pattern": "patterns", "text": "rules", "model": "reduce"}


class StagesPlan(NamedTuple):
    """The plan of a measurement.

    Attributes:
        scenario: Name of a scenario.
        samples: How many samples, each cold and then, with another answer, warm.
        seed: Another seed gives other samples.
        texts: What samples are made of.
        config: Guardrail JSONs; none: the shipped ones.
        pack: Model pack.
    """

    scenario: str
    samples: int
    seed: int
    texts: Path
    config: tuple[Path, ...]
    pack: str | None

    def steps(self) -> int:
        """Return how many samples there are to go through, and the start."""
        return 1 + WARM_UP + self.samples


class Stopwatch:
    """Processor time of one thread by part; what is spent in a part is not its caller's."""

    def __init__(self) -> None:
        self.seconds: defaultdict[Part, float] = defaultdict(float)
        self._inside: list[float] = []

    @staticmethod
    def now() -> float:
        """Return seconds; what else the machine does is not in them."""
        return time.thread_time()

    @contextmanager
    def timing(self, part: Part) -> Iterator[None]:
        """Count what happens in the block, but for parts of its own."""
        self._inside.append(0.0)
        started = self.now()
        try:
            yield
        finally:
            spent = self.now() - started
            self.seconds[part] += spent - self._inside.pop()
            if self._inside:
                self._inside[-1] += spent

    def around(self, part: Part, function: Callable[P, T]) -> Callable[P, T]:
        """Return the function with a clock around it."""

        @wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            with self.timing(part):
                return function(*args, **kwargs)

        return timed


class _Clocked:
    """A detector with a clock around both halves."""

    def __init__(self, detector: AnyDetector, watch: Stopwatch) -> None:
        self.spec = detector.spec
        self.encode = watch.around("rows", detector.encode)
        self.reduce = watch.around(_REDUCED[detector.spec.cost], detector.reduce)


def _clocked_detectors(names: Iterable[str], watch: Stopwatch) -> Registry:
    found = Registry()
    for name in names:
        found.detectors[name] = _Clocked(REGISTRY[name], watch)  # type: ignore[assignment]
    return found


class Inline(Scheduler):
    """Runs rows at once on the thread that submits them; those that read others come last.

    Rows share calls as they would if nobody else asked for any.
    """

    def __init__(self, sessions: Mapping[Role, Session], watch: Stopwatch) -> None:
        super().__init__({}, workers=0, max_queued_rows=0)
        self._sessions = sessions
        self._together = batches(sessions, Settings().batch_tokens)
        self._watch = watch

    def submit(
        self,
        rows: Sequence[Row],
        deadline: float | None = None,
        owner: object | None = None,
        patience_s: float = PATIENCE_S,
        not_before: QueuePlace | None = None,
    ) -> Ticket:
        """Return rows that are done.

        Raises:
            RowFailed: If a row fails; times of a check that went wrong say nothing.
        """
        futures = {row: Future[RowDone]() for row in rows}
        alike: defaultdict[tuple[Role, tuple[str, ...]], list[Row]] = defaultdict(list)
        for row in sorted(futures, key=lambda row: row.role in READS):
            alike[row.role, row.outputs].append(row)
        for (role, _), own in alike.items():
            with self._watch.timing("memory"):
                batch = self._together.get(role)
                found = batch.run(own) if batch else map(self._sessions[role].run, own)
                for row, done in zip(own, found, strict=True):
                    futures[row].set_result(RowDone(done.outputs, 0.0, *done[1:]))
        return Ticket([futures[row] for row in rows])


class StageBench:
    """A check as the service does it, from the body's bytes to the reply's."""

    def __init__(self, planner: Planner) -> None:
        self.watch = Stopwatch()
        rules = planner.policy.rules
        for name in rules:
            REGISTRY[name].load()
        self._guard = Guard(
            {planner.policy.ref.name: planner.policy},
            _clocked_detectors(rules, self.watch),
            Inline(planner.sessions, self.watch),
            planner.windowers,
            planner.languages,
            Limits().sentences,
        )

    def judge(self, body: bytes) -> tuple[str, dict[Part, float], float]:
        """Return the reply, milliseconds by part, and those of the whole check."""
        self.watch.seconds.clear()
        started = self.watch.now()
        with self.watch.timing("parse"):
            request = parse_check(decode(body))
            sample, overrides = to_sample(request, Limits()), to_overrides(request)
        verdict = self._guard.check(sample, request.policy, overrides, mode=request.mode)
        with self.watch.timing("reply"):
            reply = to_reply(verdict, request, "bench").model_dump_json()
        total = (self.watch.now() - started) * 1e3
        return reply, {part: s * 1e3 for part, s in self.watch.seconds.items()}, total

    @contextmanager
    def clocked(self) -> Iterator[None]:
        """Put clocks around the functions that the check calls by name, for this block."""
        with ExitStack() as stack:
            for owner, name, part in _PATCHED:
                original = getattr(owner, name)
                if name in vars(owner):
                    stack.callback(setattr, owner, name, original)
                else:  # inherited
                    stack.callback(delattr, owner, name)
                setattr(owner, name, self.watch.around(part, original))
            yield


@contextmanager
def counted_looks() -> Iterator[list[None]]:
    """Yield a list that gets an element for each look of a check at its time."""
    looks: list[None] = []
    original = Budget.is_spent

    def counting(budget: Budget) -> bool:
        looks.append(None)
        return original(budget)

    Budget.is_spent = counting  # type: ignore[method-assign,assignment]
    try:
        yield looks
    finally:
        Budget.is_spent = original  # type: ignore[method-assign]


def look_us(times: int = 20_000) -> float:
    """Return microseconds of a look with a loop of ten steps around it, the dearest kind."""
    with spending(Budget(None, math.inf)):
        looking = timeit.timeit(
            lambda: list(in_time(range(10))), timer=time.process_time, number=times
        )
    plain = timeit.timeit(lambda: list(range(10)), timer=time.process_time, number=times)
    return max(0.0, looking - plain) / times * 1e6


def run(plan: StagesPlan, note: Callable[[str], None]) -> StagesReport:
    """Return the parts of each sample's checks, cold and warm.

    Raises:
        ServiceError: If texts, configuration or pack cannot be read.
    """
    busy = busy_share()
    started = datetime.now(UTC).isoformat(timespec="seconds")
    note("loading")
    planner = Planner(plan.config, plan.pack)
    source = SampleSource(read_texts(plan.texts), SCENARIOS[plan.scenario], "cold", plan.seed)
    bench = StageBench(planner)
    found: list[StageTimes] = []
    with bench.clocked(), seldom_collecting():
        for number in range(WARM_UP + plan.samples):
            note(f"sample {number + 1 - WARM_UP}" if number >= WARM_UP else "warming up")
            for variant, passages in enumerate(("cold", "warm")):
                body = json.dumps(source.sample(number, variant)).encode()
                with counted_looks() as looks:
                    _, parts, total = bench.judge(body)
                if number >= WARM_UP:
                    times = {"parts_ms": parts, "total_ms": total, "looks": len(looks)}
                    found.append(StageTimes(passages=passages, **times))
    return StagesReport(
        started=started,
        machine=machine(),
        busy_before=busy,
        pack=f"{planner.pack.name} {planner.pack.manifest.version}",
        policy=planner.policy.ref.name,
        scenario=plan.scenario,
        seed=plan.seed,
        look_us=look_us(),
        judged=tuple(found),
    )


Part = Literal[
    "parse",
    "sentences",
    "language",
    "rows",
    "tokens",
    "inference",
    "memory",
    "patterns",
    "rules",
    "reduce",
    "decide",
    "reply",
]
TITLES: Mapping[Part, str] = {
    "parse": "parse and validate the body",
    "sentences": "sentences and windows",
    "language": "language identification",
    "rows": "claims, evidence and rows of the model detectors",
    "tokens": "tokens, of windows and of rows",
    "inference": "model inference",
    "memory": "memory of outputs, choice of evidence",
    "patterns": "patterns: personal data, secrets, encoded text",
    "rules": "rules without model or patterns",
    "reduce": "scores and spans of the model detectors",
    "decide": "thresholds, decision, redaction",
    "reply": "reply and its JSON",
}
LOOKS = "in the whole: looks at the time, which end huge texts"
HEADINGS = ("part", "cold ms", "of the whole", "warm ms", "of the whole")


class StageTimes(BaseModel):
    """One check: processor milliseconds of its parts, without those that did not occur."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    passages: Passages
    parts_ms: dict[Part, float] = Field(description="Time in a part, without that in others.")
    total_ms: float
    looks: int = Field(0, description="How often the check looked whether its time is over.")

    @property
    def sum_ms(self) -> float:
        """Return the time of all parts."""
        return sum(self.parts_ms.values())


class StagesReport(BaseModel):
    """The parts of some checks, in one process without HTTP and queue."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal["1"] = "1"
    started: str
    machine: dict[str, Any]
    busy_before: float
    pack: str
    policy: str
    scenario: str
    seed: int
    look_us: float = Field(0.0, description="Microseconds of one such look, at most.")
    judged: tuple[StageTimes, ...] = Field(min_length=2)

    def medians(self, passages: Passages) -> dict[str, float]:
        """Return median milliseconds of each part by title, of their sum, rest and whole."""
        chosen = [one for one in self.judged if one.passages == passages]
        return {
            **{TITLES[p]: median(one.parts_ms.get(p, 0.0) for one in chosen) for p in TITLES},
            "sum of the parts": median(one.sum_ms for one in chosen),
            "not accounted for": median(one.total_ms - one.sum_ms for one in chosen),
            "the whole check": median(one.total_ms for one in chosen),
            LOOKS: median(one.looks for one in chosen) * self.look_us / 1e3,
        }


BUDGETS_SHARE = 0.01
"""Share of an ordinary check that the looks at its time may take."""


def budgets_line(report: StagesReport) -> str:
    """Return what the looks at its time cost an ordinary check, and whether that is too much."""
    found = {name: report.medians(name) for name in get_args(Passages)}
    shares = [medians[LOOKS] / medians["the whole check"] for medians in found.values()]
    costs = " and ".join(
        f"{medians[LOOKS]:.2f} of {medians['the whole check']:.0f} ms ({name} passages)"
        for name, medians in found.items()
    )
    met = shown(max(shares) <= BUDGETS_SHARE)
    allowed = f"{max(shares):.1%}, where {BUDGETS_SHARE:.0%} is allowed: {met}"
    title = SCENARIOS[report.scenario].title
    return f"The budgets that end huge texts take {costs} of one check, {title}: {allowed}."


def stages_rows(report: StagesReport) -> list[tuple[str, ...]]:
    """Return a row per part: its median, cold and warm, and its share of the whole."""
    found = [report.medians(passages) for passages in get_args(Passages)]
    whole = [medians["the whole check"] for medians in found]
    return [
        (
            title,
            *(
                cell
                for medians, total in zip(found, whole, strict=True)
                for cell in (f"{medians[title]:.2f}", f"{medians[title] / total:.1%}")
            ),
        )
        for title in found[0]
    ]


def stages_markdown(report: StagesReport) -> str:
    """Return the report for a page."""
    machine, scenario = report.machine, SCENARIOS[report.scenario]
    parts = [
        f"Measured {report.started} on {machine['cpu']}, {machine['cores']} cores: "
        f"{len(report.judged) // 2} samples ({scenario.title}), policy {report.policy}, pack "
        f"{report.pack}. Medians of processor time; they need not add up to the median of the sum.",
        markdown_table(HEADINGS, stages_rows(report)),
    ]
    if (busy := busy_warning(report.busy_before)) is not None:
        parts.append(f"**Caution.** {busy}")
    return "\n\n".join(parts)


def publish(report: StagesReport, json_file: Path | None, doc: Path | None) -> None:
    """Write the report as JSON, print its table, rewrite the page's part."""
    write_json(report.model_dump_json(), json_file)
    if str(json_file) != "-":
        table = Table(*HEADINGS, title="one check")
        for row in stages_rows(report):
            table.add_row(*row)
        out.print(table)
    if doc is not None:
        replace_part(doc, PART, stages_markdown(report))
