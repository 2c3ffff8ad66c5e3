"""JSON replies on a guarded route: checked, known to hold no answer, or not sent."""

from __future__ import annotations

import copy
import gzip
import json
import logging
from typing import Any
from urllib.parse import quote, quote_plus, unquote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrail_client.middleware import FALLBACK, MARK, OUTAGE, AnswerOutcome, Route
from guardrail_client.middleware.documents import find_texts
from guardrail_client.middleware.shapes import SHAPES
from guardrail_client.middleware.withheld import Withheld
from tests.unit.client.middleware.conftest import (
    BAD,
    GOOD,
    LEAK,
    MARKED,
    REDACTED,
    VALUE,
    Host,
    Reply,
)

CALL = json.dumps({"text": "TEXT"})
REPLIES: dict[str, tuple[Any, list[str]]] = {
    "openai": (
        {
            "id": "c-1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [
                {"index": 0, "finish_reason": "stop", "logprobs": None,
                 "message": {"role": "assistant", "content": "TEXT", "refusal": None}},
            ],
            "usage": {"total_tokens": 3},
        },
        [
            "/choices/0/message/content", "/choices/0/message/refusal",
            "/choices/0/message/reasoning_content", "/choices/0/message/reasoning",
            "/choices/0/message/content:parts", "/choices/1", "/choices/0/text",
            "/choices/0/message/tool_calls", "/choices/0/message/a_new_field",
        ],
    ),
    "openai-responses": (
        {
            "id": "r-1", "object": "response", "status": "completed", "incomplete_details": None,
            "output": [{"type": "message", "id": "m-1", "role": "assistant",
                        "content": [{"type": "output_text", "text": "TEXT", "annotations": []}]}],
        },
        ["/output/0/content/0/text", "/output_text", "/output/0/arguments",
         "/output/0/content/0/refusal"],
    ),
    "anthropic": (
        {
            "id": "m-1", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": "TEXT"}], "stop_reason": "end_turn",
            "stop_sequence": None, "usage": {"output_tokens": 1},
        },
        ["/content/0/text", "/content/0/thinking", "/content/0/input"],
    ),
    "google": (
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "TEXT"}]},
                         "finishReason": "STOP", "index": 0}], "modelVersion": "m"},
        ["/candidates/0/content/parts/0/text", "/candidates/1"],
    ),
    "bedrock": (
        {"output": {"message": {"role": "assistant", "content": [{"text": "TEXT"}]}},
         "stopReason": "end_turn", "metrics": {"latencyMs": 1}},
        ["/output/message/content/0/text"],
    ),
    "cohere": (
        {"id": "1", "finish_reason": "COMPLETE",
         "message": {"role": "assistant", "content": [{"type": "text", "text": "TEXT"}]}},
        ["/message/content/0/text", "/message/tool_plan"],
    ),
    "ollama-chat": (
        {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
         "message": {"role": "assistant", "content": "TEXT"}},
        ["/message/content", "/message/thinking"],
    ),
    "ollama-generate": (
        {"model": "m", "created_at": "2026-01-01T00:00:00Z", "response": "TEXT", "done": True,
         "done_reason": "stop", "context": [1, 2]},
        ["/response", "/thinking"],
    ),
    "langserve": (
        {"output": {"content": "TEXT", "type": "ai", "id": "run-1", "additional_kwargs": {}},
         "metadata": {"run_id": "x", "feedback_tokens": []}},
        ["/output/content"],
    ),
    "llamaindex": (
        {"response": "TEXT", "source_nodes": [], "metadata": {}},
        ["/response"],
    ),
}  # fmt: skip
"""One reply of each shape after its published description, and where else it may hold text."""


def with_text(name: str, place: str, text: str) -> Any:
    """Return a reply of a shape with a text at a place, and an ordinary one elsewhere."""
    document = json.loads(json.dumps(REPLIES[name][0]).replace("TEXT", GOOD))
    *way, key = place.partition(":")[0].split("/")[1:]
    holder = document
    for step in way:
        holder = holder[int(step)] if isinstance(holder, list) else holder[step]
    if isinstance(holder, list):  # another choice
        holder.append(json.loads(json.dumps(holder[0]).replace(GOOD, text)))
    elif place.endswith(":parts"):
        holder[key] = [{"type": "text", "text": text[:20]}, {"type": "text", "text": text[20:]}]
    elif key == "tool_calls":
        call = {"name": "f", "arguments": json.dumps({"say": text})}
        holder[key] = [{"id": "t-1", "type": "function", "function": call}]
    elif key == "input":
        holder[key] = {"say": text}
    else:
        holder[key] = text
    return document


PLACES = [(name, place) for name, (_, places) in REPLIES.items() for place in places]


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_bad_text_leaves_no_shape_wherever_it_stands(name: str, place: str, host: Host) -> None:
    """Whether the route names the shape or not; the reply is still of its shape."""
    for route in (Route("/ask", answer=name), Route("/ask")):
        reply = host.get(Reply.of(with_text(name, place, BAD)), route)
        assert "lobster" not in reply.text
        assert reply.headers["x-guardrail-action"] == "block"
        assert reply.headers["x-guardrail-shown"] == "replaced"
        assert reply.status_code == 200
        assert find_texts(reply.json(), SHAPES[name], "check")


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_good_reply_leaves_byte_for_byte(name: str, place: str, host: Host) -> None:
    """The guard was asked about every text."""
    sent = Reply.of(with_text(name, place, GOOD))
    reply = host.get(sent, Route("/ask", answer=name))
    assert reply.content == sent.body
    assert (reply.status_code, reply.headers["x-guardrail-decision"]) == (200, "pass")
    assert all(GOOD in asked["answer"] for asked in host.guard.asked)


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_redacted_value_leaves_no_shape(name: str, place: str, host: Host) -> None:
    """Parts of one text are read together."""
    reply = host.get(Reply.of(with_text(name, place, LEAK)), Route("/ask", answer=name))
    assert VALUE not in reply.text
    assert VALUE.split("@")[0] not in reply.text
    assert "[EMAIL_1]" in reply.text


STOPPED = {
    "openai": ("/choices/0/message/content", "content_filter"),
    "anthropic": ("/content/0/text", "refusal"),
    "google": ("/candidates/0/content/parts/0/text", "SAFETY"),
    "bedrock": ("/output/message/content/0/text", "guardrail_intervened"),
    "ollama-chat": ("/message/content", "content_filter"),
    "openai-responses": ("/output/0/content/0/text", "incomplete"),
}


@pytest.mark.parametrize(("name", "place", "said"), [(n, *v) for n, v in STOPPED.items()])
def test_a_stopped_reply_says_in_its_own_way_that_a_filter_ended_it(
    name: str, place: str, said: str, host: Host
) -> None:
    """Only the choice that was stopped does."""
    reply = host.get(Reply.of(with_text(name, place, BAD)), Route("/ask", answer=name))
    assert json.dumps(said) in reply.text
    assert FALLBACK in reply.text
    if name == "openai":
        two = host.get(Reply.of(with_text(name, "/choices/1", BAD)), Route("/ask"))
        reasons = [choice["finish_reason"] for choice in two.json()["choices"]]
        assert reasons == ["stop", "content_filter"]
        assert two.json()["choices"][0]["message"]["content"] == GOOD


RECORDED: dict[str, Any] = {
    "llama.cpp's responses have no field for a reason": {
        "completed_at": 1, "created_at": 1, "id": "resp_1", "model": "m", "object": "response",
        "output": [{"content": [{"type": "output_text", "annotations": [], "logprobs": [],
                                 "text": BAD}],
                    "id": "msg_1", "role": "assistant", "status": "completed", "type": "message"}],
        "status": "completed", "usage": {"input_tokens": 33},
    },
    "LangServe reads other arguments as an object": {
        "output": {"content": LEAK, "additional_kwargs": {}, "response_metadata": {}, "type": "ai",
                   "id": "run-1", "tool_calls": [], "invalid_tool_calls": []},
        "metadata": {"run_id": "7852520c-12ab", "feedback_tokens": []},
    },
    "a choice without a reason": {"choices": [{"index": 0, "message": {"content": BAD}}]},
}  # fmt: skip
"""What real servers sent; see tests/vendors."""


@pytest.mark.parametrize("document", RECORDED.values(), ids=RECORDED)
def test_changed_replies_are_what_clients_can_read(document: Any, host: Host) -> None:
    """Lists and objects that said it again are empty ones: clients go through them."""
    reply = host.get(Reply.of(document))
    assert VALUE not in reply.text
    assert "null" not in reply.text
    if BAD in json.dumps(document):
        assert FALLBACK in reply.text
        assert '"content_filter"' in reply.text


NODE = {
    "node": {"id_": "c6a7429c", "embedding": None, "metadata": {}, "relationships": {},
             "metadata_template": "{key}: {value}", "metadata_separator": "\n", "text": GOOD,
             "mimetype": "text/plain", "text_template": "{metadata_str}\n\n{content}",
             "class_name": "TextNode"},
    "score": 0.9, "class_name": "NodeWithScore",
}  # fmt: skip


def test_templates_of_nodes_are_not_judged(host: Host) -> None:
    """LlamaIndex writes them into every node of a response."""
    sent = Reply.of({"response": GOOD, "source_nodes": [NODE], "metadata": {}})
    assert host.get(sent, Route.llamaindex("/ask")).content == sent.body
    assert {asked["answer"] for asked in host.guard.asked} == {GOOD}


@pytest.mark.parametrize(
    ("document", "answered"),
    [({"models": [{"name": "models/m", "description": BAD}]}, True), ({"totalTokens": 7}, True),
     ({"object": "list", "data": [{"id": "m", "object": "model"}]}, True), ({"text": BAD}, False)],
)  # fmt: skip
def test_models_are_listed_beside_google(document: Any, answered: bool, host: Host) -> None:
    """The list is below the path that version after version of the client asks."""
    listed = host.get(Reply.of(document), Route.google(), path="/v1/models")
    assert (listed.status_code == 200) == answered


REFUSED = {
    "invalid UTF-8": json.dumps({"answer": BAD}).encode()[:-1] + b', "x": "\xff"}',
    "too deep": b'{"answer": "%s", "x": %s}' % (BAD.encode(), b"[" * 9000 + b"]" * 9000),
    "rather deep": b'{"answer": "%s", "x": %s}' % (BAD.encode(), b"[" * 600 + b"]" * 600),
    "a huge number": b'{"answer": "%s", "x": %s}' % (BAD.encode(), b"9" * 5000),
    "no number": b'{"answer": "%s", "x": NaN}' % BAD.encode(),
    "a prefix": b")]}',\n" + json.dumps({"answer": BAD}).encode(),
    "trailing bytes": json.dumps({"answer": BAD}).encode() + b"x",
    "a key twice": json.dumps({"answer": GOOD}).encode()[:-1] + b', "answer": "%s"}' % BAD.encode(),
    "another shape": json.dumps({"reply": BAD}).encode(),
    "a list": json.dumps([BAD]).encode(),
    "a string": json.dumps(BAD).encode(),
    "a number for an answer": b'{"answer": 7}',
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_a_document_that_cannot_be_checked_is_not_sent(
    body: bytes, host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    """It is a 502 and a line in the log; failing open sends it with a header and the line."""
    with caplog.at_level(logging.WARNING, logger="guardrail_client.middleware"):
        closed = host.get(Reply.of(body))
    assert closed.status_code == 502
    assert closed.json()["error"]["message"] == OUTAGE
    assert "lobster" not in closed.text
    assert "not checked" in caplog.text
    assert "lobster" not in caplog.text
    opened = host.get(Reply.of(body), Route("/ask", on_error="open"))
    assert (opened.status_code, opened.content) == (200, body)
    assert opened.headers["x-guardrail-decision"] == "unchecked"


@pytest.mark.parametrize(
    "kind",
    ["text/html", "application/cbor", "", "application/pdf", "application/octet-stream",
     "application/json; charset=utf-16", "multipart/mixed"],
)  # fmt: skip
def test_a_type_that_is_not_read_cannot_be_checked(kind: str, host: Host) -> None:
    """A browser may show it all the same."""
    reply = host.get(Reply.of({"answer": BAD}, kind))
    assert reply.status_code == 502
    assert "lobster" not in reply.text
    opened = host.get(Reply.of({"answer": GOOD}, kind), Route("/ask", on_error="open"))
    assert opened.json() == {"answer": GOOD}


@pytest.mark.parametrize("kind", ["text/json", "application/vnd.api+json"])
def test_json_has_several_names(kind: str, host: Host) -> None:
    """All of them are read."""
    assert "lobster" not in host.get(Reply.of({"answer": BAD}, kind)).text


def test_types_may_be_declared(host: Host) -> None:
    """To be read, or to pass: with a header and a line in the log."""
    route = Route("/ask", types={"text/html": "unchecked", "application/x-own": "json"})
    page = host.get(Reply.of(b"<p>lobster</p>", "text/html"), route)
    assert (page.text, page.headers["x-guardrail-decision"]) == ("<p>lobster</p>", "unchecked")
    assert "lobster" not in host.get(Reply.of({"answer": BAD}, "application/x-own"), route).text


def test_two_content_types_cannot_be_checked(host: Host) -> None:
    """Readers differ about which of them counts."""
    body = json.dumps({"answer": BAD}).encode()
    kinds = [("Content-Type", "application/json"), ("Content-Type", "text/html")]
    assert host.get(Reply(body, kinds)).status_code == 502


def test_compression_of_two_members_cannot_be_checked(host: Host) -> None:
    """Python stops behind the first, browsers go on."""
    body = gzip.compress(b'{"answer": "fine', mtime=0) + gzip.compress(BAD.encode() + b'"}')
    headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")]
    reply = host.get(Reply(body, headers))
    assert reply.status_code == 502


@pytest.mark.parametrize(
    "document",
    [{"answer": None}, {"answer": ""}, {"answer": " \n"}, {"answer": []}, b"",
     {"choices": []}, {"job": "7"}],
)  # fmt: skip
def test_a_document_that_is_known_to_hold_no_answer_passes(document: Any, host: Host) -> None:
    """It says so, and nothing is asked."""
    reply = host.get(Reply.of(document), Route("/ask", no_answer=["/job"]))
    assert reply.status_code == 200
    assert reply.content == Reply.of(document).body
    assert reply.headers["x-guardrail-decision"] == "no_answer"
    assert host.guard.asked == []


@pytest.mark.parametrize(
    ("answer", "document"),
    [
        (None, {"choices": [{"index": 0, "message": {"content": "TEXT"}}], "job": 7}),
        ("/answer", {"answer": "TEXT", "job": "7"}),
        ("/answer", {"answer": [{"type": "text", "text": GOOD, "id": "TEXT"}]}),
        ("/answer", {"answer": [{"role": "TEXT", "text": GOOD}]}),
    ],
)  # fmt: skip
def test_an_answer_is_checked_whatever_stands_beside_it(
    answer: Any, document: Any, host: Host
) -> None:
    """A mark of replies without an answer, or a key of names."""
    body = json.dumps(document).replace("TEXT", BAD).encode()
    reply = host.get(Reply.of(body), Route("/ask", answer=answer, no_answer=["/job"]))
    assert "lobster" not in reply.text
    assert FALLBACK in reply.text


OWN: list[tuple[Any, Any]] = [
    ("/data/reply", {"data": {"reply": "TEXT"}}),
    (["/title", "/body"], {"title": "TEXT", "body": GOOD}),
    ("/answers/*/text", {"answers": [{"text": GOOD}, {"text": "TEXT"}]}),
    ("/parts/[]/text", {"parts": [{"text": "TEXT"[:2]}, {"text": "TEXT"[2:]}]}),
    ("/answer", {"answer": [{"type": "text", "text": "TEXT"}, "and more"]}),
    ("data.reply", {"data": {"reply": "TEXT"}}),
    (lambda exchange: [a["text"] for a in exchange.response["all"]], {"all": [{"text": "TEXT"}]}),
]


@pytest.mark.parametrize(("answer", "document"), OWN)
def test_pointers_and_functions_of_ones_own(answer: Any, document: Any, host: Host) -> None:
    """Several, with wildcards, or returning several texts."""
    for text, gone in ((BAD, "lobster"), (LEAK, VALUE)):
        body = json.dumps(document).replace("TE", text[:9]).replace("XT", text[9:]).encode()
        reply = host.get(Reply.of(body), Route("/ask", answer=answer))
        assert reply.status_code == 200
        assert gone not in reply.text
    good = json.dumps(document).replace("TE", GOOD[:9]).replace("XT", GOOD[9:]).encode()
    assert host.get(Reply.of(good), Route("/ask", answer=answer)).content == good


def test_an_answer_made_up_of_parts_is_judged_and_cannot_be_put_back(host: Host) -> None:
    """A good one passes."""
    route = Route("/ask", answer=lambda e: " ".join(e.response["lines"]))
    bad = host.get(Reply.of({"lines": BAD.split(" ")}), route)
    assert (bad.status_code, bad.json()["error"]["reason"]) == (502, "answer_not_in_document")
    assert host.get(Reply.of({"lines": GOOD.split(" ")}), route).status_code == 200


@pytest.mark.parametrize(("text", "gone"), [(BAD, "lobster"), (LEAK, VALUE)])
@pytest.mark.parametrize(
    "again",
    [
        lambda text: text,
        lambda text: {"nested": [f"It said: {text}"]},
        lambda text: json.dumps({"say": text}),
        lambda text: json.dumps(json.dumps({"say": text.replace("e", "\\u0065")})),
        lambda text: text.replace("a", "&#97;"),
        lambda text: text.upper(),
        lambda text: f"https://h.example/?q={quote(text)}",
        lambda text: f"https://h.example/?q={quote_plus(text)}",
    ],
    ids=[
        "as it is",
        "in a sentence",
        "JSON in a string",
        "escaped",
        "HTML",
        "capitals",
        "in an address",
        "in a form",
    ],
)
def test_other_fields_do_not_say_it_again(text: str, gone: str, again: Any, host: Host) -> None:
    """Passages, traces, echoes of the same text: escaped or not."""
    if again(text).__class__ is str and again(text).isupper() and text == LEAK:
        return  # a value in capitals is another value to the service, too
    document = {"answer": text, "contexts": [{"text": again(text)}], "trace": again(text), "n": 1}
    reply = host.get(Reply.of(document))
    shown = reply.text
    for _ in range(4):
        shown = shown.replace("\\\\", "\\").replace("\\u0065", "e").replace("&#97;", "a")
    assert gone not in unquote(shown).lower()
    assert reply.json()["n"] == 1


def test_a_key_that_says_it_again_makes_it_uncheckable(host: Host) -> None:
    """There is no other key to put there."""
    assert host.get(Reply.of({"answer": BAD, BAD: 1})).status_code == 502


@pytest.mark.parametrize("rest", ["checked", "unchecked"])
def test_a_key_that_is_no_name_is_read_where_the_rest_is(rest: Any, host: Host) -> None:
    """As a text of its own, in whose place nothing else can stand."""
    for key, status in (("How to get there", 200), (BAD, 502 if rest == "checked" else 200)):
        reply = host.get(Reply.of({"answer": GOOD, "note": {key: 1}}), Route("/ask", rest=rest))
        assert reply.status_code == status
    listed = host.get(Reply.of({"answer": {BAD: "yes"}}), Route("/ask", answer="/answer"))
    assert listed.status_code == 502


def test_ordinary_passages_stay_beside_a_redacted_answer(host: Host) -> None:
    """Only the value goes."""
    passages = [GOOD, f"Anna Berg ({VALUE}) runs the hotel."]
    reply = host.get(Reply.of({"answer": LEAK, "contexts": passages})).json()
    assert reply["answer"] == REDACTED
    assert reply["contexts"] == [GOOD, "Anna Berg ([REDACTED]) runs the hotel."]


def test_a_marked_answer_stays_as_it_is_unless_a_sentence_is_asked_for(host: Host) -> None:
    """The header says it in both cases."""
    reply = host.get(Reply.of({"answer": MARKED}))
    assert reply.json()["answer"] == MARKED
    assert reply.headers["x-guardrail-action"] == "mark"
    marked = host.get(Reply.of({"answer": MARKED}), Route("/ask", mark="text"))
    assert marked.json()["answer"] == f"{MARKED}\n\n{MARK}"


def test_the_fallback_may_differ_by_reason(host: Host) -> None:
    """An outage is not called a block."""
    assert host.get(Reply.of({"answer": BAD})).json()["answer"] == FALLBACK
    by_reason = Route("/ask", fallback={"blocked": "No.", "outage": "Later."})
    assert host.get(Reply.of({"answer": BAD}), by_reason).json()["answer"] == "No."
    host.guard.failing = 503
    down = host.get(Reply.of({"answer": BAD}), by_reason)
    assert down.json()["answer"] == "Later."
    assert down.headers["x-guardrail-decision"] == "unchecked"


@pytest.mark.parametrize("status", [401, 403, 422, 429, 500, 503])
def test_a_guard_that_refuses(status: int, host: Host) -> None:
    """Failing open is for a guard that cannot be asked, not for a wrong key or request."""
    host.guard.failing = status
    for document in ({"answer": BAD}, {"choices": [{"text": BAD}, {"text": BAD}]}):
        closed = host.get(Reply.of(document))
        assert "lobster" not in closed.text
        opened = host.get(Reply.of(document), Route("/ask", on_error="open"))
        assert ("lobster" in opened.text) == (status in (429, 500, 503))
        assert opened.headers["x-guardrail-decision"] == "unchecked"


@pytest.mark.parametrize("on_error", ["closed", "open"])
def test_passages_that_are_none_do_not_fail_open(on_error: Any, host: Host) -> None:
    """They are a mistake of the application."""
    reply = host.get(Reply.of({"answer": BAD, "contexts": 7}), Route("/ask", on_error=on_error))
    assert reply.json()["answer"] == OUTAGE


ERRORS: list[tuple[Any, str, int, bool]] = [
    ({"detail": "Not Found"}, "application/json", 404, True),
    ({"error": {"message": "m", "type": "t"}}, "application/json", 500, True),
    (b"Internal Server Error", "text/plain", 500, True),
    (b"", "", 503, True),
    ({"answer": BAD}, "application/json", 500, False),
    (BAD.encode(), "text/plain", 404, False),
    (BAD.encode(), "text/html", 404, False),
]


@pytest.mark.parametrize(("document", "kind", "status", "known"), ERRORS)
def test_errors_keep_their_status(
    document: Any, kind: str, status: int, known: bool, host: Host
) -> None:
    """Their bodies pass if they are what frameworks write."""
    reply = host.get(Reply.of(document, kind, status))
    assert reply.status_code == status
    if known:
        assert reply.content == Reply.of(document).body
    else:
        assert "lobster" not in reply.text
        assert reply.json()["error"]["reason"] == "unread_error"


def test_a_redirect_shows_nothing(host: Host) -> None:
    """Its body is emptied."""
    sent = Reply.of(BAD.encode(), "text/html", 307)
    sent.headers.append(("Location", "/x"))
    reply = host.get(sent)
    assert (reply.status_code, reply.content, reply.headers["location"]) == (307, b"", "/x")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "OPTIONS", "DELETE"])
def test_every_method_is_guarded(method: str, host: Host) -> None:
    """A reader may use any of them."""
    assert "lobster" not in host.get(Reply.of({"answer": BAD}), method=method).text


@pytest.mark.parametrize(
    ("own", "path", "guarded"),
    [
        ("/ask", "/ask", True), ("/ask", "/ask/", True), ("/ask/", "/ask", True),
        ("/ask", "//ask", True), ("/ask", "/ask//", True), ("/ask", "/x/../ask", True),
        ("/ask", "/ask/more", False), ("/ask", "/asks", False), ("/ask", "/ASK", False),
        ("/ask/*", "/ask", True), ("/ask/*", "/ask/", True), ("/ask/*", "/ask/a/b", True),
        ("/ask/*", "/asks", False), ("/ask*", "/asks", True), ("/*", "/", True),
        ("/*", "/x/y", True), ("/", "/", True), ("/", "/x", False),
        ("/*/models/*", "/v1/models/m:generateContent", True),
        ("/*/models/*", "/v1beta/models/m:streamGenerateContent", True),
        ("/*/models/*", "/models/m", False), ("/*/models/*", "/a/b/models/m", False),
    ],
)  # fmt: skip
def test_slashes_do_not_lead_around_the_guard(own: str, path: str, guarded: bool) -> None:
    """Sub-paths are guarded where the route says so."""
    assert Route(own).matches(path) == guarded


def test_the_question_is_found_where_the_shape_has_it(host: Host) -> None:
    """No finder is needed for a well-known service."""
    request = {
        "messages": [{"role": "user", "content": "old"}, {"role": "user", "content": "How?"}]
    }
    host.get(
        Reply.of(with_text("openai", PLACES[0][1], GOOD)), Route.openai("/ask"), request=request
    )
    assert {asked["question"] for asked in host.guard.asked} == {"How?"}


def test_header_values_of_the_service_cannot_begin_another_header(host: Host) -> None:
    """Whatever a policy is called."""
    from guardrail_client import CheckResult
    from tests.unit.client.conftest import make_verdict

    verdict = {**make_verdict(), "request_id": "a\r\nSet-Cookie: x"}
    verdict["policy"] = {"name": "ü\r\nX: y", "version": "1", "sha256": ""}
    outcome = AnswerOutcome("/ask", "as_is", CheckResult.from_json(verdict))
    for _, value in outcome.headers():
        assert value.isascii()
        assert value.isprintable()


def test_one_word_set_ups_name_path_and_shape() -> None:
    """Every setting can still be given."""
    assert Route.openai().path == "/v1/chat/completions"
    assert Route.anthropic(on_error="open").on_error == "open"
    made = [
        Route.responses(),
        Route.google(),
        Route.bedrock(),
        Route.cohere(),
        Route.ollama(),
        Route.ollama("/api/generate"),
        Route.langserve("/c"),
        Route.llamaindex("/q"),
    ]
    assert {route.answer for route in made} <= SHAPES.keys()


LETTERS = st.text(st.characters(categories=("L", "N", "P", "Zs"), max_codepoint=0x24F), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | LETTERS | st.sampled_from([BAD, LEAK, VALUE]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LETTERS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(more=st.dictionaries(LETTERS, JSON, max_size=3), text=st.sampled_from([BAD, LEAK]))
def test_nothing_stopped_or_redacted_is_in_what_is_sent(more: Any, text: str) -> None:
    """Whatever else the document holds."""
    guarded = Host(asynchronous=False)
    document = {**copy.deepcopy(more), "answer": text}
    for ascii_only in (True, False):
        body = json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "replace")
        reply: httpx.Response = guarded.get(Reply.of(body))
        sent = json.dumps(reply.json(), ensure_ascii=False)
        assert ("lobster" if text == BAD else VALUE) not in sent


@given(text=st.text(min_size=1), before=st.text(), after=st.text())
def test_a_withheld_text_is_found_in_any_other(text: str, before: str, after: str) -> None:
    """As far as it has letters or digits to find."""
    withheld = Withheld([text])
    bare = "".join(filter(str.isalnum, text.casefold()))
    if len(bare) >= 6:
        assert withheld.is_in(before + text + after)
        assert bare not in "".join(
            filter(str.isalnum, withheld.cleaned(before + text + after).casefold())
        )


@pytest.mark.parametrize("spans", [True, False], ids=["spans", "no spans"])
def test_redacted_values_are_known_without_spans(
    spans: bool, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that sends none still says what it replaced."""
    if not spans:
        monkeypatch.setattr("tests.unit.client.middleware.conftest.spans_of", lambda _: [])
    text = f"Ask her (at {VALUE}), or ask at the desk."
    passages = [f"Her address: {VALUE}.", "Ask at the desk, or ask her."]
    reply = host.get(Reply.of({"answer": text, "contexts": passages})).json()
    assert reply["contexts"] == ["Her address: [REDACTED].", passages[1]]


UNNAMED = ["Anna Berg", VALUE, "The vault is lobster"]


@pytest.mark.parametrize("key", ["name", "model", "id", "role"])
@pytest.mark.parametrize("text", UNNAMED)
def test_names_and_codes_have_the_form_of_such(key: str, text: str, host: Host) -> None:
    """Anything else that stands where a name should is a text."""
    document = with_text("openai", "/choices/0/message/content", GOOD)
    host.get(Reply.of({**document, key: text}), Route("/ask", answer="openai"))
    assert text in [asked["answer"] for asked in host.guard.asked]


@pytest.mark.parametrize(
    "text", ["gpt-4o-2024-08-06", "meta-llama/Llama-3:8b", "claude-3@20240229", "msg_013Zva", ""]
)
def test_ordinary_names_are_no_texts(text: str, host: Host) -> None:
    """Nobody is asked about them."""
    document = with_text("openai", "/choices/0/message/content", GOOD)
    host.get(Reply.of({**document, "model": text}), Route("/ask", answer="openai"))
    assert [asked["answer"] for asked in host.guard.asked] == [GOOD]


FAILED = {
    "a sentence": ({"detail": BAD}, {"detail": "Bad Gateway"}),
    "an address": ({"error": {"message": VALUE, "code": "e-7"}},
                   {"error": {"message": "Bad Gateway", "code": "e-7"}}),
    "an echo of the request": (
        {"detail": [{"loc": ["body", 0], "type": "missing", "msg": "A field is missing",
                     "input": BAD}]},
        {"detail": [{"loc": ["body", 0], "type": "missing", "msg": "Bad Gateway",
                     "input": "Bad Gateway"}]},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("document", "shown"), FAILED.values(), ids=FAILED)
def test_sentences_of_an_error_are_not_sent(document: Any, shown: Any, host: Host) -> None:
    """Codes and phrases of HTTP are; a route may let all of it pass."""
    reply = host.get(Reply.of(document, status=502))
    assert (reply.status_code, reply.json()) == (502, shown)
    passing = host.get(Reply.of(document, status=502), Route("/ask", errors="unchecked"))
    assert passing.json() == document


@pytest.mark.parametrize("answer", [None, "/answer", ["/answer"], lambda e: e.response["answer"]])
def test_other_fields_are_the_applications_word_or_checked(answer: Any, host: Host) -> None:
    """Personal data that stands only in a passage is redacted if the rest is checked."""
    document = {"answer": GOOD, "contexts": [LEAK, GOOD], "note": BAD, "id": "a-1"}
    as_it_is = host.get(Reply.of(document), Route("/ask", answer=answer))
    assert as_it_is.json() == document
    checked = host.get(Reply.of(document), Route("/ask", answer=answer, rest="checked"))
    assert checked.json() == {**document, "contexts": [REDACTED, GOOD], "note": FALLBACK}
