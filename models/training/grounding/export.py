"""Writes branch and head as ONNX: `export.py CONFIG --weights best.pt --cache DIR --pack P`.

The branch's matrix products are INT8, as the encoder's; the head's weights are fp16. Before, a
calibrated last layer is fitted on development pairs: the head's log-odds with a few evidence
features. It is part of the head's graph.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from data import Texts, collate
from encode import pack_tokenizer
from head import GroundingModel, Head
from onnx import TensorProto, helper, numpy_helper
from start import averaged
from torch import Tensor, nn
from torch.nn import functional as F
from train import deciding, rows_of

from branch_graph import upper_layers, write_branch
from build_embedding import source_folder
from guardrail_bench.quality import auroc
from guardrail_service.inference.models.lexical import (
    CLAIM_FEATURES,
    PAIR_FEATURES,
    PASSAGE_FEATURES,
)

HERE = Path(__file__).resolve().parent
OPSET = 17
COLUMNS = [0, 2, 5, 14, 17, 18]
"""Word overlap, numbers and names the evidence lacks, best cosine, bigrams, rare words' overlap."""
PENALTY = 0.02
INPUTS = ["claim", "passage", "claim_features", "passage_features", "match", "pair"]


class ServedGrounding(nn.Module):
    """The head on one pair, without batch axis and masks, with the last layer fitted on dev."""

    def __init__(self, head: Head, last: GroundingLast) -> None:
        super().__init__()
        self.head, self.last = head, last

    def forward(
        self, claim: Tensor, passage: Tensor, claim_features: Tensor, passage_features: Tensor,
        match: Tensor, pair: Tensor,
    ) -> Tensor:  # fmt: skip
        """Return three probabilities."""
        claim_mask = torch.ones_like(claim[None, :, 0])
        passage_mask = torch.ones_like(passage[None, :, 0])
        logits = self.head(
            claim[None], passage[None], claim_features[None], passage_features[None],
            match[None], pair[None], claim_mask, passage_mask,
        )  # fmt: skip
        supported = torch.sigmoid(self.last(logits, pair[None]))
        against = logits[:, 1:].softmax(dim=-1) * (1 - supported[:, None])
        return torch.cat([supported[:, None], against], dim=-1)[0]


class GroundingLast(nn.Module):
    """Log-odds of "supported" from the head's and a few evidence features, calibrated."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.ones(()))
        self.columns = nn.Parameter(torch.zeros(len(COLUMNS)))
        self.intercept = nn.Parameter(torch.zeros(()))

    def forward(self, logits: Tensor, pair: Tensor) -> Tensor:
        """Return one number per pair."""
        odds = logits[:, 0] - torch.logsumexp(logits[:, 1:], dim=-1)
        return self.slope * odds + pair[:, COLUMNS] @ self.columns + self.intercept


def halve_weights(path: Path) -> None:
    """Store weights in fp16 and cast them back in the graph; arithmetic stays fp32."""
    model = onnx.load(str(path))
    casts = []
    for number, weight in enumerate(list(model.graph.initializer)):
        values = numpy_helper.to_array(weight)
        if values.dtype != np.float32 or values.size < 1024:
            continue
        small = f"half_{number}"
        model.graph.initializer.remove(weight)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float16), small))
        casts.append(helper.make_node("Cast", [small], [weight.name], to=TensorProto.FLOAT))
    for node in reversed(casts):
        model.graph.node.insert(0, node)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


@torch.no_grad()
def development(
    model: GroundingModel, cache: Path, config: dict[str, Any], pack: Path
) -> tuple[Tensor, Tensor, Tensor, list[str]]:
    """Return logits, pair features, labels and sources of the development rows that decide.

    Sources that training left out are left out here, too.
    """
    texts = Texts(cache, pack_tokenizer(pack))
    left_out = config.get("leave_out", ())
    rows = [r for r in rows_of(cache / "dev.jsonl") if texts.length(r["claim"])]
    rows = [r for r in rows if r["source"] not in left_out]
    rows.sort(key=lambda r: sum(map(texts.length, r["sentences"])))
    logits, pairs = [], []
    for start in range(0, len(rows), 64):
        part = [(r["claim"], r["sentences"], 0, "") for r in rows[start : start + 64]]
        batch = collate(part, texts, config)
        logits.append(model(batch))
        pairs.append(batch["pair"])
    every = torch.cat(logits)
    odds = every[:, 0] - torch.logsumexp(every[:, 1:], dim=-1)
    kept = deciding(rows, odds)
    labels = torch.tensor([float(rows[i]["label"] == 0) for i in kept])
    return every[kept], torch.cat(pairs)[kept], labels, [rows[i]["source"] for i in kept]


def fit_last(
    logits: Tensor, pairs: Tensor, labels: Tensor, sources: list[str], without: str | None = None
) -> GroundingLast:
    """Return the last layer with the least log loss, each source weighing the same.

    Every source has its own intercept while fitting, as base rates differ; their mean is kept.
    """
    names = sorted(set(sources) - {without})
    rows = torch.tensor([i for i, s in enumerate(sources) if s != without])
    own = torch.tensor([names.index(sources[i]) for i in rows])
    weight = 1.0 / torch.bincount(own, minlength=len(names))[own]
    last, shift = GroundingLast(), torch.zeros(len(names), requires_grad=True)
    optimizer = torch.optim.LBFGS([*last.parameters(), shift], max_iter=200)

    def cost() -> Tensor:
        optimizer.zero_grad()
        found = last(logits[rows], pairs[rows]) + shift[own]
        loss = F.binary_cross_entropy_with_logits(found, labels[rows], reduction="none")
        total = (loss * weight).sum() / len(names)
        total = total + PENALTY * ((last.columns**2).sum() / 10 + (shift**2).sum())
        total.backward()
        return total

    optimizer.step(cost)
    with torch.no_grad():
        last.intercept += shift.mean()
    return last.requires_grad_(False)


def report(
    logits: Tensor, pairs: Tensor, labels: Tensor, sources: list[str], last: GroundingLast
) -> None:
    """Print ROC areas per source: head, with the last layer, and with one not fitted on it."""
    names = np.array(sources)
    odds = (logits[:, 0] - torch.logsumexp(logits[:, 1:], dim=-1)).numpy()
    for name in sorted(set(sources)):
        on = names == name
        good = labels.numpy()[on] == 1
        if not 0 < good.sum() < len(good):
            continue
        other = fit_last(logits, pairs, labels, sources, without=name)
        areas = [auroc(odds[on].astype(np.float64), good)]
        for layer in (last, other):
            areas.append(auroc(layer(logits, pairs).numpy()[on].astype(np.float64), good))
        print(name, "head {:.3f} fused {:.3f} fused without this source {:.3f}".format(*areas))


def write_head(served: ServedGrounding, width: int, target: Path) -> None:
    """Write the head's graph, weights in fp16."""
    n, m = 9, 31
    example = (
        torch.randn(n, width), torch.randn(m, width), torch.rand(n, CLAIM_FEATURES),
        torch.rand(m, PASSAGE_FEATURES), torch.rand(n, m).round(), torch.rand(PAIR_FEATURES),
    )  # fmt: skip
    claim, passage = {0: "claim_tokens"}, {0: "passage_tokens"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracing exporter, as for the encoder
        torch.onnx.export(
            served.eval(),
            example,
            str(target),
            dynamo=False,
            opset_version=OPSET,
            input_names=INPUTS,
            output_names=["probabilities"],
            dynamic_axes={
                "claim": claim,
                "claim_features": claim,
                "passage": passage,
                "passage_features": passage,
                "match": {**claim, 1: "passage_tokens"},
            },
        )
    halve_weights(target)


def main() -> None:
    """Export."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument(
        "--weights", type=Path, required=True, nargs="+", help="of one run; several are averaged"
    )
    parser.add_argument("--cache", type=Path, required=True, help="what prepare.py wrote")
    parser.add_argument("--pack", type=Path, default=HERE.parents[1] / "embedded")
    parser.add_argument(
        "--precision", choices=["int8", "fp32"], default="int8", help="of the branch's products"
    )
    arguments = parser.parse_args()
    config = json.loads(arguments.config.read_text(encoding="utf-8"))
    model = GroundingModel(upper_layers(source_folder()), {**config, "dropout": 0.0})
    model.load_state_dict(averaged(arguments.weights))
    model.eval()
    found = development(model, arguments.cache, config, arguments.pack)
    last = fit_last(*found)
    if len(set(found[3])) > 1:
        report(*found, last)
    print({name: [round(v, 3) for v in value.flatten().tolist()]
           for name, value in last.state_dict().items()})  # fmt: skip
    states, head = (arguments.pack / name for name in ("grounding_states", "grounding"))
    for folder in (states, head):
        folder.mkdir(parents=True, exist_ok=True)
    write_branch(model.branch, states / "model.onnx", "states", arguments.precision, masked=True)
    write_head(ServedGrounding(model.head, last), config["width"], head / "model.onnx")
    for folder in (states, head):
        print(f"{folder.name}: {(folder / 'model.onnx').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
