"""Tokenizers of stand-ins: the same files every time, of each architecture's own kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from guardrail_models.recipes import Recipe, shipped_recipes
from guardrail_models.stand_in_tokenizers import SIZE, write_tokenizer

ARCHITECTURES = {recipe.architecture: recipe for recipe in shipped_recipes().values()}
RECIPES = pytest.mark.parametrize("recipe", ARCHITECTURES.values(), ids=ARCHITECTURES)


def files(folder: Path) -> dict[str, bytes]:
    """Return what lies in a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@RECIPES
def test_the_files_are_the_same_every_time(recipe: Recipe, tmp_path: Path) -> None:
    """So that a test compares the same scores in every run."""
    (first := tmp_path / "first").mkdir()
    (second := tmp_path / "second").mkdir()
    assert write_tokenizer(recipe, first) == write_tokenizer(recipe, second)
    assert files(first) == files(second)


@pytest.mark.parametrize("recipe", [r for r in ARCHITECTURES.values() if r.loader != "tensorflow"])
def test_texts_become_words_and_pieces(recipe: Recipe, tmp_path: Path) -> None:
    """Known words are whole, others are pieces; two texts are told apart as the original does."""
    ids = write_tokenizer(recipe, tmp_path)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert 600 < tokenizer.get_vocab_size() <= SIZE
    found = tokenizer.encode("The invoice is due", "zebras").tokens
    assert any(token.lower().endswith("invoice") for token in found)
    assert len([token for token in found if len(token.strip("#\u2581")) == 1]) >= 6
    ends = found.count(tokenizer.id_to_token(ids["eos"])) if "eos" in ids else 0
    assert ends == {"t5": 2, "deberta-v2": 2, "roberta": 3}.get(recipe.architecture, 0)


def test_the_older_repository_has_no_fast_tokenizer(tmp_path: Path) -> None:
    """The vocabulary is all there is; the library makes the rest of it."""
    write_tokenizer(shipped_recipes()["bias-detection-model"], tmp_path)
    assert set(files(tmp_path)) == {"vocab.txt", "tokenizer_config.json", "special_tokens_map.json"}
    words = (tmp_path / "vocab.txt").read_text().splitlines()
    assert words[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert "invoice" in words
