"""What to guard, and how: settings of one endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guardrail_client.middleware.exchange import Exchange, Finder, compiled
from guardrail_client.middleware.outcome import AnswerOutcome
from guardrail_client.passages import wire_passages
from guardrail_client.stream import OnError
from guardrail_client.types import Mode, StopOn

FALLBACK = "Sorry, I cannot show an answer to this question."
MAX_BYTES = 4 * 1024 * 1024
"""Of a JSON response: the service takes no larger answer with its passages either."""
TEXT_TYPES = ("text/plain", "text/markdown")


@dataclass(frozen=True, slots=True)
class Route:
    """How one endpoint is guarded.

    Attributes:
        path: The path, with or without that under which the application is mounted; a `*` at its
            end stands for any rest.
        answer: Where the answer is; in the response unless it says otherwise.
        question: Where the question is; in the request unless it says otherwise.
        contexts: Where the passages are; in the response unless it says otherwise. What the
            application puts into `scope["guardrail"]["contexts"]` comes first.
        sse: What events of a stream hold: `openai` chunks, plain `text`, or JSON with the text at
            a JSON pointer.
        policy: Policy of this endpoint; None takes the client's.
        detectors: Overrides by detector.
        mode: `shadow` sends everything as it is and only reports.
        stop_on: The mildest action for which the answer is replaced.
        on_error: `closed` replaces an answer that could not be checked, `open` sends it.
        fallback: What is sent in place of an answer.
        timeout: Seconds that the guard may add to one response in all.
        sentence_deadline_ms: For judging one part of a stream.
        max_bytes: Of a JSON response; a larger one cannot be checked.
        on_outcome: Called with what happened to each response; must not block.
    """

    path: str
    answer: Finder = "/answer"
    question: Finder | None = "/question"
    contexts: Finder | None = "/contexts"
    sse: str = "openai"
    policy: str | None = None
    detectors: Mapping[str, Any] | None = None
    mode: Mode = "enforce"
    stop_on: StopOn = "block"
    on_error: OnError = "closed"
    fallback: str = FALLBACK
    timeout: float = 2.0
    sentence_deadline_ms: int | None = None
    max_bytes: int = MAX_BYTES
    on_outcome: Callable[[AnswerOutcome], None] | None = None
    find_answer: Callable[[Exchange], Any] = field(init=False, repr=False, compare=False)
    _question: Callable[[Exchange], Any] = field(init=False, repr=False, compare=False)
    _contexts: Callable[[Exchange], Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the finders, so that a wrong one is found at start-up."""
        if self.sse not in ("openai", "text") and not self.sse.startswith("/"):
            found = f"sse: found {self.sse!r}, expected 'openai', 'text' or a JSON pointer"
            raise ValueError(found)
        nothing: Finder = lambda _: None  # noqa: E731 - a finder is a value
        object.__setattr__(self, "find_answer", compiled(self.answer, "response"))
        object.__setattr__(self, "_question", compiled(self.question or nothing, "request"))
        object.__setattr__(self, "_contexts", compiled(self.contexts or nothing, "response"))

    def matches(self, path: str) -> bool:
        """Return whether a path is this endpoint's."""
        if self.path.endswith("*"):
            return path.startswith(self.path[:-1])
        return path == self.path

    def about(self, exchange: Exchange) -> dict[str, Any]:
        """Return the arguments of `check` that say what the answer is about.

        Raises:
            TypeError: If what the finders found are no passages.
        """
        question = self._question(exchange)
        found = exchange.own.get("contexts")
        return {
            "question": question if isinstance(question, str) else None,
            "contexts": wire_passages(self._contexts(exchange) if found is None else found),
            "policy": self.policy,
            "detectors": self.detectors,
        }

    def report(self, outcome: AnswerOutcome) -> None:
        """Tell the application what happened."""
        if self.on_outcome is not None:
            self.on_outcome(outcome)


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
