"""Language models: a log probability for each token of the text."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.models.causal_lm import CausalLmSession
from guardrail_service.inference.pack import load_pack
from guardrail_service.types import Row
from tests import tiny_reference


@pytest.fixture(scope="module")
def pack(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny pack with a language model."""
    folder = Path(shutil.copytree(tiny, tmp_path_factory.mktemp("causal") / "tiny"))
    start = tiny_reference.START
    tiny_reference.add(folder, "causal_lm", tiny_reference.causal(), start_token=start)
    return folder


@pytest.fixture(scope="module")
def session(pack: Path) -> CausalLmSession:
    """The language model."""
    return CausalLmSession(load_pack(pack))


def test_each_token_is_judged_by_those_before_it(session: CausalLmSession, pack: Path) -> None:
    """Recomputed from the weights."""
    graph = onnx.load(str(pack / "causal_lm" / "model.onnx")).graph
    arrays = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    ids = [session.tokenizer.token_id("[CLS]"), *session.tokenizer.raw_ids("the pool opens")]
    logits = arrays["table"][ids[:-1]] @ arrays["weights"]
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = [logs[place, token] for place, token in enumerate(ids[1:])]
    np.testing.assert_allclose(session.log_probabilities("", "the pool opens"), expected, rtol=1e-4)


def test_only_the_texts_own_tokens_are_given(session: CausalLmSession) -> None:
    """The prompt is read, not judged; the first token after it depends on it."""
    found = session.log_probabilities("guests may", "the pool")
    assert found.shape == (2,)
    assert found.dtype == np.float32
    assert (found <= 0).all()
    assert found[0] != session.log_probabilities("dogs", "the pool")[0]
    assert found[1] == session.log_probabilities("dogs", "the pool")[1]


def test_a_row_gives_the_same(session: CausalLmSession) -> None:
    """The prompt is the row's text."""
    found = session.run(Row("causal_lm", "guests may", "the pool", ("log_probabilities",)))
    np.testing.assert_array_equal(
        found.outputs["log_probabilities"], session.log_probabilities("guests may", "the pool")
    )


@pytest.mark.parametrize(("prompt", "text"), [("dogs", ""), ("pool " * 20, "pool " * 20)])
def test_what_cannot_be_judged_fails(prompt: str, text: str, session: CausalLmSession) -> None:
    """No token, or more than the model reads; nothing is cut."""
    with pytest.raises(RowFailed):
        session.log_probabilities(prompt, text)


def test_a_model_needs_a_token_to_start_with(pack: Path, tmp_path: Path) -> None:
    """Or the first token would have no probability."""
    folder = Path(shutil.copytree(pack, tmp_path / "no_start"))
    tiny_reference.add(folder, "causal_lm", tiny_reference.causal(), start_token=None)
    with pytest.raises(PackError, match="start_token"):
        CausalLmSession(load_pack(folder))
