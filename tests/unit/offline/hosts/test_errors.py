"""Refusals are told apart by what servers say, in their own words; nothing of it is repeated."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from guardrail_offline.hosts import errors
from guardrail_offline.hosts.endpoint import Patience
from tests.unit.offline.hosts.server import Reply, asked, serving

ECHO = "the text under test"


def said(message: str, **more: Any) -> dict[str, Any]:
    """Return an error as OpenAI's servers give it."""
    return {"error": {"message": f"{message} {ECHO}", **more}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, said("Incorrect API key provided"), errors.WrongKey),
        (403, {"Message": "denied"}, errors.WrongKey),
        (404, said("No such", code="model_not_found"), errors.UnknownModel),
        (404, {"error": "model 'tiny' not found"}, errors.UnknownModel),
        (404, {"message": "The model `x` does not exist.", "code": 404}, errors.UnknownModel),
        (404, said("No", code="DeploymentNotFound"), errors.UnknownModel),
        (404, {"detail": "Not Found"}, errors.HostRefused),
        (400, said("It is", code="context_length_exceeded"), errors.ContextTooLong),
        (400, said("too much", type="exceed_context_size_error"), errors.ContextTooLong),
        (400, {"error": "input length exceeds maximum context length"}, errors.ContextTooLong),
        (413, None, errors.ContextTooLong),
        (500, said("the request exceeds the available context size"), errors.ContextTooLong),
        (400, said("Invalid parameter: 'response_format'"), errors.SchemaUnsupported),
        (422, {"detail": "json_schema is not known"}, errors.SchemaUnsupported),
        (400, said("temperature is too high"), errors.HostRefused),
        (400, ["no object"], errors.HostRefused),
        (429, said("You have no money", code="insufficient_quota"), errors.NoQuota),
    ],
)  # fmt: skip
def test_a_refusal_is_told_by_its_status_and_its_words(
    status: int, body: Any, kind: type[errors.HostError]
) -> None:
    """And asked once only."""
    with serving(Reply(body, status=status)) as server, asked(server.url) as endpoint:
        with pytest.raises(kind) as found:
            endpoint.post({})
        assert type(found.value) is kind
        assert len(server.bodies) == found.value.attempts == 1
        assert ECHO not in str(found.value)
        assert str(found.value).startswith(f"127.0.0.1: found status {status}")


@pytest.mark.parametrize(
    ("kind", "general"),
    [
        (errors.WrongKey, True),
        (errors.UnknownModel, True),
        (errors.ContextTooLong, False),
        (errors.SchemaUnsupported, False),
    ],
)
def test_some_refusals_stop_everything(kind: type[errors.HostRefused], general: bool) -> None:
    """Another question would be refused, too, without key or model."""
    assert kind("h", 400).is_general is general


def test_what_is_not_there_was_too_busy_or_too_slow_has_its_own_code() -> None:
    """After all tries, which are counted."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with asked(nobody) as endpoint, pytest.raises(errors.Unreachable) as found:
            endpoint.get()
    assert (found.value.attempts, found.value.code) == (5, "unreachable")
    with (
        serving(Reply({}, status=429)) as server,
        asked(server.url, limits=Patience(retries=1)) as endpoint,
        pytest.raises(errors.RateLimited) as busy,
    ):
        endpoint.post({})
    assert (busy.value.attempts, busy.value.code) == (2, "rate_limited")
    slow = Reply({"slow": "x" * 99}, drops=0.05)
    with (
        serving(slow) as server,
        asked(server.url, limits=Patience(timeout_s=0.3, retries=0)) as endpoint,
        pytest.raises(errors.TimedOut) as late,
    ):
        endpoint.post({})
    assert late.value.code == "timed_out"
