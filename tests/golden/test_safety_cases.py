"""The functional suite and the safety answers are complete, consistent and never trained on.

Data: tests/golden/safety_functional.jsonl and models/thresholds/safety_answers.jsonl, written for
this project (Apache-2.0) before the model that they measure was scored on them. In
tests/golden/neutral: answers on sensitive topics that are fit to be shown, written before any
threshold was fitted on them. The sealed half is only counted: nothing here prints a text of it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WRITTEN = ROOT / "models" / "training" / "safety" / "written.json"
PAIRS = WRITTEN.with_name("pairs.json")
IN_A_ROW = 5
"""Words that no minimal pair shares with a case."""
CLASSES = {
    "negation", "counter_speech", "quoted_abuse", "reclaimed", "emoji_hateful", "emoji_harmless",
    "leetspeak", "spacing", "zero_width", "neutral_mention", "medical", "legal", "historical",
    "refusal", "polite_sensitive", "profanity", "software", "pests", "games", "threat", "disguised",
    "polite_stereotype",
}  # fmt: skip
"""What the suite has to contain, at least."""

NEUTRAL_CLASSES = {
    "polite", "medical", "legal", "historical", "statistics", "quotation", "counter_speech",
    "refusal", "words",
}  # fmt: skip
"""Kinds of answers about groups or with strong words that are fit to be shown."""

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
    """Return the rows of a JSONL file, compressed or not."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    return [json.loads(line) for line in text.splitlines()]


SUITE = read(ROOT / "tests" / "golden" / "safety_functional.jsonl")
ANSWERS = read(ROOT / "models" / "thresholds" / "safety_answers.jsonl")
NEUTRAL = ROOT / "tests" / "golden" / "neutral"


def key(text: str) -> str:
    """Return a text without case and punctuation."""
    return " ".join(words_of(text)) or text


def words_of(text: str) -> list[str]:
    """Return a text's words in lower case, every emoji as a word."""
    return re.findall(r"\w+|[^\w\s.,;:!?'\"]", text.lower().replace("\u2019", "'"))


def training_texts() -> list[str]:
    """Return what was written to train on, every group filled into every pattern."""
    content = json.loads(WRITTEN.read_text(encoding="utf-8"))
    found = list(content["polite"])
    for pattern in content["patterns"].values():
        groups = content[pattern["slot"]] if pattern["slot"] else [""]
        found += [text.replace("{g}", group) for text in pattern["texts"] for group in groups]
    return found + pair_texts()


def pair_texts() -> list[str]:
    """Return both texts of every minimal pair, with every word of every slot once."""
    content = json.loads(PAIRS.read_text(encoding="utf-8"))
    slots = content["slots"]
    found = []
    for number in range(max(map(len, slots.values()))):
        fill = {name: words[number % len(words)] for name, words in slots.items()}
        fill |= {f"{name}s": f"{word}s" for name, word in fill.items()}
        fill |= {f"a{name}": f"a {word}" for name, word in fill.items()}
        for kind in content["kinds"].values():
            found += [text.format_map(fill) for pair in kind["texts"] for text in pair]
    return list(dict.fromkeys(found))


def rows_of_words(text: str) -> set[tuple[str, ...]]:
    """Return every so many words in a row, emoji as words."""
    words = words_of(text)
    return {tuple(words[at : at + IN_A_ROW]) for at in range(len(words) - IN_A_ROW + 1)}


def test_every_case_has_a_text_a_class_and_known_labels() -> None:
    """No case is labelled with a metric that does not exist."""
    assert len(SUITE) >= 900
    assert len({row["id"] for row in SUITE}) == len(SUITE)
    assert len({row["text"] for row in SUITE}) == len(SUITE)
    for row in SUITE:
        assert row["text"].strip(), row["id"]
        assert row["labels"], row["id"]
        assert set(row["labels"]) <= {"toxicity", "fairness_bias"}, row["id"]
        assert set(row["labels"].values()) <= {0, 1}, row["id"]


def test_every_behaviour_has_several_cases() -> None:
    """A class of two cases would say nothing."""
    counts = Counter(row["class"] for row in SUITE)
    assert set(counts) >= CLASSES
    assert min(counts.values()) >= 5


def test_every_group_is_mentioned_as_often_as_the_others() -> None:
    """So that false flags by group can be compared."""
    mentions = Counter(row["group"] for row in SUITE if row["class"] == "neutral_mention")
    assert len(mentions) >= 15
    assert len(set(mentions.values())) == 1


def test_no_case_is_in_the_training_texts() -> None:
    """Neither in the suite nor among the answers that choose thresholds."""
    trained = {key(text) for text in training_texts()}
    assert not [row["text"] for row in (*SUITE,) if key(row["text"]) in trained]
    assert not [row["answer"] for row in ANSWERS if key(row["answer"]) in trained]


def test_no_pair_shares_five_words_in_a_row_with_a_case() -> None:
    """So that the suite measures what a model makes of other wordings."""
    abuse = read(ROOT / "tests" / "golden" / "abuse_cases.jsonl")
    cases = [row["text"] for row in (*SUITE, *abuse, *read(NEUTRAL / "open.jsonl"))]
    cases += [row["answer"] for row in ANSWERS]
    taken = {words for text in cases for words in rows_of_words(text)}
    assert [text for text in pair_texts() if not taken.isdisjoint(rows_of_words(text))] == []


def test_every_bad_answer_has_an_innocent_twin() -> None:
    """On the same topic, so that the topic alone does not decide."""
    by_group: dict[str, set[str | None]] = defaultdict(set)
    for row in ANSWERS:
        assert set(row) == {"id", "group", "answer", "label", "reason"}, row["id"]
        assert (row["label"] == "pass") == (row["reason"] is None), row["id"]
        by_group[row["group"]].add(row["reason"])
    assert all(None in reasons for reasons in by_group.values())
    counts = Counter(row["reason"] for row in ANSWERS)
    assert counts["toxic"] >= 30
    assert counts["biased"] >= 30


def test_the_sealed_neutral_answers_are_the_ones_that_were_sealed() -> None:
    """By digest, rows and classes."""
    record = json.loads((NEUTRAL.parent / "SEALED.json").read_text("utf-8"))["neutral"]
    path = NEUTRAL.parent / record["file"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == record["sha256"]
    assert Counter(row["class"] for row in read(path)) == record["classes"]
    assert sum(record["classes"].values()) == record["rows"]


def test_neutral_answers_of_both_halves_are_complete_and_nowhere_else() -> None:
    """Every class often enough; none in both halves, trained on, or among other cases."""
    halves = [read(NEUTRAL / name) for name in ("open.jsonl", "sealed.jsonl.gz")]
    for rows in halves:
        assert all(set(row) == {"id", "class", "text", "labels"} for row in rows)
        assert all(row["labels"] == {"toxicity": 0, "fairness_bias": 0} for row in rows)
        counts = Counter(row["class"] for row in rows)
        assert set(counts) == NEUTRAL_CLASSES
        assert min(counts.values()) >= 30
    keys = [key(row["text"]) for rows in halves for row in rows]
    twice = len(keys) - len(set(keys))
    assert twice == 0
    others = {*training_texts(), *(row["text"] for row in SUITE), *(a["answer"] for a in ANSWERS)}
    shared = len(set(keys) & set(map(key, others)))
    assert shared == 0
