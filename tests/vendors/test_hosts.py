"""The real boto3 asks Bedrock's protocols of a server on this machine, and its errors are told."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from guardrail_offline.hosts import errors
from guardrail_offline.hosts.endpoint import Patience
from guardrail_offline.hosts.opening import HostChoice, open_chat
from guardrail_offline.hosts.targets import Question, open_target
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.hosts.server import Reply, Server, serving

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
DATA = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
SAID = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "When?"}]
SCHEMA = {"type": "object", "properties": {"verdict": {"type": "integer"}}}
FORM = {"type": "json_schema", "json_schema": {"name": "v", "schema": SCHEMA}}
MESSAGE = {"message": {"role": "assistant", "content": [{"text": "Nine."}]}}
ANSWER = {
    "output": MESSAGE, "stopReason": "end_turn", "metrics": {"latencyMs": 5},
    "usage": {"inputTokens": 12, "outputTokens": 3, "totalTokens": 15, "cacheReadInputTokens": 8},
}  # fmt: skip
NO_WAIT = Patience(timeout_s=20, retries=0)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "made-up")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up-secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def address(server: Server, kind: str = "bedrock", more: str = "") -> str:
    """Return a local server as the address of a kind."""
    return f"{kind}+{server.url.removesuffix('/v1')}?region=eu-west-1{more}"


def test_converse_is_asked_with_all_that_it_has() -> None:
    """System, image, schema, settings; tokens and cached ones come back."""
    parts = [{"type": "text", "text": "See?"}, {"type": "image_url", "image_url": {"url": DATA}}]
    with serving(Reply(ANSWER)) as server:
        settings = {"requestMetadata": {"team": "rag"}}
        choice = HostChoice(address(server), model="anthropic.claude", settings=settings)
        host = open_chat(choice)
        options = {"temperature": 0, "max_tokens": 9, "seed": 42, "stop": "x"}
        messages = [SAID[0], {"role": "user", "content": parts}]
        found = host.chat(messages, **options, response_format=FORM)
    assert found[:3] == ("Nine.", "stop", (12, 3))
    assert (found.cached, found.attempts, found.refused) == (8, 1, False)
    assert server.paths == ["/model/anthropic.claude/converse"]
    schema = {"schema": json.dumps(SCHEMA), "name": "v"}
    assert server.bodies == [
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"text": "See?"},
                        {"image": {"format": "png", "source": {"bytes": DATA.partition(",")[2]}}},
                    ],
                }
            ],
            "system": [{"text": "Be short."}],
            "inferenceConfig": {"maxTokens": 9, "temperature": 0, "stopSequences": ["x"]},
            "outputConfig": {
                "textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}
            },
            "requestMetadata": {"team": "rag"},
        }
    ]


def test_a_knowledge_base_answers_with_what_it_cites() -> None:
    """As a target: the lab's passages are not sent, and its own replace them."""
    cited = [{"content": {"text": "It opens at nine."}}, {"content": {"text": "It opens at nine."}}]
    answer = {"output": {"text": "Nine."}, "sessionId": "s",
              "citations": [{"retrievedReferences": cited}]}  # fmt: skip
    with serving(Reply(answer)) as server:
        settings = {"retrievalConfiguration": {"vectorSearchConfiguration": {"numberOfResults": 3}}}
        where = address(server, "bedrock-rag", "&knowledge_base=KB12345678")
        target = open_target(HostChoice(where, model="arn:model", settings=settings))
        found = target.ask(Question("When?", ("not sent",)))
    assert found[:2] == ("Nine.", ("It opens at nine.",))
    base = {"knowledgeBaseId": "KB12345678", "modelArn": "arn:model", **settings}
    assert server.bodies == [
        {
            "input": {"text": "When?"},
            "retrieveAndGenerateConfiguration": {
                "type": "KNOWLEDGE_BASE",
                "knowledgeBaseConfiguration": base,
            },
        }
    ]


def refused(code: str, message: str, status: int = 400) -> Reply:
    """Return an error as Bedrock gives it."""
    return Reply({"message": message}, status, {"x-amzn-ErrorType": code})


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused("UnrecognizedClientException", "bad token", 403), errors.WrongKey),
        (refused("AccessDeniedException", "no access", 403), errors.WrongKey),
        (refused("ValidationException", "The provided model identifier is invalid."),
         errors.UnknownModel),
        (refused("ResourceNotFoundException", "none", 404), errors.UnknownModel),
        (refused("ValidationException", "Input is too long for requested model."),
         errors.ContextTooLong),
        (refused("ValidationException", "malformed: the secret text"), errors.HostRefused),
        (refused("ThrottlingException", "slow down", 429), errors.RateLimited),
        (refused("ModelTimeoutException", "slow", 408), errors.TimedOut),
        (refused("InternalServerException", "oops", 500), errors.HostUnavailable),
        (Reply({"output": {"message": {"role": "assistant", "content": []}}}), errors.BadReply),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)  # fmt: skip
def test_boto3s_errors_are_ours(reply: Reply, error: type[errors.HostError]) -> None:
    """What is said in them is repeated nowhere."""
    with serving(reply) as server:
        host = open_chat(HostChoice(address(server), model="m", limits=NO_WAIT))
        with pytest.raises(error) as found:
            host.chat(SAID)
    assert type(found.value) is error
    assert "secret" not in str(found.value)


def test_nobody_there_bad_settings_and_no_keys_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Before or after a request, without boto3's own words."""
    nowhere = HostChoice("bedrock+http://127.0.0.1:9?region=r", model="m", limits=NO_WAIT)
    with pytest.raises(errors.Unreachable):
        open_chat(nowhere).chat(SAID)
    with serving(Reply(ANSWER)) as server:
        wrong = HostChoice(address(server), model="m", settings={"nothing": 1})
        with pytest.raises(errors.BadReply, match="settings that boto3 refuses"):
            open_chat(wrong).chat(SAID)
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        with pytest.raises(errors.WrongKey):
            open_chat(HostChoice(address(server), model="m")).chat(SAID)
        assert server.bodies == []
    with pytest.raises(ConfigurationError, match="bedrock:eu-west-1"):
        open_chat(HostChoice("bedrock:", model="m"))


def test_a_busy_bedrock_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """By boto3, as often as the limits say; the tries are counted."""
    busy = refused("ThrottlingException", "slow down", 429)
    with serving(busy, Reply(ANSWER)) as server:
        host = open_chat(HostChoice(address(server), model="m", limits=Patience(20, 2)))
        assert host.chat(SAID).attempts == 2


@pytest.fixture(scope="module")
def ollama() -> Iterator[Server]:
    """A server that answers Ollama's own client and ours alike."""
    said = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True,
            "message": {"role": "assistant", "content": "Nine."}, "done_reason": "stop",
            "prompt_eval_count": 4, "eval_count": 2}  # fmt: skip
    with serving(Reply(said)) as server:
        yield server


def test_ollamas_own_client_sends_what_ours_does(ollama: Server) -> None:
    """Messages, schema and options lie in the same places."""
    from ollama import Client

    address = ollama.url.removesuffix("/v1")
    options = {"temperature": 0, "num_predict": 9}
    Client(address).chat(model="m", messages=SAID, format=SCHEMA, options=options)
    host = open_chat(HostChoice(f"ollama+{address}", model="m"))
    host.chat(SAID, temperature=0, max_tokens=9, response_format=FORM)
    theirs, ours = ollama.bodies
    assert {name: ours[name] for name in theirs if name != "tools"} == {
        name: value for name, value in theirs.items() if name != "tools"
    }
    assert ollama.paths == ["/api/chat"] * 2
