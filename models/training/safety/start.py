"""Starts the branch from what was exported: products come back as whole numbers times a scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from branch_graph import Branch

_PRODUCTS = {
    "attention/output/dense": "attention.output.dense",
    "intermediate/dense": "intermediate.dense",
    "output/dense": "output.dense",
}
_ATTEND = "/tail/tail/attend/MatMul_output_0"


def start_branch(branch: Branch, path: Path) -> None:
    """Copy every weight of an exported branch into one that is to be trained further.

    The exported weights were rounded to seven bits, so this is what serves and not what was
    trained. Calibration is not copied: it is fitted again when the branch is exported.

    Raises:
        ValueError: If a weight is missing or has another shape.
    """
    graph = onnx.load(str(path)).graph
    arrays = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    found = {n: a for n, a in arrays.items() if n.startswith("layers.")}
    found |= {n.removeprefix("tail."): a for n, a in arrays.items() if n.startswith("tail.tail.")}
    for number in range(len(branch.layers)):
        found |= _layer(number, arrays)
    attend = next(node.input[1] for node in graph.node if node.output[0] == _ATTEND)
    found["tail.attend.weight"] = arrays[attend].T
    with torch.no_grad():
        for name, own in branch.named_parameters():
            if name not in found or found[name].shape != tuple(own.shape):
                raise ValueError(f"{path.name}: no weight {name} of shape {tuple(own.shape)}")
            own.copy_(torch.from_numpy(np.array(found[name], dtype=np.float32)))


def _layer(number: int, arrays: dict[str, Any]) -> dict[str, Any]:
    at, found = f"layers.{number}", {}
    for long, short in _PRODUCTS.items():
        found[f"{at}.{short}.weight"] = _product(f"/{at}/{long}/MatMul_output_0", arrays)
    weights = np.split(_product(f"/{at}/attention/self/Reshape_3_output_0_projected", arrays), 3)
    biases = np.split(arrays[f"Attention_{number}_qkv_bias"], 3)
    for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
        found[f"{at}.attention.self.{name}.weight"] = weight
        found[f"{at}.attention.self.{name}.bias"] = bias
    return found


def _product(name: str, arrays: dict[str, Any]) -> Any:
    return (arrays[f"{name}_weight"] * arrays[f"{name}_scale"]).T
