"""Looping: the formulas' known answers, exactness against brute force, and where spans point."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.detectors.looping import (
    NO_REPEAT,
    Looping,
    LoopingParameters,
    Repeat,
    compression_ratio,
    longest_repeated_substring,
    unique_sentences,
)
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Coverage, Outcome, Sample, State

NOISE = random.Random(7)  # noqa: S311 - made-up text, not a secret


def judge(answer: str) -> Outcome:
    """Run the detector on an answer."""
    return Looping().reduce(SegmentedSample(Sample(answer)), (), LoopingParameters())


# Computed from the formulas of the H2O Eval Studio manual, "Looping Detection Evaluator".
@pytest.mark.parametrize(
    ("text", "substring", "share"),
    [
        ("abcabc", "abc", 1.0),
        ("abcdef", "", 0.0),
        ("xyzxyzxyz", "xyz", 1.0),
        ("banana", "an", 4 / 6),
        ("aaaa", "aa", 1.0),
        ("", "", 0.0),
    ],
)
def test_longest_repeated_substring_has_the_known_values(
    text: str, substring: str, share: float
) -> None:
    """Length times non-overlapping occurrences, divided by the text's length. Known answer 43."""
    found = longest_repeated_substring(text)
    assert text[found.start : found.start + found.length] == substring
    assert found.share == pytest.approx(share, rel=1e-9)


def brute_force(text: str) -> Repeat:
    """The definition, cubic."""
    for length in range(len(text) // 2, 0, -1):
        seen: dict[str, int] = {}
        for start in range(len(text) - length + 1):
            seen.setdefault(text[start : start + length], start)
        counts = {part: text.count(part) for part in seen}
        part = max(counts, key=counts.__getitem__)
        if counts[part] >= 2:
            share = length * counts[part] / len(text)
            return Repeat(seen[part], length, counts[part], share)
    return NO_REPEAT


@given(st.text(alphabet="ab ", max_size=40) | st.text(alphabet="abcdefé😀", max_size=40))
def test_longest_repeated_substring_equals_its_definition(text: str) -> None:
    """The fast search finds what trying every substring finds."""
    assert longest_repeated_substring(text) == brute_force(text)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("a" * 100_000, 50_000),
        ("The answer is yes. " * 5_000, 47_500),
        ("".join(NOISE.choices("ab", k=50_000)) * 2, 50_000),
        ("".join(map(chr, range(0x4E00, 0x4E00 + 20_000))), 0),
    ],
    ids=["one letter", "loop", "noise twice", "all different"],
)
@pytest.mark.timeout(20)
def test_longest_repeated_substring_is_exact_on_long_texts(text: str, length: int) -> None:
    """100,000 characters built to be hard stay far from quadratic time."""
    assert longest_repeated_substring(text).length == length


def test_one_sentence_is_fully_unique() -> None:
    """A correct one-sentence answer must not get the worst score, as it does in H2O's code."""
    assert unique_sentences(["Paris is the capital of France."]) == 1.0


def test_repeated_sentences_count_once() -> None:
    """u / n: "The answer is yes." six times is 1/6 (H2O's code says 0). Known answer 42."""
    assert unique_sentences(["The answer is yes."] * 6) == pytest.approx(1 / 6, rel=1e-9)


def test_case_and_whitespace_make_no_new_sentence() -> None:
    """Sentences are compared case-folded, with blanks collapsed."""
    assert unique_sentences(["The answer is\n yes.", "THE ANSWER  IS YES."]) == 0.5


def test_short_sentences_count_only_among_themselves() -> None:
    """Sentences under ten characters are left out unless there are no others."""
    assert unique_sentences(["Yes.", "Yes.", "The answer is yes."]) == 1.0
    assert unique_sentences(["Yes.", "Yes."]) == 0.5


def test_nothing_to_count_is_an_error_and_not_a_score() -> None:
    """Empty data raises; it does not return a number."""
    with pytest.raises(ValueError, match="no sentences"):
        unique_sentences([])
    with pytest.raises(ValueError, match="empty text"):
        compression_ratio("")


# zlib level 9; the exact bytes depend on the zlib build, hence the tolerance.
@pytest.mark.parametrize(("text", "ratio"), [("a" * 1000, 0.017), ("Paris.", 1.0)])
def test_compression_ratio_has_the_known_values(text: str, ratio: float) -> None:
    """Compressed bytes over bytes, at most 1. Known answer 44."""
    assert compression_ratio(text) == pytest.approx(ratio, abs=0.005)


def test_a_looped_answer_is_seen_by_every_metric() -> None:
    """A sentence said six times: few unique sentences, a long repeat, much to compress."""
    outcome = judge("The answer is yes. " * 6)
    assert outcome.scores["unique_sentences"] == pytest.approx(1 / 6)
    assert outcome.scores["longest_repeated_substring"] > 0.9
    assert outcome.scores["compression_ratio"] < 0.4
    assert outcome.coverage == Coverage(answer=(114, 114))


def test_spans_show_the_repeat_and_the_repeated_sentences() -> None:
    """Offsets are those of the submitted text, blanks included; the metric says which is which."""
    answer = "Intro  text here.\n\nIt rained all day.  It rained all day. Then it was over."
    spans = {span.metric: span for span in judge(answer).spans}
    repeat, sentence = spans["longest_repeated_substring"], spans["unique_sentences"]
    assert "It rained all day" in answer[repeat.start : repeat.end]
    assert answer[sentence.start : sentence.end] == "It rained all day."
    assert (repeat.label, repeat.attributes["count"]) == ("repetition", 2)


@pytest.mark.parametrize("answer", ["22", "Bora Bora", "New York, New York", " " * 80 + "yes yes"])
def test_an_answer_too_short_to_tell_is_not_judged(answer: str) -> None:
    """Short answers repeat themselves without having looped: not applicable, never flagged."""
    outcome = judge(answer)
    assert (outcome.state, outcome.reason) == (State.NOT_APPLICABLE, "too_short")


def test_layout_is_not_repetition() -> None:
    """Runs of blanks count as one, so indentation and padded columns are no repeat."""
    plain = judge("alpha beta gamma delta epsilon zeta eta theta iota kappa")
    padded = judge(
        "alpha beta gamma delta" + " " * 60 + "epsilon zeta eta theta" + " " * 60 + "iota kappa"
    )
    key = "longest_repeated_substring"
    assert padded.scores[key] == plain.scores[key]


LISTS = {
    "sentences": " ".join(f"Ward {n} can be visited from 1{n}:30." for n in range(1, 6)),
    "clauses": ", ".join(f"group {g} meets in room {n} today" for n, g in enumerate("KXBMQ", 101)),
    "lines": "\n".join(
        f"{name} Lane: collected on {day}."
        for name, day in zip(
            ("Ash", "Birch", "Elm", "Fir", "Oak"), ("Monday", "Monday", "Friday") * 2, strict=False
        )
    ),
    "numbered": "\n".join(
        f"{n}. Turn dial {'ABCDE'[n]} to {n * n} and wait for the click." for n in range(5)
    ),
    "stops": "\n".join(
        f"- Line 4 stops at {stop} at 7:{minute}."
        for stop, minute in (("Harbour", "02"), ("Mill Street", "06"), ("Hospital", "15"))
    ),
}


@pytest.mark.parametrize("form", LISTS)
def test_a_template_filled_with_values_is_no_loop(form: str) -> None:
    """Its lines repeat each other's words and say different things."""
    plain = longest_repeated_substring(LISTS[form]).share
    scores = judge(f"Here you are:\n{LISTS[form]}").scores
    assert plain > 0.3
    assert scores["longest_repeated_substring"] < 0.3
    assert scores["compression_ratio"] > 0.6
    assert scores["unique_sentences"] == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "The lamp is red now. " * 6,
        " ".join(f"Step {n}: wait here until the lamp is red." for n in range(1, 9)),
        " ".join(f"The answer is {n}, I think." for n in range(42, 52)),
        "\n".join(f"{n}. Open the file and read it." for n in range(1, 9)),
        "\n".join(f"Item {n} costs {n} euros today." for n in range(1, 9)),
        "\n".join(f"Point {letter}: the same as before." for letter in "abcdefgh"),
        "\n".join(("Open the file now.", "Read the file now.", "Close the file now.") * 4),
        "It costs four euros, " * 9,
        "no no no no no no no no no no no no no no no no no no no no",
    ],
)
def test_what_only_counts_or_comes_again_is_a_loop(answer: str) -> None:
    """Numbers that count up are what a loop adds to its lines."""
    scores = judge(answer).scores
    plain = longest_repeated_substring(" ".join(answer.split())).share
    assert scores["longest_repeated_substring"] == pytest.approx(plain)
    assert scores["compression_ratio"] == compression_ratio(answer)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("part", ["a b c d\n", "x, ", "Item 1 is 2. ", "|", "w " * 200 + "\n"])
def test_looking_for_lists_costs_no_time(part: str) -> None:
    """Items, their number and their words are bounded."""
    judge(part * (90_000 // len(part)))
