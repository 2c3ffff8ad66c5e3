"""The parts of the training mix that need no training library."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[3] / "models" / "training" / "grounding"


@pytest.fixture(scope="module")
def texts() -> Iterator[ModuleType]:
    """Yield the module, which lies outside every package, with its neighbours in reach."""
    sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]
    try:
        yield importlib.import_module("texts")
    finally:
        del sys.path[:2]
        for name in ("texts", "edits", "corpora", "progress"):
            sys.modules.pop(name, None)


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


def test_the_same_seed_makes_the_same_mix(texts: ModuleType) -> None:
    """A run can be repeated."""
    cut = ["The pool opened in 1990 with 20 lanes.", "It was closed in May 2004 by Anna Berg."]
    pair = {"source": "own", "claim": "The pool has 20 lanes.", "sentences": cut, "label": 0}
    first, second = (
        texts.edited_pairs([pair], 20, Random(5))  # noqa: S311 - seeded
        for _ in range(2)
    )
    assert first == second
    assert {made["label"] for made in first} == {0, 1, 3}


def test_an_edited_claim_stands_beside_a_true_one_of_the_same_passage(texts: ModuleType) -> None:
    """So that a batch holds both, and no wording is always false."""
    cut = ["Anna Berg opened the pool in 1990.", "The water is not heated in winter."]
    pair = {"source": "own", "claim": "The pool opened in 1990.", "sentences": cut, "label": 0}
    made = texts.edited_pairs([pair], 200, Random(1))  # noqa: S311 - seeded
    passages = {tuple(row["sentences"]) for row in made}
    assert len(passages) > 1
    for passage in passages:
        labels = {row["label"] for row in made if tuple(row["sentences"]) == passage}
        assert 0 in labels
        assert labels - {0}


def test_a_claim_said_in_a_conversation_keeps_its_passage_and_label(texts: ModuleType) -> None:
    """Only the wording changes."""
    pair = {"source": "own", "claim": "Anna Berg swam.", "sentences": ["Anna swam."], "label": 0}
    said = texts.chatty(pair, Random(2))  # noqa: S311 - seeded
    assert said["claim"] != pair["claim"]
    assert "swam" in said["claim"].lower()
    assert {**said, "claim": pair["claim"]} == {**pair, "source": "own+chat"}


def test_every_part_of_the_mix_has_its_share(texts: ModuleType) -> None:
    """In a part the square root of a source's size counts; in the written part both labels do."""
    rows = [
        *({"source": "fm2+chat", "label": 0} for _ in range(3)),
        *({"source": "bump", "label": label} for label in (0, 1, 1, 1)),
        *({"source": "hagrid", "label": 0} for _ in range(16)),
    ]
    config = {
        "parts": {"written": {"share": 0.75}, "facts": {"share": 0.25, "sources": ["fever", "fm2"]}}
    }
    weights = texts.by_part(rows, [1.0] * len(rows), config)
    assert weights[:3].sum() == pytest.approx(0.25)
    assert weights[3] == pytest.approx(0.125)
    assert weights[4:7].sum() == pytest.approx(0.125)
    assert weights[7:].sum() == pytest.approx(0.5)


def test_a_source_of_low_weight_is_drawn_less(texts: ModuleType) -> None:
    """Its share falls in its part; other parts keep theirs."""
    rows = [{"source": source, "label": 0} for source in ("bump", "tatqa", "fm2")]
    config = {"parts": {"written": {"share": 0.6}, "facts": {"share": 0.4, "sources": ["fm2"]}}}
    assert texts.by_part(rows, [1.0, 0.2, 1.0], config) == pytest.approx([0.5, 0.1, 0.4])


@pytest.mark.parametrize(
    ("step", "after", "kept"), [(1, 50, 1 / 51), (480, 50, 480 / 530), (480, 10, 480 / 490)]
)
@pytest.mark.usefixtures("texts")
def test_averaged_weights_reach_back_further_the_longer_a_run(
    step: int, after: int, kept: float
) -> None:
    """They start with the last weights; a bound keeps a very long run moving."""
    progress = importlib.import_module("progress")
    assert progress.kept_share(step, 0.998, after) == pytest.approx(kept)
    assert progress.kept_share(10**6, 0.998, after) == 0.998
