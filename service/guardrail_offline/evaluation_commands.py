"""The commands of the offline module beside `calibrate`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from guardrail_offline.judge_options import (
    BackendOption,
    Budget,
    EmbeddingsModel,
    EmbeddingsUrl,
    JudgeFile,
    JudgeFor,
    JudgeKind,
    JudgeMode,
    JudgeModel,
    JudgeStore,
    JudgeTeller,
    JudgeTimeout,
    JudgeUrl,
    LanguageModelName,
    LanguageModelUrl,
    Prices,
    Redact,
    RequestsPerMinute,
    TokensPerMinute,
    backend_choice,
    embeddings_choice,
    judge_lines,
    judge_settings,
    language_model_choice,
    prompts_text,
)
from guardrail_service.commands.console import (
    EXIT_FLAGGED,
    AsJson,
    PackOption,
    command,
    err,
    late_progress_bar,
    out,
    plain,
    settings_from,
)
from guardrail_service.errors import ConfigurationError, MissingExtra

if TYPE_CHECKING:
    from guardrail_offline.datasets.sampled_labs import SampleSize
    from guardrail_offline.datasets.suites import RecordReader
    from guardrail_offline.evaluators.configured import Configured
    from guardrail_offline.runs.bounds import BoundCheck
    from guardrail_offline.runs.execution import Summary
    from guardrail_offline.runs.ray_engine import Cluster
    from guardrail_offline.runs.result_files import ResultLayout
    from guardrail_offline.runs.run_comparison import Comparison

LabArgument = Annotated[
    Path, typer.Argument(help="Lab or suite: .json, .jsonl, .csv, .parquet, a datasets folder.")
]
MapOption = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="FIELD=COLUMN", help="A column's field: answer=my_col."),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder of the results.")]
JUnit = Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML here.")]
MarkdownFile = Annotated[
    Path | None, typer.Option("--summary", help="Write Markdown for a pull request here.")
]
EXIT_INCOMPLETE = 3
"""Something that was asked for has no number; 1 says that a number is bad, 2 that a command is."""
STEP_LIMIT_S = 1800.0
"""Half an hour: only what hangs takes so long for one question."""

evaluators_app = typer.Typer(
    add_completion=False, help="List and describe the offline evaluators.", no_args_is_help=True
)


@evaluators_app.command("list")
@command
def evaluators_list(
    suite: Annotated[
        str | None, typer.Option(help="h2o, ragas, open_rag_eval, ragchecker or trulens.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="rule-based, ngram, semantic-similarity, nli, classifier, ..."),
    ] = None,
    tag: Annotated[
        str | None, typer.Option(help="nist, sr11-7, or one principle such as nist:fair.")
    ] = None,
    problem_type: Annotated[
        str | None, typer.Option(help="accuracy, retrieval, privacy, security, fairness, ...")
    ] = None,
    deterministic: Annotated[
        bool | None,
        typer.Option(
            "--deterministic/--non-deterministic", help="Whether numbers repeat; both if unset."
        ),
    ] = None,
    page: Annotated[
        bool, typer.Option("--markdown", help="Print the page docs/evaluators.md.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List every evaluator: what it measures, what computes it, what it needs.

    The ones that need a judge are listed and marked; they decline until one is configured.
    """
    from guardrail_offline.evaluators.catalogue import CATALOGUE
    from guardrail_offline.evaluators.description import chosen, describe, markdown

    if page:
        typer.echo(markdown(), nl=False)
        return
    _note(map(str, CATALOGUE.load_installed()))
    specs = chosen(
        suite, method=method, tag=tag, problem_type=problem_type, deterministic=deterministic
    )
    if as_json:
        out.print_json(json.dumps([describe(spec) for spec in specs]))
        return
    table = Table(
        "id", "class", "primary metric", "metrics", "inputs", "judge-free", "grade", "suites"
    )
    for about in map(describe, specs):
        first = about["metrics"][0]
        arrow = "up" if first["direction"] == "higher_is_better" else "down"
        table.add_row(
            about["id"],
            about["run_class"],
            f"{first['key']} {arrow}",
            str(len(about["metrics"])),
            " ".join(about["inputs"]),
            about["judge_free"] if about["declines"] is None else about["declines"],
            about["grade"]["grade"],
            " ".join(about["suites"]),
        )
    out.print(table)
    out.print(f"{len(specs)} evaluators, {sum(len(spec.metrics) for spec in specs)} metrics")


@evaluators_app.command("show")
@command
def evaluators_show(
    name: Annotated[str, typer.Argument(help="Our id, H2O's id, or suite:name.")],
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print what a judge is asked, with its schema.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show one evaluator: metrics with ranges and thresholds, inputs, parameters, origin."""
    from guardrail_offline.evaluators.description import describe, find
    from guardrail_offline.evaluators.grades import grade_line

    if prompt:
        typer.echo(prompts_text(find(name).id))
        return
    about = describe(find(name), parameters=True)
    if as_json:
        out.print_json(json.dumps(about))
        return
    out.print(f"[bold]{about['id']}[/bold]: {plain(about['summary'])}")
    for key in ("name", "h2o_id", "run_class", "original_run_class", "surrogate", "needs_judge"):
        out.print(f"  {key}: {plain(str(about[key]))}")
    for line in (f"definition: {about['definition']}", f"grade: {grade_line(find(name))}"):
        out.print(f"  {plain(line)}")
    for key, other in about["same_as"].items():
        out.print(f"  {plain(key)}: the number of {plain(other)}")
    for key in ("inputs", "roles", "suites", "tags", "problem_type", "avid", "deterministic"):
        value = about[key]
        out.print(f"  {key}: {plain(' '.join(value) if isinstance(value, list) else str(value))}")
    table = Table("metric", "direction", "range", "default threshold", "per case")
    for metric in about["metrics"]:
        low, high = metric["range"]
        cut = metric["threshold"]
        table.add_row(
            metric["key"],
            metric["direction"],
            f"{low} to {high}",
            "needs calibration" if cut is None else f"{cut:g}",
            "no" if metric["per_model"] else "yes",
        )
    out.print(table)
    parameters = Table("parameter", "default", "meaning")
    with_judge = {
        k: v for k, v in about["judge_parameters"].items() if k not in about["parameters"]
    }
    for name_, field in (about["parameters"] | with_judge).items():
        parameters.add_row(name_, plain(json.dumps(field["default"])), plain(field["description"]))
    out.print(parameters)


@command
def evaluate(
    lab: Annotated[
        str,
        typer.Argument(
            help="Lab or suite: .json, .jsonl, .csv, .parquet, a datasets folder; or its address "
            "(s3://...)."
        ),
    ],
    out_dir: Annotated[
        str | None,
        typer.Option("--out", "-o", help="Folder of the results, or its address (s3://...)."),
    ] = None,
    evaluators: Annotated[
        str | None,
        typer.Option(
            "--evaluators", "-e", help="Ids with commas, all, or deterministic; all if unset."
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="Evaluators of a task: qa, summarization, translation, classification, agent or "
            "retrieval. -e adds to them."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="EVALUATOR.key=value, repeatable; *.key=value for all."),
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(help="{evaluator: {key: value}} in JSON, or Open RAG Eval's YAML."),
    ] = None,
    judge: JudgeUrl = None,
    judge_model: JudgeModel = None,
    judge_kind: JudgeKind = None,
    judge_for: JudgeFor = None,
    backend: BackendOption = None,
    judge_store: JudgeStore = None,
    judge_mode: JudgeMode = "read-write",
    budget: Budget = None,
    prices: Prices = None,
    judge_timeout: JudgeTimeout = None,
    rpm: RequestsPerMinute = None,
    tpm: TokensPerMinute = None,
    judge_file: JudgeFile = None,
    redact: Redact = False,
    language_model: LanguageModelUrl = None,
    language_model_name: LanguageModelName = None,
    embeddings: EmbeddingsUrl = None,
    embeddings_model: EmbeddingsModel = None,
    no_judge: Annotated[
        bool, typer.Option("--no-judge", help="Say nothing of evaluators that need a judge.")
    ] = False,
    texts: Annotated[bool, typer.Option(help="Keep question, answer and passages.")] = True,
    layout: Annotated[
        str, typer.Option(help="keys: texts stand once, in cases.jsonl. h2o: in every result row.")
    ] = "keys",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as cores if unset.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="local: processes of this machine. ray: workers of a Ray cluster.")
    ] = "local",
    ray_address: Annotated[
        str | None,
        typer.Option(help="HOST:PORT or auto; RAY_ADDRESS if unset, else a Ray of its own."),
    ] = None,
    shard_timeout: Annotated[
        float, typer.Option(min=1, help="With --engine ray: seconds a worker has for one part.")
    ] = 3600.0,
    shard_rows: Annotated[int, typer.Option(min=1, help="Cases of one resumable part.")] = 200,
    step_limit: Annotated[
        float, typer.Option(min=1, help="Seconds an evaluator may take for one question's cases.")
    ] = STEP_LIMIT_S,
    map_: MapOption = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Judge about so many cases: whole questions, drawn by chance."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the sample; another, other ones.")] = 0,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Measure some rows and say what the run takes; write none."),
    ] = False,
    core_hour: Annotated[
        float | None,
        typer.Option(min=0, help="With --dry-run: the price of an hour of one core."),
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", min=1, help="Ranks that retrieval_labels looks at.")
    ] = None,
    missing: Annotated[
        str, typer.Option(help="What missing answers count on boards: exclude, worst or both.")
    ] = "both",
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-under",
            metavar="[MODEL:][EVALUATOR.]METRIC=VALUE",
            help="End with 1 if a metric is worse, for each model or one; repeatable.",
        ),
    ] = None,
    min_coverage: Annotated[
        float, typer.Option(min=0, max=1, help="Share of cases a --fail-under needs a value for.")
    ] = 0.0,
    report: Annotated[bool, typer.Option(help="Write report.html, too.")] = True,
    junit: JUnit = None,
    summary_file: MarkdownFile = None,
    pack: PackOption = None,
    as_json: AsJson = False,
) -> None:
    """Run evaluators over a lab and write scores, leaderboards, problems, insights and flips.

    A run that was stopped goes on when the same command is given again, and ends with the same
    bytes. Ends with 0 if all is well, 1 if a bound of --fail-under is not met, 2 if something is
    wrong with lab or options, and 3 if an evaluator that was named, or a metric with a bound, has
    no value, or an evaluator failed on some cases.
    """
    from guardrail_offline.datasets.labs import open_lab
    from guardrail_offline.datasets.remote_files import places_here
    from guardrail_offline.datasets.sampled_labs import SampleSize, sampled
    from guardrail_offline.datasets.suites import RecordReader, mapping_of
    from guardrail_offline.evaluators.configured import configure
    from guardrail_offline.evaluators.open_rag_eval import read_settings
    from guardrail_offline.evaluators.tasks import PREFIX
    from guardrail_offline.runs.bounds import bounds_of, checks
    from guardrail_offline.runs.execution import RunOptions, evaluate_lab
    from guardrail_offline.runs.totals import MISSING

    names = names_in(evaluators or "") + ([f"{PREFIX}{task}"] if task else [])
    assigned = list(set_ or ()) + ([] if k is None else [f"retrieval_labels.k={k}"])
    if settings is not None and settings.suffix.lower() in (".yaml", ".yml"):
        asked, settings = read_settings(settings), None
        if not names or not {"all", "umbrela"}.isdisjoint(names):
            assigned = [*asked.assignments, *assigned]
        names = names or list(asked.evaluators)
        _note(asked.notes)
    names = names or ["all"]
    asked_one = judge_settings(
        judge,
        judge_model,
        file=judge_file,
        store=judge_store,
        mode=judge_mode,
        budget=budget,
        prices=prices,
        redact=redact,
        kind=judge_kind,
        rpm=rpm,
        tpm=tpm,
        timeout=judge_timeout,
    )
    choice = backend_choice(asked_one, judge_for, backend)
    served = language_model_choice(language_model, language_model_name)
    compared = embeddings_choice(embeddings, embeddings_model)
    configured = configure(names, assigned, settings, choice, served, compared)
    bounds = bounds_of(fail_under or (), [one.evaluator.spec for one in configured])
    counted = next((one for one in MISSING if one == missing), None)
    if counted is None:
        raise ConfigurationError("--missing", repr(missing), f"one of {', '.join(MISSING)}")
    cluster = _cluster(engine, ray_address, workers, shard_timeout)
    reader = RecordReader(mapping_of(map_ or ()))
    model_pack = settings_from(model_pack=pack).model_pack
    size = None if sample is None else SampleSize(sample, seed)
    if dry_run:
        _show_cost(lab, reader, configured, model_pack, size, core_hour, as_json=as_json)
        return
    if out_dir is None:
        raise ConfigurationError("--out", "nothing", "a folder for the results")
    with places_here(lab, out_dir) as places, late_progress_bar("evaluating") as (begin, advance):
        source, folder = open_lab(places.lab, reader), places.out
        if size is not None:
            source = sampled(source, size)

        def advanced(cases: int) -> None:
            advance(cases)
            if places.far is not None:
                places.far.keep_soon()

        summary = evaluate_lab(
            source,
            configured,
            RunOptions(
                folder,
                model_pack,
                workers or os.cpu_count() or 1,
                shard_rows,
                texts,
                step_limit,
                begin,
                advanced,
                _layout(layout),
                counted,
                JudgeTeller(),
                cluster=cluster,
            ),
        )
        boards = json.loads((folder / "leaderboards.json").read_text("utf-8"))
        found = checks(bounds, boards, min_coverage)
        _warn_of_columns(folder)
        _write_ci_files(folder, summary, found, boards, junit, summary_file)
        _write_report(folder, summary.cases, wanted=report)
        _show(summary, found, folder, places.shown, no_judge=no_judge, as_json=as_json)
    raise typer.Exit(_status(summary, found, names))


@command
def compare(
    before: Annotated[Path, typer.Argument(help="Folder of the run to compare with.")],
    after: Annotated[list[Path], typer.Argument(help="Folders of later runs, one or more.")],
    max_drop: Annotated[
        float, typer.Option(min=0, help="What a metric may lose before it is a regression.")
    ] = 0.0,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="A loss that cannot be ruled out is a regression, too."),
    ] = False,
    only: Annotated[
        str | None, typer.Option("--metrics", help="EVALUATOR or EVALUATOR.METRIC, with commas.")
    ] = None,
    by_model: Annotated[
        bool, typer.Option("--by-model", help="Compare each model of the runs by itself.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show metrics without a clear change, too.")
    ] = False,
    junit: JUnit = None,
    summary_file: MarkdownFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs of one lab with a first one, case by case: differences with 95 % intervals.

    A metric that got worse, by more than --max-drop and beyond chance, is a regression. Chance is
    5 % over everything that is compared. Ends with 0, with 1 if there is a regression, and with 2
    if something is wrong.
    """
    try:
        from guardrail_offline.runs import ci_reports, run_comparison
    except ImportError as error:  # scipy
        raise MissingExtra("rag-guardrail-offline") from error

    found = run_comparison.compare_runs(before, after, by_model=by_model, only=names_in(only or ""))
    bad = [d for run in found for d in run.differences if d.is_regression(max_drop, strict=strict)]
    tests = ci_reports.junit_cases_of_comparison(found, max_drop, strict=strict)
    write_text("--junit", junit, ci_reports.junit(f"compared with {before.name}", tests))
    text = ci_reports.comparison_markdown(before.name, found, max_drop, strict=strict)
    write_text("--summary", summary_file, text)
    if as_json:
        out.print_json(json.dumps(run_comparison.as_json(found, len(bad))))
    else:
        _show_comparison(found, everything=everything)
        out.print(f"{len(bad)} regressions" if bad else "no regression")
    raise typer.Exit(EXIT_FLAGGED if bad else 0)


def names_in(text: str) -> list[str]:
    """Return the names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _show_cost(
    lab: str,
    reader: RecordReader,
    configured: Sequence[Configured],
    pack: str,
    size: SampleSize | None,
    core_hour: float | None,
    *,
    as_json: bool,
) -> None:
    """Measure a few rows of a lab and show what a run takes."""
    from guardrail_offline.datasets.labs import open_lab
    from guardrail_offline.datasets.remote_files import lab_here
    from guardrail_offline.runs.run_cost import cost_of_run

    with tempfile.TemporaryDirectory(prefix="guardrail-") as folder:
        source = open_lab(lab_here(lab, Path(folder)), reader)
        found = cost_of_run(source, configured, pack, size=size, core_hour=core_hour)
    if as_json:
        out.print_json(json.dumps(found))
        return
    heads = ("CPU ms a row", "95 %", "CPU h per million", "judge's calls per million")
    table = Table("evaluator", *heads, "cost per million", "cost of the run")
    rows = {**found["evaluators"], "everything else": found["everything_else"]}
    for name, row in (*rows.items(), ("together", found["together"])):
        table.add_row(name, *_cost_cells(row))
    out.print(table)
    measured, rows_of = found["measured"], found["rows"]
    out.print(
        f"measured on {measured['cases']} rows of {measured['questions']} questions; the run has "
        f"{rows_of['run']:,} of {rows_of['lab']:,} rows and takes "
        f"{_amount(found['together'].get('cpu_hours_of_run', 0.0))} hours of one core"
    )
    if core_hour is None:
        out.print("no price of a core's hour: --core-hour says it")
    else:
        out.print("costs are in the currency of --core-hour and of the judge's prices")


def _cost_cells(row: Mapping[str, Any]) -> list[str]:
    interval = row.get("interval")
    between = f"{1000 * interval[0]:.2f} to {1000 * interval[1]:.2f}" if interval else "-"
    return [
        f"{1000 * row['cpu_s_per_row']:.2f}" if "cpu_s_per_row" in row else "-",
        between,
        _amount(row["cpu_hours_per_million"]) if "cpu_hours_per_million" in row else "-",
        f"{row['calls_per_million']:,.0f}" if "calls_per_million" in row else "-",
        *(
            "-" if row[name] is None else _amount(row[name])
            for name in ("cost_per_million", "cost_of_run")
        ),
    ]


def _amount(amount: float) -> str:
    """Return hours or a price without an exponent: "0.0015", "12,300"."""
    if 0 < amount < _LEAST_AMOUNT:
        return f"under {_LEAST_AMOUNT:.4f}"
    digits = 0 if amount >= 100 else 2 if amount >= 1 else 4
    return f"{amount:,.{digits}f}"


_LEAST_AMOUNT = 0.0001


def _cluster(
    engine: str, address: str | None, workers: int | None, shard_timeout_s: float
) -> Cluster | None:
    if engine == "ray":
        from guardrail_offline.runs.ray_engine import Cluster

        return Cluster(address, workers, shard_timeout_s)
    if engine != "local":
        raise ConfigurationError("--engine", repr(engine)[:40], "local or ray")
    if address is not None:
        raise ConfigurationError("--ray-address", "the engine local", "--engine ray")
    return None


def _layout(name: str) -> ResultLayout:
    from guardrail_offline.runs.result_files import LAYOUTS

    for layout in LAYOUTS:
        if name == layout:
            return layout
    raise ConfigurationError("--layout", repr(name), " or ".join(LAYOUTS))


def _status(summary: Summary, found: Iterable[BoundCheck], asked: Iterable[str]) -> int:
    """Return how `evaluate` ends. Evaluators of a group such as `all` need not apply to a lab."""
    from guardrail_offline.evaluators.catalogue import CATALOGUE
    from guardrail_offline.evaluators.configured import GROUPS
    from guardrail_offline.evaluators.tasks import PREFIX

    outcomes = {check.outcome for check in found}
    if "missed" in outcomes:
        return EXIT_FLAGGED
    ids = [name for name in asked if name not in GROUPS and not name.startswith(PREFIX)]
    named = {CATALOGUE.find(name).spec.id for name in ids}
    if outcomes - {"met"} or named.intersection(summary.declined) or summary.errors:
        return EXIT_INCOMPLETE
    return 0


def _warn_of_columns(folder: Path) -> None:
    """Name the columns of the lab that nothing read, on one line of standard error."""
    plan = json.loads((folder / "manifest.json").read_text("utf-8"))["plan"]
    if names := plan.get("ignored_columns"):
        shown = ", ".join(repr(name)[:60] for name in names[:12])
        more = f" and {len(names) - 12} more" if len(names) > 12 else ""
        _note([f"nothing reads the columns {shown}{more}; --map FIELD=COLUMN says what one is"])


def _note(texts: Iterable[str]) -> None:
    for text in texts:
        err.print(f"[yellow]note[/yellow] {plain(text)}", soft_wrap=True)


def _write_ci_files(
    folder: Path,
    summary: Summary,
    found: Sequence[BoundCheck],
    boards: Any,
    junit: Path | None,
    summary_file: Path | None,
) -> None:
    if junit is None and summary_file is None:
        return
    from guardrail_offline.runs import ci_reports

    problems = json.loads((folder / "problems.json").read_text("utf-8"))
    tests = ci_reports.junit_cases_of_run(found, summary.missing, summary.declined)
    write_text("--junit", junit, ci_reports.junit(folder.name, tests))
    text = ci_reports.run_markdown(folder.name, found, boards, problems)
    write_text("--summary", summary_file, text)


def _write_report(folder: Path, cases: int, *, wanted: bool) -> None:
    """Write the page of a run; of a very large one only `guardrail report` does."""
    if not wanted:
        return
    try:
        from guardrail_offline.report.page import MOST_CASES, REPORT, write_report
    except ImportError as error:  # jinja2
        raise MissingExtra("rag-guardrail-offline") from error
    if cases > MOST_CASES:
        _note([f"no {REPORT} for over {MOST_CASES} cases; `guardrail report` writes it"])
    elif any((folder / "results").glob("*.json")):
        write_report([folder], folder / REPORT)


def write_report_of(folder: Path, cases: int) -> None:
    """Write the page of a run anew, if it has one."""
    _write_report(folder, cases, wanted=(folder / "report.html").exists())


def write_text(option: str, path: Path | None, text: str) -> None:
    """Write a file that an option names, whole or not at all; None writes none."""
    from guardrail_offline.runs.shards import whole_file

    if path is None:
        return
    try:
        with whole_file(path) as stream:
            stream.write(text)
    except OSError as error:
        raise ConfigurationError(option, type(error).__name__, "a file to write") from error


def _show_comparison(found: Sequence[Comparison], *, everything: bool) -> None:
    from guardrail_offline.runs.ci_reports import interval_text

    for one in found:
        clear = [d for d in one.differences if d.verdict in ("better", "worse")]
        head = ("evaluator", "metric", "model", "before", "after", "difference", "95 %", "n", "")
        table = Table(*head, title=plain(one.run) if len(found) > 1 else None)
        for d in one.differences if everything else clear:
            numbers = (f"{d.before:.3f}", f"{d.after:.3f}", f"{d.difference:+.3f}")
            names = (d.evaluator, d.metric, "all" if d.model is None else plain(d.model))
            table.add_row(*names, *numbers, interval_text(d), str(d.questions), d.verdict)
        out.print(table)
        out.print(f"{len(clear)} of {len(one.differences)} metrics clearly changed")
        for warning in one.warnings:
            out.print(f"[yellow]note[/yellow] {plain(warning)}")


def _show(
    summary: Summary,
    found: Sequence[BoundCheck],
    folder: Path,
    shown: str,
    *,
    no_judge: bool,
    as_json: bool,
) -> None:
    if as_json:
        content = json.loads((folder / "summary.json").read_text("utf-8"))
        out.print_json(json.dumps(content | {"checks": [check.as_json() for check in found]}))
        return
    timings = folder / "timings.json"
    spent = json.loads(timings.read_text("utf-8")) if timings.exists() else {}
    table = Table("evaluator", "cases with a value", "CPU s", "why others have none")
    for name, count in summary.computed.items():
        reasons = ", ".join(f"{n} {reason}" for reason, n in summary.missing[name].items())
        seconds = f"{spent[name]['cpu_s']:.2f}" if name in spent else "-"
        table.add_row(name, f"{count} of {summary.cases}", seconds, plain(reasons))
    out.print(table)
    done = len(summary.computed) - len(summary.declined)
    out.print(
        f"{done} of {len(summary.computed)} evaluators computed, {summary.problems} problems, "
        f"{summary.flips} flips; see {plain(shown)}/report.html"
    )
    if (folder / "sample.json").exists():
        sample = json.loads((folder / "sample.json").read_text("utf-8"))
        drawn, whole = (sample[name]["questions"] for name in ("drawn", "lab"))
        out.print(f"a sample: {drawn} of {whole} questions; sample.json has intervals")
    for model, counts in summary.unanswered.items():
        told = ", ".join(f"{count} {reason}" for reason, count in counts.items())
        out.print(plain(f"{model or 'the model'} left cases unanswered: {told}"))
    judged = [n for n, reasons in summary.missing.items() if "needs_judge" in reasons]
    for line in judge_lines(folder):
        out.print(plain(line), highlight=False)
    if judged and not no_judge:
        out.print(f"no judge is configured: {', '.join(judged)} declined")
    for check in found:
        colour = {"met": "green", "missed": "red"}.get(check.outcome, "yellow")
        asked = f"{check.model}: {check.asked}, found {check.found}"
        out.print(f"[{colour}]{check.outcome}[/{colour}] {plain(asked)}", highlight=False)
