"""Runs the HTTP server: load, listen, drain."""

from __future__ import annotations

import gc
import json
import logging
import math
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from guardrail_service.errors import ConfigurationError
from guardrail_service.server.app import create_app
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings

SWITCH_S = 0.001
"""Seconds a thread may keep the interpreter while others want it. With Python's 5 ms, the event
loop and every model run wait that long for each of the checks that are being prepared."""
KEEP_ALIVE_S = 75
"""Seconds an idle connection stays open: longer than load balancers and clients keep theirs (mostly
60), or a request would go out on a connection that closes at that moment, and be lost."""
_LOG = logging.getLogger("guardrail.serve")


def serve(settings: Settings) -> None:
    """Load everything, then open the port and serve until SIGTERM or SIGINT.

    Raises:
        GuardrailError: If something cannot be loaded, or the address cannot be bound.
    """
    with json_logging(settings.log_level):
        sys.setswitchinterval(SWITCH_S)
        runtime = Runtime(settings)
        config = uvicorn.Config(
            create_app(runtime=runtime),
            uds=str(settings.uds) if settings.uds else None,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=math.ceil(settings.drain_s) + 1,
        )
        listening, address = _listen(settings)
        _LOG.info(json.dumps({"event": "listening", "address": address, "load_s": runtime.load_s}))
        try:
            with seldom_collecting():
                _Server(config, runtime).run(sockets=[listening])
        finally:
            if settings.uds is not None:
                settings.uds.unlink(missing_ok=True)


@contextmanager
def json_logging(level: str) -> Iterator[None]:
    """Send every log line to standard output as JSON; uvicorn's access log is ours instead.

    Afterwards logging is as it was: whoever started the service may close its standard output.
    """
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_JsonLines())
    root, access = logging.getLogger(), logging.getLogger("uvicorn.access")
    before = root.handlers[:], root.level, access.disabled, _LOG.level
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    access.disabled = True
    _LOG.setLevel(logging.INFO)  # whoever starts it with port 0 needs the line with the address
    try:
        yield
    finally:
        root.handlers[:], level_before, access.disabled, own_before = before
        root.setLevel(level_before)
        _LOG.setLevel(own_before)


class _JsonLines(logging.Formatter):
    """Lines that are JSON already pass; the rest become an object. Tracebacks stay out.

    An exception's message may quote the text it choked on, so only its type is shown.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return one JSON line."""
        message = record.getMessage()
        if record.name in ("guardrail.access", "guardrail.serve"):
            return message
        fields = {"level": record.levelname.lower(), "logger": record.name, "message": message}
        if record.exc_info and record.exc_info[0]:
            fields["exception"] = record.exc_info[0].__name__
        return json.dumps(fields)


class _Server(uvicorn.Server):
    """Says "not ready" as soon as it is told to stop, so that balancers look elsewhere.

    A drained stop is a success: the process ends with 0, not by the signal that asked for it.
    """

    def __init__(self, config: uvicorn.Config, runtime: Runtime) -> None:
        super().__init__(config)
        self._runtime = runtime

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start draining; a second SIGINT does not wait for running checks.

        Who still waits when the time is over is told so, a second before connections are closed.
        """
        if not self._runtime.draining:
            self._runtime.draining = True
            end = threading.Timer(self._runtime.settings.drain_s, self._runtime.end)
            end.daemon = True
            end.start()
        super().handle_exit(sig, frame)
        self._captured_signals.clear()


def _listen(settings: Settings) -> tuple[socket.socket, str]:
    """Return a bound socket and its address as a client writes it.

    Raises:
        ConfigurationError: If the address is taken or not ours.
    """
    try:
        if settings.uds is not None:
            return _unix_socket(str(settings.uds)), f"unix:{settings.uds}"
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        bound = socket.create_server(
            (settings.host, settings.port), family=family, backlog=2048, reuse_port=False
        )
    except OSError as error:
        where = str(settings.uds or f"{settings.host}:{settings.port}")
        raise ConfigurationError(
            f"listen on {where}", error.strerror or str(error), "a free address"
        ) from error
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return bound, f"http://{host}:{bound.getsockname()[1]}"


def _unix_socket(path: str) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if _is_left_over(path):
        Path(path).unlink(missing_ok=True)
    try:
        bound.bind(path)
    except OSError:
        bound.close()
        raise
    bound.listen(2048)
    return bound


def _is_left_over(path: str) -> bool:
    """Return whether a socket lies there that nobody listens on: its service was killed."""
    if not Path(path).is_socket():
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
    return False


YOUNG_OBJECTS = 2_000
OLDER, OLDEST = 10, 100
"""New objects after which the collector looks for cycles among them, after how many such looks it
looks at what was left, and after how many of those at everything. Python 3.11 says 700, 10 and 10,
which is too often here: a check leaves nothing in a cycle unless one of its rows fails."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Let the garbage collector pass over all that is loaded by now, and come less often.

    It stops every thread, the event loop too: 40 ms for a full collection, which finds nothing
    because what is loaded stays.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(max(YOUNG_OBJECTS, before[0]), OLDER, OLDEST)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
