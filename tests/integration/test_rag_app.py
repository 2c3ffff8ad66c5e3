"""The example application: started as its README says, asked over HTTP, guarded in both ways."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.integration.conftest import PATIENCE_S, Served, environment, running

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "rag_app"
QUESTION = "When does the pool open in the morning?"
POOL = "The pool opens at seven in the morning"
INVENTED = "boat trip"
ADDRESS = "anna.berg@harbour-house.example"
CARD = "4111 1111 1111 1111"


@pytest.fixture(scope="module")
def guard() -> Iterator[Served]:
    """The service with the shipped models and policies."""
    with running("--port", "0") as served, served.client():
        yield served


@contextmanager
def hosted(module: str, guard: str) -> Iterator[httpx.Client]:
    """Run one of the example's applications as its README says."""
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLE), f"{module}:app"]
    with subprocess.Popen(
        [*command, "--port", "0", "--log-level", "info"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(GUARDRAIL_URL=guard, RAG_APP_PACE="0", RAG_APP_TIMEOUT=str(PATIENCE_S)),
    ) as process:
        try:
            lines = iter(process.stderr or ())
            listening = next(line for line in lines if "running on" in line)
            url = listening.split("running on ")[1].split()[0]
            with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
                yield client
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def guarded(guard: Served) -> Iterator[httpx.Client]:
    """The application behind the middleware."""
    with hosted("guarded", guard.address) as client:
        yield client


@pytest.fixture(scope="module")
def by_hand(guard: Served) -> Iterator[httpx.Client]:
    """The application that calls the client itself."""
    with hosted("by_hand", guard.address) as client:
        yield client


def ask(client: httpx.Client, habit: str, question: str = QUESTION) -> httpx.Response:
    """Ask for an answer in one piece."""
    return client.post("/ask", json={"question": question, "habit": habit})


def streamed(client: httpx.Client, habit: str) -> tuple[str, str]:
    """Return the text of a streamed answer and its finish reason."""
    text, reason = "", ""
    body = {"question": QUESTION, "habit": habit}
    with client.stream("POST", "/ask/stream", json=body) as reply:
        for line in reply.iter_lines():
            if line.startswith("data: {"):
                choice = json.loads(line[6:])["choices"][0]
                text += choice["delta"].get("content") or ""
                reason = choice["finish_reason"] or reason
    return text, reason


def test_an_honest_answer_passes_the_middleware(guarded: httpx.Client) -> None:
    """As the application wrote it, with its passages."""
    reply = ask(guarded, "honest")
    assert reply.headers["x-guardrail-decision"] == "pass"
    assert reply.json()["answer"].startswith(POOL)
    assert reply.json()["contexts"][0]["id"] == "pool#1"
    text, reason = streamed(guarded, "honest")
    assert (text, reason) == (reply.json()["answer"], "stop")


def test_a_careless_answer_is_not_shown(guarded: httpx.Client) -> None:
    """What is flagged on evidence does not leave; of a stream, only what was checked before it.

    That is nothing if the application's words all arrive before the first is judged.
    """
    reply = ask(guarded, "careless")
    assert reply.headers["x-guardrail-decision"] == "flag"
    flagged = reply.headers["x-guardrail-flagged"].split(",")
    assert {"hallucination", "pii"} <= set(flagged)
    assert ADDRESS not in reply.text
    assert INVENTED not in reply.text
    sorry = reply.json()["answer"]
    text, reason = streamed(guarded, "careless")
    assert text == sorry or (text.startswith(POOL) and text.endswith(sorry))
    assert reason == "content_filter"
    assert INVENTED not in text
    assert ADDRESS not in text


def test_personal_data_is_redacted_and_a_foreign_language_marked(guarded: httpx.Client) -> None:
    """The card number neither in the answer nor in the passages that come with it."""
    reply = ask(guarded, "honest", "How was the invoice of room 12 paid?")
    assert reply.headers["x-guardrail-action"] == "redact"
    assert "Miller" in reply.json()["answer"]
    assert CARD not in reply.text
    german = ask(guarded, "german", "Wann öffnet der Pool?")
    assert german.headers["x-guardrail-action"] == "mark"
    assert german.json()["answer"].startswith("Der Pool")


def test_the_same_by_hand_says_where(by_hand: httpx.Client) -> None:
    """Marks are the flagged sentences of the answer."""
    honest = ask(by_hand, "honest").json()
    assert (honest["decision"], honest["marks"]) == ("pass", [])
    careless = ask(by_hand, "careless").json()
    marked = [careless["answer"][m["start"] : m["end"]] for m in careless["marks"]]
    assert any(INVENTED in part for part in marked)
    assert any("•••" in part for part in marked)
    assert ADDRESS not in careless["answer"]
    assert not any(POOL in part for part in marked)
    text, reason = streamed(by_hand, "careless")
    assert ADDRESS not in text
    assert INVENTED not in text
    assert reason == "content_filter"


def test_a_question_without_passages_is_an_honest_abstention(guarded: httpx.Client) -> None:
    """Which claims nothing."""
    reply = ask(guarded, "honest", "Quantum chromodynamics?")
    assert "could not find" in reply.json()["answer"]


def test_without_a_guard_nothing_is_shown() -> None:
    """Fail closed, in both applications."""
    shown = {"guarded": "could not be checked", "by_hand": "cannot show an answer"}
    for module, sorry in shown.items():
        with hosted(module, "http://127.0.0.1:9") as client:
            assert sorry in ask(client, "honest").json()["answer"]
            assert POOL not in streamed(client, "honest")[0]


@pytest.mark.parametrize("application", ["by_hand", "guarded"])
def test_the_page_needs_nothing_from_elsewhere(
    application: str, request: pytest.FixtureRequest
) -> None:
    """No address of another host, no markup made from an answer."""
    client: httpx.Client = request.getfixturevalue(application)
    page = client.get("/").text
    assert "http" not in page.replace("http-equiv", "")
    assert "innerHTML" not in page
    assert client.get("/style.css").headers["content-type"].startswith("text/css")


def test_the_compose_file_names_what_exists() -> None:
    """Paths, ports and the health check it waits for."""
    content: dict[str, Any] = yaml.safe_load((EXAMPLE / "docker-compose.yml").read_text())
    guard, app = content["services"]["guard"], content["services"]["app"]
    assert (EXAMPLE / guard["build"] / "Dockerfile").resolve() == ROOT / "Dockerfile"
    assert "HEALTHCHECK" in (ROOT / "Dockerfile").read_text()
    assert app["depends_on"]["guard"]["condition"] == "service_healthy"
    assert "examples/rag_app by_hand:app" in app["command"]
    assert (EXAMPLE / "by_hand.py").is_file()
