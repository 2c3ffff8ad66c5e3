"""What counts as copied from a passage, and what must be left to the model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.detectors.hallucination.reading import claims_of
from guardrail_service.detectors.hallucination.verbatim import (
    CANDIDATES,
    Copy,
    QuotedPassage,
    copies,
)
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.text.segmentation.sentences import split_sentences
from guardrail_service.types import ROLES, Passage, Sample
from tests.unit.detectors.hallucination.test_detector import Words

PARKING = "Parking behind the hotel costs five euros per night."
DOGS = "Dogs of every size are welcome in all rooms."
PASSAGE = f"Breakfast is served from seven to ten. {PARKING} {DOGS}"


def found(answer: str, *passages: str, question: str | None = None) -> list[str | None]:
    """Return for each claim the passage text it was found at, None where a model must read it."""
    sample = Sample(answer, question, tuple(map(Passage, passages)))
    view = SegmentedSample(sample, dict.fromkeys(ROLES, Words()))  # type: ignore[arg-type]
    return [
        None if copy is None else passages[copy.context][copy.start : copy.end]
        for copy in copies(view, claims_of(view).judged, "embedding")
    ]


@pytest.mark.parametrize(
    "answer",
    [
        PARKING,
        "Parking behind the hotel costs five euros per night",
        "Parking behind the hotel costs five euros per night!",
        "parking  behind the\nhotel costs five euros per night.",
        "Parking behind the Hotel costs FIVE euros per night.",
        f"- {PARKING}",
        f"3. {PARKING}",
        f"**{PARKING}**",
        "Parking behind the hotel costs **five euros** per night.",
        f"“{PARKING}”",
        f"{PARKING} [1]",
        f"{PARKING}[1][2]",
        "Parking behind the hotel costs five euros per night [1,2].",
        "Parking behind the hotel costs five euros per night[1].",
    ],
)
def test_a_whole_sentence_is_settled_whatever_its_layout(answer: str) -> None:
    """White space, case, quotation marks, list layout, final signs and citations do not count."""
    assert found(answer, "The sauna is closed on Mondays.", PASSAGE) == [PARKING]


def test_a_run_of_sentences_is_settled_and_the_evidence_is_the_run() -> None:
    """A claim may span sentences if they follow each other in one passage."""
    answer = "It says so: " + f"{PARKING} {DOGS}"
    assert found(f"{PARKING} {DOGS}", PASSAGE) == [PARKING, DOGS]
    assert found(answer, PASSAGE)[0] is None
    short = "The pool is open now. Bring a towel."  # each too short to be a claim of its own
    assert found(short, f"{short} {DOGS}") == [short]
    assert found(short, "The pool is open now. It is warm. Bring a towel.") == [None]
    assert found(short, "The pool is open now.", "Bring a towel.") == [None]


@pytest.mark.parametrize(
    "passage",
    [
        "It is not true that parking behind the hotel costs five euros per night.",
        "If you are a guest, parking behind the hotel costs five euros per night.",
        "Parking behind the hotel costs five euros per night, critics said.",
        "Parking behind the hotel costs five euros per night if you are a guest.",
        "Does parking behind the hotel costs five euros per night?",
        "Parking behind the hotel costs five euros per night?",
        f"Here is a common myth about us. {PARKING}",
        f"{PARKING} That is wrong.",
        f"{PARKING} The fee was superseded in May.",
        f"{PARKING} The manager denied this in May.",
        f"Not included:\n- {PARKING}",
        f"The old rules said: {PARKING}",
        f"What do you remember? {PARKING}",
        f'The guide says: "We are open. {PARKING} Welcome."',
        f'"{PARKING}" So says the guide.',
        f"The guide says: “We are open. {PARKING} Welcome.”",
        f"Some things have changed (see below. {PARKING} Dogs are free.)",
        f"~~We are open. {PARKING} Welcome.~~",
        "Parking behind the hotel costs five euros per night...",
        "Parking behind the hotel costs five euros per night",
        "| Parking behind the hotel costs five euros per night. |",
        "Parking behind the hotel costs fifty euros per night.",
        "Parking behind the hotel costs five euros per night and car.",
        "Behind the hotel, parking costs five euros per night.",
    ],
)
def test_a_sentence_that_states_something_else_settles_nothing(passage: str) -> None:
    """What contains, denies, asks, quotes, lists or breaks off the claim is left to the model."""
    assert found(PARKING, f"We have been a family business since 1962. {passage}") == [None]


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The turbine in the dam yields 5 mW today.", "The turbine in the dam yields 5 MW today."),
        ("The rule was made for us in 1990.", "The rule was made for US in 1990."),
        ("The limit is set to 10^5 per day.", "The limit is set to 10^6 per day."),
        ("The loop always starts with a[1] here.", "The loop always starts with a[2] here."),
        ("The lowest reading so far was 5 °C.", "The lowest reading so far was -5 °C."),
        ("The price per kilo is 1,5 euros now.", "The price per kilo is 15 euros now."),
        ("Is parking free behind the hotel?", "Is parking free behind the hotel?"),
        ("You must give notice of [7] days.", "You must give notice of [60] days."),
        ("You must give notice of [7].", "You must give notice of [60]."),
        ("The house was rated 5 by guests.", "The house was rated 5* by guests."),
    ],
)  # fmt: skip
def test_signs_that_change_the_sense_are_compared(claim: str, passage: str) -> None:
    """Units, short words, numbers and indices stay as they are; a question is never settled."""
    assert found(claim, passage) == [None]


@pytest.mark.parametrize(
    "sentence",
    [
        "He did not sign the contract in the end.",
        "However, guests of the annex pay nothing.",
        "In this case the fee is paid back in full.",
        "There they pay ten euros for each night.",
        "No, guests of the annex pay nothing at all.",
        "They did not.",
    ],
)
def test_a_sentence_that_hangs_on_the_one_before_needs_it(sentence: str) -> None:
    """It is settled only where the answer copies what stands before it, too."""
    passage = f"Anton Berg bought the old mill in 1987. {sentence}"
    assert found(sentence, passage) == [None]
    both = found(passage, passage)
    assert both in (
        ["Anton Berg bought the old mill in 1987.", sentence],
        [passage],  # a short one joins its neighbour
    )
    other = f"Clara Voss sold the new mill in 1991. {sentence}"
    assert None in found(other, passage)


@pytest.mark.parametrize(
    "sentence",
    ["There is a car park behind the hotel.", "No dogs are allowed in the breakfast room.",
     "Not every room of the hotel has a balcony."],
)  # fmt: skip
def test_a_sentence_that_only_begins_like_one_that_hangs_is_settled(sentence: str) -> None:
    """ "There is" and "No dogs" state something by themselves."""
    assert found(sentence, f"We have been a family business since 1962. {sentence}") == [sentence]


def test_an_item_of_a_list_is_left_to_the_model() -> None:
    """Under "Not included" the same items say the opposite."""
    items = "- Breakfast in the hall costs ten euros.\n- Parking at the hotel costs five euros."
    for lead_in in ("Not to be paid by members:", "All the prices we charge:"):
        assert found(f"All the prices we charge:\n{items}", f"{lead_in}\n{items}") == [None, None]


def test_an_answer_to_another_question_is_left_to_the_model() -> None:
    """A short answer is read with its question, so it must name what is asked about."""
    answer = "Parking costs five euros per night."
    passage = f"{answer} Ten euros per person."
    assert found(answer, passage, question="What does parking cost per night?") == [answer]
    assert found(answer, passage, question="What does the sauna cost per night?") == [None]
    assert found("Ten euros per person.", passage, question="What is breakfast?") == [None]
    assert found(answer, passage) == [answer]


def test_the_first_passage_that_says_so_is_the_evidence() -> None:
    """A doubtful passage is passed over for one that is not."""
    view = SegmentedSample(
        Sample(PARKING, None, (Passage(f"A myth: {PARKING}"), Passage(PASSAGE))),
        dict.fromkeys(ROLES, Words()),  # type: ignore[arg-type]
    )
    start = PASSAGE.index(PARKING)
    assert copies(view, claims_of(view).judged, "embedding") == (
        Copy(1, start, start + len(PARKING)),
    )


def test_repetitive_passages_are_not_searched_for_ever() -> None:
    """Only so many places are looked at; beyond them the model reads the claim."""
    alike = " ".join(f"The hotel rents out {n + 20} bicycles." for n in range(CANDIDATES + 4))
    assert found("The hotel rents out 21 bicycles.", alike) == ["The hotel rents out 21 bicycles."]
    last = f"The hotel rents out {CANDIDATES + 23} bicycles."
    assert found(last, alike) == [None]


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_compared(answer: str, passage: str) -> None:
    """Lone surrogates, controls, signs only: an answer per claim and no exception."""
    sample = Sample(answer, None, (Passage(passage),))
    view = SegmentedSample(sample, dict.fromkeys(ROLES, Words()))  # type: ignore[arg-type]
    pieces = claims_of(view).judged
    for copy in copies(view, pieces, "embedding"):
        assert copy is None or passage[copy.start : copy.end].strip()


@given(st.text(alphabet=" .!?:\"'()[]*-\n1aAbB", max_size=80))
def test_a_copy_has_the_same_letters_and_digits(text: str) -> None:
    """Whatever is settled, nothing but layout and case differs from the passage."""

    def bare(found: str) -> str:
        return "".join(c for c in found.lower() if c.isalpha())

    claim = f"Alpha beta gamma {text} delta."
    passage = f"Alpha beta gamma {text.swapcase()} delta."
    sample = Sample(claim, None, (Passage(passage),))
    view = SegmentedSample(sample, dict.fromkeys(ROLES, Words()))  # type: ignore[arg-type]
    pieces = claims_of(view).judged
    for piece, copy in zip(pieces, copies(view, pieces, "embedding"), strict=True):
        if copy is not None:
            assert bare(piece.text) == bare(passage[copy.start : copy.end])


def test_a_passages_marks_are_counted_once() -> None:
    """Where many sentences begin like claims, the text before them is not read again for each."""
    reads: list[int] = []

    class Counted(str):
        def __getitem__(self, place: object) -> str:
            found = super().__getitem__(place)  # type: ignore[index]
            reads.append(len(found))
            return found

    text = Counted(" ".join(f"Room {n} of the hotel has a view of the lake." for n in range(400)))
    source = QuotedPassage(text, split_sentences(str(text)))
    assert all(source.is_plain(place) for place in range(400))
    assert sum(reads) <= 2 * len(text)
