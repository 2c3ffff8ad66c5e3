"""A configuration against a second labelled lab: does the promise hold there, and do the scores?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from guardrail_offline.calibration.deciding_metrics import DecidingMetric, deciding_metrics
from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.joint_rule import JointCut
from guardrail_offline.calibration.provenance_block import digest
from guardrail_offline.calibration.scored_lab import ScoredLab
from guardrail_offline.calibration.split import labelled
from guardrail_offline.calibration.statistics import (
    Drift,
    FlagRate,
    Slice,
    compare,
    own_scores,
    rate,
    slices,
)
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Policy

PromiseFinding = Literal["confirmed", "consistent", "broken"]


@dataclass(frozen=True, slots=True)
class Checkup:
    """The findings of a second lab about a configuration.

    Attributes:
        alpha: The promised bound; None if the file promises none of the whole.
        false_flags: Good units flagged; a unit is what it was when thresholds were fitted.
        recall: Bad units flagged.
        slices: Both rates by slice, all answers.
        drift: Per metric with a stored baseline.
    """

    alpha: float | None
    false_flags: FlagRate
    recall: FlagRate
    slices: tuple[Slice, ...]
    drift: tuple[Drift, ...]

    @property
    def finding(self) -> PromiseFinding | None:
        """Return what the exact 95 % interval of the false-flag rate says about the bound.

        `broken`: all of it lies above. `confirmed`: all of it lies below. `consistent`: neither;
        the lab is too small to tell more.
        """
        if self.alpha is None:
            return None
        low, high = self.false_flags.interval
        if low > self.alpha:
            return "broken"
        return "confirmed" if high <= self.alpha else "consistent"

    def sentences(self) -> Iterator[str]:
        """Yield what was found, in plain words."""
        told = {
            "broken": "The promise is broken here",
            "confirmed": "The promise is confirmed here",
            "consistent": "Nothing here speaks against the promise; the lab is too small for more",
            None: "The file promises nothing about all checks together",
        }[self.finding]
        bound = "" if self.alpha is None else f"; promised: at most {self.alpha:.1%}"
        yield f"{told}. Good answers flagged: {self.false_flags}{bound}."
        yield f"Bad answers caught: {self.recall}."
        for part in self.slices:
            yield (
                f"{part.fact} {part.value}: good flagged {part.false_flags}; "
                f"bad caught {part.recall}."
            )
        for drift in self.drift:
            moved = "have moved" if drift.found else "look as before"
            yield (
                f"Scores of {drift.metric} {moved} (stability index {drift.psi:.2f}, "
                f"p {drift.p:.3f}); without a score {drift.then:.0%} then, {drift.now:.0%} now."
            )

    def as_json(self) -> dict[str, Any]:
        """Return the checkup for `--json`."""
        return {
            "finding": self.finding,
            "alpha": self.alpha,
            "false_flag": self.false_flags.as_json(),
            "recall": self.recall.as_json(),
            "slices": [s.as_json() for s in self.slices],
            "drift": [d.as_json() for d in self.drift],
        }


def checkup(
    policy: Policy,
    block: Mapping[str, Any],
    lab: ScoredLab,
    passes: Mapping[str, bool],
    abstained: Collection[str] = (),
) -> Checkup:
    """Return what a labelled lab says about a configuration.

    Args:
        policy: The configuration.
        block: Its `calibration` key.
        lab: Scored cases of questions that were not fitted on.
        passes: One word per labelled case.
        abstained: Cases that people read and could not tell.

    Raises:
        ConfigurationError: If scores come from other models, questions were fitted on, or labels
            do not fit the unit that was fitted.
    """
    _refuse_other_models(block, lab)
    gates = deciding_metrics(policy, lab)
    data = labelled(lab, passes, gates, _options(block), design_groups=0.0, abstained=abstained)
    _refuse_fitted_on(block, data.groups)
    cut = JointCut(tuple(_oriented(gate) for gate in gates), 0)
    flags = cut.flags(data.values)
    target = block.get("target", {})
    whole = target.get("kind") == "false_flag_rate" and target.get("scope") == "joint"
    return Checkup(
        alpha=target["alpha"] if whole else None,
        false_flags=rate(cut.flags(data.units(data.good, _options(block)))),
        recall=rate(cut.flags(data.units(~data.good, _options(block)))),
        slices=tuple(slices(data.cases, data.good, flags)),
        drift=tuple(_drift(block, gates, lab)),
    )


def _options(block: Mapping[str, Any]) -> FitOptions:
    stored = block.get("options", {})
    return FitOptions(unit=stored.get("unit", "one_per_group"), seed=stored.get("seed", 7))


def _oriented(gate: DecidingMetric) -> float:
    cut = gate.rule.cuts[gate.metric.key].threshold
    return cut if gate.metric.boolean else gate.axis.orient(cut)


def _refuse_other_models(block: Mapping[str, Any], lab: ScoredLab) -> None:
    for key, fitted in block.get("fingerprints", {}).items():
        found = lab.fingerprints.get(key)
        if found != fitted:
            raise ConfigurationError(
                f"{lab.where}: fingerprint of {key}",
                repr(found)[:40],
                f"{fitted[:40]!r}, which thresholds were fitted on: score this lab again",
            )


def _fitted_on(block: Mapping[str, Any], groups: Sequence[str]) -> set[str]:
    """Return the questions among `groups` that thresholds were fitted on."""
    used = set(block.get("dataset", {}).get("group_digests", ()))
    return {group for group in set(groups) if digest(group) in used}


def _refuse_fitted_on(block: Mapping[str, Any], groups: Sequence[str]) -> None:
    again = sorted(_fitted_on(block, groups))
    if again:
        raise ConfigurationError(
            "labels",
            f"{len(again)} questions that thresholds were fitted on ({again[0]!r})",
            "questions that were not: on these the rate is flattered",
        )


def _drift(
    block: Mapping[str, Any], gates: Sequence[DecidingMetric], lab: ScoredLab
) -> list[Drift]:
    """Return the drift of every metric over the lab's new questions, one case each."""
    stored = block.get("per_metric", {})
    old = _fitted_on(block, [case.group for case in lab.cases])
    new = [case for case in lab.cases if case.group not in old]
    found = []
    for gate in gates:
        kept = stored.get(gate.evaluator_id, {}).get(gate.metric.key, {}).get("baseline")
        if kept is not None:
            values = own_scores(gate, new, _options(block).seed)
            found.append(compare(gate.name, kept, values))
    return found
