"""The segmenter stays at least as good on both labelled files as when it was recorded."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def compare() -> ModuleType:
    """Load the comparison script that sits beside this file."""
    path = HERE / "compare_segmenters.py"
    spec = importlib.util.spec_from_file_location("compare_segmenters", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "least_texts", "recorded"),
    [("segmentation", 120, 1.0), ("segmentation_heldout", 60, 1.0)],
)
def test_exact_sentence_f1_stays_as_recorded(
    compare: ModuleType, name: str, least_texts: int, recorded: float
) -> None:
    """docs/decisions/0001-sentence-segmenter.md holds the recorded values."""
    rows = compare.read(HERE / f"{name}.jsonl")
    assert len(rows) >= least_texts
    assert compare.f1(rows, compare.ours)["all"] >= recorded


@pytest.mark.parametrize("name", ["segmentation", "segmentation_heldout"])
def test_labels_are_ordered_and_hold_every_visible_character(
    compare: ModuleType, name: str
) -> None:
    """A label that loses text would teach the segmenter to lose it."""
    for row in compare.read(HERE / f"{name}.jsonl"):
        end = 0
        for start, stop in row["sentences"]:
            assert not row["text"][end:start].strip()
            end = stop
        assert not row["text"][end:].strip()
