"""The original in PyTorch, run as its authors run it: what every export is compared with."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from guardrail_models.recipes import Recipe
from guardrail_service.errors import ConfigurationError, MissingExtra

Floats = npt.NDArray[np.float64]
BOOKKEEPING = ("position_ids", "embed_tokens.weight", "attn.bias", "attn.masked_bias")
"""Buffers and tied copies that files of older versions have, or lack, without being weights."""


class Text(NamedTuple):
    """The text of one row: a text, or premise and hypothesis, or prompt and text."""

    first: str
    second: str | None = None


class Original:
    """A loaded original.

    Args:
        recipe: What is declared about it.
        model: In evaluation mode.
        tokenizer: The fast tokenizer of the original's own repository.
        weights: The file that was read.
    """

    def __init__(self, recipe: Recipe, model: Any, tokenizer: Any, weights: Path) -> None:
        self.recipe = recipe
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.weights = weights

    def scores(self, rows: Sequence[Text]) -> Floats:
        """Return what serving must reproduce, one row per call, nothing padded or cut.

        Returns:
            Shape (rows, dim) of unit-length vectors of the first text for an embedding,
            (rows, labels) of probabilities in our order for a classifier, (rows, 1) of mean log
            probabilities for a language model.
        """
        import torch

        with torch.no_grad():
            return np.stack([self._score(row) for row in rows]).astype(np.float64)

    def _score(self, row: Text) -> Any:
        if self.recipe.role == "embedding":
            return self._vector(row.first)
        if self.recipe.role == "causal_lm":
            return self._mean_log_probability(row)
        return self._probabilities(row)

    def _vector(self, text: str) -> Any:
        import torch

        inputs = self.tokenizer(text, return_tensors="pt")
        states = self.model(**inputs).last_hidden_state[0]
        pooled = states[0] if self.recipe.pooling == "cls" else states.mean(0)
        return torch.nn.functional.normalize(pooled, dim=-1).numpy()

    def _probabilities(self, row: Text) -> Any:
        import torch

        template = self.recipe.template
        if template is None:
            inputs = self.tokenizer(row.first, row.second, return_tensors="pt")
            logits = self.model(**inputs).logits[0]
        else:
            text = template.format(premise=row.first, hypothesis=row.second)
            inputs = self.tokenizer(text, return_tensors="pt")
            logits = self.model(**inputs).logits[0, 0]  # the head on the first token
        activated = (
            torch.sigmoid(logits) if self.recipe.activation == "sigmoid" else logits.softmax(-1)
        )
        return activated[self.recipe.order()].numpy()

    def _mean_log_probability(self, row: Text) -> Any:
        import torch

        tokenizer = self.tokenizer
        start = tokenizer.convert_tokens_to_ids(self.recipe.start_token)
        prompt, text = (
            tokenizer(part or "", add_special_tokens=False)["input_ids"] for part in row
        )
        ids = torch.tensor([[start, *prompt, *text]])
        logs = self.model(input_ids=ids).logits[0, :-1].log_softmax(-1)
        chosen = logs.gather(-1, ids[0, 1:, None])[-len(text) :, 0]
        return chosen.mean().numpy()[None]


def load(
    recipe: Recipe, folder: Path, foundation: Path, *, trust_remote_code: bool = False
) -> Original:
    """Return the original from local folders; no network, no pickled code.

    Raises:
        ConfigurationError: If weights are missing or left over, labels are in another order than
            declared, or the repository brings code and the flag is not given.
    """
    try:
        import transformers
    except ImportError as error:
        raise MissingExtra("rag-guardrail-models[export]") from error
    transformers.logging.set_verbosity_error()
    _refuse_code(recipe, folder, allowed=trust_remote_code)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            foundation,
            local_files_only=True,
            trust_remote_code=trust_remote_code,
            **_single(recipe),
        )
    except ImportError as error:  # the library that reads a GGUF
        raise MissingExtra("rag-guardrail-models[export]") from error
    if not tokenizer.is_fast:
        raise ConfigurationError(str(foundation), "a slow tokenizer", "one with a tokenizer.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = _LOADERS[recipe.loader](recipe, folder, foundation, trust_remote_code)
    model, names, weights = loaded
    _check_labels(recipe, names, folder)
    return Original(recipe, model, tokenizer, weights)


def _refuse_code(recipe: Recipe, folder: Path, *, allowed: bool) -> None:
    path = folder / "config.json"
    needs_none = recipe.loader in ("hhem-t5", "detoxify")  # our own code reads their weights
    if allowed or needs_none or not path.is_file():
        return
    if "auto_map" in json.loads(path.read_bytes()):
        raise ConfigurationError(
            f"{path}: auto_map", "code of the repository's own", "--trust-remote-code to run it"
        )


def _check_labels(recipe: Recipe, names: Sequence[str] | None, folder: Path) -> None:
    declared = recipe.original_labels
    if names is None or declared is None or tuple(names) == declared:
        return
    raise ConfigurationError(
        f"{folder}: labels",
        f"the order {list(names)}",
        f"{list(declared)}, as declared; a wrong order would swap the scores",
    )


def weights_file(folder: Path, names: Sequence[str]) -> Path:
    """Return the first of some files that is there.

    Raises:
        ConfigurationError: If none is.
    """
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise ConfigurationError(str(folder), "no weights", " or ".join(names))


def read_pickle(path: Path) -> Any:
    """Return what a PyTorch file holds, loaded weights-only: it can hold no code.

    Raises:
        ConfigurationError: If it holds anything but tensors and plain values.
    """
    import pickle

    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, EOFError, RuntimeError) as error:
        raise ConfigurationError(
            str(path), "a file that is not weights alone", "one that loads weights-only"
        ) from error


def read_state(path: Path) -> dict[str, Any]:
    """Return the tensors of a safetensors file, or of a pickle loaded weights-only."""
    if path.suffix != ".safetensors":
        state: dict[str, Any] = read_pickle(path)
        return state
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        loaded: dict[str, Any] = load_file(path)
    except SafetensorError as error:
        raise ConfigurationError(
            str(path), "a damaged or truncated file", "safetensors as published"
        ) from error
    return loaded


def fill(model: Any, state: dict[str, Any], where: Path) -> None:
    """Put weights into a model.

    Raises:
        ConfigurationError: If a weight is missing, left over or of another shape: a head that is
            not in the file would be random.
    """
    try:
        missing, extra = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise ConfigurationError(str(where), "weights of another shape", "config.json's") from error
    tied = set(getattr(model, "_tied_weights_keys", None) or ())
    lost = [
        n for n in missing if not n.endswith(BOOKKEEPING) and n not in tied and "pooler" not in n
    ]
    left = [n for n in extra if not n.endswith(BOOKKEEPING)]
    if lost:
        raise ConfigurationError(str(where), f"no weights {lost[:3]}", "every weight of the model")
    if left:
        raise ConfigurationError(str(where), f"weights left over {left[:3]}", "none")


Loaded = tuple[Any, Sequence[str] | None, Path]


def _transformers(recipe: Recipe, folder: Path, _: Path, trust: bool) -> Loaded:
    from guardrail_models.fetch import PICKLE, SAFE

    model = _empty(recipe, folder, trust)
    path = weights_file(folder, (SAFE, PICKLE))
    fill(model, _renamed(model, read_state(path)), path)
    return model, _names(model), path


def _tensorflow(recipe: Recipe, folder: Path, _: Path, trust: bool) -> Loaded:
    from guardrail_models.checkpoint_formats import read_h5
    from guardrail_models.fetch import TENSORFLOW

    model = _empty(recipe, folder, trust)
    path = weights_file(folder, (TENSORFLOW,))
    fill(model, read_h5(path, model), path)
    return model, _names(model), path


def _hhem(recipe: Recipe, folder: Path, foundation: Path, _: bool) -> Loaded:
    from transformers import T5Config, T5ForTokenClassification

    from guardrail_models.fetch import PICKLE, SAFE

    config = T5Config.from_pretrained(foundation, num_labels=len(recipe.original_labels or ()))
    model = T5ForTokenClassification(config)
    path = weights_file(folder, (SAFE, PICKLE))
    state = {name.removeprefix("t5."): value for name, value in read_state(path).items()}
    fill(model, state, path)
    if "transformer.shared.weight" not in state:  # saved under its other name only
        model.transformer.shared.weight = model.transformer.encoder.embed_tokens.weight
    return model, _written_labels(folder), path


def _gguf(recipe: Recipe, folder: Path, _: Path, trust: bool) -> Loaded:
    """Read llama.cpp's single file; its quantised weights become plain numbers."""
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    path = folder / str(recipe.gguf)
    try:
        model = _empty(recipe, folder, trust)
        found = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)
    except (ValueError, KeyError, OSError, NotImplementedError) as error:
        expected = "a GGUF of an architecture that transformers reads"
        raise ConfigurationError(str(path), type(error).__name__, expected) from error
    fill(model, found["tensors"], path)
    model.tie_weights()
    return model.eval(), None, path


def _detoxify(recipe: Recipe, folder: Path, foundation: Path, _: bool) -> Loaded:
    from guardrail_models.checkpoint_formats import load_checkpoint

    found = sorted(folder.glob("*.ckpt"))
    if len(found) != 1:
        raise ConfigurationError(str(folder), f"{len(found)} .ckpt files", "one checkpoint")
    model, names = load_checkpoint(read_pickle(found[0]), foundation, found[0])
    return model, names, found[0]


_LOADERS = {
    "transformers": _transformers,
    "gguf": _gguf,
    "tensorflow": _tensorflow,
    "hhem-t5": _hhem,
    "detoxify": _detoxify,
}


def _single(recipe: Recipe) -> dict[str, str]:
    return {"gguf_file": recipe.gguf} if recipe.gguf else {}


def _empty(recipe: Recipe, folder: Path, trust: bool) -> Any:
    """Return the architecture of `config.json` without its weights."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(
        folder, local_files_only=True, trust_remote_code=trust, **_single(recipe)
    )
    if config.model_type != recipe.architecture:
        raise ConfigurationError(
            f"{folder}: model_type", repr(config.model_type), repr(recipe.architecture)
        )
    kinds = {
        "embedding": transformers.AutoModel,
        "causal_lm": transformers.AutoModelForCausalLM,
    }
    kind = kinds.get(recipe.role, transformers.AutoModelForSequenceClassification)
    return kind.from_config(config, attn_implementation="eager", trust_remote_code=trust)


def _renamed(model: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Return weights under the model's own names: with or without its prefix, as files differ."""
    prefix = f"{model.base_model_prefix}."
    own = set(model.state_dict())
    renamed = {}
    for name, value in state.items():
        old = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        old = old.replace("LayerNorm.beta", "LayerNorm.bias")
        choices = (old, old.removeprefix(prefix), prefix + old)
        renamed[next((n for n in choices if n in own), old)] = value
    return renamed


def _names(model: Any) -> list[str] | None:
    labels = model.config.id2label
    return [labels[place] for place in sorted(labels)] if labels else None


def _written_labels(folder: Path) -> list[str] | None:
    """Return the labels a `config.json` itself names, if it does."""
    path = folder / "config.json"
    written = json.loads(path.read_bytes()).get("id2label") if path.is_file() else None
    return [written[place] for place in sorted(written, key=int)] if written else None
