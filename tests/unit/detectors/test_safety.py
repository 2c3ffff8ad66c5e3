"""What toxicity and bias share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from guardrail_service.detectors import safety
from guardrail_service.detectors.safety import LABELS, TOXICITY, Toxicity
from guardrail_service.errors import NotScorable
from guardrail_service.text.sample import SegmentedSample, TokenSpan
from guardrail_service.types import RowOutput, Sample, State

ANSWER = (
    "Guests may stay for two weeks. You are an i d i o t and nobody likes you. The pool is open."
)


class Words:
    """A windower that knows a few words whole; others are one token a letter."""

    max_tokens = 80

    def tokens(self, text: str) -> list[TokenSpan]:
        """Return the tokens."""
        if text == "idiot":
            return [TokenSpan(0, 5, True)]
        return [TokenSpan(i, i + 1, c != "\u2400") for i, c in enumerate(text) if not c.isspace()]


def segmented(answer: str, languages: dict[Any, frozenset[str]] | None = None) -> SegmentedSample:
    """Return an answer as the guard gives it to a detector."""
    return SegmentedSample(Sample(answer), {TOXICITY: Words()}, languages)


def probabilities(*values: float) -> list[RowOutput]:
    """Return outputs with the same probability for every label."""
    return [{label: np.float32(value) for label in LABELS} for value in values]  # type: ignore[misc]


def test_the_worst_sentence_decides() -> None:
    """The mean would hide one insult in a long answer."""
    assert safety.worst([0.1, 0.9, 0.2]) == 0.9


def test_nothing_is_not_scored_as_harmless() -> None:
    """An empty list has no maximum."""
    with pytest.raises(NotScorable):
        safety.worst([])


def test_a_row_holds_the_sentence_as_a_reader_understands_it() -> None:
    """Plain sentences are rows as they stand, so that the encoder's pass is shared."""
    texts = [row.text for row in safety.rows(segmented(ANSWER), TOXICITY)]
    assert texts == [
        "Guests may stay for two weeks.",
        "You are an idiot and nobody likes you.",
        "The pool is open.",
    ]
    assert all(row.role == TOXICITY for row in safety.rows(segmented(ANSWER), TOXICITY))


def test_the_span_is_the_sentence_as_it_was_written() -> None:
    """Offsets are those of the answer, disguise and all."""
    found = safety.outcome(segmented(ANSWER), Toxicity.spec, TOXICITY, probabilities(0.1, 0.9, 0.2))
    assert found.scores["toxicity"] == pytest.approx(0.9)
    worst = max(found.spans, key=lambda span: span.score or 0.0)
    assert ANSWER[worst.start : worst.end] == "You are an i d i o t and nobody likes you."


def test_a_text_that_grows_beyond_the_window_is_read_whole() -> None:
    """Names of emoji are longer than emoji; nothing is cut."""
    answer = "🐒" * 40 + " are what you all look like to me."
    rows = safety.rows(segmented(answer), TOXICITY)
    assert len(rows) > 1
    assert "".join(row.text for row in rows).count("monkey") == 40
    found = safety.outcome(
        segmented(answer), Toxicity.spec, TOXICITY, probabilities(*[0.1] * (len(rows) - 1), 0.7)
    )
    assert found.scores["insult"] == pytest.approx(0.7)
    assert len(found.spans) == len(LABELS)


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        ("Fuck you. The pool is open.", ["Fuck you."]),
        ("The pool is open.\n\nFuck you.\n\nIt is warm.", ["Fuck you."]),
        ("You. Are. Dumb. The pool is open.", ["You.", "Are.", "Dumb."]),
        ("Opening times:\n\n- 9:30\n- 18:45\n\nThe pool is warm.", []),
        ("The pool is open.\n\n\u24d8\u24d3\u24d8\u24de\u24e3\n\nIt is warm.", ["idiot"]),
        ("\u2400\u2400\u2400. The pool is open.", []),
        ("Fuck you.", []),
        ("The pool is open. It is warm today.", []),
    ],
    ids=["first", "middle", "several", "numbers", "no_letter", "unknown", "only_one", "long"],
)
def test_a_short_sentence_is_read_alone_too(answer: str, again: list[str]) -> None:
    """Beside a long polite neighbour an insult of ten characters is hardly seen."""
    found = safety.readings(segmented(answer), TOXICITY)
    assert [text for one in found if one.again for text in one.texts] == again
    whole = "".join(one.window.text for one in found if not one.again)
    assert "".join(whole.split()) == "".join(answer.split())


def test_the_span_of_a_short_sentence_is_that_sentence() -> None:
    """It counts like any other; what the model does not know of it is counted once."""
    answer = "Fuck\u2400you. The pool is open."
    outputs = probabilities(0.1, 0.9)
    found = safety.outcome(segmented(answer), Toxicity.spec, TOXICITY, outputs, safety.worded)
    assert found.scores["insult"] == pytest.approx(0.9)
    worst = max(found.spans, key=lambda span: span.score or 0.0)
    assert answer[worst.start : worst.end] == "Fuck\u2400you."
    assert found.coverage is not None
    assert found.coverage.answer == (len(answer) - 1, len(answer))


def test_an_answer_in_a_language_the_model_does_not_read_is_unverified() -> None:
    """It is never called harmless, and costs no row."""
    sample = segmented(
        "Die Gäste dürfen höchstens zwei Wochen bleiben.", {TOXICITY: frozenset({"en"})}
    )
    assert safety.rows(sample, TOXICITY) == ()
    found = safety.outcome(sample, Toxicity.spec, TOXICITY, [])
    assert (found.state, found.reason) == (State.UNVERIFIED, "unsupported_language")


def test_an_answer_of_unknown_tokens_only_is_unverified() -> None:
    """The model saw nothing of it."""
    sample = segmented("\u2400\u2400\u2400")
    rows = safety.rows(sample, TOXICITY)
    found = safety.outcome(sample, Toxicity.spec, TOXICITY, probabilities(*[0.1] * len(rows)))
    assert (found.state, found.reason) == (State.UNVERIFIED, "unreadable_text")
    assert found.coverage is not None
    assert found.coverage.answer == (0, 3)
