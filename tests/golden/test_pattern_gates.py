"""Without hyperscan, as on Windows, every pattern finds the same on every text of the golden set.

Findings of personal data, secrets, instructions and links are made of these matches alone. The
sealed halves are not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrail_service.detectors import links
from guardrail_service.detectors.injection import instructions
from guardrail_service.detectors.pii import scan
from guardrail_service.detectors.secrets import detector as secrets
from guardrail_service.streaming import cut_points
from guardrail_service.text.patterns import search
from guardrail_service.text.patterns.search import Match, PatternSet, prepared

HERE = Path(__file__).parent
SERVICE = HERE.parents[1] / "service" / "guardrail_service"
MADE = {
    "personal data": (scan._sets, 0),
    "announced personal data": (scan._sets, 1),
    "secrets": (secrets.engine, None),
    "instructions": (instructions.engine, None),
    "links": (links.engine, None),
    "cuts of a stream": (cut_points._announced, None),
}
"""By name what makes a set once in each process, and which of several sets it is."""
ELSEWHERE = {"detectors/pii/detector.py", "detectors/safety_wordings.py"}
"""An operator's own patterns; and wordings that are looked for by keywords on every platform."""


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value.replace("¦", "")
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


def _documents() -> Iterator[Any]:
    for path in sorted([*HERE.rglob("*.json"), *HERE.rglob("*.jsonl")]):
        text = path.read_text("utf-8")
        yield from map(json.loads, text.splitlines() if path.suffix == ".jsonl" else [text])


@pytest.fixture(scope="module")
def texts() -> list[search.Prepared]:
    """Return every text of the golden set once."""
    found = dict.fromkeys(text for document in _documents() for text in _strings(document))
    assert len(found) >= 14_000
    return [prepared(text) for text in found]


def _one(made: Any, place: int | None) -> PatternSet:
    found: PatternSet = made if place is None else made[place]
    return found


@pytest.mark.parametrize("name", MADE)
def test_both_gates_lead_to_the_same_findings(
    name: str, texts: list[search.Prepared], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By rule, start and end."""
    make, place = MADE[name]
    gated = _one(make(), place)
    monkeypatch.setattr(search, "find_spec", lambda _: None)
    plain = _one(make.__wrapped__(), place)
    assert (gated.engine, plain.engine) == ("hyperscan", "keywords")
    differing: list[tuple[str, set[Match]]] = []
    matches = 0
    for text in texts:
        found, expected = gated.scan(text), plain.scan(text)
        matches += len(found)
        if found != expected:
            differing.append((text.text, set(found) ^ set(expected)))
    assert differing == []
    assert matches >= 1_000


def test_no_set_of_patterns_is_left_out() -> None:
    """One that is added later has to stand in the table above."""
    made = {
        str(path.relative_to(SERVICE))
        for path in SERVICE.rglob("*.py")
        if "PatternSet(" in path.read_text("utf-8").replace("class PatternSet", "")
    }
    assert made == ELSEWHERE | {
        "detectors/pii/scan.py",
        "detectors/secrets/detector.py",
        "detectors/injection/instructions.py",
        "detectors/links.py",
        "streaming/cut_points.py",
    }
