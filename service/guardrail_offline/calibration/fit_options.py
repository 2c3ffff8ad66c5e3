"""The options of a fit, checked before any label is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from guardrail_service.errors import ConfigurationError

RuleName = Literal["joint", "false_flag", "average", "recall", "cost", "max_f1", "youden"]
MethodName = Literal["auto", "scaled_min", "by_ranks"]
ObservationUnit = Literal["one_per_group", "worst_of_group"]
Looks = Literal["fixed", "anytime"]
PROMISING: frozenset[RuleName] = frozenset({"joint", "false_flag", "average", "recall"})
"""Rules whose thresholds carry a promise; the others are for comparison."""
CONFIDENT: frozenset[RuleName] = PROMISING - {"average"}
"""Rules whose promise has a confidence, and may be false with chance delta."""
LEAST = 1e-9
"""Smallest alpha and delta: the distribution functions are not exact far below."""


@dataclass(frozen=True, slots=True)
class FitOptions:
    """One fit.

    Attributes:
        rule: `joint` bounds all metrics together; the others treat each metric alone.
        alpha: Largest share of good answers that may be flagged.
        delta: Chance, over the labels, that the share is larger after all.
        recall: Least share of bad answers caught, for the rule `recall`.
        miss_cost: Price of a bad answer that is shown, in false flags, for the rule `cost`.
        method: How the joint rule orders answers; `auto` chooses on the design part.
        split: Share of questions that choose the shape of the joint rule and prove nothing.
        weights: Sensitivity per `detector.metric`; unnamed metrics have 1. None with `learn`.
        learn: Learn weights from the design part.
        unit: What one independent observation is.
        seed: Of every draw.
        looks: `fixed`: each look at the data costs its delta. `anytime`: labels may be added and
            looked at for one delta, as long as the rule stays as `previous` has it.
    """

    rule: RuleName = "joint"
    alpha: float = 0.05
    delta: float = 0.10
    recall: float = 0.80
    miss_cost: float = 1.0
    method: MethodName = "auto"
    split: float = 1 / 3
    weights: Mapping[str, float] = field(default_factory=dict)
    learn: bool = False
    unit: ObservationUnit = "one_per_group"
    seed: int = 7
    looks: Looks = "fixed"

    def __post_init__(self) -> None:
        """Refuse values that make no sense, alone or together."""
        for name in ("alpha", "delta", "recall"):
            _refuse(not 0 < getattr(self, name) < 1, name, getattr(self, name), "in (0, 1)")
        for name in ("alpha", "delta"):
            _refuse(getattr(self, name) < LEAST, name, getattr(self, name), f"at least {LEAST:g}")
        _refuse(not 0 <= self.split < 1, "split", self.split, "in [0, 1)")
        _refuse(self.miss_cost < 0, "miss-cost", self.miss_cost, "at least 0")
        for name, kind in (
            ("rule", RuleName),
            ("method", MethodName),
            ("unit", ObservationUnit),
            ("looks", Looks),
        ):
            known = get_args(kind)
            _refuse(getattr(self, name) not in known, name, getattr(self, name), ", ".join(known))
        _refuse(any(w <= 0 for w in self.weights.values()), "weight", "0 or less", "above 0")
        _refuse(
            self.learn and self.split == 0,
            "weights",
            "learn without a design part",
            "a --split above 0: weights learnt on the data they are proved with void the bound",
        )
        _refuse(
            self.method == "scaled_min" and self.split == 0,
            "method",
            "scaled_min without a design part",
            "a --split above 0, or by_ranks, which needs none",
        )
        _refuse(
            self.looks == "anytime" and (self.rule != "joint" or self.method == "by_ranks"),
            "looks",
            f"anytime with {self.rule} {self.method}",
            "the joint rule scaled_min, whose shape stays as it is while labels are added",
        )

    @property
    def risk(self) -> float:
        """Return the chance that the promise is false; none on average, or where there is none."""
        return self.delta if self.rule in CONFIDENT else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the options as plain JSON, in full: they identify the rule in the ledger."""
        return {
            "rule": self.rule,
            "alpha": self.alpha,
            "delta": self.delta,
            "recall": self.recall,
            "miss_cost": self.miss_cost,
            "method": self.method,
            "split": self.split,
            "weights": dict(sorted(self.weights.items())),
            "learn": self.learn,
            "unit": self.unit,
            "seed": self.seed,
            "looks": self.looks,
        }


def parse_weights(given: Iterable[str]) -> tuple[dict[str, float], bool]:
    """Return weights by `detector.metric` and whether to learn them, from `name=2` or `learn`."""
    weights: dict[str, float] = {}
    learn = False
    for text in given:
        name, sign, value = text.partition("=")
        if text == "learn":
            learn = True
            continue
        try:
            weights[name] = float(value)
        except ValueError:
            sign = ""
        _refuse(not sign, "weight", repr(text), "learn, or detector.metric=NUMBER")
    return weights, learn


def _refuse(wrong: bool, name: str, found: object, expected: str) -> None:
    if wrong:
        raise ConfigurationError(f"--{name}", str(found), expected)
