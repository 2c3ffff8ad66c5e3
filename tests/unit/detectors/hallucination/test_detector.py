"""Hallucination: rows, the worst claim, labels, evidence and the states around them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from guardrail_service.detectors.hallucination.detector import (
    OUTPUTS,
    Hallucination,
    HallucinationParameters,
    worst,
)
from guardrail_service.detectors.hallucination.reading import claims_of
from guardrail_service.detectors.hallucination.verbatim import SUPPORT
from guardrail_service.errors import NotScorable
from guardrail_service.text.sample import SegmentedSample, TokenSpan
from guardrail_service.types import ROLES, Outcome, Passage, Row, RowOutput, Sample, State

FIRST = "Guests may stay at the hotel for two weeks in summer and winter."
SECOND = "The swimming pool on the roof opens at seven in the morning."
IN_SUMMER = "Guests may stay at the hotel for two weeks in summer or in winter."
AT_SEVEN = "The swimming pool on the roof opens at seven every morning."
CONTEXTS = (Passage(f"{FIRST} Dogs are not allowed."), Passage(SECOND))


class Words:
    """A windower for which every word is a token; one without letter or digit is unknown."""

    max_tokens = 64

    def tokens(self, text: str) -> list[TokenSpan]:
        """Return the tokens."""
        found, at = [], 0
        for word in text.split():
            start = text.index(word, at)
            at = start + len(word)
            found.append(TokenSpan(start, at, any(map(str.isalnum, word))))
        return found


def view(sample: Sample, languages: Mapping[str, frozenset[str]] | None = None) -> SegmentedSample:
    """Return a sample that every role can window."""
    return SegmentedSample(sample, dict.fromkeys(ROLES, Words()), languages)  # type: ignore[arg-type]


def rows(sample: Sample) -> list[Row]:
    """Return the rows of a sample."""
    return list(Hallucination().encode(view(sample), HallucinationParameters()))


def judge(sample: Sample, probabilities: Mapping[str, tuple[float, float, float]]) -> Outcome:
    """Return the outcome if the model gives these probabilities to each claim."""

    def output(row: Row) -> RowOutput:
        if row.role != "grounding":
            return {"sentence_embedding": np.ones(2)}
        return {
            "probabilities": np.array(probabilities[row.text]),
            "places": np.array([len(row.evidence) - 1]),
            "cosines": np.array([0.5]),
        }

    outputs = [output(row) for row in rows(sample)]
    return Hallucination().reduce(view(sample), outputs, HallucinationParameters())


def test_every_claim_is_a_row_with_all_passage_sentences_as_evidence() -> None:
    """The model chooses among them; a passage retrieved twice is one evidence."""
    found = rows(Sample(f"{IN_SUMMER} {AT_SEVEN}", None, (*CONTEXTS, CONTEXTS[1])))
    heads = [row for row in found if row.role == "grounding"]
    assert [row.text for row in heads] == [IN_SUMMER, AT_SEVEN]
    assert all(row.outputs == OUTPUTS for row in heads)
    assert all(row.evidence == (FIRST, "Dogs are not allowed.", SECOND) for row in heads)


def test_the_rows_of_the_encoder_are_those_of_groundedness() -> None:
    """Equal rows run once."""
    texts = {row for row in rows(Sample(AT_SEVEN, None, CONTEXTS)) if row.role == "embedding"}
    assert {Row("embedding", FIRST), Row("embedding", SECOND)} <= texts


def test_the_least_supported_claim_decides_and_says_why() -> None:
    """The score is a minimum; spans carry the likelier reason and the nearest evidence."""
    found = judge(
        Sample(f"{IN_SUMMER} {AT_SEVEN}", None, CONTEXTS),
        {IN_SUMMER: (0.9, 0.06, 0.04), AT_SEVEN: (0.2, 0.7, 0.1)},
    )
    assert found.scores == {"hallucination": pytest.approx(0.2)}
    assert [span.label for span in found.spans] == ["supported", "supported"]
    assert [span.crossed for span in found.spans] == ["contradicted", "contradicted"]
    assert [span.score for span in found.spans] == [pytest.approx(0.9), pytest.approx(0.2)]
    evidence = found.spans[1].evidence[0]
    assert CONTEXTS[evidence.context].text[evidence.start : evidence.end] == SECOND


def test_an_invented_claim_is_not_mentioned() -> None:
    """The third probability names the other reason."""
    found = judge(Sample(AT_SEVEN, None, CONTEXTS), {AT_SEVEN: (0.1, 0.2, 0.7)})
    assert found.spans[0].crossed == "not_mentioned"


def test_a_short_answer_is_read_with_its_question() -> None:
    """ "Two weeks." claims nothing by itself."""
    found = rows(Sample("Two weeks.", "How long may guests stay?", CONTEXTS))
    assert found[-1].text == "How long may guests stay? Two weeks."


def test_layout_is_not_read() -> None:
    """A list's number, a citation mark and JSON's signs are no facts."""
    found = rows(Sample(f"4. **{AT_SEVEN}** [2]", None, CONTEXTS))
    assert found[-1].text == AT_SEVEN
    quoted = rows(Sample(f'{{"summary": "{AT_SEVEN}"}}', None, CONTEXTS))
    assert quoted[-1].text == f"summary : {AT_SEVEN}"


def test_numbers_in_brackets_are_read_where_passages_have_them() -> None:
    """ "[7] days" is no citation if a passage gives notice of "[60] days"."""
    answer = "The tenant must give written notice of [7] days before moving out."
    passage = "The tenant must give notice of [60] days before moving out of the flat."
    assert " 7 days " in rows(Sample(answer, None, (Passage(passage),)))[-1].text
    assert " 7 " not in rows(Sample(answer, None, CONTEXTS))[-1].text


def test_passages_without_a_readable_token_are_unverified_and_not_asked_about() -> None:
    """A row without evidence would fail, and an error says less."""
    sample = Sample(AT_SEVEN, None, (Passage("\x00"), Passage("\ufeff")))
    assert rows(sample) == []
    found = Hallucination().reduce(view(sample), (), HallucinationParameters())
    assert (found.state, found.reason) == (State.UNVERIFIED, "unreadable_text")


def test_a_copied_claim_is_supported_without_the_model() -> None:
    """Only the other claim has a row; spans keep the answer's order, coverage counts both."""
    answer = f"{SECOND} {IN_SUMMER}"
    asked = [row for row in rows(Sample(answer, None, CONTEXTS)) if row.role == "grounding"]
    assert [row.text for row in asked] == [IN_SUMMER]
    found = judge(Sample(answer, None, CONTEXTS), {IN_SUMMER: (0.3, 0.6, 0.1)})
    copied, read = found.spans
    assert (copied.start, copied.end) == (0, len(SECOND))
    assert (copied.score, copied.label, copied.metric) == (SUPPORT, "supported", "hallucination")
    assert (copied.attributes, read.attributes) == ({"found_by": "verbatim"}, {"found_by": "model"})
    shown = copied.evidence[0]
    assert (shown.context, shown.start, shown.end, shown.score) == (1, 0, len(SECOND), SUPPORT)
    assert (read.score, read.crossed) == (pytest.approx(0.3), "contradicted")
    assert found.scores == {"hallucination": pytest.approx(0.3)}
    assert found.coverage is not None
    assert found.coverage.answer == (len(answer), len(answer))


def test_an_answer_of_copies_asks_no_model() -> None:
    """No row at all, also none of the encoder's."""
    answer = f"{FIRST} {SECOND}"
    assert rows(Sample(answer, None, CONTEXTS)) == []
    found = judge(Sample(answer, None, CONTEXTS), {})
    assert (found.state, found.scores) == (State.EVALUATED, {"hallucination": SUPPORT})
    assert [span.score for span in found.spans] == [SUPPORT, SUPPORT]


def test_every_window_of_a_long_copy_is_settled() -> None:
    """A sentence longer than a window is one claim in several windows."""
    long = "The list of rooms names " + ", ".join(f"room {n}" for n in range(80)) + "."
    sample = Sample(f"{long} {AT_SEVEN}", None, (Passage(long), CONTEXTS[1]))
    found = judge(sample, {AT_SEVEN: (0.4, 0.3, 0.3)})
    assert len(found.spans) > 2
    assert {span.score for span in found.spans[:-1]} == {SUPPORT}
    assert found.spans[-1].score == pytest.approx(0.4)


def test_without_passages_nothing_is_verified() -> None:
    """No evidence is never support."""
    found = judge(Sample(FIRST), {})
    assert (found.state, found.reason) == (State.UNVERIFIED, "missing_input")


def test_a_language_the_model_does_not_read_is_unverified() -> None:
    """Languages come from the pack."""
    sample = view(
        Sample("Die Gebühr für das Schwimmbad beträgt dreißig Euro im Monat.", None, CONTEXTS),
        {"grounding": frozenset({"en"})},
    )
    found = Hallucination().reduce(sample, (), HallucinationParameters())
    assert (found.state, found.reason) == (State.UNVERIFIED, "unsupported_language")


@pytest.mark.parametrize(
    ("sentence", "is_claim"),
    [
        ("The documents do not say whether interns have a budget as well.", False),
        ("The provided text only covers technical data and instructions.", False),
        ("The passages don't mention a warranty period for this device.", False),
        ("I can't tell you, since the list is not part of the documents.", False),
        ("The document does not allow refunds after more than thirty days.", True),
        ("The warranty does not cover damage that is caused by limescale.", True),
        ("Although the documents do not say so, the warranty is five years.", True),
        ("The documents do not say it, but the warranty is five years long.", True),
        ("You cannot find parking near the station on a Saturday morning.", True),
        ("The documents do not mention parking, pets or the opening hours.", False),
        ("The documents do not say whether interns or guests have a budget.", False),
        ("The documents do not say whether interns and guests have a budget.", False),
        ("The documents do not say who pays, when it opens and what it costs.", False),
        ("The documents do not mention parking, so the pool costs fifty euros.", True),
        ("The documents do not mention parking, which costs fifty euros.", True),
        ("The documents do not mention parking and the pool costs fifty euros.", True),
        ("The documents do not mention parking, the pool is fifty euros a day.", True),
        ("The documents do not mention parking because the hotel was sold in May.", True),
    ],
)
def test_what_the_passages_lack_is_no_claim(sentence: str, *, is_claim: bool) -> None:
    """No passage could support it; everything else with a "not" is judged."""
    found = claims_of(view(Sample(f"{FIRST} {sentence}", None, CONTEXTS))).judged
    assert [piece.text for piece in found] == [FIRST, *([sentence] if is_claim else [])]


def test_no_claim_has_no_score() -> None:
    """Empty data raises, it is not 1.0."""
    with pytest.raises(NotScorable):
        worst(())


def test_a_short_invented_sentence_is_a_claim_of_its_own() -> None:
    """It must not hide in the supported sentence before it."""
    answer = "New employees get 25 days of paid leave. They also get a company car."
    pieces = claims_of(view(Sample(answer))).judged
    assert [piece.text for piece in pieces] == [
        "New employees get 25 days of paid leave.",
        "They also get a company car.",
    ]


def test_an_opaque_word_with_a_label_is_no_claim() -> None:
    """No passage can support base64, and "Remark:" claims nothing."""
    answer = "The digest is checked at the terminal. Remark: " + "c2Vh" * 12
    pieces = claims_of(view(Sample(answer))).judged
    assert [piece.text for piece in pieces] == ["The digest is checked at the terminal."]


@pytest.mark.parametrize("blank", ["\u00a0", "\u202f", "\u2003", "-", "_", ".", "\u2013"])
def test_a_sentence_without_plain_blanks_is_a_claim(blank: str) -> None:
    """Whatever stands between its words."""
    sentence = "Every guest receives a new car for the whole weekend.".replace(" ", blank)
    assert [piece.text for piece in claims_of(view(Sample(sentence))).judged] == [sentence]
    assert "receives" in rows(Sample(sentence, None, CONTEXTS))[-1].text


@pytest.mark.parametrize(
    "word",
    [
        "c2VhcmNoLWFuZC1yZXNjdWUtdGVhbXMgYXJlIG9u",
        "c2Vh_Y2gtYW5kL-XJlc2N1ZS10ZWFt_cyBhcmUgb24",
        "https://www.example.org/a-page/about-our-rooms-and-prices",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c",
        "/usr/local/share/doc/service/readme-first.txt",
    ],
)
def test_what_is_no_text_stays_opaque(word: str) -> None:
    """Base64, addresses, digests and paths claim nothing that a passage could support."""
    assert not claims_of(view(Sample(f"Reference: {word}"))).judged
