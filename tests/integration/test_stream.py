"""`POST /v1/check/stream` of a real service, asked by the real client over loopback."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import guardrail_client as gc
from tests.integration.conftest import PATIENCE_S, Served, running, until

ADDRESS = "anna.berg@harbour-hotel.example"
SENTENCES = [
    "Guests may stay for two weeks at most. ",
    "The pool opens at seven in the morning. ",
    f"Write to {ADDRESS} for more. ",
    "Breakfast is served until ten every day. ",
    "Dogs are not allowed near the pool.",
]
TEXT = "".join(SENTENCES)
CONTEXTS = ["Guests may stay for two weeks at most. The pool opens at seven in the morning."]
DETECTORS = ["groundedness", "looping", "pii", "secrets", "encoding", "text_matching"]


@pytest.fixture
def anyio_backend() -> str:
    """Streams need asyncio."""
    return "asyncio"


def configuration(folder: Path, name: str, **policy: Any) -> Path:
    """Write a policy that the tiny pack can serve."""
    path = folder / f"{name}.json"
    own = {"name": name, "version": "1", "actions": {"pii": "redact", "secrets": "block"}}
    thresholds = {"groundedness": {"groundedness": -1.0}}
    content = {
        "evaluator_ids": DETECTORS,
        "calibrated_thresholds": thresholds,
        "policy": own | policy,
    }
    path.write_text(json.dumps(content))
    return path


def options(tiny: Path, folder: Path) -> tuple[str | Path, ...]:
    """Return options of a service with three policies."""
    files = [
        configuration(folder, "redacting"),
        configuration(folder, "blocking", actions=dict.fromkeys(DETECTORS, "block")),
        configuration(folder, "lenient", on_timeout="pass"),
    ]
    configs = [part for file in files for part in ("--config", file)]
    return ("--port", "0", "--pack", tiny, *configs)


@pytest.fixture(scope="module")
def service(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for the tests that leave it alive."""
    folder = tmp_path_factory.mktemp("policies")
    with running(*options(tiny, folder)) as served, served.client():
        yield served


def client(served: Served, **arguments: Any) -> gc.AsyncGuardrailClient:
    """Return a client of a service."""
    return gc.AsyncGuardrailClient(served.address, timeout=PATIENCE_S, **arguments)


async def tokens(text: str = TEXT, size: int = 4) -> AsyncIterator[str]:
    """Write a text as a model does."""
    for at in range(0, len(text), size):
        yield text[at : at + size]
        await asyncio.sleep(0)


async def drained(stream: gc.AsyncCheckStream) -> str:
    """Return everything a stream shows."""
    return "".join([text async for text in stream])


def timeless(result: gc.CheckResult) -> dict[str, Any]:
    """Return a verdict without what differs from call to call."""
    kept = {
        name: {k: v for k, v in found.items() if k != "latency_ms"}
        for name, found in result.raw["detectors"].items()
    }
    raw = {k: v for k, v in result.raw.items() if k not in ("request_id", "timings_ms")}
    return {**raw, "detectors": kept}


@pytest.mark.anyio
@pytest.mark.parametrize("size", [1, 4, 33, 1_000])
async def test_the_end_is_what_a_check_says_and_the_text_its_redacted_answer(
    size: int, service: Served
) -> None:
    """Decision, scores, spans; for any size of the pieces."""
    about: dict[str, Any] = {
        "question": "How long may I stay?",
        "contexts": CONTEXTS,
        "include": ["spans", "evidence", "redacted_answer"],
        "detectors": {"text_matching": {"parameters": {"condition": '"two weeks"'}}},
    }
    async with client(service) as asking:
        stream = asking.check_stream(tokens(size=size), **about)
        shown = [text async for text in stream]
        whole = await asking.check(TEXT, **about)
    assert stream.final is not None
    assert timeless(stream.final.result) == timeless(whole)
    assert "".join(shown) == whole.redacted_answer == TEXT.replace(ADDRESS, "[EMAIL_1]")
    assert (stream.final.reason, stream.final.processed_index) == ("complete", len(TEXT))
    assert stream.text == "".join(shown)


@pytest.mark.anyio
async def test_the_first_sentence_is_shown_before_the_third_is_written(service: Served) -> None:
    """The model waits for it here, so a service that collected would never end."""
    shown = asyncio.Event()

    async def model() -> AsyncIterator[str]:
        yield SENTENCES[0]
        yield SENTENCES[1]
        await asyncio.wait_for(shown.wait(), PATIENCE_S)
        yield "".join(SENTENCES[2:])

    async with client(service) as asking:
        stream = asking.check_stream(model(), contexts=CONTEXTS)
        first = await anext(stream)
        shown.set()
        rest = [text async for text in stream]
    assert first == SENTENCES[0]
    assert (first + "".join(rest)).startswith(SENTENCES[0] + SENTENCES[1])


@pytest.mark.anyio
async def test_a_block_stops_the_model_and_shows_the_fallback(service: Served) -> None:
    """Nothing of the finding is shown, and its iterator is closed."""
    closed, clean = asyncio.Event(), asyncio.Event()
    shown: list[str] = []

    async def model() -> AsyncIterator[str]:
        try:
            yield f"{SENTENCES[0]}{SENTENCES[1]}Write "
            await asyncio.wait_for(clean.wait(), PATIENCE_S)
            yield TEXT[len(f"{SENTENCES[0]}{SENTENCES[1]}Write ") :]
            while True:
                async for token in tokens():
                    yield token
        finally:
            closed.set()

    async with client(service) as asking:
        stream = asking.check_stream(model(), policy="blocking", contexts=CONTEXTS, fallback="No.")
        async for text in stream:
            shown.append(text)
            if "".join(shown) == SENTENCES[0] + SENTENCES[1]:
                clean.set()
    assert shown[-1] == "No."
    assert "".join(shown[:-1]) == SENTENCES[0] + SENTENCES[1]
    assert stream.final is not None
    assert stream.final.result.flagged_detectors == ("pii",)
    assert stream.final.result.action == "block"
    assert stream.blocked
    assert closed.is_set()


def test_the_synchronous_client_streams_too(service: Served) -> None:
    """Between the tokens, from an ordinary generator."""
    with gc.GuardrailClient(service.address, timeout=PATIENCE_S) as asking:
        stream = asking.check_stream(iter(SENTENCES), contexts=CONTEXTS)
        assert "".join(stream) == TEXT.replace(ADDRESS, "[EMAIL_1]")
        assert stream.final is not None
        with asking.check_stream(iter(SENTENCES), policy="blocking") as stopped:
            assert ADDRESS not in "".join(stopped)
        assert stopped.blocked


@pytest.mark.anyio
async def test_200_streams_at_once_do_not_mix(service: Served) -> None:
    """Each gets its own words and its own verdict."""

    async def one(number: int, asking: gc.AsyncGuardrailClient) -> None:
        own = (
            f"This is about garden {'abcdefghij'[number % 10] * (number // 10 + 1)} and no other. "
        )
        hidden = f"Mail guest{number}@hotel.example today. " if number % 3 == 0 else ""
        text = own + SENTENCES[0] + hidden + SENTENCES[1] + own
        stream = asking.check_stream(tokens(text, 9), contexts=CONTEXTS, id=str(number))
        shown = "".join([part async for part in stream])
        assert shown == text.replace(f"guest{number}@hotel.example", "[EMAIL_1]")
        assert stream.final is not None
        assert stream.final.result.raw["id"] == str(number)
        assert ("pii" in stream.final.result.flagged_detectors) == bool(hidden)

    async with client(service) as asking:
        await asyncio.gather(*(one(number, asking) for number in range(200)))


@pytest.mark.anyio
async def test_a_slow_reader_slows_its_model_and_nothing_is_lost(service: Served) -> None:
    """The model is asked for no more than is needed to go on."""
    written = 0

    async def model() -> AsyncIterator[str]:
        nonlocal written
        for sentence in SENTENCES * 40:
            written += len(sentence)
            yield sentence + " "

    shown = ""
    async with client(service) as asking:
        async for text in asking.check_stream(model(), contexts=CONTEXTS):
            shown += text
            ahead = written - len(shown)
            await asyncio.sleep(0)  # a reader that is not done yet
            assert written - len(shown) == ahead  # nobody pulls meanwhile
    assert shown == "".join(f"{s} " for s in SENTENCES * 40).replace(ADDRESS, "[EMAIL_1]")


@pytest.mark.anyio
async def test_a_model_that_crashes_ends_the_stream_with_its_error(service: Served) -> None:
    """What was held is not shown, the service drops its work."""

    async def model() -> AsyncIterator[str]:
        for sentence in SENTENCES[:3]:
            yield sentence
            await asyncio.sleep(0.01)
        raise RuntimeError("out of memory")

    async with client(service) as asking:
        stream = asking.check_stream(model(), contexts=CONTEXTS)
        with pytest.raises(RuntimeError, match="out of memory"):
            await drained(stream)
    assert ADDRESS not in stream.text
    assert stream.final is None


@pytest.mark.anyio
async def test_a_reader_that_leaves_cancels_the_work(
    tiny: Path, tmp_path: Path, serve: Callable[..., Served]
) -> None:
    """The service notices, says so in its log, and serves on."""

    async def model() -> AsyncIterator[str]:
        yield SENTENCES[0] + SENTENCES[1]
        await asyncio.sleep(PATIENCE_S)

    served = serve(*options(tiny, tmp_path))
    async with client(served) as asking:
        with served.client():
            async with asking.check_stream(model(), contexts=CONTEXTS) as stream:
                await anext(stream)
            assert (await asking.check("Guests may stay.", contexts=CONTEXTS)).request_id
    assert served.end() == 0
    lines = [line for line in served.lines if line.get("route") == "/v1/check/stream"]
    assert [line["error"] for line in lines] == ["cancelled"]


@pytest.mark.anyio
@pytest.mark.parametrize("on_error", ["closed", "open"])
async def test_a_guard_that_dies_mid_stream(
    on_error: Any, tiny: Path, tmp_path: Path, serve: Callable[..., Served]
) -> None:
    """Closed: an error, and nothing unchecked. Open: the rest unchecked, and the error kept."""
    served = serve(*options(tiny, tmp_path))
    with served.client():
        pass

    async def model() -> AsyncIterator[str]:
        yield SENTENCES[0]
        yield SENTENCES[1]
        await asyncio.wait_for(shown.wait(), PATIENCE_S)
        served.signal(signal.SIGKILL)
        served.process.wait()
        for sentence in SENTENCES[2:]:
            yield sentence

    shown = asyncio.Event()
    seen = ""
    async with client(served) as asking:
        stream = asking.check_stream(model(), contexts=CONTEXTS, on_error=on_error)
        try:
            async for text in stream:
                seen += text
                shown.set()
        except gc.ConnectionFailed:
            assert on_error == "closed"
            assert TEXT.startswith(seen)
            assert ADDRESS not in seen
            return
    assert on_error == "open"
    assert isinstance(stream.error, gc.ConnectionFailed)
    assert seen == TEXT


@pytest.mark.anyio
async def test_failing_open_is_for_a_guard_that_cannot_be_asked(service: Served) -> None:
    """A wrong request would otherwise switch it off for good."""
    async with client(service) as asking:
        stream = asking.check_stream(tokens(), policy="nonsense", on_error="open")
        with pytest.raises(gc.InvalidRequest) as caught:
            await anext(stream)
    assert caught.value.code == "unknown_policy"


@pytest.mark.anyio
@pytest.mark.parametrize(("policy", "flagged"), [("redacting", True), ("lenient", False)])
async def test_what_is_not_judged_in_time_counts_as_the_policy_says(
    policy: str, flagged: bool, service: Served
) -> None:
    """`on_timeout: flag` shows it flagged here, since groundedness only flags.

    The passages are of ordinary size: of a huge text, nothing is read after the deadline.
    """
    long = " ".join(f"The pool {n} opens at {m} in the morning." for n in range(20) for m in "ab")
    async with client(service) as asking:
        stream = asking.check_stream(
            tokens(SENTENCES[0] + SENTENCES[1]),
            policy=policy,
            contexts=[long] * 2,
            sentence_deadline_ms=1,
            deadline_ms=1,
        )
        assert "".join([text async for text in stream]) == SENTENCES[0] + SENTENCES[1]
    assert stream.final is not None
    assert stream.final.result.detectors["groundedness"].state == "not_evaluated"
    assert ("groundedness" in stream.final.result.flagged_detectors) == flagged


@pytest.mark.anyio
async def test_late_under_a_blocking_policy_is_never_a_pass(service: Served) -> None:
    """Fail closed: the part does not leave. No other test asks this, so no cache knows it.

    Both deadlines are short: a text that arrives whole is judged at its end only.
    """
    long = " ".join(f"The sauna {n} opens at {m} at noon." for n in range(60) for m in "ab")
    async with client(service) as asking:
        stream = asking.check_stream(
            tokens("Nobody has found the key of the sauna. The towels are in the cupboard."),
            policy="blocking",
            contexts=[long] * 30,
            sentence_deadline_ms=1,
            deadline_ms=1,
        )
        assert [text async for text in stream] == []
    assert stream.blocked


def post(served: Served, *lines: Any) -> httpx.Response:
    """Send whole lines and return the whole reply."""
    body = b"".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
    )
    return httpx.post(f"{served.address}/v1/check/stream", content=body, timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("line", "status", "code"),
    [
        (b"", 400, "malformed_json"),
        (b"{\n", 400, "malformed_json"),
        ({"anwser": ""}, 422, "invalid_input"),
        ({"policy": "nonsense"}, 422, "unknown_policy"),
        ({"contexts": ["a"] * 201}, 422, "limit_exceeded"),
        ({"stop_on": "never"}, 422, "invalid_input"),
    ],
)
def test_a_wrong_first_line_is_an_ordinary_error(
    line: Any, status: int, code: str, service: Served
) -> None:
    """Before anything has been said."""
    reply = post(service, line)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([{"text": SENTENCES[0]}], "stream_incomplete"),
        ([{"text": SENTENCES[0]}, b"{\n"], "malformed_json"),
        ([{"text": SENTENCES[0]}, {"txt": "a"}], "invalid_input"),
        ([{"text": "a\ud83d"}], "invalid_input"),
        ([{"text": "a" * 100_001}, {"end": True}], "limit_exceeded"),
        ([{"text": " "}, {"end": True}], "invalid_input"),
    ],
)
def test_what_goes_wrong_later_is_an_error_record(
    lines: list[Any], code: str, service: Served
) -> None:
    """It is the last record, no verdict, and repeats no text."""
    reply = post(service, {}, *lines)
    records = [json.loads(line) for line in reply.text.splitlines()]
    assert reply.status_code == 200
    assert records[0]["type"] == "start"
    assert records[-1]["type"] == "error"
    assert records[-1]["error"]["code"] == code
    assert "weeks" not in records[-1]["error"]["message"]
    assert "final" not in [record["type"] for record in records]


def test_the_start_names_what_runs_when(service: Served) -> None:
    """So that nobody believes that the whole answer's detectors held anything back."""
    start = json.loads(post(service, {}, {"text": "Hello."}, {"end": True}).text.splitlines()[0])
    assert start["in_flight"] == ["groundedness", "pii", "secrets", "encoding"]
    assert start["at_end"] == ["looping", "text_matching"]


def test_too_many_streams_are_refused_and_places_come_back(
    tiny: Path, tmp_path: Path, serve: Callable[..., Served]
) -> None:
    """429, as for checks; a connection that goes gives its place back."""
    served = serve(*options(tiny, tmp_path), GUARDRAIL_MAX_CONCURRENT_STREAMS="1")
    host, port = served.address.removeprefix("http://").split(":")
    with served.client():
        pass
    with socket.create_connection((host, int(port))) as held:
        head = (
            f"POST /v1/check/stream HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        held.sendall(head.encode() + b"3\r\n{}\n\r\n")
        assert b"200 OK" in held.recv(4096)
        refused = post(served, {}, {"text": "Hello."}, {"end": True})
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "overloaded")
        assert refused.headers["retry-after"] == "1"
    done = [{}, {"text": "Hello."}, {"end": True}]
    until(lambda: post(served, *done).status_code == 200, "the place is free")


@pytest.mark.anyio
async def test_a_unix_socket_and_a_key_work_as_for_checks(
    tiny: Path, tmp_path: Path, serve: Callable[..., Served]
) -> None:
    """The same connection options, the same refusal."""
    path = tmp_path / "guard.sock"
    start = [part for part in options(tiny, tmp_path) if part not in ("--port", "0")]
    serve(*start, "--uds", path, GUARDRAIL_API_KEYS="right")
    how: dict[str, Any] = {"uds": str(path), "timeout": PATIENCE_S}
    async with gc.AsyncGuardrailClient(api_key="right", **how) as asking:
        assert "".join([t async for t in asking.check_stream(tokens())]) != ""
    async with gc.AsyncGuardrailClient(api_key="wrong", **how) as asking:
        with pytest.raises(gc.AuthenticationFailed):
            await anext(asking.check_stream(tokens()))


@pytest.mark.anyio
async def test_in_process_streams_the_same(tiny: Path, tmp_path: Path, service: Served) -> None:
    """Without a port, from both clients."""
    settings = {
        "model_pack": str(tiny),
        "config": (configuration(tmp_path, "redacting"),),
        "workers": 1,
    }
    about: dict[str, Any] = {"contexts": CONTEXTS, "timeout": PATIENCE_S}
    async with client(service) as asking:
        remote = asking.check_stream(tokens(), **about)
        expected = "".join([text async for text in remote])
    async with gc.AsyncGuardrailClient.in_process(**settings) as asking:
        stream = asking.check_stream(tokens(), **about)
        assert "".join([text async for text in stream]) == expected
    with gc.GuardrailClient.in_process(**settings) as twin:
        assert "".join(twin.check_stream(iter(SENTENCES), **about)) == expected
