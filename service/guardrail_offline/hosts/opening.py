"""Opens the host that a command or a setting names, the same way for judges and for targets.

    https://host/v1                          OpenAI-compatible: h2oGPT, vLLM, llama.cpp, LiteLLM ...
    azure+https://NAME.openai.azure.com      Azure OpenAI; the model is the deployment
    ollama+http://localhost:11434            Ollama
    llamacpp+http://localhost:8080           llama.cpp, which also gives log probabilities of texts
    assistants+https://api.openai.com/v1     OpenAI Assistants; the model is the assistant's id
    bedrock:REGION                           Amazon Bedrock, Converse
    bedrock-rag:REGION?knowledge_base=ID     Amazon Bedrock, RetrieveAndGenerate
    service.json                             any JSON service, by a template
    python:MODULE:FUNCTION                   a function

The kind may also be said beside the address. `bedrock+https://ADDRESS` is another address than
AWS's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl

from guardrail_offline.hosts.assistants import HEADERS, SETTINGS, Assistant
from guardrail_offline.hosts.aws_bedrock import AwsClient, BedrockConverse, BedrockKnowledgeBase
from guardrail_offline.hosts.chat import ChatHost, EmbeddingHost
from guardrail_offline.hosts.custom import (
    PYTHON,
    FunctionChat,
    TemplateChat,
    function_at,
    read_template,
)
from guardrail_offline.hosts.endpoint import Endpoint, Patience
from guardrail_offline.hosts.ollama import OllamaHost
from guardrail_offline.hosts.openai_compatible import OpenAICompatible
from guardrail_service.errors import ConfigurationError, choices

HostKind = Literal[
    "openai", "azure", "ollama", "llamacpp", "assistants", "bedrock", "bedrock-rag", "template",
    "python",
]  # fmt: skip
KINDS: tuple[HostKind, ...] = get_args(HostKind)
EMBEDDING: tuple[HostKind, ...] = ("openai", "azure", "ollama", "llamacpp")
"""Kinds that embed."""
AZURE_VERSION = "2024-10-21"
"""The `api-version` that is asked for where the address names none."""
_QUERIES: Mapping[HostKind, frozenset[str]] = {
    "azure": frozenset({"api-version"}),
    "llamacpp": frozenset({"start"}),
    "bedrock": frozenset({"region"}),
    "bedrock-rag": frozenset({"region", "knowledge_base"}),
}
_AWS = ("bedrock", "bedrock-rag")
KEYLESS: tuple[HostKind, ...] = ("bedrock", "bedrock-rag", "python")
"""Kinds that take no key of ours."""
SERVERS: tuple[HostKind, ...] = tuple(kind for kind in KINDS if kind not in (*KEYLESS, "template"))
"""Kinds whose opening runs nothing and reads no file; the others do before anybody is asked."""
_WITHOUT_SETTINGS = ("template", "python")


@dataclass(frozen=True)
class HostAddress:
    """A host as it is named, taken apart.

    Attributes:
        kind: Its protocol.
        place: Address, region, file or function.
        query: What stands behind a question mark.
    """

    kind: HostKind
    place: str
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HostChoice:
    """A host that somebody chose. Holds no key, and can be pickled.

    Attributes:
        address: As above.
        kind: Where the address does not say it; None for what it says.
        model: On the host.
        key_variable: Environment variable with the key; not for AWS, which has its own.
        settings: H2O's advanced settings: fields of every request, sent as they are.
        limits: Time, tries and pace.
        option: The option that named it, for messages: `--target`, `--judge`.
        model_option: The option of the model, where it is not that one with `-model` behind it.
    """

    address: str
    kind: str | None = None
    model: str | None = None
    key_variable: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    limits: Patience = field(default_factory=Patience)
    option: str = "--target"
    model_option: str | None = None

    @property
    def parsed(self) -> HostAddress:
        """Return the address taken apart.

        Raises:
            ConfigurationError: If it is none, or says another kind.
        """
        return parse_address(self.address, self.kind, self.option)


def served_choice(
    option: str, url: str, model: str | None, model_option: str | None = None
) -> HostChoice:
    """Return a served model that options name, with the key of `GUARDRAIL_<OPTION>_API_KEY`.

    Args:
        option: `--language-model` or `--embeddings`.
        url: Its address.
        model: Its name there.
        model_option: As in `HostChoice`.
    """
    variable = f"GUARDRAIL_{option.removeprefix('--').replace('-', '_').upper()}_API_KEY"
    key = variable if os.environ.get(variable) else None
    return HostChoice(url, None, model, key, option=option, model_option=model_option)


def parse_address(text: str, kind: str | None = None, option: str = "--target") -> HostAddress:
    """Return an address taken apart.

    Args:
        text: As the head of this file shows.
        kind: Of a bare address; None for `openai`.
        option: For messages.

    Raises:
        ConfigurationError: If there is no such kind, or address and kind contradict each other.
    """
    if kind is not None and kind not in KINDS:
        raise ConfigurationError(f"{option}-kind", repr(kind), choices(kind, set(KINDS), "kind"))
    said, place = _said(text)
    if said is not None and kind not in (None, said):
        raise ConfigurationError(f"{option}-kind", repr(kind), f"{said}, as the address says")
    named = next((one for one in KINDS if one == kind), None)
    found: HostKind = said or named or "openai"
    rest, _, query = place.partition("?") if found in _QUERIES else (place, "", "")
    given = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(set(given) - _QUERIES.get(found, frozenset())):
        known = ", ".join(sorted(_QUERIES[found]))
        raise ConfigurationError(option, f"?{unknown[0][:40]}=", f"one of {known}")
    return HostAddress(found, rest, given)


def open_chat(choice: HostChoice) -> ChatHost:
    """Return the chat host that was chosen.

    Raises:
        ConfigurationError: If it cannot be: no such kind, no model, no key where one is named.
        MissingExtra: If it is Bedrock and boto3 is not installed.
    """
    found = choice.parsed
    if found.kind in _WITHOUT_SETTINGS and choice.settings:
        raise ConfigurationError(f"{choice.option}-settings", "settings", f"none for {found.kind}")
    if found.kind == "python":
        return FunctionChat(function_at(found.place, choice.option), PYTHON + found.place)
    if found.kind == "template":
        return TemplateChat(read_template(Path(found.place), choice.key_variable, choice.limits))
    if found.kind in _AWS:
        return _bedrock(choice, found)
    if found.kind == "assistants":
        return _assistant(choice, found)
    return _with_settings(_server(choice, found), choice.settings)


def read_host_settings(path: Path | None, option: str) -> Mapping[str, Any]:
    """Return the settings of a file; none if there is no file.

    Raises:
        ConfigurationError: If it holds no JSON object.
    """
    if path is None:
        return {}
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(option, type(error).__name__, "a JSON file") from error
    if not isinstance(content, dict):
        raise ConfigurationError(option, type(content).__name__, "a JSON object")
    return content


def open_embedding(choice: HostChoice) -> EmbeddingHost:
    """Return the embedding host that was chosen.

    Raises:
        ConfigurationError: If it cannot be, or hosts of its kind do not embed.
    """
    found = choice.parsed
    if found.kind not in EMBEDDING:
        expected = f"a host that embeds: {', '.join(EMBEDDING)}"
        raise ConfigurationError(choice.option, found.kind, expected)
    return _server(choice, found)


@dataclass(frozen=True)
class WithSettings:
    """A chat host whose every request has a user's settings, over what is asked."""

    host: ChatHost
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Return the host's name and the settings: another answer may come."""
        return f"{self.host.name} {sorted(self.settings.items())}"

    @property
    def model(self) -> str:
        """Return the model's name."""
        return self.host.model

    def chat(self, messages: Any, **options: Any) -> Any:
        """Return the next message; a setting of None takes an option out."""
        given = {**options, **self.settings}
        return self.host.chat(messages, **{k: v for k, v in given.items() if v is not None})


def _with_settings(host: ChatHost, settings: Mapping[str, Any]) -> ChatHost:
    return WithSettings(host, settings) if settings else host


def _said(text: str) -> tuple[HostKind | None, str]:
    """Return the kind that an address says, and the rest of it."""
    for kind in KINDS:
        if text.startswith((f"{kind}+http://", f"{kind}+https://")):
            return kind, text[len(kind) + 1 :]
        if kind in _AWS and text.startswith(f"{kind}:"):
            return kind, text[len(kind) + 1 :]
    if text.startswith(PYTHON):
        return "python", text.removeprefix(PYTHON)
    return ("template" if text.endswith(".json") and "://" not in text else None), text


def _server(choice: HostChoice, found: HostAddress) -> OpenAICompatible | OllamaHost:
    key, limits = choice.key_variable, choice.limits
    if found.kind == "azure":
        model = _model(choice, "the deployment's name")
        url = f"{found.place.rstrip('/')}/openai/deployments/{model}"
        query = {"api-version": AZURE_VERSION, **found.query}
        endpoint = Endpoint(url, key, limits=limits, key_header="api-key", query=query)
        return OpenAICompatible(endpoint, model, in_path=True)
    endpoint, model = server_endpoint(choice, found)
    if found.kind == "ollama":
        return OllamaHost(endpoint, model)
    return OpenAICompatible(endpoint, model)


def server_endpoint(choice: HostChoice, found: HostAddress) -> tuple[Endpoint, str]:
    """Return the endpoint and the model's name of a server.

    Raises:
        ConfigurationError: If the address cannot be used, or no model is named.
    """
    url = found.place.rstrip("/") + "/v1" if found.kind == "llamacpp" else found.place
    endpoint = Endpoint(url, choice.key_variable, limits=choice.limits)
    return endpoint, _model(choice, "the model's name on the server")


def _assistant(choice: HostChoice, found: HostAddress) -> Assistant:
    if unknown := sorted(set(choice.settings) - set(SETTINGS)):
        known = " and ".join(SETTINGS)
        raise ConfigurationError(f"{choice.option}-settings", repr(unknown[0])[:60], known)
    model = _model(choice, "the assistant's id, asst_...")
    endpoint = Endpoint(found.place, choice.key_variable, HEADERS, choice.limits)
    return Assistant(endpoint, model, choice.settings)


def _bedrock(choice: HostChoice, found: HostAddress) -> BedrockConverse | BedrockKnowledgeBase:
    if choice.key_variable is not None:
        expected = "none: AWS's own variables (AWS_ACCESS_KEY_ID ...), profile or role"
        raise ConfigurationError("--key-env", choice.key_variable, expected)
    is_address = "://" in found.place
    region = found.query.get("region") or (None if is_address else found.place or None)
    url = found.place if is_address else None
    if found.kind == "bedrock":
        client = AwsClient("bedrock-runtime", region, url, choice.limits)
        return BedrockConverse(client, _model(choice, "a model id or ARN"), choice.settings)
    base = found.query.get("knowledge_base")
    if not base:
        raise ConfigurationError(choice.option, "no knowledge base", "?knowledge_base=ID")
    client = AwsClient("bedrock-agent-runtime", region, url, choice.limits)
    return BedrockKnowledgeBase(client, base, _model(choice, "a model's ARN"), choice.settings)


def _model(choice: HostChoice, expected: str) -> str:
    if not choice.model:
        option = choice.model_option or f"{choice.option}-model"
        raise ConfigurationError(option, "nothing", expected)
    return choice.model
