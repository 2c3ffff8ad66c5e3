"""Text classifiers: probabilities by label, never a guess about what an output means."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.models.classifier import ClassifierSession
from guardrail_service.inference.pack import load_pack
from guardrail_service.types import Row
from tests import tiny_reference


@pytest.fixture(scope="module")
def pack(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny pack with a classifier of six labels."""
    folder = Path(shutil.copytree(tiny, tmp_path_factory.mktemp("classifier") / "tiny"))
    labels = tiny_reference.TOXICITY
    model = tiny_reference.classifier(labels)
    tiny_reference.add(folder, "toxicity", model, labels=labels, activation="sigmoid")
    return folder


def test_a_row_gets_a_probability_for_each_label(pack: Path) -> None:
    """By name, in the manifest's order, whatever the row asks for; the numbers are the graph's."""
    session = ClassifierSession(load_pack(pack), "toxicity")
    found = session.run(Row("toxicity", "the pool opens")).outputs
    assert tuple(found) == tiny_reference.TOXICITY
    assert all(value.shape == () and value.dtype == np.float32 for value in found.values())
    ids = session.tokenizer.ids("the pool opens")
    raw = ort.InferenceSession(str(pack / "toxicity" / "model.onnx"))
    feeds = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
    np.testing.assert_array_equal(raw.run(None, feeds)[0][0], list(found.values()))


def test_two_texts_are_read_together(tiny: Path, tmp_path: Path) -> None:
    """As those of the role `similarity` are."""
    folder = Path(shutil.copytree(tiny, tmp_path / "pairs"))
    labels = ("similarity",)
    model = tiny_reference.classifier(labels)
    tiny_reference.add(folder, "similarity", model, labels=labels, activation="sigmoid")
    session = ClassifierSession(load_pack(folder), "similarity")
    (pair,) = session.run(Row("similarity", "the pool", "opens")).outputs.values()
    ids = session.tokenizer.ids("the pool", "opens")
    raw = ort.InferenceSession(str(folder / "similarity" / "model.onnx"))
    feeds = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
    assert pair == raw.run(None, feeds)[0][0][0]


def test_a_text_longer_than_the_model_reads_fails(pack: Path) -> None:
    """It is never cut."""
    with pytest.raises(RowFailed, match="at most 32"):
        ClassifierSession(load_pack(pack), "toxicity").run(Row("toxicity", "pool " * 40))


@pytest.mark.parametrize(
    ("labels", "found"), [(None, "no `labels`"), (["toxicity"], "found 1 labels")]
)
def test_outputs_without_a_name_each_are_refused(
    labels: list[str] | None, found: str, pack: Path, tmp_path: Path
) -> None:
    """What an output means is declared."""
    folder = Path(shutil.copytree(pack, tmp_path / "unnamed"))
    model = tiny_reference.classifier(tiny_reference.TOXICITY)
    tiny_reference.add(folder, "toxicity", model, labels=labels, activation="sigmoid")
    with pytest.raises(PackError, match=found):
        ClassifierSession(load_pack(folder), "toxicity")
