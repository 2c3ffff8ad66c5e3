"""The parts of the safety model's training mix that need no training library."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

SEEDED = Random
"""Reproducible draws, no secrets."""

FOLDER = Path(__file__).parents[3] / "models" / "training" / "safety"


def load(name: str) -> ModuleType:
    """Return a module of the folder, which lies outside every package."""
    folder = FOLDER.parent if name == "corpora" else FOLDER
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    """Return the folder's modules; `written` imports `texts` by that name."""
    before = sys.modules.get("texts")
    names = ("corpora", "texts", "disguises", "written")
    yield {name: load(name) for name in names}
    for name in names:
        del sys.modules[name]
    if before is not None:
        sys.modules["texts"] = before


@pytest.mark.parametrize("name", ["toxicity_eval_jigsaw.jsonl.gz", "bias_dev.jsonl"])
def test_held_out_files_are_refused(modules: dict[str, ModuleType], name: str) -> None:
    """By their name, before anything is read."""
    with pytest.raises(SystemExit, match="held-out"):
        modules["corpora"].refuse_held_out(Path(name))


def test_evaluation_texts_are_recognised_whatever_their_punctuation(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    """Texts of fewer than five words repeat by chance."""
    texts = modules["corpora"]
    path = tmp_path / "eval.jsonl"
    rows = [{"text": "The pool, it opens at SEVEN!"}, {"text": "ok, fine"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    found = texts.held_out_keys([path], ("text",), 5)
    assert texts.key("the pool it opens: at seven") in found
    assert texts.key("ok fine") not in found


def test_what_a_source_does_not_label_stays_unknown(modules: dict[str, ModuleType]) -> None:
    """A label that is missing is not a negative."""
    texts = modules["texts"]
    hate = {"source": "hatexplain", "label": 1, "cls": "offensive"}
    assert set(texts.known(hate)) == {"toxicity"}
    sexist = {"source": "edos", "label": 1}
    assert texts.known(sexist) == {"gender": (1.0, 1.0)}
    civil = {"insult": 0.6, "threat": 0.0, "identity_attack": 0.1, "obscene": 0.0}
    soft = texts.known({"source": "civil_toxic_spans", "labels": civil})
    assert soft["insult"][0] == 0.6
    assert "severe_toxicity" not in soft


def test_an_unknown_source_is_refused(modules: dict[str, ModuleType]) -> None:
    """Its labels would be guessed."""
    with pytest.raises(SystemExit, match="expected one of"):
        modules["texts"].known({"source": "elsewhere", "label": 1})


def test_no_written_wording_is_in_training_and_development(modules: dict[str, ModuleType]) -> None:
    """Patterns are split before groups are filled in."""
    content = json.loads((FOLDER / "written.json").read_text(encoding="utf-8"))
    train, dev = modules["written"].made(content, 17)
    assert not {row["text"] for row in train} & {row["text"] for row in dev}
    assert len(train) > 1000
    assert {row["kind"] for row in dev} >= {"hate", "counter", "polite", "identity_neutral"}
    assert modules["written"].made(content, 17) == (train, dev)


def test_minimal_pairs_stand_beside_each_other_and_no_wording_is_in_both_files(
    modules: dict[str, ModuleType],
) -> None:
    """The bad text first; slots are filled alike in both, and the label says where they differ."""
    content = json.loads((FOLDER / "pairs.json").read_text(encoding="utf-8"))
    train, dev = modules["written"].paired(content, 17)
    assert not {row["text"] for row in train} & {row["text"] for row in dev}
    assert {row["kind"] for row in train} == {row["kind"] for row in dev} == set(content["kinds"])
    for rows in (train, dev):
        for bad, good in zip(rows[::2], rows[1::2], strict=True):
            assert (bad["label"], good["label"]) == (1, 0)
            assert bad["on"] == good["on"]
            assert modules["texts"].known(bad)[bad["on"]][0] == 1
            assert modules["texts"].known(good)[good["on"]][0] == 0
            assert "{" not in bad["text"] + good["text"]
    assert modules["written"].paired(content, 17) == (train, dev)


def test_a_disguise_changes_words_and_is_the_same_for_the_same_seed(
    modules: dict[str, ModuleType],
) -> None:
    """So that a training run can be repeated."""
    text = "nobody should ever believe these people again"
    change = modules["disguises"].disguised
    made = [change(text, SEEDED(seed)) for seed in range(30)]
    assert made == [change(text, SEEDED(seed)) for seed in range(30)]
    assert sum(other != text for other in made) > 20
    joined = modules["disguises"].without_spaces(text, SEEDED(1))
    assert joined.replace(" ", "") == text.replace(" ", "")
    assert joined != text
