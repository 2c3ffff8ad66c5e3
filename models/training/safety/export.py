"""Writes the trained branch as one INT8 ONNX file: `export.py CONFIG --weights best.pt --out FILE`.

Before, the last numbers are fitted on development texts: each label's log-odds are calibrated, and
`hate`, an output of its own, joins toxicity and identity_attack, too. They are part of the graph,
and so is the combined bias.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data import TextSource, batches, collate
from network import open_branch
from texts import BIAS, TOXICITY, TRAINED
from torch import Tensor, nn
from torch.nn import functional

from branch_graph import Branch, write_branch

FITTED = (*TOXICITY, *BIAS, "hate")
LABELS = (*TOXICITY, "fairness_bias", *BIAS, "hate")
"""Names of the graph's outputs, in order."""
PARTS = {name: (TRAINED.index(name),) for name in FITTED}
HATE = TRAINED.index("hate")
PARTS |= {name: (*PARTS[name], HATE) for name in ("toxicity", "identity_attack")}
FIT_STEPS = 300
SHIFT = {"framing": -1.1}
"""Added to calibrated log-odds: one in six development texts of framing is positive, and an
ordinary answer has many sentences. Chosen so that 2 % of 120 Wikipedia passages of about 120 words,
none of them trained on, are above .61 (16 % were)."""


class SafetyLast(nn.Module):
    """Calibrated log-odds of each label: a weighted sum of trained ones, and a constant."""

    def __init__(self) -> None:
        super().__init__()
        start = torch.full((len(FITTED), len(TRAINED)), -20.0)
        for row, name in enumerate(FITTED):
            for column in PARTS[name]:
                start[row, column] = 0.0
        self.weight = nn.Parameter(start)
        self.constant = nn.Parameter(torch.zeros(len(FITTED)))

    def forward(self, odds: Tensor) -> Tensor:
        """Return (rows, fitted) from (rows, trained)."""
        return odds @ functional.softplus(self.weight).T + self.constant


class ServedSafety(nn.Module):
    """The tail with calibration: from token states to a probability for each of `LABELS`."""

    def __init__(self, tail: nn.Module, last: SafetyLast) -> None:
        super().__init__()
        self.tail = tail
        # Constants in the graph instead of softplus at run time.
        weight = functional.softplus(last.weight.detach())
        self.register_buffer("weight", torch.where(weight < 1e-6, 0.0, weight).T.contiguous())
        self.register_buffer("constant", last.constant.detach().clone())

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return probabilities (batch, labels) in the order of `LABELS`."""
        each = torch.sigmoid(self.tail(states, mask) @ self.weight + self.constant)
        toxicity, bias, hate = each.split([len(TOXICITY), len(BIAS), 1], dim=-1)
        return torch.cat([toxicity, combined(bias), bias, hate], dim=-1)


def combined(bias: Tensor) -> Tensor:
    """Return the combined score of calibrated parts: the largest of them, shape (rows, 1)."""
    return bias.amax(dim=-1, keepdim=True)


@torch.no_grad()
def sentence_odds(branch: Branch, source: TextSource, tokens: int = 4096) -> tuple[Any, Any]:
    """Return every sentence's trained log-odds, and which comment it belongs to."""
    branch.eval()
    rows, owners = [], []
    for places in batches([(source, row) for row in range(len(source.rows))], tokens):
        batch = collate(places)
        rows += [branch(states, mask) for states, mask in batch.chunks]
        numbers = torch.tensor([row for _, row in places])
        owners.append(numbers[batch.owner])
    return torch.cat(rows), torch.cat(owners)


def fit(found: dict[str, tuple[Tensor, Tensor]], sources: dict[str, TextSource]) -> SafetyLast:
    """Return calibration fitted on the largest value over each comment's sentences."""
    last = SafetyLast()
    optimizer = torch.optim.Adam(last.parameters(), lr=0.05)
    names = [TRAINED.index(name) for name in FITTED]
    for _ in range(FIT_STEPS):
        loss = torch.zeros(())
        for source, (odds, owner) in zip(sources.values(), found.values(), strict=True):
            values = torch.from_numpy(source.values[:, names])
            known = torch.from_numpy(source.weights[:, names])
            each = functional.binary_cross_entropy_with_logits(
                worst(last(odds), owner, len(values)), values, reduction="none"
            )
            loss = loss + (each * known).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return last


def shifted(last: SafetyLast) -> SafetyLast:
    """Return the calibration with the constants of `SHIFT` added."""
    with torch.no_grad():
        for row, name in enumerate(FITTED):
            last.constant[row] += SHIFT.get(name, 0.0)
    return last


def kept_odds(path: Path, weights: Path) -> dict[str, tuple[Tensor, Tensor]] | None:
    """Return what an earlier export of the same weights computed, or None."""
    if not path.exists() or path.stat().st_mtime < weights.stat().st_mtime:
        return None
    with np.load(path) as kept:
        names = [name.removesuffix("_odds") for name in kept if name.endswith("_odds")]
        return {
            n: (torch.from_numpy(kept[f"{n}_odds"]), torch.from_numpy(kept[f"{n}_owner"]))
            for n in names
        }


def worst(odds: Tensor, owner: Tensor, count: int) -> Tensor:
    """Return the largest value of each comment's sentences, per label."""
    spread = owner[:, None].expand_as(odds)
    return torch.full((count, odds.shape[1]), -1e4).scatter_reduce(0, spread, odds, "amax")


def main() -> None:
    """Fit the last numbers and export."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--weights", type=Path, required=True, help="best.pt of a run")
    parser.add_argument("--cache", type=Path, required=True, help="what prepare.py wrote")
    parser.add_argument("--source", type=Path, required=True, help="the original encoder's weights")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--precision", choices=("int8", "fp32"), default="int8")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    config = json.loads(arguments.config.read_text(encoding="utf-8"))
    branch = open_branch(arguments.source, config["hidden"], 0.0)
    branch.load_state_dict(torch.load(arguments.weights, weights_only=True))
    names = sorted(path.stem for path in arguments.cache.glob("dev_*.npz"))
    sources = {name: TextSource(arguments.cache, name) for name in names}
    path = arguments.weights.with_name("dev_odds.npz")
    found = kept_odds(path, arguments.weights)
    if found is None:
        found = {name: sentence_odds(branch, source) for name, source in sources.items()}
        arrays = {f"{n}_odds": odds.numpy() for n, (odds, _) in found.items()}
        arrays |= {f"{n}_owner": owner.numpy() for n, (_, owner) in found.items()}
        np.savez(path, **arrays)
    last = shifted(fit(found, sources))
    weight = functional.softplus(last.weight.detach())
    for row, name in enumerate(FITTED):
        parts = {TRAINED[c]: round(float(weight[row, c]), 3) for c in PARTS[name]}
        print(name, parts, round(float(last.constant[row].detach()), 3), flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    served = Branch(branch.layers, ServedSafety(branch.tail, last))
    write_branch(served, arguments.out, "probabilities", arguments.precision)
    print(f"{arguments.out.name}: {arguments.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
