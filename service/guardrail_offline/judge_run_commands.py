"""`guardrail judge estimate` and `rejudge`: costs before a run, and what it did not answer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from guardrail_offline.evaluation_commands import (
    EXIT_INCOMPLETE,
    LabArgument,
    MapOption,
    names_in,
    write_report_of,
)
from guardrail_offline.judge_options import (
    BackendOption,
    Budget,
    JudgeFile,
    JudgeFor,
    JudgeKind,
    JudgeModel,
    JudgeStore,
    JudgeTeller,
    JudgeTimeout,
    JudgeUrl,
    Prices,
    RequestsPerMinute,
    TokensPerMinute,
    backend_choice,
    judge_lines,
    named_judge,
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

_NOBODY = "http://judge.invalid/v1"


@command
def judge_estimate(
    lab: LabArgument,
    evaluators: Annotated[
        str, typer.Option("--evaluators", "-e", help="Ids with commas; all that a judge can.")
    ] = "all",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="EVALUATOR.key=value, repeatable.")
    ] = None,
    judge: JudgeUrl = None,
    judge_model: JudgeModel = None,
    judge_for: JudgeFor = "all",
    backend: BackendOption = None,
    judge_store: JudgeStore = None,
    prices: Prices = None,
    judge_file: JudgeFile = None,
    map_: MapOption = None,
    as_json: AsJson = False,
) -> None:
    """Tell how many calls and tokens a judge would take for a lab, and what they cost.

    Nobody is asked. With transcripts, what they have is not counted. Tokens are guessed from
    lengths; `most` is what a budget has to allow for if every question is asked twice.
    """
    from guardrail_offline.datasets.labs import open_lab
    from guardrail_offline.datasets.suites import RecordReader, mapping_of
    from guardrail_offline.evaluators.configured import configure
    from guardrail_offline.judge.judge_client import open_reader
    from guardrail_offline.runs.judge_estimate import estimate

    asked_one = named_judge(
        judge or _NOBODY, judge_model or "*", file=judge_file, store=judge_store, prices=prices
    )
    choice = backend_choice(asked_one, judge_for, backend)
    configured = configure(names_in(evaluators), set_ or (), backends=choice)
    source = open_lab(lab, RecordReader(mapping_of(map_ or ())))
    found = estimate(list(enumerate(source.cases())), configured, open_reader(asked_one))
    if as_json:
        out.print_json(json.dumps(found))
        return
    _show_estimate(found)


def _show_estimate(found: dict[str, Any]) -> None:
    heads = ("calls", "remembered", "prompt tokens", "constant", "completion tokens")
    table = Table("evaluator", *heads, "cost", "most")
    for name, row in (*found["evaluators"].items(), ("together", found["total"])):
        table.add_row(name, *("-" if value is None else f"{value:,.6g}" for value in row.values()))
    out.print(table)
    if found["total"].get("cost") is None:
        out.print("no price of the judge: --prices says what tokens cost")


@command
def judge_rejudge(
    run: Annotated[Path, typer.Argument(help="Folder of a run with a judge.")],
    failed: Annotated[
        bool,
        typer.Option(
            "--failed", help="Parse failures and refusals, too; else what nobody answered."
        ),
    ] = False,
    judge_kind: JudgeKind = None,
    judge_store: JudgeStore = None,
    judge_timeout: JudgeTimeout = None,
    rpm: RequestsPerMinute = None,
    tpm: TokensPerMinute = None,
    budget: Budget = None,
    prices: Prices = None,
    judge_file: JudgeFile = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; cores if unset.")] = None,
    pack: PackOption = None,
    as_json: AsJson = False,
) -> None:
    """Ask a run's judge again what has no answer, and score again what that changes.

    The agent is not run again, and what has an answer is not asked. Ends with 3 if questions are
    still without an answer.
    """
    from dataclasses import replace

    from guardrail_offline.runs.execution import RunOptions
    from guardrail_offline.runs.rejudging import judge_of_run, rejudge

    known = judge_of_run(run)
    asked_one = named_judge(
        known["url"],
        known["model"],
        file=judge_file,
        store=judge_store,
        budget=budget,
        prices=prices,
        kind=judge_kind,
        rpm=rpm,
        tpm=tpm,
        timeout=judge_timeout,
    )
    told = {key: known[key] for key in ("options", "marked") if key in known}
    settings = replace(asked_one, ask_again=failed, **told)
    with late_progress_bar("scoring") as (begin, advance):
        options = RunOptions(
            run,
            settings_from(model_pack=pack).model_pack,
            workers or os.cpu_count() or 1,
            begin=begin,
            advance=advance,
            asked=JudgeTeller(),
        )
        summary = rejudge(options, settings)
    write_report_of(run, summary.cases)
    counts = json.loads((run / "judge.json").read_text("utf-8"))["evaluators"]
    if as_json:
        out.print_json(json.dumps(counts))
    for line in () if as_json else judge_lines(run):
        out.print(plain(line), highlight=False)
    left = any(set(one["statuses"]) - {"ok"} for one in counts.values())
    raise typer.Exit(EXIT_INCOMPLETE if left else 0)
