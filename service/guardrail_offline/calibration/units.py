"""What counts as one observation, and how observations are divided; all by hash, so repeatable.

Answers to one question (reruns, models, perturbed variants) are not independent. They stay on one
side of every split, and one of them stands for the question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from guardrail_offline.calibration.scales import Matrix


def chance(seed: int, *names: str) -> float:
    """Return a number in [0, 1) that depends on nothing but its arguments."""
    text = "\x1f".join((str(seed), *names)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") / 2.0**64


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

    A question stays, with all its answers, with probability weight / largest weight. What stays is
    a simple random sample of the questions, for which the bounds hold; a weighted sample as it is
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


def resampled(count: int, draws: int, seed: int) -> Iterable[np.ndarray[Any, np.dtype[np.intp]]]:
    """Yield index vectors of bootstrap samples of `count` units."""
    generator = np.random.default_rng(seed)
    for _ in range(draws):
        yield generator.integers(0, count, count, dtype=np.intp)
