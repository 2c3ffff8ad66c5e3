"""Exports a loaded original as one fp32 ONNX graph with the outputs that serving reads."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import onnx

from guardrail_models import heads
from guardrail_models.original import Original
from guardrail_service.errors import MissingExtra

OPSET = 17
TASKS = {"embedding": "feature-extraction", "causal_lm": "text-generation"}
BY_OPTIMUM = ("bert", "distilbert", "roberta", "deberta-v2", "gpt2", "llama")
ATTENTION = {"bert": "bert", "distilbert": "bert", "roberta": "bert", "gpt2": "gpt2"}
"""ONNX Runtime's fusions by architecture; the other architectures keep their plain operators."""
CONTRIB = "com.microsoft"


def export_graph(original: Original, target: Path, scratch: Path) -> None:
    """Write the fused fp32 graph of an original.

    Args:
        original: With its recipe, which says how the graph ends.
        target: File to write.
        scratch: Folder for the graph before fusion.
    """
    raw = scratch / "raw.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if original.recipe.architecture in BY_OPTIMUM:
            _by_optimum(original, raw)
        else:
            _by_torch(original, raw)
    model = _fused(original, raw)
    end(original, model)
    onnx.save(model, str(target))


def end(original: Original, model: onnx.ModelProto) -> None:
    """Put the recipe's head on a graph that ends in logits or hidden states."""
    recipe = original.recipe
    if recipe.role not in ("grounding", "nli"):
        heads.fix_types_at_zero(model)
    if recipe.role == "embedding" and recipe.pooling is not None:
        heads.embed(model, recipe.pooling)
    elif recipe.role == "causal_lm":
        heads.log_probabilities(model)
    elif recipe.activation is not None:
        heads.classify(model, recipe.activation, recipe.order())


def _by_optimum(original: Original, target: Path) -> None:
    try:
        from optimum.exporters.onnx import export
        from optimum.exporters.tasks import TasksManager
    except ImportError as error:
        raise MissingExtra("rag-guardrail-models[export]") from error
    task = TASKS.get(original.recipe.role, "text-classification")
    constructor = TasksManager.get_exporter_config_constructor(
        exporter="onnx",
        model_type=original.recipe.architecture,
        task=task,
        library_name="transformers",
    )
    export(
        model=original.model, config=constructor(original.model.config), output=target, opset=OPSET
    )


def _by_torch(original: Original, target: Path) -> None:
    """Export the T5 encoder with a head on its first token, which optimum does not know."""
    import torch

    class FirstToken(torch.nn.Module):  # type: ignore[misc]
        """The logits of the first token."""

        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask).logits[:, 0]

    ids = torch.tensor([[0, 3, 4, 5, 1], [0, 3, 1, 0, 0]])
    dynamic = {0: "batch", 1: "tokens"}
    torch.onnx.export(
        FirstToken(original.model).eval(),
        (ids, torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])),
        str(target),
        dynamo=False,
        opset_version=OPSET,
        input_names=["input_ids", "attention_mask"],
        output_names=["logits"],
        dynamic_axes={"input_ids": dynamic, "attention_mask": dynamic, "logits": {0: "batch"}},
    )


def _fused(original: Original, raw: Path) -> onnx.ModelProto:
    """Return the graph with layer norms, activations and, where known, attention in one node each.

    Attention keeps its projections as matrix products of their own, which quantisation can see,
    and the word table stays a look-up.
    """
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    kind = ATTENTION.get(original.recipe.architecture)
    if kind is None:
        return onnx.load(str(raw))
    config = original.model.config
    options = FusionOptions(kind)
    options.enable_embed_layer_norm = False
    options.use_multi_head_attention = True
    heads_count = getattr(config, "num_attention_heads", None) or config.n_head
    fused = optimize_model(
        str(raw),
        kind,
        num_heads=heads_count,
        hidden_size=config.hidden_size,
        opt_level=0,
        optimization_options=options,
    )
    model: onnx.ModelProto = fused.model
    if all(opset.domain != CONTRIB for opset in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(CONTRIB, 1))
    return model
