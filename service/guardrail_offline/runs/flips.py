"""Metrics that cross their threshold when a question is perturbed, and how often that happens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from guardrail_offline.datasets.cases import PERTURBATION_INTENSITY, PERTURBED_BY, Case
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.intervals import exact_interval
from guardrail_offline.runs.shards import ScoredCase
from guardrail_offline.runs.totals import fails
from guardrail_service.types import Direction, MetricSpec


def flipped(before: float, after: float, direction: Direction, threshold: float) -> str | None:
    """Return `fail_to_pass` or `pass_to_fail` if two values lie on different sides, else None."""
    failed, fails_now = fails(before, direction, threshold), fails(after, direction, threshold)
    if failed == fails_now:
        return None
    return "fail_to_pass" if failed else "pass_to_fail"


class RateKey(NamedTuple):
    """The pairs that a rate is of. `expectation` is `stay` or `flip`."""

    evaluator: str
    metric: str
    model: str
    perturbation: str
    intensity: str
    expectation: str


@dataclass
class _Rate:
    pairs: int = 0
    flips: int = 0
    pass_to_fail: int = 0
    passed_before: int = 0

    def as_json(self, expectation: str) -> dict[str, Any]:
        """Return the counts; of what should flip only those can fail to that passed before."""
        low, high = exact_interval(self.flips, self.pairs)
        should_flip = expectation == "flip"
        judged = self.passed_before if should_flip else self.pairs
        wrong = self.passed_before - self.pass_to_fail if should_flip else self.flips
        against = exact_interval(wrong, judged) if judged else None
        return {
            "pairs": self.pairs,
            "flips": self.flips,
            "pass_to_fail": self.pass_to_fail,
            "rate": self.flips / self.pairs,
            "interval95": [low, high],
            "unexpected": wrong,
            "unexpected_of": judged,
            "unexpected_interval95": None if against is None else list(against),
        }


@dataclass
class FlipTally:
    """Counts flips by evaluator, metric, model, perturbation and intensity; filled by question.

    A chain of perturbations is one perturbation. Nothing should flip, but for perturbations that
    give the question another answer: then whatever compares with the expected one should.

    Every variant is compared with its own source: one record per (source, variant, metric). A pair
    of which a value is missing is not counted as unflipped; `unpaired` says how many there are.
    Intervals are Clopper-Pearson's, at 95 %, and take pairs as independent.
    """

    configured: Sequence[Configured]
    records: list[dict[str, Any]] = field(default_factory=list)
    unpaired: int = 0
    orphans: int = 0
    _rates: dict[RateKey, _Rate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look up every cut once."""
        self._cuts = {one.id: one.thresholds() for one in self.configured}

    def add(self, group: Sequence[ScoredCase]) -> None:
        """Compare the variants of one question with their sources."""
        by_key = {scored.case.key: scored for scored in group}
        for variant in group:
            if variant.case.source is None:
                continue
            source = by_key.get(variant.case.source)
            if source is None:
                self.orphans += 1
                continue
            for one in self.configured:
                self._compare(one, source, variant)

    def _compare(self, one: Configured, source: ScoredCase, variant: ScoredCase) -> None:
        cuts = self._cuts[one.id]
        for metric in one.evaluator.spec.metrics:
            cut = cuts[metric.key]
            if cut is None:
                continue
            before = source.results[one.id].scores[metric.key].value
            after = variant.results[one.id].scores[metric.key].value
            if before is None or after is None:
                self.unpaired += before is not None or after is not None
                continue
            self._count(one, metric, cut, (source.case, before), (variant.case, after))

    def _count(
        self,
        one: Configured,
        metric: MetricSpec,
        cut: float,
        source: tuple[Case, float],
        variant: tuple[Case, float],
    ) -> None:
        kind, case = flipped(source[1], variant[1], metric.direction, cut), variant[0]
        flips_rightly = case.has_other_answer and one.evaluator.spec.compares
        key = RateKey(
            one.id,
            metric.key,
            case.model,
            perturbation(case) or "(not named)",
            intensity(case),
            "flip" if flips_rightly else "stay",
        )
        rate = self._rates.setdefault(key, _Rate())
        rate.pairs += 1
        rate.flips += kind is not None
        rate.pass_to_fail += kind == "pass_to_fail"
        rate.passed_before += not fails(source[1], metric.direction, cut)
        if kind is not None:
            self.records.append(
                {
                    **key._asdict(),
                    "source": source[0].key,
                    "variant": case.key,
                    "threshold": cut,
                    "before": source[1],
                    "after": variant[1],
                    "kind": kind,
                }
            )

    def as_json(self) -> Mapping[str, Any]:
        """Return all flips and the rates with their intervals."""
        return {
            "rates": [
                {**key._asdict(), **rate.as_json(key.expectation)}
                for key, rate in sorted(self._rates.items())
            ],
            "flips": self.records,
            "unpaired": self.unpaired,
            "variants_without_source": self.orphans,
        }


def perturbation(case: Case) -> str:
    """Return what a variant was perturbed by, from its categories; a chain is joined by +.

    Version 0.1.0 wrote a category for each part of a chain.
    """
    return "+".join(_behind(PERTURBED_BY, case))


def intensity(case: Case) -> str:
    """Return how much a variant was perturbed: low, medium, high or empty."""
    return next(_behind(PERTURBATION_INTENSITY, case), "")


def _behind(prefix: str, case: Case) -> Iterator[str]:
    for category in case.categories:
        if category.startswith(prefix):
            yield category.removeprefix(prefix)


def flip_problems(flips: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield a problem per rate with pairs that are not as expected.

    A system changes its verdict with a typo, or answers as before when something else is asked.
    """
    for rate in flips["rates"]:
        wrong, judged = rate["unexpected"], rate["unexpected_of"]
        if not wrong:
            continue
        low, high = rate["unexpected_interval95"]
        share = wrong / judged
        told = "flips" if rate["expectation"] == "stay" else "should flip and does not"
        level = f" ({rate['intensity']})" if rate["intensity"] else ""
        yield {
            "description": f"{rate['metric']} of {rate['evaluator']} {told} in {wrong} of "
            f"{judged} cases perturbed by {rate['perturbation']}{level} "
            f"({share:.0%}, 95 % interval {low:.0%} to {high:.0%})",
            "severity": "high" if share >= 0.5 else "medium" if share >= 0.25 else "low",
            "problem_type": "stability",
            "problem_code": "P0200",
            "problem_code_meaning": "ability of the system to perform as intended",
            "problem_attrs": dict(rate),
            "actions_codes": ["stabilise"],
            "actions_description": "Compare the wordings that differ.",
        }
