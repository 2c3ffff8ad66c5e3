"""Chat and embedding hosts as judges, targets and evaluators know them, whoever serves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

Message = Mapping[str, Any]
"""`role` and `content`, as in OpenAI's protocol: a text, or parts (`images.py`)."""


class Completion(NamedTuple):
    """A model's next message.

    Attributes:
        text: May be empty.
        finish: Why it ended: `stop`, `length`, `content_filter` and so on; None where the host does
            not say.
        tokens: Prompt and completion tokens as the host counts them; None where it does not.
        seconds: The last try took so long.
        cached: Prompt tokens that the host had cached; None where it does not say.
        fingerprint: Of the served system, where the host gives one.
        refused: The model declined to answer.
        logprobs: Log probabilities of the tokens as OpenAI's protocol has them, if they were asked
            for: `token`, `logprob` and `top_logprobs`.
        contexts: The passages that the host found by itself, where it says.
        attempts: How often the host was asked.
        context_ids: Of those passages, in order; None for one without.
    """

    text: str
    finish: str | None
    tokens: tuple[int, int] | None
    seconds: float
    cached: int | None = None
    fingerprint: str | None = None
    refused: bool = False
    logprobs: Sequence[Mapping[str, Any]] = ()
    contexts: tuple[str, ...] | None = None
    attempts: int = 1
    context_ids: tuple[str | None, ...] = ()


class ChatHost(Protocol):
    """One model of one host. Several threads ask it at once."""

    @property
    def name(self) -> str:
        """Return a text that no other host or model has, without a key: for caches."""

    @property
    def model(self) -> str:
        """Return the model's name, for people and price lists."""

    def chat(self, messages: Sequence[Message], **options: Any) -> Completion:
        """Return the model's next message.

        Args:
            messages: Each with `role` (system, user, assistant) and `content`.
            options: As OpenAI's protocol names them: temperature, top_p, seed, max_tokens, stop,
                response_format, logprobs, top_logprobs. Each host translates them.

        Raises:
            WrongKey, UnknownModel, ContextTooLong, SchemaUnsupported: As their names say.
            HostError: If there is no answer for another reason; see `errors.py`.
        """


class EmbeddingHost(Protocol):
    """One embedding model of one host."""

    @property
    def name(self) -> str:
        """Return a text that no other host or model has, without a key."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order; all of one length.

        Raises:
            HostError: If there are none.
        """
