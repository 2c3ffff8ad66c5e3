"""What the encoding detector finds in made-up payloads (written for this project, Apache-2.0).

Data: tests/golden/encoding_cases.jsonl, written by make_encoding_cases.py from a fixed seed.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_service.detectors.encoding import EncodingParameters, hidden
from guardrail_service.text.decoding.decode import search
from tests.golden import make_encoding_cases

PATH = Path(__file__).with_name("encoding_cases.jsonl")
CASES: list[dict[str, Any]] = [json.loads(line) for line in PATH.read_text().splitlines()]
PARAMETERS = EncodingParameters()


def _found(text: str) -> set[tuple[int, int, str]]:
    found = hidden(text, search(text), PARAMETERS)
    return {(item.start, item.end, f"encoded_{item.type}") for item in found}


def _wanted(case: dict[str, Any]) -> set[tuple[int, int, str]]:
    return {(s["start"], s["end"], s["type"]) for s in case["spans"]}


def test_there_are_as_many_cases_as_promised() -> None:
    """At least 100 payloads and 60 innocents."""
    assert sum(len(case["spans"]) for case in CASES) >= 100
    assert sum(not case["spans"] for case in CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case["text"][:40]))
def test_payloads_are_found_where_they_stand_and_nothing_else_is(case: dict[str, Any]) -> None:
    """Exact offsets of the encoded part, exact type, no finding in the innocents."""
    assert _found(case["text"]) == _wanted(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case["text"][:40]))
def test_only_broken_encodings_are_parse_failures(case: dict[str, Any]) -> None:
    """And no bound is met by a text of ordinary length."""
    decoded = search(case["text"])
    assert (decoded.failures > 0) is case.get("broken", False)
    assert decoded.complete


def test_the_file_is_what_its_maker_writes() -> None:
    """Cases are changed in the maker, so that the file can be told to be made up."""
    made = [json.dumps(case) for case in make_encoding_cases.cases()]
    assert PATH.read_text().splitlines() == made
