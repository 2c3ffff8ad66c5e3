"""Originals with random weights, in the exact layout of the hub repositories.

Speed does not depend on the weights, and whether an export is right does not either: these are
what `guardrail bench models` times and what the export tests compare, where no hub can be reached.
Scores are spread over most of [0, 1], so that a wrong export cannot hide.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from guardrail_models.original import Original, Text
from guardrail_models.recipes import Recipe
from guardrail_models.stand_in_tokenizers import write_tokenizer
from guardrail_models.verify import load_texts

Size = Literal["tiny", "real"]
SPREAD = 1.6
"""Standard deviation of the logits: a sigmoid then gives .05 to .95 within 1.8 of them."""
EMBEDDING = 0.5
ATTENTION = 2.0
INNER = 1.2
"""Standard deviations: of embeddings, and of matrices times the root of their width. Freshly
initialised ones are so small that all texts look alike, and a score would only show rounding."""


class NetworkShape(NamedTuple):
    """Layers, width, heads, inner width, vocabulary, positions."""

    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int
    positions: int


REAL = {
    "all-minilm-l6-v2": NetworkShape(6, 384, 12, 1536, 30522, 512),
    "bge-small-en": NetworkShape(12, 384, 12, 1536, 30522, 512),
    "bge-small-en-v1.5": NetworkShape(12, 384, 12, 1536, 30522, 512),
    "hhem-1.0-open": NetworkShape(12, 768, 12, 3072, 128100, 512),
    "hhem-2.1-open": NetworkShape(12, 768, 12, 2048, 32128, 512),
    "nli-deberta-v3-base": NetworkShape(12, 768, 12, 3072, 128100, 512),
    "nli-distilroberta-base": NetworkShape(6, 768, 12, 3072, 50265, 514),
    "detoxify-original": NetworkShape(12, 768, 12, 3072, 30522, 512),
    "detoxify-unbiased": NetworkShape(12, 768, 12, 3072, 50265, 514),
    "bias-detection-model": NetworkShape(6, 768, 12, 3072, 30522, 512),
    "distilgpt2": NetworkShape(6, 768, 12, 3072, 50257, 1024),
}
"""Of the published models' configurations."""
TINY = NetworkShape(2, 32, 4, 64, 700, 514)
USUAL = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)
SIZES: dict[str, tuple[str, ...]] = {
    "distilbert": (
        "n_layers",
        "dim",
        "n_heads",
        "hidden_dim",
        "vocab_size",
        "max_position_embeddings",
    ),
    "t5": ("num_layers", "d_model", "num_heads", "d_ff", "vocab_size", ""),
    "gpt2": ("n_layer", "n_embd", "n_head", "n_inner", "vocab_size", "n_positions"),
}
"""Names of a shape's parts in a configuration, in their order; empty: it has none."""
APART: dict[str, dict[str, Any]] = {
    "roberta": {"type_vocab_size": 1, "layer_norm_eps": 1e-5},
    # microsoft/deberta-v3-base: what distinguishes version 3 from 2.
    "deberta-v2": {
        "type_vocab_size": 0,
        "relative_attention": True,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "layer_norm_eps": 1e-7,
    },
    "t5": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
}
EAGER = ("bert", "roberta", "gpt2")


def build(recipe: Recipe, folder: Path, size: Size = "tiny", seed: int = 11) -> Path:
    """Write a stand-in of a reference model and return its folder.

    Args:
        recipe: Which model; its loader decides the layout.
        folder: Where to write.
        size: A few thousand weights whose scores are spread; or the published shape, for speed.
        seed: Of the random weights.
    """
    import torch

    torch.manual_seed(seed)
    folder.mkdir(parents=True, exist_ok=True)
    shape = REAL[recipe.name] if size == "real" else TINY
    positions = max(shape.positions, recipe.max_tokens + 2) if size == "tiny" else shape.positions
    special = write_tokenizer(recipe, folder)
    model = _model(recipe, shape._replace(positions=positions), special)
    model.config.save_pretrained(folder)
    if size == "tiny":
        _enlarge(model)
        _spread(recipe, model, folder)
    _write(recipe, model, folder)
    return folder


def tiny_recipe(recipe: Recipe, max_tokens: int = 128) -> Recipe:
    """Return the recipe for a stand-in that reads short rows, so that tests are quick."""
    return recipe.model_copy(update={"max_tokens": max_tokens})


def _model(recipe: Recipe, shape: NetworkShape, special: dict[str, int]) -> Any:
    """Return a freshly initialised model of the recipe's architecture."""
    import transformers as t

    config, classifier = {
        "bert": (t.BertConfig, t.BertForSequenceClassification),
        "roberta": (t.RobertaConfig, t.RobertaForSequenceClassification),
        "distilbert": (t.DistilBertConfig, t.DistilBertForSequenceClassification),
        "deberta-v2": (t.DebertaV2Config, t.DebertaV2ForSequenceClassification),
        "t5": (t.T5Config, t.T5ForTokenClassification),
        "gpt2": (t.GPT2Config, t.GPT2LMHeadModel),
    }[recipe.architecture]
    labels = recipe.original_labels or ("LABEL_0",)
    ids = {f"{name}_token_id": special.get(name) for name in ("pad", "bos", "eos")}
    names: dict[str, Any] = {
        "id2label": dict(enumerate(labels)),
        "label2id": {label: place for place, label in enumerate(labels)},
    }
    if recipe.loader == "hhem-t5":  # whose labels have no names
        names = {"num_labels": len(labels)}
    kind = t.BertModel if recipe.role == "embedding" else classifier
    return kind(config(**names, **ids, **_sizes(recipe, shape)))


def _sizes(recipe: Recipe, shape: NetworkShape) -> dict[str, Any]:
    """Return a shape, and what else sets an architecture apart, by its configuration's names."""
    names = SIZES.get(recipe.architecture, USUAL)
    sizes: dict[str, Any] = {name: shape[place] for place, name in enumerate(names) if name}
    if recipe.architecture in EAGER:
        sizes["attn_implementation"] = "eager"
    if recipe.architecture == "deberta-v2":
        sizes["position_buckets"] = min(256, shape.positions // 2)
        sizes["pooler_hidden_size"] = shape.width
    if recipe.architecture == "t5":
        sizes["d_kv"] = shape.width // shape.heads
    return sizes | APART.get(recipe.architecture, {})


def _enlarge(model: Any) -> None:
    """Draw matrices large enough that texts, positions and token types all move a score."""
    import torch

    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim != 2:
                continue
            if "embed" in name or "shared" in name or name.endswith(("wte.weight", "wpe.weight")):
                weight.normal_(0, EMBEDDING)
                continue
            part = name.split(".")[-2]
            sharp = part in ("query", "key", "query_proj", "key_proj", "q_lin", "k_lin", "c_attn")
            weight.normal_(0, (ATTENTION if sharp else INNER) / min(weight.shape) ** 0.5)


def _spread(recipe: Recipe, model: Any, folder: Path) -> None:
    """Give the classification head the scale and offset that spread its logits over the texts."""
    import torch

    head = getattr(model, "classifier", None)
    head = getattr(head, "out_proj", head)
    if head is None or recipe.role in ("embedding", "causal_lm"):
        return
    tokenizer = _load_tokenizer(folder)
    plain = recipe.model_copy(
        update={"activation": "sigmoid", "labels": {n: n for n in recipe.original_labels or ()}}
    )
    original = Original(plain, model, tokenizer, folder)
    rows = [row if recipe.role in ("grounding", "nli") else Text(row.first) for row in _sample()]
    logits = np.log(original.scores(rows).clip(1e-9, 1 - 1e-9))
    logits -= np.log1p(-np.exp(logits))
    scale = torch.tensor(SPREAD / logits.std(0), dtype=torch.float32)
    centre = torch.tensor(logits.mean(0), dtype=torch.float32)
    with torch.no_grad():
        head.weight.mul_(scale[:, None])
        head.bias.copy_((head.bias - centre) * scale)


def _sample() -> list[Text]:
    """Return the texts that tell something and are short enough for every model."""
    return [row for row in load_texts(None)[5:] if row.second and len(row.first + row.second) < 300]


def _load_tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def _write(recipe: Recipe, model: Any, folder: Path) -> None:
    """Write the weights as the recipe's repository has them."""
    import torch
    from safetensors.torch import save_file

    state = {name: value.detach().contiguous() for name, value in model.state_dict().items()}
    match recipe.loader:
        case "transformers":
            model.save_pretrained(folder)
        case "hhem-t5":
            shared = "transformer.encoder.embed_tokens.weight"
            kept = {f"t5.{name}": value for name, value in state.items() if name != shared}
            save_file(kept, folder / "model.safetensors")
        case "detoxify":
            torch.save(_checkpoint(recipe, model, state), folder / f"{recipe.name}.ckpt")
        case "tensorflow":
            write_h5(state, folder / "tf_model.h5")


def _checkpoint(recipe: Recipe, model: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Return what a Detoxify checkpoint holds; the first model's classes have other names."""
    older = {
        "toxicity": "toxic",
        "severe_toxicity": "severe_toxic",
        "identity_attack": "identity_hate",
    }
    labels = recipe.original_labels or ()
    is_first = recipe.name == "detoxify-original"
    classes = [older.get(label, label) if is_first else label for label in labels]
    name = type(model).__name__
    arguments = {
        "num_classes": len(classes),
        "model_type": "bert-base-uncased" if is_first else "roberta-base",
        "model_name": name,
        "tokenizer_name": name.removesuffix("ForSequenceClassification") + "Tokenizer",
    }
    config = {
        "arch": {"type": name, "args": arguments},
        "dataset": {"args": {"classes": classes}},
    }
    return {"epoch": 1, "config": config, "state_dict": state}


def write_h5(state: dict[str, Any], path: Path) -> None:
    """Write a DistilBERT's weights as Keras saves `TFDistilBertForSequenceClassification`.

    Layer groups, scopes and variable names are those of its `build` methods; matrices of dense
    layers lie as (in, out).
    """
    import h5py

    layers: dict[str, dict[str, Any]] = {"distilbert": {}, "pre_classifier": {}, "classifier": {}}
    for name, value in state.items():
        layers[name.split(".")[0]][_keras_name(name)] = _keras_value(name, value.numpy())
    with h5py.File(path, "w") as file:
        file.attrs["backend"] = b"tensorflow"
        file.attrs["layer_names"] = [layer.encode() for layer in layers]
        for layer, weights in layers.items():
            group = file.create_group(layer)
            group.attrs["weight_names"] = [name.encode() for name in weights]
            for name, value in weights.items():
                group.create_dataset(name, data=value)


def _keras_name(name: str) -> str:
    scope, leaf = name.rsplit(".", 1)
    scope = scope.replace(".", "/").replace("transformer/layer/", "transformer/layer_._")
    is_norm = scope.lower().endswith("norm")
    if scope.endswith("word_embeddings"):
        leaf = "weight"
    elif scope.endswith("position_embeddings"):
        leaf = "embeddings"
    elif is_norm:
        leaf = {"weight": "gamma", "bias": "beta"}[leaf]
    elif leaf == "weight":
        leaf = "kernel"
    return f"tf_distil_bert_for_sequence_classification/{scope}/{leaf}:0"


def _keras_value(name: str, value: Any) -> Any:
    is_dense = name.endswith(".weight") and "embeddings" not in name and "norm" not in name.lower()
    return np.ascontiguousarray(value.T) if is_dense else value
