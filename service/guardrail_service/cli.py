"""The `guardrail` command. Parses options, calls one function each, prints what it returns."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.console import Console
from rich.table import Table

from guardrail_service import __version__
from guardrail_service.errors import ConfigurationError, GuardrailError
from guardrail_service.settings import Settings

app = typer.Typer(
    help="Guardrail for RAG answers: is it grounded, on topic, safe to show?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
config_app = typer.Typer(help="Look at guardrail configurations.", no_args_is_help=True)
models_app = typer.Typer(help="Look at model packs.", no_args_is_help=True)
bench_app = typer.Typer(help="Measure speed, memory and quality.", no_args_is_help=True)
app.add_typer(config_app, name="config")
app.add_typer(models_app, name="models")
app.add_typer(bench_app, name="bench")

_WIDE = 200  # columns of a pipe; a table cut to 80 loses names and licences
out = Console(width=None if sys.stdout.isatty() else _WIDE)
err = Console(stderr=True)
P = ParamSpec("P")
EXIT_FLAGGED = 1
EXIT_ERROR = 2

Configs = Annotated[
    list[Path] | None,
    typer.Option("--config", "-c", help="Guardrail JSON to load as a policy; repeatable."),
]
PackOption = Annotated[
    str | None, typer.Option("--pack", help="Shipped model pack or a folder with a manifest.")
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, help="Model runs at the same time.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def main() -> None:
    """Run the command line."""
    app()


def _command(function: Callable[P, None]) -> Callable[P, None]:
    """Print our own errors as one line and end with status 2."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except GuardrailError as error:
            _fail(str(error))
        except ValidationError as error:
            first = error.errors()[0]
            prefix = "GUARDRAIL_MAX_" if error.title == "Limits" else "GUARDRAIL_"
            name = "_".join(map(str, first["loc"])).upper()
            _fail(f"{prefix}{name}: {first['msg']}")
        except SettingsError as error:
            _fail(f"environment: {error}")

    return run


def _fail(message: str) -> NoReturn:
    err.print(f"[red]error:[/red] {_plain(message)}", highlight=False, soft_wrap=True)
    raise typer.Exit(EXIT_ERROR)


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


def _settings(**given: Any) -> Settings:
    """Return settings from the environment, overridden by the options that were given."""
    return Settings(**{key: value for key, value in given.items() if value not in (None, ())})


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        out.print(__version__)
        raise typer.Exit


@app.command()
@_command
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.")] = None,
    uds: Annotated[Path | None, typer.Option(help="Unix socket instead of a port.")] = None,
    config: Configs = None,
    pack: PackOption = None,
    workers: WorkersOption = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
) -> None:
    """Serve the HTTP API. Every option is also an environment variable GUARDRAIL_<NAME>.

    SIGTERM finishes running checks and stops; SIGHUP reads the configurations again.
    """
    from guardrail_service.serve import serve as run

    settings = _settings(
        host=host,
        port=port,
        uds=uds,
        config=tuple(config or ()),
        model_pack=pack,
        workers=workers,
        log_level=log_level,
    )
    run(settings)


@app.command()
@_command
def check(
    file: Annotated[Path, typer.Argument(help="JSON lines; - reads standard input.")],
    policy: Annotated[str | None, typer.Option(help="Policy of lines that name none.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write here, not to standard output.")] = None,
    config: Configs = None,
    pack: PackOption = None,
    workers: WorkersOption = None,
) -> None:
    """Judge every line of FILE: a /v1/check body in, its reply or an {"error"} line out.

    Ends with 0 if nothing was flagged, 1 if something was, 2 if some line is in error.
    """
    from guardrail_service.lines import check_lines, unqueued
    from guardrail_service.runtime import Runtime

    lines = _read_lines(file)
    settings = _settings(config=tuple(config or ()), model_pack=pack, workers=workers)
    kinds: set[str] = set()
    with (
        _writer(output) as write,
        closing(Runtime(unqueued(settings))) as runtime,
        _progress(len(lines)) as advance,
    ):
        for result in check_lines(runtime, lines, policy):
            write(result.json + "\n")
            kinds.add(result.kind)
            advance()
    raise typer.Exit(EXIT_ERROR if "error" in kinds else EXIT_FLAGGED if "flag" in kinds else 0)


def _read_lines(file: Path) -> list[bytes]:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise ConfigurationError(str(file), error.strerror or "no file", "JSON lines") from error
    return data.removesuffix(b"\n").split(b"\n") if data else []


@contextmanager
def _writer(output: Path | None) -> Iterator[Callable[[str], object]]:
    if output is None:
        yield sys.stdout.write
        sys.stdout.flush()
        return
    try:
        stream = output.open("w", encoding="utf-8")
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise ConfigurationError(str(output), found, "a file to write to") from error
    with stream:
        yield stream.write


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """Show a bar on a terminal's standard error; elsewhere nothing."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("checking", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal) as progress:
        task = progress.add_task("checking", total=total)
        yield lambda: progress.advance(task)


@config_app.command("check")
@_command
def config_check(
    files: Annotated[list[Path], typer.Argument(help="Guardrail JSONs.")],
    pack: PackOption = None,
    as_json: AsJson = False,
) -> None:
    """Validate guardrail configurations and say which detectors the pack cannot serve.

    Ends with 0 if every file can be served, 1 if a valid file names a detector that cannot,
    2 if a file is wrong.
    """
    from guardrail_service.config import Loaded, load_file
    from guardrail_service.inference.pack import load_pack, resolve
    from guardrail_service.policy import describe
    from guardrail_service.resources import packs_dir
    from guardrail_service.runtime import serving_for

    serving = serving_for(load_pack(resolve(_settings(model_pack=pack).model_pack, packs_dir())))
    loaded: list[Loaded] = [load_file(path, serving) for path in files]
    if as_json:
        report = [
            {
                "file": str(item.path),
                "policy": describe(item.policy),
                "unserved": {u.detector: u.reason for u in item.unserved},
            }
            for item in loaded
        ]
        out.print_json(json.dumps(report))
    else:
        for item in loaded:
            _print_policy(item.path, describe(item.policy))
            for missing in item.unserved:
                out.print(f"  [yellow]cannot serve[/yellow] {missing.detector}: {missing.reason}")
    raise typer.Exit(1 if any(item.unserved for item in loaded) else 0)


def _print_policy(path: Path, policy: dict[str, Any]) -> None:
    out.print(f"[green]valid[/green] {path}: policy {policy['name']}@{policy['version']}")
    for warning in policy["warnings"]:
        out.print(f"  [yellow]warning[/yellow] {_plain(warning)}")
    if not policy["detectors"]:
        return
    table = Table("detector", "metric", "flags if", "threshold", "status", "action")
    for name, rule in policy["detectors"].items():
        for key, metric in rule["metrics"].items():
            if metric["threshold"] is not None:
                sign = "<" if metric["direction"] == "higher_is_better" else ">"
                cut = f"{metric['threshold']:.4g}"
                action = "report only" if rule["report_only"] else rule["action"]
                table.add_row(name, key, sign, cut, metric["status"], action)
    out.print(table)


@models_app.command("list")
@_command
def models_list(as_json: AsJson = False) -> None:
    """List the shipped model packs, their files and where they come from."""
    from guardrail_service.inference.pack import MANIFEST, read_manifest
    from guardrail_service.resources import packs_dir

    manifests = [read_manifest(path.parent) for path in sorted(packs_dir().glob(f"*/{MANIFEST}"))]
    if as_json:
        out.print_json(json.dumps([m.model_dump(mode="json") for m in manifests]))
        return
    table = Table("pack", "role", "model", "precision", "MB", "max tokens", "licence", "source")
    for manifest in manifests:
        for role, name in manifest.roles.items():
            model = manifest.models[name]
            size = f"{model.bytes / 1e6:.1f}"
            table.add_row(
                manifest.name,
                role,
                name,
                model.precision,
                size,
                str(model.max_tokens),
                model.source.license,
                model.source.name,
            )
    out.print(table)


@models_app.command("verify")
@_command
def models_verify(pack: PackOption = None, as_json: AsJson = False) -> None:
    """Check every file of a pack against its hash, then run its golden rows on this machine.

    Ends with 2 if a file is missing, changed or truncated, or scores differ.
    """
    from guardrail_service.inference.pack import load_pack, resolve
    from guardrail_service.resources import packs_dir
    from guardrail_service.runtime import open_sessions, run_golden

    settings = _settings(model_pack=pack)
    loaded = load_pack(resolve(settings.model_pack, packs_dir()))
    sessions = open_sessions(loaded)
    with err.status("running golden rows"):
        reports = run_golden(loaded, sessions, settings.workers)
    if as_json:
        rows = {role: report._asdict() for role, report in reports.items()}
        out.print_json(json.dumps({"pack": loaded.name, "golden": rows}))
        return
    for role, report in reports.items():
        out.print(
            f"[green]ok[/green] {loaded.name}/{role}: files match the manifest; "
            f"{report.rows} golden rows, largest difference {report.worst:.6f} "
            f"(tolerance {report.tolerance})"
        )


@bench_app.command("start")
@_command
def bench_start(
    runs: Annotated[int, typer.Option(min=1, help="How many starts to measure.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Measure start-to-ready seconds and resident memory of `guardrail serve`."""
    from guardrail_service.bench import start

    report = start.run(runs)
    if as_json:
        out.print_json(json.dumps(report))
    else:
        out.print(start.render(report))


@bench_app.command("patterns")
@_command
def bench_patterns(
    repeats: Annotated[int, typer.Option(min=1, help="Scans per text; the median counts.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Measure the pattern engines: microseconds per KB on natural, encoded and hostile text."""
    from guardrail_service.bench import patterns

    rows = patterns.run(repeats)
    if as_json:
        out.print_json(json.dumps([asdict(row) for row in rows]))
    else:
        patterns.render(rows, out)


@bench_app.command("quality")
@_command
def bench_quality(
    task: Annotated[str, typer.Option(help="pii, secrets or grounding.")],
    data: Annotated[Path, typer.Option(help="Labelled JSON lines, also .gz; see docs/quality.md.")],
    pack: PackOption = None,
    as_json: AsJson = False,
) -> None:
    """Measure a detector on labelled data, with intervals and a baseline beside it.

    Records: {"text", "spans"} for pii and secrets; {"premise", "hypothesis", "supported"} or
    {"contexts", "question", "answer", "supported"} for grounding.
    """
    if not data.is_file():
        raise ConfigurationError(str(data), "no such file", "labelled JSON lines")
    with err.status("measuring"):
        text, table = _quality(task, data, pack)
    if as_json:
        out.print_json(text)
    else:
        table()


def _quality(task: str, data: Path, pack: str | None) -> tuple[str, Callable[[], None]]:
    """Return a report as JSON, and what prints it for people."""
    from guardrail_service.bench import grounding_quality, quality
    from guardrail_service.bench.tasks import TASKS

    if task == "grounding":
        measured = grounding_quality.run(data, pack)
        return json.dumps(measured), lambda: out.print(grounding_quality.render(measured))
    if task not in TASKS:
        tasks = ", ".join((*sorted(TASKS), "grounding"))
        raise ConfigurationError("--task", repr(task), f"one of {tasks}")
    report = quality.run(task, data)
    return report.as_json(), lambda: quality.render(report, out)


if __name__ == "__main__":
    main()
