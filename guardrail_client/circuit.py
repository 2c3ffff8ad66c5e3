"""A circuit breaker: a guard that keeps failing is not waited for."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, Protocol, TypeVar

from guardrail_client.errors import UNAVAILABLE, APIError, CircuitOpen, UnexpectedReply

LOG = logging.getLogger("guardrail_client.circuit")
CircuitState = Literal["closed", "open", "half_open"]


class Circuit:
    """Decides whether a guard is asked at all. Threads and tasks may share one.

    After some failures in a row it opens: nobody asks, and nobody waits. After a pause one call may
    try; if it succeeds the circuit closes, if it fails the pause begins again. A call that has not
    ended after another pause counts as lost, and the next one may try.

    Only what failing open is for counts as a failure: no connection, no reply in time, overload,
    a service that is not ready or has a bug. A refused key shows that the guard is there.

    Args:
        failures: In a row, after which it opens; 0 never opens.
        pause: Seconds until one call may try.
        clock: Seconds that only grow; tests bring their own.
    """

    def __init__(
        self, failures: int = 5, pause: float = 5.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if failures < 0:
            raise ValueError(f"failures: found {failures}, expected 0 or more")
        if not (math.isfinite(pause) and pause > 0):
            raise ValueError(f"pause: found {pause}, expected seconds above 0")
        self._limit = failures
        self._pause = pause
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._is_open = False
        self._trying = False
        self._since = 0.0
        # Calls of an earlier turn say nothing about this one.
        self._turn = 0

    @property
    def state(self) -> CircuitState:
        """Return `closed` (everybody asks), `open` (nobody) or `half_open` (one call tries)."""
        with self._lock:
            if not self._is_open:
                return "closed"
            return "half_open" if self._trying else "open"

    def begin(self) -> int:
        """Return the turn of a call that may ask.

        Raises:
            CircuitOpen: If it may not.
        """
        with self._lock:
            if self._is_open:
                now = self._clock()
                if (left := self._pause - (now - self._since)) > 0:
                    found = f"the guard is not asked: it failed, and is tried again in {left:.1f} s"
                    raise CircuitOpen(found)
                self._since, self._trying = now, True
                self._turn += 1
            return self._turn

    def lives(self, turn: int) -> None:
        """Take the first sign that the guard works on a call: enough to close, no success yet."""
        with self._lock:
            if self._is_open:
                self._close(turn)

    def succeeded(self, turn: int) -> None:
        """Take a verdict, or a refusal."""
        with self._lock:
            self._close(turn)

    def failed(self, turn: int) -> None:
        """Take a failure."""
        with self._lock:
            if turn != self._turn:
                return
            self._failures += 1
            if self._is_open or self._failures == self._limit:
                self._open()

    def dropped(self, turn: int) -> None:
        """Take a call that ended without telling anything; the next one may try at once."""
        with self._lock:
            if turn == self._turn and self._is_open:
                self._trying = False
                self._since = self._clock() - self._pause

    def _open(self) -> None:
        if not self._is_open:
            LOG.warning("circuit open: the guard failed %d times in a row", self._failures)
        self._is_open, self._trying = True, False
        self._since = self._clock()
        self._turn += 1

    def _close(self, turn: int) -> None:
        if turn != self._turn:
            return
        self._failures = 0
        if self._is_open:
            LOG.warning("circuit closed: the guard answers again")
            self._is_open = self._trying = False
            self._turn += 1


class Attempt:
    """One call to the guard, and what it tells a circuit; without a circuit, nothing."""

    def __init__(self, circuit: Circuit | None) -> None:
        self._circuit = circuit
        self._turn: int | None = None

    def begin(self) -> None:
        """Ask the circuit.

        Raises:
            CircuitOpen: If the guard may not be asked.
        """
        if self._circuit is not None:
            self._turn = self._circuit.begin()

    def lives(self) -> None:
        """Tell that the guard works on it."""
        if self._circuit is not None and self._turn is not None:
            self._circuit.lives(self._turn)

    def end(self, error: BaseException | None = None) -> None:
        """Tell how it ended; later ends do nothing."""
        turn, self._turn = self._turn, None
        if self._circuit is None or turn is None:
            return
        if isinstance(error, UNAVAILABLE):
            self._circuit.failed(turn)
        elif error is None or _is_refusal(error):
            self._circuit.succeeded(turn)
        else:
            self._circuit.dropped(turn)


@contextmanager
def asking(circuit: Circuit | None) -> Iterator[None]:
    """Let a block ask the guard.

    Raises:
        CircuitOpen: If it may not.
    """
    attempt = Attempt(circuit)
    attempt.begin()
    try:
        yield
    except BaseException as error:
        attempt.end(error)
        raise
    attempt.end()


def _is_refusal(error: BaseException) -> bool:
    # A reply that cannot be read is neither: counted as a failure, it would end in failing open.
    return isinstance(error, APIError) and not isinstance(error, UnexpectedReply)


class HasCircuit(Protocol):
    """A client of either kind."""

    circuit: Circuit | None


C = TypeVar("C", bound=HasCircuit)


def with_circuit(client: C) -> C:
    """Return a client that has a circuit, its own or a new one."""
    if client.circuit is None:
        client.circuit = Circuit()
    return client
