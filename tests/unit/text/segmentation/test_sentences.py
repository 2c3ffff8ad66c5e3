"""Sentences keep every character at its offset, and split where a reader would."""

# Punctuation of several scripts is what is tested.
# ruff: noqa: RUF001

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.text.segmentation.layout import units
from guardrail_service.text.segmentation.sentences import Sentence, merge_short, split_sentences

PIECES = st.sampled_from(
    [
        *".!?…。？؟।\"'”»)]*_`|#->\n\r\t ",
        "\n\n",
        "```\n",
        "Dr. ",
        "U.S. ",
        "1. ",
        " 2) ",
        "[1] ",
        "• ",
        "a. ",
        "Word ",
        "word",
        "3.14",
        "你好",
        "שלום",
        "\u2028",
        "\x00",
        "\ud800",
        "\u202e",
        "🎉",
        "---\n",
        "|-|-|\n",
        "> ",
    ]
)
TEXTS = st.text() | st.lists(PIECES, max_size=60).map("".join)
ANY_TEXT = TEXTS | st.text(st.characters(categories=["Cs", "Cc", "Lo", "Po", "Zs"]))


def texts_of(text: str) -> list[str]:
    """Return the sentences' texts."""
    return [sentence.text for sentence in split_sentences(text)]


def assert_partition(text: str, sentences: tuple[Sentence, ...]) -> None:
    """Check exact offsets, order, and that no non-whitespace character is lost or doubled."""
    end = 0
    for sentence in sentences:
        assert sentence.text == text[sentence.start : sentence.end] == sentence.text.strip()
        assert sentence.text
        assert sentence.start >= end
        assert not text[end : sentence.start].strip()
        end = sentence.end
    assert not text[end:].strip()


@given(ANY_TEXT)
def test_every_character_is_in_exactly_one_sentence(text: str) -> None:
    """Whatever the text, spans are exact, ordered, disjoint and complete."""
    assert_partition(text, split_sentences(text))


@given(ANY_TEXT, st.integers(0, 40))
def test_merging_keeps_every_character_and_leaves_no_short_sentence(text: str, least: int) -> None:
    """Only a text that is short as a whole stays one short sentence."""
    merged = merge_short(split_sentences(text), text, least)
    assert_partition(text, merged)
    if len(merged) > 1:
        assert all(len(s.text) > least for s in merged)
        assert all(any(map(str.isalnum, s.text)) for s in merged)


@given(ANY_TEXT)
def test_units_are_ordered_and_disjoint(text: str) -> None:
    """Layout units hold all ink, in order."""
    end = 0
    for unit in units(text):
        assert end <= unit.start <= unit.body <= unit.end
        assert not text[end : unit.start].strip()
        end = unit.end
    assert not text[end:].strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t ", []),
        ("Yes.", ["Yes."]),
        ("Dr. Smith left. He ran.", ["Dr. Smith left.", "He ran."]),
        ("Water.[1] The next.", ["Water.[1]", "The next."]),
        ("a\n\nb", ["a", "b"]),
        ("one line and\nits other half", ["one line and\nits other half"]),
        ("| A |\n|---|\n| 1 |", ["| A |\n|---|", "| 1 |"]),
        ("```\nx = 1\ny = 2\n```", ["```\nx = 1", "y = 2\n```"]),
        ("```\nnever closed", ["```\nnever closed"]),
        ("1) Log in 2) Save", ["1) Log in", "2) Save"]),
        ("天晴。去吧！", ["天晴。", "去吧！"]),
        ("「はい。」と言った。", ["「はい。」と言った。"]),
        ("ما هو؟ هذا بيت.", ["ما هو؟", "هذا بيت."]),
        ("One.\x00 Two.", ["One.\x00 Two."]),
        ("Done! 🎉 Next one.", ["Done! 🎉", "Next one."]),
        ("A [...] of it. The rest.", ["A [...] of it.", "The rest."]),
    ],
)
def test_splits_where_a_reader_would(text: str, expected: list[str]) -> None:
    """One example per rule; the golden files hold the rest."""
    assert texts_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes. It is allowed.", ["Yes. It is allowed."]),
        ("The fee is waived. No.", ["The fee is waived. No."]),
        ("Yes. No. OK.", ["Yes. No. OK."]),
        ("Yes.", ["Yes."]),
        (
            "A long sentence. No.\n\nAnother one here.",
            ["A long sentence. No.", "Another one here."],
        ),
        ("# Fees\n\nThere are no fees.", ["# Fees\n\nThere are no fees."]),
        ("- Apples\n- Pears\n- Plums\n- Figs", ["- Apples\n- Pears", "- Plums\n- Figs"]),
    ],
)
def test_a_short_sentence_joins_its_nearer_neighbour(text: str, expected: list[str]) -> None:
    """Following unless the one before is nearer; a list does not collapse into one sentence."""
    assert [s.text for s in merge_short(split_sentences(text), text)] == expected


@pytest.mark.parametrize(
    "unit",
    [
        ".",
        "a. ",
        "a\n",
        ". [",
        "[",
        '" . "',
        "```\n",
        "|a|b|\n",
        "1. ",
        "- a\n",
        "|-|\n",
        "x\n}\n",
        "。",
        "? A",
        "`",
        "(",
        "• a ",
        "> a\n",
        " 2. ",
        "J. ",
        "🎉 ",
        "\r",
        " ",
        "... ",
        "1) a 2) ",
    ],
)
def test_adversarial_repetition_costs_no_more_per_character(unit: str) -> None:
    """100,000 characters of anything repeated finish; a quadratic rule would hit the time-out."""
    text = unit * (100_000 // len(unit))
    assert_partition(text, merge_short(split_sentences(text), text))
