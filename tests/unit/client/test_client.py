"""The synchronous client, against an injected transport and against real sockets."""

from __future__ import annotations

import inspect
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any

import httpx
import pytest

import guardrail_client as gc
from guardrail_client import _options, errors, types
from guardrail_client.client import GuardrailClient
from tests.unit.client.conftest import PATIENCE_S

PACKAGE = Path(gc.__file__).parent


def scripted(*replies: httpx.Response | Exception) -> tuple[httpx.MockTransport, list[Any]]:
    """Return a transport that gives these replies in turn, and the requests it will have seen."""
    left, seen = list(replies), []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return httpx.MockTransport(answer), seen


# The package


def test_all_is_sorted() -> None:
    """`__all__` reads like an index."""
    assert gc.__all__ == sorted(gc.__all__)


def test_all_is_complete() -> None:
    """Both clients, every error and every type of a reply can be imported from the top."""
    public = {
        name
        for module in (errors, types)
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }
    clients = {"GuardrailClient", "AsyncGuardrailClient", "__version__"}
    clients |= {"CheckStream", "AsyncCheckStream", "Circuit"}
    assert set(gc.__all__) == public | clients


def test_the_version_is_the_distributions() -> None:
    """The User-Agent does not lag behind the release."""
    released = (PACKAGE.parent / "VERSION").read_text().strip()
    assert gc.__version__ == _options.__version__ == released


def test_importing_the_client_imports_no_service_and_nothing_heavy() -> None:
    """An application pays for httpx only."""
    code = (
        "import sys, guardrail_client.inprocess; "
        "print(sorted({'guardrail_service', 'pydantic', 'numpy', 'onnxruntime', 'fastapi'}"
        " & set(sys.modules)))"
    )
    root = str(PACKAGE.parent)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=root
    )
    assert done.stdout.strip() == "[]"


# One call


def test_a_check_sends_the_contract_and_returns_the_verdict(verdict: dict[str, Any]) -> None:
    """Path, headers and body are the API's; the reply is typed."""
    transport, seen = scripted(httpx.Response(200, json=verdict))
    with GuardrailClient("http://h/base", api_key="k", transport=transport) as client:
        result = client.check("an answer", question="a question", contexts=["one"])
    (request,) = seen
    assert (request.method, request.url.path) == ("POST", "/base/v1/check")
    assert request.headers["authorization"] == "Bearer k"
    assert request.headers["content-type"] == "application/json"
    assert json.loads(request.content) == {
        "answer": "an answer",
        "question": "a question",
        "contexts": ["one"],
    }
    assert result == gc.CheckResult.from_json(verdict)


def test_a_calls_policy_wins_over_the_clients(verdict: dict[str, Any]) -> None:
    """The client's policy is a default."""
    transport, seen = scripted(*(httpx.Response(200, json=verdict) for _ in range(2)))
    with GuardrailClient(policy="ours", transport=transport) as client:
        client.check("a")
        client.check("a", policy="theirs")
    assert [json.loads(r.content)["policy"] for r in seen] == ["ours", "theirs"]


def test_check_many_is_one_request(verdict: dict[str, Any]) -> None:
    """A batch costs one round trip and keeps order and count."""
    error = {"error": {"code": "limit_exceeded", "message": "answer: too long"}}
    transport, seen = scripted(httpx.Response(200, json={"results": [verdict, error]}))
    with GuardrailClient(transport=transport) as client:
        results = client.check_many([{"answer": "a"}, {"answer": "b" * 9}])
    assert [request.url.path for request in seen] == ["/v1/check/batch"]
    assert isinstance(results[0], gc.CheckResult)
    assert results[1] == gc.CheckError("limit_exceeded", "answer: too long")


def test_an_empty_batch_is_not_sent() -> None:
    """Nothing to judge needs no service."""
    transport, seen = scripted()
    with GuardrailClient(transport=transport) as client:
        assert client.check_many([]) == []
    assert seen == []


def test_a_refusal_of_passages_that_are_sent_ahead_has_its_class() -> None:
    """A body without an answer is a body."""
    transport, _ = scripted(httpx.Response(422, json={"error": {"message": "contexts: too many"}}))
    wrong = pytest.raises(gc.InvalidRequest, match="contexts: too many")
    with GuardrailClient(transport=transport) as client, wrong:
        client.warm(["one"])


def test_passages_are_sent_ahead_as_they_are_for_a_check() -> None:
    """A str or a mapping with its text; anything else is refused before it is sent."""
    transport, seen = scripted(httpx.Response(200, json={"sentences": 2, "failed": 0}))
    with GuardrailClient(transport=transport) as client:
        assert client.warm(["one", {"id": "7", "text": "two"}])["sentences"] == 2
        with pytest.raises(TypeError, match=r"contexts\[0\]: found int"):
            client.warm([7])  # type: ignore[list-item]
    assert [request.url.path for request in seen] == ["/v1/contexts"]
    assert json.loads(seen[0].content) == {"contexts": ["one", {"id": "7", "text": "two"}]}


def test_feedback_sends_what_was_given() -> None:
    """And nothing else; a refusal names the field."""
    refused = {"code": "invalid_input", "message": "item: missing; expected the place"}
    transport, seen = scripted(
        httpx.Response(200, json={"request_id": "r1", "state": "stored"}),
        httpx.Response(422, json={"error": refused}),
    )
    with GuardrailClient(transport=transport) as client:
        assert client.feedback("r1", "fail", "No pool.", 0)["state"] == "stored"
        with pytest.raises(gc.InvalidRequest, match="item: missing"):
            client.feedback("r1", "pass")
    assert [request.url.path for request in seen] == ["/v1/feedback"] * 2
    first, second = (json.loads(request.content) for request in seen)
    assert first == {"request_id": "r1", "label": "fail", "comment": "No pool.", "item": 0}
    assert second == {"request_id": "r1", "label": "pass"}


def test_lists_and_info_are_plain_json() -> None:
    """What has no type yet arrives as it came."""
    transport, seen = scripted(
        httpx.Response(200, json={"policies": [{"name": "default"}]}),
        httpx.Response(200, json={"detectors": [{"id": "pii"}]}),
        httpx.Response(200, json={"version": "0.1.0"}),
    )
    with GuardrailClient(transport=transport) as client:
        assert client.policies() == [{"name": "default"}]
        assert client.detectors() == [{"id": "pii"}]
        assert client.info() == {"version": "0.1.0"}
    paths = [request.url.path for request in seen]
    assert paths == ["/v1/policies", "/v1/detectors", "/v1/info"]


@pytest.mark.parametrize("call", ["policies", "detectors", "info"])
def test_a_list_of_another_shape_is_unexpected(call: str) -> None:
    """A reply from something else does not reach the caller as data."""
    transport, _ = scripted(httpx.Response(200, json=[1]))
    with GuardrailClient(transport=transport) as client, pytest.raises(gc.UnexpectedReply):
        getattr(client, call)()


@pytest.mark.parametrize(
    ("reply", "ready"),
    [
        (httpx.Response(200, json={"ready": True}), True),
        (httpx.Response(503, json={"ready": False}), False),
        (httpx.ConnectError("refused"), False),
        (httpx.ReadTimeout("slow"), False),
    ],
)
def test_ready_asks_once(reply: Any, ready: bool) -> None:
    """A probe answers now; whoever polls does the waiting."""
    transport, seen = scripted(reply)
    with GuardrailClient(transport=transport) as client:
        assert client.ready() is ready
    assert [request.url.path for request in seen] == ["/readyz"]


def test_ready_raises_what_waiting_cannot_cure() -> None:
    """A wrong address is not a service that is still loading."""
    transport, _ = scripted(httpx.Response(404))
    with GuardrailClient(transport=transport) as client, pytest.raises(gc.APIError):
        client.ready()


def test_a_transport_and_a_socket_exclude_each_other() -> None:
    """Two ways to connect at once are a mistake."""
    transport, _ = scripted()
    with pytest.raises(ValueError, match="uds"):
        GuardrailClient(transport=transport, uds="x")


def test_an_answer_never_shows_up_in_an_error() -> None:
    """Not when the connection fails, not when a proxy repeats the request."""
    answer = "The card is 4111 1111 1111 1111 and belongs to Ms Example."
    replies: list[Any] = [httpx.ReadError(answer), httpx.ReadTimeout(answer)]
    replies += [httpx.Response(status, text=answer) for status in (200, 302, 400, 422, 500)]
    replies += [httpx.Response(400, json={"error": {"message": answer, "code": answer}})]
    for reply in replies:
        transport, _ = scripted(reply)
        client = GuardrailClient(transport=transport)
        with client, pytest.raises(gc.GuardrailError) as caught:
            client.check(answer)
        assert "4111" not in str(caught.value) + repr(caught.value)


# Retries and the budget


def test_all_tries_share_their_ids(verdict: dict[str, Any], clock: Any, use_clock: Any) -> None:
    """The service can tell a repeated request from a new one."""
    transport, seen = scripted(
        httpx.ConnectError("refused"), httpx.Response(502), httpx.Response(200, json=verdict)
    )
    with use_clock(GuardrailClient(transport=transport), clock) as client:
        client.check("a")
    assert len(seen) == 3
    assert len({request.headers["idempotency-key"] for request in seen}) == 1
    assert len({request.headers["x-request-id"] for request in seen}) == 1
    assert clock.sleeps == [0.1, 0.2]


def test_every_try_gets_what_is_left_of_the_budget(
    verdict: dict[str, Any], clock: Any, use_clock: Any
) -> None:
    """A slow first try shortens the second; the body gets what the headers left over."""
    seen: list[float] = []

    class SlowBody(httpx.SyncByteStream):
        def __init__(self, request: httpx.Request) -> None:
            self.request = request

        def __iter__(self) -> Iterator[bytes]:
            seen.append(self.request.extensions["timeout"]["read"])
            yield json.dumps(verdict).encode()

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.extensions["timeout"]["read"])
        clock.now += 1.5
        if len(seen) == 1:
            return httpx.Response(503)
        return httpx.Response(200, stream=SlowBody(request))

    with use_clock(GuardrailClient(transport=httpx.MockTransport(answer)), clock) as client:
        client.check("a")
    assert seen == pytest.approx([5.0, 3.4, 1.9])


def test_a_calls_own_budget_replaces_the_clients(clock: Any, use_clock: Any) -> None:
    """`timeout=` on a call bounds that call."""
    transport, _ = scripted(httpx.Response(429, headers={"Retry-After": "2"}))
    client = use_clock(GuardrailClient(transport=transport), clock)
    with client, pytest.raises(gc.Overloaded) as caught:
        client.check("a", timeout=1)
    assert (caught.value.retry_after, clock.sleeps) == (2.0, [])


# Real sockets


def test_a_faulty_server_leads_to_the_promised_outcome(
    fault: Any, server: Any, clock: Any, use_clock: Any
) -> None:
    """Each fault is either survived within the budget or raised as its class, never as httpx's."""
    server.script, expected = fault
    tries = len(server.script)
    with use_clock(GuardrailClient(server.url, timeout=PATIENCE_S), clock) as client:
        if expected is None:
            assert client.check("a").decision == "flag"
        else:
            with pytest.raises(expected):
                client.check("a")
    assert len(server.seen) == tries


def test_a_trickling_server_cannot_outlast_the_budget(
    server: Any, steps: Any, clock: Any, use_clock: Any
) -> None:
    """One byte per second keeps every single read short, and still ends with the budget."""
    server.script = [steps["trickling"]]
    clock.step, clock.on_read = 1.0, server.turn.release
    client = use_clock(GuardrailClient(server.url, timeout=8), clock)
    with client, pytest.raises(gc.TimeoutExceeded, match="within 8 s"):
        client.check("a")


def test_nobody_listening_is_a_failed_connection(
    refused_url: str, clock: Any, use_clock: Any
) -> None:
    """A refused connection is retried, then raised with the address."""
    client = use_clock(GuardrailClient(refused_url, timeout=PATIENCE_S), clock)
    with client, pytest.raises(gc.ConnectionFailed, match=refused_url):
        client.check("a")
    assert clock.sleeps == [0.1, 0.2]


def test_a_server_that_restarts_is_reached_by_the_next_call(
    server: Any, steps: Any, clock: Any, use_clock: Any
) -> None:
    """A broken connection is not kept."""
    server.script = [steps["reset"], steps["good"]]
    with use_clock(GuardrailClient(server.url, timeout=PATIENCE_S), clock) as client:
        with pytest.raises(gc.ConnectionFailed):
            client.check("a")
        assert client.check("a").request_id == "r-1"


def test_threads_may_share_a_client(server: Any, steps: Any) -> None:
    """Calls at the same time do not mix."""
    server.script = [steps["good"]] * 8
    done: list[str] = []
    with GuardrailClient(server.url, timeout=PATIENCE_S) as client:
        threads = [
            threading.Thread(target=lambda: done.append(client.check("a").request_id))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert done == ["r-1"] * 8


@pytest.fixture
def unix_socket(tmp_path: Path, server: Any) -> Iterator[str]:
    """Return the path of a socket on which the scripted server answers too."""

    class UnixServer(ThreadingUnixStreamServer):
        script, seen = server.script, server.seen

        def get_request(self) -> tuple[socket.socket, Any]:
            return super().get_request()[0], ("unix", 0)

    path = str(tmp_path / "s")
    with UnixServer(path, server.RequestHandlerClass) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield path
        running.shutdown()
        thread.join()


def test_a_unix_socket_is_an_address(unix_socket: str, server: Any, steps: Any) -> None:
    """`uds=` reaches a service that opened no port."""
    server.script.append(steps["good"])
    with GuardrailClient(uds=unix_socket, timeout=PATIENCE_S) as client:
        assert client.check("a").request_id == "r-1"


# Twins


def signatures(cls: type) -> dict[str, Callable[..., Any]]:
    """Return the public methods of a client."""
    return {n: v for n, v in inspect.getmembers(cls, callable) if not n.startswith("_")}


def test_both_clients_have_the_same_methods_and_signatures() -> None:
    """Code moves from one client to the other by adding `await`."""
    ours, theirs = signatures(GuardrailClient), signatures(gc.AsyncGuardrailClient)
    assert list(ours) == list(theirs)
    for name, method in ours.items():
        mine, other = inspect.signature(method), inspect.signature(theirs[name])
        assert mine.parameters == other.parameters, name
        if name == "check_stream":  # returns an iterator at once, of its own kind
            assert other.return_annotation == f"Async{mine.return_annotation}"
        else:
            assert mine.return_annotation == other.return_annotation, name
        if name not in ("in_process", "check_stream"):
            assert inspect.iscoroutinefunction(theirs[name]), name


def test_both_clients_are_constructed_the_same_way() -> None:
    """Names, kinds and defaults agree; only the type of the transport differs."""

    def shape(cls: type) -> list[tuple[str, Any, Any]]:
        parameters = inspect.signature(cls).parameters.values()
        return [(p.name, p.kind, p.default) for p in parameters]

    assert shape(GuardrailClient) == shape(gc.AsyncGuardrailClient)


def test_one_set_of_options_goes_through_every_call() -> None:
    """An item of a batch and a stream can say all that a single call can."""
    options = set(gc.CheckOptions.__annotations__)
    assert set(gc.CheckItem.__annotations__) == options | {"answer"}
    assert set(gc.StreamOptions.__annotations__) == options | {"stop_on", "sentence_deadline_ms"}
