"""An evaluator that hangs, and one that ends its process: on the question that names it.

Importing registers both. A pool's process imports this file to read the parameters it is sent.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE, Evaluator, EvaluatorSpec
from guardrail_service.detectors.registry import Parameters
from guardrail_service.types import MetricSpec

HANGS, DIES = "hangs", "dies"


class Marked(Parameters):
    """What to do on a marked case."""


class Misbehaves(Evaluator[Marked]):
    """Judges every case but those whose question is its own name."""

    parameters = Marked

    def __init__(self, name: str) -> None:
        self.spec = EvaluatorSpec(
            name, name, "Misbehaves.", (MetricSpec(name),), frozenset({"answer"}), "D"
        )

    def judge(self, view: CaseView, parameters: Marked) -> Mapping[str, float]:
        """Return 1; or hang, or end the process."""
        if view.question == HANGS == self.spec.id:
            threading.Event().wait()
        if view.question == DIES == self.spec.id:
            os._exit(9)
        return {self.spec.id: 1.0}


for _name in (HANGS, DIES):
    CATALOGUE.add(Misbehaves(_name))
