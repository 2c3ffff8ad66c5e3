"""The `guardrail` command. Parses options, calls one function each, prints what it returns."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from guardrail_service import __version__
from guardrail_bench.commands import add_bench_commands
from guardrail_service.console import (
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
    settings_from,
)
from guardrail_service.errors import ConfigurationError
from guardrail_models.commands import models_app
from guardrail_offline.calibration.commands import calibrate_app
from guardrail_offline.commands import add_commands

app = typer.Typer(
    help="Guardrail for RAG answers: is it grounded, on topic, safe to show?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
config_app = typer.Typer(help="Look at guardrail configurations.", no_args_is_help=True)
bench_app = typer.Typer(help="Measure speed, memory and quality.", no_args_is_help=True)
app.add_typer(config_app, name="config")
app.add_typer(models_app, name="models")
app.add_typer(bench_app, name="bench")
app.add_typer(calibrate_app, name="calibrate")
add_commands(app)
add_bench_commands(bench_app)


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
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
) -> None:
    """Serve the HTTP API. Every option is also an environment variable GUARDRAIL_<NAME>.

    SIGTERM finishes running checks and stops; SIGHUP reads the configurations again.
    """
    from guardrail_service.serve import serve as run

    settings = settings_from(
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
@command
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
    settings = settings_from(config=tuple(config or ()), model_pack=pack, workers=workers)
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
def _progress(total: int, doing: str = "checking") -> Iterator[Callable[..., None]]:
    """Show a bar on a terminal's standard error; elsewhere nothing."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (doing, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done=1: progress.advance(task, done)


@app.command()
@command
def warm(
    corpus: Annotated[
        list[Path],
        typer.Argument(help="JSON lines (.jsonl), or text with blank lines between passages."),
    ],
    url: Annotated[str | None, typer.Option(help="A running service to send them to.")] = None,
    api_key: Annotated[
        str | None, typer.Option(envvar="GUARDRAIL_API_KEY", help="Its bearer key.")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Without --url: the store to fill, see GUARDRAIL_STORE.")
    ] = None,
    config: Configs = None,
    pack: PackOption = None,
    workers: WorkersOption = None,
    as_json: AsJson = False,
) -> None:
    """Compute ahead what the models need of a corpus, so that its passages cost nothing later.

    A line of JSON is a text, an object with "text", or a /v1/check body with "contexts".
    """
    from guardrail_service.warm import chunks, into_store, through_service
    from guardrail_service.warm import warm as fill

    total = sum(file.stat().st_size for file in corpus if file.is_file())
    settings = settings_from(
        store=store, config=tuple(config or ()), model_pack=pack, workers=workers
    )
    target = through_service(url, api_key) if url else into_store(settings)
    with target as send, _progress(total, "warming") as advance:
        report = fill(chunks(corpus), send, advance)
    if as_json:
        out.print_json(json.dumps(report._asdict()))
    else:
        out.print(
            f"{report.passages} passages: {report.new} sentences computed, {report.known} known, "
            f"{report.failed} failed"
        )


@config_app.command("check")
@command
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

    serving = serving_for(
        load_pack(resolve(settings_from(model_pack=pack).model_pack, packs_dir()))
    )
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
        out.print(f"  [yellow]warning[/yellow] {plain(warning)}")
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


@bench_app.command("start")
@command
def bench_start(
    runs: Annotated[int, typer.Option(min=1, help="How many starts to measure.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Measure start-to-ready seconds and resident memory of `guardrail serve`."""
    from guardrail_bench import start

    report = start.run(runs)
    if as_json:
        out.print_json(json.dumps(report))
    else:
        out.print(start.render(report))


@bench_app.command("patterns")
@command
def bench_patterns(
    repeats: Annotated[int, typer.Option(min=1, help="Scans per text; the median counts.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Measure the pattern engines: microseconds per KB on natural, encoded and hostile text."""
    from guardrail_bench import patterns

    rows = patterns.run(repeats)
    if as_json:
        out.print_json(json.dumps([asdict(row) for row in rows]))
    else:
        patterns.render(rows, out)


@bench_app.command("models")
@command
def bench_models(
    folder: Annotated[Path, typer.Option(help="Where to work and to keep what was measured.")],
    only: Annotated[
        list[str] | None, typer.Option(help="Architecture by model name, repeatable.")
    ] = None,
    quantise: Annotated[list[str] | None, typer.Option(help="Precision, repeatable.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One round instead of seven.")] = False,
    build_only: Annotated[
        bool, typer.Option("--build-only", help="Build what lacks and measure nothing.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Measure again what was measured or refused.")
    ] = False,
    pack: PackOption = None,
    doc: Annotated[
        Path | None,
        typer.Option(help="Markdown page whose table to rewrite; its plot goes to images/ beside."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure every real-size architecture in every precision: speed, load time, memory, disk.

    Needs the extra `bench`, and `export` to build; weights are random. Packs stay in FOLDER/packs.
    What FOLDER already holds is neither built nor measured again. The shipped pack's encoder, or
    that of --pack, is measured beside them.
    """
    from guardrail_bench import models, models_report
    from guardrail_bench.commands import check_page
    from guardrail_bench.document import replace_part
    from guardrail_service.inference.pack import resolve
    from guardrail_models import timing_packs
    from guardrail_service.resources import packs_dir

    recipes, hows = timing_packs.chosen(only or ()), timing_packs.quantisations(quantise or ())
    rounds = 1 if quick else models.ROUNDS
    results = models.read_results(folder)
    if doc is not None:
        check_page(doc, models_report.PART)
    chosen = settings_from(model_pack=pack).model_pack
    with err.status("measuring") as status:
        if (again or chosen not in results) and not build_only:
            shipped = resolve(chosen, packs_dir())
            results[chosen] = models.measured_apart(shipped, "embedding", rounds)
            models.keep(folder, results)
        for recipe in recipes:
            status.update(f"building {recipe.name}")
            left = [how for how in hows if again or f"{recipe.name} {how}" not in results]
            for how, built in timing_packs.build(recipe, folder, left).items():
                if build_only and isinstance(built, Path):
                    continue
                status.update(f"measuring {recipe.name} {how}")
                cost = models.cost_of(built, recipe.name, recipe.role, how, rounds)
                results[f"{recipe.name} {how}"] = cost
                models.keep(folder, results)
    if as_json:
        out.print_json(json.dumps(results))
    else:
        out.print(models.render(results))
    if doc is not None:
        models_report.plot(results, doc.parent / "images" / models_report.PLOT)
        replace_part(doc, models_report.PART, models_report.markdown(results, "images"))


@bench_app.command("stream")
@command
def bench_stream(
    repeats: Annotated[int, typer.Option(min=1, help="Streams per kind of text.")] = 10,
    policy: Annotated[
        str | None, typer.Option(help="A loaded policy; the default if unset.")
    ] = None,
    config: Configs = None,
    pack: PackOption = None,
    workers: WorkersOption = None,
    as_json: AsJson = False,
) -> None:
    """Measure streams: characters held back, and milliseconds that judging a part adds."""
    from guardrail_bench import stream
    from guardrail_service.runtime import Runtime

    settings = settings_from(config=tuple(config or ()), model_pack=pack, workers=workers)
    streams = len(stream.TEXTS) * (repeats + 1)
    with closing(Runtime(settings)) as runtime, _progress(streams) as advance:
        rows = stream.run(repeats, policy, advance, runtime)
    if as_json:
        out.print_json(json.dumps([asdict(row) for row in rows]))
    else:
        out.print(stream.render(rows))


@bench_app.command("quality")
@command
def bench_quality(
    task: Annotated[str, typer.Option(help="pii, secrets, grounding, toxicity or bias.")],
    data: Annotated[Path, typer.Option(help="Labelled JSON lines, also .gz; see docs/quality.md.")],
    baseline_data: Annotated[
        list[Path] | None,
        typer.Option(help="Texts to train toxicity's and bias's linear baseline on; repeatable."),
    ] = None,
    pack: PackOption = None,
    as_json: AsJson = False,
) -> None:
    """Measure a detector on labelled data, with intervals and a baseline beside it.

    Records: {"text", "spans"} for pii and secrets; {"premise", "hypothesis", "supported"} or
    {"contexts", "question", "answer", "supported"} for grounding; {"text", "labels": {...}} or
    {"text", "label"} for toxicity and bias.
    """
    for path in (data, *(baseline_data or ())):
        if not path.is_file():
            raise ConfigurationError(str(path), "no such file", "labelled JSON lines")
    with err.status("measuring"):
        text, table = _quality(task, data, pack, baseline_data or [])
    if as_json:
        out.print_json(text)
    else:
        table()


def _quality(
    task: str, data: Path, pack: str | None, baseline_data: list[Path]
) -> tuple[str, Callable[[], None]]:
    """Return a report as JSON, and what prints it for people."""
    from guardrail_bench import grounding_quality, quality, safety_quality
    from guardrail_bench.tasks import TASKS

    if task in safety_quality.TASKS:
        safety = safety_quality.run(task, data, pack, baseline_data)
        return json.dumps(safety), lambda: out.print(safety_quality.render(safety))

    if task == "grounding":
        measured = grounding_quality.run(data, pack)
        return json.dumps(measured), lambda: out.print(grounding_quality.render(measured))
    if task not in TASKS:
        tasks = ", ".join((*sorted(TASKS), "grounding", *safety_quality.TASKS))
        raise ConfigurationError("--task", repr(task), f"one of {tasks}")
    report = quality.run(task, data)
    return report.as_json(), lambda: quality.render(report, out)


if __name__ == "__main__":
    main()
