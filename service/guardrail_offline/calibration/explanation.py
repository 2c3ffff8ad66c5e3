"""Explains in plain words what a guardrail file promises and what it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from guardrail_offline.calibration.statistics import FlagRate


def explain(content: Mapping[str, Any]) -> list[str]:
    """Return sentences about a guardrail file, most important first.

    Args:
        content: The file as JSON values.
    """
    block = content.get("calibration") or {}
    if not block.get("target"):
        return [
            "This file promises nothing: it has no record of a calibration.",
            "Its thresholds may come from anywhere: how often they flag a good answer is unknown.",
        ]
    parts = (_promise, _judge, _basis, _found, _limits, _metrics)
    return [sentence for part in parts for sentence in part(block)]


def _promise(block: Mapping[str, Any]) -> Iterator[str]:
    target = block["target"]
    alpha, delta = target["alpha"], target["delta"]
    what = {
        "one_per_group": "a good answer to a new question of the same kind",
        "worst_of_group": "any of the good answers to a new question of the same kind",
    }[target["unit"]]
    if target["kind"] == "none":
        yield f"Promise: none. The method ({block['method']}) fits these labels as well as it can."
    elif target["kind"] == "recall":
        caught = {
            "one_per_group": f"at least {alpha:.0%} of bad answers are flagged",
            "worst_of_group": f"of at least {alpha:.0%} of new questions with bad answers, one or "
            "more of these are flagged",
        }[target["unit"]]
        yield (
            f"Promise, per metric that is no yes/no check: {caught}, with confidence "
            f"{1 - delta:.0%}. How many good ones are flagged is not bounded."
        )
    elif target["scope"] == "joint":
        yield (
            f"Promise: {what} is flagged by any of these checks with probability at most "
            f"{alpha:.1%}. Drawing labels anew, this would be true at least {1 - delta:.0%} of "
            "the time."
        )
    elif delta is None:
        yield (
            f"Promise, per metric and only on average over draws of labels: {what} is flagged by "
            f"that metric with probability at most {alpha:.1%}. In a given draw it may be more."
        )
    else:
        yield (
            f"Promise, per metric: {what} is flagged by that metric with probability at most "
            f"{alpha:.1%}, with confidence {1 - delta:.0%}. Several metrics together flag more."
        )
    looks = block.get("looks", {})
    if looks.get("count", 1) > 1 and target["kind"] != "none":
        together = (
            "All promises with a confidence that were made of them hold together with confidence "
            f"{1 - looks['delta_total']:.1%}."
            if delta is not None
            else "A promise on average holds for a rule that no other look chose."
        )
        yield f"These labels were looked at {looks['count']} times. {together}"


def _judge(block: Mapping[str, Any]) -> Iterator[str]:
    for name, told in block.get("judge", {}).items():
        yield (
            f"The scores of {name} are those of the judge {told['model']} with the prompts of this "
            "file; of another judge it promises nothing. No service can serve it."
        )


def _basis(block: Mapping[str, Any]) -> Iterator[str]:
    data = block["dataset"]
    people = {0: "nobody named", 1: "one person"}.get(
        data["annotators"], f"{data['annotators']} people"
    )
    yield (
        f"Basis: {data['n_labeled']} answers to {data['n_labeled_groups']} questions, labelled by "
        f"{people}: {data['n_good']} good, {data['n_bad']} bad.{_rests(block)} Sampling: "
        f"{data['sampling']}."
    )
    agreement = data.get("agreement")
    if agreement and agreement["cohen_kappa"] is not None:
        yield (
            f"Two people labelled {agreement['cases_by_two']} of them: they agree on "
            f"{agreement['agree']:.0%}, kappa {agreement['cohen_kappa']:.2f}."
        )
    if block.get("shape"):
        yield f"Method: {block['method']} ({block['shape']['why']})."


def _rests(block: Mapping[str, Any]) -> str:
    kind = {"false_flag_rate": "good", "recall": "bad"}.get(block["target"]["kind"])
    number = block["dataset"]["n_units"]
    return f" The bound rests on {number} independent {kind} ones." if kind else ""


def _found(block: Mapping[str, Any]) -> Iterator[str]:
    joint = block["joint"]
    false_flag, caught = (FlagRate(joint[k]["x"], joint[k]["n"]) for k in ("false_flag", "recall"))
    if block["target"]["kind"] == "recall":
        yield f"Found: of the good ones, {false_flag} are flagged."
        yield f"Of the bad ones it was fitted on: {caught} are caught."
        return
    yield f"Found: of the good ones it was fitted on, {false_flag} are flagged."
    if "false_flag_on_design" in joint:
        other = joint["false_flag_on_design"]
        yield f"Of good ones that did not set the cut: {FlagRate(other['x'], other['n'])}."
    yield (
        f"Of bad answers to other questions than those that chose the method: {caught} are caught."
        if block.get("shape")
        else f"Of bad answers: {caught} are caught."
    )
    if "false_flag_upper" in joint:
        yield (
            f"The cut is the {_ordinal(joint['k'])} lowest of {joint['n']}; the bound that this "
            f"achieves is {joint['false_flag_upper']:.2%}, and "
            f"{joint['false_flag_expected']:.2%} is to be expected."
        )


def _limits(block: Mapping[str, Any]) -> Iterator[str]:
    kind = block["target"]["kind"]
    other = {
        "recall": "that good answers are not flagged",
        "none": "how many good answers are flagged; that bad ones are caught",
    }.get(kind, "that bad answers are caught")
    yield (
        f"Not promised: {other}; that the rate holds for answers of another kind, another "
        "language, another model or another time; that it holds within every slice."
    )
    if kind == "false_flag_rate":
        yield "Not covered: flags because a deadline passed before a check was done."
    if kind == "recall":
        yield "Not covered: bad answers that a check could not judge before a deadline passed."
    for warning in block.get("warnings", ()):
        yield f"Warning: {warning}."
    if block.get("expires"):
        yield f"The promise ends on {block['expires']}."
    models = ", ".join(sorted(block.get("fingerprints", {})))
    if models:
        yield f"Served only with the same {models}; on another the service refuses the file."


def _metrics(block: Mapping[str, Any]) -> Iterator[str]:
    for evaluator, metrics in sorted(block["per_metric"].items()):
        for key, entry in metrics.items():
            sign = "below" if entry["operator"] == "flag_if_lt" else "above"
            name = f"{evaluator.rsplit('.', 1)[-1]}.{key}"
            if entry["threshold"] is None:
                yield f"{name}: never flags."
                continue
            alone = FlagRate(entry["false_flag"]["x"], entry["false_flag"]["n"])
            caught = FlagRate(entry["recall"]["x"], entry["recall"]["n"])
            yield (
                f"{name}: flags {sign} {entry['threshold']:.4g} ({entry['status']}). Alone it "
                f"flags {alone.x} of {alone.n} good and {caught.x} of {caught.n} bad; "
                f"{entry['n_missing']} had no score."
            )


def _ordinal(k: int) -> str:
    ending = "th" if k % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(k % 10, "th")
    return f"{k}{ending}"
