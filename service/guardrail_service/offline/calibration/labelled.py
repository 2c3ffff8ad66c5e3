"""The labelled part of a lab, divided by question, with everything that would void a bound refused.

Good means: a human says the answer may be shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardrail_service.errors import ConfigurationError
from guardrail_service.offline.calibration.gates import Gate, matrix
from guardrail_service.offline.calibration.lab import LabCase, ScoredLab
from guardrail_service.offline.calibration.options import Options
from guardrail_service.offline.calibration.scales import Matrix
from guardrail_service.offline.calibration.units import (
    is_design,
    one_per_group,
    thinned,
    worst_per_group,
)

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Labelled:
    """Labelled cases and how they are divided.

    Attributes:
        cases: All that are used, in the order of the lab.
        good: Which of them a human passed. Shape (n,).
        design: Which of them choose the rule's shape and prove nothing. Shape (n,).
        values: Oriented scores per gate; see `gates`. Shape (n, gates).
        thinned_away: Cases left out to turn a weighted sample into an even one.
    """

    cases: tuple[LabCase, ...]
    good: Mask
    design: Mask
    values: Matrix
    thinned_away: int = 0

    @property
    def groups(self) -> list[str]:
        """Return each case's question."""
        return [case.group for case in self.cases]

    def units(self, which: Mask, options: Options) -> Matrix:
        """Return independent observations among the cases a mask picks, one row each."""
        indices = np.flatnonzero(which)
        groups = [self.cases[i].group for i in indices]
        values = self.values[indices]
        if options.unit == "worst_of_group":
            return worst_per_group(values, groups)[0]
        keys = [self.cases[i].key for i in indices]
        return values[one_per_group(keys, groups, options.seed)]

    def unit_cases(self, which: Mask, options: Options) -> list[LabCase]:
        """Return the case that speaks for each question among those a mask picks."""
        picked = [self.cases[i] for i in np.flatnonzero(which)]
        drawn = one_per_group([c.key for c in picked], [c.group for c in picked], options.seed)
        return [picked[i] for i in drawn]


def labelled(
    lab: ScoredLab,
    passes: Mapping[str, bool],
    gates: Sequence[Gate],
    options: Options,
    weights: Mapping[str, float] | None = None,
    design_groups: float | None = None,
    abstained: Collection[str] = (),
) -> Labelled:
    """Return the labelled cases of a lab, divided.

    Args:
        lab: The scored cases.
        passes: One word per labelled case.
        gates: Whose scores are looked at.
        options: Split and seed.
        weights: How many questions each sampled case's stands for, if the sample was uneven.
        design_groups: Replaces the options' split, 0 where the rule needs no design part.
        abstained: Cases that people read and could not tell.

    Raises:
        ConfigurationError: If labels are of other cases, a class is missing, one question is in
            two groups, or the worst answer to a question is wanted and some have no label.
    """
    known = lab.by_key()
    strangers = [key for key in passes if key not in known]
    if strangers:
        some = ", ".join(map(repr, strangers[:3]))
        raise ConfigurationError(
            "labels", f"{len(strangers)} of {len(passes)} for cases not in {lab.where} ({some})",
            "labels of this lab's cases",
        )  # fmt: skip
    refuse_leaks(lab.cases)
    if options.unit == "worst_of_group":
        _refuse_unread(lab.cases, {*passes, *abstained})
    cases = [case for case in lab.cases if case.key in passes]
    kept = _even(cases, weights, options)
    used = tuple(cases[i] for i in kept)
    good = np.array([passes[case.key] for case in used], dtype=np.bool_)
    _refuse_one_class(good)
    split = options.split if design_groups is None else design_groups
    return Labelled(
        cases=used,
        good=good,
        design=np.array([is_design(c.group, split, options.seed) for c in used], dtype=np.bool_),
        values=matrix(gates, used),
        thinned_away=len(cases) - len(used),
    )


def refuse_leaks(cases: Sequence[LabCase]) -> None:
    """Refuse cases whose groups cannot be what one question is.

    Raises:
        ConfigurationError: If a variant is in another group than its source, or a question in two.
    """
    groups = {case.key: case.group for case in cases}
    asked: dict[str, tuple[str, str]] = {}
    for case in cases:
        if case.source in groups and groups[case.source] != case.group:
            _leak(case.key, f"a variant of {case.source!r} in another group")
        if case.question:
            words = " ".join(case.question.split()).casefold()
            group, key = asked.setdefault(words, (case.group, case.key))
            if group != case.group:
                _leak(case.key, f"the question of {key!r} in another group")


def _refuse_unread(cases: Sequence[LabCase], read: Collection[str]) -> None:
    """Refuse labels under which the worst labelled answer to a question need not be its worst."""
    asked = {case.group for case in cases if case.key in read}
    unread = [case for case in cases if case.group in asked and case.key not in read]
    if unread:
        lacking = len({case.group for case in unread})
        raise ConfigurationError(
            "--unit worst_of_group",
            f"an answer without a label in {lacking} of {len(asked)} labelled questions "
            f"({unread[0].key!r})",
            "a label or an abstention for every answer to a labelled question: draw the sample "
            "with --whole-questions",
        )


def _leak(key: str, found: str) -> None:
    expected = "one group per question: a split by group would put it on both sides"
    raise ConfigurationError(f"case {key!r}", found, expected)


def _even(
    cases: Sequence[LabCase], weights: Mapping[str, float] | None, options: Options
) -> Sequence[int]:
    if weights is None:
        return range(len(cases))
    lacking = [case.key for case in cases if case.key not in weights]
    if lacking:
        found = f"no weight for {len(lacking)} labelled cases ({lacking[0]!r})"
        raise ConfigurationError("--sample", found, "the sample these labels were drawn with")
    groups = [case.group for case in cases]
    _refuse_two_weights(cases, weights)
    return thinned([case.key for case in cases], groups, weights, options.seed)


def _refuse_two_weights(cases: Sequence[LabCase], weights: Mapping[str, float]) -> None:
    drawn: dict[str, float] = {}
    for case in cases:
        if drawn.setdefault(case.group, weights[case.key]) != weights[case.key]:
            raise ConfigurationError(
                "--sample",
                f"another weight for case {case.key!r} than for other answers to its question",
                "one weight a question, as calibrate sample writes it",
            )


def _refuse_one_class(good: Mask) -> None:
    if not good.any():
        raise ConfigurationError(
            "labels", "no answer labelled pass", "both: the bound is about answers that are fine"
        )
    if good.all():
        raise ConfigurationError(
            "labels",
            "no answer labelled fail",
            "both: without bad answers nobody knows what the thresholds catch",
        )


def counts(data: Labelled) -> dict[str, Any]:
    """Return how many labelled cases and questions of each kind there are."""
    return {
        "n_labeled": len(data.cases),
        "n_good": int(data.good.sum()),
        "n_bad": int((~data.good).sum()),
        "n_labeled_groups": len(set(data.groups)),
        "n_design": int(data.design.sum()),
        "n_thinned_away": data.thinned_away,
    }
