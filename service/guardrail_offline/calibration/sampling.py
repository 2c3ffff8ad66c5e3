"""Which cases people should label: drawn so that a bound on them speaks for the whole lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from guardrail_offline.calibration.lab import LabCase
from guardrail_offline.calibration.units import chance
from guardrail_service.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Drawn:
    """A case to label and how many questions of the lab its question stands for."""

    case: LabCase
    weight: float


def draw(
    cases: Sequence[LabCase], count: int, seed: int, fact: str | None = None, *, whole: bool = False
) -> list[Drawn]:
    """Return what people should label.

    Args:
        cases: The lab.
        count: Questions to draw.
        seed: Which draw.
        fact: Draw as many questions of each of its values; None draws them evenly.
        whole: Take every answer to a drawn question. It costs a person little, who has read the
            passages by then, and gives more bad answers; the bound still counts questions.
    """
    drawn = stratified(cases, count, seed, fact) if fact else simple_random(cases, count, seed)
    if not whole:
        return drawn
    weights = {item.case.group: item.weight for item in drawn}
    return [Drawn(case, weights[case.group]) for case in cases if case.group in weights]


def simple_random(cases: Sequence[LabCase], count: int, seed: int) -> list[Drawn]:
    """Return `count` groups' cases, one a group, every group with the same chance.

    One case a question: a second answer to it would cost a label and prove almost nothing.
    """
    groups = _by_group(cases, seed)
    order = sorted(groups, key=lambda name: chance(seed, "sample", name))
    _refuse_more(count, len(order), "questions")
    weight = len(order) / count
    return [Drawn(groups[name], weight) for name in order[:count]]


def stratified(cases: Sequence[LabCase], count: int, seed: int, fact: str) -> list[Drawn]:
    """Return as many cases of every value of a fact, with the weights that undo it.

    Strata that have fewer groups than their share give all they have. Fit with the weights: an
    uneven sample without them voids the bound.
    """
    groups = _by_group(cases, seed)
    strata: dict[str, list[LabCase]] = {}
    for name in sorted(groups, key=lambda name: chance(seed, "sample", name)):
        strata.setdefault(groups[name].facts.get(fact, "(none)"), []).append(groups[name])
    if set(strata) == {"(none)"}:
        known = sorted({name for case in cases for name in case.facts})
        raise ConfigurationError("--by", f"no case with the fact {fact!r}", ", ".join(known))
    _refuse_more(count, len(groups), "questions")
    shares = _shares({name: len(members) for name, members in strata.items()}, count)
    return [
        Drawn(case, len(members) / shares[name])
        for name, members in sorted(strata.items())
        for case in members[: shares[name]]
    ]


def _by_group(cases: Sequence[LabCase], seed: int) -> dict[str, LabCase]:
    """Return one case per group, drawn evenly."""
    drawn: dict[str, LabCase] = {}
    for case in sorted(cases, key=lambda case: chance(seed, "unit", case.key)):
        drawn.setdefault(case.group, case)
    return drawn


def _shares(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Return how many each stratum gives: even shares, what small ones lack spread over others."""
    shares = dict.fromkeys(sizes, 0)
    for _ in range(count):
        open_ = [name for name, size in sizes.items() if shares[name] < size]
        least = min(open_, key=lambda name: (shares[name], name))
        shares[least] += 1
    return shares


def _refuse_more(count: int, there: int, what: str) -> None:
    if count > there:
        raise ConfigurationError("--n", f"{count}", f"at most {there}: the lab has {there} {what}")
