"""An evaluator that takes a while for each question, so that others can be killed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Mapping

from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE, Evaluator, EvaluatorSpec
from guardrail_service.detectors.registry import Parameters
from guardrail_service.types import MetricSpec

SLOW = "slow"


class Pause(Parameters):
    """How long it takes."""

    seconds: float = 0.05


class Slow(Evaluator[Pause]):
    """Judges every case alike, after a pause."""

    parameters = Pause
    spec = EvaluatorSpec(SLOW, SLOW, "Slow.", (MetricSpec(SLOW),), frozenset({"answer"}), "D")

    def judge(self, view: CaseView, parameters: Pause) -> Mapping[str, float]:
        """Return the share of a's, later."""
        time.sleep(parameters.seconds)
        return {SLOW: view.answer.count("a") / (len(view.answer) or 1)}


CATALOGUE.add(Slow())
