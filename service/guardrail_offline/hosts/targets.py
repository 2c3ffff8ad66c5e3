"""Systems under test: each answers a question, with or without passages that are given to it."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from guardrail_offline.datasets.images import Image, image_part
from guardrail_offline.hosts.chat import ChatHost, Completion
from guardrail_offline.hosts.custom import (
    PYTHON,
    Template,
    function_at,
    ids_of,
    read_template,
    text_of,
    texts_of,
)
from guardrail_offline.hosts.errors import BadReply, HostUnavailable
from guardrail_offline.hosts.openai_compatible import OpenAICompatible
from guardrail_offline.hosts.opening import HostChoice, open_chat
from guardrail_service.errors import ConfigurationError

SEARCHING = ("assistants", "bedrock-rag")
"""Kinds of hosts that find passages by themselves."""
PROMPT = (
    "Answer the question from the passages only, in the language of the question. "
    "If they do not hold the answer, say so."
)


class Question(NamedTuple):
    """A question to a target.

    Attributes:
        text: May be empty.
        contexts: Passages to answer from; None where the target has to find some itself.
        images: That belong to the question or its passages.
    """

    text: str
    contexts: tuple[str, ...] | None = None
    images: tuple[Image, ...] = ()


class Answer(NamedTuple):
    """A target's answer.

    Attributes:
        text: May be empty.
        contexts: The passages it used, where it says so; None leaves those of the lab.
        seconds: It took so long, without waiting for a turn.
        ids: Of its passages, in order; None for one without.
        tokens: Prompt and completion tokens, where the host counts them.
        cached: How many prompt tokens it had cached, where it says.
        attempts: How often it was asked.
    """

    text: str
    contexts: tuple[str, ...] | None = None
    seconds: float | None = None
    ids: tuple[str | None, ...] = ()
    tokens: tuple[int, int] | None = None
    cached: int | None = None
    attempts: int = 1


class TargetSystem(Protocol):
    """A system under test. Several threads ask it at once."""

    @property
    def name(self) -> str:
        """Return a text that no other target has: answers of one are never taken for another's."""

    def ask(self, question: Question) -> Answer:
        """Return the answer, or raise a HostError."""


@dataclass(frozen=True)
class CallableTarget:
    """A Python function of the question, or of question and passages.

    It returns the answer as a text, or a mapping with `answer` and, if it searched, `contexts`:
    texts, or objects with `text` and `id`.
    """

    function: Callable[..., Any]
    name: str

    def ask(self, question: Question) -> Answer:
        """Return what the function returns."""
        started = time.monotonic()
        given = (question.text, question.contexts)[: _positions(self.function)]
        try:
            value = self.function(*given)
        except Exception as error:
            raise HostUnavailable(f"{self.name}: raised {type(error).__name__}") from error
        seconds = time.monotonic() - started
        if isinstance(value, str):
            return Answer(value, None, seconds)
        if isinstance(value, Mapping):
            used = value.get("contexts")
            contexts, text = texts_of(used, self.name), text_of(value.get("answer"), self.name)
            return Answer(text, contexts, seconds, ids_of(used))
        raise BadReply(self.name, type(value).__name__, "a text, or answer and contexts")


@dataclass(frozen=True)
class ChatTarget:
    """A model behind any chat host, given the question and the lab's passages.

    Attributes:
        host: Who is asked.
        prompt: The system message where there are passages.
        options: Of every request.
    """

    host: ChatHost
    prompt: str = PROMPT
    options: Mapping[str, Any] = field(default_factory=lambda: {"temperature": 0})

    @property
    def name(self) -> str:
        """Return host, model and prompt."""
        if isinstance(self.host, OpenAICompatible) and not self.host.in_path:
            return json.dumps([self.host.endpoint.url, self.host.model, self.prompt])
        return json.dumps([self.host.name, self.prompt])

    def ask(self, question: Question) -> Answer:
        """Return the model's answer."""
        passages = [f"[{n}] {text}" for n, text in enumerate(question.contexts or (), start=1)]
        asked = "\n\n".join([*passages, f"Question: {question.text}"])
        messages: list[dict[str, Any]] = []
        if passages:
            messages.append({"role": "system", "content": self.prompt})
        content: Any = asked
        if question.images:
            content = [{"type": "text", "text": asked}, *map(image_part, question.images)]
        messages.append({"role": "user", "content": content})
        return _answer(self.host.chat(messages, **self.options))


@dataclass(frozen=True)
class SearchingTarget:
    """A chat host that searches by itself: an assistant, a knowledge base. It is only asked."""

    host: ChatHost

    @property
    def name(self) -> str:
        """Return the host's name."""
        return self.host.name

    def ask(self, question: Question) -> Answer:
        """Return its answer, with the passages that it found."""
        return _answer(self.host.chat([{"role": "user", "content": question.text}]))


@dataclass(frozen=True)
class TemplateTarget:
    """Any service that takes JSON and gives JSON.

    Attributes:
        template: `{question}` and `{contexts}` in its texts are filled in; a text that is only
            `{contexts}` becomes the list.
    """

    template: Template

    @property
    def name(self) -> str:
        """Return address and template."""
        return self.template.name

    def ask(self, question: Question) -> Answer:
        """Return what stands in the reply at the places that were named."""
        contexts = list(question.contexts or ())
        return _answer(self.template.ask({"question": question.text, "contexts": contexts}))


def open_target(choice: HostChoice) -> TargetSystem:
    """Return the target that a command names.

    Raises:
        ConfigurationError: If there is no such target.
        MissingExtra: If it is Bedrock and boto3 is not installed.
    """
    found = choice.parsed
    if found.kind in ("python", "template") and choice.settings:
        raise ConfigurationError(f"{choice.option}-settings", "settings", f"none for {found.kind}")
    if found.kind == "python":
        return CallableTarget(function_at(found.place, choice.option), PYTHON + found.place)
    if found.kind == "template":
        path = Path(found.place)
        return TemplateTarget(read_template(path, choice.key_variable, choice.limits))
    host = open_chat(choice)
    return SearchingTarget(host) if found.kind in SEARCHING else ChatTarget(host)


def _answer(said: Completion) -> Answer:
    return Answer(
        said.text,
        said.contexts,
        said.seconds,
        said.context_ids,
        said.tokens,
        said.cached,
        said.attempts,
    )


def _positions(function: Callable[..., Any]) -> int:
    """Return how many of question and passages a function takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters):
        return 2
    return min(2, sum(one.kind in kinds for one in parameters))
