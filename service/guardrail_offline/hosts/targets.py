"""Systems under test: each answers a question, with or without passages that are given to it."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from guardrail_offline.hosts.endpoint import Endpoint, Patience
from guardrail_offline.hosts.errors import BadReply, HostUnavailable
from guardrail_offline.hosts.openai_compatible import OpenAICompatible
from guardrail_service.errors import ConfigurationError

PYTHON = "python:"
PROMPT = (
    "Answer the question from the passages only, in the language of the question. "
    "If they do not hold the answer, say so."
)


class Question(NamedTuple):
    """A question to a target; `contexts` is None where it has to find passages itself."""

    text: str
    contexts: tuple[str, ...] | None = None


class Answer(NamedTuple):
    """A target's answer.

    Attributes:
        text: May be empty.
        contexts: The passages it used, where it says so; None leaves those of the lab.
        seconds: It took so long, without waiting for a turn.
        ids: Of its passages, in order; None for one without.
    """

    text: str
    contexts: tuple[str, ...] | None = None
    seconds: float | None = None
    ids: tuple[str | None, ...] = ()


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
            contexts = _texts(used, self.name)
            return Answer(_text(value.get("answer"), self.name), contexts, seconds, _ids(used))
        raise BadReply(self.name, type(value).__name__, "a text, or answer and contexts")


@dataclass(frozen=True)
class OpenAITarget:
    """A model behind an OpenAI-compatible server that is given the question and the passages."""

    model: OpenAICompatible
    prompt: str = PROMPT
    options: Mapping[str, Any] = field(default_factory=lambda: {"temperature": 0})

    @property
    def name(self) -> str:
        """Return address, model and prompt."""
        return json.dumps([self.model.endpoint.url, self.model.model, self.prompt])

    def ask(self, question: Question) -> Answer:
        """Return the model's answer."""
        passages = [f"[{n}] {text}" for n, text in enumerate(question.contexts or (), start=1)]
        asked = "\n\n".join([*passages, f"Question: {question.text}"])
        messages = [{"role": "system", "content": self.prompt}] if passages else []
        messages.append({"role": "user", "content": asked})
        said = self.model.chat(messages, **self.options)
        return Answer(said.text, None, said.seconds)


@dataclass(frozen=True)
class TemplateTarget:
    """Any service that takes JSON and gives JSON.

    Attributes:
        endpoint: Where it is.
        body: What is sent: `{question}` and `{contexts}` in its texts are filled in; a text that is
            only `{contexts}` becomes the list.
        answer: Where the answer is in the reply: names and places with dots, `result.0.text`.
        contexts: Where the passages are, if it says which it used.
    """

    endpoint: Endpoint
    body: Mapping[str, Any]
    answer: str
    contexts: str | None = None

    @property
    def name(self) -> str:
        """Return address and template."""
        return json.dumps([self.endpoint.url, self.body, self.answer, self.contexts])

    def ask(self, question: Question) -> Answer:
        """Return what stands in the reply at the places that were named."""
        reply = self.endpoint.post(filled(self.body, question))
        host = self.endpoint.host
        given = None if self.contexts is None else _found(reply.value, self.contexts, host)
        text = _text(_found(reply.value, self.answer, host), host)
        return Answer(text, _texts(given, host), reply.seconds, _ids(given))


def filled(template: Any, question: Question) -> Any:
    """Return a template with the question and the passages in it; it is never evaluated."""
    if isinstance(template, Mapping):
        return {key: filled(value, question) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, question) for value in template]
    if template == "{contexts}":
        return list(question.contexts or ())
    if not isinstance(template, str):
        return template
    parts = {"{question}": question.text, "{contexts}": "\n\n".join(question.contexts or ())}
    out, rest = "", template
    while rest:
        at = {mark: rest.find(mark) for mark in parts if mark in rest}
        if not at:
            return out + rest
        mark = min(at, key=at.__getitem__)
        out, rest = out + rest[: at[mark]] + parts[mark], rest[at[mark] + len(mark) :]
    return out


def open_target(
    spec: str, *, model: str | None, key_variable: str | None, limits: Patience
) -> TargetSystem:
    """Return the target that a command names.

    Args:
        spec: `python:MODULE:FUNCTION`, a template file (.json), or the base address of an
            OpenAI-compatible server.
        model: Of the server.
        key_variable: Environment variable with the server's key.
        limits: Time, tries and pace.

    Raises:
        ConfigurationError: If there is no such target.
    """
    if spec.startswith(PYTHON):
        return CallableTarget(_function(spec.removeprefix(PYTHON)), spec)
    if spec.endswith(".json"):
        return _template(Path(spec), key_variable, limits)
    endpoint = Endpoint(spec, key_variable, limits=limits)
    if not model:
        raise ConfigurationError("--target-model", "nothing", "the model's name on the server")
    return OpenAITarget(OpenAICompatible(endpoint, model))


def _function(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    expected = f"{PYTHON}MODULE:FUNCTION that can be imported from here"
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError("--target", type(error).__name__, expected) from error
    if not callable(found):
        raise ConfigurationError("--target", type(found).__name__, expected)
    return found  # type: ignore[no-any-return]


_TEMPLATE_KEYS = {"url", "headers", "body", "answer", "contexts"}


def _template(path: Path, key_variable: str | None, limits: Patience) -> TemplateTarget:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        expected = "a template: JSON with url, body and answer"
        raise ConfigurationError(str(path), type(error).__name__, expected) from error
    if not isinstance(content, dict) or not {"url", "body", "answer"} <= set(content):
        raise ConfigurationError(str(path), "another object", "the keys url, body and answer")
    if unknown := sorted(set(content) - _TEMPLATE_KEYS):
        known = ", ".join(sorted(_TEMPLATE_KEYS))
        raise ConfigurationError(str(path), f"the key {unknown[0]!r}", f"one of {known}")
    if not isinstance(content["body"], dict) or not _are_texts(content):
        expected = "an object as body, and texts as url, answer, contexts and headers"
        raise ConfigurationError(str(path), "values of other kinds", expected)
    endpoint = Endpoint(content["url"], key_variable, content.get("headers", {}), limits)
    return TemplateTarget(endpoint, content["body"], content["answer"], content.get("contexts"))


def _are_texts(content: Mapping[str, Any]) -> bool:
    headers = content.get("headers", {})
    if not isinstance(headers, dict):
        return False
    given = [content[key] for key in ("url", "answer", "contexts") if key in content]
    return all(isinstance(value, str) for value in (*given, *headers.values()))


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


def _found(value: Any, path: str, host: str) -> Any:
    for key in path.split("."):
        if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, Mapping) and key in value:
            value = value[key]
        else:
            raise BadReply(host, "a reply of another shape", f"a value at {path}")
    return value


def _text(value: Any, host: str) -> str:
    if not isinstance(value, str):
        raise BadReply(host, type(value).__name__, "the answer as a text")
    return value


def _texts(value: Any, host: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    rows: Sequence[Any] = value if isinstance(value, list | tuple) else (None,)
    found = [row.get("text") if isinstance(row, Mapping) else row for row in rows]
    texts = [text for text in found if isinstance(text, str)]
    if len(texts) != len(rows):
        raise BadReply(host, "other passages", "a list of texts, or of objects with `text`")
    return tuple(texts)


def _ids(value: Any) -> tuple[str | None, ...]:
    """Return the ids of passages that are objects with `id`; none where no passage has one."""
    rows = value if isinstance(value, list | tuple) else ()
    found = [row.get("id") if isinstance(row, Mapping) else None for row in rows]
    names = tuple(str(one) if isinstance(one, str | int) else None for one in found)
    return names if any(name is not None for name in names) else ()
