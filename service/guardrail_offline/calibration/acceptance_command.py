"""The command `guardrail calibrate acceptance`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from guardrail_offline.calibration.command_parts import (
    Adjudicator,
    Delta,
    JudgedMetric,
    LabelsAbout,
    LabelsOption,
    PassThreshold,
    SeedOption,
    calibrate_app,
    calibrates,
    say,
    write,
)
from guardrail_service.commands.console import EXIT_FLAGGED, AsJson, out


@calibrate_app.command("acceptance")
@calibrates
def acceptance_command(
    run: Annotated[Path, typer.Argument(help="Run folder of guardrail evaluate.")],
    labels: LabelsOption,
    metric: JudgedMetric = None,
    threshold: PassThreshold = None,
    alpha: Annotated[
        float, typer.Option(help="Largest share of accepted verdicts unlike a person's.")
    ] = 0.10,
    delta: Delta = 0.10,
    queue: Annotated[
        Path | None,
        typer.Option("--queue", help="Write the cases for people here: .csv, .jsonl or .json."),
    ] = None,
    about: LabelsAbout = None,
    adjudicator: Adjudicator = "adjudicator",
    seed: SeedOption = 7,
    as_json: AsJson = False,
) -> None:
    """Find the confidence from which a judge's verdicts need no person, and who labels the rest.

    Ends with 0 if there is one, 1 if none can be shown to be enough, 2 on bad input.
    """
    from guardrail_offline.calibration.acceptance import acceptance
    from guardrail_offline.calibration.fit_options import FitOptions
    from guardrail_offline.calibration.judge_agreement import read_judged
    from guardrail_offline.calibration.labels import (
        Look,
        ledger_of,
        read_labels,
        read_looks,
        record,
        spend,
        verdicts,
    )
    from guardrail_offline.calibration.sampling import Drawn, task_text
    from guardrail_offline.calibration.scored_lab import read_lab
    from guardrail_service.policy.provenance import sha256_of

    FitOptions(alpha=alpha, delta=delta)  # refuses what makes no sense
    words = verdicts(read_labels(labels), str(labels), about, adjudicator)
    judged = read_judged(run, metric, threshold, words.passes)
    found = acceptance(judged, alpha, delta, seed, words.abstained)
    rule = ["acceptance", judged.name, judged.threshold, alpha, delta, seed]
    data = [[c.key, c.group, c.score] for c in judged.cases], sorted(words.passes.items())
    look = Look(sha256_of(rule), sha256_of(data), delta, "fixed")
    spent = spend(read_looks(ledger_of(labels)), look)
    record(ledger_of(labels), look)
    if queue is not None:
        cases = read_lab(run).by_key()
        write(queue, task_text([Drawn(cases[case.key], 1.0) for case in found.queue], queue.suffix))
    if as_json:
        out.print_json(json.dumps({**found.as_json(), "looks": spent.as_json("fixed")}))
    else:
        say(found.sentences())
        if spent.count > 1:
            say([
                f"look {spent.count} at these labels: all promises made of them hold together with "
                f"confidence {1 - spent.delta:.3f}"
            ])  # fmt: skip
    raise typer.Exit(EXIT_FLAGGED if found.confidence is None else 0)
