"""Azure, Ollama and Assistants are spoken as their makers say, against a server that notes it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from guardrail_offline.hosts.assistants import Assistant
from guardrail_offline.hosts.chat import ChatHost
from guardrail_offline.hosts.endpoint import Patience
from guardrail_offline.hosts.errors import (
    BadReply,
    ContextTooLong,
    HostError,
    HostRefused,
    HostUnavailable,
    NeedsVision,
    RateLimited,
    TimedOut,
)
from guardrail_offline.hosts.ollama import OllamaHost
from guardrail_offline.hosts.opening import HostChoice, open_chat, open_embedding
from tests.unit.offline.hosts.server import Reply, asked, serving, waits

__all__ = ["waits"]

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
DATA = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
SCHEMA = {"type": "object", "properties": {"verdict": {"type": "integer"}}}
FORM = {"type": "json_schema", "json_schema": {"name": "v", "schema": SCHEMA}}
SAID = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "When?"}]


def seen(url: str) -> list[dict[str, Any]]:
    """Return a message with an image."""
    parts = [{"type": "text", "text": "See?"}, {"type": "image_url", "image_url": {"url": url}}]
    return [{"role": "user", "content": parts}]


SEEN, FAR = seen(DATA), seen("https://example.com/a.png")


def test_azure_has_the_deployment_in_its_path_and_the_key_in_its_own_header(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And its version behind it, for chat and for embeddings."""
    monkeypatch.setenv("MY_AZURE_KEY", "made-up")
    said = {"choices": [{"message": {"content": "Nine."}}], "data": [
        {"index": 0, "embedding": [1.0]}]}  # fmt: skip
    with serving(Reply(said)) as server:
        address = f"azure+{server.url.removesuffix('/v1')}?api-version=2024-06-01"
        choice = HostChoice(address, model="gpt", key_variable="MY_AZURE_KEY")
        host = open_chat(choice)
        assert host.chat(SAID, temperature=0).text == "Nine."
        assert open_embedding(choice).embed(["a"]) == [[1.0]]
    assert server.paths == [
        "/openai/deployments/gpt/chat/completions?api-version=2024-06-01",
        "/openai/deployments/gpt/embeddings?api-version=2024-06-01",
    ]
    assert server.bodies[0] == {"messages": SAID, "temperature": 0}
    names = {name.lower(): value for name, value in server.headers[0].items()}
    assert names["api-key"] == "made-up"
    assert "authorization" not in names
    assert "made-up" not in host.name + repr(host)


def test_ollama_is_asked_in_its_own_words_and_cuts_nothing_off() -> None:
    """Options, schema, images and counts by its names."""
    said = {
        "message": {"role": "assistant", "content": '{"verdict": 1}'}, "done_reason": "stop",
        "prompt_eval_count": 20, "eval_count": 5,
        "logprobs": [{"token": "1", "logprob": -0.5, "top_logprobs": []}],
    }  # fmt: skip
    with serving(Reply(said)) as server, asked(server.url) as endpoint:
        host = OllamaHost(endpoint, "tiny:1b")
        options = {"temperature": 0, "max_tokens": 9, "seed": 42, "response_format": FORM}
        found = host.chat(SEEN, **options, options={"num_ctx": 8192}, think=False)
        host.chat(SAID, response_format={"type": "json_object"})
    assert (found.finish, found.tokens, found.logprobs[0]["token"]) == ("stop", (20, 5), "1")
    assert server.paths == ["/v1/api/chat"] * 2
    assert server.bodies[0] == {
        "model": "tiny:1b", "stream": False, "truncate": False, "shift": False,
        "messages": [{"role": "user", "content": "See?", "images": [DATA.partition(",")[2]]}],
        "options": {"num_ctx": 8192, "temperature": 0, "num_predict": 9, "seed": 42},
        "format": SCHEMA, "think": False,
    }  # fmt: skip
    assert server.bodies[1]["format"] == "json"


def test_ollama_embeds_whole_texts_only() -> None:
    """Where it would cut a text it says that it is too long."""
    long = Reply({"error": "the input length exceeds the context length"}, status=400)
    with serving(Reply({"embeddings": [[1, 0], [0, 1]]}), long) as server:
        host = open_embedding(HostChoice(f"ollama+{server.url}", model="e"))
        assert host.embed(["a", "b"]) == [[1, 0], [0, 1]]
        with pytest.raises(ContextTooLong):
            host.embed(["a", "b"])
    assert server.bodies[0] == {"model": "e", "input": ["a", "b"], "truncate": False}


@pytest.mark.parametrize(
    ("make", "messages"), [(OllamaHost, FAR), (Assistant, SEEN)], ids=["ollama", "assistants"]
)
def test_an_image_in_a_form_that_the_host_cannot_take_is_not_sent(
    make: Callable[..., ChatHost], messages: Any
) -> None:
    """Nor left out."""
    with serving(Reply({})) as server, asked(server.url) as endpoint:
        with pytest.raises(NeedsVision):
            make(endpoint, "m").chat(messages)
        assert server.bodies == []


@pytest.mark.parametrize("value", [{}, [], {"message": {"content": None}}, {"message": "text"}])
def test_anything_else_is_no_message_of_ollama(value: Any) -> None:
    """Status 200 or not."""
    with serving(Reply(value)) as server, asked(server.url) as endpoint, pytest.raises(BadReply):
        OllamaHost(endpoint, "m").chat(SAID)


def run(status: str, **more: Any) -> dict[str, Any]:
    """Return a run."""
    return {"id": "run_1", "thread_id": "thread_1", "status": status, **more}


USAGE = {"usage": {"prompt_tokens": 30, "completion_tokens": 4}}
STEPS = {"data": [
    {"step_details": {"type": "message_creation"}},
    {"step_details": {"tool_calls": [{"file_search": {"results": [
        {"content": [{"type": "text", "text": "It opens at nine."}]}, {"content": None}]}}]}},
]}  # fmt: skip
MESSAGES = {"data": [
    {"role": "user", "content": []},
    {"role": "assistant", "content": [{"type": "text", "text": {"value": "Nine."}}]},
]}  # fmt: skip


def assistant(*runs: dict[str, Any], steps: Any = STEPS, messages: Any = MESSAGES) -> Any:
    """Return a route that gives the runs one after the other, and then their message."""
    left = list(runs)

    def route(method: str, path: str, _body: Any) -> Reply:
        if method == "DELETE":
            return Reply({"deleted": True})
        path = path.partition("?")[0]
        if path.endswith("/steps"):
            return Reply(steps)
        if path.endswith("/messages"):
            return Reply(messages)
        return Reply(left.pop(0) if len(left) > 1 else left[0])

    return route


def test_an_assistant_is_asked_in_a_thread_of_its_own(waits: list[float]) -> None:
    """Its run is looked at until it ends; passages are what File Search found."""
    runs = (run("queued"), run("in_progress"), run("completed", **USAGE))
    settings = {"run_kwargs": {"top_p": 1}, "thread_kwargs": {"metadata": {"a": "b"}}}
    with serving(route=assistant(*runs)) as server, asked(server.url, waits) as endpoint:
        host = Assistant(endpoint, "asst_1", settings)
        found = host.chat(SAID, temperature=0, seed=1, max_tokens=9)
    assert (found.text, found.finish, found.tokens) == ("Nine.", "stop", (30, 4))
    assert found.contexts == ("It opens at nine.",)
    assert server.bodies[0] == {
        "assistant_id": "asst_1", "additional_instructions": "Be short.", "temperature": 0,
        "max_completion_tokens": 9, "top_p": 1,
        "thread": {"metadata": {"a": "b"}, "messages": [{"role": "user", "content": "When?"}]},
    }  # fmt: skip
    paths = [path.partition("?")[0].removeprefix("/v1/threads") for path in server.paths]
    of_run = "/thread_1/runs/run_1"
    assert paths == ["/runs", of_run, of_run, "/thread_1/messages", f"{of_run}/steps", "/thread_1"]
    assert [seconds for seconds in waits if seconds] == [0.25, 0.5]
    assert json.loads(host.name)[:1] == ["assistants"]


def test_an_assistant_that_does_not_search_says_nothing_of_passages() -> None:
    """And one that was cut off says so."""
    cut = run("incomplete", incomplete_details={"reason": "max_completion_tokens"})
    blocked = run("incomplete", incomplete_details={"reason": "content_filter"})
    with serving(route=assistant(cut, steps={"data": []})) as server, asked(server.url) as endpoint:
        found = Assistant(endpoint, "a").chat(SAID)
        assert (found.finish, found.refused, found.contexts) == ("length", False, None)
    empty = {"data": []}
    with serving(route=assistant(blocked, messages=empty)) as server, asked(server.url) as endpoint:
        found = Assistant(endpoint, "a").chat(SAID)
        assert (found.text, found.finish, found.refused) == ("", "content_filter", True)


@pytest.mark.parametrize(
    ("ended", "error"),
    [
        (run("failed", last_error={"code": "rate_limit_exceeded"}), RateLimited),
        (run("failed", last_error={"code": "server_error"}), HostUnavailable),
        (run("failed", last_error={"code": "invalid_prompt"}), HostRefused),
        (run("expired"), HostUnavailable),
        (run("requires_action"), BadReply),
        (run("cancelled"), BadReply),
        (run("in_progress"), TimedOut),
        ({"thread_id": "thread_1"}, BadReply),
    ],
    ids=lambda value: value.get("status", "none") if isinstance(value, dict) else value.__name__,
)
def test_a_run_that_brings_no_message_is_an_error(
    ended: dict[str, Any], error: type[HostError]
) -> None:
    """Of the kind that says whether asking again helps; the thread is deleted all the same."""
    with (
        serving(route=assistant(ended)) as server,
        asked(server.url, limits=Patience(timeout_s=1.0)) as endpoint,
    ):
        with pytest.raises(error):
            Assistant(endpoint, "a").chat(SAID)
        assert server.paths[-1] == "/v1/threads/thread_1"
