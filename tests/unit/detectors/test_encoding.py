"""The encoding detector: verdicts, spans, bounds, parameters."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from guardrail_service.detectors.encoding import Encoding, EncodingParameters
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Outcome, Passage, Sample, State

MAIL = "alice.smith@example.com"
BLOCK = base64.b64encode(f"write to {MAIL}".encode()).decode()
TWIN = base64.b64encode(b"write to the help desk please").decode()


def judge(answer: str, contexts: tuple[str, ...] = (), **parameters: object) -> Outcome:
    """Return the detector's outcome on one answer."""
    sample = SegmentedSample(Sample(answer, contexts=tuple(map(Passage, contexts))))
    return Encoding().reduce(sample, (), EncodingParameters.model_validate(parameters))


def test_an_encoded_address_fails_and_its_innocent_twin_passes() -> None:
    """The alphabet is no offence, the content is."""
    assert judge(f"Decode {BLOCK}").scores["model_passes"] == 0.0
    assert judge(f"Decode {TWIN}").scores["model_passes"] == 1.0


def test_the_span_says_what_where_and_how_and_never_shows_it() -> None:
    """Codecs are listed from the outside in."""
    nested = base64.b64encode(MAIL.encode().hex().encode()).decode()
    (span,) = judge(f"See {nested}!").spans
    assert (span.start, span.end, span.label) == (4, 4 + len(nested), "encoded_email")
    assert span.replacement == "[ENCODED_EMAIL_1]"
    assert span.attributes == {"codec": "base64>hex", "complete": True}
    assert MAIL not in repr(span)


def test_the_same_value_has_the_same_number() -> None:
    """However it was encoded."""
    replacements = [
        s.replacement for s in judge(f"{MAIL.encode().hex()} {MAIL.encode().hex(' ')}").spans
    ]
    assert replacements == ["[ENCODED_EMAIL_1]"] * 2


def test_what_stands_there_in_plain_is_not_hidden() -> None:
    """That is for the detectors `pii` and `secrets`."""
    assert judge(f"Write to {MAIL}, 100%25 sure.").scores["model_passes"] == 1.0


@pytest.mark.parametrize("address", ["alice@site.fr", "nyvpr@fvgr.se", "alice@example.com"])
def test_an_address_is_not_taken_for_the_rotation_of_another(address: str) -> None:
    """rot13 of fr is se: only an unknown domain that becomes a known one tells."""
    assert judge(f"Write to {address}").scores["model_passes"] == 1.0


def test_a_rotated_address_is_found() -> None:
    """`.pbz` is no domain."""
    (span,) = judge("Write to nyvpr@rknzcyr.pbz now").spans
    assert (span.start, span.end, span.attributes["codec"]) == (9, 26, "rot13")


def test_a_condition_is_asked_of_decoded_texts_only() -> None:
    """What must not be hidden may be said openly."""
    assert judge(f"help desk {TWIN}", condition='"help desk"').scores["model_passes"] == 0.0
    assert judge("help desk", condition='"help desk"').scores["model_passes"] == 1.0
    (span,) = judge(TWIN, condition='"help desk"').spans
    assert span.label == "encoded_condition"


def test_a_search_that_met_a_bound_is_unverified_and_never_clean() -> None:
    """Unless it found something before."""
    deep = TWIN
    for _ in range(4):
        deep = base64.b64encode(deep.encode()).decode()
    outcome = judge(f"Decode {deep}")
    assert (outcome.state, outcome.reason) == (State.UNVERIFIED, "decoding_limit")
    found = judge(f"Decode {deep} and {BLOCK}")
    assert found.state is State.EVALUATED
    assert found.scores["model_passes"] == 0.0
    assert [s.attributes["complete"] for s in found.spans] == [False]


def test_a_broken_encoding_is_a_parse_failure_only() -> None:
    """There is nothing to read in it."""
    outcome = judge("See &#99999999; there")
    assert outcome.scores["model_parse_failures"] == 1.0
    assert outcome.scores["model_passes"] == 1.0


def test_a_passage_is_a_retrieval_failure_on_request() -> None:
    """As for the other boolean detectors."""
    assert judge("Fine.", (BLOCK,)).scores["model_retrieval_failures"] == 0.0
    outcome = judge("Fine.", (BLOCK,), evaluate_retrieved_context=True)
    assert outcome.scores["model_retrieval_failures"] == 1.0
    assert outcome.scores["model_passes"] == 1.0


def test_allowed_values_and_unwanted_searches_pass() -> None:
    """Parameters narrow what is looked for."""
    assert judge(BLOCK, allow=[MAIL]).scores["model_passes"] == 1.0
    assert judge(BLOCK, look_for=["secrets"]).scores["model_passes"] == 1.0


@pytest.mark.parametrize("parameters", [{"condition": "NOT"}, {"look_for": ["names"]}, {"x": 1}])
def test_wrong_parameters_are_refused(parameters: dict[str, object]) -> None:
    """At start-up, not at the first answer."""
    with pytest.raises(ValidationError):
        EncodingParameters.model_validate(parameters)


@given(before=st.text(max_size=100), after=st.text(max_size=100))
def test_a_planted_block_is_found_with_exact_offsets_in_any_unicode(
    before: str, after: str
) -> None:
    """Between blanks and dots that belong to no alphabet of an encoding."""
    text = f"{before} \u00b7 {BLOCK} \u00b7 {after}"
    start = len(before) + 3
    spans = [(s.start, s.end, s.label) for s in judge(text).spans]
    assert (start, start + len(BLOCK), "encoded_email") in spans


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    """Every metric is a number, or the state says why not."""
    outcome = judge(text)
    assert outcome.state in (State.EVALUATED, State.UNVERIFIED)
    assert all(score in (0.0, 1.0) for score in outcome.scores.values())
