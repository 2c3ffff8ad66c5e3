"""The parts of the training mix that need no training library."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

SOURCE = Path(__file__).parents[3] / "models" / "train" / "grounding" / "texts.py"


@pytest.fixture(scope="module")
def texts() -> ModuleType:
    """Return the module, which lies outside every package."""
    spec = importlib.util.spec_from_file_location("grounding_texts", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["eval_q2.jsonl.gz", "dev.jsonl", "toxicity_dev.jsonl"])
def test_held_out_files_are_refused(texts: ModuleType, name: str) -> None:
    """By their name, before anything is read."""
    with pytest.raises(SystemExit, match="held-out"):
        texts.refuse_held_out(Path(name))


def test_pairs_with_an_evaluation_text_are_left_out(texts: ModuleType, tmp_path: Path) -> None:
    """Whatever file they came from, whatever their punctuation."""
    row = {
        "source": "fm2",
        "premise": "The harbour was opened in 1908 by the mayor of the old town.",
        "hypothesis": "The harbour opened in the year 1908, said the mayor.",
        "label": "entailment",
    }
    other = {**row, "hypothesis": "Someone else opened the harbour many years before that."}
    third = {**other, "premise": "A second passage about something else altogether, and longer."}
    train, held_out = tmp_path / "train.jsonl", tmp_path / "eval.jsonl"
    train.write_text("\n".join(map(json.dumps, (row, other, third))))
    held_out.write_text(json.dumps(row))
    config = {
        "seed": 1, "caps": {}, "edit_sources": ["fm2"], "edits": 0, "chat_sources": [],
        "chats": 0,
    }  # fmt: skip
    mix = texts.build_mix(config, {"pairs": train}, [held_out])
    assert [pair["claim"] for pair in mix] == [third["hypothesis"]]


def test_an_edit_changes_exactly_one_fact(texts: ModuleType) -> None:
    """Numbers, names and negations; None where there is nothing to change."""
    rng = Random(3)  # noqa: S311 - a reproducible draw
    base = "The bridge between Anna Square and Tolmin was built in 1908 for 1,200 people."
    for _ in range(20):
        changed = texts.swap_number(base, rng)
        assert changed != base
        assert changed.split()[:5] == base.split()[:5]
    assert texts.negate(base, rng) == base.replace("was built", "was not built")
    assert texts.swap_name(base, ["Vienna"], rng) != base
    assert texts.swap_number("No number here.", rng) is None
    assert texts.swap_name("no name here.", ["Vienna"], rng) is None


def test_the_same_seed_makes_the_same_mix(texts: ModuleType) -> None:
    """A run can be repeated."""
    cut = [["The pool opened in 1990 with 20 lanes.", "It was closed in May 2004 by Anna Berg."]]
    first, second = (texts.edited_pairs(cut, 20, Random(5)) for _ in range(2))  # noqa: S311 - seeded
    assert first == second
    assert {pair["label"] for pair in first} <= {0, 1, 2}
