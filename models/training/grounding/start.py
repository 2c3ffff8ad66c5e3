"""Starts a model from what another run kept, or from what was exported: fp16 and INT8 weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from head import GroundingModel
from onnx import numpy_helper

_PRODUCTS = {
    "attention/output/dense": "attention.output.dense",
    "intermediate/dense": "intermediate.dense",
    "output/dense": "output.dense",
}


def start_head(model: GroundingModel, path: Path) -> int:
    """Copy what fits from an exported head into the model; return how many arrays.

    A head exported before the branch existed has its projection inside: that becomes the tail.
    """
    graph = onnx.load(str(path)).graph
    arrays = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    for node in graph.node:
        if node.op_type == "Cast" and node.input[0] in arrays:
            arrays[node.output[0]] = arrays[node.input[0]]
    made = {node.output[0]: node for node in graph.node}
    for node in graph.node:
        bias = next((name for name in node.input if name.endswith(".bias")), None)
        product = next((made[n] for n in node.input if n in made), None)
        if node.op_type == "Add" and bias and product is not None and product.input[1] in arrays:
            arrays[bias.replace(".bias", ".weight")] = arrays[product.input[1]].T
    own = {**{f"head.{n}": p for n, p in model.head.named_parameters()},
           **{f"head.{n}": p for n, p in model.branch.tail.named_parameters()}}  # fmt: skip
    return _copy(own, arrays)


def start_branch(model: GroundingModel, path: Path) -> int:
    """Copy an exported branch into the model; return how many arrays.

    Its products come back as what serves: whole numbers times their column's scale.
    """
    graph = onnx.load(str(path)).graph
    arrays = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    products = {
        name.removesuffix("_weight"): (array * arrays[f"{name.removesuffix('_weight')}_scale"]).T
        for name, array in arrays.items()
        if array.dtype == np.int8
    }
    found = {n: a for n, a in arrays.items() if n.startswith(("layers.", "tail."))}
    for number in range(len(model.branch.layers)):
        at = f"layers.{number}"
        for long, short in _PRODUCTS.items():
            found[f"{at}.{short}.weight"] = products[f"/layers.{number}/{long}/MatMul_output_0"]
        attention = f"/layers.{number}/attention/self/Reshape_3_output_0_projected"
        weights = np.split(products[attention], 3)
        biases = np.split(arrays[f"Attention_{number}_qkv_bias"], 3)
        for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
            found[f"{at}.attention.self.{name}.weight"] = weight
            found[f"{at}.attention.self.{name}.bias"] = bias
    tail = model.branch.tail.token.weight
    found["tail.token.weight"] = next(
        a.T for a in arrays.values() if a.dtype == np.float32 and a.shape == tuple(tail.shape[::-1])
    )
    return _copy(dict(model.branch.named_parameters()), found)


def averaged(paths: Sequence[Path]) -> dict[str, torch.Tensor]:
    """Return the mean of some weights, which lies flatter than each where the rate was high.

    A file is what a run kept (`best.pt`) or its state (`state.pt`).
    """
    states = [torch.load(path, weights_only=True) for path in paths]
    kept: list[dict[str, torch.Tensor]] = [state.get("average", state) for state in states]
    return {
        name: torch.stack([state[name].float() for state in kept]).mean(0)
        if value.is_floating_point()
        else value
        for name, value in kept[0].items()
    }


def _copy(own: dict[str, torch.nn.Parameter], arrays: dict[str, Any]) -> int:
    fitting = [n for n, p in own.items() if n in arrays and arrays[n].shape == tuple(p.shape)]
    with torch.no_grad():
        for name in fitting:
            own[name].copy_(torch.from_numpy(np.array(arrays[name], dtype=np.float32)))
    return len(fitting)
