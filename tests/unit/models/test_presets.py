"""The answers on which the presets' joint budget is fitted; models/thresholds/presets.py."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[3] / "models" / "thresholds"


@pytest.fixture(scope="module")
def presets() -> ModuleType:
    """Return the script as a module."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module("presets")
    finally:
        sys.path.remove(str(FOLDER))
        for name in ("presets", "fit"):
            sys.modules.pop(name, None)


def test_ordinary_answers_are_good_and_those_to_the_same_passages_are_one_group(
    presets: ModuleType,
) -> None:
    """A group must not choose a threshold with one half and be judged with the other."""
    cases = list(presets.ordinary(presets.ORDINARY))
    assert len(cases) == 300 + 150 + 120 + 288
    assert all(about["good"] for about, _ in cases)
    groups = {sample.contexts: about["group"] for about, sample in cases}
    assert len(set(groups.values())) == len(groups) < len(cases)
    assert all(groups[sample.contexts] == about["group"] for about, sample in cases)
    assert not any("¦" in sample.answer for _, sample in cases)


def test_ordinary_answers_weigh_as_much_as_the_other_sets(presets: ModuleType) -> None:
    """However many there are."""
    sets = [("answers", 2), ("written", 3), ("ordinary", 5)]
    cases = [presets.Scored(of, of, "g", True, {}, False) for of, n in sets for _ in range(n)]
    weights = presets.weights_of(cases)
    assert weights[:2].sum() == pytest.approx(1 / 3)
    assert weights[5:].sum() == pytest.approx(1 / 3)
