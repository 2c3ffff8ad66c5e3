"""The commands under `guardrail calibrate`."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from guardrail_offline.calibration import acceptance_command
from guardrail_offline.calibration.command_parts import (
    THIRD,
    Adjudicator,
    Alpha,
    Delta,
    LabelsAbout,
    LabelsOption,
    ScoredLabArgument,
    SeedOption,
    Split,
    calibrate_app,
    calibrates,
    say,
    serving_at_hand,
    write,
)
from guardrail_offline.calibration.fit_options import (
    FitOptions,
    Looks,
    MethodName,
    ObservationUnit,
    RuleName,
    parse_weights,
)
from guardrail_service.commands.console import (
    EXIT_FLAGGED,
    AsJson,
    PackOption,
    err,
    late_progress_bar,
    out,
    settings_from,
)
from guardrail_service.errors import ConfigurationError

if TYPE_CHECKING:
    from guardrail_offline.calibration.fit import FitResult

RuleOption = Annotated[
    RuleName,
    typer.Option(
        "--rule", help="joint bounds all metrics together; the others fit each one alone."
    ),
]
MethodOption = Annotated[
    MethodName, typer.Option("--method", help="Order of answers under the joint rule.")
]
UnitOption = Annotated[
    ObservationUnit, typer.Option("--unit", help="Unit that counts as one observation.")
]
LooksOption = Annotated[
    Looks, typer.Option("--looks", help="fixed: each look costs delta; anytime: labels may grow.")
]
BaseOption = Annotated[
    Path | None,
    typer.Option("--base", help="Guardrail JSON to calibrate; the shipped default if unset."),
]
OutFolder = Annotated[Path, typer.Option("--out", help="Folder to write into.")]

__all__ = ["acceptance_command", "calibrate_app"]


@calibrate_app.command("lab")
@calibrates
def lab_command(
    requests: Annotated[Path, typer.Argument(help="Bodies of /v1/check, JSON lines.")],
    replies: Annotated[Path, typer.Argument(help="Replies of guardrail check, in the same order.")],
    output: Annotated[Path, typer.Option("--out", help="The scored lab to write, .jsonl.")],
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Guardrail JSON they were served under.")
    ] = None,
    info: Annotated[
        Path | None, typer.Option(help="Saved GET /v1/info of the service; else --pack.")
    ] = None,
    pack: PackOption = None,
) -> None:
    """Make a scored lab of served requests and their replies. Nothing is scored again."""
    from guardrail_offline.calibration.fit import base_policy
    from guardrail_offline.calibration.scored_lab import fingerprints_of, join, write_lab

    serving, _ = serving_at_hand(pack, config)
    policy = base_policy(config, serving)
    fingerprints = fingerprints_of(info) if info else serving.fingerprints
    joined = join(requests, replies, policy, fingerprints)
    write(output, "\n".join(write_lab(joined.lab)) + "\n")
    left = f"; {joined.errors} in error left out" if joined.errors else ""
    say([f"wrote {output}: {len(joined.lab.cases)} scored cases{left}"])


@calibrate_app.command("sample")
@calibrates
def sample_command(
    lab: ScoredLabArgument,
    output: Annotated[
        Path, typer.Option("--out", help="Where to write: .jsonl, .csv, or .json (Label Studio).")
    ],
    count: Annotated[int, typer.Option("--n", min=1, help="Questions to label.")],
    by: Annotated[
        str | None, typer.Option(help="Draw evenly over a fact, such as topic or language.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole-questions", help="Take every answer to a drawn question.")
    ] = False,
    seed: SeedOption = 7,
) -> None:
    """Draw the cases that people should label: simple random, or stratified with weights.

    Beside OUT goes OUT.sample.jsonl with the drawn cases and their weights: give it to `fit`. For
    Label Studio also OUT.form.xml, the labelling form.
    """
    from guardrail_offline.calibration.labels import FORM
    from guardrail_offline.calibration.sampling import draw, sample_text, task_text
    from guardrail_offline.calibration.scored_lab import read_lab

    cases = read_lab(lab).cases
    drawn = draw(cases, count, seed, by, whole=whole)
    write(output, task_text(drawn, output.suffix))
    if output.suffix == ".json":
        write(output.with_name(f"{output.name}.form.xml"), FORM)
    kept = output.with_name(f"{output.name}.sample.jsonl")
    write(kept, sample_text(drawn))
    say([f"wrote {output} with {len(drawn)} cases to label, and {kept} for calibrate fit"])


@calibrate_app.command("fit")
@calibrates
def fit_command(
    output: Annotated[Path, typer.Option("--out", help="The guardrail JSON to write.")],
    lab: Annotated[
        Path | None,
        typer.Argument(help="Run folder of guardrail evaluate, or output of calibrate lab."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="Labels: .jsonl, .csv, or a Label Studio export .json."),
    ] = None,
    again: Annotated[
        Path | None,
        typer.Option(
            help="A file this command wrote: fit it again from its own lab and labels, scored anew "
            "if the models have changed. Every other option is taken from it."
        ),
    ] = None,
    alpha: Alpha = 0.05,
    delta: Delta = 0.10,
    base: BaseOption = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="detector or detector.metric that gates; repeatable.")
    ] = None,
    rule: RuleOption = "joint",
    method: MethodOption = "auto",
    split: Split = THIRD,
    weight: Annotated[
        list[str] | None,
        typer.Option(help="detector.metric=2 flags more by that metric; or learn."),
    ] = None,
    unit: UnitOption = "one_per_group",
    recall: Annotated[float, typer.Option(help="Least recall, for the rule recall.")] = 0.8,
    miss_cost: Annotated[
        float, typer.Option(help="Cost of a miss in false flags, for the rule cost.")
    ] = 1.0,
    looks: LooksOption = "fixed",
    previous: Annotated[
        Path | None, typer.Option(help="Earlier file whose method and scales are kept.")
    ] = None,
    sample: Annotated[
        Path | None, typer.Option(help="The .sample.jsonl these labels were drawn with.")
    ] = None,
    adjudicator: Adjudicator = "adjudicator",
    about: LabelsAbout = None,
    name: Annotated[str | None, typer.Option(help="Name of the new policy.")] = None,
    policy_version: Annotated[str, typer.Option(help="Version of the new policy.")] = "1",
    expires: Annotated[str | None, typer.Option(help="ISO date the promise ends on.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Folder for the page, plots and doubtful labels.")
    ] = None,
    seed: SeedOption = 7,
    pack: PackOption = None,
    as_json: AsJson = False,
) -> None:
    """Fit thresholds to human labels and write the guardrail JSON that is served unchanged."""
    from guardrail_offline.calibration.fit import FitInputs, run_fit

    if again is not None:
        run = _again(again, output, pack, lab, labels)
        _written(run, output, report, as_json=as_json)
        return
    if lab is None or labels is None:
        missing = "the scored lab" if lab is None else "--labels"
        raise ConfigurationError(missing, "nothing", "a scored lab and its labels, or --again FILE")
    weights, learn = parse_weights(weight or ())
    options = FitOptions(
        rule=rule, alpha=alpha, delta=delta, recall=recall, miss_cost=miss_cost, method=method,
        split=split, weights=weights, learn=learn, unit=unit, seed=seed, looks=looks,
    )  # fmt: skip
    serving, models = serving_at_hand(pack, base)
    inputs = FitInputs(
        lab=lab, labels=labels, base=base, metrics=tuple(metric or ()), sample=sample,
        previous=previous, adjudicator=adjudicator, about=about, name=name,
        version=policy_version, expires=expires, models=models, beside=output.parent,
    )  # fmt: skip
    run = run_fit(inputs, options, serving)
    _written(run, output, report, as_json=as_json)


def _again(
    file: Path, output: Path, pack: str | None, lab: Path | None, labels: Path | None
) -> FitResult:
    """Fit a file again; a bar counts the cases that have to be scored anew."""
    from guardrail_offline.calibration.again import fit_again

    if lab is not None or labels is not None:
        raise ConfigurationError("--again", "a lab or --labels beside it", "one or the other")
    serving, models = serving_at_hand(pack)
    chosen = settings_from(model_pack=pack).model_pack
    with late_progress_bar("scoring again") as (begin, advance):
        return fit_again(
            file, output, serving, pack=chosen, models=models, begin=begin, advance=advance
        )


def _written(run: FitResult, output: Path, report: Path | None, *, as_json: bool) -> None:
    """Write what a fit gave and tell about it."""
    from guardrail_offline.calibration.explanation import explain
    from guardrail_offline.calibration.provenance_block import file_text

    write(output, file_text(run.content))
    if report is not None:
        _write_report(run, report)
    if as_json:
        out.print_json(json.dumps(run.content))
        return
    say([f"wrote {output}", *explain(run.content)])


def _write_report(run: FitResult, folder: Path) -> None:
    from guardrail_offline.calibration.report import page, suspects

    folder.mkdir(parents=True, exist_ok=True)
    axes = [gate.axis for gate in run.fitted.gates if not gate.metric.boolean]
    doubtful = [suspect.as_json() for suspect in suspects(run.fitted.data, axes)]
    images = _pictures(run)
    for name, data in images.items():
        write(folder / name, data)
    write(folder / "doubtful_labels.json", json.dumps(doubtful, indent=1) + "\n")
    write(folder / "index.html", page(run.content, images, doubtful))


def _pictures(run: FitResult) -> dict[str, bytes]:
    """Return the pictures, none where matplotlib is missing: the numbers are on the page anyway."""
    if find_spec("matplotlib") is None:
        advice = "pip install 'rag-guardrail-offline[plots]'"
        err.print(f"the page has no pictures: {advice}", markup=False)
        return {}
    from guardrail_offline.calibration.report import pictures

    with err.status("drawing"):
        return pictures(run.fitted, run.content["calibration"])


@calibrate_app.command("check")
@calibrates
def check_command(
    config: Annotated[Path, typer.Argument(help="The guardrail JSON to check.")],
    lab: Annotated[Path, typer.Option(help="Scored lab of questions that were not fitted on.")],
    labels: LabelsOption,
    adjudicator: Adjudicator = "adjudicator",
    pack: PackOption = None,
    as_json: AsJson = False,
) -> None:
    """Compare a guardrail JSON's promise with a second labelled lab: rate, slices, drift.

    Ends with 0 if the promise stands, 1 if it is broken or scores have drifted, 2 on bad input.
    """
    from guardrail_offline.calibration.checkup import checkup
    from guardrail_offline.calibration.judged_policy import policy_of_file
    from guardrail_offline.calibration.labels import read_labels, verdicts
    from guardrail_offline.calibration.scored_lab import read_lab
    from guardrail_service.policy.file import load_file
    from guardrail_service.policy.file_schema import read_json

    serving, _ = serving_at_hand(pack, config)
    words = verdicts(read_labels(labels), str(labels), adjudicator=adjudicator)
    content, scored = read_json(config), read_lab(lab)
    policy = policy_of_file(content, scored) or load_file(config, serving).policy
    block = content.get("calibration", {})
    found = checkup(policy, block, scored, words.passes, words.abstained)
    if as_json:
        out.print_json(json.dumps(found.as_json()))
    else:
        say(found.sentences())
    drifted = any(drift.found for drift in found.drift)
    raise typer.Exit(EXIT_FLAGGED if found.finding == "broken" or drifted else 0)


@calibrate_app.command("derive")
@calibrates
def derive_command(
    lab: ScoredLabArgument,
    config: Annotated[Path, typer.Option("--config", "-c", help="The new guardrail JSON.")],
    output: OutFolder,
    before: Annotated[
        Path | None, typer.Option(help="The old guardrail JSON, to list what changes.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Labels, for the corpus patch of answers people passed.")
    ] = None,
    adjudicator: Adjudicator = "adjudicator",
    pack: PackOption = None,
    as_json: AsJson = False,
) -> None:
    """Judge old scores by a new configuration: pass and fail, problems, flips, artefacts.

    Nothing is scored again. Writes derived.json, the corpus patch and the system prompt extension.
    """
    from guardrail_offline.calibration.derivation import artefacts, derive
    from guardrail_offline.calibration.labels import read_labels, verdicts
    from guardrail_offline.calibration.scored_lab import read_lab
    from guardrail_service.policy.file import load_file

    serving, _ = serving_at_hand(pack, config)
    scored = read_lab(lab)
    new = derive(scored, load_file(config, serving).policy)
    summary: dict[str, Any] = new.as_json()
    if before is not None:
        changed = new.changes(derive(scored, load_file(before, serving).policy))
        summary["changed"] = [flip.as_json() for flip in changed]
    words = (
        verdicts(read_labels(labels), str(labels), adjudicator=adjudicator).passes if labels else {}
    )
    _write_artefacts(output, {"derived.json": summary, **artefacts(scored, new, words)})
    if as_json:
        out.print_json(json.dumps(summary))
        return
    say(
        [
            f"{len(summary['flagged'])} of {summary['cases']} cases flagged",
            *(f"{name}: {len(keys)}" for name, keys in summary["problems"].items()),
            f"{len(summary['variant_flips'])} variants decided otherwise than their source",
            *([f"{len(summary['changed'])} cases change"] if before else []),
            f"wrote {output}",
        ]
    )


def _write_artefacts(folder: Path, files: dict[str, Any]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise ConfigurationError(str(folder), found, "a folder to write into") from error
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content, indent=1) + "\n"
        write(folder / name, text)


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
        int | None, typer.Option(min=1, help="Show what this many good questions can promise.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how many labels a promise takes, before anybody labels."""
    from guardrail_offline.calibration.fit_options import FitOptions
    from guardrail_offline.calibration.sampling import best_promise, plan, table

    found = plan(FitOptions(alpha=alpha, delta=delta, split=split), good_share)
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
    from guardrail_service.policy.file_schema import read_json

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
    from guardrail_offline.calibration.fit_options import FitOptions
    from guardrail_offline.calibration.h2o_contract import calibrate, guardrail_json, parse_request
    from guardrail_service.detectors.registry import REGISTRY
    from guardrail_service.policy.file_schema import read_json

    parsed = parse_request(read_json(request))
    REGISTRY.load_plugins([parsed.evaluator])
    operation = calibrate(parsed, REGISTRY, FitOptions(alpha=alpha, delta=delta))
    out.print_json(json.dumps(operation))
    if "error" in operation:
        raise typer.Exit(1)
    if output is not None:
        write(output, json.dumps(guardrail_json(parsed, operation), indent=1) + "\n")
