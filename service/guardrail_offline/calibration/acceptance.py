"""Finds the confidence above which verdicts agree with people's, so that nobody need label there.

A score's confidence is its distance from the threshold. Confidences are tried from the highest
down, each on the labelled answers above it, until one cannot be shown to agree often enough; the
last that could be is the answer. Because the order is fixed before any label is read, all these
tests together fail with chance delta at most.

Source:
    Jung, Brahman and Choi, Trust or Escalate: LLM Judges with Provable Guarantees for Human
    Agreement (2024), fixed-sequence testing; Bauer 1991.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from guardrail_offline.calibration.judge_agreement import JudgedRun, VerdictOnCase
from guardrail_offline.calibration.split import one_per_group
from guardrail_offline.calibration.statistics import labels_needed, share_bound
from guardrail_offline.intervals import exact_interval
from guardrail_service.errors import ConfigurationError

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
STEPS = 20
"""Confidences that are tried."""
_SPARE = 1.25
"""The first one tried is expected to have so many times the labels that it takes at least."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One confidence that was tried.

    Attributes:
        confidence: Distance from the threshold, at least.
        n: Labelled questions whose answer has it.
        disagree: Of them, verdicts that differ from the person's.
        bound: The share of such verdicts is at most this, with confidence 1 - delta.
        kept: Whether that is small enough.
    """

    confidence: float
    n: int
    disagree: int
    bound: float
    kept: bool

    def as_json(self) -> dict[str, Any]:
        """Return the try for a file."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The confidence from which verdicts need no person, and what that leaves to do.

    Attributes:
        run: The scores.
        alpha: Largest share of accepted verdicts that differ from a person's.
        delta: Chance, over the labels, that it is larger after all.
        confidence: None if none can be shown to be enough.
        tried: Every confidence, the highest first.
        accepted: Unlabelled cases with at least this confidence.
        queue: The other unlabelled cases, the least confident first; those without a score first.
    """

    run: JudgedRun
    alpha: float
    delta: float
    confidence: float | None
    tried: tuple[Tried, ...]
    accepted: tuple[VerdictOnCase, ...]
    queue: tuple[VerdictOnCase, ...]

    @property
    def covered(self) -> float:
        """Return the share of the unlabelled cases that is accepted."""
        total = len(self.accepted) + len(self.queue)
        return len(self.accepted) / total if total else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return what was found for a file, without texts."""
        total = len(self.accepted) + len(self.queue)
        return {
            "metric": self.run.name,
            "threshold": self.run.threshold,
            "judge": dict(self.run.judge) or None,
            "promise": {"agreement": 1 - self.alpha, "confidence": 1 - self.delta},
            "confidence": self.confidence,
            "accepted": len(self.accepted),
            "queue": len(self.queue),
            "covered": self.covered,
            "covered_ci95": list(exact_interval(len(self.accepted), total)),
            "tried": [one.as_json() for one in self.tried],
        }

    def sentences(self) -> Iterator[str]:
        """Yield what was found, in words."""
        total = len(self.accepted) + len(self.queue)
        promise = f"{1 - self.alpha:.0%} of verdicts are a person's, with {1 - self.delta:.0%}"
        if self.confidence is None:
            last = self.tried[0] if self.tried else None
            yield f"no confidence is enough to promise that {promise} confidence"
            if last is not None:
                yield (
                    f"at the first one tried, {last.confidence:.3g} from the threshold, "
                    f"{last.disagree} of {last.n} labelled verdicts differ, so at most "
                    f"{last.bound:.1%} do"
                )
            yield f"all {total} unlabelled cases are for people"
            return
        yield (
            f"a verdict of {self.run.name} needs no person from {self.confidence:.3g} off its "
            f"threshold {self.run.threshold:g}: {promise} confidence"
        )
        yield (
            f"{len(self.accepted)} of {total} unlabelled cases ({self.covered:.1%}) are accepted, "
            f"{len(self.queue)} are for people"
        )


def acceptance(
    run: JudgedRun, alpha: float, delta: float, seed: int, abstained: Container[str] = ()
) -> Acceptance:
    """Return the confidence above which no person is needed.

    One labelled answer, drawn by hash, stands for each question. The confidences to try come from
    the unlabelled cases where there are enough of them, else from the metric's range: never from
    the labelled ones, which have to prove them.

    Args:
        run: With people's words on some cases, drawn at random.
        alpha: Largest share of accepted verdicts that may differ, in (0, 1).
        delta: Chance, over labels, that it is larger after all, in (0, 1).
        seed: Of the draw of answers.
        abstained: Keys of cases of which nobody could tell: neither accepted nor asked again.

    Raises:
        ConfigurationError: If there are fewer labelled questions than the promise takes.
    """
    units = _units(run, seed)
    needed = labels_needed(alpha, delta)
    if len(units) < needed:
        raise ConfigurationError(
            "--labels", f"{len(units)} labelled questions with a score", f"at least {needed}"
        )
    unlabelled = [c for c in run.cases if c.person is None and c.key not in abstained]
    sure = np.array([confidence_of(run, case) for case in units])
    wrong = np.array([case.passes != case.person for case in units])
    kept: float | None = None
    tried: list[Tried] = []
    for least in confidences(run, unlabelled, len(units), needed):
        one = _try(least, wrong[sure >= least], alpha, delta)
        tried.append(one)
        if not one.kept:
            break
        kept = least
    accepted: list[VerdictOnCase] = []
    queue: list[VerdictOnCase] = []
    for case in unlabelled:
        enough = kept is not None and case.passes is not None and confidence_of(run, case) >= kept
        (accepted if enough else queue).append(case)
    queue.sort(key=lambda case: -1.0 if case.passes is None else confidence_of(run, case))
    return Acceptance(run, alpha, delta, kept, tuple(tried), tuple(accepted), tuple(queue))


def confidence_of(run: JudgedRun, case: VerdictOnCase) -> float:
    """Return a score's distance from the threshold; 0 without a score."""
    return 0.0 if case.score is None else abs(case.score - run.threshold)


def confidences(
    run: JudgedRun, unlabelled: Sequence[VerdictOnCase], labelled: int, needed: int
) -> list[float]:
    """Return the confidences to try, the highest first, chosen without a look at any label.

    The first one is that above which enough labelled questions can be expected to lie.
    """
    found = [confidence_of(run, case) for case in unlabelled if case.score is not None]
    if len(found) >= STEPS:
        first = min(1.0, _SPARE * needed / labelled)
        shares = np.linspace(first, 1.0, STEPS)
        # Ties: of equal confidences all or none are above, so each is tried once.
        return sorted(set(np.quantile(found, 1 - shares, method="lower").tolist()), reverse=True)
    reach = max(run.metric.high - run.threshold, run.threshold - run.metric.low)
    if not math.isfinite(reach):
        where = f"{run.where}: {run.name}"
        expected = f"a metric with a range, or {STEPS} cases without a label"
        raise ConfigurationError(where, "no range to choose confidences from", expected)
    return [reach * step / STEPS for step in range(STEPS - 1, -1, -1)]


def _units(run: JudgedRun, seed: int) -> list[VerdictOnCase]:
    cases = [case for case in run.cases if case.person is not None and case.passes is not None]
    drawn = one_per_group([case.key for case in cases], [case.group for case in cases], seed)
    return [cases[i] for i in drawn]


def _try(least: float, wrong: Mask, alpha: float, delta: float) -> Tried:
    n, x = len(wrong), int(wrong.sum())
    bound = share_bound(n, x + 1, delta)
    return Tried(least, n, x, bound, bound <= alpha)
