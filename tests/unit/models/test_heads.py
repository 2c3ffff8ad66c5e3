"""What exports end in: probabilities in our order, pooled vectors, log probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from guardrail_models import heads
from tests import tiny_reference

IDS = np.array([[1, 5, 9, 2], [1, 7, 2, 0]])
MASK = np.array([[1, 1, 1, 1], [1, 1, 1, 0]])


def run(model: onnx.ModelProto, *inputs: str) -> list[Any]:
    """Return a graph's outputs for the two rows."""
    given = {"input_ids": IDS, "attention_mask": MASK, heads.TYPES: np.zeros_like(IDS)}
    session = ort.InferenceSession(model.SerializeToString())
    names = [value.name for value in session.get_inputs()]
    assert not inputs or names == list(inputs)
    found: list[Any] = session.run(None, {name: given[name] for name in names})
    return found


def test_probabilities_come_in_the_order_that_is_asked_for() -> None:
    """The softmax is over all of the original's labels, also those left out."""
    (logits,) = run(tiny_reference.logits_graph(4, seed=1, types=True))
    model = tiny_reference.logits_graph(4, seed=1, types=True)
    heads.classify(model, "softmax", [2, 0])
    (found,) = run(model)
    every = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, every[:, [2, 0]], rtol=1e-5)
    model = tiny_reference.logits_graph(4, seed=1, types=True)
    heads.classify(model, "sigmoid", [3])
    np.testing.assert_allclose(run(model)[0], 1 / (1 + np.exp(-logits[:, [3]])), rtol=1e-5)
    assert model.graph.output[0].type.tensor_type.shape.dim[1].dim_value == 1


def test_token_types_can_be_fixed_at_zero() -> None:
    """The input is gone, the scores are those of zeros."""
    plain = run(tiny_reference.logits_graph(2, seed=1, types=True))
    fixed = run(tiny_reference.logits_graph(2, seed=1, types=False), "input_ids", "attention_mask")
    np.testing.assert_array_equal(fixed[0], plain[0])
    model = tiny_reference.next_token_graph(seed=1)
    before = model.SerializeToString()
    heads.fix_types_at_zero(model)
    assert model.SerializeToString() == before


def states_graph() -> onnx.ModelProto:
    """Return a graph from tokens to states, which are (id, id squared)."""
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["x"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["x", "x"], ["squared"]),
        helper.make_node("Unsqueeze", ["x", "last"], ["a"]),
        helper.make_node("Unsqueeze", ["squared", "last"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["last_hidden_state"], axis=2),
    ]
    model = tiny_reference.graph_of(
        nodes,
        {"last": np.array([2], dtype=np.int64)},
        ["input_ids", "attention_mask"],
        "last_hidden_state",
    )
    shape = model.graph.output[0].type.tensor_type.shape
    for size in ("b", "t", 2):
        dim = shape.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
    return model


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_states_are_pooled_to_unit_length(pooling: Any) -> None:
    """The mean leaves out what fills a row up."""
    model = states_graph()
    heads.embed(model, pooling)
    tokens, vectors = run(model)
    assert [value.name for value in model.graph.output] == [
        "token_embeddings",
        "sentence_embedding",
    ]
    np.testing.assert_array_equal(tokens[..., 1], IDS.astype(np.float32) ** 2)
    rows = [tokens[0], tokens[1][:3]]
    pooled = [row.mean(axis=0) if pooling == "mean" else row[0] for row in rows]
    expected = [vector / np.linalg.norm(vector) for vector in pooled]
    np.testing.assert_allclose(vectors, expected, rtol=1e-5)


def test_a_note_is_all_that_a_graph_says_about_its_origin() -> None:
    """No path and no date: the same weights give the same bytes."""
    model = tiny_reference.classifier(("toxicity",))
    helper.set_model_props(model, {"built": "yesterday"})
    heads.describe(model, "rag-guardrail", "{}")
    assert [(p.key, p.value) for p in model.metadata_props] == [("rag-guardrail", "{}")]
