"""The commands of `guardrail bench` about one part: patterns, models, streams, quality."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from guardrail_bench.output import check_page, replace_part
from guardrail_service.commands.console import (
    AsJson,
    Configs,
    PackOption,
    WorkersOption,
    command,
    err,
    out,
    progress_bar,
    settings_from,
)
from guardrail_service.errors import ConfigurationError, MissingExtra


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


@command
def bench_models(
    folder: Annotated[Path, typer.Option(help="Where to work and to keep what was measured.")],
    only: Annotated[
        list[str] | None, typer.Option(help="Architecture by model name, repeatable.")
    ] = None,
    quantise: Annotated[list[str] | None, typer.Option(help="Precision, repeatable.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One round instead of seven.")] = False,
    build_only: Annotated[
        bool, typer.Option("--build-only", help="Build what is missing and measure nothing.")
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

    Building needs rag-guardrail-models[export]; weights are random. Packs stay in FOLDER/packs.
    What FOLDER already holds is neither built nor measured again. The shipped pack's encoder, or
    that of --pack, is measured beside them.
    """
    from guardrail_bench import model_cost

    try:
        from guardrail_models import timing_packs
    except ImportError as error:
        raise MissingExtra("rag-guardrail-models[export]") from error
    from guardrail_service.inference.pack import resolve
    from guardrail_service.resources import packs_dir

    recipes, hows = timing_packs.chosen(only or ()), timing_packs.quantisations(quantise or ())
    rounds = 1 if quick else model_cost.ROUNDS
    results = model_cost.read_results(folder)
    if doc is not None:
        check_page(doc, model_cost.PART)
    chosen = settings_from(model_pack=pack).model_pack
    with err.status("measuring") as status:
        if (again or chosen not in results) and not build_only:
            shipped = resolve(chosen, packs_dir())
            results[chosen] = model_cost.measured_apart(shipped, "embedding", rounds)
            model_cost.keep(folder, results)
        for recipe in recipes:
            status.update(f"building {recipe.name}")
            left = [how for how in hows if again or f"{recipe.name} {how}" not in results]
            for how, built in timing_packs.build(recipe, folder, left).items():
                if build_only and isinstance(built, Path):
                    continue
                status.update(f"measuring {recipe.name} {how}")
                cost = model_cost.cost_of(built, recipe.name, recipe.role, how, rounds)
                results[f"{recipe.name} {how}"] = cost
                model_cost.keep(folder, results)
    if as_json:
        out.print_json(json.dumps(results))
    else:
        out.print(model_cost.render(results))
    if doc is not None:
        model_cost.plot(results, doc.parent / "images" / model_cost.PLOT)
        replace_part(doc, model_cost.PART, model_cost.markdown(results, "images"))


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
    from guardrail_bench import stream_delay
    from guardrail_service.server.runtime import Runtime

    settings = settings_from(config=tuple(config or ()), model_pack=pack, workers=workers)
    streams = len(stream_delay.TEXTS) * (repeats + 1)
    with closing(Runtime(settings)) as runtime, progress_bar(streams) as advance:
        rows = stream_delay.run(repeats, policy, advance, runtime)
    if as_json:
        out.print_json(json.dumps([asdict(row) for row in rows]))
    else:
        out.print(stream_delay.render(rows))


@command
def bench_quality(
    task: Annotated[str, typer.Option(help="pii, secrets, grounding, toxicity or bias.")],
    data: Annotated[
        Path,
        typer.Option(
            help="Labelled JSON lines, also .gz; for grounding also a folder with a file a source; "
            "see docs/quality.md."
        ),
    ],
    baseline_data: Annotated[
        list[Path] | None,
        typer.Option(help="Texts to train toxicity's and bias's linear baseline on; repeatable."),
    ] = None,
    pack: PackOption = None,
    against: Annotated[
        str | None, typer.Option(help="For a folder: a second pack to compare with.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=40, help="For a folder: records of each source at most.")
    ] = 400,
    scores: Annotated[
        Path | None,
        typer.Option(help="For a folder: where to keep scores, so that none is computed twice."),
    ] = None,
    doc: Annotated[
        Path | None, typer.Option(help="For a folder: Markdown page whose part to rewrite.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a detector on labelled data, with intervals and a baseline beside it.

    Records: {"text", "spans"} for pii and secrets; {"premise", "hypothesis", "supported"} or
    {"contexts", "question", "answer", "supported"} for grounding; {"text", "labels": {...}} or
    {"text", "label"} for toxicity and bias.
    """
    if task == "grounding" and data.is_dir():
        _quality_of_sources(data, pack, against, limit, scores, doc, as_json)
        return
    for path in (data, *(baseline_data or ())):
        if not path.is_file():
            raise ConfigurationError(str(path), "no such file", "labelled JSON lines")
    with err.status("measuring"):
        text, table = _quality(task, data, pack, baseline_data or [])
    if as_json:
        out.print_json(text)
    else:
        table()


def _quality_of_sources(
    folder: Path,
    pack: str | None,
    against: str | None,
    limit: int,
    kept: Path | None,
    doc: Path | None,
    as_json: bool,
) -> None:
    from guardrail_bench import grounding_sources_report

    if doc is not None:
        check_page(doc, grounding_sources_report.PART, has_plots=False)
    with err.status("measuring"):
        report = grounding_sources_report.run(folder, pack, against, limit, kept)
    if doc is not None:
        replace_part(doc, grounding_sources_report.PART, grounding_sources_report.markdown(report))
    if as_json:
        out.print_json(json.dumps(report))
    else:
        out.print(*grounding_sources_report.render(report))


def _quality(
    task: str, data: Path, pack: str | None, baseline_data: list[Path]
) -> tuple[str, Callable[[], None]]:
    """Return a report as JSON, and what prints it for people."""
    from guardrail_bench import grounding_quality, safety_quality, span_quality

    if task in safety_quality.TASKS:
        safety = safety_quality.run(task, data, pack, baseline_data)
        return json.dumps(safety), lambda: out.print(safety_quality.render(safety))

    if task == "grounding":
        measured = grounding_quality.run(data, pack)
        return json.dumps(measured), lambda: out.print(grounding_quality.render(measured))
    if task not in span_quality.TASKS:
        tasks = ", ".join((*sorted(span_quality.TASKS), "grounding", *safety_quality.TASKS))
        raise ConfigurationError("--task", repr(task), f"one of {tasks}")
    report = span_quality.run(task, data)
    return report.as_json(), lambda: span_quality.render(report, out)
