"""Work that a client starts and waits for: in a thread, and continued where a process died."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from guardrail_offline.h2o_client.client_folder import LOG, ClientFolder
from guardrail_service.errors import ServiceError

_POLL_S = 0.1
OPEN = ("waiting", "running")
"""States of work that is not over."""
_running: dict[tuple[str, str], threading.Thread] = {}
"""Threads of this process, by folder and key."""


class EvaluationFailed(ServiceError):
    """An evaluation or a generation stopped; the message says by which error."""

    code = "evaluation_failed"


@dataclass(frozen=True)
class ClientWork:
    """Something that is done once for an object of the folder, whoever does it.

    Attributes:
        folder: Of the client.
        key: Of the object.
        read: Returns its `state` and `error`.
        say: Changes them.
        do: Does it and says `finished`; called when nobody else is at it.
    """

    folder: ClientFolder
    key: str
    read: Callable[[], Mapping[str, Any]]
    say: Callable[..., None]
    do: Callable[[], None]

    def start(self) -> threading.Thread:
        """Let a thread of this process do it, unless one does; return the thread."""
        name = str(self.folder.path), self.key
        thread = _running.get(name)
        if thread is None or not thread.is_alive():
            thread = threading.Thread(target=self._run, name=self.key, daemon=True)
            _running[name] = thread
            thread.start()
        return thread

    def wait(self, timeout: float | None = None, verbose: bool = False) -> None:
        """Wait until it is over.

        Args:
            timeout: In seconds; None for as long as it takes.
            verbose: Whether its states are logged.

        Raises:
            TimeoutError: If it is not over by then; it goes on.
            EvaluationFailed: If something stopped it.
        """
        end = None if timeout is None else time.monotonic() + timeout
        shown = None
        while True:
            record = self.read()
            if verbose and record["state"] != shown:
                shown = record["state"]
                LOG.warning("%s: %s", self.key, shown)
            if record["state"] == "failed":
                raise EvaluationFailed(record["error"])
            if record["state"] not in OPEN:
                return
            left = _POLL_S if end is None else min(_POLL_S, end - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"not finished after {timeout} s")
            self.start().join(left)

    def _run(self) -> None:
        try:
            self.read()
            with self.folder.claim(self.key) as mine:
                if mine and self.read()["state"] in OPEN:
                    self._do()
                elif not mine:
                    time.sleep(_POLL_S)
        except (KeyError, FileNotFoundError):
            return  # deleted while it ran

    def _do(self) -> None:
        try:
            self.say(state="running")
            self.do()
        except (KeyError, FileNotFoundError):
            self.read()
            LOG.exception("%s failed", self.key)
            self.say(state="failed", error="something is missing; see the log")
        except ServiceError as error:
            self.say(state="failed", error=str(error))
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            LOG.exception("%s failed", self.key)
            self.say(state="failed", error=f"{type(error).__name__} while it ran; see the log")
