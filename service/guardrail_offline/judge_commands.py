"""The commands under `guardrail judge`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from guardrail_offline.calibration.command_parts import (
    Adjudicator,
    JudgedMetric,
    LabelsAbout,
    LabelsOption,
    PassThreshold,
)
from guardrail_offline.judge_run_commands import judge_estimate, judge_rejudge
from guardrail_service.commands.console import AsJson, command, out, plain
from guardrail_service.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from guardrail_offline.calibration.judge_agreement import Estimate
    from guardrail_offline.calibration.prediction_powered import GoodShare

judge_app = typer.Typer(
    add_completion=False,
    help="Look at a judge: what does it cost, does it agree with people and with itself?",
    no_args_is_help=True,
)
judge_app.command("estimate")(judge_estimate)
judge_app.command("rejudge")(judge_rejudge)


@judge_app.command("check")
@command
def check_command(
    run: Annotated[Path, typer.Argument(help="Run folder of guardrail evaluate.")],
    labels: LabelsOption,
    metric: JudgedMetric = None,
    threshold: PassThreshold = None,
    again: Annotated[
        list[Path] | None,
        typer.Option("--again", help="A run of the same lab, judged anew; repeatable."),
    ] = None,
    swapped: Annotated[
        Path | None, typer.Option(help="A run of the lab with passages in another order.")
    ] = None,
    own: Annotated[
        str | None, typer.Option(help="Which model of the lab is the judge's own, if any.")
    ] = None,
    ppi: Annotated[
        bool, typer.Option("--ppi", help="Share of good answers by people and judge together.")
    ] = False,
    about: LabelsAbout = None,
    adjudicator: Adjudicator = "adjudicator",
    as_json: AsJson = False,
) -> None:
    """Compare a judge's verdicts with people's, with itself and with what should not matter.

    Agreement, repeatability, order of passages, length of answers, preference for its own. Reads
    finished runs and asks nobody. Runs for --again need transcripts of their own (--judge-store).
    """
    from guardrail_offline.calibration import judge_agreement as trust
    from guardrail_offline.calibration.labels import read_labels, verdicts
    from guardrail_offline.calibration.prediction_powered import good_shares

    words = verdicts(read_labels(labels), str(labels), about, adjudicator)
    judged = trust.read_judged(run, metric, threshold, words.passes)
    found: dict[str, Mapping[str, Estimate]] = {"people": trust.agreement(judged)}
    if again:
        runs = [trust.read_judged(path, judged.name, judged.threshold) for path in again]
        found["again"] = trust.repeatability(judged, runs)
    if swapped is not None:
        other = trust.read_judged(swapped, judged.name, judged.threshold)
        found["order"] = trust.order_effect(judged, other)
    found["length"] = {"slope": trust.verbosity(judged)}
    found["own"] = {"preference": trust.self_preference(judged, own)}
    shares = good_shares(judged) if ppi else []
    if as_json:
        content: dict[str, Any] = {
            "metric": judged.name,
            "threshold": judged.threshold,
            "judge": dict(judged.judge) or None,
            **{part: {k: e.as_json() for k, e in some.items()} for part, some in found.items()},
        }
        if ppi:
            content["good_answers"] = [share.as_json() for share in shares]
        out.print_json(json.dumps(content))
        return
    _show(f"{judged.name} at {judged.threshold:g}", found)
    if ppi:
        _show_shares(shares)


@judge_app.command("reverse")
@command
def reverse_command(
    lab: Annotated[Path, typer.Argument(help="Lab whose cases have passages.")],
    out_file: Annotated[Path, typer.Option("--out", "-o", help="The lab to write, .json.")],
) -> None:
    """Write a lab with the passages of every case in reverse order, for check's --swapped."""
    from guardrail_offline.lab_commands import opened, write_lab

    source = opened(lab)
    cases = [
        replace(case, contexts=case.contexts[::-1]) if case.contexts else case
        for case in source.cases()
    ]
    several = sum(len(case.contexts or ()) > 1 for case in cases)
    if not several:
        raise ConfigurationError(str(lab), "no case with two passages", "passages to reverse")
    write_lab(out_file, cases, source)
    out.print(f"wrote {plain(str(out_file))}: {several} of {len(cases)} cases are in another order")


_WORDS = {
    ("people", "agree"): "verdicts that are a person's",
    ("people", "kappa"): "Cohen's kappa with people (0 is chance)",
    ("people", "area"): "area under the ROC curve (0.5 is chance)",
    ("again", "flips"): "verdicts that change when asked again",
    ("again", "flips_near"): "the same, scores near the threshold",
    ("again", "spread"): "spread of a score over runs",
    ("order", "flips"): "verdicts that change with the passages' order",
    ("order", "shift"): "score in the other order, less the first",
    ("length", "slope"): "score for twice the length, people's word being equal",
    ("own", "preference"): "passes for its own model, beyond people's",
}


def _show(title: str, found: Mapping[str, Mapping[str, Estimate]]) -> None:
    table = Table(title=plain(title), title_justify="left")
    for name in ("", "value", "95 %", "n"):
        table.add_column(name, justify="right" if name else "left")
    for part, some in found.items():
        for key, one in some.items():
            table.add_row(_WORDS[part, key], *_cells(one))
    out.print(table)


def _show_shares(shares: list[GoodShare]) -> None:
    table = Table(title="good answers", title_justify="left")
    for name in ("model", "people alone", "judge alone", "both", "weight of the judge"):
        table.add_column(name, justify="left" if name == "model" else "right")
    for share in shares:
        three = (share.people, share.judge, share.powered)
        cells = [" ".join(part for part in _cells(one)[:2] if part) for one in three]
        table.add_row(plain(share.model), *cells, f"{share.trust:.2f}")
    out.print(table)


def _cells(one: Estimate) -> tuple[str, str, str]:
    if one.value is None:
        return "unknown", plain(one.why or ""), str(one.n)
    ends = "" if one.low is None or one.high is None else f"{one.low:.3f} to {one.high:.3f}"
    return f"{one.value:.3f}", ends or plain(one.why or ""), str(one.n)
