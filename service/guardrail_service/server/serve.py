"""Runs the HTTP server: load, listen, drain."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import math
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple, cast

import uvicorn

from guardrail_service.errors import ConfigurationError
from guardrail_service.posix import CAN_FORK, raise_open_files
from guardrail_service.server.acceptor import Acceptor
from guardrail_service.server.app import create_app, recorder
from guardrail_service.server.collecting import seldom_collecting
from guardrail_service.server.connections import Places, protocol_of
from guardrail_service.server.keys import Keys
from guardrail_service.server.log_lines import json_logging
from guardrail_service.server.runtime import LoadedService, Runtime
from guardrail_service.settings import Settings

if TYPE_CHECKING:
    from guardrail_service.server.decisions import Recorder
    from guardrail_service.server.process_place import ProcessPlace

SWITCH_S = 0.001
"""Seconds a thread may keep the interpreter while others want it. With Python's 5 ms, the event
loop and every model run wait that long for each of the checks that are being prepared."""
RETIRE_S = 1.0
"""Seconds that a process which is replaced waits for the first request of its last connections."""
_LOG = logging.getLogger("guardrail.serve")


def serve(settings: Settings) -> None:
    """Load everything, then open the port and serve until SIGTERM or SIGINT.

    Raises:
        ServiceError: If something cannot be loaded, or the address cannot be bound.
    """
    refuse_strangers(settings)
    if settings.processes > 1 and not CAN_FORK:
        found = f"{settings.processes}, on a system that cannot fork processes"
        raise ConfigurationError("GUARDRAIL_PROCESSES", found, "1")
    with json_logging(settings.log_level), hangups_kept() as reload_by:
        sys.setswitchinterval(SWITCH_S)
        settings = _fitting(settings, _raise_open_files(settings))
        loaded = LoadedService(settings)
        if settings.processes > 1:
            _serve_together(settings, loaded, reload_by)
            return
        runtime = Runtime(settings, loaded)
        reload_by(runtime.reloads.soon)
        decisions = recorder(runtime)
        with _listening(settings) as sockets:
            server = _server(runtime, decisions, sockets)
            _announce(settings, sockets, loaded.load_s)
            with seldom_collecting():
                server.run(sockets=sockets.all())


def _serve_together(settings: Settings, loaded: LoadedService, reload_by: ReloadBy) -> None:
    """Fork the processes that serve, and look after them."""
    from guardrail_service.server.processes import Supervisor

    def serve_here(settings: Settings, place: ProcessPlace) -> None:
        runtime = Runtime(settings, loaded)
        server = _server(runtime, recorder(runtime), sockets, place)
        server.run(sockets=sockets.all())

    if settings.decisions.url is not None:
        from guardrail_service.server.decisions import store_factory

        store_factory(settings.decisions)  # imported once for all of them
    reload_by(lambda *_: loaded.reload())
    with _listening(settings) as sockets, seldom_collecting():
        Supervisor(
            settings,
            serve_here,
            on_ready=lambda: _announce(settings, sockets, loaded.load_s),
            reload=loaded.reload,
            renew=loaded.renew,
        ).run()


class _Sockets(NamedTuple):
    """The sockets of a service."""

    callers: socket.socket
    address: str
    operations: socket.socket | None

    def all(self) -> list[socket.socket]:
        return [self.callers, *([self.operations] if self.operations else [])]


@contextmanager
def _listening(settings: Settings) -> Iterator[_Sockets]:
    """Open what the service listens on, and take its Unix socket away at the end."""
    listening, address = _listen(settings)
    try:
        yield _Sockets(listening, address, _listen_for_operations(settings))
    finally:
        if settings.uds is not None:
            settings.uds.unlink(missing_ok=True)


def _announce(settings: Settings, sockets: _Sockets, load_s: float) -> None:
    said: dict[str, object] = {"event": "listening", "address": sockets.address, "load_s": load_s}
    if sockets.operations is not None:
        said["operations_port"] = _port_of(sockets.operations)
    if settings.processes > 1:
        said["processes"] = settings.processes
    _LOG.info(json.dumps(said))


def _server(
    runtime: Runtime,
    decisions: Recorder | None,
    sockets: _Sockets,
    place: ProcessPlace | None = None,
) -> _Server:
    """Return what serves a runtime, with its certificates loaded.

    Args:
        runtime: What judges.
        decisions: What keeps decisions, if anything does.
        sockets: What it listens on.
        place: Its place among several processes, if there are several.
    """
    settings = runtime.settings
    places = Places(settings.limits, runtime.refused, *([place.turns.note] if place else []))
    config = uvicorn.Config(
        create_app(runtime=runtime, decisions=decisions, place=place),
        http=protocol_of(settings, _port_of(sockets.operations), places),
        ws="none",
        loop="auto" if CAN_FORK else "asyncio:SelectorEventLoop",  # Windows' own cannot accept here
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        uds=str(settings.uds) if settings.uds else None,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=settings.timeouts.keep_alive_s,
        timeout_graceful_shutdown=math.ceil(settings.drain_s) + 1,
    )
    _load(config)
    return _Server(config, runtime, places, place)


ReloadBy = Callable[[Callable[..., object]], None]
"""Takes the handler of SIGHUP from now on, and calls it if one came before."""


@contextmanager
def hangups_kept() -> Iterator[ReloadBy]:
    """Keep SIGHUP from ending the process while it loads; yields what reloads upon it from then on.

    One that came before is answered then. Later the application has a handler of its own, and the
    first of several processes too. SIGUSR1 has nothing to replace before.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGHUP"):
        yield lambda _: None
        return
    came = threading.Event()

    def reload_by(handler: Callable[..., object]) -> None:
        signal.signal(signal.SIGHUP, handler)
        if came.is_set():
            handler()

    before = signal.signal(signal.SIGHUP, lambda *_: came.set())
    rolls_before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        yield reload_by
    finally:
        signal.signal(signal.SIGHUP, before)
        signal.signal(signal.SIGUSR1, rolls_before)


class _Server(uvicorn.Server):
    """Says "not ready" as soon as it is told to stop, so that balancers look elsewhere.

    A drained stop is a success: the process ends with 0, not by the signal that asked for it.
    """

    def __init__(
        self, config: uvicorn.Config, runtime: Runtime, places: Places, place: ProcessPlace | None
    ) -> None:
        super().__init__(config)
        self._runtime = runtime
        self._places = places
        self._place = place

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Load what serves, and accept connections as `Acceptor` does."""
        await super().startup([])
        tls, place = self.config.ssl, self._place
        is_anothers = place.turns.is_anothers if place else None
        accepting = [
            Acceptor(s, self._connection, tls, self._places, is_anothers) for s in sockets or ()
        ]
        self.servers += cast("list[asyncio.base_events.Server]", accepting)
        if place is not None:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGUSR2, self._retire, loop, accepting)
            place.ready()

    def _retire(self, loop: asyncio.AbstractEventLoop, accepting: list[Acceptor]) -> None:
        """Leave new connections to other processes, and end once the last accepted ones have begun.

        No request is refused, unlike at SIGTERM, when balancers should look elsewhere.
        """
        for acceptor in accepting:
            acceptor.leave_to_others()
        loop.call_later(RETIRE_S, self._leave)

    def _leave(self) -> None:
        self._end_later()
        self.should_exit = True

    def _end_later(self) -> None:
        """Tell callers who still wait when the time to drain is over."""
        end = threading.Timer(self._runtime.settings.drain_s, self._runtime.end)
        end.daemon = True
        end.start()

    def _connection(self) -> asyncio.Protocol:
        made: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        state = self.lifespan.state
        return made(config=self.config, server_state=self.server_state, app_state=state)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start draining; a second SIGINT does not wait for running checks.

        Callers who still wait when the time is over are told so, a second before connections are
        closed.
        """
        if not self._runtime.scheduler.draining:
            self._runtime.scheduler.draining = True
            self._end_later()
        super().handle_exit(sig, frame)
        self._captured_signals.clear()


def refuse_strangers(settings: Settings) -> None:
    """Raise ConfigurationError if whoever reaches this machine could use the service unasked."""
    has_keys = Keys.of(settings) is not None  # refused here where they cannot be read
    if has_keys or settings.uds is not None or settings.allow_anonymous:
        return
    if not _is_loopback(settings.host):
        raise ConfigurationError(
            "GUARDRAIL_HOST",
            f"{settings.host} without keys",
            "keys in GUARDRAIL_API_KEYS or GUARDRAIL_API_KEYS_FILE, or --allow-anonymous "
            "(GUARDRAIL_ALLOW_ANONYMOUS=1) to serve everybody who reaches this address",
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


SPARE_FILES = 256
"""Open files besides connections: models, the store, threads' pipes."""


def _raise_open_files(settings: Settings) -> int:
    """Let the process open as many files as it accepts connections, as far as it may.

    Returns:
        Connections for which there are files.
    """
    needed = settings.limits.connections + SPARE_FILES
    allowed = raise_open_files(needed)
    if allowed is None or allowed >= needed:
        return settings.limits.connections
    connections = max(1, allowed - min(SPARE_FILES, allowed // 2))
    found = "GUARDRAIL_MAX_CONNECTIONS is more than the limit of open files allows; it is now"
    logging.getLogger(__name__).warning("%s %d", found, connections)
    return connections


def _fitting(settings: Settings, connections: int) -> Settings:
    """Return settings with so many connections, and the same share of them for one address."""
    limits = settings.limits
    if connections == limits.connections:
        return settings
    of_one = max(1, limits.connections_per_caller * connections // limits.connections)
    fewer = {"connections": connections, "connections_per_caller": of_one}
    return settings.model_copy(update={"limits": limits.model_copy(update=fewer)})


def _listen(settings: Settings) -> tuple[socket.socket, str]:
    """Return a bound socket and its address as a client writes it.

    Raises:
        ConfigurationError: If the address is taken or not ours.
    """
    if settings.uds is not None:
        if not hasattr(socket, "AF_UNIX"):
            found = "a Unix socket, on a system without them"
            raise ConfigurationError("GUARDRAIL_UDS", found, "GUARDRAIL_HOST and GUARDRAIL_PORT")
        try:
            return _unix_socket(str(settings.uds)), f"unix:{settings.uds}"
        except OSError as error:
            raise _not_free(str(settings.uds), error) from error
    bound = _bound(settings.host, settings.port)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "https" if settings.tls_certificate else "http"
    return bound, f"{scheme}://{host}:{bound.getsockname()[1]}"


def _listen_for_operations(settings: Settings) -> socket.socket | None:
    if settings.operations_port is None:
        return None
    return _bound(settings.host, settings.operations_port)


def _load(config: uvicorn.Config) -> None:
    """Prepare what listens, certificates too.

    Raises:
        ConfigurationError: If a certificate or its key cannot be used.
    """
    try:
        config.load()
    except (OSError, AssertionError) as error:  # ssl.SSLError is an OSError
        raise ConfigurationError(
            "GUARDRAIL_TLS_CERTIFICATE",
            getattr(error, "strerror", None) or "a key alone",
            "PEM files with a certificate and, in it or in GUARDRAIL_TLS_KEY, its key",
        ) from error


def _port_of(bound: socket.socket | None) -> int | None:
    return None if bound is None else int(bound.getsockname()[1])


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048, reuse_port=False)
    except OSError as error:
        raise _not_free(f"{host}:{port}", error) from error


def _not_free(where: str, error: OSError) -> ConfigurationError:
    found = error.strerror or str(error)
    return ConfigurationError(f"listen on {where}", found, "a free address")


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
