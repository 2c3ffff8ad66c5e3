"""Every bad input has the status, code and message that docs/api.md promises, and leaks nothing."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.errors import InputError
from guardrail_service.guard.guard import Guard
from guardrail_service.guard.overrides import Override
from guardrail_service.inference.queue.scheduler import Scheduler
from guardrail_service.policy.decide import Policy, Rule
from guardrail_service.server.app import create_app
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings

MARK = "zq9-MARKER <b>77"
"""Stands for what a user wrote; it must come back nowhere but in the caller's own `id`."""
GOOD: dict[str, Any] = {
    "question": f"How long may I stay? {MARK}",
    "answer": f"Guests may stay for two weeks. {MARK}",
    "contexts": [f"Guests may stay for two weeks at most. {MARK}"],
}
DOCS = Path(__file__).resolve().parents[2] / "docs" / "api.md"


@dataclass(frozen=True)
class Sent:
    """One HTTP request."""

    content: Any = b""
    method: str = "POST"
    path: str = "/v1/check"
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})

    def to(self, client: TestClient) -> Any:
        """Send it and return the response."""
        return client.request(self.method, self.path, content=self.content, headers=self.headers)


def body(**changes: Any) -> Sent:
    """Return a request for a good sample with some fields changed."""
    return Sent(json.dumps({**GOOD, **changes}).encode())


def without(name: str) -> Sent:
    """Return a request for a good sample that lacks a field."""
    return Sent(json.dumps({key: value for key, value in GOOD.items() if key != name}).encode())


def raw(text: bytes) -> Sent:
    """Return a request with exactly these bytes."""
    return Sent(text)


def override(detector: str, policy: str = "open", **changes: Any) -> Sent:
    """Return a request that changes one detector."""
    return body(policy=policy, detectors={detector: changes})


def condition(text: str) -> Sent:
    """Return a request with a condition of its own."""
    return override("text_matching", parameters={"condition": text})


def schema(value: Any) -> Sent:
    """Return a request with a JSON Schema of its own."""
    return override("json_schema", parameters={"schema": value})


def batch(items: Any) -> Sent:
    """Return a batch request."""
    return Sent(json.dumps({"items": items}).encode(), path="/v1/check/batch")


def endless(count: int) -> Iterator[bytes]:
    """Yield megabytes, so that the request has no Content-Length."""
    for _ in range(count):
        yield b'"' + MARK.encode() * 65_536


DEEP = b"[" * 100_000
SENTENCES = ["The pool opens at seven in the morning. " * 50] * 90
SENT: dict[str, Sent] = {
    "a body that is not JSON": raw(b'{"answer": zq9-MARKER}'),
    "text after the JSON": raw(b'{"answer": "fine"} ' + MARK.encode()),
    "bytes that are not UTF-8": raw(b'{"answer": "\xff' + MARK.encode() + b'"}'),
    "`NaN`, `Infinity`, or a number of 5,000 digits": raw(b'{"answer": "a", "deadline_ms": NaN}'),
    "a key twice in one object": raw(b'{"answer": "a", "answer": "b"}'),
    "another charset than UTF-8": Sent(
        json.dumps(GOOD).encode(), headers={"Content-Type": "application/json; charset=latin-1"}
    ),
    "100,000 nested lists": raw(b'{"answer": ' + DEEP + b"}"),
    "no body, or JSON that is no object": raw(b"[]"),
    "another Content-Type than JSON": Sent(
        json.dumps(GOOD).encode(), headers={"Content-Type": "text/plain"}
    ),
    "no `answer`": without("answer"),
    "an empty answer, or one of spaces and control characters": body(answer=" \u200b\n\0"),
    "a field of another type": body(answer=[MARK]),
    "a passage that is neither text nor object": body(contexts=["fine", 7]),
    "a passage without `text`": body(contexts=[{"id": MARK}]),
    "an unknown field with a plain name": body(anwser="x"),
    "an unknown field with any other name": body(**{MARK: 1}),
    "an unknown field of a passage": body(contexts=[{"text": "a", MARK: 1}]),
    "a lone surrogate in a text": body(answer="Guests \ud800 stay."),
    "a lone surrogate in parameters": condition('"\udfff"'),
    "a `deadline_ms` of 0 or less": body(deadline_ms=-1),
    "an unknown `mode`": body(mode=MARK),
    "an unknown name in `include`": body(include=["spans", MARK]),
    "an `id` of more than 256 characters": body(id=MARK * 20),
    "an unknown policy": body(policy=MARK),
    "a detector the policy does not run": override(MARK, policy="default"),
    "a threshold where the policy has no `allow_overrides`": override(
        "groundedness", policy="default", thresholds={"groundedness": 0.1}
    ),
    "a threshold out of range": override("groundedness", thresholds={"groundedness": 7}),
    "a threshold of an unknown metric": override("groundedness", thresholds={MARK: 0.5}),
    "an unknown parameter": override("looping", parameters={MARK: 1}),
    "a parameter of another type": override("json_schema", parameters={"schema": MARK}),
    "a condition that cannot be read": condition('"fine" AND zq9-MARKER'),
    "a regular expression that cannot be used": condition('regexp("(zq9-MARKER")'),
    "a schema that is none": schema({"type": "zq9-MARKER"}),
    "a schema that refers elsewhere": schema({"$ref": "https://zq9-MARKER.example/"}),
    "an answer of 1,000,000 characters": body(answer=MARK * 62_500),
    "a question of 20,001 characters": body(question="a" * 20_001),
    "passages of 1,000,001 characters in all": body(contexts=["a" * 500_000, "a" * 500_001]),
    "201 passages": body(contexts=[MARK] * 201),
    "4,501 sentences": body(contexts=SENTENCES, answer="Guests may stay."),
    "a batch without items": batch([]),
    "a batch of 101 items": batch([GOOD] * 101),
    "a body over the limit": raw(b'"' + MARK.encode() * 600_000),
    "a body over the limit, sent in chunks": Sent(endless(9)),
    "a Content-Length that is no number": Sent(
        b"{}", headers={"Content-Type": "application/json", "Content-Length": "9" * 5_000}
    ),
    "an unknown path": Sent(method="GET", path=f"/v1/{'zq9-MARKER'}"),
    "a known path with a slash behind it": Sent(json.dumps(GOOD).encode(), path="/v1/check/"),
    "another method": Sent(method="GET", path="/v1/check"),
}


def promised() -> dict[str, tuple[int, str, str]]:
    """Return status, code and message by what was sent, from the table in docs/api.md."""
    table = DOCS.read_text("utf-8").split("<!-- bad input -->")[1].split("<!-- end -->")[0]
    rows = [line.strip().strip("|").split(" | ") for line in table.splitlines() if "| 4" in line]
    return {
        sent.strip(): (int(status), code.strip("` "), message.strip()[1:-1])
        for sent, status, code, message in rows
    }


@pytest.fixture(scope="module")
def client(runtime: Runtime) -> Iterator[TestClient]:
    """One application for the whole table: a refusal must not spoil the next request."""
    app = create_app(runtime=runtime)
    with TestClient(app, raise_server_exceptions=False) as running:
        yield running


def test_every_bad_input_is_documented() -> None:
    """The table in docs/api.md and the requests of this test are the same."""
    assert set(promised()) == set(SENT)


@pytest.mark.parametrize("sent", SENT)
def test_a_bad_input_gets_the_documented_error(
    sent: str, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Status, code and message are the documented ones; no submitted text goes anywhere."""
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    reply = SENT[sent].to(client)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["message"]) == promised()[sent]
    assert_error(reply)
    assert_silent(reply, caplog, client)


def assert_error(reply: Any) -> None:
    """Check the shape that every error reply has."""
    assert set(reply.json()) == {"error"}
    error = reply.json()["error"]
    assert set(error) == {"code", "message", "request_id"}
    assert error["request_id"] == reply.headers["X-Request-Id"]
    assert float(reply.headers["X-Total-Time"]) >= 0


def assert_silent(reply: Any, caplog: pytest.LogCaptureFixture, client: TestClient) -> None:
    """Check that no submitted text is in the reply, in a log line or in a metric."""
    lines = [record.getMessage() for record in caplog.records if record.name != "httpx2"]
    access = [json.loads(record.getMessage()) for record in access_records(caplog)]
    assert len(access) == 1
    assert access[0]["status"] == reply.status_code
    assert access[0]["error"] == reply.json()["error"]["code"]
    caplog.clear()
    for place in (reply.text, str(reply.headers), *lines, client.get("/metrics").text):
        assert "zq9" not in place


def access_records(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Return the canonical log lines."""
    return [record for record in caplog.records if record.name == "guardrail.access"]


WRONG_TYPES: dict[str, list[Any]] = {
    "id": [7, True, [MARK], {"a": MARK}],
    "question": [7, True, [MARK], {"a": MARK}],
    "answer": [None, 7, 1.5, True, [MARK], {"a": MARK}],
    "contexts": [None, MARK, 7, {"text": MARK}, [None], [[MARK]], [{"text": [MARK]}]],
    "policy": [7, [MARK], {"a": MARK}],
    "detectors": [None, MARK, [MARK], {"looping": MARK}, {"looping": {"thresholds": MARK}}],
    "deadline_ms": ["250", 1.5, True, [MARK], {"a": MARK}, 10**30, 0],
    "mode": [None, 7, [MARK], {"a": MARK}],
    "include": [None, MARK, [None], [[MARK]], {"a": MARK}],
}


def test_every_field_has_wrong_types() -> None:
    """A new field cannot be forgotten below."""
    from guardrail_service.server.schemas import CheckRequest

    assert set(WRONG_TYPES) == set(CheckRequest.model_fields)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG_TYPES.items() for value in values]
)
def test_nothing_is_coerced(
    name: str, value: Any, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A value of another type is refused; the message names the field and not the value."""
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    reply = body(**{name: value}).to(client)
    assert reply.status_code == 422
    assert reply.json()["error"]["code"] == "invalid_input"
    assert reply.json()["error"]["message"].startswith(name)
    assert_error(reply)
    assert_silent(reply, caplog, client)


@pytest.mark.parametrize(
    "name",
    [
        MARK,
        "zq9",
        "zq9\n{}",
        "",
        " ",
        "<script>zq9</script>",
        "<a passage>",
        "zq9" * 200,
        "\u202ezq9",
        "zq9\0",
        "constructor.zq9",
        "__proto__zq9",
    ],
)
@pytest.mark.parametrize("where", ["request", "passage", "override", "parameters", "thresholds"])
def test_a_nasty_field_name_is_never_repeated(
    name: str, where: str, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Names are submitted text too."""
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    request = {
        "request": body(**{name: 1}),
        "passage": body(contexts=[{"text": "a", name: 1}]),
        "override": override("looping", **{name: 1}),
        "parameters": override("looping", parameters={name: 1}),
        "thresholds": override("looping", thresholds={name: 1}),
    }[where]
    reply = request.to(client)
    assert reply.status_code == 422
    assert_error(reply)
    assert_silent(reply, caplog, client)
    assert "\n" not in reply.json()["error"]["message"]


NOTHING = Scheduler({}, 0, 1)
SCALARS: list[Any] = ["zq9<b>", 7, None, True]
VALUES: list[Any] = [
    *SCALARS,
    *([value] for value in SCALARS),
    *({"zq9<b>": value} for value in ["block", *SCALARS]),
    [{"zq9": "zq9"}],
    ["(zq9<b>"],
    [{"name": "zq9<b>", "pattern": "(zq9"}],
]


@pytest.mark.parametrize("value", VALUES, ids=json.dumps)
def test_no_parameter_of_any_detector_is_repeated(value: Any) -> None:
    """Whatever a detector's validators say about a file, a request gets no echo."""
    messages: list[str] = []
    for detector in REGISTRY:
        rule = Rule(detector.spec, detector.parameters(), {})
        policy = Policy("open", "1", "0" * 64, {detector.spec.id: rule}, allow_overrides=True)
        guard = Guard({"open": policy}, REGISTRY, NOTHING, {}, {}, 1)
        for name, field_ in detector.parameters.model_fields.items():
            changes = {detector.spec.id: Override({}, {field_.alias or name: value})}
            try:
                guard.policy_for("open", changes)
            except InputError as error:
                messages.append(str(error))
    assert messages
    assert not [message for message in messages if "zq9" in message]


def test_names_in_a_schema_are_not_repeated(client: TestClient) -> None:
    """A property of a JSON Schema is submitted text, too."""
    reply = schema({"properties": {MARK: {"type": "nonsense"}}}).to(client)
    assert reply.status_code == 422
    assert "zq9" not in reply.text


def test_no_passages_are_unverified_not_refused(client: TestClient) -> None:
    """The policy says what an answer means that nothing can be compared with."""
    for sent in (without("contexts"), body(contexts=[]), body(contexts=["", " \n"])):
        reply = sent.to(client)
        assert reply.status_code == 200
        grounded = reply.json()["detectors"]["groundedness"]
        assert (grounded["state"], grounded["reason"]) == ("unverified", "missing_input")
        assert grounded["metrics"] == {}
        assert reply.json()["decision"] == "flag"


def test_nul_bytes_are_scored_like_other_characters(client: TestClient) -> None:
    """They count as characters, and spans behind them point at the right place."""
    answer = "Guests may stay for two weeks.\0 Dogs \0 are allowed at night."
    reply = body(answer=answer, contexts=["Guests may stay for two weeks.\0"]).to(client)
    assert reply.status_code == 200
    grounded = reply.json()["detectors"]["groundedness"]
    assert grounded["state"] == "evaluated"
    assert grounded["coverage"]["answer_chars"][1] == len(answer)
    for span in grounded["spans"]:
        assert 0 <= span["start"] < span["end"] <= len(answer)


@pytest.mark.parametrize(
    "first",
    [
        "الضيوف يمكنهم البقاء.",
        "האורחים יכולים להישאר.",
        "客人可以住两个星期。",
        "Гости могут остаться.",
        "👩‍👩‍👧 🏳️‍🌈 é ﷽.",
        "\u202eGuests may stay for two weeks at most in the morning\u202c.",
    ],
)
def test_offsets_are_code_points_in_every_script(first: str, client: TestClient) -> None:
    """The unsupported sentence is found behind text of any width and direction."""
    second = "Dogs are not allowed at the pool until ten in the morning."
    long = " ".join([first] * (60 // len(first) + 1))  # short pieces join their neighbour
    answer = f"{long} {second}"
    passages = [f"Seven euros per night. {first}"]
    reply = body(
        question=None,
        answer=answer,
        contexts=passages,
        policy="open",
        detectors={"groundedness": {"thresholds": {"groundedness": 1.0}}},
    ).to(client)
    assert reply.status_code == 200
    grounded = reply.json()["detectors"]["groundedness"]
    assert grounded["state"] == "evaluated"
    assert answer[slice(*bounds(grounded["spans"][-1]))] == second
    for span in grounded["spans"]:
        for evidence in span["evidence"]:
            assert passages[evidence["context"]][slice(*bounds(evidence))].strip()


def bounds(span: dict[str, Any]) -> tuple[int, int]:
    """Return where a span begins and ends."""
    return span["start"], span["end"]


def test_a_batch_answers_good_and_bad_items_in_order(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """An item that cannot be judged takes nobody else's place and quotes nothing."""
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    items = [
        GOOD,
        {**GOOD, "answer": ""},
        MARK,
        None,
        {**GOOD, "policy": MARK},
        {**GOOD, MARK: 1},
        {**GOOD, "answer": "\ud800"},
        {**GOOD, "answer": "a" * 100_001},
        {**GOOD, "id": "mine"},
    ]
    reply = batch(items).to(client)
    assert reply.status_code == 200
    results = reply.json()["results"]
    codes = [result["error"]["code"] if "error" in result else "judged" for result in results]
    invalid = "invalid_input"
    refused = [invalid, invalid, invalid, "unknown_policy", invalid, invalid, "limit_exceeded"]
    assert codes == ["judged", *refused, "judged"]
    assert results[-1]["id"] == "mine"
    assert all(
        result["error"]["request_id"] == reply.headers["X-Request-Id"] for result in results[1:-1]
    )
    (access,) = (json.loads(record.getMessage()) for record in access_records(caplog))
    assert (access["items"], access["failed_items"]) == (9, 7)
    assert "zq9" not in reply.text
    assert "zq9" not in "".join(record.getMessage() for record in caplog.records)
    assert "zq9" not in client.get("/metrics").text


def test_a_good_answer_leaves_no_text_in_logs_or_metrics(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """What is judged is not kept; only the caller's own id comes back, to the caller."""
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    reply = body(id="zq9-id", policy="open").to(client)
    assert reply.json()["id"] == "zq9-id"
    assert "zq9" not in "".join(
        record.getMessage() for record in caplog.records if record.name != "httpx2"
    )
    assert "zq9" not in client.get("/metrics").text


def test_a_wrong_or_missing_key_gets_one_constant_reply(
    tiny: Path, configs: tuple[Path, Path]
) -> None:
    """Nothing tells a wrong key from a missing one; probes and metrics stay open."""
    settings = Settings(
        model_pack=str(tiny), config=configs, workers=1, api_keys=("right", "schlüssel")
    )
    with TestClient(create_app(runtime=Runtime(settings))) as locked:
        replies = [
            locked.post("/v1/check", json=GOOD, headers=headers)
            for headers in (
                {},
                {"Authorization": "Bearer"},
                {"Authorization": "Bearer zq9"},
                {"Authorization": "right"},
                {"Authorization": "Basic right"},
                {"Authorization": "Bearer right "[:-3]},
            )
        ]
        assert {reply.status_code for reply in replies} == {401}
        assert {reply.headers["WWW-Authenticate"] for reply in replies} == {"Bearer"}
        errors = [reply.json()["error"] for reply in replies]
        assert {error["code"] for error in errors} == {"unauthorized"}
        assert len({error["message"] for error in errors}) == 1
        for reply in replies:
            assert_error(reply)
        for open_path in ("/healthz", "/readyz", "/metrics"):
            assert locked.get(open_path).status_code == 200
        for locked_path in ("/v1/info", "/v1/policies", "/v1/detectors", "/docs", "/openapi.json"):
            assert locked.get(locked_path).status_code == 401
        assert locked.get(f"/v1/{MARK}").status_code == 401
        counted = locked.get("/metrics").text
        refused = re.findall(r'guardrail_requests_total{[^}]*status="401"[^}]*}', counted)
        assert MARK not in counted
        routes = {found[1] for one in refused if (found := re.search(r'route="([^"]*)"', one))}
        assert routes >= {"/v1/check", "/v1/info", "/v1/detectors", "unmatched"}
        for key in (b"right", "schlüssel".encode()):
            headers = {"Authorization": b"Bearer " + key}
            assert locked.post("/v1/check", json=GOOD, headers=headers).status_code == 200


def test_a_callers_request_id_is_kept_if_it_is_plain(client: TestClient) -> None:
    """Anything else is replaced, so that an id cannot carry text into the log."""
    kept = client.post("/v1/check", json=GOOD, headers={"X-Request-Id": "mine-7.a_B"})
    assert kept.headers["X-Request-Id"] == kept.json()["request_id"] == "mine-7.a_B"
    for name in (MARK, "zq9 9", "a" * 65, "zq9\u00e9".encode()):
        reply = client.post("/v1/check", json=GOOD, headers={"X-Request-Id": name})
        assert "zq9" not in reply.headers["X-Request-Id"]
        assert len(reply.headers["X-Request-Id"]) == 32
