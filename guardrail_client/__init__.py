"""Client of the rag-guardrail service: asks whether an answer may be shown.

from guardrail_client import GuardrailClient

with GuardrailClient() as guardrail:
    result = guardrail.check("Berlin is in Spain.", contexts=["Berlin is in Germany."])
    print(result.summary or result.decision)
"""

from guardrail_client._options import __version__
from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.circuit import Circuit
from guardrail_client.client import GuardrailClient
from guardrail_client.errors import (
    APIError,
    AuthenticationFailed,
    BadRequest,
    CircuitOpen,
    ConnectionFailed,
    GuardrailError,
    InvalidRequest,
    NotReady,
    Overloaded,
    PayloadTooLarge,
    PermissionDenied,
    ServerError,
    ServiceNotInstalled,
    StreamingNotSupported,
    TimeoutExceeded,
    UnexpectedReply,
)
from guardrail_client.stream import AsyncCheckStream, CheckStream
from guardrail_client.types import (
    CheckError,
    CheckItem,
    CheckOptions,
    CheckResult,
    Coverage,
    DetectorResult,
    Evidence,
    MetricResult,
    PolicyRef,
    Span,
    StreamFinal,
    StreamOptions,
    StreamPart,
    Timings,
)

__all__ = [
    "APIError",
    "AsyncCheckStream",
    "AsyncGuardrailClient",
    "AuthenticationFailed",
    "BadRequest",
    "CheckError",
    "CheckItem",
    "CheckOptions",
    "CheckResult",
    "CheckStream",
    "Circuit",
    "CircuitOpen",
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
    "StreamFinal",
    "StreamOptions",
    "StreamPart",
    "StreamingNotSupported",
    "TimeoutExceeded",
    "Timings",
    "UnexpectedReply",
    "__version__",
]
