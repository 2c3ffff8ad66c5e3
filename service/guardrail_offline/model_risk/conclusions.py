"""The conclusion that a workflow's results support, by rules that the report states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from guardrail_offline.model_risk.report_blocks import Cell, metric_name
from guardrail_offline.model_risk.step_data import STEP_FILES, JsonPlace, WorkflowData

TOLERATED = 0.05
"""Share of failing answers that a deciding metric may have."""
LITTLE_AGREEMENT = 0.6
"""Kappa below which people agree less than substantially (Landis and Koch 1977)."""
Word = Literal["not supported", "supported with conditions", "supported", "none"]
VERDICTS: Mapping[Word, str] = {
    "not supported": "The results do not support the use of this system as it is.",
    "supported with conditions": "The results support the use of this system with conditions.",
    "supported": "Nothing in the results speaks against the use of this system.",
}
Stand = Literal["beyond", "open", "within", "unfounded", "not judged"]
FOUNDED = ("calibrated", "fitted", "rule", "yours")
"""Origins of thresholds that say something about this system: a suite's own does not."""


@dataclass(frozen=True)
class Gate:
    """A metric that decides, against its threshold.

    Attributes:
        metric: Its name.
        threshold: Its entry of step 5.
        failing: Share of questions on the wrong side.
        stand: Against the tolerated share.
    """

    metric: str
    threshold: JsonPlace
    failing: JsonPlace
    stand: Stand


@dataclass(frozen=True)
class Conclusion:
    """A conclusion with its reasons, the gravest first.

    Attributes:
        word: `none` if the steps that it rests on were not run.
        verdict: The same as a sentence.
    """

    word: Word
    verdict: str
    gates: tuple[Gate, ...]
    against: tuple[Cell, ...]
    conditions: tuple[Cell, ...]


def conclude(data: WorkflowData, tolerated: float = TOLERATED) -> Conclusion:
    """Return the conclusion: what speaks against the use, and what has to be done first."""
    gates = tuple(_gates(data, tolerated))
    against = [_beyond(gate) for gate in gates if gate.stand == "beyond"]
    conditions = [_open(gate) for gate in gates if gate.stand == "open"]
    if loose := [gate.metric for gate in gates if gate.stand == "unfounded"]:
        names = ", ".join(loose)
        conditions.append(
            (f"{names}: the threshold was chosen for other models and decides nothing.",)
        )
    if not any(gate.stand in ("beyond", "open", "within") for gate in gates):
        conditions.append(("No metric with a threshold that means something was judged.",))
    conditions += [*_people(data), *_weak(data), *_robust(data), *_missing(data)]
    word: Word = "supported"
    if against:
        word = "not supported"
    elif conditions:
        word = "supported with conditions"
    if without := _without(data):
        return Conclusion("none", without, gates, tuple(against), tuple(conditions))
    return Conclusion(word, VERDICTS[word], gates, tuple(against), tuple(conditions))


def _without(data: WorkflowData) -> str:
    """Return why there is no conclusion; empty if the steps that it rests on were run."""
    if why := data.missing("evaluation"):
        return f"No conclusion: the system's answers were not evaluated ({why})."
    if why := data.missing("calibration"):
        return f"No conclusion: no metric has a threshold that decides ({why})."
    return ""


def stand_of(failing: JsonPlace, tolerated: float) -> Stand:
    """Return how a share of failing answers stands: by its whole 95 % interval."""
    low, high = failing["interval95"][0].value, failing["interval95"][1].value
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return "not judged"
    if low > tolerated:
        return "beyond"
    return "within" if high <= tolerated else "open"


def share_cell(rate: JsonPlace) -> Cell:
    """Return a rate in words: its share with interval and counts."""
    if rate.value is None:
        return ("-",)
    low, high = rate["interval95"][0], rate["interval95"][1]
    return (
        rate["rate"].number("share"),
        " (",
        low.number("share"),
        " to ",
        high.number("share"),
        ")",
    )


def _gates(data: WorkflowData, tolerated: float) -> Iterator[Gate]:
    earlier = {one["metric"].text: one for one in data.results("evaluation")["metrics"]}
    for one in data.results("calibration")["thresholds"]:
        if one["gates"].value is not True:
            continue
        name = one["metric"].text
        failing = one["failing"]
        if failing.value is None and name in earlier and not one["calibrated"].value:
            failing = earlier[name]["failing"]
        founded = one["origin"].value in FOUNDED
        stand = stand_of(failing, tolerated) if founded else "unfounded"
        yield Gate(metric_name(one), one, failing, stand)


def _beyond(gate: Gate) -> Cell:
    return (f"{gate.metric} fails on ", *share_cell(gate.failing), " of the questions.")


def _open(gate: Gate) -> Cell:
    return (
        f"{gate.metric} fails on ",
        *share_cell(gate.failing),
        " of the questions: the interval does not decide. More test cases would.",
    )


def _people(data: WorkflowData) -> Iterator[Cell]:
    calibration = data.results("calibration")
    labels = calibration["labels"]
    if labels.value is None:
        yield ("No person has judged any answer: thresholds are not calibrated.",)
        return
    kappa = labels["kappa"]["kappa"]
    if isinstance(kappa.value, int | float) and kappa.value < LITTLE_AGREEMENT:
        yield ("The people who labelled answers agree with kappa ", kappa.number("f2"), " only.")
    plain = [one for one in calibration["thresholds"] if one["gates"].value]
    left = [metric_name(one) for one in plain if not one["calibrated"].value]
    if left:
        yield (f"Not calibrated by labels: {', '.join(left)}.",)


def _weak(data: WorkflowData) -> Iterator[Cell]:
    weak = data.results("weaknesses")["weak"]
    if weak.value:
        yield (weak.number("count"), " weaknesses beyond chance are open (section 7).")


def _robust(data: WorkflowData) -> Iterator[Cell]:
    shifted = [
        metric_name(one)
        for one in data.results("adversarial")["metrics"]
        if one["shifted"].value is True
    ]
    if shifted:
        yield (f"Adversarial questions change the scores of {', '.join(shifted)}.",)


def _missing(data: WorkflowData) -> Iterator[Cell]:
    absent = [name for name in STEP_FILES if name not in data.present]
    if absent:
        yield (f"Not run: {', '.join(absent)}.",)
    skipped = [name for name in data.present if not data.done(name)]
    if skipped:
        yield (f"Skipped, with the reason in its section: {', '.join(skipped)}.",)
