"""The labelled answers and the demo answers are complete, consistent and kept apart.

Data: models/thresholds/answers.jsonl, examples/demo/answers.jsonl and
tests/golden/demo_reworded.jsonl, written for this project (Apache-2.0).
"""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CARD = ROOT / "models" / "thresholds" / "README.md"
REASONS = {
    "invented_fact",
    "unsupported_sentence",
    "off_topic",
    "contradiction",
    "looping",
    "wrong_language",
    "context_irrelevant",
}
DETECTORS = {
    "facts",
    "injection",
    "links",
    "hallucination",
    "groundedness",
    "answer_relevancy_sentence",
    "looping",
    "language_mismatch",
    "json_schema",
    "text_matching",
    "pii",
    "secrets",
    "encoding",
    "toxicity",
    "bias",
}

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


LABELLED = read(ROOT / "models" / "thresholds" / "answers.jsonl")
DEMO = read(ROOT / "examples" / "demo" / "answers.jsonl")
REWORDED = read(ROOT / "tests" / "golden" / "demo_reworded.jsonl")


def words(text: str) -> list[str]:
    """Return the words of a text, without punctuation and case."""
    return re.findall(r"\w+", text.lower())


def ngrams(text: str, n: int) -> list[tuple[str, ...]]:
    """Return all runs of n words."""
    found = words(text)
    return [tuple(found[i : i + n]) for i in range(len(found) - n + 1)]


def phrases(samples: list[Row]) -> set[tuple[str, ...]]:
    """Return all runs of eight words in the passages and answers of some samples."""
    texts = [text for sample in samples for text in (sample["answer"], *sample["contexts"])]
    return {phrase for text in texts for phrase in ngrams(text, 8)}


def stated(section: str) -> dict[str, int]:
    """Return the counts of one table of the data card."""
    table = CARD.read_text(encoding="utf-8").split(f"| {section} | answers |")[1].split("\n\n")[0]
    return {name: int(count) for name, count in re.findall(r"\| `(\w+)` \| (\d+) \|", table)}


def test_every_row_has_the_fields_of_the_data_card() -> None:
    """Fields are complete, typed and not empty."""
    required = {"id", "group", "question", "contexts", "answer", "label", "reason", "kind"}
    for row in LABELLED:
        assert required <= set(row) <= required | {"note"}, row["id"]
        texts = [row["question"], row["answer"], row["kind"], *row["contexts"]]
        assert all(isinstance(text, str) and text.strip() == text != "" for text in texts)
        assert re.fullmatch(re.escape(row["group"]) + r"-\d\d", row["id"])


def test_there_are_enough_answers_of_every_sort() -> None:
    """The thresholds need at least 200 answers, and the rarer failures a minimum each."""
    assert len(LABELLED) >= 220
    reasons = Counter(row["reason"] for row in LABELLED)
    assert 0.55 <= reasons[None] / len(LABELLED) <= 0.65
    assert reasons["looping"] >= 14
    assert reasons["wrong_language"] >= 14
    assert reasons["off_topic"] >= 15
    assert reasons["contradiction"] >= 15
    assert reasons["invented_fact"] + reasons["unsupported_sentence"] >= 30
    abstaining = [r for r in LABELLED if r["label"] == "pass" and r["kind"] == "abstention"]
    assert len(abstaining) >= 12


def test_ids_are_unique() -> None:
    """Results can be joined by id."""
    assert len({row["id"] for row in LABELLED}) == len(LABELLED)


def test_no_answer_occurs_twice() -> None:
    """A repeated answer would count double."""
    answers = Counter(" ".join(words(row["answer"])) for row in LABELLED)
    assert [answer for answer, count in answers.items() if count > 1] == []


def test_a_group_has_one_question_and_one_set_of_passages() -> None:
    """Splits by group keep rows that share passages together, in both directions."""
    by_group = defaultdict(set)
    by_question = defaultdict(set)
    for row in LABELLED:
        by_group[row["group"]].add((row["question"], *row["contexts"]))
        by_question[row["question"]].add(row["group"])
    assert all(len(samples) == 1 for samples in by_group.values())
    assert all(len(groups) == 1 for groups in by_question.values())
    sizes = Counter(row["group"] for row in LABELLED)
    assert all(3 <= size <= 6 for size in sizes.values())


def test_only_failed_answers_have_a_reason() -> None:
    """Label and reason agree."""
    for row in LABELLED:
        if row["label"] == "pass":
            assert row["reason"] is None, row["id"]
        else:
            assert row["label"] == "fail", row["id"]
            assert row["reason"] in REASONS, row["id"]


def test_looping_answers_repeat_themselves_and_others_do_not() -> None:
    """A loop has the same three words four times; timetables and lists stay well below a third."""
    for row in LABELLED:
        found = Counter(ngrams(row["answer"], 3))
        if row["reason"] == "looping":
            assert max(found.values()) >= 4, row["id"]
        elif found:
            assert 1 - len(found) / found.total() < 0.3, row["id"]


@pytest.mark.parametrize("field", ["label", "reason", "kind"])
def test_the_data_card_states_the_counts_of_the_file(field: str) -> None:
    """Nobody has to recount."""
    assert stated(field) == Counter(row[field] for row in LABELLED if row[field])


def test_the_data_card_states_the_size_of_the_file() -> None:
    """Rows and groups."""
    groups = {row["group"] for row in LABELLED}
    assert f"{len(LABELLED)} answers in {len(groups)} groups." in CARD.read_text(encoding="utf-8")


@pytest.mark.parametrize("row", [*DEMO, *REWORDED], ids=lambda row: row["name"])
def test_a_demo_answer_says_what_is_expected(row: Row) -> None:
    """The decision is flag exactly if some detector has to be flagged."""
    assert set(row) == {"name", "about", "sample", "expected"}
    assert {"question", "contexts", "answer"} <= set(row["sample"])
    assert set(row["sample"]) <= {"question", "contexts", "answer", "detectors"}
    assert set(row["expected"]) == {"decision", "flagged"}
    assert row["expected"]["decision"] == ("flag" if row["expected"]["flagged"] else "pass")
    assert set(row["expected"]["flagged"]) <= DETECTORS
    assert set(row["sample"].get("detectors", {})) <= DETECTORS


BY_ANOTHER_DETECTOR = {"put_in_not/1"}
"""Rewordings that are stopped as the demo's answer is, but by exact facts in place of the model."""


def test_every_demo_answer_is_reworded_at_least_twice_with_the_same_expectation() -> None:
    """The demo does not depend on one lucky wording."""
    assert len(DEMO) >= 10
    assert len({row["name"] for row in DEMO}) == len(DEMO)
    expected = {row["name"]: row["expected"] for row in DEMO}
    variants: Counter[str] = Counter()
    for row in REWORDED:
        name, _, number = row["name"].partition("/")
        variants[name] += 1
        assert int(number) == variants[name]
        assert row["expected"]["decision"] == expected[name]["decision"]
        differs = row["expected"].get("flagged") != expected[name].get("flagged")
        assert not differs or row["name"] in BY_ANOTHER_DETECTOR
    assert set(variants) == set(expected)
    assert min(variants.values()) >= 2


def test_the_rewordings_share_no_text_with_the_demo() -> None:
    """Reworded means other passages and other answers."""
    demo = phrases([row["sample"] for row in DEMO])
    reworded = phrases([row["sample"] for row in REWORDED])
    assert demo & reworded == set()


def test_the_demo_shares_no_text_with_the_labelled_answers() -> None:
    """Thresholds are not chosen on what the demo then shows."""
    shown = phrases([row["sample"] for row in [*DEMO, *REWORDED]])
    assert shown & phrases(LABELLED) == set()


def test_the_trials_are_as_many_as_the_quality_page_says() -> None:
    """36 false answers and 13 good ones, each with its kind."""
    trials = read(ROOT / "tests" / "golden" / "hallucination_trials.jsonl")
    assert Counter(trial["label"] for trial in trials) == {"fail": 36, "pass": 13}
    for trial in trials:
        assert set(trial) == {"kind", "question", "contexts", "answer", "label"}
        assert (trial["kind"] == "good") == (trial["label"] == "pass")
