"""Labels and scores in, thresholds with a promise out; or a refusal that says what is missing."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardrail_offline.calibration.alone import cuts_alone
from guardrail_offline.calibration.gates import MIDDLE, Gate
from guardrail_offline.calibration.joint import JointCut
from guardrail_offline.calibration.lab import ScoredLab
from guardrail_offline.calibration.labelled import Labelled, labelled
from guardrail_offline.calibration.options import PROMISING, Options
from guardrail_offline.calibration.planning import COMFORT
from guardrail_offline.calibration.ranks import anytime_rank, guaranteed_rank
from guardrail_offline.calibration.refusals import refuse_always_flagged, refuse_too_few
from guardrail_offline.calibration.scales import Matrix
from guardrail_offline.calibration.shape import (
    LEAST_GOOD,
    Shape,
    choose_shape,
    shape_from_json,
)
from guardrail_service.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Fitted:
    """Thresholds and what they rest on.

    Attributes:
        gates: Every metric that decides, those with a fitted threshold first.
        cuts: Oriented threshold per gate; minus infinity never flags.
        data: The labelled cases, divided.
        units: Rows the bound was computed from. Shape (n, gates).
        rank: k of the joint rule; 0 for rules per metric.
        tau: The joint cut on the standardised scale, where there is one.
        shape: How the joint rule orders answers.
        options: What was asked for.
    """

    gates: tuple[Gate, ...]
    cuts: tuple[float, ...]
    data: Labelled
    units: Matrix
    rank: int
    tau: float | None
    shape: Shape | None
    options: Options

    @property
    def promising(self) -> bool:
        """Return whether the thresholds carry a promise."""
        return self.options.rule in PROMISING

    @property
    def joint(self) -> JointCut:
        """Return the thresholds as one rule over all gates."""
        return JointCut(self.cuts, self.rank, self.tau)

    def threshold(self, index: int) -> float | None:
        """Return a gate's threshold on its own scale; None where it can never flag."""
        if self.gates[index].metric.boolean:
            return MIDDLE
        cut = self.cuts[index]
        return self.gates[index].axis.orient(cut) if math.isfinite(cut) else None


def fit(
    lab: ScoredLab,
    passes: Mapping[str, bool],
    gates: Sequence[Gate],
    options: Options,
    weights: Mapping[str, float] | None = None,
    previous: Mapping[str, Any] | None = None,
    abstained: Collection[str] = (),
) -> Fitted:
    """Return thresholds fitted to labels.

    Args:
        lab: Scored cases.
        passes: One word per labelled case.
        gates: The metrics that decide.
        options: What is promised and how.
        weights: How many questions each sampled case's stands for, if the sample was uneven.
        previous: The shape of an earlier fit, kept as it is; needed to look again at any time.
        abstained: Cases that people read and could not tell.

    Raises:
        ConfigurationError: If the labels cannot carry what is asked; the message says how many
            more are needed.
    """
    if options.rule != "joint":
        data = labelled(lab, passes, gates, options, weights, 0.0, abstained)
        cuts, units = cuts_alone(data, gates, options)
        return Fitted(tuple(gates), cuts, data, units, 0, None, None, options)
    data = labelled(lab, passes, gates, options, weights, abstained=abstained)
    if (
        previous is None
        and _may_drop_split(options)
        and _rank(_count(data, options), options) < COMFORT
    ):
        data = labelled(lab, passes, gates, options, weights, 0.0, abstained)
    return _joint(data, tuple(gates), options, previous)


def _may_drop_split(options: Options) -> bool:
    """Return whether all labels may go into the bound: the by-ranks rule needs no design part.

    The choice depends on how many labels there are and never on a score, or the bound would not
    cover it.
    """
    return options.method == "auto" and not options.learn and options.looks == "fixed"


def _count(data: Labelled, options: Options) -> int:
    return len(data.units(data.good & ~data.design, options))


def _rank(n: int, options: Options) -> int:
    rule = anytime_rank if options.looks == "anytime" else guaranteed_rank
    return rule(n, options.alpha, options.delta)


def _joint(
    data: Labelled, gates: tuple[Gate, ...], options: Options, previous: Mapping[str, Any] | None
) -> Fitted:
    fittable = [gate for gate in gates if not gate.metric.boolean]
    width = len(fittable)
    bound = _plain(data.units(data.good & ~data.design, options), width)
    rank = _rank(len(bound), options)
    if rank == 0:
        refuse_too_few(len(bound), data, options)
    shape = _shape(data, fittable, options, rank / len(bound), previous) if width else None
    observed = data.values[:, :width]
    cut = shape.cut(bound, rank, observed) if shape else _checks_only(bound, rank)
    if cut is None:
        refuse_always_flagged(data, gates, options, rank)
    return Fitted(
        gates=gates,
        cuts=(*cut.cuts[:width], *[MIDDLE] * (len(gates) - width)),
        data=data,
        units=data.units(data.good & ~data.design, options),
        rank=rank,
        tau=cut.tau,
        shape=shape,
        options=options,
    )


def _plain(values: Matrix, width: int) -> Matrix:
    """Return the columns with thresholds to fit; a failed check flags the whole row."""
    failed = np.any(values == -math.inf, axis=1)
    plain = values[:, :width].copy() if width else np.full((len(values), 1), math.inf)
    plain[failed] = -math.inf
    return plain


def _checks_only(bound: Matrix, rank: int) -> JointCut | None:
    """Return an empty cut where only yes/no checks decide, or None if they flag too much."""
    return JointCut((), rank) if int(np.sum(bound == -math.inf)) < rank else None


def _shape(
    data: Labelled,
    gates: Sequence[Gate],
    options: Options,
    level: float,
    previous: Mapping[str, Any] | None,
) -> Shape:
    axes = [gate.axis for gate in gates]
    names = [gate.name for gate in gates]
    if previous is not None:
        try:
            return shape_from_json(dict(previous), names, axes)
        except KeyError as error:
            raise ConfigurationError(
                "--previous", f"no shape of {error}", "a fit of the same metrics"
            ) from error
    unknown = sorted(set(options.weights) - set(names))
    if unknown:
        raise ConfigurationError("--weight", repr(unknown[0]), ", ".join(names))
    width = len(gates)
    method = "scaled_min" if options.looks == "anytime" else options.method
    good = _plain(data.units(data.good & data.design, options), width)
    if method == "scaled_min" and len(good) < LEAST_GOOD:
        raise ConfigurationError(
            "labels",
            f"{len(good)} good questions in the design part",
            f"at least {LEAST_GOOD}, from which scales can be fitted: more labels, a larger "
            "--split, or by_ranks",
        )
    return choose_shape(
        axes,
        good,
        _plain(data.values[~data.good & data.design], width),
        level,
        method if data.design.any() else "by_ranks",
        [options.weights.get(name, 1.0) for name in names],
        options.learn,
    )
