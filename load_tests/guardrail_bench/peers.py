"""The service beside the pipeline one would otherwise write, and beside another version of itself.

Starts the service on all cores, and `peers_pipeline.py` in an interpreter that has torch. They
take turns on the same texts; neither works while the other is timed. Of services the processor
time is taken as well: other work on the machine stretches the clock's time more.
"""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple

import httpx
from pydantic import BaseModel, ConfigDict, Field
from rich.table import Table

from guardrail_bench.components import Planner
from guardrail_bench.latency_report import Target
from guardrail_bench.load import Percentiles, percentiles
from guardrail_bench.output import (
    busy_warning,
    drawing,
    markdown_table,
    replace_part,
    shown,
    verdict,
    write_json,
)
from guardrail_bench.samples import SCENARIOS, Passages, SampleSource, read_texts
from guardrail_bench.server import Server, busy_share, machine, serving
from guardrail_service.commands.console import out
from guardrail_service.errors import ServiceError
from guardrail_service.text.sample import Windower

SCRIPT = Path(__file__).with_name("peers_pipeline.py")
MAX_LENGTH = 256
"""Tokens of a pair, the encoder's own limit. A passage is packed into windows that fit, so that
the peers cut nothing either."""
_SPECIAL = 3  # [CLS] claim [SEP] window [SEP]
WARM_UP = 2
PART = "bench peers"
AGAINST_PART = "bench against"
"""The part of a page about another version alone, without pipelines."""
SCRIPT_PART = "peers script"


class PeersPlan(NamedTuple):
    """The plan of a comparison.

    Attributes:
        scenario: Name of a scenario.
        samples: How many samples, each cold and then, with another answer, warm.
        python: Interpreter that has the peers' libraries; None: no pipelines.
        workers: Model runs at the same time; the peers have two threads.
        seed: Another seed gives other samples.
        texts: What samples are made of.
        config: Guardrail JSONs of the service; none: the shipped ones.
        pack: Its model pack.
        against: The `guardrail` command of another version, to run with its own defaults.
    """

    scenario: str
    samples: int
    python: Path | None
    workers: int
    seed: int
    texts: Path
    config: tuple[Path, ...]
    pack: str | None
    against: Path | None = None

    def steps(self) -> int:
        """Return how many samples there are to go through, and the start."""
        return 1 + WARM_UP + self.samples


def run(plan: PeersPlan, note: Callable[[str], None]) -> PeersReport:
    """Return the times of service and peers on the same samples.

    Raises:
        ServiceError: If the service or the peers' process fails.
    """
    busy = busy_share()
    planner = Planner(plan.config, plan.pack)
    source = SampleSource(read_texts(plan.texts), SCENARIOS[plan.scenario], "cold", plan.seed)
    encoder = planner.pack.path(planner.pack.model("embedding"))
    found: list[Timed] = []
    note("starting")
    with ExitStack() as stack:
        ask = stack.enter_context(_peers(plan.python, encoder)) if plan.python else _no_peers
        servers = {"service": stack.enter_context(serving(_arguments(plan), None))}
        if plan.against is not None:
            older = serving(_arguments(plan, own=False), None, guardrail=plan.against)
            servers["against"] = stack.enter_context(older)
        client = stack.enter_context(httpx.Client(timeout=120))
        started = datetime.now(UTC).isoformat(timespec="seconds")
        info = {name: server.get("/v1/info").json() for name, server in servers.items()}
        for number in range(WARM_UP + plan.samples):
            note(f"sample {number + 1 - WARM_UP}" if number >= WARM_UP else "warming up")
            order = dict(sorted(servers.items(), reverse=number % 2 == 1))
            for variant, passages in enumerate(("cold", "warm")):
                body = source.sample(number, variant)
                timed = _one(body, job_of(planner, body), client, order, ask)
                if number >= WARM_UP:
                    found.append(Timed(passages=passages, **timed))
    return PeersReport(
        started=started,
        machine=machine(),
        busy_before=busy,
        service=info["service"],
        against=info["against"]["version"] if "against" in info else None,
        scenario=plan.scenario,
        workers=plan.workers,
        seed=plan.seed,
        timed=tuple(found),
    )


def _arguments(plan: PeersPlan, *, own: bool = True) -> list[str]:
    arguments = ["--workers", str(plan.workers)]
    if not own:
        return arguments
    for path in plan.config:
        arguments += ["--config", str(path)]
    return [*arguments, "--pack", plan.pack] if plan.pack is not None else arguments


Ask = Callable[[dict[str, list[Any]]], dict[str, dict[str, float]]]


def _no_peers(job: dict[str, list[Any]]) -> dict[str, dict[str, float]]:
    return {}


def _one(
    body: dict[str, Any],
    job: dict[str, list[Any]],
    client: httpx.Client,
    servers: Mapping[str, Server],
    ask: Ask,
) -> dict[str, Any]:
    """Return what one sample took everywhere, and how much there was to do."""
    times = {name: _checked(client, server, body) for name, server in servers.items()}
    spent = ask(job)
    return {
        "service_ms": times["service"][0],
        "peers_ms": {name: sum(steps.values()) for name, steps in spent.items()}
        | {name: ms for name, (ms, _) in times.items() if name != "service"},
        "cpu_ms": {name: cpu_ms for name, (_, cpu_ms) in times.items()},
        "steps_ms": spent,
        "texts": {name: len(texts) for name, texts in job.items()},
    }


def _checked(client: httpx.Client, server: Server, body: dict[str, Any]) -> tuple[float, float]:
    """Return a check's milliseconds by the caller's clock, and of the service's processor time."""
    before, began = server.cpu_s(), perf_counter()
    reply = client.post(f"{server.address}/v1/check", json=body)
    took_s = perf_counter() - began
    if reply.status_code != 200 or reply.json()["status"] != "complete":
        raise ServiceError(f"the service answered {reply.status_code}; expected a whole verdict")
    return took_s * 1e3, (server.cpu_s() - before) * 1e3


def job_of(planner: Planner, body: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the texts the peers have to read for one sample.

    `sentences`: the distinct sentences that the service embeds. `pairs`: every claim with every
    window of every passage. `classified`: what the service classifies; nothing where its pack
    has no classifier.
    """
    rows = list(planner.rows(body))
    claims = list(dict.fromkeys(row.text for row in rows if row.role == "grounding"))
    windower: Windower = planner.sessions["embedding"].tokenizer
    longest = max((len(windower.tokens(claim)) for claim in claims), default=0)
    windows = [
        window
        for passage in planner.segmented(body).context_windows("embedding")
        for window in packed([w.text for w in passage], windower, MAX_LENGTH - _SPECIAL - longest)
    ]
    return {
        "sentences": list(dict.fromkeys(row.text for row in rows if row.role == "embedding")),
        "pairs": [[claim, window] for claim in claims for window in windows],
        "classified": list(
            dict.fromkeys(row.text for row in rows if row.role in ("toxicity", "bias"))
        ),
    }


def packed(sentences: Sequence[str], windower: Windower, room: int) -> Iterator[str]:
    """Yield a passage's sentences joined into windows of at most `room` tokens.

    A sentence that alone has more is a window by itself.
    """
    window: list[str] = []
    used = 0
    for sentence in sentences:
        tokens = len(windower.tokens(sentence))
        if window and used + tokens > room:
            yield " ".join(window)
            window, used = [], 0
        window.append(sentence.strip())
        used += tokens
    if window:
        yield " ".join(window)


@contextmanager
def _peers(python: Path, encoder: Path) -> Iterator[Ask]:
    """Run the peers' script and yield what sends it a job and returns its times.

    Raises:
        ServiceError: If it ends before it answers; its last line says why.
    """
    command = [str(python), "-P", str(SCRIPT), str(encoder)]
    with tempfile.TemporaryFile("w+") as errors, _started(command, errors) as process:

        def ask(job: dict[str, list[Any]]) -> dict[str, dict[str, float]]:
            if process.stdin is None or process.stdout is None:
                raise ServiceError("the peers' process has no pipes")
            try:
                process.stdin.write(json.dumps(job) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except BrokenPipeError:
                line = ""
            if not line:
                errors.seek(0)
                last = errors.read().strip().splitlines()[-1:] or ["no output"]
                raise ServiceError(
                    f"the peers' process ended: {last[0][:300]}; expected an interpreter with "
                    "requirements/export.txt and requirements/peers.txt installed"
                )
            answer: dict[str, dict[str, float]] = json.loads(line)
            return answer

        yield ask


@contextmanager
def _started(command: Sequence[str], errors: Any) -> Iterator[subprocess.Popen[str]]:
    try:
        process = subprocess.Popen(  # noqa: S603 - our own script, in the interpreter we were given
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    except OSError as error:
        raise ServiceError(f"{command[0]}: {error.strerror}; expected an interpreter") from error
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


LIMITS: dict[Passages, float] = {"cold": 0.6, "warm": 0.25}
"""Of the torch pipeline's p50, promised for typical RAG."""
CPU_LIMITS: dict[Passages, float] = {"cold": 0.6, "warm": 0.8}
"""Of another version's processor time, promised for typical RAG beside 0.1.0."""
PROMISED_AGAINST = "0.1.0"
HEADINGS = ("passages", "pipeline", "p50 ms", "p95 ms", "worst ms", "service / it", "work")
DRAWS = 1_000
CPU_HEADINGS = ("passages", "the service: CPU ms", "it: CPU ms", "service / it", "95 % interval")
PLOT = "performance-peers.png"
NAMES = {
    "service": "the service",
    "torch": "torch: sentence-transformers, CrossEncoder, classifier",
    "onnx": "ONNX Runtime loop, INT8 file, batches of 32",
    "against": "another version of the service",
}


class Timed(BaseModel):
    """One sample: milliseconds of the service by the caller's clock, and of each peer."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    passages: Literal["cold", "warm"]
    service_ms: float
    peers_ms: dict[str, float]
    cpu_ms: dict[str, float] = Field(
        default_factory=dict, description="Processor time of each service, in steps of 10 ms."
    )
    steps_ms: dict[str, dict[str, float]]
    texts: dict[str, int]


class PeersReport(BaseModel):
    """Service and peers on the same samples in one run."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal["1"] = "1"
    started: str
    machine: dict[str, Any]
    busy_before: float
    service: dict[str, Any]
    against: str | None = Field(None, description="The other version that took part.")
    scenario: str
    workers: int
    seed: int
    timed: tuple[Timed, ...]

    def times(self, name: str, passages: Passages) -> Percentiles | None:
        """Return one side's times on cold or warm samples; None if there are none."""
        chosen = [t for t in self.timed if t.passages == passages]
        if name == "service":
            return percentiles([t.service_ms for t in chosen])
        return percentiles([t.peers_ms[name] for t in chosen if name in t.peers_ms])

    def ratio(self, name: str, passages: Passages) -> float | None:
        """Return the service's p50 over a peer's p50 on the same samples."""
        ours, theirs = self.times("service", passages), self.times(name, passages)
        return ours.p50 / theirs.p50 if ours and theirs else None

    def cpu(self, passages: Passages) -> CpuShare | None:
        """Return both versions' processor time on the same samples; None if there is one only.

        The interval is over draws of samples: 95 %.
        """
        pairs = [
            (t.cpu_ms["service"], t.cpu_ms["against"])
            for t in self.timed
            if t.passages == passages and "against" in t.cpu_ms
        ]
        if not pairs:
            return None
        rng = random.Random(0)  # noqa: S311 - reproducible draws, no secret
        drawn = sorted(_share(rng.choices(pairs, k=len(pairs))) for _ in range(DRAWS))
        ours, theirs = (sum(part) / len(pairs) for part in zip(*pairs, strict=True))
        edge = DRAWS // 40
        return CpuShare(ours, theirs, ours / theirs, (drawn[edge], drawn[-1 - edge]))


class CpuShare(NamedTuple):
    """Two versions' mean milliseconds of processor time, and their ratio with its interval."""

    ours: float
    theirs: float
    ratio: float
    interval: tuple[float, float]


def _share(pairs: Sequence[tuple[float, float]]) -> float:
    ours, theirs = (sum(part) for part in zip(*pairs, strict=True))
    return float(ours / max(theirs, 1e-9))


def cpu_targets(report: PeersReport) -> list[Target]:
    """Return the promises about an older version's processor time."""
    found = []
    for passages, limit in CPU_LIMITS.items():
        share = report.cpu(passages)
        if share is None or report.against != PROMISED_AGAINST or report.scenario != "rag":
            continue
        name = f"CPU time over that of version {PROMISED_AGAINST}"
        met = share.ratio <= limit
        where = f"{report.scenario}, {passages}"
        found.append(Target(name, where, f"<= {limit}", f"{share.ratio:.2f}", met))
    return found


def cpu_rows(report: PeersReport) -> list[tuple[str, ...]]:
    """Return a row per kind of passages: both versions' processor time and its ratio."""
    rows: list[tuple[str, ...]] = []
    for passages in CPU_LIMITS:
        if (share := report.cpu(passages)) is not None:
            low, high = share.interval
            numbers = (f"{share.ours:.0f}", f"{share.theirs:.0f}", f"{share.ratio:.2f}")
            rows.append((passages, *numbers, f"{low:.2f} to {high:.2f}"))
    return rows


def peers_targets(report: PeersReport) -> list[Target]:
    """Return the promises about the torch pipeline."""
    found: list[Target] = []
    if report.times("torch", "cold") is None and report.against is not None:
        return found
    for passages, limit in LIMITS.items():
        name, where = "p50 over the torch pipeline's p50", f"{report.scenario}, {passages}"
        ratio = report.ratio("torch", passages)
        if ratio is None or report.scenario != "rag":
            why = "promised for typical RAG; no such sample was measured"
            found.append(Target(name, where, f"<= {limit}", "-", None, why))
        else:
            found.append(Target(name, where, f"<= {limit}", f"{ratio:.2f}", ratio <= limit))
    return found


def peers_rows(report: PeersReport) -> list[tuple[str, ...]]:
    """Return a row per side and kind of passages: p50, p95, worst, ratio, texts."""
    rows: list[tuple[str, ...]] = []
    for passages in LIMITS:
        texts = [t.texts for t in report.timed if t.passages == passages]
        for name, title in NAMES.items():
            times, ratio = report.times(name, passages), report.ratio(name, passages)
            if times is None:
                continue
            numbers = (f"{times.p50:.0f}", f"{times.p95:.0f}", f"{times.worst:.0f}")
            share = "1" if name == "service" or ratio is None else f"{ratio:.2f}"
            rows.append((passages, title, *numbers, share, _work(name, texts)))
    return rows


def _work(name: str, texts: list[dict[str, int]]) -> str:
    """Return how much a peer had to read per sample, on average."""
    if name in ("service", "against"):
        return "every detector of its default policy, over HTTP"
    means = {key: sum(t[key] for t in texts) / len(texts) for key in texts[0]}
    return ", ".join(f"{mean:.0f} {key}" for key, mean in means.items())


def _measured(report: PeersReport) -> str:
    machine = report.machine
    samples = f"{len(report.timed) // 2} samples ({SCENARIOS[report.scenario].title})"
    return (
        f"Measured {report.started} on {machine['cpu']}, {machine['cores']} cores: {samples}, each "
        f"with cold and then, with another answer, with warm passages. {report.workers} workers."
    )


def _processor_time(report: PeersReport) -> str:
    table = markdown_table(CPU_HEADINGS, cpu_rows(report))
    return f"Processor time beside version {report.against}, means:\n\n{table}"


def _promises(targets: Sequence[Target]) -> str:
    headings = ("target", "samples", "limit", "found", "")
    rows = [(t.name, t.where, t.limit, t.found, verdict(t.met)) for t in targets]
    return markdown_table(headings, rows)


def against_markdown(report: PeersReport) -> str:
    """Return for a page what another version's processor time is, where no pipeline took part."""
    parts = [_measured(report), _processor_time(report)]
    if targets := cpu_targets(report):
        parts.append(_promises(targets))
    if (busy := busy_warning(report.busy_before)) is not None:
        parts.append(f"**Caution.** {busy}")
    return "\n\n".join(parts)


def peers_markdown(report: PeersReport, images: str) -> str:
    """Return the report for a page."""
    parts = [_measured(report), markdown_table(HEADINGS, peers_rows(report))]
    if report.against is not None:
        parts.append(_processor_time(report))
    parts.append(_promises([*peers_targets(report), *cpu_targets(report)]))
    if (busy := busy_warning(report.busy_before)) is not None:
        parts.append(f"**Caution.** {busy}")
    return "\n\n".join([*parts, f"![{PLOT}]({images}/{PLOT})"])


def peers_plot(report: PeersReport, folder: Path) -> Path:
    """Write the plot and return where it is.

    Raises:
        MissingExtra: If matplotlib is not installed.
    """
    with drawing(folder / PLOT, figsize=(7, 2.6)) as axis:
        labels, values, colours = [], [], []
        for passages in reversed(LIMITS):
            for name in reversed(NAMES):
                if times := report.times(name, passages):
                    labels.append(f"{name}, {passages}")
                    values.append(times.p50)
                    colours.append("tab:green" if name == "service" else "tab:grey")
        axis.barh(labels, values, color=colours)
        axis.bar_label(axis.containers[0], fmt="%.0f", padding=3, fontsize=8)
        axis.set(xlabel="p50, ms", title=SCENARIOS[report.scenario].title)
        axis.margins(x=0.1)
    return folder / PLOT


def publish(report: PeersReport, json_file: Path | None, doc: Path | None) -> None:
    """Write the report as JSON, print its table and targets, rewrite the page's two parts."""
    write_json(report.model_dump_json(), json_file)
    if str(json_file) != "-":
        table = Table(*HEADINGS, title="peers")
        for row in peers_rows(report):
            table.add_row(*row)
        out.print(table)
        if rows := cpu_rows(report):
            cpu = Table(*CPU_HEADINGS, title=f"processor time beside version {report.against}")
            for row in rows:
                cpu.add_row(*row)
            out.print(cpu)
        for target in [*peers_targets(report), *cpu_targets(report)]:
            found = f"{target.found} ({target.limit}) {shown(target.met)}"
            out.print(f"{target.where}: {target.name}: {found}")
    if doc is not None and report.times("torch", "cold") is None:
        replace_part(doc, AGAINST_PART, against_markdown(report))
    elif doc is not None:
        peers_plot(report, doc.parent / "images")
        replace_part(doc, PART, peers_markdown(report, "images"))
        replace_part(doc, SCRIPT_PART, peers_script())


def peers_script() -> str:
    """Return the peers' script as a code block."""

    return f"```python\n{SCRIPT.read_text('utf-8').strip()}\n```"
