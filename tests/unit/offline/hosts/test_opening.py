"""Every kind of host has one way to be named, and what is wrong is said before anybody is asked."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.hosts.assistants import Assistant
from guardrail_offline.hosts.chat import Completion
from guardrail_offline.hosts.custom import FunctionChat, TemplateChat
from guardrail_offline.hosts.errors import BadReply, HostUnavailable, SchemaUnsupported
from guardrail_offline.hosts.ollama import OllamaHost
from guardrail_offline.hosts.openai_compatible import OpenAICompatible
from guardrail_offline.hosts.opening import (
    HostAddress,
    HostChoice,
    open_chat,
    open_embedding,
    parse_address,
    read_host_settings,
)
from guardrail_service.errors import ConfigurationError, MissingExtra
from tests.unit.offline.hosts.server import Reply, serving

SAID = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "When?"}]


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("https://host/v1", None, HostAddress("openai", "https://host/v1")),
        ("openai+http://host/v1", None, HostAddress("openai", "http://host/v1")),
        ("http://host:11434", "ollama", HostAddress("ollama", "http://host:11434")),
        ("ollama+http://host:11434", "ollama", HostAddress("ollama", "http://host:11434")),
        (
            "azure+https://n.openai.azure.com?api-version=2024-06-01", None,
            HostAddress("azure", "https://n.openai.azure.com", {"api-version": "2024-06-01"}),
        ),
        ("assistants+https://host/v1", None, HostAddress("assistants", "https://host/v1")),
        ("bedrock:eu-west-1", None, HostAddress("bedrock", "eu-west-1")),
        ("eu-west-1", "bedrock", HostAddress("bedrock", "eu-west-1")),
        (
            "bedrock-rag:eu-west-1?knowledge_base=KB1", None,
            HostAddress("bedrock-rag", "eu-west-1", {"knowledge_base": "KB1"}),
        ),
        (
            "bedrock+http://localhost:4566?region=eu-west-1", None,
            HostAddress("bedrock", "http://localhost:4566", {"region": "eu-west-1"}),
        ),
        ("service.json", None, HostAddress("template", "service.json")),
        ("python:pkg.mod:f", None, HostAddress("python", "pkg.mod:f")),
        ("https://host/v1/models.json", None, HostAddress("openai", "https://host/v1/models.json")),
    ],
)  # fmt: skip
def test_an_address_says_its_kind(text: str, kind: str | None, found: HostAddress) -> None:
    """Or the option beside it does."""
    assert parse_address(text, kind) == found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"address": "https://host/v1", "kind": "olama"}, "--judge-kind.*ollama"),
        ({"address": "ollama+http://h", "kind": "azure"}, "--judge-kind.*as the address says"),
        ({"address": "https://host/v1"}, "--judge-model: found nothing"),
        ({"address": "azure+https://host"}, "--judge-model.*deployment"),
        ({"address": "assistants+https://host"}, "--judge-model.*asst_"),
        ({"address": "azure+https://host?version=1", "model": "m"}, "api-version"),
        ({"address": "bedrock:r", "model": "m", "key_variable": "K"}, "AWS_ACCESS_KEY_ID"),
        ({"address": "bedrock-rag:r", "model": "m"}, "knowledge_base=ID"),
        ({"address": "host", "model": "m"}, "address"),
        ({"address": "python:json:none"}, "--judge.*AttributeError"),
        ({"address": "none.json"}, "none.json"),
        ({"address": "python:json:dumps", "settings": {"a": 1}}, "--judge-settings"),
        (
            {"address": "assistants+https://h", "model": "a", "settings": {"seed": 1}},
            "--judge-settings.*thread_kwargs and run_kwargs",
        ),
        ({"address": "https://h", "model": "m", "key_variable": "NOT_SET_HERE"}, "NOT_SET_HERE"),
    ],
    ids=str,
)
def test_what_cannot_be_opened_names_its_option(options: dict[str, Any], message: str) -> None:
    """A judge's options are called otherwise than a target's."""
    with pytest.raises(ConfigurationError, match=message):
        open_chat(HostChoice(**options, option="--judge"))


def test_each_kind_opens_its_host(tmp_path: Path) -> None:
    """Nobody is asked yet."""
    path = tmp_path / "service.json"
    path.write_text(json.dumps({"url": "http://h.test", "body": {}, "answer": "a"}))
    opened = {
        "https://h/v1": OpenAICompatible, "azure+https://h": OpenAICompatible,
        "ollama+http://h": OllamaHost, "assistants+https://h": Assistant, str(path): TemplateChat,
        f"python:{__name__}:here": FunctionChat,
    }  # fmt: skip
    names = set()
    for address, class_ in opened.items():
        host = open_chat(HostChoice(address, model="m"))
        assert type(host) is class_
        names.add(host.name)
    assert len(names) == len(opened)
    with pytest.raises(ConfigurationError, match="openai, azure, ollama"):
        open_embedding(HostChoice("assistants+https://h", model="m"))


def test_bedrock_without_boto3_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtra, match=r"rag-guardrail-offline\[bedrock\]"):
        open_chat(HostChoice("bedrock:eu-west-1", model="m"))


def test_settings_are_sent_as_they_are_and_belong_to_the_name(tmp_path: Path) -> None:
    """Over what is asked; null takes an option out."""
    path = tmp_path / "settings.json"
    path.write_text('{"temperature": null, "user": "me", "max_tokens": 7}')
    reply = {"choices": [{"message": {"content": "Nine."}}]}
    with serving(Reply(reply)) as server:
        settings = read_host_settings(path, "--target-settings")
        host = open_chat(HostChoice(server.url, model="m", settings=settings))
        host.chat(SAID, temperature=0, max_tokens=99)
        assert host.name != open_chat(HostChoice(server.url, model="m")).name
    assert server.bodies == [{"model": "m", "messages": SAID, "user": "me", "max_tokens": 7}]
    path.write_text("[]")
    with pytest.raises(ConfigurationError, match="--target-settings"):
        read_host_settings(path, "--target-settings")
    assert read_host_settings(None, "--target-settings") == {}


def here(messages: list[Any], temperature: float = 1.0) -> str:
    """Answer as a judge would, for the tests here."""
    return f"{messages[-1]['content']} {temperature}"


def tells(messages: list[Any], **options: Any) -> dict[str, Any]:
    """Tell the options and tokens."""
    return {"text": json.dumps(options), "tokens": [3, 4], "finish": "stop"}


def fails(messages: list[Any]) -> str:
    """Fail with a text that nobody may see."""
    raise ValueError(messages)


def test_a_function_gets_the_options_it_takes() -> None:
    """Its text, or text, tokens and end, are the message."""
    found = FunctionChat(here, "f").chat(SAID, temperature=0, seed=1)
    assert found.text == "When? 0"
    found = FunctionChat(tells, "f").chat(SAID, seed=1, response_format={})
    assert found[:3] == ('{"seed": 1, "response_format": {}}', "stop", (3, 4))
    with pytest.raises(SchemaUnsupported):
        FunctionChat(here, "f").chat(SAID, response_format={})
    with pytest.raises(HostUnavailable, match=r"raised ValueError$"):
        FunctionChat(fails, "f").chat(SAID)
    with pytest.raises(BadReply):
        FunctionChat(lambda messages: 3, "f").chat(SAID)


def test_a_template_has_marks_for_messages(tmp_path: Path) -> None:
    """Their list, or what the system and the others say."""
    body = {"m": "{messages}", "s": "{system}", "p": "Q: {prompt}"}
    path = tmp_path / "service.json"
    with serving(Reply({"a": ["Nine."]})) as server:
        path.write_text(json.dumps({"url": server.url, "body": body, "answer": "a.0"}))
        host = open_chat(HostChoice(str(path)))
        found: Completion = host.chat(SAID, temperature=0)
        with pytest.raises(SchemaUnsupported):
            host.chat(SAID, response_format={"type": "json_object"})
    assert (found.text, found.attempts) == ("Nine.", 1)
    assert server.bodies == [{"m": SAID, "s": "Be short.", "p": "Q: When?"}]
