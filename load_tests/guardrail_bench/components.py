"""Measures parts alone: rows through bare sessions, pattern engines, the delay of a stream.

`python -m guardrail_bench.components` runs the rows of some samples through bare sessions, which
is what the service can at best reach. It is a process of its own, so that cores and memory are
laid out as the service's are; it reads a `BareJob` from standard input and writes a `Bare`.
"""

from __future__ import annotations

import base64
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.table import Table

import guardrail_service.detectors  # noqa: F401 - registers the built-in detectors
from guardrail_bench.latency_results import Bare
from guardrail_bench.samples import SCENARIOS, Passages, SampleSource, read_texts
from guardrail_service.commands.console import settings_from
from guardrail_service.detectors.no_answer.detector import abstains
from guardrail_service.detectors.pii import rules as pii_rules
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.inference.models.session import Session
from guardrail_service.inference.pack import load_pack, resolve
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.policy.file import load_policies
from guardrail_service.resources import packs_dir
from guardrail_service.server.runtime import Runtime, serving_for
from guardrail_service.streaming.guarded import Release, StreamedCheck
from guardrail_service.text import language
from guardrail_service.text.patterns.search import Engine, Pattern, PatternSet
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Passage, Role, Row, Sample


class BareJob(BaseModel):
    """The samples whose rows are to run; the same numbers as the service was sent."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    scenario: str
    passages: Passages
    seed: int
    first: int
    count: int
    texts: Path
    config: tuple[Path, ...] = ()
    pack: str | None = None


class Planner:
    """The rows a policy's detectors ask for, found without running one.

    Args:
        config: Guardrail JSONs; the first one's policy counts. None: the shipped ones.
        pack: Name or folder of a model pack; None: what the environment says.
    """

    def __init__(self, config: tuple[Path, ...], pack: str | None) -> None:
        settings = settings_from(config=config, model_pack=pack)
        loaded = load_pack(resolve(settings.model_pack, packs_dir()))
        policies = load_policies(settings.config_files(), serving_for(loaded))
        language.load()
        self.pack = loaded
        self.sessions: dict[Role, Session] = open_sessions(loaded)
        self.policy = policies[settings.default_policy or next(iter(policies))]
        self.windowers = {role: session.tokenizer for role, session in self.sessions.items()}
        self.languages = {
            role: frozenset(session.file.languages)
            for role, session in self.sessions.items()
            if session.file.languages is not None
        }

    def segmented(self, body: dict[str, Any]) -> SegmentedSample:
        """Return the sample of a `/v1/check` body."""
        contexts = tuple(Passage(text) for text in body["contexts"])
        sample = Sample(body["answer"], body["question"], contexts)
        return SegmentedSample(sample, self.windowers, self.languages)

    def rows(self, body: dict[str, Any]) -> Iterator[Row]:
        """Yield the rows that the guard would queue for a body, with repetitions."""
        sample = self.segmented(body)
        abstained = abstains(sample)
        for rule in self.policy.rules.values():
            if rule.spec.cost == "model" and not (abstained and rule.spec.skip_on_abstention):
                yield from REGISTRY[rule.spec.id].encode(sample, rule.parameters)


def bare_cost(task: BareJob) -> Bare:
    """Return what the rows of a task's samples cost without a service around them.

    A distinct row is run and counted once. Warm passages are run before the measurement, as the
    service has met them, too.
    """
    planner = Planner(task.config, task.pack)
    texts = read_texts(task.texts)
    source = SampleSource(texts, SCENARIOS[task.scenario], task.passages, task.seed)
    seen = set[Row]()
    _run_all(planner.sessions, _new_rows(planner, source.shelf(), seen))
    numbers = range(task.first, task.first + task.count)
    rows = list(_new_rows(planner, map(source.sample, numbers), seen))
    wall, cpu = time.perf_counter(), time.process_time()
    _run_all(planner.sessions, rows)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Bare(samples=task.count, rows=len(rows), cpu_s=cpu, wall_s=wall)


def _run_all(sessions: dict[Role, Session], rows: Iterable[Row]) -> None:
    for row in rows:
        sessions[row.role].run(row)


def _new_rows(planner: Planner, bodies: Iterable[dict[str, Any]], seen: set[Row]) -> Iterator[Row]:
    """Yield the rows of some bodies that are not in `seen`, and put them there."""
    for body in bodies:
        for row in planner.rows(body):
            if row not in seen:
                seen.add(row)
                yield row


PATTERN_CHARS = 4096
"""Characters per text; about one long answer."""
SCANS = 40
NATURAL = (
    "The committee met on 5 March 2024 to review the annual report, which runs to 214 pages. "
    "Revenue rose by 7.4 % to 1,234 million, and the number of employees grew from 8,120 to 8,455. "
    "Several members asked how the new policy would be applied in practice; the chair answered "
    "that guidance would follow in the second quarter. According to the survey, 62 % of the "
    "respondents were satisfied, 21 % were undecided, and the rest gave no answer. The passage "
    "cited in section 4.2 explains why: most cases were closed within thirty days, and appeals "
    "were rare. In contrast, earlier studies (Smith, 2019; Jones, 2021) had found longer delays. "
    "Customers may contact the office during business hours, and a full refund is possible within "
    "fourteen days of delivery. The device weighs 1.2 kg, supports version 3.1 of the protocol, "
    "and works at temperatures between -10 and 45 degrees. Nothing in this agreement limits the "
    "rights that consumers have under national law. "
)
"""Ordinary prose, written for this bench."""


@dataclass(frozen=True, slots=True)
class PatternRow:
    """Cost of one kind of text with one engine.

    Attributes:
        engine: `hyperscan` or `keywords`.
        text: Kind of text.
        us_per_kb: Median microseconds of processor time for 1,024 characters.
        ratio: Against natural text with the same engine.
        matches: How many matches one text has; each costs about a microsecond to locate.
        patterns: Size of the set.
    """

    engine: str
    text: str
    us_per_kb: float
    ratio: float
    matches: int
    patterns: int


def all_patterns() -> tuple[Pattern, ...]:
    """Return the patterns of personal data and of secrets, ids made unique by detector."""
    secrets = import_module("guardrail_service.detectors.secrets.detector").PATTERNS
    return tuple(
        Pattern(f"{detector}:{p.id}", p.regex, p.keywords, p.group, p.ignore_case, p.gate)
        for detector, patterns in (("pii", pii_rules.PATTERNS), ("secrets", secrets))
        for p in patterns
    )


def pattern_texts() -> dict[str, str]:
    """Return one text of each kind, the same in every run; the first is the reference."""
    rng = random.Random(0)  # noqa: S311 - test data, not a secret
    hostile = {
        f"{unit!r} repeated": unit
        for unit in ("1", "a", "1 ", "12-", "a.", "@", "a@a.", ":", "192.168.", "key = ", "sk-a")
    }
    return {
        "natural": _filled(NATURAL),
        "base64": base64.b64encode(rng.randbytes(PATTERN_CHARS)).decode()[:PATTERN_CHARS],
        "hex": rng.randbytes(PATTERN_CHARS).hex()[:PATTERN_CHARS],
        **{name: _filled(unit) for name, unit in hostile.items()},
    }


def _filled(unit: str) -> str:
    return (unit * (PATTERN_CHARS // len(unit) + 1))[:PATTERN_CHARS]


def run_patterns(repeats: int = SCANS) -> list[PatternRow]:
    """Return the cost of every kind of text for every engine that is installed."""
    patterns, samples = all_patterns(), pattern_texts()
    engines: list[Engine] = ["keywords"]
    if find_spec("hyperscan") is not None:
        engines.insert(0, "hyperscan")
    return [row for engine in engines for row in _measure(engine, patterns, samples, repeats)]


def _measure(
    engine: Engine, patterns: tuple[Pattern, ...], samples: Mapping[str, str], repeats: int
) -> Iterable[PatternRow]:
    scanner = PatternSet(patterns, engine)
    reference = 0.0
    for name, text in samples.items():
        matches = len(scanner.scan(text))
        cost = _median_us(lambda text=text: scanner.scan(text), repeats) / (len(text) / 1024)  # type: ignore[misc]
        reference = reference or cost
        yield PatternRow(engine, name, cost, cost / reference, matches, len(patterns))


def _median_us(call: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.thread_time()  # processor time: what else the machine does is not our cost
        call()
        taken.append(time.thread_time() - start)
    return statistics.median(taken) * 1e6


def render_patterns(rows: Iterable[PatternRow], console: Console) -> None:
    """Print the rows as a table."""
    listed = list(rows)
    size = listed[0].patterns if listed else 0
    table = Table(title=f"{size} patterns, texts of {PATTERN_CHARS} characters")
    for heading in ("engine", "text", "us/KB (p50)", "x natural", "matches"):
        table.add_column(heading, justify="left" if heading in ("engine", "text") else "right")
    for row in listed:
        table.add_row(
            row.engine, row.text, f"{row.us_per_kb:.1f}", f"{row.ratio:.1f}", str(row.matches)
        )
    console.print(table)


STREAM_QUESTION = "How long may guests stay, and what does it cost to bring a dog?"
STREAM_PASSAGES = (
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
STREAMED = {"prose": PROSE, "numbers": NUMBERS, "list": LIST, "code": CODE}
STREAMED_SENTENCES = 20
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


def run_streams(
    repeats: int, policy: str | None, advance: Callable[[], None], runtime: Runtime
) -> list[HeldBack]:
    """Return one row per kind of text, measured in this process without HTTP.

    Args:
        repeats: How often each text is streamed; the first time does not count.
        policy: Name of a loaded policy; None takes the default one.
        advance: Called after each stream.
        runtime: The loaded service.
    """
    return [_held_back(name, runtime, repeats, policy, advance) for name in STREAMED]


def _held_back(
    name: str, runtime: Runtime, repeats: int, policy: str | None, advance: Callable[[], None]
) -> HeldBack:
    held: list[int] = []
    took: list[float] = []
    parts = 0
    for repeat in range(repeats + 1):
        # A text of its own each time: the models' outputs for known sentences are cached.
        text = "".join(_sentences(STREAMED[name], repeat))
        seen = _stream(runtime, text, policy)
        if repeat:
            held += seen[0]
            took += seen[1]
            parts = len(seen[1])
        advance()
    return HeldBack(name, _median_and_worst(held), _median_and_worst(took), parts)


def _sentences(texts: Sequence[str], repeat: int) -> Iterator[str]:
    words = ("guests", "visitors", "people", "travellers", "families", "friends", "couples")
    for number in range(STREAMED_SENTENCES):
        word = words[(repeat * STREAMED_SENTENCES + number) % len(words)]
        yield texts[number % len(texts)].replace("guests", word).replace("Guests", word.title())


def _stream(runtime: Runtime, text: str, policy: str | None) -> tuple[list[int], list[float]]:
    """Return what was held at each token and what each part took, in milliseconds."""
    contexts = tuple(Passage(passage) for passage in STREAM_PASSAGES)
    rules = runtime.guard.policy_for(policy, {})
    check = StreamedCheck(
        runtime.guard, rules, Sample("", STREAM_QUESTION, contexts), mode="shadow"
    )
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


def _median_and_worst(values: Sequence[Any]) -> tuple[Any, Any]:
    """Return the median and the 99th percentile, both values that occurred; zeros for none."""
    ordered = sorted(values)
    if not ordered:
        return 0, 0
    return tuple(ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.99))


def render_streams(rows: Sequence[HeldBack]) -> Table:
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


def main() -> None:
    """Read a task, write what it cost."""
    task = BareJob.model_validate_json(sys.stdin.read())
    sys.stdout.write(bare_cost(task).model_dump_json() + "\n")


if __name__ == "__main__":
    main()
