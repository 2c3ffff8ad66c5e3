"""The commands under `guardrail bench`; `component_commands` has those about one part alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, get_args

import typer

from guardrail_bench.component_commands import (
    bench_models,
    bench_patterns,
    bench_quality,
    bench_stream,
)
from guardrail_bench.output import check_page, ended_by_sigterm, steps_bar
from guardrail_service.commands.console import AsJson, Configs, PackOption, command, out
from guardrail_service.errors import ConfigurationError

Json = Annotated[
    Path | None, typer.Option("--json", help="Write the report here as JSON; - prints it.")
]
Doc = Annotated[
    Path | None,
    typer.Option(help="Markdown page whose tables to rewrite; plots go to images/ beside it."),
]
Texts = Annotated[
    Path | None,
    typer.Option(help="JSON lines with contexts and question to build samples from."),
]
Seed = Annotated[int, typer.Option(min=0, help="Another seed gives other samples.")]


bench_app = typer.Typer(
    add_completion=False, help="Measure speed, memory and quality.", no_args_is_help=True
)


@bench_app.command("latency")
@command
def bench_latency(
    scenario: Annotated[
        list[str] | None, typer.Option(help="chat, rag or report; repeatable. All if unset.")
    ] = None,
    passages: Annotated[
        list[str] | None, typer.Option(help="cold or warm; repeatable. Both if unset.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long each load lasts.")] = 20,
    requests: Annotated[
        int, typer.Option(min=1, help="Let open loops run up to four times as long for so many.")
    ] = 60,
    concurrency: Annotated[str, typer.Option(help="Callers of the closed loops.")] = "1,8,32",
    load: Annotated[
        str, typer.Option(help="Offered loads of the open loops, in percent of capacity.")
    ] = "50,70,90,150,300",
    deadline_ms: Annotated[
        float | None,
        typer.Option(min=1, help="Deadline where there is one; unset: 5 x the p50 of one caller."),
    ] = None,
    soak: Annotated[int, typer.Option(min=0, help="Send this many requests and watch memory.")] = 0,
    soak_only: Annotated[bool, typer.Option(help="Only the soak, no loads.")] = False,
    workers: Annotated[
        int, typer.Option(min=1, help="How many model runs take place at the same time.")
    ] = 1,
    server_cores: Annotated[
        str | None, typer.Option(help="Cores of the service; `any`: not pinned. Unset: the first.")
    ] = None,
    generator_cores: Annotated[
        str | None, typer.Option(help="Cores of the generator. Unset: the second.")
    ] = None,
    seed: Seed = 17,
    texts: Texts = None,
    config: Configs = None,
    pack: PackOption = None,
    json_file: Json = None,
    resume: Annotated[
        bool, typer.Option(help="Keep what the JSON file has; measure what it lacks.")
    ] = False,
    doc: Doc = None,
) -> None:
    """Measure latency, throughput and memory of a service under load, and judge the targets.

    Starts `guardrail serve` on one core and sends load from another: 1, 8 and 32 callers, then
    arrivals at shares of the capacity found. All takes about 30 minutes; a soak of
    20,000 about 10 more. Every finished part is in the JSON file at once; --resume goes on with it.
    """
    from guardrail_bench import latency_report
    from guardrail_bench.latency import LatencyPlan, run
    from guardrail_bench.latency_results import LatencySettings, read_report, write_report
    from guardrail_bench.samples import SCENARIOS, Passages, default_texts_file
    from guardrail_bench.server import chosen_cores, default_cores

    first, second = default_cores()
    settings = LatencySettings(
        concurrency=tuple(sorted(_numbers("--concurrency", concurrency))),
        loads=_numbers("--load", load),
        seconds=seconds,
        least_requests=requests,
        workers=workers,
        server_cores=chosen_cores("--server-cores", server_cores, first),
        generator_cores=chosen_cores("--generator-cores", generator_cores, second),
        deadline_ms=deadline_ms,
        seed=seed,
        texts=_relative(texts or default_texts_file()),
        config=tuple(str(path) for path in config or ()),
        pack=pack,
    )
    chosen = () if soak_only else _chosen("--scenario", scenario, tuple(SCENARIOS))
    kinds = _chosen("--passages", passages, get_args(Passages))
    plan = LatencyPlan(settings, chosen, kinds, soak)  # type: ignore[arg-type]  # just checked
    to_file = json_file if json_file is not None and str(json_file) != "-" else None
    if resume and to_file is None:
        raise ConfigurationError("--resume", "no file", "--json FILE to go on with")
    previous = read_report(to_file) if resume and to_file and to_file.exists() else None
    if doc is not None:
        check_page(doc, latency_report.PART)
    with ended_by_sigterm(), steps_bar(plan.steps()) as note:
        report = run(plan, previous, lambda r: write_report(r, to_file) if to_file else None, note)
    latency_report.publish(report, json_file, doc)


def _relative(path: Path) -> str:
    """Return a path as seen from here where it lies below, so that reports name no machine."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    """Return the numbers of a list such as `1,8,32`.

    Raises:
        ConfigurationError: If it is not a list of distinct positive integers.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigurationError(option, repr(text), "positive numbers such as 1,8,32")
    return tuple(dict.fromkeys(int(part) for part in parts))


def _chosen(option: str, given: list[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
    for name in given or ():
        if name not in known:
            raise ConfigurationError(option, repr(name), f"one of {', '.join(known)}")
    return tuple(dict.fromkeys(given or known))


@bench_app.command("peers")
@command
def bench_peers(
    python: Annotated[
        Path, typer.Option(help="Interpreter that has torch and sentence-transformers.")
    ] = Path(".venv-export/bin/python"),
    scenario: Annotated[str, typer.Option(help="chat, rag or report.")] = "rag",
    samples: Annotated[int, typer.Option(min=1, help="How many; each cold and warm.")] = 20,
    workers: Annotated[
        int, typer.Option(min=1, help="How many model runs take place at the same time.")
    ] = 2,
    seed: Seed = 17,
    texts: Texts = None,
    config: Configs = None,
    pack: PackOption = None,
    json_file: Json = None,
    doc: Doc = None,
) -> None:
    """Measure the service beside the torch pipeline one would otherwise write, as ratios.

    Needs requirements/export.txt and peers.txt in the interpreter given by --python. The
    default 20 samples of typical RAG take about four minutes.
    """
    from guardrail_bench import peers
    from guardrail_bench.samples import SCENARIOS, default_texts_file

    (chosen,) = _chosen("--scenario", [scenario], tuple(SCENARIOS))
    if doc is not None:
        check_page(doc, peers.PART)
    plan = peers.PeersPlan(
        chosen,
        samples,
        python,
        workers,
        seed,
        texts or default_texts_file(),
        tuple(config or ()),
        pack,
    )
    with ended_by_sigterm(), steps_bar(plan.steps()) as note:
        report = peers.run(plan, note)
    peers.publish(report, json_file, doc)


@bench_app.command("stages")
@command
def bench_stages(
    scenario: Annotated[str, typer.Option(help="chat, rag or report.")] = "rag",
    samples: Annotated[int, typer.Option(min=1, help="How many; each cold and warm.")] = 50,
    seed: Seed = 17,
    texts: Texts = None,
    config: Configs = None,
    pack: PackOption = None,
    json_file: Json = None,
    doc: Doc = None,
) -> None:
    """Measure where the time of one check goes, part by part, in this process.

    Everything runs one after another on one thread, without HTTP and queue, so that the parts can
    be added up. The default takes about half a minute.
    """
    from guardrail_bench import stages
    from guardrail_bench.samples import SCENARIOS, default_texts_file

    (chosen,) = _chosen("--scenario", [scenario], tuple(SCENARIOS))
    if doc is not None:
        check_page(doc, stages.PART, has_plots=False)
    source = texts or default_texts_file()
    plan = stages.StagesPlan(chosen, samples, seed, source, tuple(config or ()), pack)
    with steps_bar(plan.steps()) as note:
        report = stages.run(plan, note)
    stages.publish(report, json_file, doc)


@bench_app.command("start")
@command
def bench_start(
    runs: Annotated[int, typer.Option(min=1, help="How many starts to measure.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Measure start-to-ready seconds and resident memory of `guardrail serve`."""
    from guardrail_bench import server

    report = server.measure_starts(runs)
    if as_json:
        out.print_json(json.dumps(report))
    else:
        out.print(server.render_starts(report))


for name, part in (
    ("patterns", bench_patterns),
    ("models", bench_models),
    ("stream", bench_stream),
    ("quality", bench_quality),
):
    bench_app.command(name)(part)
