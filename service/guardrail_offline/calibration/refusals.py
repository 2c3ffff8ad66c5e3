"""Why labels cannot carry a promise, and how many more it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from guardrail_offline.calibration.gates import Gate
from guardrail_offline.calibration.labelled import Labelled
from guardrail_offline.calibration.options import PROMISING, Options
from guardrail_offline.calibration.ranks import (
    average_rank,
    guaranteed_rank,
    labels_needed,
    labels_needed_anytime,
    labels_needed_on_average,
)
from guardrail_offline.calibration.scales import Matrix
from guardrail_service.errors import ConfigurationError


def refuse_too_few(n: int, data: Labelled, options: Options) -> NoReturn:
    """Say how many questions with a good answer are missing, and about how many labels that is."""
    if options.looks == "anytime":
        needed = labels_needed_anytime(options.alpha, options.delta)
    elif options.rule == "average":
        needed = labels_needed_on_average(options.alpha)
    else:
        needed = labels_needed(options.alpha, options.delta)
    share = n / max(1, len(set(data.groups)))
    more = needed - n
    labels = f"about {math.ceil(more / share)} more labelled questions" if share else "more labels"
    design = f"; {options.split:.0%} of questions are kept for the design part"
    kept = design if data.design.any() else ""
    if silent := data.without_speaker():
        kept += f"; {silent} more whose drawn answer has no label (sample under the same --seed)"
    raise ConfigurationError(
        "labels",
        f"{n} questions with a good answer{kept}",
        f"at least {needed} for alpha {options.alpha:g} and delta {options.delta:g}: "
        f"{more} more, {labels}",
    )


def refuse_other_division(options: Options, previous: Mapping[str, Any]) -> None:
    """Refuse to divide questions otherwise than the fit whose shape is kept.

    Raises:
        ConfigurationError: If split or seed differ: questions that chose the shape would prove it.
    """
    before = previous.get("options")
    for name in ("split", "seed"):
        kept = before.get(name) if isinstance(before, Mapping) else None
        if kept != getattr(options, name):
            raise ConfigurationError(
                f"--{name}",
                str(getattr(options, name)),
                f"{kept}, as in --previous: questions that chose its scales would prove them",
            )


def refuse_changed(data: Labelled, options: Options, previous: Mapping[str, Any]) -> None:
    """Refuse to look again if answers that an earlier look rests on are gone or have changed.

    Raises:
        ConfigurationError: If they are: labels may be added under an anytime rule, and only added.
    """
    dataset = previous.get("dataset")
    before = dataset.get("unit_digests", ()) if isinstance(dataset, Mapping) else ()
    now = set(data.unit_digests(data.good & ~data.design, options))
    changed = [unit for unit in before if unit not in now]
    if options.looks == "anytime" and changed:
        raise ConfigurationError(
            "--previous",
            f"{len(changed)} of {len(before)} answers it rests on without their label or score",
            "labels added and none changed; without --previous this is a new look",
        )


def refuse_always_flagged(
    data: Labelled, gates: Sequence[Gate], options: Options, rank: int
) -> NoReturn:
    """Name the metrics that flag good answers whatever the thresholds are."""
    values = data.units(data.good & ~data.design, options)
    flagged = np.any(values == -math.inf, axis=1)
    by_gate = {gate.name: int(np.sum(values[:, j] == -math.inf)) for j, gate in enumerate(gates)}
    worst = sorted((name for name in by_gate if by_gate[name]), key=lambda name: -by_gate[name])
    listed = ", ".join(f"{name} {by_gate[name]}" for name in worst[:4])
    raise ConfigurationError(
        f"alpha {options.alpha:g}",
        f"{int(flagged.sum())} of {len(values)} good units flagged by failed checks or missing "
        f"scores alone ({listed})",
        f"at most {rank - 1}: change what those checks or states mean, or allow a larger alpha",
    )


def refuse_too_few_alone(good: Matrix, bad: Matrix, data: Labelled, options: Options) -> None:
    """Refuse labels that are too few for a promise about each metric alone."""
    if options.rule == "recall":
        if guaranteed_rank(len(bad), 1 - options.recall, options.delta) == 0:
            needed = labels_needed(1 - options.recall, options.delta)
            raise ConfigurationError(
                "labels",
                f"{len(bad)} questions with a bad answer",
                f"at least {needed} for recall {options.recall:g} and delta {options.delta:g}: "
                f"{needed - len(bad)} more",
            )
    elif options.rule in PROMISING:
        enough = (
            average_rank(len(good), options.alpha)
            if options.rule == "average"
            else guaranteed_rank(len(good), options.alpha, options.delta)
        )
        if not enough:
            refuse_too_few(len(good), data, options)


def refuse_out_of_reach(cut: float, gate: Gate, options: Options) -> None:
    """Refuse a promise that no threshold of this metric can keep."""
    fitted = not gate.metric.boolean  # a yes/no check is outside the promise of recall
    if options.rule == "recall" and fitted and (cut > gate.axis.high or cut == math.inf):
        raise ConfigurationError(
            f"recall {options.recall:g}",
            f"too many bad answers that {gate.name} gives its best score, or does not judge",
            "a smaller recall, or another metric",
        )
    flagged, instead = (
        (f"without a score of {gate.name}", "under which missing scores pass")
        if fitted
        else (f"that fail {gate.name} or have no score of it", "without that check")
    )
    if options.rule in ("false_flag", "average") and cut == -math.inf:
        raise ConfigurationError(
            f"alpha {options.alpha:g}",
            f"more good answers {flagged} than may be flagged",
            f"a policy {instead}, or a larger alpha",
        )
