"""The offline module: evaluators, calibration, perturbation. Serving never imports it.

Authors of evaluators find here what theirs is made of. The names are imported when they are asked
for, because the command line imports this package to print its help.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guardrail_offline.evaluators.case_view import CaseView, Unavailable
    from guardrail_offline.evaluators.catalogue import (
        Common,
        Evaluator,
        EvaluatorSpec,
        NoParameters,
    )
    from guardrail_offline.evaluators.result import Result, Score
    from guardrail_service.detectors.registry import Parameters
    from guardrail_service.types import MetricSpec, NoValue, State

__all__ = [
    "CaseView",
    "Common",
    "Evaluator",
    "EvaluatorSpec",
    "MetricSpec",
    "NoParameters",
    "NoValue",
    "Parameters",
    "Result",
    "Score",
    "State",
    "Unavailable",
]
_CATALOGUE = "guardrail_offline.evaluators.catalogue"
_HOMES = {
    "Unavailable": "guardrail_offline.evaluators.case_view",
    "CaseView": "guardrail_offline.evaluators.case_view",
    "Result": "guardrail_offline.evaluators.result",
    "Score": "guardrail_offline.evaluators.result",
    "Parameters": "guardrail_service.detectors.registry",
    "MetricSpec": "guardrail_service.types",
    "NoValue": "guardrail_service.types",
    "State": "guardrail_service.types",
}


def __getattr__(name: str) -> Any:
    """Return a public name from the file it stands in."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, _CATALOGUE)), name)
