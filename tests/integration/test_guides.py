"""The guides are true: each block of code runs, and the table behind it says what is seen."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

import guardrail_client as gc
from guardrail_client.middleware import GuardrailMiddleware, Route
from tests.integration.conftest import PATIENCE_S, Served, running

DOCS = Path(__file__).resolve().parents[2] / "docs"
ADDRESS, NOBODY = "http://127.0.0.1:8080", "http://127.0.0.1:1"
POOL = "The pool opens at seven."
HOTEL = "Guests may stay for two weeks."
QUESTION = "When does the pool open?"
PART = re.compile(
    r"^```python\n(.*?)^```\n\n(?:[^|\n][^\n]*\n\n)?((?:\|[^\n]*\n)+)", re.MULTILINE | re.DOTALL
)
"""A block, a line of text, and a table."""


def parts(page: str) -> list[tuple[str, list[list[str]]]]:
    """Return the code blocks of a page, each with the rows of the table behind it."""
    text = (DOCS / page).read_text("utf-8")
    found = PART.findall(text)
    assert len(found) == text.count("```python")
    return [(code, [_cells(line) for line in table.splitlines()[2:]]) for code, table in found]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


SETUP, SOCKET, CIRCUIT, FUNCTION, VALUE, FLASK, PLAIN = parts("middleware.md")
(STREAM,) = parts("streaming.md")


ABOUT = [
    (QUESTION, POOL, SETUP), (None, POOL, SETUP), (QUESTION, POOL, SOCKET),
    (QUESTION, POOL, FUNCTION), (QUESTION, POOL, FLASK), (QUESTION, POOL, PLAIN),
    ("How long may I stay?", HOTEL, STREAM),
]  # fmt: skip
"""Question and passage of each block's answers."""


def first(row: list[str]) -> str:
    """Return a test's name."""
    return row[0][:40]


def quoted(cell: str) -> list[str]:
    """Return the texts in quotation marks."""
    return re.findall(r'"(.+?)"', cell)


@pytest.fixture(scope="module")
def guard() -> Iterator[Served]:
    """The service as it is started, which has seen the texts: models need longer the first time."""
    with running("--port", "0") as served, served.client():
        with gc.GuardrailClient(served.address, timeout=PATIENCE_S) as client:
            for question, passage, (_, rows) in ABOUT:
                for text in {text for row in rows for text in quoted(row[0])}:
                    about: Any = {"question": question, "contexts": [passage]}
                    client.check(text, **about)
                    list(client.check_stream(iter(words(text)), timeout=PATIENCE_S, **about))
            for text in (POOL, "Towels cost five euros."):
                client.check(text, contexts=[POOL])
            for (passage, *_), (text, *_) in (map(quoted, row[::-1]) for row in VALUE[1]):
                client.check(text, question=QUESTION, contexts=[passage])
        yield served


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[gc.AsyncGuardrailClient]]:
    """Return the asynchronous clients that blocks make, to be closed; others are closed here."""
    awaited: list[gc.AsyncGuardrailClient] = []
    others: list[gc.GuardrailClient] = []

    class Awaited(gc.AsyncGuardrailClient):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            awaited.append(self)

    class Called(gc.GuardrailClient):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            others.append(self)

    monkeypatch.setattr(gc, "AsyncGuardrailClient", Awaited)
    monkeypatch.setattr(gc, "GuardrailClient", Called)
    yield awaited
    for client in others:
        client.close()


@contextmanager
def reading(app: Any, made: list[gc.AsyncGuardrailClient]) -> Iterator[TestClient]:
    """Yield a reader of an application whose clients are closed behind it."""
    with TestClient(app) as reader:
        yield reader
        assert reader.portal
        for client in made:
            reader.portal.call(client.close)


def either(cell: str, answer: str) -> set[str]:
    """Return what may be shown: a fast model may be stopped before its first part was checked."""
    *beginning, end = quoted(cell) or [answer]
    return {end, "".join([*beginning, end])}


def run(code: str, address: str, **names: Any) -> dict[str, Any]:
    """Execute a block with what it takes for granted and return its names."""
    names["__name__"] = __name__
    exec(compile(code.replace(ADDRESS, address), "docs", "exec"), names)  # noqa: S102 - our own
    return names


def words(text: str) -> list[str]:
    """Return a text as a model writes it."""
    return re.findall(r"\S+\s*", text)


@pytest.mark.parametrize("row", SETUP[1], ids=first)
def test_the_guarded_application(row: list[str], guard: Served, made: Any) -> None:
    """Of one block of settings: text, status and header."""
    case, reads, status, decision = row
    answer = (quoted(case) or [POOL])[0]
    app = FastAPI()

    @app.post("/ask")
    def ask(body: dict[str, str]) -> dict[str, Any]:
        return {"answer": answer, "contexts": [POOL]}

    @app.post("/v1/chat/completions")
    def chat(body: dict[str, Any]) -> dict[str, Any]:
        return {"choices": [{"index": 0, "message": {"role": "assistant", "content": answer}}]}

    run(SETUP[0], NOBODY if "down" in case else guard.address, app=app)
    with reading(app, made) as reader:
        reply = reader.post("/ask", json={"question": QUESTION})
        completion = reader.post("/v1/chat/completions", json={"messages": []})
    assert reply.json()["answer"] == (answer if reads == "the answer" else quoted(reads)[0])
    assert (str(reply.status_code), reply.headers["x-guardrail-decision"]) == (status, decision)
    if decision != "pass":
        assert completion.json()["choices"][0]["finish_reason"] == "content_filter"


@pytest.mark.parametrize("row", SOCKET[1], ids=first)
def test_the_guarded_socket(row: list[str], guard: Served, made: Any) -> None:
    """What its reader is sent, and how it is closed."""
    case, sees, ends = row
    answer = (quoted(case) or [POOL])[0]
    names = run(
        SOCKET[0],
        NOBODY if "down" in case else guard.address,
        retrieve=lambda _: [POOL],
        model=lambda _: words(answer),
    )
    expected = either(sees, answer)
    shown = ""
    with reading(names["app"], made) as client, client.websocket_connect("/chat") as socket:
        socket.send_json({"question": QUESTION})
        while shown not in expected:
            shown += socket.receive_json()["delta"]
            assert any(one.startswith(shown) for one in expected)
        if code := re.search(r"\d+", ends):
            assert "guardrail" in socket.receive_json()
            with pytest.raises(WebSocketDisconnect) as closed:
                socket.receive_json()
            assert closed.value.code == int(code[0])
        else:
            socket.send_json({"question": QUESTION})
            assert socket.receive_json()["delta"]


def test_the_circuit(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers of the table, one after the other."""
    monkeypatch.setenv("GUARDRAIL_URL", NOBODY)
    client = run(CIRCUIT[0], NOBODY)["client"]
    app = FastAPI()

    @app.get("/ask")
    def ask() -> dict[str, Any]:
        return {"answer": POOL}

    app.add_middleware(GuardrailMiddleware, client=client, routes=[Route("/ask")])
    (waited, asked, read, error), (later, *_, opened) = CIRCUIT[1]
    with reading(app, made) as reader:
        replies = [reader.get("/ask") for _ in range(4)]
    assert (waited, asked, later[0]) == ("1 to 3", "yes", "4")
    assert {reply.json()["answer"] for reply in replies} == set(quoted(read))
    assert [r.headers["x-guardrail-error"] for r in replies] == [error] * 3 + [opened]
    assert client.circuit.state == "open"


@pytest.mark.parametrize("row", FUNCTION[1], ids=first)
def test_the_guarded_function(
    row: list[str], guard: Served, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it returns."""
    case, returned = row
    written = (quoted(case) or [POOL])[0]
    monkeypatch.setenv("GUARDRAIL_URL", NOBODY if "down" in case else guard.address)
    answer = run(FUNCTION[0], "", model=lambda *_: written)["answer"]
    expected = written if returned == "what the model wrote" else quoted(returned)[0]
    assert answer(question=QUESTION, contexts=[POOL]) == expected


@pytest.mark.parametrize("row", VALUE[1], ids=first)
def test_the_guarded_function_that_retrieves(
    row: list[str], guard: Served, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block goes on from the one before it."""
    (found,), (text,) = map(quoted, row)
    monkeypatch.setenv("GUARDRAIL_URL", guard.address)
    ask = run(FUNCTION[0] + VALUE[0], "", retrieve=lambda _: [found])["ask"]
    assert ask(question=QUESTION) == {"text": text, "sources": [found]}


@pytest.mark.parametrize("row", FLASK[1], ids=first)
def test_the_guarded_application_of_flask(row: list[str], guard: Served, made: Any) -> None:
    """A reply in JSON and a stream of text."""
    case, reads, decision, streamed = row
    answer = (quoted(case) or [POOL])[0]
    app = run(
        FLASK[0],
        NOBODY if "down" in case else guard.address,
        retrieve=lambda _: [POOL],
        model=lambda _: words(answer),
    )["app"]
    with httpx.Client(transport=httpx.WSGITransport(app), base_url="http://h") as reader:
        reply = reader.post("/ask", json={"question": QUESTION})
        stream = reader.post("/stream", json={"question": QUESTION})
    assert reply.json()["answer"] == (quoted(reads) or [answer])[0]
    assert reply.headers["x-guardrail-decision"] == decision
    assert stream.text in either(streamed, answer)
    assert stream.headers["x-guardrail-decision"] == "streaming"


@pytest.mark.parametrize("row", PLAIN[1], ids=first)
def test_the_guarded_application_without_a_framework(
    row: list[str], guard: Served, made: Any
) -> None:
    """Its passages stand in the environment."""
    case, reads, decision = row
    answer = (quoted(case) or [POOL])[0]
    app = run(
        PLAIN[0],
        NOBODY if "down" in case else guard.address,
        retrieve=lambda _: [POOL],
        model=lambda _: words(answer),
    )["application"]
    with httpx.Client(transport=httpx.WSGITransport(app), base_url="http://h") as reader:
        reply = reader.post("/any/path", json={"question": QUESTION})
    assert reply.json() == {"answer": (quoted(reads) or [answer])[0]}
    assert (reply.status_code, reply.headers["x-guardrail-decision"]) == (200, decision)


@pytest.mark.parametrize("row", STREAM[1], ids=first)
def test_the_checked_stream(
    row: list[str],
    guard: Served,
    made: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is printed while the model writes, and at the end."""
    case, shown, blocked, flagged = row
    (written,) = quoted(case)
    monkeypatch.setenv("GUARDRAIL_URL", guard.address)

    async def tokens() -> AsyncIterator[str]:
        for token in words(written):
            yield token

    asyncio.run(run(STREAM[0], "")["main"](tokens(), [HOTEL]))
    text, _, verdict = capsys.readouterr().out.partition("|")
    assert text in either(shown, written)
    names = flagged.split(", ") if flagged != "-" else []
    assert verdict.split() == [blocked, *names]


def test_the_guard_of_the_clients_page_says_what_its_table_says() -> None:
    """The block's own assertions are run by the tests of the client."""
    text = (DOCS / "client.md").read_text("utf-8")
    (row,) = [_cells(line) for line in text.splitlines() if line.startswith("| a release")]
    assert f"assert list(stream) == {json.dumps(quoted(row[1]))}" in text
    assert (row[2], "assert stream.blocked" in text) == ("True", True)


MANUAL = Path(gc.__file__).with_name("README.md").read_text("utf-8")
PRINTED = re.findall(
    r"^```python\n((?:(?!^```).)*)^```\n\nIt prints[^\n]*:\n\n```text\n(.*?)^```",
    MANUAL,
    re.MULTILINE | re.DOTALL,
)
RECIPES = [
    (code, [_cells(line) for line in table.splitlines()[2:]])
    for code, table in re.findall(
        r"^```python\n((?:(?!^```).)*)^```\n\n((?:\|[^\n]*\n)+)", MANUAL, re.MULTILINE | re.DOTALL
    )
]


@pytest.mark.parametrize(("code", "printed"), PRINTED, ids=range(len(PRINTED)))
def test_a_block_of_the_clients_manual_prints_what_it_says(
    code: str,
    printed: str,
    guard: Served,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Asked of the service that is started without settings; `...` stands for any rest."""
    monkeypatch.setenv("GUARDRAIL_URL", guard.address)
    if "in_process" in code:
        monkeypatch.delenv("GUARDRAIL_URL")
    else:
        run(code, guard.address)  # models need longer the first time
        capsys.readouterr()
    run(code, guard.address)
    lines = [re.escape(line).replace(re.escape("..."), ".*") for line in printed.splitlines()]
    assert re.fullmatch("\n".join(lines), capsys.readouterr().out.strip(), re.DOTALL)


@pytest.mark.parametrize(
    ("code", "row"), [(code, row) for code, rows in RECIPES for row in rows], ids=repr
)
def test_a_recipe_of_the_clients_manual_does_what_its_table_says(
    code: str, row: list[str], guard: Served
) -> None:
    """Both of them, also while nobody can be asked."""
    case, returned = row
    answer = (quoted(case) or [POOL])[0]
    address = NOBODY if "down" in case else guard.address
    names = run(code, guard.address)
    with gc.GuardrailClient(address, timeout=PATIENCE_S, max_retries=0) as client:
        recipe = names.get("reply") or names["may_show"]
        found = recipe(client, answer, [POOL])
    expected = answer if returned == "the answer" else returned.strip('"')
    assert str(found) == expected


def test_every_block_of_the_clients_manual_says_what_comes_of_it() -> None:
    """But for the one that asks nothing, and the one that is a test itself."""
    blocks = re.findall(r"^```python\n((?:(?!^```).)*)^```", MANUAL, re.MULTILINE | re.DOTALL)
    silent = [code for code in blocks if code not in dict(PRINTED) | dict(RECIPES)]
    assert len(blocks) == len(PRINTED) + len(RECIPES) + len(silent)
    assert ["proxy=" in silent[0], "def test_" in silent[1]] == [True, True]


def test_nothing_else_is_a_block_of_code() -> None:
    """So that every block is run by one of these tests, or by those of client and README."""
    for page in ("middleware.md", "streaming.md", "client.md"):
        languages = re.findall(r"^```(\w*)\n", (DOCS / page).read_text("utf-8"), re.MULTILINE)
        assert set(languages) - {""} == {"python"}, page
