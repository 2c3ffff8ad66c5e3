"""Chat hosts of a user's own: any JSON service by a template, or a Python function."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guardrail_offline.datasets.images import split_content
from guardrail_offline.hosts.chat import Completion, Message
from guardrail_offline.hosts.endpoint import Endpoint, Patience
from guardrail_offline.hosts.errors import BadReply, HostUnavailable, SchemaUnsupported
from guardrail_service.errors import ConfigurationError

PYTHON = "python:"
_KEYS = {"url", "headers", "body", "answer", "contexts"}


@dataclass(frozen=True)
class Template:
    """Any service that takes JSON and gives JSON.

    Attributes:
        endpoint: Where it is.
        body: What is sent; marks such as `{question}` in its texts are filled in.
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

    def ask(self, values: Mapping[str, Any]) -> Completion:
        """Return what stands in the reply at the places that were named.

        Args:
            values: By mark, without braces; see `fill`.
        """
        reply = self.endpoint.post(fill(self.body, values))
        host = self.endpoint.host
        used = None if self.contexts is None else found_at(reply.value, self.contexts, host)
        return Completion(
            text_of(found_at(reply.value, self.answer, host), host),
            None,
            None,
            reply.seconds,
            contexts=texts_of(used, host),
            context_ids=ids_of(used),
            attempts=reply.attempts,
        )


@dataclass(frozen=True)
class TemplateChat:
    """A chat host by a template with `{prompt}`, `{system}` or `{messages}`.

    Attributes:
        template: A text that is only `{messages}` becomes their list; `{system}` is what system
            messages say, `{prompt}` what all others do.
    """

    template: Template

    @property
    def name(self) -> str:
        """Return address and template."""
        return self.template.name

    @property
    def model(self) -> str:
        """Return the host: a template names no model."""
        return self.template.endpoint.host

    def chat(self, messages: Sequence[Message], **options: Any) -> Completion:
        """Return the service's answer; see `ChatHost`. Options are not sent.

        Raises:
            SchemaUnsupported: If JSON is asked for: a template cannot.
            HostError: If the service does not answer as the template says.
        """
        if {"response_format", "logprobs"} & options.keys():
            raise SchemaUnsupported(self.model)
        said = [(one["role"], split_content(one["content"])[0]) for one in messages]
        system = "\n\n".join(text for role, text in said if role == "system")
        prompt = "\n\n".join(text for role, text in said if role != "system")
        values = {"messages": list(messages), "system": system, "prompt": prompt}
        return self.template.ask(values)


@dataclass(frozen=True)
class FunctionChat:
    """A Python function of the messages and, where it takes them, options by name.

    It returns a text, or a mapping with `text` and perhaps `tokens` (prompt, completion), `finish`.
    """

    function: Callable[..., Any]
    name: str

    @property
    def model(self) -> str:
        """Return the function's place."""
        return self.name

    def chat(self, messages: Sequence[Message], **options: Any) -> Completion:
        """Return what the function returns; see `ChatHost`.

        Raises:
            SchemaUnsupported: If JSON is asked for and the function takes no `response_format`.
            HostUnavailable: If it raises; its own message may hold texts and is not repeated.
        """
        taken = _named(self.function)
        if taken is not None:
            if "response_format" in options and "response_format" not in taken:
                raise SchemaUnsupported(self.name)
            options = {name: value for name, value in options.items() if name in taken}
        started = time.monotonic()
        try:
            value = self.function(list(messages), **options)
        except Exception as error:
            raise HostUnavailable(f"{self.name}: raised {type(error).__name__}") from error
        seconds = time.monotonic() - started
        found: Mapping[str, Any] = value if isinstance(value, Mapping) else {"text": value}
        text, tokens, finish = (found.get(name) for name in ("text", "tokens", "finish"))
        if not isinstance(text, str):
            raise BadReply(self.name, type(text).__name__, "a text, or text, tokens and finish")
        counts = tuple(tokens) if isinstance(tokens, list | tuple) else ()
        good = len(counts) == 2 and all(type(count) is int for count in counts)
        return Completion(
            text,
            finish if isinstance(finish, str) else None,
            (counts[0], counts[1]) if good else None,
            seconds,
        )


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with values in the place of their marks; it is never evaluated.

    Args:
        template: Texts, lists and mappings; other braces stay as they are.
        values: By mark, without braces. A text that is only the mark of a list becomes the list;
            inside of a longer text a list's texts are joined by empty lines.
    """
    if isinstance(template, Mapping):
        return {key: fill(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(value, values) for value in template]
    if not isinstance(template, str):
        return template
    parts = {f"{{{name}}}": value for name, value in values.items()}
    if isinstance(parts.get(template), list):
        return list(parts[template])
    out, rest = "", template
    while rest:
        at = {mark: rest.find(mark) for mark in parts if mark in rest}
        if not at:
            return out + rest
        mark = min(at, key=at.__getitem__)
        out += rest[: at[mark]] + _joined(parts[mark])
        rest = rest[at[mark] + len(mark) :]
    return out


def read_template(path: Path, key_variable: str | None, limits: Patience) -> Template:
    """Return the template of a file.

    Raises:
        ConfigurationError: If it is none.
    """
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        expected = "a template: JSON with url, body and answer"
        raise ConfigurationError(str(path), type(error).__name__, expected) from error
    if not isinstance(content, dict) or not {"url", "body", "answer"} <= set(content):
        raise ConfigurationError(str(path), "another object", "the keys url, body and answer")
    if unknown := sorted(set(content) - _KEYS):
        known = ", ".join(sorted(_KEYS))
        raise ConfigurationError(str(path), f"the key {unknown[0]!r}", f"one of {known}")
    if not isinstance(content["body"], dict) or not _are_texts(content):
        expected = "an object as body, and texts as url, answer, contexts and headers"
        raise ConfigurationError(str(path), "values of other kinds", expected)
    endpoint = Endpoint(content["url"], key_variable, content.get("headers", {}), limits)
    return Template(endpoint, content["body"], content["answer"], content.get("contexts"))


def function_at(place: str, option: str) -> Callable[..., Any]:
    """Return the function that `MODULE:FUNCTION` names, imported from here too.

    Raises:
        ConfigurationError: If there is none; `option` is what asked for it.
    """
    module, _, name = place.partition(":")
    expected = f"{PYTHON}MODULE:FUNCTION that can be imported from here"
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise ConfigurationError(option, f"no module {error.name!r}", expected) from error
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(option, type(error).__name__, expected) from error
    if not callable(found):
        raise ConfigurationError(option, type(found).__name__, expected)
    return found  # type: ignore[no-any-return]


def found_at(value: Any, path: str, host: str) -> Any:
    """Return the value at names and places with dots.

    Raises:
        BadReply: If there is none.
    """
    for key in path.split("."):
        if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, Mapping) and key in value:
            value = value[key]
        else:
            raise BadReply(host, "a reply of another shape", f"a value at {path}")
    return value


def text_of(value: Any, host: str) -> str:
    """Return a value that has to be a text.

    Raises:
        BadReply: If it is none.
    """
    if not isinstance(value, str):
        raise BadReply(host, type(value).__name__, "the answer as a text")
    return value


def texts_of(value: Any, host: str) -> tuple[str, ...] | None:
    """Return passages: texts, or objects with `text`.

    Raises:
        BadReply: If they are something else.
    """
    if value is None:
        return None
    rows: Sequence[Any] = value if isinstance(value, list | tuple) else (None,)
    found = [row.get("text") if isinstance(row, Mapping) else row for row in rows]
    texts = [text for text in found if isinstance(text, str)]
    if len(texts) != len(rows):
        raise BadReply(host, "other passages", "a list of texts, or of objects with `text`")
    return tuple(texts)


def ids_of(value: Any) -> tuple[str | None, ...]:
    """Return the ids of passages that are objects with `id`; none where no passage has one."""
    rows = value if isinstance(value, list | tuple) else ()
    found = [row.get("id") if isinstance(row, Mapping) else None for row in rows]
    names = tuple(str(one) if isinstance(one, str | int) else None for one in found)
    return names if any(name is not None for name in names) else ()


def _joined(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "\n\n".join(part if isinstance(part, str) else json.dumps(part) for part in value)


def _named(function: Callable[..., Any]) -> set[str] | None:
    """Return the names a function takes after its first place; None if it takes any."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return set()
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return None
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {one.name for one in parameters[1:] if one.kind in kinds}


def _are_texts(content: Mapping[str, Any]) -> bool:
    headers = content.get("headers", {})
    if not isinstance(headers, dict):
        return False
    given = [content[key] for key in ("url", "answer", "contexts") if key in content]
    return all(isinstance(value, str) for value in (*given, *headers.values()))
