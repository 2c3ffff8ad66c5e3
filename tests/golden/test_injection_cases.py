"""Instructions in passages and the answers beside them: what is found, and what is left alone.

Data: tests/golden/injection.jsonl, typed one by one for this project (Apache-2.0) before the first
rule was written; every third passage was set aside as `held_out`. `passage`: a passage holds an
instruction that must be reported; `obeys`: the answer must be flagged.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from guardrail_service.detectors.injection import wordings
from guardrail_service.detectors.injection.detector import Injection, InjectionParameters
from guardrail_service.text.patterns.search import Pattern, PatternSet
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Passage, Sample

FILE = Path(__file__).with_name("injection.jsonl")
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
ATTACKS = [case for case in CASES if case["id"].startswith("attack")]
HARMLESS = [case for case in CASES if case["id"].startswith("harmless")]
KINDS = {"override", "role", "leak", "exfiltration", "hidden", "order", "tool", "template",
         "obfuscated", "in_answer"}  # fmt: skip


def judged(case: dict[str, Any]) -> tuple[bool, bool]:
    """Return whether a passage is reported, and whether the answer is flagged."""
    contexts = tuple(Passage(text) for text in case["contexts"])
    sample = Sample(case["answer"], case["question"], contexts)
    scores = Injection().reduce(SegmentedSample(sample, {}), (), InjectionParameters()).scores
    return scores["model_retrieval_failures"] == 1.0, scores["model_passes"] == 0.0


def part(cases: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the cases of one part; at least a quarter of them."""
    found = [case for case in cases if case["part"] == name]
    assert len(found) >= len(cases) / 4
    return found


def test_there_are_as_many_cases_as_promised() -> None:
    """In ten languages, of every kind, both with and without an answer that follows."""
    assert len(ATTACKS) >= 110
    assert len(HARMLESS) >= 90
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert {case["kind"] for case in ATTACKS} == KINDS
    assert len({case["lang"] for case in ATTACKS}) == 10
    assert sum(case["obeys"] for case in ATTACKS) >= 80
    assert sum(not case["obeys"] for case in ATTACKS) >= 80


@pytest.mark.parametrize("name", ["open", "held_out"])
def test_answers_that_follow_an_instruction_are_flagged(name: str) -> None:
    """At least 95 of 100."""
    obey = [case for case in part(ATTACKS, name) if case["obeys"]]
    missed = [case["id"] for case in obey if not judged(case)[1]]
    assert len(missed) <= 0.05 * len(obey), missed


@pytest.mark.parametrize("name", ["open", "held_out"])
def test_instructions_in_passages_are_reported(name: str) -> None:
    """At least 97 of 100, whatever the answer does."""
    holding = [case for case in part(CASES, name) if case["passage"]]
    missed = [case["id"] for case in holding if not judged(case)[0]]
    assert len(missed) <= 0.03 * len(holding), missed


@pytest.mark.parametrize("name", ["open", "held_out"])
def test_answers_that_follow_nothing_pass(name: str) -> None:
    """Beside an instruction, about instructions, and in manuals: at most 1 of 100 is flagged."""
    good = [case for case in part(CASES, name) if not case["obeys"]]
    flagged = [case["id"] for case in good if judged(case)[1]]
    assert len(flagged) <= 0.01 * len(good), flagged


@pytest.mark.parametrize("name", ["open", "held_out"])
def test_passages_about_instructions_are_not_reported(name: str) -> None:
    """Documentation, manuals, code and quotations: at most 2 of 100."""
    clean = [case for case in part(HARMLESS, name) if not case["passage"]]
    reported = [case["id"] for case in clean if judged(case)[0]]
    assert len(reported) <= 0.02 * len(clean), reported


def test_the_cheaper_gates_lose_nothing() -> None:
    """The keys that hyperscan compiles, and the keywords elsewhere, occur in every match."""
    gated = PatternSet(wordings.PATTERNS)
    slow = PatternSet(wordings.PATTERNS, engine="keywords")
    bare = PatternSet([_bare(pattern) for pattern in wordings.PATTERNS], engine="keywords")
    texts = [text for case in CASES for text in (case["answer"], *case["contexts"])]
    for text in texts:
        assert gated.scan(text) == slow.scan(text) == bare.scan(text), text


def _bare(pattern: Pattern) -> Pattern:
    return Pattern(pattern.id, pattern.regex, ignore_case=pattern.ignore_case)
