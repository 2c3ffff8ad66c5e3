"""Makes a scored lab from served requests and their replies. Nothing is scored again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guardrail_offline.calibration.lab import (
    LabCase,
    ScoredLab,
    facts_of,
    read_records,
)
from guardrail_offline.cases import question_group
from guardrail_offline.results import Score
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Policy
from guardrail_service.types import State


@dataclass(frozen=True, slots=True)
class Joined:
    """A lab made of served requests.

    Attributes:
        lab: The scored cases.
        errors: Requests whose reply is an error; they have no scores and are left out.
    """

    lab: ScoredLab
    errors: int


def join(requests: Path, replies: Path, policy: Policy, fingerprints: Mapping[str, str]) -> Joined:
    """Return the lab that a file of requests and a file of their replies make.

    Args:
        requests: Bodies of `/v1/check`, one a line. `group` and `categories` may be added to a
            body in this file; without a group, the same question is the same group.
        replies: What `guardrail check` or the service answered, in the same order.
        policy: The configuration they were served under; its parameters go with the scores.
        fingerprints: Of the models they were served with.

    Raises:
        ConfigurationError: If counts or ids differ, replies are of another configuration, or none
            of them has scores.
    """
    asked, answered = read_records(requests), read_records(replies)
    if len(asked) != len(answered):
        found = f"{len(answered)} replies to {len(asked)} requests"
        raise ConfigurationError(str(replies), found, "one reply a request, in the same order")
    cases = []
    for number, (request, reply) in enumerate(zip(asked, answered, strict=True), start=1):
        if "error" not in reply:
            where = f"{replies}: line {number}"
            _check(where, request, reply, policy)
            cases.append(_case(where, number, request, reply))
    if not cases:
        found = f"{len(answered)} replies, all of them errors" if answered else "no reply"
        raise ConfigurationError(str(replies), found, "at least one reply with scores")
    parameters = {
        name: rule.parameters.model_dump(mode="json", by_alias=True)
        for name, rule in policy.rules.items()
    }
    lab = ScoredLab(str(replies), tuple(cases), dict(fingerprints), parameters)
    return Joined(lab, len(asked) - len(cases))


def fingerprints_of(info: Path) -> dict[str, str]:
    """Return the fingerprints in a saved `GET /v1/info`."""
    try:
        found = json.loads(info.read_text("utf-8"))["fingerprints"]
        return {str(key): str(value) for key, value in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            str(info), type(error).__name__, "the reply of GET /v1/info"
        ) from error


def _check(
    where: str, request: Mapping[str, Any], reply: Mapping[str, Any], policy: Policy
) -> None:
    if request.get("id") != reply.get("id"):
        raise ConfigurationError(where, "a reply to another id", "replies in order of requests")
    served = reply.get("policy", {}).get("sha256")
    if served != policy.sha256:
        found = f"a reply under configuration {str(served)[:12]}"
        raise ConfigurationError(where, found, f"{policy.sha256[:12]} ({policy.name})")
    if request.get("detectors"):
        raise ConfigurationError(
            where, "a request that changes detectors", "scores of the configuration as it is"
        )


def _case(where: str, number: int, request: Mapping[str, Any], reply: Mapping[str, Any]) -> LabCase:
    contexts = tuple(c if isinstance(c, str) else c["text"] for c in request.get("contexts", ()))
    question = request.get("question") or ""
    try:
        scores = {name: _scores(result) for name, result in reply["detectors"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(where, "no detectors", "a reply of /v1/check") from error
    group = request.get("group") or (question_group(question) if question else f"line-{number}")
    return LabCase(
        key=request.get("id") or f"line-{number}",
        group=group,
        scores=scores,
        facts=facts_of(request["answer"], len(contexts), request.get("categories", ())),
        question=question or None,
        answer=request["answer"],
        contexts=contexts,
    )


def _scores(result: Mapping[str, Any]) -> dict[str, Score]:
    """Return a detector's scores; one without any has its state under the key `*`."""
    state = State(result["state"])
    if state is State.EVALUATED:
        return {key: Score(float(metric["score"])) for key, metric in result["metrics"].items()}
    return {"*": Score.missing(state, result["reason"] or state.value)}
