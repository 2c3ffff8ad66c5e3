"""The command `guardrail studio`."""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardrail_service.commands.console import (
    Configs,
    PackOption,
    command,
    err,
    out,
    settings_from,
)
from guardrail_service.errors import ConfigurationError, MissingExtra

if TYPE_CHECKING:
    from guardrail_offline.studio.access import FindRights


@command
def studio(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="Run folders, scored labs, folders of cases to label, a decision store's address. "
            "Optional: without any there are Try, Policies and what lies in --work."
        ),
    ] = None,
    work: Annotated[
        Path, typer.Option(help="Folder of the studio's own files: samples, labels, policies.")
    ] = Path("studio"),
    policies: Annotated[
        Path | None, typer.Option(help="Folder of policy versions that a deployment serves.")
    ] = None,
    decision_keys: Annotated[
        Path | None, typer.Option(help="Keys with which the store's texts are read.")
    ] = None,
    config: Configs = None,
    pack: PackOption = None,
    service: Annotated[
        str, typer.Option(help="Address of your service, for commands to copy.")
    ] = "http://127.0.0.1:8080",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8090,
    keys: Annotated[
        Path | None, typer.Option(help="Keys file; needed to listen beyond this machine.")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="Host name, with its port, by which browsers reach it; repeatable."),
    ] = None,
    https: Annotated[
        bool, typer.Option("--https", help="A proxy in front speaks https: cookies go only there.")
    ] = False,
) -> None:
    """Label answers, fit thresholds, look at decisions and try policies in a browser."""
    try:
        import uvicorn

        from guardrail_offline.studio.access import LOOPBACK, Access
        from guardrail_offline.studio.judging import StudioJudge
        from guardrail_offline.studio.studio_app import studio_app
        from guardrail_offline.studio.studio_pages import Studio
        from guardrail_offline.studio.workspace import open_workspace
    except ImportError as error:
        raise MissingExtra("rag-guardrail[studio]") from error
    if host not in LOOPBACK and (keys is None or not name):
        raise ConfigurationError(
            "--host", "an address beyond this machine", "--keys FILE and --name HOST:PORT with it"
        )
    with _listening(host, port) as listener:
        port = listener.getsockname()[1]
        access = Access(port, None if keys is None else _finder(keys))
        workspace = open_workspace(work, sources or (), policies, decision_keys)
        judge = StudioJudge(settings_from(config=tuple(config or ()), model_pack=pack), service)
        hosts = {f"{one}:{port}" for one in ("127.0.0.1", "localhost", "[::1]")}
        app = studio_app(
            Studio(access, workspace, judge, secure=https),
            frozenset({h.lower() for h in name or ()} | (hosts if host in LOOPBACK else set())),
        )
        shown = f"[{host}]" if ":" in host else host
        if access.by_key:
            out.print(f"studio: http://{shown}:{port}/", markup=False, soft_wrap=True)
        else:
            token = access.new_token(lasting=True)
            out.print(f"studio: http://{shown}:{port}/enter?token={token}", markup=False,
                      soft_wrap=True)  # fmt: skip
            err.print("The address works once. Ctrl+C ends the studio; labels are kept.")
        logging.getLogger("uvicorn.access").disabled = True  # its lines would hold the token
        served = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
        try:
            uvicorn.Server(served).run(sockets=[listener])
        finally:
            judge.close()
            workspace.close()


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens: whoever opens the printed address at once waits, not fails.

    Raises:
        ConfigurationError: If the port is taken or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        found = error.strerror or type(error).__name__
        raise ConfigurationError("--port", found, "a free port of this machine") from error
    return listener


def _finder(keys: Path) -> FindRights:
    """Return how the keys of a file, as it is now, are looked up."""
    from guardrail_service.server.keys import Keys, read_keys_file, ring

    known = Keys(lambda: ring((), read_keys_file(keys)), keys)

    def find(key: str) -> tuple[str, frozenset[str]] | None:
        found = known.find(key.encode("utf-8", "replace"))
        if found is None or found.refusal() is not None:
            return None
        return found.caller.id, frozenset(found.caller.rights)

    return find
