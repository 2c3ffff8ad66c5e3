"""The settings of one guarded endpoint."""

from __future__ import annotations

import copy
import posixpath
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from guardrail_client.middleware import documents, event_reader
from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.documents import Document, FoundText
from guardrail_client.middleware.event_reader import ANY, Found
from guardrail_client.middleware.exchange import Exchange, Finder, compiled
from guardrail_client.middleware.metrics import AnswerMetrics, StreamTimes
from guardrail_client.middleware.outcome import AnswerOutcome
from guardrail_client.middleware.route_checks import RECEIVE, check_socket, check_words
from guardrail_client.middleware.shapes import (
    ANSWER,
    MEDIA_TYPES,
    SHAPES,
    Framing,
    Shape,
    last_user_message,
)
from guardrail_client.middleware.stream_shapes import STREAM_SHAPES
from guardrail_client.passages import wire_passages
from guardrail_client.stream import OnError
from guardrail_client.types import CheckOptions, Mode, StopOn

FALLBACK = "Sorry, I cannot show an answer to this question."
OUTAGE = "Sorry, the answer could not be checked. Please try again later."
FALLBACKS: Mapping[str, str] = {"blocked": FALLBACK, "outage": OUTAGE}
MARK = "Note: this answer could not be checked completely."
MAX_BYTES = 4 * 1024 * 1024
"""Of a JSON response: the service takes no larger answer with its passages either."""
NO_CONTENT = ("/models", "/data/0/object", "/totalTokens", "/embedding", "/embeddings")
"""Beside generateContent: lists of models, Google's and OpenAI's, counted tokens and vectors."""
Fallback = str | Mapping[str, Any] | Callable[[str, str | None], str]
"""The text sent in place of an answer: a text; texts by reason, `blocked` or `outage`, by language,
or by one and then the other; or a function of the reason and the reader's language, None if that is
not known."""
ELSE = "*"
"""Stands in a mapping for every other language."""


@dataclass(frozen=True, slots=True)
class Route:
    """The settings that guard one endpoint.

    Attributes:
        path: The path, with or without that under which the application is mounted, without regard
            to a slash at its end. `/*` at its end stands for the path and everything below it, a
            `*` alone for any rest, and `/*/` elsewhere for one step.
        answer: Where the answer is, in the response unless it says otherwise: a name of `SHAPES`, a
            `Shape`, a JSON pointer in which `*` stands for any index or key, several pointers, a
            JMESPath, or a function that returns a text or several. None takes the shape that the
            response has, and `/answer` if it has none.
        question: Where the question is; in the request unless it says otherwise. Where it leads
            nowhere, the shape says where the question is.
        contexts: Where the passages are; in the response unless it says otherwise. The passages
            that the application puts into `scope["guardrail"]["contexts"]` come first.
        rest: Of a reply whose texts stand at pointers, or are found by a function: `checked` reads
            every other string that is no name as a text of its own, passages too; `unchecked`
            leaves what does not repeat a withheld text to the application.
        errors: Sentences in the error documents of failed requests: `removed` or `unchecked`.
        no_answer: Pointers; a response in which one of them leads somewhere holds no answer, unless
            there is one where answers are.
        tool_calls: Whether arguments that a model wrote for tools are checked as texts, sent
            `unchecked`, or make a response that cannot be checked (`refuse`).
        types: How bodies of more media types are read: `json`, `events`, `lines`, `text`, or
            `unchecked`.
        websocket: What text frames of a WebSocket hold: `text`, or `json:` and the pointer to the
            text, such as `json:/delta`. `unchecked` lets WebSockets of this path pass; None refuses
            them (1008).
        websocket_end: Where an answer of a WebSocket ends: `receive`, where the application waits
            for the reader's next message; a pointer that leads to something true in the frame that
            ends it, such as `/done`, or to a value, such as `/type=end`; `=[END]` for a frame that
            is this text; or `frame`, if each frame is a whole answer.
        sse: What events and lines of a stream hold: `openai` chunks, events of a name of
            `STREAM_SHAPES`, plain `text`, or JSON with the text at a JSON pointer. `any` goes by
            the events themselves.
        snapshots: Whether each event of a stream repeats the whole text so far, and readers show
            the last. One that does not go on where the one before ended is judged as another text.
        unchecked_events: Names, or values of `type`, of events that pass as they are, such as one
            with the passages.
        policy: Policy of this endpoint; None takes the client's.
        detectors: Overrides by detector.
        mode: `shadow` sends everything as it is and only reports.
        stop_on: The mildest action for which the answer is replaced; None follows the action of the
            verdict, so `block` replaces and everything else does what it says.
        on_error: `closed` replaces what could not be checked, `open` sends it.
        fallback: What is sent in place of an answer, by reason and by the reader's language: what
            the application put into `scope["guardrail"]["language"]`, else `Accept-Language`.
        mark: Added to an answer whose action is `mark`; `text` adds a sentence of ours. None adds a
            header only.
        hold: `all` shows nothing of a streamed text before all of it was judged; None shows each
            part as soon as it was.
        timeout: Seconds that the guard may add to one response in all.
        sentence_deadline_ms: For judging one part of a stream.
        max_bytes: Of a JSON response; a larger one cannot be checked.
        on_outcome: Called with what happened to each response; must not block.
        metrics: Counts what happened; None takes the middleware's, if it has some.
    """

    path: str
    answer: Finder | Shape | Sequence[str] | None = None
    question: Finder | None = "/question"
    contexts: Finder | None = "/contexts"
    rest: Literal["checked", "unchecked"] = "unchecked"
    errors: Literal["removed", "unchecked"] = "removed"
    no_answer: Sequence[str] = ()
    tool_calls: Literal["check", "unchecked", "refuse"] = "check"
    types: Mapping[str, Framing] = field(default_factory=dict)
    websocket: str | None = None
    websocket_end: str = RECEIVE
    sse: str = ANY
    snapshots: bool = False
    unchecked_events: Sequence[str] = ()
    policy: str | None = None
    detectors: Mapping[str, Any] | None = None
    mode: Mode = "enforce"
    stop_on: StopOn | None = None
    on_error: OnError = "closed"
    fallback: Fallback = field(default_factory=lambda: FALLBACKS)
    mark: str | None = None
    hold: Literal["all"] | None = None
    timeout: float = 2.0
    sentence_deadline_ms: int | None = None
    max_bytes: int = MAX_BYTES
    on_outcome: Callable[[AnswerOutcome], None] | None = None
    metrics: AnswerMetrics | None = None
    _exchange: Exchange | None = field(init=False, repr=False, compare=False)
    _answer: Callable[[Exchange], Any] | None = field(init=False, repr=False, compare=False)
    _shapes: tuple[Shape, ...] = field(init=False, repr=False, compare=False)
    _pointers: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _question: Callable[[Exchange], Any] = field(init=False, repr=False, compare=False)
    _contexts: Callable[[Exchange], Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the finders, so that a wrong one is found at start-up."""
        names = (ANY, "openai", "text", *STREAM_SHAPES)
        if self.sse not in names and not self.sse.startswith("/"):
            expected = f"one of {', '.join(names)}, or a JSON pointer"
            raise ValueError(f"sse: found {self.sse!r}, expected {expected}")
        check_socket(self.websocket, self.websocket_end)
        check_words(self)
        shapes, pointers, function = _answer_finder(self.answer)
        nothing: Finder = lambda _: None  # noqa: E731 - a finder is a value
        for name, made in (
            ("_exchange", None),
            ("_shapes", shapes),
            ("_pointers", pointers),
            ("_answer", function),
            ("_question", compiled(self.question or nothing, "request")),
            ("_contexts", compiled(self.contexts or nothing, "response")),
            ("types", {**MEDIA_TYPES, **{k.lower(): v for k, v in self.types.items()}}),
            ("mark", MARK if self.mark == "text" else self.mark),
        ):
            object.__setattr__(self, name, made)

    @classmethod
    def openai(cls, path: str = "/v1/chat/completions", **settings: Any) -> Self:
        """Return a route for OpenAI's chat and text completions."""
        return cls(path, **{"answer": "openai", "contexts": None, **settings})

    @classmethod
    def responses(cls, path: str = "/v1/responses", **settings: Any) -> Self:
        """Return a route for OpenAI's Responses."""
        return cls(
            path,
            **{
                "answer": "openai-responses",
                "sse": "openai-responses",
                "contexts": None,
                **settings,
            },
        )

    @classmethod
    def anthropic(cls, path: str = "/v1/messages", **settings: Any) -> Self:
        """Return a route for Anthropic's Messages."""
        return cls(
            path, **{"answer": "anthropic", "sse": "anthropic", "contexts": None, **settings}
        )

    @classmethod
    def google(cls, path: str = "/*/models/*", **settings: Any) -> Self:
        """Return a route for Google's generateContent, of any version of it."""
        shape = {"answer": "google", "sse": "google", "contexts": None}
        return cls(path, **{**shape, "no_answer": NO_CONTENT, **settings})

    @classmethod
    def bedrock(cls, path: str = "/model/*", **settings: Any) -> Self:
        """Return a route for Bedrock's Converse."""
        return cls(path, **{"answer": "bedrock", "sse": "bedrock", "contexts": None, **settings})

    @classmethod
    def cohere(cls, path: str = "/v2/chat", **settings: Any) -> Self:
        """Return a route for Cohere's chat."""
        return cls(path, **{"answer": "cohere", "sse": "cohere", "contexts": None, **settings})

    @classmethod
    def ollama(cls, path: str = "/api/chat", **settings: Any) -> Self:
        """Return a route for Ollama's chat or, with another path, its generate."""
        shape = "ollama-generate" if path.endswith("generate") else "ollama-chat"
        return cls(path, **{"answer": shape, "sse": shape, "contexts": None, **settings})

    @classmethod
    def vercel(cls, path: str, **settings: Any) -> Self:
        """Return a route for a stream of Vercel's AI SDK, of either protocol."""
        types = {"text/plain": "parts", **settings.pop("types", {})}
        return cls(path, **{"types": types, "contexts": None, **settings})

    @classmethod
    def langserve(cls, path: str, **settings: Any) -> Self:
        """Return a route for the invoke endpoint of a chain of LangServe."""
        return cls(
            path, **{"answer": "langserve", "sse": "langserve", "contexts": None, **settings}
        )

    @classmethod
    def llamaindex(cls, path: str, **settings: Any) -> Self:
        """Return a route for a query engine's response of LlamaIndex, its nodes as passages."""
        nodes: Finder = lambda exchange: _nodes(exchange.response)  # noqa: E731 - a finder is a value
        return cls(path, **{"answer": "llamaindex", "contexts": nodes, **settings})

    @classmethod
    def langgraph(cls, path: str, **settings: Any) -> Self:
        """Return a route for streams of LangGraph's server, whose events repeat the messages."""
        return cls(path, **{"sse": "langgraph", "question": _put_in, "contexts": None, **settings})

    def matches(self, path: str) -> bool:
        """Return whether a path is this endpoint's."""
        own, below = self.path, self.path.endswith("/*")
        if own.endswith("*") and not below:
            return _plain(path).startswith(own[:-1])
        asked, steps = _steps(path), _steps(own.removesuffix("*") if below else own)
        if not (len(asked) >= len(steps) if below else len(asked) == len(steps)):
            return False
        return all(step in ("*", at) for step, at in zip(steps, asked, strict=False))

    def read(self, exchange: Exchange) -> Document:
        """Return the response's document with its texts.

        Raises:
            UnreadableBody: If it is neither known to hold an answer nor known to hold none.
        """
        value = exchange.response
        is_empty = any(documents.places_of(value, pointer) for pointer in self.no_answer)
        if self._answer is not None:
            found = None if is_empty else self._answer(exchange)
            return self._own(value, documents.find_returned(value, found), is_empty)
        try:
            if not self._pointers:
                return self._shaped(value)
            return self._own(value, documents.find_pointed(value, self._pointers), is_empty)
        except UnreadableBody:
            if is_empty:
                return Document(value, [])
            raise

    def _own(self, value: Any, found: list[FoundText] | None, is_empty: bool) -> Document:
        if found is None and not is_empty:
            raise UnreadableBody("no_answer_found")
        return Document(value, self._with_rest(value, found) if found is not None else [])

    def _with_rest(self, value: Any, found: list[FoundText]) -> list[FoundText]:
        return documents.find_rest(value, found) if self.rest == "checked" else found

    def _shaped(self, value: Any) -> Document:
        shape = next((shape for shape in self._shapes if documents.is_of(value, shape)), None)
        if shape is None:
            raise UnreadableBody("no_answer_found")
        if shape is ANSWER:
            found = documents.find_pointed(value, shape.texts) or []
            return Document(value, self._with_rest(value, found), shape)
        return Document(value, documents.find_texts(value, shape, self.tool_calls), shape)

    def found(self, event: bytes) -> Found:
        """Return what an event of a stream holds.

        Raises:
            UnreadableBody: If the route refuses it.
        """
        return event_reader.find(
            event,
            self.sse,
            self.tool_calls,
            self.unchecked_events,
            self.errors,
            self.snapshots,
        )

    def asked(self, exchange: Exchange) -> Any:
        """Return the question; None if there is none."""
        question = self._question(exchange)
        if isinstance(question, str):
            return question
        asked = (shape.asked(exchange.request) for shape in self._shapes)
        return next((found for found in asked if found), None)

    def about(self, exchange: Exchange) -> CheckOptions:
        """Return what the answer is about.

        Raises:
            TypeError: If what the finders found are no passages.
        """
        found = exchange.own.get("contexts")
        return {
            "question": self.asked(exchange),
            "contexts": wire_passages(self._contexts(exchange) if found is None else found),
            "policy": self.policy,
            "detectors": self.detectors,
        }

    def for_reader(self, exchange: Exchange) -> Route:
        """Return the route of one request, which knows the languages of its reader."""
        if isinstance(self.fallback, str):
            return self
        known = copy.copy(self)
        object.__setattr__(known, "_exchange", exchange)
        return known

    def fallback_for(self, outcome: AnswerOutcome) -> str:
        """Return what is sent in place of an answer."""
        known = self._exchange.languages if self._exchange is not None else []
        languages = [tag for tag in known if tag not in FALLBACKS]  # a reader names no reason
        if callable(self.fallback):
            return self.fallback(outcome.reason, languages[0] if languages else None)
        return _chosen(self.fallback, (outcome.reason, *languages)) or FALLBACKS[outcome.reason]

    def report(self, outcome: AnswerOutcome) -> None:
        """Tell the application what happened."""
        if self.metrics is not None:
            self.metrics.count(self, outcome)
        if self.on_outcome is not None:
            self.on_outcome(outcome)

    def timed(self) -> AbstractContextManager[None]:
        """Return what takes the time that a block waits for the guard."""
        return nullcontext() if self.metrics is None else self.metrics.timed(self)

    def begun(self) -> StreamTimes:
        """Return what takes the times of a streamed text whose first piece has come."""
        return StreamTimes(_not_taken, float) if self.metrics is None else self.metrics.begun(self)


def _chosen(fallback: Any, keys: Sequence[str]) -> str | None:
    """Return the text that stands under the first of these keys, in mappings of mappings."""
    if isinstance(fallback, str):
        return fallback
    if not isinstance(fallback, Mapping):
        return None
    texts = {str(key).lower().replace("_", "-"): text for key, text in fallback.items()}
    found = (_chosen(texts[key], keys) for key in (*keys, ELSE) if key in texts)
    return next((text for text in found if text), None)


def _not_taken(_name: str, _seconds: float) -> None:
    """Take no times."""


def is_route(found: object) -> bool:
    """Return whether it is a route or stands for one."""
    return isinstance(found, Route | str)


def routes_of(given: Sequence[Route | str]) -> list[Route]:
    """Return routes; a text is a path whose replies have an `answer`.

    Raises:
        TypeError: If it is a text itself, of which every letter would be a path, or holds others.
    """
    wrong = [given] if isinstance(given, str) else [r for r in given if not is_route(r)]
    if wrong:
        found = type(wrong[0]).__name__
        raise TypeError(f"routes: found {found}, expected a list of paths and Routes")
    return [Route(route) if isinstance(route, str) else route for route in given]


def counted(routes: Sequence[Route], target: Any) -> tuple[Route, ...]:
    """Return routes of which those without metrics have a middleware's.

    Args:
        routes: As the application wrote them.
        target: A registry of prometheus_client, a `Sink`, or None for no metrics.
    """
    if target is None:
        return tuple(routes)
    metrics = AnswerMetrics(target)
    return tuple(route if route.metrics else replace(route, metrics=metrics) for route in routes)


def matching(routes: Sequence[Route], *paths: str) -> Route | None:
    """Return the first route of a request, by any of the paths it may be known under."""
    return next((r for r in routes if any(r.matches(path) for path in paths)), None)


def paths(path: str, root: str) -> list[str]:
    """Return a path of ASGI, and it without the root path that it may begin with.

    Applications route by the second; not every server puts the root path in front.
    """
    roots = dict.fromkeys((root, root.rstrip("/")))
    inner = [path.removeprefix(root) or "/" for root in roots if root and path.startswith(root)]
    return [path, *(rest for rest in inner if rest.startswith("/"))]


def _steps(path: str) -> list[str]:
    return [step for step in _plain(path).split("/") if step]


def _plain(path: str) -> str:
    """Return a path without slashes at its end, double slashes and dots."""
    return posixpath.normpath("/" + path.lstrip("/"))


def _answer_finder(
    answer: Finder | Shape | Sequence[str] | None,
) -> tuple[tuple[Shape, ...], tuple[str, ...], Callable[[Exchange], Any] | None]:
    """Return shapes to try, or pointers, or a function: one of the three."""
    if answer is None:
        return (*SHAPES.values(), ANSWER), (), None
    if isinstance(answer, Shape):
        return (answer,), (), None
    if isinstance(answer, str):
        if answer in SHAPES:
            return (SHAPES[answer],), (), None
        if answer == "" or answer.startswith("/"):
            return (), (answer,), None
        return (), (), compiled(answer, "response")
    if callable(answer):
        return (), (), answer
    return (), tuple(answer), None


def _put_in(exchange: Exchange) -> str | None:
    """Return the last thing that a user put into a graph."""
    request = exchange.request if isinstance(exchange.request, dict) else {}
    return last_user_message("messages")(request.get("input"))


def _nodes(response: Any) -> list[Any]:
    nodes = response.get("source_nodes") if isinstance(response, dict) else None
    found = [node.get("node") if "node" in node else node for node in nodes or []]
    return [node for node in found if isinstance(node, dict) and node.get("text")]
