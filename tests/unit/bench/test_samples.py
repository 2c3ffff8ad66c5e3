"""What the load consists of: lengths, freshness, repeatability."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from guardrail_bench.samples import (
    SCENARIOS,
    SHELF,
    Passages,
    SampleSource,
    SampleTexts,
    default_texts_file,
    read_texts,
)
from guardrail_service.errors import InputError
from guardrail_service.text.segmentation.sentences import split_sentences

TEXTS = read_texts(default_texts_file())


def source(name: str, passages: Passages, seed: int = 17) -> SampleSource:
    """Return a source over the project's own texts."""
    return SampleSource(TEXTS, SCENARIOS[name], passages, seed)


def words(text: str) -> int:
    """Return the number of words."""
    return len(text.split())


@pytest.mark.parametrize("passages", ["cold", "warm"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_samples_have_the_scenarios_lengths(name: str, passages: Passages) -> None:
    """Whole sentences, so a text is at most one long sentence over."""
    scenario = SCENARIOS[name]
    sample = source(name, passages).sample(3)
    assert scenario.answer_words <= words(sample["answer"]) < scenario.answer_words + 40
    assert len(sample["contexts"]) == scenario.passages
    for passage in sample["contexts"]:
        assert scenario.passage_words <= words(passage) < scenario.passage_words + 40
    assert sample["question"] in TEXTS.questions


@pytest.mark.parametrize("passages", ["cold", "warm"])
def test_a_number_gives_the_same_sample_in_every_source(passages: Passages) -> None:
    """The bare sessions' process builds the rows that the service was sent."""
    assert source("rag", passages).sample(7) == source("rag", passages).sample(7)
    assert source("rag", passages).sample(7) != source("rag", passages).sample(8)
    assert source("rag", passages).sample(7) != source("rag", passages, seed=18).sample(7)


def test_no_cold_passage_sentence_occurs_in_two_samples() -> None:
    """Or a cache of sentences would make cold passages warm."""
    cold = source("rag", "cold")
    seen: set[str] = set()
    for number in range(100):
        found = {
            sentence.text
            for passage in cold.sample(number)["contexts"]
            for sentence in split_sentences(passage)
            if words(sentence.text) >= 8
        }
        assert found.isdisjoint(seen)
        seen |= found


def test_warm_passages_all_stand_on_the_shelf() -> None:
    """Whoever met the shelf has met every passage."""
    warm = source("rag", "warm")
    shelf = {passage for request in warm.shelf() for passage in request["contexts"]}
    assert len(shelf) == SHELF
    for number in range(50):
        assert set(warm.sample(number)["contexts"]) <= shelf
    assert source("rag", "cold").shelf() == []


def test_most_answer_sentences_are_reworded_and_some_are_copies() -> None:
    """A service that settles copies without a model must not look faster than it is."""
    reports = source("report", "cold")
    copied = total = 0
    for number in range(10):
        sample = reports.sample(number)
        together = " ".join(sample["contexts"])
        sentences = [s.text for s in split_sentences(sample["answer"]) if words(s.text) >= 8]
        total += len(sentences)
        copied += sum(sentence in together for sentence in sentences)
    assert 0.15 < copied / total < 0.4


def test_every_combination_is_used_once_before_one_is_marked_as_another_edition() -> None:
    """Fresh sentences never run out and never repeat."""
    texts = SampleTexts([f"one two three four five six seven {n}" for n in "abc"], ["Why?"])
    count = texts.combinations
    found = [texts.fresh(number) for number in range(2 * count)]
    assert len(set(found)) == 2 * count
    assert sum(text.startswith("In edition 2, ") for text in found) == count


def test_a_reworded_sentence_keeps_its_beginning() -> None:
    """So it stays close to the passage it came from."""
    sentence = TEXTS.fresh(5)
    rng = random.Random(1)  # noqa: S311 - repeatable, no secret
    reworded = TEXTS.reworded(sentence, rng)
    assert reworded.split()[: words(sentence) // 2] == sentence.split()[: words(sentence) // 2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "texts.jsonl:1: expected an object"),
        ('{"contexts": 5, "question": "x"}', "texts.jsonl:1: expected an object"),
        ('{"contexts": ["Short."], "question": "x"}', "expected two and one"),
    ],
)
def test_texts_that_cannot_be_used_are_named(tmp_path: Path, line: str, message: str) -> None:
    """With file and line."""
    path = tmp_path / "texts.jsonl"
    path.write_text(line)
    with pytest.raises(InputError, match=message):
        read_texts(path)


def test_a_missing_file_says_what_was_expected(tmp_path: Path) -> None:
    """A wheel has no default file."""
    with pytest.raises(InputError, match="expected JSON lines"):
        read_texts(tmp_path / "none.jsonl")


@pytest.mark.parametrize("mark", ["\u2028", "\x85"])
def test_a_text_may_hold_any_kind_of_line_end(tmp_path: Path, mark: str) -> None:
    """A record ends at a line feed and nowhere else."""
    path = tmp_path / "texts.jsonl"
    english = "The library opens at seven in the morning. It closes at ten in the late evening."
    record = {"contexts": [english], "question": f"When{mark}exactly?"}
    path.write_text(json.dumps(record, ensure_ascii=False) + "\n", "utf-8")
    assert read_texts(path).questions == [f"When{mark}exactly?"]


def test_texts_in_other_languages_are_left_out(tmp_path: Path) -> None:
    """The embedded model reads English."""
    path = tmp_path / "texts.jsonl"
    english = "The library opens at seven in the morning. It closes at ten in the late evening."
    records = [
        {"contexts": [english], "question": "When?"},
        {"contexts": ["Die Bibliothek ist offen."], "question": "Wann?", "kind": "non_english"},
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    found = read_texts(path)
    assert found.questions == ["When?"]
    assert found.sentences == sorted(s.text for s in split_sentences(english))
