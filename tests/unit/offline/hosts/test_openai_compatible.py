"""Chat completions and embeddings are read as the protocol says, and nothing else is taken."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail_offline.hosts.errors import BadReply
from guardrail_offline.hosts.openai_compatible import OpenAICompatible
from tests.unit.offline.hosts.server import Reply, asked, serving


def said(text: Any, **more: Any) -> dict[str, Any]:
    """Return a completion."""
    return {"choices": [{"message": {"role": "assistant", "content": text}, **more}]}


def test_a_completion_has_text_end_and_tokens() -> None:
    """And what was asked goes out as it is."""
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    reply = Reply({**said("Nine.", finish_reason="stop"), "usage": usage})
    messages = [{"role": "user", "content": "When?"}]
    with serving(reply) as server, asked(server.url) as endpoint:
        found = OpenAICompatible(endpoint, "m").chat(messages, temperature=0)
    assert found[:3] == ("Nine.", "stop", (3, 2))
    assert server.paths == ["/v1/chat/completions"]
    assert server.bodies == [{"model": "m", "messages": messages, "temperature": 0}]


@pytest.mark.parametrize(
    "value",
    [{}, [], {"choices": []}, {"choices": ["text"]}, said(None), said(["part"]), "text", None],
)
def test_anything_else_is_no_completion(value: Any) -> None:
    """An error in JSON with status 200, for instance."""
    with (
        serving(Reply(value)) as server,
        asked(server.url) as endpoint,
        pytest.raises(BadReply),
    ):
        OpenAICompatible(endpoint, "m").chat([])


def row(place: Any, *numbers: Any) -> dict[str, Any]:
    """Return one embedding."""
    return {"index": place, "embedding": list(numbers)}


def test_vectors_come_in_the_order_of_the_texts() -> None:
    """Whatever order the server has."""
    reply = Reply({"data": [row(1, 0.0, 1), row(0, 1, 0.5)]})
    with serving(reply) as server, asked(server.url) as endpoint:
        assert OpenAICompatible(endpoint, "m").embed(["a", "b"]) == [[1, 0.5], [0.0, 1]]
    assert server.bodies == [{"model": "m", "input": ["a", "b"]}]


@pytest.mark.parametrize(
    "data",
    [
        [],
        [row(0, 1.0)],
        [row(0, 1.0), row(2, 1.0)],
        [row(0, 1.0), row(1, 1.0, 2.0)],
        [row(0, "x"), row(1, 1.0)],
        [row("0", 1.0), row(1, 1.0)],
        [row([0], 1.0), row(1, 1.0)],
        [row(False, 1.0), row(1, 1.0)],
        [row(0, True), row(1, 1.0)],
        [row(0), row(1, 1.0)],
        ["text", {"index": 1}],
        None,
    ],
)
def test_anything_else_is_no_embedding(data: Any) -> None:
    """One too few, of another length, of texts."""
    with (
        serving(Reply({"data": data})) as server,
        asked(server.url) as endpoint,
        pytest.raises(BadReply),
    ):
        OpenAICompatible(endpoint, "m").embed(["a", "b"])


def test_a_completion_says_more_where_the_server_does() -> None:
    """Cached tokens, the system's fingerprint, log probabilities, its tries; that it declined."""
    logprobs = [{"token": "yes", "logprob": -0.1, "top_logprobs": []}]
    more = {"system_fingerprint": "fp_1", "usage": {"prompt_tokens_details": {"cached_tokens": 7}}}
    given = Reply({**said("yes", logprobs={"content": logprobs}), **more})
    with serving(Reply(status=503, value={}), given) as server, asked(server.url) as endpoint:
        model = OpenAICompatible(endpoint, "m")
        found = model.chat([])
    assert (found.cached, found.fingerprint, found.refused) == (7, "fp_1", False)
    assert (list(found.logprobs), found.attempts) == (logprobs, 2)
    assert model.name == f'["{server.url}", "m"]'
    declined = {"choices": [{"message": {"content": None, "refusal": "I cannot."}}]}
    with serving(Reply(declined)) as server, asked(server.url) as endpoint:
        found = OpenAICompatible(endpoint, "m").chat([])
    assert (found.text, found.refused) == ("", True)
