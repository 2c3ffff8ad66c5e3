"""TensorFlow weights (`tf_model.h5`) read with h5py, for a PyTorch model. No TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from guardrail_service.errors import ConfigurationError, MissingExtra


def read_h5(path: Path, model: Any) -> dict[str, Any]:
    """Return the weights of a Keras file under the PyTorch model's names.

    Keras keeps a dense layer's matrix as (in, out), PyTorch as (out, in); which names are meant is
    decided by the conversion table that transformers uses itself.

    Raises:
        ConfigurationError: If the file cannot be read or a weight's shape does not fit.
    """
    try:
        import h5py
        import torch
        from transformers.modeling_tf_pytorch_utils import convert_tf_weight_name_to_pt_weight_name
    except ImportError as error:
        raise MissingExtra("rag-guardrail-models[export]") from error
    own = model.state_dict()
    state = {}
    try:
        with h5py.File(path, "r") as file:
            found = dict(_weights(file))
    except OSError as error:
        raise ConfigurationError(
            str(path), "no readable HDF5", "tf_model.h5 as published"
        ) from error
    for name, value in found.items():
        target, transpose = convert_tf_weight_name_to_pt_weight_name(
            name, tf_weight_shape=value.shape
        )
        array = value.T if transpose.value != "no" else value
        if target in own and own[target].shape != array.shape:
            raise ConfigurationError(
                f"{path}: {target}", f"shape {array.shape}", f"{tuple(own[target].shape)}"
            )
        state[target] = torch.from_numpy(np.ascontiguousarray(array))
    return state


def _weights(file: Any) -> list[tuple[str, np.ndarray[Any, Any]]]:
    """Return every weight with its TensorFlow name, as Keras lists them per layer."""
    layers = file.get("model_weights", file)
    return [
        (_text(name), layers[layer][_text(name)][()])
        for layer in map(_text, layers.attrs["layer_names"])
        for name in layers[layer].attrs["weight_names"]
    ]


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
