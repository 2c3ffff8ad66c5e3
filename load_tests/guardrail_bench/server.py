"""A `guardrail serve` of our own on chosen cores, and what it uses while it starts and works."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import IO, TYPE_CHECKING, Any

import httpx
from prometheus_client.parser import text_string_to_metric_families
from rich.table import Table

from guardrail_service.errors import ConfigurationError, InputError, MissingExtra, ServiceError
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings

if TYPE_CHECKING:
    import psutil

READY_BUDGET_S = 120.0
ANY = "any"
"""Instead of core numbers: not pinned."""
LAG_METRIC = "guardrail_event_loop_lag"
"""Gauges of this beginning say by how many seconds the event loop was late."""
_NOT_OURS = (
    "GUARDRAIL_HOST", "GUARDRAIL_PORT", "GUARDRAIL_UDS", "GUARDRAIL_API_KEYS", "GUARDRAIL_STORE",
    "GUARDRAIL_DECISIONS_URL",
)  # fmt: skip
"""Where it listens is the benchmark's business, a store would make cold passages warm, and one of
decisions is measured by `guardrail bench decisions`; every other setting is the user's."""


class Server:
    """A running service: its address, and what its process has used so far.

    Raises:
        ServiceError: Whatever is asked of a process that has ended.
    """

    def __init__(self, process: psutil.Process, address: str) -> None:
        self.address = address
        self._process = process

    def cpu_s(self) -> float:
        """Return user and system seconds of the process and those it started, since they did."""
        with self._running():
            used = [one.cpu_times() for one in self._processes]
            return float(sum(times.user + times.system for times in used))

    def rss_mb(self) -> float:
        """Return resident memory in megabytes (10^6 bytes); what processes share counts in each."""
        with self._running():
            return float(sum(one.memory_info().rss for one in self._processes) / 1e6)

    @cached_property
    def _processes(self) -> list[psutil.Process]:
        # Found once: looking for children reads every process of the machine.
        return [self._process, *self._process.children(recursive=True)]

    @contextmanager
    def _running(self) -> Iterator[None]:
        import psutil

        try:
            yield
        except psutil.Error as error:
            raise ServiceError("the service ended while it was measured") from error

    def metrics(self) -> dict[str, float]:
        """Return the service's metrics by name, summed over labels; gauges by their largest."""
        return parse_metrics(self.get("/metrics").text)

    def get(self, path: str) -> httpx.Response:
        """Return the response to a GET request.

        Raises:
            ServiceError: If there is none, or its status is no success.
        """
        try:
            response = httpx.get(f"{self.address}{path}", timeout=READY_BUDGET_S)
            return response.raise_for_status()
        except httpx.HTTPError as error:
            raise ServiceError(f"{path}: {type(error).__name__} from the service") from error


def parse_metrics(text: str) -> dict[str, float]:
    """Return what `/metrics` says, plus `checks`: requests of `/v1/check` with any status."""
    found: dict[str, float] = {"checks": 0.0}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "guardrail_requests_total":
                found["checks"] += sample.value * (sample.labels.get("route") == "/v1/check")
            if family.type == "gauge":
                found[sample.name] = max(found.get(sample.name, sample.value), sample.value)
            elif not sample.name.endswith(("_bucket", "_created")):
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def loop_lag_ms(metrics: dict[str, float]) -> float | None:
    """Return the event loop's lag, or None where the service does not tell."""
    seconds = [v for name, v in metrics.items() if name.startswith(LAG_METRIC)]
    return max(seconds) * 1e3 if seconds else None


@contextmanager
def serving(
    arguments: Sequence[str],
    cores: Collection[int] | None,
    environment: Mapping[str, str] | None = None,
    guardrail: Path | None = None,
) -> Iterator[Server]:
    """Run `guardrail serve` on a free port until the block ends.

    Args:
        arguments: Further options of `guardrail serve`.
        cores: Where it may run; None leaves it to the system.
        environment: Variables of its own.
        guardrail: The command of another installation; None: this one.

    Raises:
        MissingExtra: If psutil is not installed.
        ServiceError: If it does not get ready.
    """
    try:
        import psutil
    except ImportError as error:
        raise MissingExtra("psutil") from error
    own = [sys.executable, "-m", "guardrail_service.commands.main"]
    command = [*(own if guardrail is None else [str(guardrail)]), "serve", "--port", "0"]
    command += arguments
    with tempfile.TemporaryDirectory(prefix="guardrail-bench-") as folder:
        log = Path(folder) / "serve.log"
        # A file, not a pipe: a pipe that nobody empties stops the service, and log lines are
        # part of what a request costs.
        with log.open("wb") as stream, pinned(cores):
            process = start(command, stream, environment)
        try:
            server = Server(psutil.Process(process.pid), _address(process, log))
            server.get("/readyz")
            yield server
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def busy_share() -> float:
    """Return the share of all cores in use over half a second, before anything of ours runs.

    Raises:
        MissingExtra: If psutil is not installed.
    """
    try:
        import psutil
    except ImportError as error:
        raise MissingExtra("psutil") from error
    return float(psutil.cpu_percent(interval=0.5)) / 100


def start(
    command: Sequence[str], output: IO[bytes], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a command of ours; it inherits this process's cores."""
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
    kept |= {"PYTHONUNBUFFERED": "1", **(environment or {})}
    return subprocess.Popen(  # noqa: S603 - our own command
        command, stdout=output, stderr=subprocess.STDOUT, env=kept
    )


@contextmanager
def pinned(cores: Collection[int] | None) -> Iterator[None]:
    """Keep this process, and what it starts meanwhile, on some cores.

    Raises:
        InputError: If the machine has no such core, or cannot pin.
    """
    if cores is None:
        yield
        return
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if not set(cores) <= before:
        raise InputError(
            f"found cores {sorted(cores)}; expected some of {sorted(before) or 'none: no pinning'}"
        )
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the address the service logs once it listens.

    Raises:
        ServiceError: If it ends, or does not listen in time.
    """
    end = time.monotonic() + READY_BUDGET_S
    while time.monotonic() < end:
        for line in log.read_text("utf-8", "replace").splitlines():
            fields: dict[str, Any] = _fields(line)
            if fields.get("event") == "listening":
                return str(fields["address"])
        if process.poll() is not None:
            raise ServiceError(f"the service ended with {process.returncode}: {_last(log)}")
        time.sleep(0.01)
    raise ServiceError(f"the service did not listen within {READY_BUDGET_S:.0f} s")


def _fields(line: str) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _last(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "no output"


ONE_CHECK = {
    "question": "How long may guests stay?",
    "answer": "Guests may stay for two weeks.",
    "contexts": ["Guests may stay for at most fourteen days."],
}


def measure_starts(runs: int) -> dict[str, Any]:
    """Start the service several times on a free port.

    Returns:
        Per run seconds from process start to `readyz` 200 and megabytes resident, when ready and
        after one check.

    Raises:
        MissingExtra: If psutil is not installed.
    """
    measured = [_one_start() for _ in range(runs)]
    return {
        "runs": measured,
        "median_ready_s": median(run["ready_s"] for run in measured),
        "max_resident_mb": max(run["resident_mb"] for run in measured),
    }


def render_starts(report: dict[str, Any]) -> Table:
    """Return the report as a table."""
    table = Table("run", "start to ready (s)", "resident, ready (MB)", "after a check (MB)")
    for number, row in enumerate(report["runs"], start=1):
        table.add_row(
            str(number),
            f"{row['ready_s']:.2f}",
            f"{row['ready_mb']:.0f}",
            f"{row['resident_mb']:.0f}",
        )
    return table


def _one_start() -> dict[str, float]:
    started = time.perf_counter()
    with serving((), None) as server:
        ready_s = time.perf_counter() - started
        ready_mb = server.rss_mb()
        url = f"{server.address}/v1/check"
        httpx.post(url, json=ONE_CHECK, timeout=READY_BUDGET_S).raise_for_status()
        return {"ready_s": ready_s, "ready_mb": ready_mb, "resident_mb": server.rss_mb()}


def machine() -> dict[str, Any]:
    """Return what the numbers depend on beside the service."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


def default_cores() -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Return a core for the service and another for the generator; neither if there is one."""
    known = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return ((known[0],), (known[1],)) if len(known) > 1 else (None, None)


def chosen_cores(
    option: str, text: str | None, default: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """Return the cores an option names: `any` is None, no text the default.

    Raises:
        ConfigurationError: If the text is no list of core numbers.
    """
    if text is None or text == ANY:
        return None if text == ANY else default
    parts = text.split(",")
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise ConfigurationError(option, repr(text), f"core numbers such as 0,1, or {ANY!r}")
    return tuple(sorted({int(part) for part in parts}))


@contextmanager
def serving_only(detectors: Sequence[str], pack: str | None) -> Iterator[Runtime]:
    """Yield a service with just these detectors, on their shipped default thresholds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "quality.json"
        path.write_text(json.dumps({"evaluator_ids": [*detectors]}), "utf-8")
        runtime = Runtime(Settings(model_pack=pack or "embedded", config=(path,)))
    try:
        yield runtime
    finally:
        runtime.close()
