"""The commands under `guardrail grammar`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrail_offline.evaluation_commands import EXIT_INCOMPLETE
from guardrail_offline.grammar.shown_tables import (
    note,
    show_schema,
    show_scores,
    show_statistics,
    show_study,
    show_templates,
    texts_of,
)
from guardrail_offline.judge_options import (
    JudgeMode,
    JudgeModel,
    JudgeStore,
    JudgeUrl,
    backend_choice,
    judge_lines,
    judge_settings,
)
from guardrail_service.commands.console import (
    AsJson,
    PackOption,
    command,
    late_progress_bar,
    out,
    plain,
    settings_from,
)
from guardrail_service.errors import ConfigurationError

if TYPE_CHECKING:
    from guardrail_offline.grammar.engine import Engine
    from guardrail_offline.grammar.fill import FillOptions, FillStatistics
    from guardrail_offline.grammar.schema import Schema
    from guardrail_offline.grammar.templates import TemplateSet
    from guardrail_offline.judge.judge_settings import JudgeSettings

grammar_app = typer.Typer(
    add_completion=False,
    help="Make tests from a database, whose answers are true by construction, and score them.",
    no_args_is_help=True,
)
Database = Annotated[
    Path, typer.Argument(help="SQLite file, or DuckDB's (.duckdb, .ddb); it is only read.")
]
LabelsFile = Annotated[
    Path | None, typer.Option("--labels", help="Labels file of `guardrail grammar schema`.")
]
Seconds = Annotated[
    float, typer.Option("--max-seconds", min=0.001, help="Longest one statement may run.")
]
Rows = Annotated[int, typer.Option("--max-rows", min=1, help="Most rows one statement may give.")]
Several = Annotated[
    bool, typer.Option("--multi", help="Keep questions with several answers; the set is expected.")
]
MAX_SECONDS, MAX_ROWS = 30.0, 10_000_000


@grammar_app.command("schema")
@command
def schema_command(
    database: Database,
    out_file: Annotated[
        Path | None, typer.Option("--out", "-o", help="Labels file to write, for you to edit.")
    ] = None,
    labels: LabelsFile = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a labels file that is there.")] = False,
    max_seconds: Seconds = MAX_SECONDS,
    max_rows: Rows = MAX_ROWS,
    as_json: AsJson = False,
) -> None:
    """Show tables, keys and what questions may be about, and write a first labels file."""
    from guardrail_offline.grammar.schema import labels_json

    with _opened(database, labels, max_seconds, max_rows) as (_, schema):
        content = labels_json(schema)
    if out_file is not None:
        _refuse_to_replace(out_file, overwrite=overwrite)
        _write_json("--out", out_file, content)
    if as_json:
        out.print_json(json.dumps(content))
        return
    show_schema(schema)
    if out_file is not None:
        out.print(f"labels in {plain(str(out_file))}")


@grammar_app.command("templates")
@command
def templates_command(
    database: Database,
    out_file: Annotated[Path, typer.Option("--out", "-o", help="File of templates to write.")],
    labels: LabelsFile = None,
    from_file: Annotated[
        Path | None,
        typer.Option("--from", help="Check and keep the templates of this file, make no others."),
    ] = None,
    joins: Annotated[int, typer.Option(min=0, max=2, help="Foreign keys a query follows.")] = 2,
    selected: Annotated[int, typer.Option(min=1, help="Columns a query asks for at most.")] = 1,
    texts: Annotated[int, typer.Option(min=1, max=12, help="Texts of each query.")] = 6,
    counts: Annotated[bool, typer.Option("--counts", help="Also ask how many rows.")] = False,
    multi: Several = False,
    overwrite: Annotated[bool, typer.Option(help="Replace a file that is there.")] = False,
    judge: JudgeUrl = None,
    judge_model: JudgeModel = None,
    judge_store: JudgeStore = None,
    judge_mode: JudgeMode = "read-write",
    max_seconds: Seconds = MAX_SECONDS,
    max_rows: Rows = MAX_ROWS,
    as_json: AsJson = False,
) -> None:
    """Make SQL templates that meet every criterion on the data, each with texts in six styles.

    A judge, if one is named, words each text once more; what loses a placeholder is refused.
    Ends with 3 if no template is left; the reasons are shown and nothing is written.
    """
    from guardrail_offline.grammar.enumeration import EnumerationOptions
    from guardrail_offline.grammar.templates import (
        TemplateOptions,
        counts_of,
        make_templates,
        read_templates,
        templates_json,
    )

    _refuse_to_replace(out_file, overwrite=overwrite)
    sql = EnumerationOptions(joins, selected, multi, counts)
    options = TemplateOptions(sql, texts, multi)
    with _opened(database, labels, max_seconds, max_rows) as (engine, schema):
        with late_progress_bar("proving") as (_, advance):
            if from_file is None:
                found = make_templates(engine, schema, options, lambda: advance(1))
            else:
                found = read_templates(from_file, engine, schema, options, lambda: advance(1))
                found = _next_edition(found)
        asked = judge_settings(judge, judge_model, store=judge_store, mode=judge_mode)
        if asked is not None:
            found = _reworded(found, asked)
        content = templates_json(found, schema, engine.dialect)
    if found.templates:
        _write_json("--out", out_file, content)
    if as_json:
        summary = {"templates": len(found.templates), "refused": counts_of(found)}
        told = {"edition": found.edition, "texts": texts_of(found), "notes": list(found.notes)}
        out.print_json(json.dumps(summary | told))
    else:
        show_templates(found, out_file)
    raise typer.Exit(0 if found.templates else EXIT_INCOMPLETE)


@grammar_app.command("generate")
@command
def generate_command(
    database: Database,
    templates: Annotated[
        Path, typer.Option("--templates", "-t", help="File of `guardrail grammar templates`.")
    ],
    out_file: Annotated[Path, typer.Option("--out", "-o", help="Lab to write, .jsonl.")],
    labels: LabelsFile = None,
    cases: Annotated[
        int | None, typer.Option(min=1, help="About so many cases; all of them if unset.")
    ] = None,
    per_template: Annotated[
        int | None, typer.Option(min=1, help="Filled queries of each template at most.")
    ] = None,
    sampling: Annotated[
        str, typer.Option(help="stratified: templates alike. proportional: by their rows.")
    ] = "stratified",
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    multi: Several = False,
    max_seconds: Seconds = MAX_SECONDS,
    max_rows: Rows = MAX_ROWS,
    as_json: AsJson = False,
) -> None:
    """Fill templates with what the rows hold, and write a lab with the right answers.

    Beside it, with `.queries.jsonl` behind its name, stands each SQL query with its values and what
    the database answered. Ends with 3 if nothing came out; then nothing is written.
    """
    from guardrail_offline.grammar.fill import SAMPLINGS, FillOptions, FillStatistics
    from guardrail_offline.grammar.templates import TemplateOptions, read_templates

    if out_file.suffix != ".jsonl":
        raise ConfigurationError("--out", repr(out_file.suffix), "a .jsonl file")
    chosen = next((one for one in SAMPLINGS if one == sampling), None)
    if chosen is None:
        raise ConfigurationError("--sampling", repr(sampling), f"one of {', '.join(SAMPLINGS)}")
    options = FillOptions(cases, per_template, chosen, multi, seed)
    statistics = FillStatistics()
    with _opened(database, labels, max_seconds, max_rows) as (engine, schema):
        found = read_templates(templates, engine, schema, TemplateOptions(several=multi))
        note(found.notes)
        note(f"{name}: {why.reason}" for name, why in found.refused)
        _write_lab(engine, found, options, statistics, out_file)
    told = statistics.as_json() | {"templates_sha256": found.sha256, "seed": seed}
    if as_json:
        out.print_json(json.dumps(told))
    else:
        show_statistics(statistics, out_file)
    raise typer.Exit(0 if statistics.cases else EXIT_INCOMPLETE)


@grammar_app.command("score")
@command
def score_command(
    lab: Annotated[
        Path, typer.Argument(help="Answered lab, or the folder of a run that had -e grammar.")
    ],
    out_dir: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the run; a lab needs it.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    judge: JudgeUrl = None,
    judge_model: JudgeModel = None,
    judge_store: JudgeStore = None,
    judge_mode: JudgeMode = "read-write",
    pack: PackOption = None,
    as_json: AsJson = False,
) -> None:
    """Score answers to generated questions: gaps, robustness by style, and who is to blame.

    It is `guardrail evaluate -e grammar` with tables of its own; any run that had the evaluator
    has them, too. A judge is asked only about answers that no rule decides. Ends with 3 if no
    generated case has an answer.
    """
    from guardrail_offline.runs.grammar_groups import GRAMMAR

    folder = lab
    if lab.is_dir() and (lab / "manifest.json").exists():
        if out_dir is not None:
            raise ConfigurationError("--out", "a folder", "nothing: the run is written already")
    elif out_dir is None:
        raise ConfigurationError("--out", "nothing", "a folder for the run")
    else:
        folder = out_dir
        asked = judge_settings(judge, judge_model, store=judge_store, mode=judge_mode)
        _evaluate(lab, folder, workers, pack, asked)
    path = folder / GRAMMAR
    if not path.exists():
        out.print("no generated case: its categories have `grammar`")
        raise typer.Exit(EXIT_INCOMPLETE)
    content = json.loads(path.read_text("utf-8"))
    if as_json:
        out.print_json(json.dumps(content))
    else:
        show_scores(content)
    judged = any(one["groups"] for one in content["models"])
    raise typer.Exit(0 if judged else EXIT_INCOMPLETE)


@grammar_app.command("study")
@command
def study_command(
    run: Annotated[
        Path, typer.Argument(help="Run of guardrail evaluate with -e grammar and others.")
    ],
    out_file: Annotated[
        Path | None, typer.Option("--out", "-o", help="JSON file to write.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every metric, not only those that come first.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Hold every evaluator of a run against answers that are right or wrong by construction.

    Precision: which share of what it calls right is right. Recall: which share of the right answers
    it calls right. With exact 95 % intervals.
    """
    from guardrail_offline.grammar.study import study
    from guardrail_offline.runs.result_files import read_run

    found = study(read_run(run))
    if out_file is not None:
        _write_json("--out", out_file, found)
    if as_json:
        out.print_json(json.dumps(found))
    else:
        show_study(found, everything=everything)


def _evaluate(
    lab: Path, folder: Path, workers: int, pack: str | None, asked: JudgeSettings | None
) -> None:
    from guardrail_offline.datasets.labs import open_lab
    from guardrail_offline.evaluators.configured import configure
    from guardrail_offline.runs.execution import RunOptions, evaluate_lab

    choice = backend_choice(asked, None if asked is None else "grammar", None)

    chosen = settings_from(model_pack=pack).model_pack
    with late_progress_bar("scoring") as (begin, advance):
        options = RunOptions(folder, chosen, workers, begin=begin, advance=advance)
        evaluate_lab(open_lab(lab), configure(["grammar"], backends=choice), options)
    for line in judge_lines(folder):
        out.print(line, highlight=False, soft_wrap=True)


@contextmanager
def _opened(
    database: Path, labels: Path | None, seconds: float, rows: int
) -> Iterator[tuple[Engine, Schema]]:
    """Open a database for as long as it is asked, and read its schema with the labels."""
    from guardrail_offline.grammar.engine import QueryLimits, open_engine
    from guardrail_offline.grammar.schema import labelled, read_schema

    with closing(open_engine(database, QueryLimits(seconds, rows))) as engine:
        schema = read_schema(engine)
        yield engine, schema if labels is None else labelled(schema, labels)


def _refuse_to_replace(path: Path, *, overwrite: bool) -> None:
    """Refuse to write over what people may have edited."""
    if path.exists() and not overwrite:
        raise ConfigurationError(
            "--out", f"a file that is there: {path}", "a new name, or --overwrite"
        )


def _write_json(option: str, path: Path, content: Any) -> None:
    from guardrail_offline.evaluation_commands import write_text

    write_text(option, path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _reworded(found: TemplateSet, asked: JudgeSettings) -> TemplateSet:
    """Return templates with what a judge words anew beside the texts of the rules."""
    from guardrail_offline.grammar.rewriting import rewriter_of
    from guardrail_offline.grammar.templates import reworded
    from guardrail_offline.judge.judge_client import open_judge

    judge = open_judge(asked)
    with late_progress_bar("rewording") as (begin, advance):
        begin(texts_of(found))
        again = reworded(found, rewriter_of(judge), lambda: advance(1))
    note([f"{texts_of(again) - texts_of(found)} texts are the judge's ({asked.model})"])
    if judge.stopped:
        note([f"the judge was not asked any more: {judge.stopped}"])
    return again


def _next_edition(found: TemplateSet) -> TemplateSet:
    from dataclasses import replace

    return replace(found, edition=found.edition + 1)


def _write_lab(
    engine: Engine,
    found: TemplateSet,
    options: FillOptions,
    statistics: FillStatistics,
    path: Path,
) -> None:
    """Write lab and queries line by line; both appear when they are whole, or neither."""
    from guardrail_offline.datasets.cases import case_json
    from guardrail_offline.evaluators.result import dumps
    from guardrail_offline.grammar.fill import cases_of, count_cases, fill
    from guardrail_offline.runs.shards import whole_file

    class Nothing(Exception):
        """Leaves the files unwritten."""

    beside = path.with_name(f"{path.name}.queries.jsonl")
    try:
        with ExitStack() as stack:
            begin, advance = stack.enter_context(late_progress_bar("generating"))
            begin(count_cases(found.templates, options))
            lab, queries = (stack.enter_context(whole_file(p)) for p in (path, beside))
            for filled in fill(engine, found.templates, options, statistics):
                queries.write(dumps(filled.as_json(), compact=True) + "\n")
                for case in cases_of(filled):
                    lab.write(dumps(case_json(case), compact=True) + "\n")
                    advance(1)
            if not statistics.cases:
                raise Nothing
    except Nothing:
        return
    except OSError as error:
        raise ConfigurationError("--out", type(error).__name__, "a file to write") from error
