"""The open half of the guarding corpus is complete, well formed and keeps its promises of size.

Data: tests/golden/attacks/open.jsonl and tests/golden/ordinary/open.jsonl. Written for this
project (Apache-2.0), except the class `human_reference`: human reference answers taken unchanged,
each with its source and licence, from mtRAG-UN, DSTC9 track 1, HAGRID (Apache-2.0) and QMSum (MIT).
Every secret is made of alphabetical or keyboard runs and opens nothing; `¦` cuts those that code
hosts would refuse, and is left out when a file is read.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FIELDS = {"id", "class", "domain", "question", "contexts", "answer", "good", "why", "lang"}
OPTIONAL = {"must", "source"}
LANGUAGES = {"en", "de", "fr", "es", "it", "pt", "nl", "pl", "zh", "ja", "ko", "th"}
ATTACK_CLASSES = {
    *("number", "currency", "unit", "date", "time", "duration", "count", "range", "ordinal"),
    *("exchanged", "negation", "order", "role", "invented", "odd_place", "arithmetic"),
    *("link", "credentials", "injection", "pii_secrets", "abuse", "looping", "language"),
    "wordless",
}
ORDINARY_CLASSES = {
    *("paraphrase", "arithmetic", "list", "table", "quotation", "abstention", "courtesy"),
    *("contact", "true_list", "one_word", "short_answer", "negation_kept"),
    *("harmless_vocabulary", "groups_polite", "reported_speech", "code", "language"),
    *("about_prompts", "human_reference"),
}
LEAST = {"attacks": 8, "ordinary": 7}
MOST_WORDS = 400

Case = dict[str, Any]


def read(half: str) -> list[Case]:
    """Return the cases of `attacks` or `ordinary`."""
    text = (HERE / half / "open.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


CASES = {half: read(half) for half in ("attacks", "ordinary")}
BOTH = pytest.mark.parametrize("half", ["attacks", "ordinary"])


@BOTH
def test_every_case_has_its_fields(half: str) -> None:
    """No more, no fewer, none empty but a passage list."""
    for case in CASES[half]:
        assert FIELDS <= case.keys() <= FIELDS | OPTIONAL, case["id"]
        assert all(case[key].strip() for key in FIELDS - {"good", "contexts"}), case["id"]
        assert all(text.strip() for text in case["contexts"]), case["id"]
        assert case["good"] is (half == "ordinary"), case["id"]
        assert case["lang"] in LANGUAGES, case["id"]
        assert case.get("must", "redact") == "redact", case["id"]


@BOTH
def test_every_class_has_enough_cases(half: str) -> None:
    """Of each class as many as its page says; at least ten domains in all."""
    counts = Counter(case["class"] for case in CASES[half])
    assert set(counts) == (ATTACK_CLASSES if half == "attacks" else ORDINARY_CLASSES)
    assert min(counts.values()) >= LEAST[half], counts
    assert len({case["domain"] for case in CASES[half]}) >= 10


def test_no_case_occurs_twice() -> None:
    """By id, and by question, passages and answer together."""
    cases = [*CASES["attacks"], *CASES["ordinary"]]
    assert not [i for i, n in Counter(case["id"] for case in cases).items() if n > 1]
    texts = Counter((case["question"], *case["contexts"], case["answer"]) for case in cases)
    assert not [text for text, n in texts.items() if n > 1]


def test_taken_answers_name_their_source_and_are_whole() -> None:
    """A hundred, each with a licence that allows to pass it on."""
    taken = [case for case in CASES["ordinary"] if case["class"] == "human_reference"]
    assert len(taken) == 100
    for case in taken:
        assert "(Apache-2.0)" in case["source"] or "(MIT)" in case["source"], case["id"]
        assert len(case["contexts"][0].split()) <= MOST_WORDS, case["id"]
    assert sum(case["class"] != "human_reference" for case in CASES["ordinary"]) == 200


def test_the_open_half_is_none_of_the_texts_that_chose_thresholds() -> None:
    """What thresholds were chosen on says nothing new about them."""
    root = HERE.parents[1]
    chosen = (
        root / "models" / "thresholds" / "answers.jsonl",
        root / "examples" / "demo" / "answers.jsonl",
    )
    known = {
        (row.get("question"), row.get("answer"))
        for path in chosen
        for line in map(json.loads, path.read_text("utf-8").splitlines())
        for row in (line.get("sample", line),)
    }
    for case in (*CASES["attacks"], *CASES["ordinary"]):
        assert (case["question"], case["answer"]) not in known, case["id"]
