"""The real client against the real service, in one process: both read the contract alike."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import guardrail_client as gc
from guardrail_service.settings import DecisionSettings

PASSAGES = [
    "Guests may stay for two weeks at most.",
    {"id": "house-rules#2", "text": "The pool opens at seven in the morning."},
]
ANSWER = "Guests may stay for two weeks. Dogs are not allowed."


@pytest.fixture
def anyio_backend() -> str:
    """Run coroutine tests on asyncio."""
    return "asyncio"


@pytest.fixture
def settings(
    tiny: Path, write_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Return settings for a service on the tiny pack with one policy."""
    monkeypatch.delenv("GUARDRAIL_API_KEY", raising=False)
    config = write_config(
        calibrated_thresholds={"groundedness": {"groundedness": 0.5}},
        evaluator_ids=["groundedness", "looping", "text_matching"],
        policy={"name": "tiny", "version": "1", "allow_overrides": True},
    )
    return {"model_pack": str(tiny), "config": (config,), "workers": 2}


@pytest.fixture
def client(settings: dict[str, Any]) -> Iterator[gc.GuardrailClient]:
    """Return a client with the real service inside."""
    with gc.GuardrailClient.in_process(**settings) as running:
        running._options = replace(running._options, timeout=60)  # a busy machine is no fault here
        yield running


def timeless(result: gc.CheckResult) -> dict[str, Any]:
    """Return a verdict without what differs from call to call."""
    detectors = result.raw["detectors"].items()
    kept = {name: {k: v for k, v in d.items() if k != "latency_ms"} for name, d in detectors}
    raw = {k: v for k, v in result.raw.items() if k not in ("request_id", "timings_ms")}
    return {**raw, "detectors": kept}


def test_a_verdict_of_the_service_is_read_whole(client: gc.GuardrailClient) -> None:
    """Every part of a real reply has its place in the typed result."""
    result = client.check(ANSWER, question="How long may I stay?", contexts=PASSAGES, id="mine")
    assert (result.policy.name, result.policy.version) == ("tiny", "1")
    assert set(result.detectors) == {"groundedness", "looping", "text_matching"}
    grounded = result.detectors["groundedness"]
    assert grounded.state == "evaluated"
    assert grounded.metrics["groundedness"].threshold == 0.5
    assert grounded.metrics["groundedness"].direction == "higher_is_better"
    assert grounded.coverage is not None
    assert grounded.coverage.answer_chars[1] == len(ANSWER)
    assert result.detectors["text_matching"].state == "not_applicable"
    assert result.passed == (not result.flagged_detectors)
    assert result.timings.total > 0
    assert result.raw["id"] == "mine"


def test_a_repeated_call_gives_the_same_verdict(client: gc.GuardrailClient) -> None:
    """Scores do not depend on what was asked before."""
    first, second = (client.check(ANSWER, contexts=PASSAGES) for _ in range(2))
    assert timeless(first) == timeless(second)
    assert first.request_id != second.request_id


@pytest.mark.anyio
async def test_both_clients_get_the_same_verdict(settings: dict[str, Any]) -> None:
    """Awaiting changes nothing about the answer."""
    with gc.GuardrailClient.in_process(**settings) as client:
        expected = client.check(ANSWER, contexts=PASSAGES, timeout=60)
    async with gc.AsyncGuardrailClient.in_process(**settings) as client:
        result = await client.check(ANSWER, contexts=PASSAGES, timeout=60)
        items: list[gc.CheckItem] = [{"answer": ANSWER, "contexts": PASSAGES}]
        (alone,) = await client.check_many(items, timeout=60)
    assert timeless(result) == timeless(expected)
    assert isinstance(alone, gc.CheckResult)
    assert timeless(alone) == timeless(expected)


def test_every_argument_is_understood(client: gc.GuardrailClient) -> None:
    """No argument of `check` is refused by the service."""
    result = client.check(
        ANSWER,
        question="How long may I stay?",
        contexts=PASSAGES,
        policy="tiny",
        detectors={
            "groundedness": {"thresholds": {"groundedness": -1.0}},
            "text_matching": {"parameters": {"condition": '"two weeks"'}},
        },
        deadline_ms=60_000,
        mode="shadow",
        include=["spans", "evidence", "redacted_answer"],
        id="mine",
        timeout=60,
    )
    assert not result.calibrated
    assert result.action == "allow"
    assert result.detectors["groundedness"].metrics["groundedness"].threshold == -1.0
    assert result.detectors["text_matching"].state == "evaluated"


def test_a_batch_answers_every_item_in_order(client: gc.GuardrailClient) -> None:
    """An item that cannot be judged takes nobody else's place."""
    results = client.check_many(
        [{"answer": ANSWER, "contexts": PASSAGES}, {"answer": " "}, {"answer": "Breakfast."}]
    )
    assert [type(result).__name__ for result in results] == [
        "CheckResult",
        "CheckError",
        "CheckResult",
    ]
    assert isinstance(results[1], gc.CheckError)
    assert results[1].code == "invalid_input"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"answer": ANSWER, "policy": "nonsense"}, "unknown_policy"),
        ({"answer": " "}, "invalid_input"),
        ({"answer": ANSWER, "include": ["nonsense"]}, "invalid_input"),
        ({"answer": "a" * 100_001}, "limit_exceeded"),
    ],
)
def test_a_wrong_request_is_refused_in_words(
    client: gc.GuardrailClient, arguments: dict[str, Any], code: str
) -> None:
    """The service's refusals arrive as InvalidRequest with its code and its message."""
    with pytest.raises(gc.InvalidRequest) as caught:
        client.check(**arguments)
    assert caught.value.code == code
    assert caught.value.message != gc.InvalidRequest.summary
    assert caught.value.request_id


def test_too_many_bytes_are_refused(settings: dict[str, Any]) -> None:
    """The body limit has its own class."""
    small = {**settings, "limits": {"body_bytes": 1_024}}
    with gc.GuardrailClient.in_process(**small) as client, pytest.raises(gc.PayloadTooLarge):
        client.check("a" * 2_000)


def test_a_key_is_checked_and_sent(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Client and service agree on how a key travels."""
    locked = {**settings, "api_keys": ("right",)}
    with gc.GuardrailClient.in_process(**locked) as client:
        assert client.ready()
        with pytest.raises(gc.AuthenticationFailed):
            client.check(ANSWER)
    monkeypatch.setenv("GUARDRAIL_API_KEY", "right")
    with gc.GuardrailClient.in_process(**locked) as client:
        assert client.check(ANSWER, timeout=60).request_id


def test_the_service_describes_itself(client: gc.GuardrailClient) -> None:
    """Policies, detectors, info and readiness have the shapes the client promises."""
    assert [policy["name"] for policy in client.policies()] == ["tiny"]
    assert {"groundedness", "looping"} <= {detector["id"] for detector in client.detectors()}
    assert client.info()["version"]
    assert client.ready()


def test_a_reply_does_not_say_whether_passages_were_sent_before(
    client: gc.GuardrailClient,
) -> None:
    """Another caller may have sent them, and that is nobody else's business."""
    sent = ["Guests may stay for two weeks at most in the morning."]
    first, again = client.warm(sent), client.warm(sent)
    assert first.pop("request_id") != again.pop("request_id")
    assert first == again == {"sentences": 1, "failed": 0}


def test_feedback_without_a_store_is_refused(client: gc.GuardrailClient) -> None:
    """With what is missing."""
    with pytest.raises(gc.APIError, match="keeps no decisions") as refused:
        client.feedback("r1", "pass")
    assert refused.value.status == 404


@pytest.mark.anyio
async def test_feedback_finds_its_decision(settings: dict[str, Any], tmp_path: Path) -> None:
    """Of a check, or of one item of a batch; both clients."""
    url = f"sqlite:///{tmp_path / 'decisions.db'}"
    settings["decisions"] = DecisionSettings(url=SecretStr(url))
    with gc.GuardrailClient.in_process(**settings) as client:
        asked = client.check(ANSWER, contexts=PASSAGES, timeout=60).request_id
        said = client.feedback(asked, "fail", "Dogs are.", timeout=60)
        assert said == {"request_id": asked, "state": "stored"}
        assert client.feedback(asked, "fail", "Dogs are.", timeout=60)["state"] == "known"
        with pytest.raises(gc.InvalidRequest, match="label"):
            client.feedback(asked, "good")  # type: ignore[arg-type]
    async with gc.AsyncGuardrailClient.in_process(**settings) as twin:
        items: list[gc.CheckItem] = [{"answer": ANSWER}, {"answer": "Breakfast."}]
        (first, _) = await twin.check_many(items, timeout=60)
        assert isinstance(first, gc.CheckResult)
        with pytest.raises(gc.InvalidRequest, match="item"):
            await twin.feedback(first.request_id, "pass", timeout=60)
        said = await twin.feedback(first.request_id, "pass", item=1, timeout=60)
        assert said["state"] == "stored"
        with pytest.raises(gc.APIError, match="no stored decision"):
            await twin.feedback("nobody", "pass", timeout=60)


def test_two_services_can_run_in_one_process(settings: dict[str, Any]) -> None:
    """Each client owns its service; closing one leaves the other."""
    with gc.GuardrailClient.in_process(**settings) as one:
        with gc.GuardrailClient.in_process(**settings) as two:
            assert two.ready()
        assert one.check(ANSWER, contexts=PASSAGES, timeout=60).policy.name == "tiny"


def test_a_program_that_closes_nothing_ends(settings: dict[str, Any]) -> None:
    """The service's threads do not keep it alive."""
    program = (
        "import sys; from pathlib import Path; from guardrail_client import GuardrailClient\n"
        "c = GuardrailClient.in_process(model_pack=sys.argv[1], config=(Path(sys.argv[2]),))\n"
        "print(c.check('Guests may stay.', contexts=['Guests may stay.'], timeout=60).decision)"
    )
    arguments = [settings["model_pack"], str(settings["config"][0])]
    ended = subprocess.run(  # it raises if the program does not end
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=240
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() in ("pass", "flag")
