"""One graph and its tokenizer: padding as declared, and a manifest that agrees with the graph."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.models.session import Encoded, TextModel, feeds
from guardrail_service.inference.pack import ModelFile, load_pack
from tests import tiny_reference

ROWS = [Encoded([5, 6, 7], [0, 0, 1]), Encoded([8], [0])]


@pytest.fixture(scope="module")
def pack(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny pack with a cross-encoder, which reads token types."""
    folder = Path(shutil.copytree(tiny, tmp_path_factory.mktemp("text") / "tiny"))
    model = tiny_reference.pair(tiny_reference.THREE)
    labels = tiny_reference.THREE
    tiny_reference.add(folder, "nli", model, labels=labels, activation="softmax")
    return folder


def padded(file: ModelFile, side: str) -> ModelFile:
    """Return the entry with padding on a side."""
    return ModelFile.model_validate(
        {**file.model_dump(mode="json"), "padding": {"side": side, "id": 9}}
    )


def test_shorter_rows_are_filled_up_as_declared(pack: Path) -> None:
    """Side and token come from the manifest; what fills up is masked."""
    file = load_pack(pack).model("nli")
    right = feeds(ROWS, padded(file, "right"))
    assert right["input_ids"].tolist() == [[5, 6, 7], [8, 9, 9]]
    assert right["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert right["token_type_ids"].tolist() == [[0, 0, 1], [0, 0, 0]]
    left = feeds(ROWS, padded(file, "left"))
    assert left["input_ids"].tolist() == [[5, 6, 7], [9, 9, 8]]
    assert left["attention_mask"].tolist() == [[1, 1, 1], [0, 0, 1]]


@pytest.mark.parametrize(("side", "second"), [("right", [0, 1, 0]), ("left", [0, 0, 1])])
def test_positions_count_from_a_rows_own_first_token(
    side: str, second: list[int], pack: Path
) -> None:
    """Or a row padded on the left would stand at other places than alone."""
    file = padded(load_pack(pack).model("nli"), side)
    reads = file.model_copy(update={"inputs": ("position_ids",)})
    rows = [Encoded([5, 6, 7], [0, 0, 0]), Encoded([8, 9], [0, 0])]
    assert feeds(rows, reads)["position_ids"].tolist() == [[0, 1, 2], second]


def test_rows_of_several_lengths_need_a_rule(pack: Path) -> None:
    """A file that says nothing about padding runs rows alone."""
    file = load_pack(pack).model("nli").model_copy(update={"padding": None})
    assert feeds(ROWS[:1], file)["input_ids"].shape == (1, 3)
    with pytest.raises(RowFailed, match="padding"):
        feeds(ROWS, file)


@pytest.mark.parametrize("rows", [[], [Encoded([], [])]])
def test_a_row_without_a_token_fails(rows: list[Encoded], pack: Path) -> None:
    """There is nothing to run."""
    with pytest.raises(RowFailed, match="no token"):
        feeds(rows, load_pack(pack).model("nli"))


def test_a_padded_row_scores_as_it_does_alone(pack: Path) -> None:
    """The mask keeps what fills up out of the score."""
    model = TextModel(load_pack(pack), "nli")
    together = model.run(ROWS, "probabilities")
    alone = np.stack([model.run([row], "probabilities")[0] for row in ROWS])
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("labels", ["contradicted", "supported", "not_mentioned"]),
        ("activation", "sigmoid"),
        ("max_tokens", 64),
        ("template", "{premise} {hypothesis}"),
        ("padding", {"side": "left", "id": 0}),
    ],
)
def test_a_manifest_that_contradicts_its_graph_is_refused(
    key: str, value: Any, pack: Path, tmp_path: Path
) -> None:
    """Even sealed again: the graph carries what it was exported with."""
    folder = Path(shutil.copytree(pack, tmp_path / "edited"))
    tiny_reference.change(folder, lambda m: m["models"]["nli"].update({key: value}))
    with pytest.raises(PackError, match=f"manifest key {key}: found .* expected .* graph"):
        TextModel(load_pack(folder), "nli")
