"""Scores shards on a Ray cluster: the files of a run stay where it was started.

A worker is sent the cases of a shard and answers with its files, so no disk has to be shared. One
that is lost, or does not answer in time, is replaced and its shard given to another. The only file
that starts Ray; it is imported when `--engine ray` asks for it.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.judge.judge_client import JudgeUnusable
from guardrail_offline.runs.judge_runs import JudgeProgress
from guardrail_offline.runs.pool import Pool, WorkerLost
from guardrail_offline.runs.ray_judging import JudgeOffice, ShardAsking
from guardrail_offline.runs.shards import Layout, by_group, read_cases, whole_file
from guardrail_offline.runs.worker import judge_of
from guardrail_service import __version__
from guardrail_service.errors import ConfigurationError, MissingExtra, ServiceError

_LOG = logging.getLogger(__name__)
MOST_LOSSES = 4
"""Workers that may be lost on one shard: a fifth would be, too."""
START_S = 300.0
"""Longest to wait for the first worker: images are pulled and machines are added meanwhile."""
_LOOK_S = 1.0
_REACH_S = 5.0


@dataclass(frozen=True)
class Cluster:
    """The cluster that scores shards, and its limits.

    Attributes:
        address: Of the cluster, `auto`, or None for `RAY_ADDRESS`, and a Ray of this machine's own
            where that is unset.
        workers: How many; None for as many as the cluster has processors.
        shard_timeout_s: Longest for one shard, after which its worker is replaced.
    """

    address: str | None = None
    workers: int | None = None
    shard_timeout_s: float = 3600.0


class WorkerRefusal(NamedTuple):
    """An error of ours on another machine, as words: the code of its class and what it says."""

    code: str
    told: tuple[str, ...]


class ShardFiles(NamedTuple):
    """The files of a scored shard, by the way they are written."""

    cases: int
    times: bytes
    tallies: bytes
    scores: bytes


class ShardWorker:
    """Scores shards on a machine of the cluster, in a process that is watched; an actor.

    Args:
        configured: What runs.
        pack: Model pack, by the name or path it has on that machine.
        step_limit_s: Longest an evaluator may take for the cases of one question.
        expected: What scores depend on, as the run's own machine has it.
        office: The actor that asks for all; None without a judge.
        run: Digest of the run.
    """

    def __init__(
        self,
        configured: Sequence[Configured],
        pack: str,
        step_limit_s: float | None,
        expected: Mapping[str, str],
        office: Any,
        run: str,
    ) -> None:
        self._configured, self._pack, self._limit_s = configured, pack, step_limit_s
        self._expected, self._office, self._run = dict(expected), office, run
        self._layout = Layout(Path(tempfile.mkdtemp(prefix="guardrail-shards-")))
        self._asking: ShardAsking | None = None
        self._pool: Pool | None = None

    def ready(self) -> WorkerRefusal | None:
        """Make ready for shards; return what keeps this machine from it."""
        try:
            self._check_versions()
            configured, settings = self._configured, judge_of(self._configured)
            if settings is not None:
                folder = self._layout.out
                self._asking = ShardAsking(configured, settings, folder, self._office, self._run)
                configured = self._asking.from_transcripts(configured)
            self._pool = Pool(self._layout, configured, self._pack, 1, self._limit_s, keeps=True)
        except ServiceError as error:
            return refusal(error)
        return None

    def close(self) -> None:
        """End the process that scores, and leave nothing on the disk."""
        if self._pool is not None:
            self._pool.close()
        shutil.rmtree(self._layout.out, ignore_errors=True)

    def _check_versions(self) -> None:
        from guardrail_offline.runs.execution import fingerprints_of

        found = {"version": __version__, **fingerprints_of(self._configured, self._pack)}
        names = sorted({*found, *self._expected})
        different = [name for name in names if found.get(name) != self._expected.get(name)]
        if different:
            where, said = f"--engine ray: {socket.gethostname()}", ", ".join(different)
            raise ConfigurationError(where, f"another {said}", "what this machine has installed")

    def score(self, shard: int, cases: bytes) -> ShardFiles | WorkerRefusal:
        """Return the files of a shard, or what kept the worker from making them."""
        if self._pool is None:
            raise AssertionError("asked before it was ready")
        own = [path(shard) for path in _files(self._layout)]
        own[0].parent.mkdir(parents=True, exist_ok=True)
        own[0].write_bytes(cases)
        try:
            if self._asking is not None:
                groups = by_group(read_cases(own[0]))
                self._asking.ask([one for group in groups for one in group])
            with _without_main():
                (count,) = self._pool.score([shard])
            return ShardFiles(count, *(path.read_bytes() for path in own[1:]))
        except ServiceError as error:
            return refusal(error)
        finally:
            for path in own:
                path.unlink(missing_ok=True)


def _files(layout: Layout) -> tuple[Callable[[int], Path], ...]:
    """Return where a shard's cases lie, and what is made of them."""
    return layout.cases, layout.times, layout.tallies, layout.scores


def refusal(error: ServiceError) -> WorkerRefusal:
    """Return an error as words that another machine can read."""
    if isinstance(error, ConfigurationError):
        return WorkerRefusal(error.code, (error.where, error.found, error.expected))
    return WorkerRefusal(error.code, (str(error),))


def _raised(found: WorkerRefusal) -> ServiceError:
    if found.code == ConfigurationError.code:
        return ConfigurationError(*found.told)
    kind = JudgeUnusable if found.code == JudgeUnusable.code else ServiceError
    return kind(*found.told)


@dataclass
class _Job:
    shard: int
    losses: int = 0


@dataclass
class _Hand:
    """A worker, and what it does: nothing until it is ready."""

    actor: Any
    job: _Job | None = None
    since: float = field(default_factory=time.monotonic)


class RayPool:
    """Scores shards on a cluster; at most one shard per worker is under way.

    Args:
        layout: Where the shards lie.
        configured: What runs.
        pack: Model pack.
        step_limit_s: Longest an evaluator may take for the cases of one question; None sets none.
        fingerprints: What scores depend on.
        run: Digest of the run.
        cluster: Where to score.
    """

    def __init__(
        self,
        layout: Layout,
        configured: Sequence[Configured],
        pack: str,
        step_limit_s: float | None,
        fingerprints: Mapping[str, str],
        run: str,
        cluster: Cluster,
    ) -> None:
        self._layout, self._configured, self._run = layout, tuple(configured), run
        self._cluster, self._settings = cluster, judge_of(configured)
        expected = {"version": __version__, **fingerprints}
        self._arguments = (self._configured, pack, step_limit_s, expected)
        self._hands: dict[Any, _Hand] = {}
        self._resting: list[Any] = []
        self._office: Any = None
        self._never = _Job(-1)
        self.asked: Callable[[JudgeProgress], None] = lambda _progress: None

    def score(self, shards: Sequence[int]) -> Iterator[int]:
        """Score shards, and yield how many cases each one has when it is finished.

        Raises:
            ConfigurationError: If the cluster cannot be reached, has no room for a worker, or has
                something else installed.
            JudgeUnusable: If the judge cannot be asked.
            WorkerLost: If a shard has cost several workers.
            OSError: If a shard cannot be read or written.
        """
        with connected(self._cluster.address) as ray:
            left = deque(_Job(shard) for shard in shards)
            try:
                self._open_office(ray)
                for _ in range(min(len(left), self._most(ray))):
                    self._start(ray)
                yield from self._rounds(ray, left)
            finally:
                ray.wait([one.close.remote() for one in self._resting] or [ray.put(0)], timeout=5)
                hands = [hand.actor for hand in self._hands.values()]
                for actor in [*hands, *self._resting, self._office]:
                    if actor is not None:
                        ray.kill(actor)
                self._hands.clear()
                self._resting.clear()

    def _rounds(self, ray: Any, left: deque[_Job]) -> Iterator[int]:
        since = time.monotonic()
        while left or self._is_busy:
            found, _ = ray.wait(list(self._hands), num_returns=1, timeout=_LOOK_S)
            for reference in found:
                count = self._collected(ray, reference, left)
                if count is not None:
                    yield count
            self._replace_late(ray, left)
            now = time.monotonic()
            since = now if self._is_busy else since
            if now - since > START_S:
                found_, wanted = f"no room for a worker in {START_S:g} s", "a free processor"
                raise ConfigurationError("--engine ray", found_, wanted)

    @property
    def _is_busy(self) -> bool:
        return any(hand.job for hand in self._hands.values())

    def _most(self, ray: Any) -> int:
        """Return how many workers there are; a judge bounds them by its questions at a time."""
        cores = int(ray.cluster_resources().get("CPU", 1))
        workers = max(1, self._cluster.workers or cores)
        return min(workers, self._settings.concurrency) if self._settings else workers

    def _open_office(self, ray: Any) -> None:
        if self._settings is None:
            return
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._office = (
            ray.remote(JudgeOffice)
            .options(num_cpus=0, max_restarts=-1, max_task_retries=3, scheduling_strategy=here)
            .remote(self._settings, self._run)
        )

    def _start(self, ray: Any) -> None:
        """Ask the cluster for one more worker, which has no shard until it is ready."""
        actor = ray.remote(ShardWorker).options(num_cpus=1, max_restarts=0)
        hand = _Hand(actor.remote(*self._arguments, self._office, self._run))
        self._hands[hand.actor.ready.remote()] = hand

    def _collected(self, ray: Any, reference: Any, left: deque[_Job]) -> int | None:
        """Take what a worker has done and give it the next shard; return its number of cases."""
        hand, count = self._hands.pop(reference), None
        try:
            answer = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, OSError):
                raise error.cause from None
            self._lost(ray, hand, left, type(error.cause).__name__)
            return None
        except ray.exceptions.RayError as error:
            self._lost(ray, hand, left, type(error).__name__)
            return None
        if isinstance(answer, WorkerRefusal):
            if answer.code != WorkerLost.code:
                raise _raised(answer)
            ray.kill(hand.actor)
            self._lost(ray, hand, left, answer.code)
            return None
        if hand.job is not None:
            count = self._written(hand.job.shard, answer)
            self._tell(ray, count)
        if left:
            self._give(hand, left.popleft())
        else:
            self._resting.append(hand.actor)
        return count

    def _give(self, hand: _Hand, job: _Job) -> None:
        cases = self._layout.cases(job.shard).read_bytes()
        hand.job, hand.since = job, time.monotonic()
        self._hands[hand.actor.score.remote(job.shard, cases)] = hand

    def _written(self, shard: int, files: ShardFiles) -> int:
        """Write the files of a shard; that of its scores, which says that it is done, at last."""
        for path, content in zip(_files(self._layout)[1:], files[1:], strict=True):
            with whole_file(path(shard)) as stream:
                stream.write(content.decode("utf-8"))
        return files.cases

    def _replace_late(self, ray: Any, left: deque[_Job]) -> None:
        late = time.monotonic() - self._cluster.shard_timeout_s
        for reference, hand in list(self._hands.items()):
            if hand.job is not None and hand.since < late:
                del self._hands[reference]
                ray.kill(hand.actor)
                self._lost(ray, hand, left, "no answer in time")

    def _lost(self, ray: Any, hand: _Hand, left: deque[_Job], why: str) -> None:
        """Give the shard of a lost worker to the next one, and ask for another worker.

        Raises:
            WorkerLost: If that has happened too often.
        """
        job = hand.job or self._never
        job.losses += 1
        if hand.job is not None:
            _LOG.warning("a worker was lost on shard %d (%s): it is done again", job.shard, why)
            left.appendleft(job)
        if job.losses > MOST_LOSSES:
            what = "the start" if hand.job is None else f"shard {job.shard}"
            again = "run the same command again"
            raise WorkerLost(f"{what} has cost {job.losses} workers ({why}); {again}")
        if self._resting and left:
            self._give(_Hand(self._resting.pop()), left.popleft())
        else:
            self._start(ray)

    def _tell(self, ray: Any, cases: int) -> None:
        """Say how far the judge is."""
        if self._settings is not None and self._office is not None:
            spent = ray.get(self._office.spent.remote())
            cost = None if self._settings.price is None else spent.cost
            self.asked(JudgeProgress(cases, cases, spent.calls, cost))


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to a cluster, or start a Ray of this machine's own; leave it at the end.

    Raises:
        MissingExtra: If Ray is not installed.
        ConfigurationError: If nobody answers at the address.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("rag-guardrail-offline[ray]") from error
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS") or None
    _refuse_silence(address)
    options: dict[str, Any] = {} if address else {"include_dashboard": False}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:  # Ray raises bare ones: "node timed out" is one
        if address is None:
            found = f"a Ray of this machine that did not start ({type(error).__name__})"
            expected = "a less busy machine, or --ray-address of a cluster"
            raise ConfigurationError("--engine ray", found, expected) from error
        raise _unreachable(address) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _refuse_silence(address: str | None) -> None:
    """Find out in seconds that nobody listens; Ray itself would try for minutes."""
    if address is None or address in ("auto", "local"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigurationError("--ray-address", repr(address)[:80], "HOST:PORT or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address) from error


def _unreachable(address: str) -> ConfigurationError:
    expected = "a Ray cluster that answers"
    return ConfigurationError(f"--ray-address {address[:80]}", "nobody", expected)


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep a process that is started from running Ray's main module again, which imports Ray."""
    import __main__

    path = __main__.__dict__.pop("__file__", None)
    try:
        yield
    finally:
        if path is not None:
            __main__.__dict__["__file__"] = path
