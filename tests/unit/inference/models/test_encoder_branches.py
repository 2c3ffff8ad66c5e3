"""Branches: models on the encoder's middle states."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.models.encoder import Branch, BranchClassifier, SharedEncoder
from guardrail_service.inference.models.session import ModelSession
from guardrail_service.inference.pack import load_pack
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.types import Row
from tests import tiny_pack, tiny_reference

LABELS = ["toxicity", "insult"]


@pytest.fixture
def pack(tiny: Path, tmp_path: Path) -> Path:
    """The tiny pack with a branch that serves both safety roles."""
    folder = Path(shutil.copytree(tiny, tmp_path / "tiny"))
    tiny_pack.add_branch(folder, roles=["toxicity", "bias"], labels=LABELS)
    return folder


def classifier(folder: Path) -> BranchClassifier:
    """Return the pack's branch as a classifier."""
    pack = load_pack(folder)
    encoder = SharedEncoder(
        ModelSession(pack, "embedding"), ("sentence_embedding", "middle_states")
    )
    return BranchClassifier(Branch(pack, "branch", encoder))


def test_a_classifier_gives_a_probability_for_each_label(pack: Path) -> None:
    """By name, in the manifest's order, whatever the row asks for."""
    found = classifier(pack).run(Row("toxicity", "the pool")).outputs
    assert list(found) == LABELS
    assert all(value.shape == () and 0 < value < 1 for value in found.values())
    assert found["toxicity"] != found["insult"]


def test_two_roles_of_one_model_share_one_session(pack: Path) -> None:
    """So a text that both judge costs one pass."""
    sessions = open_sessions(load_pack(pack))
    toxicity = sessions["toxicity"].run(Row("toxicity", "dogs"))
    bias = sessions["bias"].run(Row("bias", "dogs"))
    assert bias.inference_ms == 0.0
    assert bias.outputs == toxicity.outputs


def test_the_branch_reads_the_encoders_states(pack: Path) -> None:
    """Recomputed by hand from the encoder's output and the branch's weights."""
    weights = np.random.default_rng(11).normal(size=(tiny_pack.DIM, 2)).astype(np.float32)
    session = ModelSession(load_pack(pack), "embedding")
    states = session.run(Row("embedding", "the pool", outputs=("middle_states",))).outputs
    expected = 1 / (1 + np.exp(-states["middle_states"].mean(axis=0) @ weights))
    found = classifier(pack).run(Row("toxicity", "the pool")).outputs
    np.testing.assert_allclose([float(p) for p in found.values()], expected, rtol=1e-5)


def test_a_text_longer_than_the_encoder_reads_fails(pack: Path) -> None:
    """It is never cut."""
    with pytest.raises(RowFailed):
        classifier(pack).run(Row("toxicity", "the pool " * 40))


def test_a_classifier_without_labels_is_refused(tiny: Path, tmp_path: Path) -> None:
    """What an output means is declared, never guessed."""
    folder = Path(shutil.copytree(tiny, tmp_path / "unnamed"))
    tiny_pack.add_branch(folder, roles=["toxicity"], labels=None)
    with pytest.raises(PackError, match="labels"):
        open_sessions(load_pack(folder))


def test_a_model_that_names_an_encoder_must_read_it(pack: Path) -> None:
    """A manifest edited by hand stops the start."""
    manifest = json.loads((pack / "manifest.json").read_text())
    manifest["models"]["tiny2"] = manifest["models"]["tiny"] | {"encoder": "tiny"}
    manifest["roles"]["bias"] = "tiny2"
    (pack / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(PackError, match="middle_states"):
        open_sessions(load_pack(pack))


def test_a_reader_needs_the_role_embedding(pack: Path) -> None:
    """The branch alone has nothing to read."""
    manifest = json.loads((pack / "manifest.json").read_text())
    del manifest["roles"]["embedding"]
    (pack / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(PackError, match="no role embedding"):
        open_sessions(load_pack(pack))


def test_the_encoder_keeps_what_a_branch_and_what_another_reader_need(pack: Path) -> None:
    """A head on the top states may stand beside a branch on the middle ones."""
    manifest = json.loads((pack / "manifest.json").read_text())
    only_branch = open_sessions(load_pack(pack))["embedding"]
    assert isinstance(only_branch, SharedEncoder)
    assert set(only_branch.encode("the pool").outputs) == {"sentence_embedding", "middle_states"}
    head = manifest["models"]["branch"] | {"inputs": ["claim"]}
    manifest["models"]["head"] = head
    (pack / "manifest.json").write_text(json.dumps(manifest))
    both = open_sessions(load_pack(pack))["embedding"]
    assert isinstance(both, SharedEncoder)
    kept = {"sentence_embedding", "middle_states", "token_embeddings"}
    assert set(both.encode("the pool").outputs) == kept


@pytest.mark.parametrize(
    ("padding", "said"),
    [
        ({"side": "right", "id": 0}, "found one on the right for inputs middle_states; expected"),
        ({"side": "left", "id": 0, "multiple": 4}, "found one on the left"),
    ],
)
def test_a_branch_is_filled_up_on_the_right_and_told_where(
    padding: dict[str, Any], said: str, pack: Path
) -> None:
    """Without a mask it would read what fills a text up."""
    tiny_reference.change(pack, lambda m: m["models"]["branch"].update(padding=padding))
    with pytest.raises(PackError, match=said):
        open_sessions(load_pack(pack))
