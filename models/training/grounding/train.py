"""Trains grounding branch and head on a prepared cache: `train.py CONFIG --cache DIR --run DIR`.

Seeded; a checkpoint every five minutes, and a run that is started again goes on from it.
Development pairs only choose the checkpoint that is kept. Learning curves are written as PNG.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from data import PairSampler, Texts, collate
from encode import pack_tokenizer
from head import GroundingModel
from joint import JointModel
from onnx import numpy_helper
from torch import Tensor
from torch.nn import functional as F

from branch_graph import upper_layers
from build_embedding import source_folder
from guardrail_bench.quality import auroc
from precision import autocast
from progress import draw_curves, rate_at

HERE = Path(__file__).resolve().parent
CHECKPOINT_S = 300
EMA = 0.998


def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean loss: three classes where known, else contradicted and not mentioned summed.

    The two-way part (supported or not) counts again, because it is what decides.
    """
    three = logits.log_softmax(dim=-1)
    against = torch.logsumexp(three[:, 1:], dim=-1)
    unknown = labels == 3
    known = F.nll_loss(three, labels.clamp(max=2), reduction="none")
    every = torch.where(unknown, -against, known)
    two = -torch.where(labels == 0, three[:, 0], against)
    return (0.5 * every + 0.5 * two).mean()


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return prepared pairs."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@torch.no_grad()
def supported(
    model: GroundingModel | JointModel,
    rows: list[dict[str, Any]],
    texts: Texts,
    config: dict[str, Any],
) -> Any:
    """Return P(supported) of each pair."""
    model.eval()
    found = np.zeros(len(rows))
    order = sorted(range(len(rows)), key=lambda i: sum(map(texts.length, rows[i]["sentences"])))
    for start in range(0, len(order), 64):
        part = order[start : start + 64]
        examples = [(rows[i]["claim"], rows[i]["sentences"], 0, "") for i in part]
        with autocast():
            logits = model(collate(examples, texts, config))
        found[part] = logits.float().softmax(-1)[:, 0].numpy()
    model.train()
    return found


def development(
    model: GroundingModel, rows: list[dict[str, Any]], texts: Texts, config: dict[str, Any]
) -> dict[str, float]:
    """Return the ROC area per source and their mean.

    `wice_oracle` gives a claim several passages with one label: the best counts.
    """
    scores = supported(model, rows, texts, config)
    best: dict[tuple[str, int], int] = {}
    for i, row in enumerate(rows):
        own = i if row["source"] != "wice_oracle" else row["claim"]
        key = (row["source"], own)
        if key not in best or scores[i] > scores[best[key]]:
            best[key] = i
    kept = sorted(best.values())
    scores, rows = scores[kept], [rows[i] for i in kept]
    labels = np.array([row["label"] == 0 for row in rows])
    sources = np.array([row["source"] for row in rows])
    areas = {
        str(s): auroc(scores[sources == s], labels[sources == s])
        for s in np.unique(sources)
        if 0 < labels[sources == s].sum() < (sources == s).sum()
    }
    return {**areas, "macro": float(np.mean(list(areas.values())))}


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
    fitting = [name for name, p in own.items() if name in arrays and arrays[name].shape == p.shape]
    with torch.no_grad():
        for name in fitting:
            own[name].copy_(torch.from_numpy(arrays[name].astype(np.float32)))
    return len(fitting)


class GroundingRun:
    """One training run with its state on disk."""

    def __init__(
        self, config: dict[str, Any], cache: Path, folder: Path, pack: Path, start: Path | None
    ) -> None:
        torch.manual_seed(config["seed"])
        torch.set_num_threads(1)
        self.config, self.folder = config, folder
        folder.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        self.texts = Texts(cache, pack_tokenizer(pack))
        dev = [r for r in rows_of(cache / "dev.jsonl") if self.texts.length(r["claim"])]
        # By claim, so that a claim's several passages stay together.
        self.dev = [r for r in dev if r["claim"] % config["dev_share"] == 0]
        self.sampler = PairSampler(rows_of(cache / "train.jsonl"), self.texts, config)
        print(f"loaded after {time.monotonic() - started:.0f} s", flush=True)
        layers = upper_layers(source_folder())
        for module in layers.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0  # a third of the time on a CPU, for a run of barely one epoch
        made = JointModel if config.get("joint") else GroundingModel
        self.model = made(layers, config)
        if start:
            print(f"starts from {start_head(self.model, start)} arrays of {start}", flush=True)
        self.average = copy.deepcopy(self.model)
        self.optimizer = torch.optim.AdamW(
            [{"params": self.model.upper(), "top": config["layer_learning_rate"]},
             {"params": self.model.others(), "top": config["learning_rate"]}],
            lr=0.0, weight_decay=0.02, fused=True,
        )  # fmt: skip
        self.step, self.best = 0, 0.0
        self.history: list[dict[str, Any]] = []
        self._resume()

    def _resume(self) -> None:
        path = self.folder / "state.pt"
        if path.exists():
            state = torch.load(path, weights_only=True)
            self.model.load_state_dict(state["model"])
            self.average.load_state_dict(state["average"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.best, self.history = state["step"], state["best"], state["history"]
            torch.set_rng_state(state["rng"])
            print(f"goes on from step {self.step}", flush=True)

    def save(self) -> None:
        """Write everything a later run needs to go on."""
        state = {
            "model": self.model.state_dict(), "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(), "step": self.step, "best": self.best,
            "history": self.history, "rng": torch.get_rng_state(),
        }  # fmt: skip
        partial = self.folder / "state.partial"
        torch.save(state, partial)
        partial.rename(self.folder / "state.pt")

    def one_step(self) -> float:
        """Draw a batch, take a step, return the loss."""
        examples = self.sampler.batch(self.step)
        batch = collate(examples, self.texts, self.config)
        labels = torch.tensor([label for _, _, label, _ in examples])
        for group in self.optimizer.param_groups:
            group["lr"] = group["top"] * rate_at(self.step, self.config)
        with autocast():
            logits = self.model(batch)
        loss = loss_of(logits.float(), labels)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        decay = min(EMA, self.step / (self.step + 50))
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.average.parameters()), list(self.model.parameters()), 1 - decay
            )
        return float(loss.detach())

    def evaluate(self, losses: list[float]) -> None:
        """Measure on development pairs; keep the weights if they are the best so far."""
        dev = development(self.average, self.dev, self.texts, self.config)
        self.history.append({"step": self.step, "loss": float(np.mean(losses)), "dev": dev})
        if dev["macro"] > self.best:
            self.best = dev["macro"]
            torch.save(self.average.state_dict(), self.folder / "best.pt")
        (self.folder / "history.json").write_text(json.dumps(self.history, indent=1) + "\n")
        draw_curves(self.history, self.folder / "curves.png")

    def go(self) -> None:
        """Train until the steps of the configuration are done."""
        started = saved = time.monotonic()
        losses: list[float] = []
        self.model.train()
        while self.step < self.config["steps"]:
            losses.append(self.one_step())
            now = time.monotonic()
            if self.step % self.config["evaluate_every"] == 0 or self.step == self.config["steps"]:
                self.evaluate(losses)
                shown = {k: round(v, 3) for k, v in self.history[-1]["dev"].items()}
                print(f"{self.step} {now - started:.0f}s {np.mean(losses):.4f} {shown}", flush=True)
                losses = []
            elif self.step % 50 == 0:
                print(f"{self.step} {now - started:.0f}s {np.mean(losses[-50:]):.4f}", flush=True)
            if now - saved > CHECKPOINT_S:
                self.save()
                saved = now
        self.save()


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--cache", type=Path, required=True, help="what prepare.py wrote")
    parser.add_argument("--run", type=Path, required=True, help="folder of this run")
    parser.add_argument("--pack", type=Path, default=HERE.parents[1] / "embedded")
    parser.add_argument("--start", type=Path, help="an exported head to start from (ONNX)")
    parser.add_argument("--steps", type=int, help="instead of the configuration's, for smoke runs")
    arguments = parser.parse_args()
    config = json.loads(arguments.config.read_text(encoding="utf-8"))
    if arguments.steps:
        config = {**config, "steps": arguments.steps, "evaluate_every": arguments.steps}
    GroundingRun(config, arguments.cache, arguments.run, arguments.pack, arguments.start).go()


if __name__ == "__main__":
    main()
