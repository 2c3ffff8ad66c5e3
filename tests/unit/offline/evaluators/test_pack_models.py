"""Rows are those the detectors send; equal rows run once; a pack's entailment model comes first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from guardrail_service.errors import NotScorable, PackError, RowFailed
from guardrail_service.types import Row
from tests.unit.offline.stand_ins import Session, models


def test_an_equal_row_runs_once() -> None:
    """Evaluators of one case ask the same."""
    session = Session("embedding")
    found = models(embedding=session)
    first, again = found.embed(["one two", "one two"])
    assert np.array_equal(first, again)
    assert len(session.ran) == 1


def test_what_texts_come_to_is_worked_out_once_and_an_error_every_time() -> None:
    """Answers to one question share what is read of its passages."""
    found, asked = models(), []

    def fail() -> None:
        asked.append("again")
        raise NotScorable("no text")

    assert found.embed(["one two"]) is found.embed(["one two"])
    for _ in range(2):
        with pytest.raises(NotScorable):
            found.once("key", fail)
    assert asked == ["again", "again"]


def test_embeddings_are_unit_length_and_nothing_to_embed_is_refused() -> None:
    """As the detectors have them."""
    assert np.linalg.norm(models().embed(["one two"])[0]) == pytest.approx(1.0)
    with pytest.raises(NotScorable):
        models().embed([])


def test_token_vectors_leave_the_special_tokens_out() -> None:
    """One row a word."""
    assert models().token_vectors("one two three").shape[0] == 3


def test_support_by_grounding_reads_all_texts_at_once() -> None:
    """And names the text that decided."""
    found = models().support("pool opens", ("Parking costs.", "The pool opens."))
    assert (found.supported, found.evidence) == (1.0, 1)


def test_support_by_entailment_takes_the_best_text() -> None:
    """With the labels in whatever order the pack names them."""
    found = models("embedding", "nli").support("pool opens", ("Parking costs.", "The pool opens."))
    assert (found.supported, found.evidence) == (1.0, 1)


def test_labels_that_are_not_those_of_entailment_are_refused() -> None:
    """Guessing their order would turn verdicts round."""
    session = Session("nli")
    session.file.labels = ["LABEL_0", "LABEL_1", "LABEL_2"]
    with pytest.raises(PackError, match="entailment, contradiction and neutral"):
        models(nli=session).support("a", ("b",))


def test_roles_and_languages_are_the_sessions() -> None:
    """A session that names no language reads any."""
    found = models(embedding=Session("embedding", ("en",)), grounding=Session("grounding"))
    assert found.roles == {"embedding", "grounding"}
    assert found.languages == {"embedding": frozenset({"en"})}
    assert found.judges_support
    assert not models("embedding").judges_support


def test_outputs_come_in_the_order_of_the_rows() -> None:
    """Remembered ones, too."""
    found = models()
    rows = [Row("embedding", text) for text in ("a", "b", "a")]
    outputs = found.run(rows)
    assert outputs[0] is outputs[2]
    assert outputs[1] is not outputs[0]


class Sharing(Session):
    """A session whose rows of one length share calls; a text of five words is too long."""

    def __init__(self) -> None:
        super().__init__("embedding")
        self.file = SimpleNamespace(**vars(self.file), one_length=True, may_batch=True)
        self.calls: list[list[str]] = []

    def run_many(self, rows: list[Row]) -> list[Any]:
        """Run rows together, or fail together."""
        self.calls.append([row.text for row in rows])
        if any(len(row.text.split()) > 4 for row in rows):
            raise RowFailed("a row is too long")
        return [self.run(row) for row in rows]


def test_rows_that_keep_their_bits_share_a_call_and_one_that_fails_fails_alone() -> None:
    """What is remembered is in no call; the others run one by one where a call fails."""
    session = Sharing()
    found = models(embedding=session)
    found.embed(["one two"])
    together = found.embed(["one two", "three", "four five", "three"])
    assert session.calls == [["one two"], ["three", "four five"]]
    assert len(session.ran) == 3
    assert np.array_equal(together[1], together[3])
    assert len(found.embed(["six", "one two three four five"])) == 2
    assert session.calls[-1] == ["six", "one two three four five"]
    assert len(session.ran) == 5
