"""Requests, replies, retries and the time budget, without any I/O."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from guardrail_client import _protocol, errors
from guardrail_client._options import ClientOptions, make_options
from guardrail_client._protocol import Call, RawReply, ReplyBody
from guardrail_client.types import CheckOptions, CheckResult

NO_TIME_FAULTS = [
    httpx.ReadError("x"),
    httpx.WriteError("x"),
    httpx.RemoteProtocolError("x"),
    httpx.ProxyError("x"),
    httpx.UnsupportedProtocol("x"),
]
TIME_FAULTS = [
    httpx.ConnectTimeout("x"),
    httpx.ReadTimeout("x"),
    httpx.WriteTimeout("x"),
    httpx.PoolTimeout("x"),
]


def make_call(clock: Any, body: Any = None, **options: Any) -> Call:
    """Return a call without jitter."""
    jitter = options.pop("jitter", 1.0)
    method: Any = "GET" if body is None else "POST"
    return Call(ClientOptions(**options), method, "/v1/x", body, clock=clock, jitter=lambda: jitter)


def reply(status: int, content: bytes = b"{}", **headers: str) -> RawReply:
    """Return a whole reply; header names get dashes."""
    return RawReply(status, {k.replace("_", "-"): v for k, v in headers.items()}, content)


# Requests


def test_what_is_not_asked_for_is_not_sent() -> None:
    """The service's own defaults apply to everything the caller left out, the deadline included."""
    assert _protocol.check_body("a", {}, None) == {"answer": "a", "contexts": []}


def test_every_argument_has_its_key() -> None:
    """Arguments travel under the names of the API."""
    arguments: dict[str, Any] = {
        "question": "q",
        "contexts": ["text", {"id": "doc-7#3", "text": "more"}],
        "policy": "strict",
        "detectors": {"toxicity": {"thresholds": {"toxicity": 0.3}}},
        "deadline_ms": 250,
        "mode": "shadow",
        "include": ["spans"],
        "id": "i",
    }
    options: Any = arguments
    assert _protocol.check_body("a", options, "ours") == {"answer": "a", **arguments}
    assert set(arguments) == set(CheckOptions.__annotations__)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"answer": None}, "answer: found NoneType"),
        ({"answer": "a", "contexts": "one passage"}, "contexts: found str"),
        ({"answer": "a", "include": "spans"}, "include: found str"),
        ({"answer": "a", "contexts": ["fine", 3]}, r"contexts\[1\]: found int"),
        ({"answer": "a", "contexts": [{"id": "x"}]}, r"contexts\[0\]: found dict"),
        ({"answer": "a", "contexts": [{"text": None}]}, r"contexts\[0\]: found dict"),
        ({"answer": "a", "context": ["p"]}, "unknown option 'context'.*mean 'contexts'"),
        ({"answer": "a", "stop_on": "flag"}, "unknown option 'stop_on'"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_sent(
    arguments: dict[str, Any], named: str
) -> None:
    """Mistakes of the calling code are TypeErrors with the place, without the value."""
    with pytest.raises(TypeError, match=named):
        _protocol.check_body(arguments.pop("answer"), arguments, None)  # type: ignore[arg-type]


def test_a_batch_item_gets_the_clients_policy_unless_it_has_its_own() -> None:
    """The nearest policy wins."""
    body = _protocol.batch_body([{"answer": "a"}, {"answer": "b", "policy": "own"}], "ours")
    assert [item["policy"] for item in body["items"]] == ["ours", "own"]


@pytest.mark.parametrize("item", [{"anwser": "a"}, {"answer": "a", "timeout": 1}, {}])
def test_a_batch_item_with_a_wrong_key_is_named(item: Any) -> None:
    """A misspelt key is an error of its item, not a key the service never sees."""
    with pytest.raises(TypeError, match=r"items\[1\]"):
        _protocol.batch_body([{"answer": "fine"}, item], None)


def test_text_is_sent_as_utf8_and_half_an_emoji_as_an_escape(clock: Any) -> None:
    """Non-Latin text stays small; text that UTF-8 cannot carry still arrives."""
    assert "Grüße 你好".encode() in (make_call(clock, {"answer": "Grüße 你好"}).content or b"")
    broken = make_call(clock, {"answer": "half \ud83d"}).content or b""
    assert json.loads(broken) == {"answer": "half \ud83d"}


def test_not_a_number_is_refused_before_anything_is_sent(clock: Any) -> None:
    """NaN is not JSON."""
    with pytest.raises(ValueError, match="JSON"):
        make_call(clock, {"detectors": {"x": float("nan")}})


def test_only_what_changes_hands_has_an_idempotency_key(clock: Any) -> None:
    """Every call has a request id of its own; a POST has an idempotency key besides."""
    get, post, other = make_call(clock), make_call(clock, {}), make_call(clock, {})
    assert "Idempotency-Key" not in get.headers
    assert post.headers["Idempotency-Key"] != other.headers["Idempotency-Key"]
    assert post.headers["X-Request-Id"] == post.request_id != other.request_id


# ClientOptions


def test_arguments_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """GUARDRAIL_URL and GUARDRAIL_API_KEY fill in what the code leaves open."""
    monkeypatch.setenv("GUARDRAIL_URL", "http://env:1")
    monkeypatch.setenv("GUARDRAIL_API_KEY", "env-key")
    assert make_options(None, None, 5, 2, None).url == "http://env:1"
    assert make_options(None, None, 5, 2, None).headers["Authorization"] == "Bearer env-key"
    options = make_options("http://arg:2", "arg-key", 5, 2, None)
    assert (options.url, options.headers["Authorization"]) == ("http://arg:2", "Bearer arg-key")


def test_without_any_setting_the_service_is_on_this_machine_without_a_key() -> None:
    """The default works beside a service started by default."""
    options = make_options(None, None, 5, 2, None)
    assert options.url == "http://127.0.0.1:8080"
    assert "Authorization" not in options.headers


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x", "http://", "/v1"])
def test_an_address_that_cannot_work_is_refused_at_once(url: str) -> None:
    """A wrong address fails when the client is made, not in front of a user."""
    with pytest.raises(ValueError, match="base_url"):
        make_options(url, None, 5, 2, None)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_a_budget_is_a_positive_number(timeout: float) -> None:
    """There is no such thing as waiting for ever."""
    with pytest.raises(ValueError, match="timeout"):
        make_options(None, None, timeout, 2, None)


def test_retries_are_counted_from_zero() -> None:
    """A negative number of retries is a mistake."""
    with pytest.raises(ValueError, match="max_retries"):
        make_options(None, None, 5, -1, None)


def test_a_key_from_a_file_loses_its_newline() -> None:
    """The newline at the end of a secret file does not break the header."""
    assert make_options(None, "k\n", 5, 2, None).headers["Authorization"] == "Bearer k"


def test_a_key_appears_in_no_message_and_no_repr() -> None:
    """Keys and passwords stay out of logs."""
    with pytest.raises(ValueError, match="api_key") as caught:
        make_options(None, "geheim\nä", 5, 2, None)
    assert "geheim" not in str(caught.value)
    options = make_options("http://user:geheim@h:1/p", "geheim", 5, 2, None)
    assert "geheim" not in repr(options) + options.place


# Retries


@pytest.mark.parametrize("status", [429, 502, 503])
def test_statuses_that_waiting_can_cure_are_retried(clock: Any, status: int) -> None:
    """Two retries with doubling waits, then the outcome stands."""
    call = make_call(clock)
    assert [call.wait(reply(status)) for _ in range(3)] == [0.1, 0.2, None]


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 413, 422, 500, 504])
def test_other_statuses_are_not_retried(clock: Any, status: int) -> None:
    """What another try would only repeat is not repeated."""
    assert make_call(clock).wait(reply(status)) is None


def test_a_refused_connection_is_retried(clock: Any) -> None:
    """Nobody saw the request, and a restarting service is back soon."""
    assert make_call(clock).wait(httpx.ConnectError("x")) == 0.1


@pytest.mark.parametrize("error", [*NO_TIME_FAULTS, *TIME_FAULTS], ids=lambda e: type(e).__name__)
def test_a_request_that_may_have_arrived_is_not_sent_again(clock: Any, error: Any) -> None:
    """Time-outs and broken connections would double the work of a service in trouble."""
    assert make_call(clock).wait(error) is None


def test_waits_are_jittered_and_bounded(clock: Any) -> None:
    """Each wait is between half of its step and all of it, and never above the longest."""
    call = make_call(clock, jitter=0.0, max_retries=9, timeout=60)
    waits = [call.wait(reply(503)) for _ in range(9)]
    assert waits == [0.05, 0.1, 0.2, 0.4, 0.5, 0.5, 0.5, 0.5, 0.5]


def test_no_retries_means_none(clock: Any) -> None:
    """`max_retries=0` is obeyed."""
    assert make_call(clock, max_retries=0).wait(reply(503)) is None


def test_retry_after_is_honoured_when_it_fits(clock: Any) -> None:
    """The wait is at least what the service asked for."""
    assert make_call(clock).wait(reply(429, retry_after="2")) == 2.0
    assert make_call(clock).wait(reply(429, retry_after="0")) == 0.1


def test_retry_after_beyond_the_budget_is_not_waited_for(clock: Any) -> None:
    """A wait that cannot end in time is not begun."""
    call = make_call(clock)
    clock.now += 4
    assert call.wait(reply(429, retry_after="2")) is None
    assert make_call(clock, timeout=0.05).wait(reply(503)) is None


# The budget


def test_the_budget_counts_down_from_the_start_of_the_call(clock: Any) -> None:
    """Every try gets what is left, not a budget of its own."""
    call = make_call(clock)
    assert call.left() == 5.0
    clock.now += 3
    assert call.left() == 2.0
    clock.now += 2
    with pytest.raises(errors.TimeoutExceeded, match="within 5 s"):
        call.left()


def test_a_body_that_comes_too_late_is_a_timeout(clock: Any) -> None:
    """Each chunk is checked, so bytes in time do not excuse bytes too late."""
    body = ReplyBody(make_call(clock))
    body.add(b"in time")
    clock.now += 5
    with pytest.raises(errors.TimeoutExceeded):
        body.add(b"late")


def test_a_body_that_is_too_large_is_refused(clock: Any) -> None:
    """Memory is bounded whatever the server sends."""
    body = ReplyBody(make_call(clock), limit=4)
    body.add(b"1234")
    assert body.joined() == b"1234"
    with pytest.raises(errors.UnexpectedReply, match="too large"):
        body.add(b"5")


# Replies


@pytest.mark.parametrize("error", TIME_FAULTS, ids=lambda e: type(e).__name__)
def test_every_timeout_of_httpx_is_one_class(clock: Any, error: Any) -> None:
    """Callers need not know the phases of a request."""
    call = make_call(clock)
    with pytest.raises(errors.TimeoutExceeded) as caught:
        call.result(error, dict)
    assert caught.value.request_id == call.request_id


@pytest.mark.parametrize("error", NO_TIME_FAULTS, ids=lambda e: type(e).__name__)
def test_every_broken_connection_is_one_class(clock: Any, error: Any) -> None:
    """No httpx exception leaves the client."""
    with pytest.raises(errors.ConnectionFailed, match=type(error).__name__):
        make_call(clock).result(error, dict)


@pytest.mark.parametrize("content", [b"", b"<html>", b"\xff", b'{"a": NaN}', b"[" * 100_000])
def test_a_200_that_is_not_json_is_unexpected(clock: Any, content: bytes) -> None:
    """Pages, broken encodings, NaN and endless nesting are one error with the bytes in `body`."""
    with pytest.raises(errors.UnexpectedReply) as caught:
        make_call(clock).result(reply(200, content), dict)
    assert caught.value.body == content
    assert caught.value.status == 200


def test_a_refusal_is_raised_with_what_it_said(clock: Any) -> None:
    """Status, code, request id and body travel with the error."""
    content = b'{"error": {"code": "unknown_policy", "message": "policy: x", "request_id": "r"}}'
    with pytest.raises(errors.InvalidRequest) as caught:
        make_call(clock).result(reply(422, content), dict)
    assert (caught.value.code, caught.value.request_id) == ("unknown_policy", "r")
    assert caught.value.body == json.loads(content)


def test_json_that_is_no_verdict_carries_our_request_id(clock: Any) -> None:
    """A reply that cannot be read can still be found in the service's logs."""
    call = make_call(clock)
    with pytest.raises(errors.UnexpectedReply, match="is missing") as caught:
        call.result(reply(200, b'{"request_id": "r"}'), CheckResult.from_json)
    assert caught.value.request_id == call.request_id


ITEM = {"answer": "The pass phrase of the vault is lobster.", "contexts": []}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("answer: found 200001 characters", "answer: found 200001 characters"),
        (f"cannot read {ITEM['answer']}", errors.InvalidRequest.summary),
    ],
)
def test_an_error_of_a_batch_repeats_no_text(message: str, said: str) -> None:
    """An item's error says what the service said, and never what was submitted."""
    raw = {"results": [{"error": {"code": "invalid_input", "message": message}}]}
    (error,) = _protocol.parse_batch(raw, [ITEM])
    assert getattr(error, "message", None) == said


def test_a_batch_keeps_order_and_count(verdict: dict[str, Any]) -> None:
    """Verdicts and errors stand where their items stood."""
    broken = {"error": {"code": "limit_exceeded", "message": "answer: too long"}}
    parsed = _protocol.parse_batch({"results": [broken, verdict]}, [ITEM, ITEM])
    assert [type(item).__name__ for item in parsed] == ["CheckError", "CheckResult"]


@pytest.mark.parametrize("raw", [{"results": []}, {"results": [1]}, {}, [], {"results": None}])
def test_a_batch_that_lost_items_is_unexpected(raw: object) -> None:
    """A shorter list must not shift verdicts to other answers."""
    with pytest.raises(errors.UnexpectedReply):
        _protocol.parse_batch(raw, [ITEM])
