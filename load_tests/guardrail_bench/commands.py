"""The commands under `guardrail bench`: a service under load, its parts alone, and quality."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, get_args

import typer

from guardrail_bench.output import (
    check_page,
    ended_by_sigterm,
    publish_tables,
    replace_part,
    steps_bar,
)
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
    seconds: Annotated[float, typer.Option(min=1, help="Seconds each load lasts.")] = 20,
    requests: Annotated[
        int,
        typer.Option(min=1, help="Requests per open loop; it may run four times as long for them."),
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
    workers: Annotated[int, typer.Option(min=1, help="Model runs at the same time.")] = 1,
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
    arrivals at shares of the capacity found. All of it takes about 30 minutes; a soak of
    20,000 about 10 more. Every finished part is in the JSON file at once; --resume goes on with it.
    """
    from guardrail_bench import latency_report, stages
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
    if str(json_file) != "-":
        few = stages.StagesPlan(
            "chat", 4, seed, texts or default_texts_file(), tuple(config or ()), pack
        )
        out.print(stages.budgets_line(stages.run(few, lambda _: None)))


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
        Path | None,
        typer.Option(
            help="Interpreter that has torch and sentence-transformers. Unset: .venv-export's; "
            "none with --against."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="The `guardrail` command of another version, to compare with."),
    ] = None,
    scenario: Annotated[str, typer.Option(help="chat, rag or report.")] = "rag",
    samples: Annotated[int, typer.Option(min=1, help="How many; each cold and warm.")] = 20,
    workers: Annotated[int, typer.Option(min=1, help="Model runs at the same time.")] = 2,
    seed: Seed = 17,
    texts: Texts = None,
    config: Configs = None,
    pack: PackOption = None,
    json_file: Json = None,
    doc: Doc = None,
) -> None:
    """Measure the service beside the torch pipeline one would otherwise write, as ratios.

    Needs requirements/export.txt and peers.txt in the interpreter given by --python. The
    default 20 samples of typical RAG take about four minutes; beside another version alone, whose
    processor time is compared as well, half a minute.
    """
    from guardrail_bench import peers
    from guardrail_bench.samples import SCENARIOS, default_texts_file

    (chosen,) = _chosen("--scenario", [scenario], tuple(SCENARIOS))
    if doc is not None:
        check_page(doc, peers.PART if python or not against else peers.AGAINST_PART)
    pipelines = python if python or against else Path(".venv-export/bin/python")
    plan = peers.PeersPlan(
        chosen,
        samples,
        pipelines,
        workers,
        seed,
        texts or default_texts_file(),
        tuple(config or ()),
        pack,
        against,
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


@bench_app.command("scenarios")
@command
def bench_scenarios(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="hostile, callers, slow, headers, burst, mixed or kinds; all if none."),
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="A few seconds each, outcomes only: no times.")
    ] = False,
    json_file: Json = None,
    doc: Doc = None,
) -> None:
    """Send what hostile callers send, and tell whether anybody else is worse off.

    Starts a service of its own on 127.0.0.1 for each scenario; all take about five minutes. Ends
    with 1 if somebody got no answer or a wrong one; times are shown and not judged by the status.
    """
    from guardrail_bench import scenarios

    chosen = _chosen("scenarios", names, tuple(scenarios.SCENARIOS))
    if doc is not None:
        check_page(doc, scenarios.PART, has_plots=False)
    with ended_by_sigterm(), steps_bar(len(chosen)) as note:
        report = scenarios.run(chosen, is_short=short, note=note)
    scenarios.publish(report, json_file, doc)
    if any(found.met is False and not found.is_time for found in report.results):
        raise typer.Exit(1)


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


@bench_app.command("growth")
@command
def bench_growth(
    seconds: Annotated[float, typer.Option(min=1, help="Seconds each load lasts.")] = 10,
    checks: Annotated[int, typer.Option(min=2, help="Checks of each size.")] = 12,
    seed: Seed = 17,
    texts: Texts = None,
    json_file: Json = None,
    doc: Doc = None,
) -> None:
    """Measure how cost grows with passages, words and rows, and rates with callers and cores."""
    from guardrail_bench import growth
    from guardrail_bench.samples import default_texts_file, read_texts

    if doc is not None:
        check_page(doc, growth.PART)
    sentences = read_texts(texts or default_texts_file())
    with ended_by_sigterm(), steps_bar(growth.steps()) as note:
        report = growth.run(sentences, seconds, checks, seed, note)
    publish_tables(report.model_dump_json(indent=1), growth.tables(report), json_file)
    if doc is not None:
        image = doc.parent / "images" / "growth.png"
        replace_part(doc, growth.PART, growth.markdown(report, image))


@bench_app.command("replicas")
@command
def bench_replicas(
    rate: Annotated[
        list[float] | None, typer.Option(min=0.001, help="Checks per second; repeatable.")
    ] = None,
    p99_ms: Annotated[
        list[float] | None, typer.Option("--p99-ms", min=1, help="Targets; repeatable.")
    ] = None,
    mix: Annotated[
        list[str] | None,
        typer.Option(help="Kind and weight, as in rag:warm=3; repeatable."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds each load lasts.")] = 30,
    seed: Seed = 17,
    texts: Texts = None,
    json_file: Json = None,
    doc: Doc = None,
) -> None:
    """Say how many replicas of one core keep p99 within a target, by simulating their queues.

    Measures here what the checks of the mix cost, and the service under 50, 70 and 90 % of what
    one replica can bear beside the simulation of the same arrivals. Where those differ, believe
    neither.
    """
    from guardrail_bench import replicas
    from guardrail_bench.samples import default_texts_file, read_texts

    if doc is not None:
        check_page(doc, replicas.PART)
    shares = replicas.parse_mix(mix or ("chat:warm=5", "rag:warm=3", "rag:cold=2"))
    rates, targets = rate or (1, 5, 20, 100), p99_ms or (1000, 2000)
    sentences = read_texts(texts or default_texts_file())
    with ended_by_sigterm(), steps_bar(replicas.steps(shares, rates)) as note:
        report = replicas.run(sentences, shares, rates, targets, seconds, seed, note)
    publish_tables(report.model_dump_json(indent=1), replicas.tables(report), json_file)
    if doc is not None:
        image = doc.parent / "images" / "replicas.png"
        replace_part(doc, replicas.PART, replicas.markdown(report, image))


@bench_app.command("patterns")
@command
def bench_patterns(
    repeats: Annotated[int, typer.Option(min=1, help="Scans per text; the median counts.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Measure the pattern engines: microseconds per KB on natural, encoded and hostile text."""
    from guardrail_bench import components

    rows = components.run_patterns(repeats)
    if as_json:
        out.print_json(json.dumps([asdict(row) for row in rows]))
    else:
        components.render_patterns(rows, out)


@bench_app.command("judge")
@command
def bench_judge(
    count: Annotated[int, typer.Option(min=1, help="Questions of each way.")] = 500,
    as_json: AsJson = False,
) -> None:
    """Measure our own processor time per question to a judge: asked, kept, remembered."""
    from guardrail_bench import judge_cost

    rows = judge_cost.run(count)
    if as_json:
        out.print_json(json.dumps([asdict(row) for row in rows]))
    else:
        judge_cost.render(rows, out)


@bench_app.command("models")
@command
def bench_models(
    folder: Annotated[Path, typer.Option(help="Folder for packs and measurements.")],
    only: Annotated[
        list[str] | None, typer.Option(help="Architecture by model name, repeatable.")
    ] = None,
    quantise: Annotated[list[str] | None, typer.Option(help="Precision, repeatable.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One round instead of seven.")] = False,
    build_only: Annotated[
        bool, typer.Option("--build-only", help="Build what is missing and measure nothing.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Measure again, even if FOLDER has the result.")
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
    Anything that FOLDER already holds is neither built nor measured again. The shipped pack's
    encoder, or that of --pack, is measured beside them.
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


@bench_app.command("decisions")
@command
def bench_decisions(
    texts: Annotated[
        list[str] | None, typer.Option(help="none, redacted or full; repeatable.")
    ] = None,
    scenario: Annotated[str, typer.Option(help="chat, rag or report.")] = "chat",
    turns: Annotated[int, typer.Option(min=4, help="Turns of each service.")] = 20,
    checks: Annotated[int, typer.Option(min=1, help="Checks of a turn.")] = 20,
) -> None:
    """Measure the processor time that keeping decisions adds to a check, in alternating turns."""
    from guardrail_bench import decision_cost

    modes = _chosen("--texts", texts, ("none", "redacted", "full"))
    with progress_bar(turns) as advance:
        costs = decision_cost.measure(modes, scenario, turns, checks, advance)
    out.print(decision_cost.render(costs))


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
    from guardrail_bench import components
    from guardrail_service.server.runtime import Runtime

    settings = settings_from(config=tuple(config or ()), model_pack=pack, workers=workers)
    streams = len(components.STREAMED) * (repeats + 1)
    with closing(Runtime(settings)) as runtime, progress_bar(streams) as advance:
        rows = components.run_streams(repeats, policy, advance, runtime)
    if as_json:
        out.print_json(json.dumps([asdict(row) for row in rows]))
    else:
        out.print(components.render_streams(rows))


@bench_app.command("guarding")
@command
def bench_guarding(
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="default, strict, observe or a guardrail file; repeatable. All if unset."
        ),
    ] = None,
    sealed: Annotated[
        bool,
        typer.Option("--sealed", help="Score the sealed half, without its texts; this is counted."),
    ] = False,
    failures: Annotated[
        bool, typer.Option("--failures", help="List wrong outcomes; of the open half with texts.")
    ] = False,
    corpus: Annotated[
        Path | None, typer.Option(help="Folder of the corpus; the project's own if unset.")
    ] = None,
    pack: PackOption = None,
    json_file: Json = None,
    doc: Annotated[Path | None, typer.Option(help="Markdown page whose part to rewrite.")] = None,
) -> None:
    """Measure policies on bad and good answers: what is stopped, what is shown unchanged.

    A bad answer counts as stopped where it is blocked, or redacted where that is the right outcome;
    a good one as shown where its reader gets every character. There is no deadline.
    """
    from guardrail_bench import guarding, guarding_report

    if doc is not None:
        check_page(doc, guarding_report.part(sealed), has_plots=False)
    policies = guarding.policy_files(policy or guarding.SHIPPED)
    folder = corpus or guarding.default_corpus()
    cases, openings = guarding.cases_of(folder, list(policies), sealed=sealed)
    listed: guarding.Listed = "none" if not failures else "ids" if sealed else "texts"
    with progress_bar(len(cases) * len(policies)) as advance:
        report = guarding.run(policies, cases, pack, advance, listed)
    guarding_report.publish({**report, "openings": openings}, json_file, doc)


@bench_app.command("grades")
@command
def bench_grades(
    out_file: Annotated[Path, typer.Option("--out", help="JSON file to write.")],
    data: Annotated[
        Path | None, typer.Option(help="Folder with grounding, safety, pii and qa.jsonl(.gz).")
    ] = None,
    only_constructed: Annotated[
        bool,
        typer.Option(
            "--only-constructed",
            help="Measure anew only what is right by construction; the rest of --out stays.",
        ),
    ] = False,
    limit: Annotated[int, typer.Option(min=2, help="Rows of each set at most.")] = 160,
    scores: Annotated[
        Path | None, typer.Option(help="Where to keep scores, so that a stopped run goes on.")
    ] = None,
    pack: PackOption = None,
) -> None:
    """Compare the numbers of offline evaluators with labels of people, and with truth.

    The truth is that of examples/grammar: answers that are right or wrong by construction.

    `service/guardrail_offline/evaluators/grades.json` is what this wrote for the pack that ships.
    """
    from guardrail_bench import constructed, evaluator_grades

    chosen = settings_from(model_pack=pack).model_pack
    if data is None and not only_constructed:
        raise ConfigurationError("--data", "nothing", "a folder, or --only-constructed")
    with err.status("measuring"):
        report = json.loads(out_file.read_text("utf-8")) if data is None else (
            evaluator_grades.run(data, limit, scores, chosen)
        )  # fmt: skip
        report["by_construction"] = constructed.measure(chosen)
    out_file.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    out.print(f"{len(report['grades'])} evaluators graded on {len(report['sets'])} sets")


@bench_app.command("quality")
@command
def bench_quality(
    task: Annotated[
        str,
        typer.Option(
            help="pii, secrets, grounding, facts, toxicity, bias, safety or safety-sources."
        ),
    ],
    data: Annotated[
        Path,
        typer.Option(
            help="Labelled JSON lines, also .gz; for grounding also a folder, one file per source; "
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
    {"text", "label"} for toxicity and bias. Facts read a folder as grounding does. Safety reads a
    folder with the functional suite and the neutral answers, and counts flags by class and preset.
    Safety-sources reads a folder with training and development texts, and leaves out each source.
    """
    if task == "safety":
        _quality_of_classes(data, doc, as_json)
        return
    if task == "safety-sources":
        _quality_without_sources(data, pack, limit, doc, as_json)
        return
    if task == "facts":
        _quality_of_facts(data, limit, doc, as_json)
        return
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


def _quality_of_facts(folder: Path, limit: int, doc: Path | None, as_json: bool) -> None:
    from guardrail_bench import facts_quality

    if not folder.is_dir():
        raise ConfigurationError(str(folder), "no folder", "a folder with a file a source")
    if doc is not None:
        check_page(doc, facts_quality.PART, has_plots=False)
    with err.status("measuring"):
        report = facts_quality.run(folder, limit)
    if doc is not None:
        replace_part(doc, facts_quality.PART, facts_quality.markdown(report))
    if as_json:
        out.print_json(json.dumps(report))
    else:
        out.print(facts_quality.render(report))


def _quality_of_classes(folder: Path, doc: Path | None, as_json: bool) -> None:
    from guardrail_bench import safety_classes

    if doc is not None:
        check_page(doc, safety_classes.PART, has_plots=False)
    with err.status("measuring"):
        found = safety_classes.run(folder)
    if doc is not None:
        replace_part(doc, safety_classes.PART, safety_classes.markdown(found))
    if as_json:
        out.print_json(json.dumps([{**asdict(one), "met": one.met} for one in found]))
    else:
        out.print(safety_classes.render(found))


def _quality_without_sources(
    folder: Path, pack: str | None, limit: int, doc: Path | None, as_json: bool
) -> None:
    from guardrail_bench import safety_sources

    if doc is not None:
        check_page(doc, safety_sources.PART, has_plots=False)
    with err.status("measuring"):
        found = safety_sources.run(folder, pack, limit)
    if doc is not None:
        replace_part(doc, safety_sources.PART, safety_sources.markdown(found))
    if as_json:
        out.print_json(json.dumps([asdict(one) for one in found]))
    else:
        out.print(safety_sources.render(found))


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
