"""The commands under `guardrail calibrate` that need no scored lab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from guardrail_offline.calibration.app import (
    THIRD,
    Adjudicator,
    Alpha,
    Delta,
    Split,
    calibrate_app,
    calibrates,
    say,
    write,
)
from guardrail_service.commands.console import AsJson, out
from guardrail_service.errors import ConfigurationError


@calibrate_app.command("plan")
@calibrates
def plan_command(
    alpha: Alpha = 0.05,
    delta: Delta = 0.10,
    split: Split = THIRD,
    good_share: Annotated[
        float, typer.Option(min=0.01, max=1, help="Expected share of answers people will pass.")
    ] = 0.7,
    labels: Annotated[
        int | None, typer.Option(min=1, help="Say instead what this many good questions promise.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how many labels a promise takes, before anybody labels."""
    from guardrail_offline.calibration.options import Options
    from guardrail_offline.calibration.planning import best_promise, plan, table

    found = plan(Options(alpha=alpha, delta=delta, split=split), good_share)
    best = None if labels is None else best_promise(labels, delta)
    if as_json:
        needs = [
            {"alpha": n.alpha, "delta_0.10": n.surely[0], "delta_0.05": n.surely[1],
             "on_average": n.on_average}
            for n in table()
        ]  # fmt: skip
        out.print_json(json.dumps({**found.as_json(), "table": needs, "best_alpha": best}))
        return
    shown = Table("at most flagged", "surely to 90 %", "surely to 95 %", "only on average")
    for need in table():
        shown.add_row(f"{need.alpha:.0%}", *map(str, need.surely), str(need.on_average))
    out.print("Questions with a good answer that each promise takes at least:")
    out.print(shown)
    say(
        [
            f"For at most {100 * alpha:.3g}% at {1 - delta:.0%} confidence: {found.least} at "
            f"least, {found.comfortable} to rest on more than the single worst answer, "
            f"{found.anytime} if you want to look more than once.",
            f"If people pass {good_share:.0%} of answers, label {found.labels} questions "
            f"({found.least_labels} at the very least).",
        ]
    )
    if best is not None:
        say([f"{labels} good questions promise at best {best:.1%} at {1 - delta:.0%} confidence."])


@calibrate_app.command("explain")
@calibrates
def explain_command(
    file: Annotated[Path, typer.Argument(help="A guardrail JSON.")],
) -> None:
    """Say in plain words what a guardrail file promises and what it does not."""
    from guardrail_offline.calibration.explanation import explain
    from guardrail_service.policy.file import read_json

    content = read_json(file)
    if not isinstance(content, dict):
        raise ConfigurationError(str(file), type(content).__name__, "a guardrail configuration")
    say(explain(content))


@calibrate_app.command("labels")
@calibrates
def labels_command(
    file: Annotated[Path, typer.Argument(help="Labels: .jsonl, .csv or Label Studio .json.")],
    output: Annotated[
        Path | None, typer.Option("--out", help="Write them to this .jsonl or .csv.")
    ] = None,
    adjudicator: Adjudicator = "adjudicator",
    as_json: AsJson = False,
) -> None:
    """Read labels, say how far annotators agree, and convert them."""
    from guardrail_offline.calibration.labels import (
        labels_csv,
        labels_jsonl,
        read_labels,
        verdicts,
    )

    labels = read_labels(file)
    found = verdicts(labels, str(file), adjudicator=adjudicator)
    if output is not None:
        write(output, labels_csv(labels) if output.suffix == ".csv" else labels_jsonl(labels))
    summary: dict[str, Any] = {
        "labels": len(labels),
        "pass": sum(found.passes.values()),
        "fail": len(found.passes) - sum(found.passes.values()),
        "abstained": len(found.abstained),
        "annotators": found.annotators,
        "agreement": found.agreement.as_json() if found.agreement else None,
    }
    if as_json:
        out.print_json(json.dumps(summary))
        return
    say(f"{name}: {value}" for name, value in summary.items())


@calibrate_app.command("h2o")
@calibrates
def h2o_command(
    request: Annotated[Path, typer.Argument(help="H2O Eval Studio's calibration request, JSON.")],
    alpha: Alpha = 0.05,
    delta: Delta = 0.10,
    output: Annotated[
        Path | None, typer.Option("--out", help="Write a guardrail JSON with the threshold.")
    ] = None,
) -> None:
    """Answer H2O Eval Studio's calibration request for one metric.

    Ends with 1 if the operation ends in an error, such as too few labels.
    """
    import guardrail_service.detectors  # noqa: F401 - registers the built-in detectors
    from guardrail_offline.calibration.h2o import calibrate, guardrail_json, parse_request
    from guardrail_offline.calibration.options import Options
    from guardrail_service.detectors.registry import REGISTRY
    from guardrail_service.policy.file import read_json

    parsed = parse_request(read_json(request))
    operation = calibrate(parsed, REGISTRY, Options(alpha=alpha, delta=delta))
    out.print_json(json.dumps(operation))
    if "error" in operation:
        raise typer.Exit(1)
    if output is not None:
        write(output, json.dumps(guardrail_json(parsed, operation), indent=1) + "\n")
