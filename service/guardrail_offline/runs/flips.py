"""Metrics that cross their threshold when a question is perturbed, and how often that happens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guardrail_offline.datasets.cases import PERTURBED_BY, Case
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


@dataclass
class _Rate:
    pairs: int = 0
    flips: int = 0
    pass_to_fail: int = 0

    def as_json(self) -> dict[str, Any]:
        low, high = exact_interval(self.flips, self.pairs)
        return {
            "pairs": self.pairs,
            "flips": self.flips,
            "pass_to_fail": self.pass_to_fail,
            "rate": self.flips / self.pairs,
            "interval95": [low, high],
        }


@dataclass
class FlipTally:
    """Counts flips by evaluator, metric, model and perturbation; filled by question.

    Every variant is compared with its own source: one record per (source, variant, metric). A pair
    of which a value is missing is not counted as unflipped; `unpaired` says how many there are.
    Intervals are Clopper-Pearson's, at 95 %, and take pairs as independent.
    """

    configured: Sequence[Configured]
    records: list[dict[str, Any]] = field(default_factory=list)
    unpaired: int = 0
    orphans: int = 0
    _rates: dict[tuple[str, str, str, str], _Rate] = field(default_factory=dict)

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
            self._count(one.id, metric, cut, (source.case, before), (variant.case, after))

    def _count(
        self,
        evaluator: str,
        metric: MetricSpec,
        cut: float,
        source: tuple[Case, float],
        variant: tuple[Case, float],
    ) -> None:
        kind = flipped(source[1], variant[1], metric.direction, cut)
        names = perturbations(variant[0]) or ("(not named)",)
        for name in names:
            key = (evaluator, metric.key, variant[0].model, name)
            rate = self._rates.setdefault(key, _Rate())
            rate.pairs += 1
            rate.flips += kind is not None
            rate.pass_to_fail += kind == "pass_to_fail"
        if kind is not None:
            self.records.append(
                {
                    "evaluator": evaluator,
                    "metric": metric.key,
                    "model": variant[0].model,
                    "source": source[0].key,
                    "variant": variant[0].key,
                    "perturbations": list(names),
                    "threshold": cut,
                    "before": source[1],
                    "after": variant[1],
                    "kind": kind,
                }
            )

    def as_json(self) -> Mapping[str, Any]:
        """Return all flips and the rates with their intervals."""
        names = ("evaluator", "metric", "model", "perturbation")
        return {
            "rates": [
                {**dict(zip(names, key, strict=True)), **rate.as_json()}
                for key, rate in sorted(self._rates.items())
            ],
            "flips": self.records,
            "unpaired": self.unpaired,
            "variants_without_source": self.orphans,
        }


def perturbations(case: Case) -> tuple[str, ...]:
    """Return what a variant was perturbed by, from its categories."""
    return tuple(
        category.removeprefix(PERTURBED_BY)
        for category in case.categories
        if category.startswith(PERTURBED_BY)
    )


def flip_problems(flips: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield a problem per rate above zero: a system that changes its verdict with a typo."""
    for rate in flips["rates"]:
        if not rate["flips"]:
            continue
        low, high = rate["interval95"]
        share = rate["rate"]
        yield {
            "description": f"{rate['metric']} of {rate['evaluator']} flips in {rate['flips']} of "
            f"{rate['pairs']} cases perturbed by {rate['perturbation']} "
            f"({share:.0%}, 95 % interval {low:.0%} to {high:.0%})",
            "severity": "high" if share >= 0.5 else "medium" if share >= 0.25 else "low",
            "problem_type": "stability",
            "problem_code": "P0200",
            "problem_code_meaning": "ability of the system to perform as intended",
            "problem_attrs": dict(rate),
            "actions_codes": ["stabilise"],
            "actions_description": "Compare the wordings that differ.",
        }
