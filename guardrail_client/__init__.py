"""Client of the rag-guardrail service: asks whether an answer may be shown.

from guardrail_client import GuardrailClient

with GuardrailClient() as guardrail:
    result = guardrail.check("Berlin is in Spain.", contexts=["Berlin is in Germany."])
    print(result.decision, result.flagged_detectors)
"""

from guardrail_client._options import __version__
from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.client import GuardrailClient
from guardrail_client.errors import (
    APIError,
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    GuardrailError,
    InvalidRequest,
    NotReady,
    Overloaded,
    PayloadTooLarge,
    PermissionDenied,
    ServerError,
    ServiceNotInstalled,
    TimeoutExceeded,
    UnexpectedReply,
)
from guardrail_client.types import (
    CheckError,
    CheckItem,
    CheckResult,
    Coverage,
    DetectorResult,
    Evidence,
    MetricResult,
    PolicyRef,
    Span,
    Timings,
)

__all__ = [
    "APIError",
    "AsyncGuardrailClient",
    "AuthenticationFailed",
    "BadRequest",
    "CheckError",
    "CheckItem",
    "CheckResult",
    "ConnectionFailed",
    "Coverage",
    "DetectorResult",
    "Evidence",
    "GuardrailClient",
    "GuardrailError",
    "InvalidRequest",
    "MetricResult",
    "NotReady",
    "Overloaded",
    "PayloadTooLarge",
    "PermissionDenied",
    "PolicyRef",
    "ServerError",
    "ServiceNotInstalled",
    "Span",
    "TimeoutExceeded",
    "Timings",
    "UnexpectedReply",
    "__version__",
]
