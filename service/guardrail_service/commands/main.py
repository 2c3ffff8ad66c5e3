"""The `guardrail` command. Parses options, calls one function each, prints what it returns."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TextIO

import typer
from rich.table import Table

from guardrail_service import __version__
from guardrail_service.commands.caller_keys import keys_app
from guardrail_service.commands.config import config_app
from guardrail_service.commands.console import (
    EXIT_ERROR,
    EXIT_FLAGGED,
    AsJson,
    Configs,
    PackOption,
    WorkersOption,
    command,
    err,
    out,
    plain,
    progress_bar,
    settings_from,
)
from guardrail_service.commands.group import Commands
from guardrail_service.commands.models import models_app
from guardrail_service.commands.policies import policies_app
from guardrail_service.errors import ConfigurationError

if TYPE_CHECKING:
    from guardrail_service.commands.ingestion import ScanReport

app = typer.Typer(
    cls=Commands,
    help="Guardrail for RAG answers: is it grounded, on topic, safe to show?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line."""
    app()


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        out.print(__version__)
        raise typer.Exit


@app.command()
@command
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.")] = None,
    uds: Annotated[Path | None, typer.Option(help="Unix socket instead of a port.")] = None,
    config: Configs = None,
    pack: PackOption = None,
    workers: WorkersOption = None,
    processes: Annotated[
        int | None, typer.Option(help="Processes behind one socket, which share models.")
    ] = None,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Serve other machines without keys.")
    ] = False,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="PEM file with the certificate chain.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="PEM file with the certificate's key.")
    ] = None,
    operations_port: Annotated[
        int | None, typer.Option(help="Second port, for health and metrics only.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
) -> None:
    """Serve the HTTP API. Every option is also an environment variable GUARDRAIL_<NAME>.

    SIGTERM finishes running checks and stops; SIGHUP reads the configurations again. With several
    processes, SIGUSR1 replaces them one after the other.
    """
    from guardrail_service.server.serve import serve as run

    settings = settings_from(
        host=host,
        port=port,
        uds=uds,
        config=tuple(config or ()),
        model_pack=pack,
        workers=workers,
        processes=processes,
        allow_anonymous=allow_anonymous or None,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        operations_port=operations_port,
        log_level=log_level,
    )
    run(settings)


@app.command()
@command
def check(
    file: Annotated[Path, typer.Argument(help="JSON lines; - reads standard input.")],
    policy: Annotated[str | None, typer.Option(help="Policy for lines that name none.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write here, not to standard output.")] = None,
    config: Configs = None,
    pack: PackOption = None,
    workers: WorkersOption = None,
    table: Annotated[
        bool, typer.Option("--table", help="Print a table; replies go to --output alone.")
    ] = False,
) -> None:
    """Judge every line of FILE: a /v1/check body in, its reply or an {"error"} line out.

    Ends with 0 if nothing was flagged, 1 if something was, 2 if some line is in error.
    """
    from guardrail_service.commands.sample_file import check_lines, unqueued
    from guardrail_service.server.runtime import Runtime

    lines = _read_lines(file)
    settings = settings_from(config=tuple(config or ()), model_pack=pack, workers=workers)
    kinds: set[str] = set()
    rows = Table("line", "decision", "action", "summary")
    with (
        _writer(output, quiet=table) as write,
        closing(Runtime(unqueued(settings))) as runtime,
        progress_bar(len(lines)) as advance,
    ):
        for result in check_lines(runtime, lines, policy):
            write(result.json + "\n")
            kinds.add(result.kind)
            rows.add_row(str(rows.row_count + 1), *map(plain, result.row()))
            advance()
    if table:
        out.print(rows)
    raise typer.Exit(EXIT_ERROR if "error" in kinds else EXIT_FLAGGED if "flag" in kinds else 0)


def _read_lines(file: Path) -> list[bytes]:
    try:
        with nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb") as stream:
            return list(_lines(file, stream))
    except OSError as error:
        raise ConfigurationError(str(file), error.strerror or "no file", "JSON lines") from error


LONGEST_LINE, MOST_INPUT = 64 * 2**20, 2**30
"""Bytes; a device or a pipe may have no end."""


def _lines(file: Path, stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file that ends.

    Raises:
        ConfigurationError: If a line, or the file, is longer than one that anybody checks.
    """
    size = 0
    while line := stream.readline(LONGEST_LINE + 1):
        size += len(line)
        if len(line) > LONGEST_LINE:
            found = f"a line of more than {LONGEST_LINE // 2**20} MiB"
            raise ConfigurationError(str(file), found, "JSON lines")
        if size > MOST_INPUT:
            found = f"more than {MOST_INPUT // 2**20} MiB"
            raise ConfigurationError(str(file), found, "less; check a large file in parts")
        yield line.removesuffix(b"\n")


@contextmanager
def _writer(output: Path | None, *, quiet: bool) -> Iterator[Callable[[str], object]]:
    if output is None and quiet:
        yield len
    elif output is None:
        yield sys.stdout.write
        sys.stdout.flush()
    else:
        with _opened(output) as stream:
            yield stream.write


def _opened(output: Path) -> TextIO:
    try:
        return output.open("w", encoding="utf-8")
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise ConfigurationError(str(output), found, "a file to write to") from error


@app.command()
@command
def warm(
    corpus: Annotated[
        list[Path],
        typer.Argument(help="JSON lines (.jsonl), or text with blank lines between passages."),
    ],
    url: Annotated[str | None, typer.Option(help="A running service to send them to.")] = None,
    api_key: Annotated[
        str | None, typer.Option(envvar="GUARDRAIL_API_KEY", help="Bearer key of that service.")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Without --url: the store to fill, see GUARDRAIL_STORE.")
    ] = None,
    config: Configs = None,
    pack: PackOption = None,
    workers: WorkersOption = None,
    as_json: AsJson = False,
) -> None:
    """Run the models over a corpus ahead of time, so that its passages cost nothing later.

    A line of JSON is a text, an object with "text", or a /v1/check body with "contexts".
    """
    from guardrail_service.commands.warm import chunks, into_store, through_service
    from guardrail_service.commands.warm import warm as fill

    total = sum(file.stat().st_size for file in corpus if file.is_file())
    settings = settings_from(
        store=store, config=tuple(config or ()), model_pack=pack, workers=workers
    )
    target = through_service(url, api_key) if url else into_store(settings)
    with target as send, progress_bar(total, "warming") as advance:
        report = fill(chunks(corpus), send, advance)
    if as_json:
        out.print_json(json.dumps(report._asdict()))
    else:
        out.print(
            f"{report.passages} passages: {report.sentences} sentences kept ready, "
            f"{report.failed} failed"
        )


@app.command()
@command
def scan(
    docs: Annotated[
        list[Path], typer.Argument(help="Text files, JSON lines (.jsonl), or folders of them.")
    ],
    checks: Annotated[
        list[str] | None,
        typer.Option("--check", help="injection, pii or secrets; repeatable. Default: all three."),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(help="Checks whose findings end with status 1; repeatable; or never."),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="SQLite file that remembers texts without their words.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look through documents for instructions to a model, personal data and secrets.

    Ends with 0 if nothing was found that counts, 1 if something was, 2 if a document is unreadable.
    """
    from guardrail_service.commands import ingestion

    wanted = ingestion.named(checks, "--check")
    counting = ingestion.named(fail_on, "--fail-on", "never")
    files = ingestion.documents(docs)
    total = sum(file.stat().st_size for file in files if file.is_file())
    with ingestion.opened(cache, wanted) as known, progress_bar(total, "scanning") as advance:
        report = ingestion.scan(files, wanted, known, advance)
    if as_json:
        out.print_json(json.dumps(ingestion.as_json(report)))
    else:
        _print_scan(report)
    counted = any(finding.check in counting for finding in report.findings)
    raise typer.Exit(EXIT_ERROR if report.unread else EXIT_FLAGGED if counted else 0)


_MOST_ROWS = 200
"""Findings in a table; `--json` has all of them."""


def _print_scan(report: ScanReport) -> None:
    rows = Table("file", "line", "text", "check", "kind", "characters")
    for found in report.findings[:_MOST_ROWS]:
        place = f"{found.start} to {found.end}"
        rows.add_row(
            plain(found.file), str(found.line), str(found.text), found.check, found.kind, place
        )
    if report.findings:
        out.print(rows)
    for unread in report.unread:
        message = f"{unread.file}: found {unread.found}; expected {unread.expected}"
        err.print(f"[red]not scanned:[/red] {plain(message)}", highlight=False, soft_wrap=True)
    more = len(report.findings) - _MOST_ROWS
    shown = f" ({more} more than shown; --json has all)" if more > 0 else ""
    out.print(
        f"{report.files} files, {report.texts} texts ({report.remembered} remembered): "
        f"{len(report.findings)} findings{shown}, {len(report.unread)} not scanned"
    )


app.add_typer(config_app, name="config")
app.add_typer(keys_app, name="keys")
app.add_typer(policies_app, name="policies")
app.add_typer(models_app, name="models")


if __name__ == "__main__":
    main()
