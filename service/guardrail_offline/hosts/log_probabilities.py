"""Log probabilities of given texts, by a causal language model that somebody serves.

Two protocols give them: completions with `echo`, as vLLM and other servers of OpenAI's old protocol
have it, and llama.cpp, which is made to write the text token after token.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from guardrail_offline.hosts.endpoint import Endpoint
from guardrail_offline.hosts.errors import (
    BadReply,
    UntilSilent,
)
from guardrail_offline.hosts.opening import HostChoice, server_endpoint
from guardrail_service.errors import ConfigurationError, RowFailed

_FORCED = 1000.0
"""Added to a token's logit so that it is written; the log probability is that without it."""
Floats = npt.NDArray[np.float64]


class LanguageModelHost(Protocol):
    """A causal language model that somebody serves."""

    @property
    def name(self) -> str:
        """Return a text that no other model has, without a key."""
        ...

    def log_probabilities(self, prompt: str, text: str) -> Floats:
        """Return the natural logarithm of the probability of each token of `text`.

        Args:
            prompt: What comes before; may be empty.
            text: What is judged.

        Returns:
            Shape (tokens of the text,), each at most 0.

        Raises:
            RowFailed: If the text has no token.
            HostError: If the host does not say.
        """
        ...


@dataclass
class EchoLanguageModel:
    """A model behind `/completions` with `echo` and `logprobs`.

    Prompt and text become tokens together; one that belongs to both counts to the text. The first
    token of all has no probability and is left out.

    Attributes:
        endpoint: Its base address, usually ending with /v1.
        model: As the server calls it.
    """

    endpoint: Endpoint
    model: str

    @property
    def name(self) -> str:
        """Return protocol, address and model."""
        return json.dumps(["echo", self.endpoint.url, self.model])

    def log_probabilities(self, prompt: str, text: str) -> Floats:
        """Return the text's log probabilities from one request; see `LanguageModelHost`."""
        body = {
            "model": self.model, "prompt": prompt + text, "max_tokens": 1, "temperature": 0,
            "echo": True, "logprobs": 1,
        }  # fmt: skip
        value = self.endpoint.post(body, "/completions").value
        tokens, found, starts = self._echoed(value, prompt + text)
        ends = [*starts[1:], len(prompt + text)]
        values = [
            logprob
            for end, logprob, _ in zip(ends, found, tokens, strict=True)
            if end > len(prompt) and logprob is not None
        ]
        return _checked(values, self.endpoint.host)

    def _echoed(self, value: Any, whole: str) -> tuple[list[str], list[float | None], list[int]]:
        """Return tokens, log probabilities and places, as far as they are those of the prompt."""
        rows = value.get("choices") if isinstance(value, Mapping) else None
        first = rows[0] if isinstance(rows, list) and rows else None
        told = first.get("logprobs") if isinstance(first, Mapping) else None
        names = ("tokens", "token_logprobs", "text_offset")
        lists: list[Any] = [told.get(n) if isinstance(told, Mapping) else None for n in names]
        if not all(isinstance(one, list) for one in lists) or len({len(one) for one in lists}) > 1:
            expected = (
                "log probabilities of the prompt (echo), or llamacpp+http://... for llama.cpp"
            )
            raise BadReply(self.endpoint.host, "none of the prompt", expected)
        tokens, found, starts = lists
        inside = [n for n, start in enumerate(starts) if start < len(whole)]
        if inside != list(range(len(inside))):
            raise BadReply(
                self.endpoint.host, "tokens in another order", "their places in the text"
            )
        count = len(inside)
        return tokens[:count], found[:count], starts[:count]


@dataclass
class LlamaCppModel:
    """A model behind a llama.cpp server, by its own protocol.

    The text is written token after token, each the only one that is allowed, and the server says
    how probable it was: a request per token, one text at a time. The first request of a text reads
    the whole prompt anew, so that the same text has the same numbers.

    Attributes:
        endpoint: The server's address, without /v1.
        start: Text of the token that rows begin with; None for the model's own.
    """

    endpoint: Endpoint
    start: str | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _start_ids: list[int] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Return protocol, address and first token."""
        return json.dumps(["llamacpp", self.endpoint.url, self.start])

    def log_probabilities(self, prompt: str, text: str) -> Floats:
        """Return the text's log probabilities; prompt and text become tokens apart."""
        with self._lock:
            before = [*self._first(), *self._tokens(prompt)]
            found = []
            for number, token in enumerate(self._tokens(text)):
                found.append(self._forced(before, token, anew=number == 0))
                before = [*before, token]
        return _checked(found, self.endpoint.host)

    def _first(self) -> list[int]:
        if self._start_ids is None:
            start = self.start
            if start is None:
                value = self.endpoint.get("/props").value
                start = value.get("bos_token") if isinstance(value, Mapping) else None
            self._start_ids = self._tokens(start or "", special=True)
            if len(self._start_ids) != 1:
                expected = "one token that rows begin with; name it by ?start="
                raise BadReply(self.endpoint.host, f"{len(self._start_ids)} tokens", expected)
        return self._start_ids

    def _tokens(self, text: str, *, special: bool = False) -> list[int]:
        if not text:
            return []
        body = {"content": text, "add_special": False, "parse_special": special}
        value = self.endpoint.post(body, "/tokenize").value
        found = value.get("tokens") if isinstance(value, Mapping) else None
        if not isinstance(found, list) or not all(type(token) is int for token in found):
            raise BadReply(self.endpoint.host, "no tokens", "a list of numbers")
        return found

    def _forced(self, before: Sequence[int], token: int, *, anew: bool) -> float:
        body = {
            "prompt": list(before), "n_predict": 1, "n_probs": 1, "temperature": 0, "id_slot": 0,
            "logit_bias": [[token, _FORCED]], "cache_prompt": not anew,
        }  # fmt: skip
        value = self.endpoint.post(body, "/completion").value
        rows = value.get("completion_probabilities") if isinstance(value, Mapping) else None
        row = rows[0] if isinstance(rows, list) and rows else None
        if not isinstance(row, Mapping) or row.get("id") != token:
            raise BadReply(self.endpoint.host, "another token", "the log probability of one")
        return float(row["logprob"]) if type(row.get("logprob")) in (int, float) else math.nan


@dataclass
class GivesUp:
    """A language model that is not asked any more after some texts without a reply.

    Attributes:
        host: Who is asked.
    """

    host: LanguageModelHost
    _asking: UntilSilent = field(default_factory=UntilSilent)

    @property
    def name(self) -> str:
        """Return the host's name."""
        return self.host.name

    def log_probabilities(self, prompt: str, text: str) -> Floats:
        """Return what the host says, or raise what it last raised."""
        return self._asking.call(lambda: self.host.log_probabilities(prompt, text))


def open_language_model(choice: HostChoice) -> LanguageModelHost:
    """Return the language model that was chosen.

    Raises:
        ConfigurationError: If it cannot be, or hosts of its kind give no log probabilities.
    """
    found = choice.parsed
    if found.kind == "llamacpp":
        endpoint = Endpoint(found.place, choice.key_variable, limits=choice.limits)
        return GivesUp(LlamaCppModel(endpoint, found.query.get("start")))
    if found.kind == "openai":
        endpoint, model = server_endpoint(choice, found)
        return GivesUp(EchoLanguageModel(endpoint, model))
    expected = "https://host/v1 with completions that echo, or llamacpp+http://host:port"
    raise ConfigurationError(choice.option, found.kind, expected)


def _checked(values: Sequence[Any], host: str) -> Floats:
    """Return log probabilities.

    Raises:
        RowFailed: If there is none.
        BadReply: If one is no number, or above 0.
    """
    if not values:
        raise RowFailed("the text has no token with a probability")
    if not all(type(one) in (int, float) and math.isfinite(one) and one <= 1e-6 for one in values):
        raise BadReply(host, "other numbers", "log probabilities of at most 0")
    return np.minimum(np.array(values, dtype=np.float64), 0.0)
