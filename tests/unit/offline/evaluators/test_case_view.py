"""What a case lacks is unavailable with a state and a reason; claims are those of hallucination."""

from __future__ import annotations

import pytest

from guardrail_offline.datasets.cases import PERTURBATION_SOURCE, Case, Relationship
from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_service.detectors.hallucination.detector import Hallucination
from guardrail_service.types import NoValue, Passage, State
from tests.unit.offline.stand_ins import Session, models

PARKING = "Parking behind the house costs five euros per night."
POOL = "The heated pool opens at seven in the morning."
BREAKFAST = "Breakfast is served until ten."
"""A passage that no claim is copied from: the detector would not ask the model about a copy."""


def view(answer: str | None = PARKING, **fields: object) -> CaseView:
    """Return a view of one case."""
    return CaseView(Case("k", "What does parking cost?", answer, **fields), models())  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["expected", "contexts"])
@pytest.mark.parametrize("empty", [None, ""])
def test_what_is_not_there_is_missing_input(part: str, empty: str | None) -> None:
    """Blank counts as not there; so do passages without text."""
    value = (Passage(" "),) if part == "contexts" and empty == "" else empty
    with pytest.raises(Unavailable) as missing:
        getattr(view(**{part: value}), part)
    assert missing.value.missing == NoValue(State.UNVERIFIED, "missing_input")


LINK = Relationship(PERTURBATION_SOURCE, "source")


@pytest.mark.parametrize(
    ("answer", "fields", "reason"),
    [
        (None, {}, "no_answer"),
        ("  ", {}, "no_answer"),
        (None, {"relationships": (LINK,)}, "missing_input"),
        ("ERROR: 500 Internal Server Error", {}, "error_answer"),
    ],
)
def test_no_answer_is_its_own_reason(
    answer: str | None, fields: dict[str, object], reason: str
) -> None:
    """An error is none, either. A variant that nobody was asked yet only lacks its input."""
    with pytest.raises(Unavailable) as missing:
        _ = view(answer, **fields).answer
    assert missing.value.missing == NoValue(State.UNVERIFIED, reason)


@pytest.mark.parametrize(
    ("expected", "answerable", "reason"),
    [
        (PARKING, None, "wrong_abstention"),
        (None, True, "wrong_abstention"),
        (None, None, "abstention"),
        (None, False, "abstention"),
        (PARKING, False, "abstention"),
        ("I don't know.", None, "abstention"),
    ],
)
def test_an_abstention_is_wrong_where_there_is_an_answer(
    expected: str | None, answerable: bool | None, reason: str
) -> None:
    """What the lab says comes first, then its expected answer."""
    with pytest.raises(Unavailable) as missing:
        view("I don't know.", expected=expected, answerable=answerable).refuse_abstention()
    assert missing.value.missing == NoValue(State.NOT_APPLICABLE, reason)


def test_the_claims_of_an_answer_are_those_the_detector_reads() -> None:
    """Word for word: the same rules, not a second copy."""
    seen = view(f"{PARKING} {POOL} I hope this helps!", contexts=(Passage(BREAKFAST),))
    rows = Hallucination().encode(seen.sample, Hallucination.parameters())
    expected = [row.text for row in rows if row.role == "grounding"]
    assert [c.text for c in seen.claims(seen.answer, seen.case.question)] == expected
    assert len(expected) == 2


def test_a_text_that_claims_nothing_has_no_claims() -> None:
    """Not applicable, which is no failure."""
    with pytest.raises(Unavailable) as nothing:
        view().claims("The documents do not say that.")
    assert nothing.value.missing.reason == "no_claim"


def test_evidence_is_every_sentence_once() -> None:
    """In the order of the passages."""
    assert view().evidence([f"{PARKING} {POOL}", POOL]) == (PARKING, POOL)


def test_a_language_the_model_does_not_read_is_unverified() -> None:
    """Instead of a score that means nothing."""
    german = "Die Führung beginnt jeden Tag um zwei Uhr nachmittags und ist im Eintritt enthalten."
    seen = CaseView(Case("k", "q", german), models(embedding=Session("embedding", ("en",))))
    with pytest.raises(Unavailable) as unread:
        seen.pieces(seen.answer)
    assert unread.value.missing.reason == "unsupported_language"


def test_an_abstention_is_refused_where_there_is_nothing_to_judge() -> None:
    """An answer is not."""
    with pytest.raises(Unavailable) as abstained:
        view("I don't know.").refuse_abstention()
    assert abstained.value.missing.reason == "abstention"
    view().refuse_abstention()


def test_a_text_is_cut_once_per_case() -> None:
    """Evaluators share the view."""
    seen = view()
    assert seen.text(PARKING) is seen.text(PARKING)
