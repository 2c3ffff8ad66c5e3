"""The labelled part of a lab, divided by question, with everything that would void a bound refused.

Good means: a human says the answer may be shown. Answers to one question (reruns, models, perturbed
variants) are not independent. They stay on one side of every split, and one of them stands for the
question. Every draw is made by hash, so it is repeatable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardrail_offline.calibration.deciding_metrics import DecidingMetric, matrix
from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.joint_rule import Matrix, Vector
from guardrail_offline.calibration.scored_lab import LabCase, ScoredLab
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.provenance import sha256_of


def chance(seed: int, *names: str) -> float:
    """Return a number in [0, 1) that depends on nothing but its arguments."""
    text = "\x1f".join((str(seed), *names)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") / 2.0**64


def chances(seed: int, name: str, groups: Sequence[str]) -> Vector:
    """Return a number in [0, 1) per group, equal for equal groups; `name` says what is drawn."""
    return np.array([chance(seed, name, group) for group in groups], dtype=np.float64)


def is_design(group: str, share: float, seed: int) -> bool:
    """Return whether a group chooses the rule's shape; the others fit and prove its cut.

    A group's side does not depend on which other groups there are, so labels can be added later.
    """
    return chance(seed, "design", group) < share


def one_per_group(keys: Sequence[str], groups: Sequence[str], seed: int) -> list[int]:
    """Return the index of one case per group, drawn evenly, in the order of the cases."""
    drawn: dict[str, int] = {}
    for index, (key, group) in enumerate(zip(keys, groups, strict=True)):
        best = drawn.get(group)
        if best is None or chance(seed, "unit", key) < chance(seed, "unit", keys[best]):
            drawn[group] = index
    return sorted(drawn.values())


def thinned(
    keys: Sequence[str], groups: Sequence[str], weights: Mapping[str, float], seed: int
) -> list[int]:
    """Return the indices that turn a weighted sample into an even one.

    A question stays, with all its answers, with probability weight / largest weight. The questions
    that stay are a simple random sample, for which the bounds hold; a weighted sample as it is
    voids them. So would a draw per answer: of a question's many answers one is likely to stay.

    Args:
        keys: Keys of the labelled cases.
        groups: Their questions.
        weights: How many questions of the population each case's question stands for, the same
            for all answers to it; a missing key is an error.
        seed: Which draw.
    """
    largest = max((weights[key] for key in keys), default=1.0)
    return [
        index
        for index, (key, group) in enumerate(zip(keys, groups, strict=True))
        if chance(seed, "thin", group) < weights[key] / largest
    ]


def worst_per_group(values: Matrix, groups: Sequence[str]) -> tuple[Matrix, list[str]]:
    """Return per group the lowest value of each metric: a group counts as flagged if any case is.

    Returns:
        One row per group, and the groups in order of their first case.
    """
    members: dict[str, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    rows = [values[indices].min(axis=0) for indices in members.values()]
    return np.array(rows).reshape(len(members), values.shape[1]), list(members)


Mask = NDArray[np.bool_]

DIGEST = 12
"""Hexadecimal digits of a question's or an answer's digest: enough to see it again, not to read
it."""


@dataclass(frozen=True, slots=True)
class LabelledCases:
    """Labelled cases and how they are divided.

    Attributes:
        cases: All that are used, in the order of the lab.
        good: Which of them a human passed. Shape (n,).
        design: Which of them choose the rule's shape and prove nothing. Shape (n,).
        values: Oriented scores per gate; see `gates`. Shape (n, gates).
        speaks: Which of them may stand for their question. Where labels may be added at any time,
            only the answer drawn from all of the lab's, labelled or not: were it drawn from the
            labelled ones, a later label could put another in its place. Shape (n,).
        thinned_away: Cases left out to turn a weighted sample into an even one.
    """

    cases: tuple[LabCase, ...]
    good: Mask
    design: Mask
    values: Matrix
    speaks: Mask
    thinned_away: int = 0

    @property
    def groups(self) -> list[str]:
        """Return each case's question."""
        return [case.group for case in self.cases]

    def proving(self, options: FitOptions) -> Matrix:
        """Return the good observations that the bound is proved on, one row each."""
        return self.units(self.good & ~self.design, options)

    def units(self, which: Mask, options: FitOptions) -> Matrix:
        """Return independent observations among the cases a mask picks, one row each."""
        return self._named_units(which, options)[0]

    def unit_digests(self, which: Mask, options: FitOptions) -> list[str]:
        """Return a digest of each of these observations, by which a change to it is seen."""
        values, names = self._named_units(which, options)
        rows = ([name, *map(repr, row)] for name, row in zip(names, values.tolist(), strict=True))
        return [sha256_of(row)[:DIGEST] for row in rows]

    def without_speaker(self) -> int:
        """Return how many questions have labels, but none of an answer that may stand for them."""
        speaking = {
            case.group for case, speaks in zip(self.cases, self.speaks, strict=True) if speaks
        }
        return len(set(self.groups) - speaking)

    def _named_units(self, which: Mask, options: FitOptions) -> tuple[Matrix, list[str]]:
        """Return one row per observation, and the answer or the question each of them is."""
        worst = options.unit == "worst_of_group"
        indices = np.flatnonzero(which if worst else which & self.speaks)
        groups = [self.cases[i].group for i in indices]
        if worst:
            return worst_per_group(self.values[indices], groups)
        keys = [self.cases[i].key for i in indices]
        drawn = one_per_group(keys, groups, options.seed)
        return self.values[indices[drawn]], [keys[i] for i in drawn]


def labelled(
    lab: ScoredLab,
    passes: Mapping[str, bool],
    gates: Sequence[DecidingMetric],
    options: FitOptions,
    weights: Mapping[str, float] | None = None,
    design_groups: float | None = None,
    abstained: Collection[str] = (),
) -> LabelledCases:
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
    return LabelledCases(
        cases=used,
        good=good,
        design=np.array([is_design(c.group, split, options.seed) for c in used], dtype=np.bool_),
        values=matrix(gates, used),
        speaks=_speaks(lab.cases, used, options),
        thinned_away=len(cases) - len(used),
    )


def _speaks(cases: Sequence[LabCase], used: Sequence[LabCase], options: FitOptions) -> Mask:
    if options.looks == "fixed" or options.unit == "worst_of_group":
        return np.ones(len(used), dtype=np.bool_)
    keys, groups = [case.key for case in cases], [case.group for case in cases]
    drawn = {keys[i] for i in one_per_group(keys, groups, options.seed)}
    return np.array([case.key in drawn for case in used], dtype=np.bool_)


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
    cases: Sequence[LabCase], weights: Mapping[str, float] | None, options: FitOptions
) -> Sequence[int]:
    if weights is None:
        return range(len(cases))
    lacking = [case.key for case in cases if case.key not in weights]
    if lacking:
        found = f"no weight for {len(lacking)} labelled cases ({lacking[0]!r})"
        raise ConfigurationError("--sample", found, "the sample these labels were drawn with")
    groups = [case.group for case in cases]
    _refuse_two_weights(cases, weights)
    if options.looks == "anytime" and len({weights[case.key] for case in cases}) > 1:
        raise ConfigurationError(
            "--sample",
            "uneven weights with --looks anytime",
            "a simple random sample: weights change as a sample grows, and thinning by them would "
            "drop answers that earlier looks rest on",
        )
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


def counts(data: LabelledCases) -> dict[str, Any]:
    """Return how many labelled cases and questions of each kind there are."""
    return {
        "n_labeled": len(data.cases),
        "n_good": int(data.good.sum()),
        "n_bad": int((~data.good).sum()),
        "n_labeled_groups": len(set(data.groups)),
        "n_design": int(data.design.sum()),
        "n_thinned_away": data.thinned_away,
    }
