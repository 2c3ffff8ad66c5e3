"""Processes that score shards, watched: one that makes no progress is ended and its shard redone.

The parent watches how many steps a process has done; a step is one evaluator on the cases of one
question. If a step does not end, its evaluator is left out when the shard is done again.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ctypes import c_longlong
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.runs.shards import Layout
from guardrail_offline.runs.worker import (
    EVALUATOR,
    NO_EVALUATOR,
    STEPS,
    Progress,
    ShardJob,
    serve,
)
from guardrail_service.errors import ServiceError

_LOG = logging.getLogger(__name__)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LOOKS = 10
"""How often a time limit is looked at before it is over."""
_SPAWN = get_context("spawn")


class WorkerLost(ServiceError):
    """A process of the pool is gone, for want of memory for instance; running again goes on."""

    code = "worker_lost"


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    progress: Progress
    job: ShardJob
    seen: int = 0
    since: float = field(default_factory=time.monotonic)

    def give(self, job: ShardJob) -> None:
        """Send the next shard."""
        self.job, self.since = job, time.monotonic()
        with suppress(BrokenPipeError):  # Its process is gone, which the next receive says.
            self.connection.send(job)

    def is_stuck(self, limit_s: float) -> bool:
        """Return whether one step has been going on for longer than the limit.

        Loading models and reading and writing files are no steps.
        """
        steps, now = self.progress[STEPS], time.monotonic()
        if steps != self.seen or self.progress[EVALUATOR] == NO_EVALUATOR:
            self.seen, self.since = steps, now
        return now - self.since > limit_s

    def end(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.join()
        self.connection.close()


class Pool:
    """Scores shards in some processes.

    Args:
        layout: Where the shards lie.
        configured: What runs.
        pack: Model pack.
        workers: How many processes.
        step_limit_s: Longest an evaluator may take for the cases of one question; None sets none.
        keeps: Keep the processes, with their models, for the next shards until `close`.
    """

    def __init__(
        self,
        layout: Layout,
        configured: Sequence[Configured],
        pack: str,
        workers: int,
        step_limit_s: float | None,
        *,
        keeps: bool = False,
    ) -> None:
        self._layout = layout
        self._configured = tuple(configured)
        self._pack = pack
        self._workers = workers
        self._limit_s = step_limit_s
        self._keeps = keeps
        self._busy: list[_Worker] = []
        self._idle: list[_Worker] = []

    def close(self) -> None:
        """End the processes that were kept."""
        for worker in self._idle:
            worker.end()
        self._idle.clear()

    def score(self, shards: Sequence[int]) -> Iterator[int]:
        """Score shards, and yield how many cases each one has when it is finished.

        Raises:
            WorkerLost: If a process ends by itself.
            OSError: If a shard cannot be read or written.
        """
        left = deque(ShardJob(shard) for shard in shards)
        try:
            while left or self._busy:
                self._fill(left)
                yield from self._finished(left)
                self._replace_stuck(left)
        finally:
            for worker in self._busy:
                worker.end()
            self._busy.clear()

    def _fill(self, left: deque[ShardJob]) -> None:
        while left and len(self._busy) < self._workers:
            worker = self._idle.pop() if self._idle else self._started(left[0])
            self._busy.append(worker)
            worker.give(left.popleft())

    def _started(self, job: ShardJob) -> _Worker:
        ours, theirs = _SPAWN.Pipe()
        progress = _SPAWN.RawArray(c_longlong, [NO_EVALUATOR, 0])
        arguments = (theirs, progress, self._layout, self._configured, self._pack)
        process = _SPAWN.Process(target=serve, args=arguments, daemon=True)
        with _one_thread_each():
            process.start()
        theirs.close()
        return _Worker(process, ours, progress, job)

    def _finished(self, left: deque[ShardJob]) -> Iterator[int]:
        by_connection = {worker.connection: worker for worker in self._busy}
        pause = None if self._limit_s is None else self._limit_s / _LOOKS
        for ready in wait(list(by_connection), pause):
            worker = by_connection[ready]  # type: ignore[index]
            found = _received(worker)
            if left:
                worker.give(left.popleft())
            else:
                self._busy.remove(worker)
                if self._keeps:
                    self._idle.append(worker)
                else:
                    worker.end()
            yield found

    def _replace_stuck(self, left: deque[ShardJob]) -> None:
        limit = self._limit_s
        for worker in [one for one in self._busy if limit is not None and one.is_stuck(limit)]:
            self._busy.remove(worker)
            worker.end()
            number, (shard, without) = worker.progress[EVALUATOR], worker.job
            if number == NO_EVALUATOR:  # It ended its last step just now.
                left.appendleft(worker.job)
                continue
            hung = self._configured[number].id
            _LOG.error("evaluator %s hung on shard %d: its cases there are errors", hung, shard)
            left.appendleft(ShardJob(shard, without | {hung}))


def _received(worker: _Worker) -> int:
    try:
        found = worker.connection.recv()
    except (EOFError, ConnectionResetError):
        worker.process.join()
        code = worker.process.exitcode
        raise WorkerLost(f"a process ended with {code}; run the same command again") from None
    if isinstance(found, OSError):
        raise found
    count: int = found
    return count


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let a pool's processes compute with one thread: there are as many of them as cores."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
