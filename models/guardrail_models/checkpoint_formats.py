"""Checkpoints that transformers does not load safely by itself: Detoxify's and TensorFlow's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from guardrail_service.errors import ConfigurationError, MissingExtra

OUR_NAMES = {
    "toxic": "toxicity",
    "severe_toxic": "severe_toxicity",
    "identity_hate": "identity_attack",
}
"""Detoxify renames the first challenge's classes to those of the later ones, in its loader."""
BUILT_FROM = ("model_name", "tokenizer_name", "num_classes")


def load_checkpoint(loaded: Any, foundation: Path, where: Path) -> tuple[Any, list[str]]:
    """Return the model and the names of its outputs, in order.

    The package's `load_checkpoint` would unpickle code and ask a hub for the architecture, so its
    inner function is called on what `torch.load` gave weights-only, with a local architecture.

    Args:
        loaded: The checkpoint's content.
        foundation: Folder with `config.json` and tokenizer of the architecture.
        where: The file, for messages.

    Raises:
        ConfigurationError: If the checkpoint lacks a key or names a class that is no classifier.
    """
    try:
        from detoxify.detoxify import get_model_and_tokenizer
    except ImportError as error:
        raise MissingExtra("rag-guardrail-models[export]") from error
    try:
        arguments = dict(loaded["config"]["arch"]["args"])
        classes = list(loaded["config"]["dataset"]["args"]["classes"])
        state: Mapping[str, Any] = loaded["state_dict"]
        kept = {key: arguments[key] for key in BUILT_FROM}
    except (KeyError, TypeError) as error:
        raise ConfigurationError(
            str(where), f"no key {error}", "config.arch, config.dataset and state_dict"
        ) from error
    _refuse_other_classes(kept, where)
    if kept["num_classes"] != len(classes):
        raise ConfigurationError(
            str(where), f"{len(classes)} classes", f"num_classes {kept['num_classes']}"
        )
    model, _ = get_model_and_tokenizer(**kept, model_type=str(foundation), state_dict=dict(state))
    return model, [OUR_NAMES.get(name, name) for name in classes]


def _refuse_other_classes(names: Mapping[str, Any], where: Path) -> None:
    """Refuse a checkpoint that asks for any other class of the library than a classifier."""
    model, tokenizer = str(names["model_name"]), str(names["tokenizer_name"])
    if not model.endswith("ForSequenceClassification") or "Tokenizer" not in tokenizer:
        raise ConfigurationError(str(where), model, "a ...ForSequenceClassification")


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
