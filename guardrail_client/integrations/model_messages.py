"""Messages of models as frameworks hold them: answers, thoughts and arguments for tools. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from guardrail_client.errors import GuardrailError
from guardrail_client.middleware import documents, replies
from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.documents import Document
from guardrail_client.middleware.exchange import Exchange
from guardrail_client.middleware.outcome import AnswerOutcome, unchecked
from guardrail_client.middleware.replies import Verdict
from guardrail_client.middleware.returned import cleaned
from guardrail_client.middleware.route_options import Route
from guardrail_client.middleware.shapes import Shape
from guardrail_client.middleware.withheld import Withheld
from guardrail_client.passages import wire_passages
from guardrail_client.types import CheckItem

_PATH = "a message"
UNJUDGED = (GuardrailError, UnreadableBody, ValueError)
"""Errors of one message, which `on_error` decides about."""


@dataclass(frozen=True)
class ShownMessage:
    """A message as it may be shown.

    Attributes:
        value: The given document itself if nothing is changed, else another.
        instead: The text that stands in the place of the whole message; None if it may be shown.
        withheld: What nothing beside the message may say either.
    """

    value: Any
    instead: str | None
    withheld: Withheld

    def beside(self, value: Any) -> Any:
        """Return what comes with the message, without what is withheld."""
        return cleaned(value, self.withheld)


@dataclass(frozen=True)
class ModelMessage:
    """A message and what it is judged by.

    Attributes:
        value: As JSON.
        shape: Where its texts are, and the arguments that the model wrote for tools.
        question: As it was asked.
        contexts: Passages as the framework has them.
        said: What users said. It is no evidence for an answer; arguments for tools follow from it.
    """

    value: Any
    shape: Shape
    question: str | None = None
    contexts: Any = None
    said: Sequence[str] = ()

    def judged_by(self, settings: Mapping[str, Any]) -> MessageCall:
        """Return the call that judges it by the settings of a `Route`."""
        own: dict[str, Any] = {"answer": self.shape, "question": _asked, "contexts": None}
        return MessageCall(self, Route(_PATH, **own, **settings))


def plain_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return names and numbers of what a framework keeps beside a message that was changed.

    Log probabilities, for instance, are a list of the words that may not be shown.
    """

    def is_plain(value: Any) -> bool:
        return isinstance(value, int | float) or (
            isinstance(value, str) and documents.is_name(value)
        )

    return {key: value for key, value in metadata.items() if is_plain(value)}


def _asked(exchange: Exchange) -> Any:
    return exchange.own.get("question")


@dataclass
class MessageCall:
    """One message on its way through the guard.

    Attributes:
        message: What is judged.
        route: By which rules.
    """

    message: ModelMessage
    route: Route
    _exchange: Exchange = field(init=False)

    def __post_init__(self) -> None:
        own = {"question": self.message.question, "contexts": wire_passages(self.message.contexts)}
        self._exchange = Exchange(_PATH, own=own, response=self.message.value)

    @cached_property
    def _document(self) -> Document:
        return self.route.read(self._exchange)

    def items(self) -> list[CheckItem]:
        """Return its texts, each with what it is judged by.

        Raises:
            UnreadableBody: If it cannot be read.
        """
        document = self._document
        found = replies.items(self.route, self._exchange, document)
        calls = self._calls()
        said = [*self._exchange.own["contexts"], *filter(str.strip, self.message.said)]
        for item, text in zip(found, document.texts, strict=True):
            if text.places and text.places[0] in calls:
                item["contexts"] = said
        return found

    def shown(self, verdicts: Sequence[Verdict]) -> ShownMessage:
        """Return what may be shown for verdicts on `items`, in their order."""
        document = self._document
        try:
            outcome, changed = replies.answered(self.route, _PATH, document, verdicts)
        except UnreadableBody as error:
            return self.unjudged(error)
        if document.texts:
            self.route.report(outcome)
        if outcome.shown == "replaced":
            return self._instead(outcome)
        if changed is None:
            return ShownMessage(self.message.value, None, Withheld())
        values = Withheld(values=replies.redacted(document, verdicts))
        return ShownMessage(json.loads(changed), None, values)

    def unjudged(self, error: Exception) -> ShownMessage:
        """Return what may be shown without verdicts."""
        why = error.code if isinstance(error, UnreadableBody) else error
        outcome = unchecked(self.route, _PATH, why)
        replies.LOG.warning("answer not checked, %s: %s", outcome.shown, outcome.error)
        self.route.report(outcome)
        if outcome.shown == "as_is":
            return ShownMessage(self.message.value, None, Withheld())
        return self._instead(outcome)

    def _instead(self, outcome: AnswerOutcome) -> ShownMessage:
        value = self.message.value
        strings = [documents.at_place(value, place) for place in documents.string_places(value)]
        said = [text for text in strings if not documents.is_name(text)]
        return ShownMessage(None, self.route.fallback_for(outcome), Withheld(said))

    def _calls(self) -> set[documents.Place]:
        value, patterns = self.message.value, self.message.shape.tool_calls
        return {place for pattern in patterns for place in documents.places_of(value, pattern)}
