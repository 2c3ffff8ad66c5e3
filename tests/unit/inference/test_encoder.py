"""The encoder's memory: one pass per text, bounded, the same bits."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pytest

from guardrail_service.errors import RowFailed
from guardrail_service.inference.encoder import SharedEncoder
from guardrail_service.inference.session import ModelSession
from guardrail_service.types import Row, RowResult


class Counting:
    """A session that counts its runs and, if asked to, waits in each."""

    role, file, tokenizer = "embedding", None, None

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.gate: threading.Event | None = None

    def run(self, row: Row) -> RowResult:
        """Return made-up outputs."""
        self.runs.append(row.text)
        if self.gate is not None:
            self.gate.wait(10)
        if row.text == "fail":
            raise RowFailed("too long")
        values: dict[str, Any] = {
            "sentence_embedding": np.full(4, len(row.text), np.float32),
            "token_embeddings": np.zeros((8, 4), np.float32),
        }
        return RowResult({name: values[name] for name in row.outputs}, 1.0, 2.0)


def encoder(memory_bytes: int = 10_000) -> tuple[SharedEncoder, Counting]:
    """Return an encoder over a counting session."""
    session = Counting()
    return SharedEncoder(cast(ModelSession, session), memory_bytes), session


def test_a_text_is_encoded_once_whatever_is_asked_of_it() -> None:
    """Detectors that ask for different outputs share the pass."""
    shared, session = encoder()
    first = shared.run(Row("embedding", "a"))
    again = shared.run(Row("embedding", "a", outputs=("token_embeddings",)))
    assert session.runs == ["a"]
    assert set(first.outputs) == {"sentence_embedding"}
    assert set(again.outputs) == {"token_embeddings"}
    assert (again.tokenize_ms, again.inference_ms) == (0.0, 0.0)


def test_the_text_used_longest_ago_goes_first() -> None:
    """The memory is bounded; a text has 144 bytes here."""
    shared, session = encoder(memory_bytes=300)
    for text in ("a", "b", "a", "c", "a", "b"):
        shared.encode(text)
    assert session.runs == ["a", "b", "c", "b"]


def test_nobody_can_change_what_is_kept() -> None:
    """Requests share the arrays."""
    shared, _ = encoder()
    with pytest.raises(ValueError, match="read-only"):
        shared.encode("a").outputs["sentence_embedding"][0] = 1.0


def test_a_failure_is_not_kept_and_fails_alone() -> None:
    """The next one tries again."""
    shared, session = encoder()
    for _ in range(2):
        with pytest.raises(RowFailed):
            shared.encode("fail")
    assert session.runs == ["fail", "fail"]
    assert shared.encode("a").outputs


def test_a_text_in_flight_is_waited_for() -> None:
    """Eight callers at once cost one pass."""
    shared, session = encoder()
    session.gate = threading.Event()
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(shared.encode, "a") for _ in range(8)]
        session.gate.set()
        values = [f.result().outputs["sentence_embedding"] for f in found]
    assert session.runs == ["a"]
    assert all(value is values[0] for value in values)
