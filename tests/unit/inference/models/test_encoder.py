"""The shared encoder: what it keeps for each text, and what runs by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from guardrail_service.inference.models.encoder import SharedEncoder
from guardrail_service.inference.models.session import ModelSession
from guardrail_service.types import Row, RowResult


class Counting:
    """A session that counts its runs."""

    role, file, tokenizer = "embedding", SimpleNamespace(one_length=False), None

    def __init__(self) -> None:
        self.runs: list[tuple[str, tuple[str, ...]]] = []

    def run(self, row: Row) -> RowResult:
        """Return made-up outputs."""
        self.runs.append((row.text, row.outputs))
        values: dict[str, Any] = {
            "sentence_embedding": np.full(4, len(row.text), np.float32),
            "token_embeddings": np.zeros((8, 4), np.float32),
            "middle_states": np.ones((8, 4), np.float32),
        }
        return RowResult({name: values[name] for name in row.outputs}, 1.0, 2.0)


KEPT = ("sentence_embedding", "middle_states")


def encoder() -> tuple[SharedEncoder, Counting]:
    """Return an encoder over a counting session."""
    session = Counting()
    return SharedEncoder(cast(ModelSession, session), KEPT, 10_000), session


def test_a_text_is_encoded_once_whatever_is_asked_of_it() -> None:
    """Models that read different kept outputs share the pass."""
    shared, session = encoder()
    first = shared.run(Row("embedding", "a"))
    again = shared.run(Row("embedding", "a", outputs=("middle_states",)))
    assert session.runs == [("a", KEPT)]
    assert set(first.outputs) == {"sentence_embedding"}
    assert set(again.outputs) == {"middle_states"}
    assert (again.tokenize_ms, again.inference_ms) == (0.0, 0.0)


ASKED = Row("embedding", "a", outputs=("sentence_embedding", "token_embeddings"))


def test_what_is_kept_comes_with_what_is_not() -> None:
    """The last layer's tokens are large and seldom asked for; one pass serves all the same."""
    shared, session = encoder()
    assert set(shared.run(ASKED).outputs) == set(ASKED.outputs)
    assert session.runs == [("a", (*ASKED.outputs, "middle_states"))]
    shared.run(Row("embedding", "a", outputs=KEPT))
    assert len(session.runs) == 1


def test_a_known_text_is_run_again_only_for_what_is_not_kept() -> None:
    """What is at hand is not asked for."""
    shared, session = encoder()
    shared.run(Row("embedding", "a"))
    shared.run(ASKED)
    assert session.runs == [("a", KEPT), ("a", ASKED.outputs)]


def test_a_pair_runs_by_itself() -> None:
    """The memory is by text, and a pair is two."""
    shared, session = encoder()
    shared.run(Row("embedding", "a", second="b"))
    shared.run(Row("embedding", "a", second="c"))
    assert len(session.runs) == 2


def test_length_counts_the_words_tokens_only() -> None:
    """[CLS] and [SEP] belong to no word."""
    shared, _ = encoder()
    assert shared.length(shared.encode("a").outputs) == 6
