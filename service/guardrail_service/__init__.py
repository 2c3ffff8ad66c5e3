"""Score RAG answers against calibrated thresholds: the server, and what plug-ins are made of.

Authors of detectors and applications that judge inside their own process find here what they need.
The names are imported when they are asked for: the command line imports this package for its help.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from guardrail_service import moved
from guardrail_service.resources import shipped

if TYPE_CHECKING:
    from guardrail_service.detectors.registry import (
        Detector,
        DetectorSpec,
        Listing,
        Parameters,
        Remedy,
        detector,
    )
    from guardrail_service.errors import (
        ConfigurationError,
        NotScorable,
        PluginError,
        RowFailed,
        ServiceError,
    )
    from guardrail_service.guard.guard import Guard
    from guardrail_service.inference.session_kinds import Opening, SessionKind
    from guardrail_service.policy.decide import Policy
    from guardrail_service.text.sample import SegmentedSample
    from guardrail_service.types import (
        Coverage,
        Direction,
        MetricSpec,
        Outcome,
        Passage,
        Row,
        RowOutput,
        RowResult,
        Sample,
        Span,
        State,
        Verdict,
    )

__version__ = shipped("VERSION", "VERSION").read_text("utf-8").strip()
_DETECTORS = "guardrail_service.detectors.registry"
_ERRORS = "guardrail_service.errors"
_KINDS = "guardrail_service.inference.session_kinds"
_TYPES = "guardrail_service.types"
_HOMES = {
    "ConfigurationError": _ERRORS,
    "Coverage": _TYPES,
    "Detector": _DETECTORS,
    "DetectorSpec": _DETECTORS,
    "Direction": _TYPES,
    "Guard": "guardrail_service.guard.guard",
    "Listing": _DETECTORS,
    "MetricSpec": _TYPES,
    "NotScorable": _ERRORS,
    "Opening": _KINDS,
    "Outcome": _TYPES,
    "Parameters": _DETECTORS,
    "Passage": _TYPES,
    "PluginError": _ERRORS,
    "Policy": "guardrail_service.policy.decide",
    "Remedy": _DETECTORS,
    "Row": _TYPES,
    "RowFailed": _ERRORS,
    "RowOutput": _TYPES,
    "RowResult": _TYPES,
    "Sample": _TYPES,
    "SegmentedSample": "guardrail_service.text.sample",
    "ServiceError": _ERRORS,
    "SessionKind": _KINDS,
    "Span": _TYPES,
    "State": _TYPES,
    "Verdict": _TYPES,
    "detector": _DETECTORS,
}
__all__ = [
    "ConfigurationError",
    "Coverage",
    "Detector",
    "DetectorSpec",
    "Direction",
    "Guard",
    "Listing",
    "MetricSpec",
    "NotScorable",
    "Opening",
    "Outcome",
    "Parameters",
    "Passage",
    "PluginError",
    "Policy",
    "Remedy",
    "Row",
    "RowFailed",
    "RowOutput",
    "RowResult",
    "Sample",
    "SegmentedSample",
    "ServiceError",
    "SessionKind",
    "Span",
    "State",
    "Verdict",
    "__version__",
    "detector",
]


def __getattr__(name: str) -> Any:
    """Return a public name from the file it stands in."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


moved.install()
