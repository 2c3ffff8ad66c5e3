"""Recall and silence of the secrets finder on made-up cases (written for this project, Apache-2.0).

Data: tests/golden/secrets_cases.jsonl, written by make_secrets_cases.py from a fixed seed.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_service.detectors.secrets.detector import find
from guardrail_service.detectors.secrets.patterns import KINDS
from tests.golden import make_secrets_cases, secret_cases

ROOT = Path(__file__).parents[2]
CASES = secret_cases.load()
INNOCENT = [case for case in CASES if not case["spans"]]


def _found(text: str) -> set[tuple[int, int, str]]:
    return {(f.start, f.end, f.type) for f in find(text)}


def _wanted(case: dict[str, Any]) -> set[tuple[int, int, str]]:
    return {(s["start"], s["end"], s["type"]) for s in case["spans"]}


def test_there_are_as_many_cases_as_promised() -> None:
    """At least 250 secrets and 100 innocents, so that the rates below mean something."""
    assert sum(len(case["spans"]) for case in CASES) >= 250
    assert len(INNOCENT) >= 100


def test_recall_is_at_least_95_percent_with_exact_offsets_and_kinds() -> None:
    """A finding counts only if start, end and kind are the labelled ones."""
    hits = sum(len(_found(case["text"]) & _wanted(case)) for case in CASES)
    assert hits / sum(len(case["spans"]) for case in CASES) >= 0.95


def test_no_case_has_a_finding_beside_the_labelled_ones() -> None:
    """What stands around a secret is not one."""
    assert [c["text"] for c in CASES if _found(c["text"]) - _wanted(c)] == []


@pytest.mark.parametrize("case", INNOCENT, ids=lambda case: case["text"][:40])
def test_what_is_not_a_secret_is_left_alone(case: dict[str, Any]) -> None:
    """UUIDs, hashes, certificates, package names, images, placeholders, code and prose."""
    assert _found(case["text"]) == set()


def test_the_file_is_what_its_maker_writes() -> None:
    """Cases are changed in the maker, so that the file can be told to be made up."""
    made = [json.dumps(case, ensure_ascii=False) for case in make_secrets_cases.cases()]
    assert secret_cases.PATH.read_text(encoding="utf-8").splitlines() == made


def test_no_secret_stands_in_one_piece_in_the_file() -> None:
    """A push scanner must have nothing to find; our own finder stands in for it."""
    for line in secret_cases.PATH.read_text(encoding="utf-8").splitlines():
        specific = [f for f in find(json.loads(line)["text"]) if f.rank >= 2]
        assert specific == [], line[:60]


def test_every_case_has_a_published_kind() -> None:
    """Labels outside the table would never be found."""
    assert {s["type"] for case in CASES for s in case["spans"]} <= KINDS.keys()


def test_the_projects_own_documents_raise_no_alarm() -> None:
    """A small stand-in for the large prose measurement whose numbers are in docs/secrets.md."""
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "LICENSE"):
        if path.name != "secrets.md":
            assert find(path.read_text(encoding="utf-8")) == [], path.name
