"""AWS Bedrock's ApplyGuardrail: marked texts in, an intervention with assessments out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from guardrail_service.errors import InputError, UnknownPolicy
from guardrail_service.server.dialects.base import (
    Dialect,
    DialectBody,
    DialectCall,
    DialectEndpoint,
    action_on_text,
)
from guardrail_service.server.error_replies import Shaped
from guardrail_service.server.schemas import CheckReply, DetectorOut, ErrorBody

STOPPED = "Sorry, I cannot show an answer to this question."
"""Stands in the place of a stopped answer; AWS keeps such a text in the guardrail."""
DRAFT = "DRAFT"
"""AWS' word for a guardrail that may still change: the policy as it is loaded."""
_GROUNDING = {"hallucination": "GROUNDING", "answer_relevancy_sentence": "RELEVANCE"}
_CONTENT = {"toxicity": "INSULTS", "identity_attack": "HATE", "threat": "VIOLENCE"}
_PII = {
    "email": "EMAIL",
    "phone": "PHONE",
    "name": "NAME",
    "address": "ADDRESS",
    "credit_card": "CREDIT_DEBIT_CARD_NUMBER",
    "ip_address": "IP_ADDRESS",
    "us_ssn": "US_SOCIAL_SECURITY_NUMBER",
    "iban": "INTERNATIONAL_BANK_ACCOUNT_NUMBER",
}
Qualifier = Literal["grounding_source", "query", "guard_content"]


class BedrockText(DialectBody):
    """A text and what it is."""

    text: str
    qualifiers: Annotated[list[Qualifier], Field(max_length=3)] = Field(default_factory=list)

    @property
    def is_judged(self) -> bool:
        """True for content, False for what content is judged by."""
        return not self.qualifiers or "guard_content" in self.qualifiers


class BedrockContent(DialectBody):
    """One block; a picture cannot be judged."""

    text: BedrockText | None = None


class ApplyGuardrailRequest(DialectBody):
    """Content to judge, with its sources and the question among it."""

    source: Literal["INPUT", "OUTPUT"]
    content: Annotated[list[BedrockContent], Field(min_length=1, max_length=1_000)]
    outputScope: Literal["INTERVENTIONS", "FULL"] = "INTERVENTIONS"  # noqa: N815 - AWS' word


def dialect() -> Dialect:
    """Return Bedrock's format."""
    path = "/guardrail/{guardrail}/version/{version}/apply"
    endpoint = DialectEndpoint(path, ApplyGuardrailRequest, _answer)
    return Dialect("bedrock", [endpoint], _error, id_header="x-amzn-RequestId", key_in=_signer)


def _signer(authorization: str) -> str | None:
    """Return the access key id of a signed request, which stands for the key.

    Its signature is not checked: there is no second secret. boto3 sends bearer keys by TLS only.
    """
    kind, _, rest = authorization.partition(" Credential=")
    return rest.partition("/")[0] if kind == "AWS4-HMAC-SHA256" and "/" in rest else None


async def _answer(call: DialectCall, body: ApplyGuardrailRequest) -> dict[str, Any]:
    policy = _policy(call)
    blocks = []
    for index, block in enumerate(body.content):
        if block.text is None:
            raise InputError("found something else than a text", f"content.{index}")
        blocks.append(block.text)
    marked = [block for block in blocks if "guard_content" in block.qualifiers]
    judged = marked or [block for block in blocks if block.is_judged]
    if not judged:
        raise InputError("found no text to judge; expected one with guard_content", "content")
    question = "\n".join(block.text for block in blocks if "query" in block.qualifiers) or None
    contexts = [block.text for block in blocks if "grounding_source" in block.qualifiers]
    replies = [await call.check(block.text, question, contexts, policy) for block in judged]
    is_input = body.source == "INPUT"  # what a user wrote has no sources
    actions = [action_on_text(reply) if is_input else reply.action for reply in replies]
    return _reply(body, judged, replies, actions, total=sum(len(block.text) for block in blocks))


def _policy(call: DialectCall) -> str:
    """Return the policy that the path names.

    Raises:
        UnknownPolicy: If none is loaded under this name, or it has another version.
    """
    name, version = call.path["guardrail"], call.path["version"]
    guard = call.service.runtime.guard
    policies = {n: policy for n, policy in guard.policies.items() if guard.is_shown(n)}
    if name not in policies:
        raise UnknownPolicy(f"not loaded; expected one of {', '.join(policies)}", "guardrail")
    named = f"{name}@{version}"
    if named in guard.served.pinned and guard.is_shown(named):
        return named  # whatever is on trial under this name
    loaded = policies[name].version
    if version not in (DRAFT, loaded):
        raise UnknownPolicy(f"loaded in another version; expected {loaded} or {DRAFT}", "version")
    return name


def _reply(
    body: ApplyGuardrailRequest,
    judged: list[BedrockText],
    replies: list[CheckReply],
    actions: list[str],
    total: int,
) -> dict[str, Any]:
    intervened = {"block", "redact"} & set(actions)
    outputs = []
    if "block" in intervened:
        outputs = [{"text": STOPPED}]
    elif intervened:
        outputs = [
            {"text": (reply.redacted_answer or "") if action == "redact" else block.text}
            for block, reply, action in zip(judged, replies, actions, strict=True)
        ]
    whole = body.outputScope == "FULL"
    coverage = {"textCharacters": {"guarded": sum(len(b.text) for b in judged), "total": total}}
    usage = dict.fromkeys(_UNITS, 0)
    return {
        "usage": usage,
        "action": "GUARDRAIL_INTERVENED" if intervened else "NONE",
        "actionReason": " ".join(dict.fromkeys(reply.summary for reply in replies)),
        "outputs": outputs,
        "assessments": [
            _assessment(reply, whole=whole)
            | {
                "invocationMetrics": {
                    "guardrailProcessingLatency": round(reply.timings_ms.total),
                    "usage": usage,
                    "guardrailCoverage": coverage,
                }
            }
            for reply in replies
        ],
        "guardrailCoverage": coverage,
    }


_UNITS = (
    "topicPolicyUnits",
    "contentPolicyUnits",
    "wordPolicyUnits",
    "sensitiveInformationPolicyUnits",
    "sensitiveInformationPolicyFreeUnits",
    "contextualGroundingPolicyUnits",
)
"""What AWS bills by; nothing is billed here."""


def _assessment(reply: CheckReply, *, whole: bool) -> dict[str, Any]:
    """Return AWS' policies with what stands for them; `actionReason` names everything else."""
    detectors = reply.detectors
    grounding = [
        {"type": kind, "threshold": metric.threshold, "score": metric.score}
        | _verdict(detectors[name], detected=metric.flagged)
        for name, kind in _GROUNDING.items()
        if name in detectors
        for metric in list(detectors[name].metrics.values())[:1]
        if metric.threshold is not None and (whole or metric.flagged)
    ]
    found: dict[str, Any] = {}
    if grounding:
        found["contextualGroundingPolicy"] = {"filters": grounding}
    if toxicity := detectors.get("toxicity"):
        filters = [
            {"type": kind, "confidence": _confidence(metric.score), "filterStrength": "HIGH"}
            | _verdict(toxicity, detected=metric.flagged)
            for name, kind in _CONTENT.items()
            if (metric := toxicity.metrics.get(name)) and (whole or metric.flagged)
        ]
        if filters:
            found["contentPolicy"] = {"filters": filters}
    if sensitive := _sensitive(detectors.get("pii"), detectors.get("secrets")):
        found["sensitiveInformationPolicy"] = sensitive
    return found


def _sensitive(*found: DetectorOut | None) -> dict[str, Any] | None:
    """Return places of personal data and secrets; the values are not repeated."""
    entities: list[dict[str, Any]] = []
    regexes: list[dict[str, Any]] = []
    for detector in found:
        for span in detector.spans if detector and detector.flagged else ():
            place = {"match": f"characters {span.start} to {span.end}"}
            verdict = _verdict(detector, detected=True) if detector else {}
            if span.label in _PII:
                entities.append({"type": _PII[span.label], **place, **verdict})
            else:
                regexes.append({"name": span.label, **place, **verdict})
    return {"piiEntities": entities, "regexes": regexes} if entities or regexes else None


def _verdict(detector: DetectorOut, *, detected: bool) -> dict[str, Any]:
    words = {"block": "BLOCKED", "redact": "ANONYMIZED"}
    action = words.get(detector.action, "NONE") if detected else "NONE"
    return {"action": action, "detected": detected}


def _confidence(score: float) -> str:
    return (
        "HIGH" if score >= 0.8 else "MEDIUM" if score >= 0.5 else "LOW" if score >= 0.2 else "NONE"
    )


_KINDS = {
    401: (403, "AccessDeniedException"),
    403: (403, "AccessDeniedException"),
    429: (429, "ThrottlingException"),
    503: (503, "ServiceUnavailableException"),
}


def _error(status: int, error: ErrorBody) -> Shaped:
    """Return an error as botocore parses it."""
    status, kind = _KINDS.get(
        status,
        (500, "InternalServerException") if status >= 500 else (400, "ValidationException"),
    )
    if error.code == UnknownPolicy.code:
        status, kind = 404, "ResourceNotFoundException"
    headers = {"x-amzn-ErrorType": kind, "x-amzn-RequestId": error.request_id}
    return Shaped(status, {"__type": kind, "message": error.message}, headers)
