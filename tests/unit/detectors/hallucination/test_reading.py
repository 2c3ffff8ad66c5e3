"""Hallucination reads a table's rows under their headings, and of code only its prose."""

from __future__ import annotations

import math

import pytest

from guardrail_service.detectors.hallucination.detector import (
    MOST_UNSAID,
    Hallucination,
    HallucinationParameters,
    lowered,
)
from guardrail_service.detectors.hallucination.reading import (
    Unsaid,
    claim_texts,
    claims_of,
    layout_of,
    prose_in_code,
    unsaid,
)
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import ROLES, Outcome, Passage, Sample, State
from tests.unit.detectors.hallucination.test_detector import Words, view

PASSAGE = Passage("Home 100 gives 100 Mbit/s for $39 a month, Home 500 gives 500 Mbit/s for $59.")
TABLE = """Nordnet sells both plans:

| Plan | Speed | Monthly price |
|:-----|------:|:-------------:|
| Home 100 | 100 Mbit/s | $39 |
| Home 500 | 500 Mbit/s | - |"""


def read(answer: str) -> tuple[str, ...]:
    """Return what the model is asked about an answer."""
    seen = view(Sample(answer, "Which plans are there?", (PASSAGE,)))
    claimed = claims_of(seen)
    return claim_texts(seen, claimed, seen.windows_of("embedding", claimed.judged))


def outcome(answer: str) -> Outcome:
    """Return what is said of an answer that has no row to run."""
    seen = SegmentedSample(Sample(answer, None, (PASSAGE,)), dict.fromkeys(ROLES, Words()))  # type: ignore[arg-type]
    assert not Hallucination().encode(seen, HallucinationParameters())
    return Hallucination().reduce(seen, (), HallucinationParameters())


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        pytest.param(
            TABLE,
            [
                "Nordnet sells both plans: Plan Home 100, Speed 100 Mbit/s, Monthly price $39",
                "Plan Home 500, Speed 500 Mbit/s",
            ],
            id="bars",
        ),
        pytest.param(
            "Visitor | Admission to the museum\n--- | ---\nAdults with a badge | 12 euros",
            ["Visitor Adults with a badge, Admission to the museum 12 euros"],
            id="no outer bars",
        ),
        pytest.param(
            "| Free company car for everybody who has been here for a year |\n|---|",
            ["Free company car for everybody who has been here for a year ---"],
            id="a heading without rows is a claim",
        ),
        pytest.param(
            "| Every guest | gets | a car | for free |\n| Every child | gets | a bike | too |",
            ["Every guest gets a car for free", "Every child gets a bike too"],
            id="no headings",
        ),
        pytest.param(
            "| Plan | Price of the plan |\n|---|---|\n| Home 100 | $39 | and a free laptop |",
            ["Plan Home 100, Price of the plan $39, and a free laptop"],
            id="more cells than headings",
        ),
    ],
)
def test_a_row_is_read_under_its_headings(answer: str, claims: list[str]) -> None:
    """Rows with or without outer bars, and what has no headings."""
    assert list(read(answer)) == claims


def test_a_heading_is_judged_with_the_rows_below_it() -> None:
    """An invention cannot hide in a heading."""
    answer = "| Plan | Comes with a free laptop |\n|---|---|\n| Home 100 | yes, to all customers |"
    assert read(answer) == ("Plan Home 100, Comes with a free laptop yes, to all customers",)


@pytest.mark.parametrize(
    ("line", "prose"),
    [
        ('curl -X POST "$BASE/v1/exports" -H "Authorization: Bearer $TOKEN"', ""),
        ("SELECT id, customer, total FROM orders ORDER BY total DESC LIMIT 10;", ""),
        ("timeout = 30  # guests may stay for two weeks", "guests may stay for two weeks"),
        ("// every guest gets a free car", "every guest gets a free car"),
        ("-- every guest gets a free car", "every guest gets a free car"),
        ('print("Every guest gets a free car")', "Every guest gets a free car"),
        ("echo every guest gets a free car now", "echo every guest gets a free car now"),
        ("git commit --amend", ""),
    ],
)
def test_code_is_read_for_its_prose(line: str, prose: str) -> None:
    """Comments, strings of several words and plain sentences."""
    assert prose_in_code(line) == prose


def test_code_is_no_claim_and_its_comments_are() -> None:
    """Inside an answer."""
    answer = (
        "Set the limit in the client as follows.\n\n```python\nclient = connect(limit=30)\n"
        "# every guest gets a free car\nclient.run()\n```\n\nThen start the client again."
    )
    assert " ".join(read(answer)) == (
        "Set the limit in the client as follows. every guest gets a free car "
        "Then start the client again."
    )


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_an_answer_of_code_alone_is_unverified(fence: str) -> None:
    """It says so instead of calling it supported or invented."""
    code = "SELECT id, customer, total\nFROM orders\nORDER BY total DESC\nLIMIT 10;"
    found = outcome(f"{fence}sql\n{code}\n{fence}")
    assert (found.state, found.reason) == (State.UNVERIFIED, "unsupported_language")
    assert found.coverage is not None
    read_chars, total = found.coverage.answer
    assert total - read_chars >= len(code.replace("\n", ""))


@pytest.mark.parametrize("tag", ["", "json", "yaml", "text", "markdown"])
def test_blocks_of_data_or_text_are_read_like_any_text(tag: str) -> None:
    """What they say may be wrong."""
    answer = f"```{tag}\nbenefit: every guest gets a free car\n```"
    assert "every guest gets a free car" in " ".join(read(answer))


def test_a_line_knows_where_it_stands() -> None:
    """Offsets are those of the answer."""
    found = layout_of(TABLE)
    assert [TABLE[at : at + size] for at, size in found.length.items()] == TABLE.splitlines()[2:]
    assert found.unread == 0


def test_words_that_nobody_said_are_counted() -> None:
    """Whoever invents something names it; talk about the answer and other forms do not count."""
    seen = SegmentedSample(
        Sample("", "Which plan has more speed?", (Passage("Home 500 gives 500 Mbit/s for $59."),))
    )
    texts = (
        "Home 500 gives you more speed.",
        "It makes sense to take that one, of course.",
        "Giving plans: Home.",
        "Home 500 comes with a complimentary router and a lounge voucher.",
        "",
    )
    assert [found.words for found in unsaid(seen, texts)] == [0, 0, 0, 4, 0]
    assert [found.of for found in unsaid(seen, texts)][2:] == [1, 5, 0]


def test_such_words_lower_a_claim() -> None:
    """By a step on the logit each, up to a bound; certainty stays."""
    found = [lowered(0.5, Unsaid(n, 9)) for n in range(MOST_UNSAID + 3)]
    assert found[0] == 0.5
    assert found[: MOST_UNSAID + 1] == sorted(found[: MOST_UNSAID + 1], reverse=True)
    assert found[MOST_UNSAID:] == [found[MOST_UNSAID]] * 3
    assert found[1] == pytest.approx(0.40131, abs=1e-5)
    assert (lowered(0.0, Unsaid(3, 9)), lowered(1.0, Unsaid(3, 9))) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("words", "of", "less"), [(2, 2, 1.3), (2, 3, 0.8), (1, 1, 0.4), (5, 5, 1.7), (0, 0, 0.0)]
)
def test_a_claim_of_words_that_nobody_said_is_lowered_further(
    words: int, of: int, less: float
) -> None:
    """One word alone may be chance."""
    odds = lowered(0.5, Unsaid(words, of))
    assert math.log((1 - odds) / odds) == pytest.approx(less)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('print("The fee is thirty euros")', "The fee is thirty euros"),
        ('curl -H "Content-Type: application/json"', ""),
        ('db.run("UPDATE items SET price = :price WHERE id = :id")', ""),
        ("export REPO=/path/to/repo", ""),
    ],
)
def test_headers_and_queries_are_no_prose(line: str, told: str) -> None:
    """Strings that tell people something are read."""
    assert prose_in_code(line) == told
