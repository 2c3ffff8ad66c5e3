"""Unmodified applications behind the middleware: real hosts, a real guard, a real openai client."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware

import guardrail_client as gc
from guardrail_client.middleware import (
    FALLBACK,
    OUTAGE,
    AnswerOutcome,
    GuardrailMiddleware,
    GuardrailWSGI,
    Route,
    guarded,
)
from tests.integration.conftest import PATIENCE_S, Served, running, until
from tests.integration.hosts import (
    ADDRESS,
    CLEAN,
    LEAK,
    SECRET,
    SEEN,
    application,
    flask_application,
    mounted,
    sending_files,
    serving,
    serving_wsgi,
)

REDACTED = LEAK.replace(ADDRESS, "[EMAIL_1]")
CHAT = "/v1/chat/completions"
BY_QUERY: dict[str, Any] = {"question": "query:q", "contexts": None}


def policy(folder: Path) -> Path:
    """Write a policy that redacts addresses and blocks secrets."""
    path = folder / "host.json"
    content = {
        "evaluator_ids": ["groundedness", "looping", "pii", "secrets", "encoding"],
        "calibrated_thresholds": {"groundedness": {"groundedness": -1.0}},
        "policy": {
            "name": "host",
            "version": "1",
            "on_unverified": "pass",
            "actions": {"pii": "redact", "secrets": "block"},
        },
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture(scope="module")
def service(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One guard for the tests that leave it alive."""
    config = policy(tmp_path_factory.mktemp("policy"))
    with running("--port", "0", "--pack", tiny, "--config", config) as served, served.client():
        yield served


def routes(**settings: Any) -> list[Route]:
    """Return every endpoint of the host, guarded in the same way."""
    settings = {"timeout": PATIENCE_S, **settings}
    return [
        Route("/answer", **settings),
        Route(
            "/nested",
            answer="choices[0].message.content",
            question="messages[-1].content",
            contexts=None,
            **settings,
        ),
        Route(CHAT, question="messages[-1].content", **settings),
        Route("/chat", question="/messages/0/content", contexts=None, **settings),
        Route("/events", sse="text", **BY_QUERY, **settings),
        Route("/*", **BY_QUERY, **settings),
    ]


@contextmanager
def hosted(guard: str, **settings: Any) -> Iterator[httpx.Client]:
    """Serve the guarded host and yield a client of it."""
    made = gc.AsyncGuardrailClient(guard, max_retries=0)
    app = GuardrailMiddleware(application(made.close), made, routes(**settings))
    with serving(app) as url, httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        yield client


@pytest.fixture(scope="module")
def host(service: Served) -> Iterator[httpx.Client]:
    """The host behind the guard, with default settings."""
    with hosted(service.address) as client:
        yield client


def say(client: httpx.Client, name: str, path: str = "/answer") -> httpx.Response:
    """Ask a host for one of its answers."""
    return client.post(path, json={"question": "How long?", "say": name})


def chat(client: httpx.Client, name: str) -> str:
    """Return what an unmodified openai client reads of a streamed completion."""
    reader = openai.OpenAI(base_url=f"{client.base_url}/v1", api_key="x", max_retries=0)
    with reader:
        stream = reader.chat.completions.create(
            model="m", messages=[{"role": "user", "content": name}], stream=True
        )
        chunks = list(stream)
    reasons = [
        c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason
    ]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    return f"{text}|{','.join(reasons)}"


# JSON


def test_a_clean_answer_passes_byte_for_byte_with_the_verdict_in_the_headers(
    host: httpx.Client, service: Served
) -> None:
    """Own headers stay, those of the body stay true."""
    with serving(application_with_scope()) as url:
        plain = httpx.post(f"{url}/answer", json={"say": "clean"}, timeout=PATIENCE_S)
    reply = say(host, "clean")
    assert reply.content == plain.content
    assert reply.headers["etag"] == '"abc"'
    assert reply.headers["x-app"] == "1"
    assert reply.headers["x-guardrail-decision"] == "pass"
    assert reply.headers["x-guardrail-policy"] == "host@1"


def application_with_scope() -> Any:
    """Return the unguarded host, with the mapping that the middleware would put into the scope."""
    app = application()

    async def call(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "guardrail": {}}, receive, send)

    return call


def test_a_redacted_answer_takes_the_answers_place(host: httpx.Client) -> None:
    """And nothing else of the document; headers of the old body are gone."""
    reply = say(host, "leak")
    assert reply.json()["answer"] == REDACTED
    assert (reply.json()["id"], reply.json()["note"]) == (7, "unchanged")
    assert "etag" not in reply.headers
    assert int(reply.headers["content-length"]) == len(reply.content)
    assert reply.headers["x-guardrail-action"] == "redact"
    assert reply.headers["x-guardrail-flagged"] == "pii"


def test_a_blocked_answer_is_replaced(host: httpx.Client) -> None:
    """With the fallback, still a valid document."""
    reply = say(host, "secret")
    assert (reply.status_code, reply.json()["answer"]) == (200, FALLBACK)
    assert reply.headers["x-guardrail-action"] == "block"


def test_answers_are_found_by_jmespath_and_replaced_there(host: httpx.Client) -> None:
    """In chat completions that are not streamed."""
    body = {"messages": [{"role": "user", "content": "secret"}]}
    document = host.post("/nested", json=body).json()
    assert document == {"choices": [{"index": 0, "message": {"content": FALLBACK}}]}


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [("/page", 502, "unread_media_type"), ("/broken", 500, "unread_error")],
)
def test_a_body_that_nobody_can_read_is_not_sent(
    path: str, status: int, error: str, host: httpx.Client
) -> None:
    """A page, an error with an answer in it: the status of an error stays."""
    reply = host.get(path)
    assert (reply.status_code, reply.json()["error"]["reason"]) == (status, error)
    assert ADDRESS not in reply.text
    assert reply.headers["x-guardrail-error"] == error


@pytest.mark.parametrize(
    ("path", "status", "body"), [("/elsewhere", 307, ""), ("/nothing", 404, "Not Found")]
)
def test_a_body_that_is_known_to_hold_no_answer_passes(
    path: str, status: int, body: str, host: httpx.Client
) -> None:
    """A redirect, the error of a framework: status, body and headers."""
    reply = host.get(path)
    assert (reply.status_code, reply.text) == (status, body)
    assert int(reply.headers["content-length"]) == len(reply.content)


def test_a_compressed_answer_is_read_and_stays_correct(host: httpx.Client) -> None:
    """Unchanged it stays compressed; changed it is sent plain."""
    clean = host.get("/compressed?say=clean")
    assert (clean.json()["answer"], clean.headers["content-encoding"]) == (CLEAN, "gzip")
    leak = host.get("/compressed?say=leak")
    assert leak.json()["answer"] == REDACTED
    assert "content-encoding" not in leak.headers


@pytest.mark.parametrize("on_error", ["closed", "open"])
def test_an_answer_that_cannot_be_read_is_a_failure_of_the_guard(
    on_error: Any, service: Served
) -> None:
    """Unknown compression, more bytes than the limit: closed 502, open as it is."""
    with hosted(service.address, on_error=on_error, max_bytes=100_000) as client:
        replies = [client.get("/huge")]
        with client.stream("GET", "/unknown") as raw:
            replies.append(raw)
            body = b"".join(raw.iter_raw())
    assert {r.headers["x-guardrail-decision"] for r in replies} == {"unchecked"}
    assert [r.headers["x-guardrail-error"] for r in replies] == ["too_large", "unknown_encoding"]
    if on_error == "closed":
        assert [r.status_code for r in replies] == [502, 502]
        assert replies[0].json()["error"]["code"] == "guardrail_unchecked"
    else:
        assert [r.status_code for r in replies] == [200, 200]
        assert len(replies[0].json()["answer"]) == 300 * 1024
        assert body == b"xx"


@pytest.mark.parametrize(("on_error", "shown"), [("closed", OUTAGE), ("open", LEAK)])
def test_without_a_guard_the_choice_decides(on_error: Any, shown: str) -> None:
    """Closed by default; open is a choice, and the header says that nobody looked."""
    with hosted("http://127.0.0.1:9", on_error=on_error) as client:
        reply = say(client, "leak")
        assert reply.json()["answer"] == shown
        assert reply.headers["x-guardrail-decision"] == "unchecked"
        assert reply.headers["x-guardrail-error"] == "connection_failed"
        expected = f"{shown}|{'stop' if on_error == 'open' else 'content_filter'}"
        assert chat(client, "leak") == expected


def test_failing_open_is_no_excuse_for_a_wrong_configuration(service: Served) -> None:
    """A policy that does not exist would otherwise switch the guard off for good."""
    with hosted(service.address, on_error="open", policy="nonsense") as client:
        reply = say(client, "leak")
        assert reply.json()["answer"] == OUTAGE
        assert reply.headers["x-guardrail-error"] == "unknown_policy"


def test_the_budget_is_all_that_a_guard_may_add(steps_server: str) -> None:
    """One that never answers costs its time-out, once."""
    with hosted(steps_server, timeout=0.2) as client:
        reply = say(client, "leak")
    assert reply.json()["answer"] == OUTAGE
    assert reply.headers["x-guardrail-error"] == "timeout_exceeded"


@pytest.fixture
def steps_server() -> Iterator[str]:
    """A guard that takes requests and never answers."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield f"http://127.0.0.1:{silent.getsockname()[1]}"


def test_shadow_changes_nothing_and_reports(service: Served) -> None:
    """For documents and for streams."""
    seen: list[AnswerOutcome] = []
    with hosted(service.address, mode="shadow", on_outcome=seen.append) as client:
        reply = say(client, "leak")
        assert reply.json()["answer"] == LEAK
        assert "x-guardrail-decision" not in reply.headers
        assert chat(client, "leak") == f"{LEAK}|stop"
        assert client.get("/text?say=leak").text == f"Grüße! {LEAK}"
        until(lambda: len(seen) == 3, "all three were judged")
    assert {outcome.shown for outcome in seen} == {"as_is"}
    assert {o.result.decision for o in seen if o.result} == {"flag"}


def test_a_mere_flag_replaces_where_that_is_asked_for(service: Served) -> None:
    """`stop_on: flag`, with a fallback of the endpoint's own, told to the application."""
    seen: list[AnswerOutcome] = []
    settings = {"stop_on": "flag", "fallback": "Nein.", "on_outcome": seen.append}
    with hosted(service.address, **settings) as client:
        assert say(client, "leak").json()["answer"] == "Nein."
        assert say(client, "clean").json()["answer"] == CLEAN
    assert [outcome.shown for outcome in seen] == ["replaced", "as_is"]


# Where the application is mounted


def test_a_host_under_a_root_path_is_guarded(service: Served) -> None:
    """Its server puts the root path in front of every path; routes may name either."""
    made = gc.AsyncGuardrailClient(service.address, max_retries=0)
    inner = [Route("/answer", timeout=PATIENCE_S), Route("/api/text", timeout=PATIENCE_S)]
    app = GuardrailMiddleware(application(made.close), made, inner)
    with (
        serving(app, root_path="/api") as url,
        httpx.Client(base_url=url, timeout=PATIENCE_S) as client,
    ):
        assert say(client, "leak").json()["answer"] == REDACTED
        assert client.get("/text?say=leak").text == f"Grüße! {REDACTED}"


@pytest.mark.parametrize("root", ["", "/proxy"])
@pytest.mark.parametrize("place", ["inside", "outside"])
def test_a_mounted_application_is_guarded(root: str, place: str, service: Served) -> None:
    """From inside of the mount by its own paths, from outside by the whole ones."""
    made = gc.AsyncGuardrailClient(service.address, max_retries=0)
    inside = place == "inside"
    route = Route("/answer" if inside else "/api/answer", timeout=PATIENCE_S)
    app: Any = application()
    if inside:
        app = GuardrailMiddleware(app, made, [route])
    app = mounted("/api", app, made.close)
    if not inside:
        app = GuardrailMiddleware(app, made, [route])
    with (
        serving(app, root_path=root) as url,
        httpx.Client(base_url=url, timeout=PATIENCE_S) as client,
    ):
        assert say(client, "leak", "/api/answer").json()["answer"] == REDACTED


@pytest.mark.parametrize("path", ["/answer", "/api/answer"])
def test_a_mounted_wsgi_application_is_guarded(path: str, service: Served) -> None:
    """By either path."""
    with gc.GuardrailClient(service.address) as made:
        guarded_app = GuardrailWSGI(flask_application(), made, [Route(path, timeout=PATIENCE_S)])
        app = DispatcherMiddleware(Flask("outer"), {"/api": guarded_app})
        with serving_wsgi(app) as url, httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
            assert say(client, "leak", "/api/answer").json()["answer"] == REDACTED


# Streams


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("clean", f"{CLEAN}|stop"),
        ("leak", f"{REDACTED}|stop"),
        ("blank", " |stop"),
    ],
)
def test_an_openai_client_reads_a_guarded_completion(
    name: str, read: str, host: httpx.Client
) -> None:
    """Text, finish reason, usage: as from the application, without what is hidden."""
    assert chat(host, name) == read


def test_an_openai_client_reads_a_completion_up_to_what_stops_it(host: httpx.Client) -> None:
    """Whether the sentence before was shown depends on how fast the rest was written."""
    shown, _, end = chat(host, "secret").partition(FALLBACK)
    assert shown in ("", SECRET[: SECRET.index("The key")])
    assert end == "|content_filter"


def test_every_choice_is_an_answer_of_its_own(host: httpx.Client) -> None:
    """None leaks into the other, none holds it up for good."""
    body = {"messages": [{"role": "user", "content": "clean leak clean"}]}
    texts = {0: "", 1: "", 2: ""}
    done = []
    with host.stream("POST", CHAT, json=body) as reply:
        assert reply.headers["x-guardrail-decision"] == "streaming"
        for line in reply.iter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    texts[choice["index"]] += choice["delta"].get("content") or ""
            elif line.startswith((":", "data: [")):
                done.append(line)
    assert texts == {0: CLEAN, 1: REDACTED, 2: CLEAN}
    assert done[0] == ":"
    assert sorted(line.split()[1] for line in done[1:-1]) == [
        "x-guardrail-decision=flag",
        "x-guardrail-decision=pass",
        "x-guardrail-decision=pass",
    ]
    assert done[-1] == "data: [DONE]"


@pytest.mark.parametrize(("name", "text"), [("clean", CLEAN), ("leak", REDACTED), ("secret", None)])
def test_plain_events_are_guarded(name: str, text: str | None, host: httpx.Client) -> None:
    """Their text comes out as events again, the other events as they were."""
    body, _, told = host.get(f"/events?say={name}").text.partition("event: guardrail\n")
    assert bool(told) == (text is None)
    lines = body.split("\n")
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    shown = "".join(part for part in data if part != "[DONE]")
    if text is None:
        assert shown.endswith(FALLBACK)
        assert "AKIA" not in shown
    else:
        assert shown == text
        assert "event: done" in lines


@pytest.mark.parametrize(("name", "text"), [("clean", CLEAN), ("leak", REDACTED)])
def test_chunked_text_is_guarded(name: str, text: str, host: httpx.Client) -> None:
    """Whatever the pieces, cut inside of characters, too."""
    assert host.get(f"/text?say={name}").text == f"Grüße! {text}"


@pytest.mark.parametrize(("name", "text"), [("clean", CLEAN), ("leak", REDACTED)])
def test_text_is_read_in_its_charset_and_in_utf_8_if_nobody_knows_it(
    name: str, text: str, host: httpx.Client
) -> None:
    """And sent in the same."""
    assert host.get(f"/odd?say={name}").text == text
    assert host.get(f"/western?say={name}").content == f"Grüße! {text}".encode("latin-1")


@pytest.mark.parametrize(("name", "text"), [("clean", CLEAN), ("leak", REDACTED)])
def test_a_byte_order_mark_comes_once(name: str, text: str, host: httpx.Client) -> None:
    """And not before every piece that was checked."""
    assert host.get(f"/wide?say={name}").content.decode("utf-16") == f"Grüße! {text}"


@pytest.mark.parametrize("charset", ["shift_jis_2004", "iso2022_jp"])
@pytest.mark.parametrize(("name", "text"), [("clean", CLEAN), ("leak", REDACTED)])
def test_a_charset_says_all_it_has_to_at_the_end(
    name: str, text: str, charset: str, host: httpx.Client
) -> None:
    """A last letter that could have gone on, and the way back to ASCII."""
    found = host.get(f"/shifted?say={name}&charset={charset}").content
    assert found == f"{text} か".encode(charset)


def test_a_stream_stays_a_stream(host: httpx.Client) -> None:
    """Its first sentence arrives while the host still waits to write the rest."""
    SEEN.clear()
    with host.stream("GET", "/paced") as reply:
        parts = reply.iter_text()
        first = next(parts)
        SEEN.set()
        rest = "".join(parts)
    assert CLEAN.startswith(first)
    assert first + rest == f"{CLEAN} {CLEAN}"


def test_a_host_that_crashes_mid_stream_shows_nothing_that_was_held(host: httpx.Client) -> None:
    """The reader sees a broken response, the half address stays inside, the host serves on."""
    seen: list[bytes] = []
    with host.stream("GET", "/crash") as reply, pytest.raises(httpx.RemoteProtocolError):
        seen.extend(reply.iter_raw())
    shown = b"".join(seen).decode()
    assert f"{CLEAN} {LEAK[: LEAK.index('Write')]}".startswith(shown)
    assert say(host, "clean").status_code == 200


@pytest.mark.parametrize("on_error", ["closed", "open"])
def test_a_guard_that_dies_mid_stream(
    on_error: Any, tiny: Path, tmp_path: Path, serve: Callable[..., Served]
) -> None:
    """Closed ends with the fallback, open with the rest of the answer."""
    served = serve("--port", "0", "--pack", tiny, "--config", policy(tmp_path))
    with (
        served.client(),
        hosted(served.address, on_error=on_error) as client,
        client.stream("GET", "/text?say=long") as reply,
    ):
        parts = reply.iter_text()
        seen = next(parts)
        served.signal(signal.SIGKILL)
        served.process.wait()
        seen += "".join(parts)
    whole = f"Grüße! {(CLEAN + ' ') * 30}"
    if on_error == "open" or seen == whole:  # all of it may have been judged before
        assert seen == whole
    else:
        assert seen.endswith(OUTAGE)
        assert whole.startswith(seen.removesuffix(OUTAGE))


def test_200_streams_at_once_do_not_mix(host: httpx.Client) -> None:
    """Every reader gets its own answer."""

    async def one(client: httpx.AsyncClient, number: int) -> None:
        name = ("clean", "leak")[number % 2]
        expected = {"clean": CLEAN, "leak": REDACTED}[name]
        reply = await client.get(f"/text?say={name}")
        assert reply.text == f"Grüße! {expected}"

    async def everyone() -> None:
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(
            base_url=host.base_url, limits=limits, timeout=PATIENCE_S
        ) as client:
            await asyncio.gather(*(one(client, number) for number in range(200)))

    asyncio.run(everyone())


def test_a_slow_reader_slows_the_host(host: httpx.Client) -> None:
    """Bytes are read one by one; nothing is lost."""
    with host.stream("GET", "/text?say=long") as reply:
        seen = b"".join(reply.iter_raw(chunk_size=1))
    assert seen.decode() == f"Grüße! {(CLEAN + ' ') * 30}"


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_a_file_that_the_server_could_send_itself_is_guarded(
    mode: Any, service: Served, tmp_path: Path
) -> None:
    """The application is not offered what would pass the guard by, and cannot insist on it."""
    said = tmp_path / "said.txt"
    said.write_text(LEAK)
    seen: list[AnswerOutcome] = []
    made = gc.AsyncGuardrailClient(service.address, max_retries=0)
    guard = routes(mode=mode, on_outcome=seen.append)
    app = sending_files(GuardrailMiddleware(application(made.close), made, guard))
    with serving(app) as url, httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        shown = client.get("/file", params={"path": str(said)}).text
        assert shown == (LEAK if mode == "shadow" else REDACTED)
        until(lambda: len(seen) == 1, "it was judged")
        assert seen[0].result is not None
        assert seen[0].result.flagged_detectors == ("pii",)
        if mode == "enforce":
            with pytest.raises(httpx.RemoteProtocolError):
                client.get("/insistent", params={"path": str(said)})


# The guard in the same process, WSGI, functions


def test_the_guard_may_run_in_the_hosts_own_process(tiny: Path, tmp_path: Path) -> None:
    """The same endpoints without a service beside the host."""
    settings = {"model_pack": str(tiny), "config": (policy(tmp_path),), "workers": 1}
    made = gc.AsyncGuardrailClient.in_process(**settings)
    app = GuardrailMiddleware(application(made.close), made, routes())
    with serving(app) as url, httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        assert say(client, "leak").json()["answer"] == REDACTED
        assert chat(client, "leak") == f"{REDACTED}|stop"


def test_flask_is_guarded_the_same_way(service: Served) -> None:
    """Documents, streams, errors."""
    with gc.GuardrailClient(service.address) as made:
        app = GuardrailWSGI(flask_application(), made, routes())
        with serving_wsgi(app) as url, httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
            assert say(client, "clean").headers["x-guardrail-decision"] == "pass"
            leak = say(client, "leak")
            assert leak.json()["answer"] == REDACTED
            assert int(leak.headers["content-length"]) == len(leak.content)
            assert say(client, "secret").json()["answer"] == FALLBACK
            assert client.get("/page").json()["error"]["reason"] == "unread_media_type"
            assert client.get("/broken").json()["error"]["reason"] == "unread_error"
            assert client.get("/text?say=leak").text == REDACTED
            assert client.get("/odd?say=clean").text == CLEAN
            assert client.get("/odd?say=leak").text == REDACTED
            assert client.get("/wide?say=leak").content.decode("utf-16") == REDACTED
            for charset in ("shift_jis_2004", "iso2022_jp"):
                found = client.get(f"/shifted?say=leak&charset={charset}").content
                assert found == f"{REDACTED} か".encode(charset)
            body = {"messages": [{"content": "leak"}]}
            streamed = client.post("/chat", json=body).text
            assert ADDRESS not in streamed
            assert "[EMAIL_1]" in streamed
            assert streamed.endswith("data: [DONE]\n\n")
            body = {"messages": [{"content": "secret"}]}
            assert '"content_filter"' in client.post("/chat", json=body).text


def test_flask_without_a_guard(service: Served) -> None:
    """Closed and open mean the same there; shadow judges after the last byte."""
    seen: list[AnswerOutcome] = []
    for settings, shown in (
        ({}, OUTAGE),
        ({"on_error": "open"}, LEAK),
    ):
        with gc.GuardrailClient("http://127.0.0.1:9", max_retries=0) as made:
            app = GuardrailWSGI(flask_application(), made, routes(**settings))
            with serving_wsgi(app) as url, httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
                assert say(client, "leak").json()["answer"] == shown
                assert client.get("/text?say=leak").text == shown
    with gc.GuardrailClient(service.address) as made:
        shadow = routes(mode="shadow", on_outcome=seen.append)
        with serving_wsgi(GuardrailWSGI(flask_application(), made, shadow)) as url:
            assert httpx.get(f"{url}/text?say=leak", timeout=PATIENCE_S).text == LEAK
    assert [o.result.decision for o in seen if o.result] == ["flag"]


def test_functions_are_guarded_by_a_decorator(service: Served) -> None:
    """Plain and asynchronous ones, whole answers and pieces."""
    seen: list[AnswerOutcome] = []

    async def asynchronous() -> None:
        async with gc.AsyncGuardrailClient(service.address) as client:

            @guarded(client, timeout=PATIENCE_S)
            async def reply(question: str, contexts: list[str]) -> str:
                return LEAK

            @guarded(client, timeout=PATIENCE_S)
            async def write(question: str, contexts: list[str]) -> Any:
                for piece in (SECRET[:20], SECRET[20:]):
                    yield piece

            assert await reply("How long?", contexts=["Two weeks."]) == REDACTED
            pieces = [piece async for piece in write("How long?", ["Two weeks."])]
            assert pieces[-1] == FALLBACK
            assert "AKIA" not in "".join(pieces)

    with gc.GuardrailClient(service.address) as client:

        @guarded(client, fallback="No.", timeout=PATIENCE_S, on_outcome=seen.append)
        def answer(question: str, contexts: list[str] | None = None) -> str:
            """Say what is asked for."""
            return SECRET

        @guarded(client, timeout=PATIENCE_S)
        def write(question: str, contexts: list[str]) -> Iterator[str]:
            yield from (LEAK[:30], LEAK[30:])

        assert answer("Which key?") == "No."
        assert answer.__doc__ == "Say what is asked for."
        assert "".join(write("How long?", ["Two weeks."])) == REDACTED
        with pytest.raises(TypeError, match="has no argument 'question'"):
            guarded(client)(lambda: "x")
    assert [outcome.shown for outcome in seen] == ["replaced"]
    asyncio.run(asynchronous())
