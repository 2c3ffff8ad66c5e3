"""Models for tests: made-up, repeatable outputs in place of a pack, with the same interface."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_service.text.sample import TokenSpan
from guardrail_service.types import Role, Row

DIMENSIONS = 16
MAX_TOKENS = 32


class Words:
    """A windower for which every word is a token."""

    max_tokens = MAX_TOKENS

    def tokens(self, text: str) -> list[TokenSpan]:
        """Return the words' places."""
        spans, at = [], 0
        for word in text.split():
            start = text.index(word, at)
            at = start + len(word)
            spans.append(TokenSpan(start, at, True))
        return spans


def vector(word: str) -> np.ndarray[Any, Any]:
    """Return a unit vector that depends on nothing but the word."""
    seed = int.from_bytes(
        hashlib.sha256(word.casefold().encode("utf-8", "surrogatepass")).digest()[:8]
    )
    found = np.random.default_rng(seed).normal(size=DIMENSIONS)
    return found / np.linalg.norm(found)


class Session:
    """Embeds a text as the sum of its words; supports a claim by the words it shares."""

    def __init__(self, role: Role, languages: tuple[str, ...] | None = None) -> None:
        labels = ["entailment", "neutral", "contradiction"] if role == "nli" else None
        self.role = role
        outputs = ("sentence_embedding", "token_embeddings")
        self.file = SimpleNamespace(languages=languages, labels=labels, outputs=outputs)
        self.tokenizer = Words()
        self.ran: list[Row] = []

    def run(self, row: Row) -> Any:
        """Return the outputs a row asks for."""
        self.ran.append(row)
        kinds = {"embedding": _embed, "grounding": _ground, "nli": _entail, "similarity": _share}
        made = kinds[self.role](row)
        return SimpleNamespace(outputs={name: made[name] for name in row.outputs})

    def log_probabilities(self, prompt: str, text: str) -> np.ndarray[Any, Any]:
        """Return -1 for a word that occurs in the prompt and -3 for another."""
        known = {word.strip(".,").casefold() for word in prompt.split()}
        found = [-1.0 if w.strip(".,").casefold() in known else -3.0 for w in text.split()]
        return np.array(found, dtype=np.float32)


def _words(text: str) -> list[str]:
    return [word.strip(".,?!;:") for word in text.split()]


def _share(row: Row) -> Mapping[str, Any]:
    """The share of words that two texts have in common."""
    ours, theirs = set(_words(row.text)), set(_words(row.second or ""))
    return {"similarity": np.float32(len(ours & theirs) / len(ours | theirs))}


def _embed(row: Row) -> Mapping[str, Any]:
    tokens = np.stack([vector(word) for word in _words(row.text)] or [np.ones(DIMENSIONS)])
    ends = np.zeros((1, DIMENSIONS))
    whole = tokens.sum(axis=0)
    return {
        "sentence_embedding": whole / np.linalg.norm(whole),
        "token_embeddings": np.concatenate([ends, tokens, ends]),
    }


def shared(claim: str, text: str) -> float:
    """Return the share of a claim's words that a text has."""
    words = {word.casefold() for word in _words(claim)} or {claim}
    return len(words & {word.casefold() for word in _words(text)}) / len(words)


def _ground(row: Row) -> Mapping[str, Any]:
    shares = [shared(row.text, text) for text in row.evidence]
    best = max(shares)
    left = 1 - best
    return {
        "probabilities": np.array([best, left / 4, 3 * left / 4]),
        "places": np.array([int(np.argmax(shares))]),
        "cosines": np.array([best]),
    }


def _entail(row: Row) -> Mapping[str, Any]:
    best = shared(row.second or "", row.text)
    return {"probabilities": np.array([best, (1 - best) / 2, (1 - best) / 2])}


def models(*roles: Role, **sessions: Any) -> PackModels:
    """Return models of these roles; `embedding` and `grounding` if none is named."""
    found: dict[Any, Any] = {role: Session(role) for role in roles or ("embedding", "grounding")}
    return PackModels(found | sessions, {"embedding": "test"})


Make = Callable[..., PackModels]
