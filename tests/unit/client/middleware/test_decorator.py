"""Guarded functions: what they may return, and what their callers get for each verdict."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import anyio
import httpx
import pytest
from pydantic import BaseModel

import guardrail_client as gc
from guardrail_client.middleware import FALLBACK, OUTAGE, AnswerOutcome, guarded
from tests.unit.client.middleware.conftest import BAD, GOOD, LEAK, REDACTED, VALUE, Guard

PASSAGE = "Guests may stay for two weeks."


@dataclass(frozen=True)
class Data:
    """A reply as a frozen object."""

    answer: str
    contexts: list[Any] = field(default_factory=list)


class Pair(NamedTuple):
    """A reply as a named tuple."""

    answer: str
    contexts: list[Any]


class Model(BaseModel):
    """A reply as a model of pydantic."""

    answer: str
    contexts: list[Any]


MAKERS: dict[str, Callable[[str, list[Any]], Any]] = {
    "dict": lambda answer, contexts: {"answer": answer, "contexts": contexts, "n": 1},
    "dataclass": Data,
    "named tuple": Pair,
    "pydantic": lambda answer, contexts: Model(answer=answer, contexts=contexts),
    "plain object": lambda answer, contexts: SimpleNamespace(answer=answer, contexts=contexts),
}
DOCUMENTS: dict[str, Any] = {
    "text": PASSAGE,
    "mapping": {"id": "7", "text": PASSAGE},
    "LangChain": SimpleNamespace(page_content=PASSAGE, id=None),
    "LlamaIndex": SimpleNamespace(get_content=lambda: PASSAGE, node_id="7"),
    "Haystack": SimpleNamespace(content=PASSAGE, id="7"),
}
SHOWN = {"good": (GOOD, GOOD), "redacted": (LEAK, REDACTED), "stopped": (BAD, FALLBACK)}
FAILING = {503: "not_ready", 500: "internal", 429: "overloaded", 401: "unauthorized"}


@pytest.fixture
def guard() -> Guard:
    """The guard that looks for two words."""
    return Guard()


def call(guard: Guard, value: Any, asynchronous: bool, **settings: Any) -> Any:
    """Return what the caller of a guarded function gets that returns a value."""
    transport = httpx.MockTransport(guard)
    if not asynchronous:
        with gc.GuardrailClient(transport=transport, max_retries=0) as client:

            @guarded(client, **settings)
            def plain(question: str) -> Any:
                return value

            return plain("How long?")

    async def run() -> Any:
        async with gc.AsyncGuardrailClient(transport=transport, max_retries=0) as client:

            @guarded(client, **settings)
            async def awaited(question: str) -> Any:
                return value

            return await awaited("How long?")

    return anyio.run(run)


def answer_of(value: Any) -> Any:
    """Return the answer in any of the values."""
    return value["answer"] if isinstance(value, dict) else value.answer


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("answer", "shown"), SHOWN.values(), ids=SHOWN.keys())
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_a_function_may_return_a_value(
    make: Callable[[str, list[Any]], Any],
    answer: str,
    shown: str,
    asynchronous: bool,
    guard: Guard,
) -> None:
    """The answer in it is judged with the passages in it, and put back into a copy."""
    value = make(answer, [PASSAGE])
    found = call(guard, value, asynchronous, answer="answer")
    assert type(found) is type(value)
    assert answer_of(found) == shown
    assert answer_of(value) == answer
    assert (found is value) is (shown == answer)
    assert guard.asked[0]["question"] == "How long?"
    assert guard.asked[0]["contexts"] == [PASSAGE]


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_passages_may_be_documents(document: Any, guard: Guard) -> None:
    """Of LangChain, LlamaIndex and Haystack, returned by key or found by a function."""
    for where in ("contexts", lambda value: value["contexts"]):
        value = {"answer": GOOD, "contexts": [document]}
        assert call(guard, value, False, answer="answer", contexts=where) is value
        (passage,) = guard.asked.pop()["contexts"]
        assert passage in (PASSAGE, {"text": PASSAGE}, {"id": "7", "text": PASSAGE})


def test_an_answer_may_be_found_and_replaced_by_functions(guard: Guard) -> None:
    """For values of any shape."""
    found = call(
        guard,
        [BAD, PASSAGE],
        False,
        answer=lambda value: value[0],
        contexts=lambda value: value[1:],
        replace=lambda value, text: [text, *value[1:]],
    )
    assert found == [FALLBACK, PASSAGE]


def test_the_rest_of_a_mapping_says_nothing_withheld(guard: Guard) -> None:
    """Passages and traces lose what was redacted, and a copy of a stopped answer."""
    value = {"answer": LEAK, "contexts": [f"Mail {VALUE}."], "trace": {"raw": LEAK}, "n": 1}
    found = call(guard, value, False, answer="answer")
    assert list(found) == ["answer", "contexts", "trace", "n"]
    assert VALUE not in str(found)
    assert found["n"] == 1
    stopped = call(guard, {"answer": BAD, "contexts": [], "raw": BAD}, False, answer="answer")
    assert "lobster" not in str(stopped)
    assert VALUE in str(value)


BESIDE: dict[str, Callable[[str], Any]] = {
    "LangChain": lambda text: [SimpleNamespace(page_content=text, id=None, metadata={"of": text})],
    "Haystack": lambda text: [Data(text, [text])],
    "LlamaIndex": lambda text: [Model(answer="", contexts=[Model(answer=text, contexts=[])])],
    "a document and its score": lambda text: [(SimpleNamespace(text=text), 0.5)],
    "tuples and sets": lambda text: [(text, {text}, frozenset([text]), Pair(text, []))],
    "bytes": lambda text: [text.encode()],
    "a key": lambda text: [{text: 1}],
    "values of other kinds": lambda text: [deque([text]), PurePath(text), ValueError(text)],
    "percent signs": lambda text: [f"https://h.example/?q={quote(text)}"],
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_nothing_beside_the_answer_says_what_was_withheld(
    beside: Any, make: Any, guard: Guard
) -> None:
    """Whatever holds it; what says nothing of it is the same object."""
    for text, gone in ((LEAK, VALUE), (BAD, "lobster")):
        kept = SimpleNamespace(page_content=PASSAGE)
        value = make(text, [*beside(text), kept])
        found = call(guard, value, False, answer="answer", contexts=lambda _: None)
        contexts = found["contexts"] if isinstance(found, dict) else found.contexts
        assert gone not in unquote(repr(found))
        assert contexts[-1] is kept
        assert gone in unquote(repr(value))


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("on_error", ["closed", "open"])
@pytest.mark.parametrize("status", FAILING)
@pytest.mark.parametrize("make", [None, *MAKERS.values()], ids=["text", *MAKERS])
def test_an_outage_follows_on_error(
    make: Any,
    status: int,
    on_error: Any,
    asynchronous: bool,
    guard: Guard,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With a text of its own, an outcome and a line in the log; a wrong key stays closed."""
    guard.failing = status
    seen: list[AnswerOutcome] = []
    value = GOOD if make is None else make(GOOD, [PASSAGE])
    where = {"contexts": None} if make is None else {"answer": "answer"}
    with caplog.at_level(logging.WARNING, logger="guardrail_client.middleware"):
        found = call(guard, value, asynchronous, on_error=on_error, on_outcome=seen.append, **where)
    passes = on_error == "open" and status != 401
    assert (found if make is None else answer_of(found)) == (GOOD if passes else OUTAGE)
    assert [(o.reason, o.error) for o in seen] == [("outage", FAILING[status])]
    assert f"answer not checked, {'as_is' if passes else 'replaced'}" in caplog.text
    assert GOOD not in caplog.text


FALLBACKS: dict[str, tuple[Any, str, str]] = {
    "text": ("No.", "No.", "No."),
    "mapping": ({"blocked": "No.", "outage": "Later."}, "No.", "Later."),
    "part of a mapping": ({"blocked": "No."}, "No.", OUTAGE),
    "function": (lambda reason, language: f"{reason}: {language}", "blocked: None", "outage: None"),
}  # fmt: skip


@pytest.mark.parametrize(("fallback", "blocked", "outage"), FALLBACKS.values(), ids=FALLBACKS)
def test_a_fallback_tells_an_outage_from_a_block(
    fallback: Any, blocked: str, outage: str, guard: Guard
) -> None:
    """As a text, by reason, or made up by a function."""
    settings = {"fallback": fallback, "contexts": None}
    assert call(guard, BAD, False, **settings) == blocked
    guard.failing = 503
    assert call(guard, BAD, True, **settings) == outage


@pytest.mark.parametrize("failing", [None, 503])
@pytest.mark.parametrize("on_error", ["closed", "open"])
@pytest.mark.parametrize("answer", [GOOD, BAD])
def test_generators_are_guarded(
    answer: str, on_error: Any, failing: int | None, guard: Guard
) -> None:
    """Of both kinds: pieces that were decided, then the fallback if there is one."""
    guard.failing = failing
    transport = httpx.MockTransport(guard)
    settings: Any = {"on_error": on_error, "question": None, "contexts": None}

    async def run() -> str:
        async with gc.AsyncGuardrailClient(
            transport=transport, max_retries=0, buffer_streams=True
        ) as client:

            @guarded(client, **settings)
            async def write() -> AsyncIterator[str]:
                for piece in (answer[:9], answer[9:]):
                    yield piece

            return "".join([piece async for piece in write()])

    with gc.GuardrailClient(transport=transport, max_retries=0, buffer_streams=True) as client:

        @guarded(client, **settings)
        def write() -> Iterator[str]:
            yield from (answer[:9], answer[9:])

        expected = FALLBACK if answer == BAD else GOOD
        if failing:
            expected = answer if on_error == "open" else OUTAGE
        assert "".join(write()) == expected
    assert anyio.run(run) == expected


@pytest.mark.parametrize("value", [None, "", " \n"])
def test_nothing_to_judge_is_returned_as_it_is(value: Any, guard: Guard) -> None:
    """Without asking the guard."""
    assert call(guard, value, False, contexts=None) is value
    reply = {"answer": value, "contexts": []}
    assert call(guard, reply, True, answer="answer") is reply
    assert guard.asked == []


WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a value, and no place": ({"answer": GOOD}, {"contexts": None}, "found dict, expected str"),
    "no answer there": ({"text": GOOD}, {"answer": "answer"}, "found dict without 'answer'"),
    "no text there": ({"answer": 7}, {"answer": "answer"}, "found int, expected str"),
    "no passages there": ({"answer": GOOD}, {"answer": "answer"}, "without 'contexts'"),
    "passages that are none": (
        {"answer": GOOD, "contexts": [3]}, {"answer": "answer"}, r"contexts\[0\]: found int"),
    "a function alone": (GOOD, {"answer": str}, "without replace="),
    "no such argument": (GOOD, {}, "has no argument 'contexts'"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "settings", "message"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_wrong_place_is_an_error(
    value: Any, settings: dict[str, Any], message: str, asynchronous: bool, guard: Guard
) -> None:
    """Nothing is returned, and the message holds no text."""
    with pytest.raises(TypeError, match=message) as caught:
        call(guard, value, asynchronous, on_error="open", **settings)
    assert GOOD not in str(caught.value)
