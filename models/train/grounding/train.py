"""Trains the grounding head on a prepared cache: `train.py CONFIG --cache DIR --run DIR`.

Seeded; a checkpoint every five minutes, and a run that is started again goes on from it. Development
pairs only choose the checkpoint that is kept. Learning curves are written as PNG.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data import Sampler, Texts, collate
from guardrail_service.bench.ranking import auroc
from guardrail_service.inference.tokenizer import Tokenizer
from head import Head
from torch import Tensor
from torch.nn import functional as F

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
    head: Head, rows: list[dict[str, Any]], texts: Texts, config: dict[str, Any]
) -> Any:
    """Return P(supported) of each pair."""
    head.eval()
    found = np.zeros(len(rows))
    order = sorted(range(len(rows)), key=lambda i: sum(map(texts.length, rows[i]["sentences"])))
    for start in range(0, len(order), 64):
        part = order[start : start + 64]
        examples = [(rows[i]["claim"], rows[i]["sentences"], 0, "") for i in part]
        found[part] = head(**collate(examples, texts, config)).softmax(-1)[:, 0].numpy()
    head.train()
    return found


def development(
    head: Head, rows: list[dict[str, Any]], texts: Texts, config: dict[str, Any]
) -> dict[str, float]:
    """Return the ROC area per source and their mean.

    `wice_oracle` gives a claim several passages with one label: the best counts.
    """
    scores = supported(head, rows, texts, config)
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


def draw_curves(history: list[dict[str, Any]], path: Path) -> None:
    """Write loss and development areas over steps."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4))
    steps = [entry["step"] for entry in history]
    left.plot(steps, [entry["loss"] for entry in history])
    left.set(title="training loss", xlabel="step")
    for name in history[-1]["dev"]:
        values = [entry["dev"][name] for entry in history]
        right.plot(steps, values, label=name, linewidth=3 if name == "macro" else 1)
    right.set(title="development ROC area", xlabel="step")
    right.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def rate_at(step: int, spent: float, config: dict[str, Any]) -> float:
    """Return the learning rate: linear warm-up, then half a cosine to a hundredth.

    `spent` is the share of the minutes used up: on a slow machine the rate falls in time for the
    last step, so a run that the clock cut short depends on the machine.
    """
    warm = min(1.0, (step + 1) / config["warmup"])
    done = min(1.0, max(step / config["steps"], spent))
    return float(config["learning_rate"] * warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done))))


class Run:
    """One training run with its state on disk."""

    def __init__(self, config: dict[str, Any], cache: Path, folder: Path, pack: Path) -> None:
        torch.manual_seed(config["seed"])
        torch.set_num_threads(2)
        self.config, self.folder = config, folder
        folder.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        manifest = json.loads((pack / "manifest.json").read_text(encoding="utf-8"))
        entry = manifest["models"][manifest["roles"]["embedding"]]
        self.texts = Texts(cache, Tokenizer(pack / entry["tokenizer"]["path"], 256))
        self.dev = [r for r in rows_of(cache / "dev.jsonl") if self.texts.length(r["claim"])]
        self.sampler = Sampler(rows_of(cache / "train.jsonl"), self.texts, config)
        print(f"loaded after {time.monotonic() - started:.0f} s", flush=True)
        shape = (config["width"], config["heads"], config["layers"], config["dropout"])
        self.head, self.average = Head(*shape), Head(*shape)
        self.average.load_state_dict(self.head.state_dict())
        self.optimizer = torch.optim.AdamW(self.head.parameters(), lr=1e-3, weight_decay=0.02)
        self.step, self.best = 0, 0.0
        self.history: list[dict[str, Any]] = []
        self._resume()

    def _resume(self) -> None:
        path = self.folder / "state.pt"
        if path.exists():
            state = torch.load(path, weights_only=True)
            self.head.load_state_dict(state["head"])
            self.average.load_state_dict(state["average"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.best, self.history = state["step"], state["best"], state["history"]
            torch.set_rng_state(state["rng"])
            print(f"goes on from step {self.step}", flush=True)

    def save(self) -> None:
        """Write everything a later run needs to go on."""
        state = {
            "head": self.head.state_dict(), "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(), "step": self.step, "best": self.best,
            "history": self.history, "rng": torch.get_rng_state(),
        }  # fmt: skip
        partial = self.folder / "state.partial"
        torch.save(state, partial)
        partial.rename(self.folder / "state.pt")

    def one_step(self, spent: float = 0.0) -> float:
        """Draw a batch, take a step, return the loss."""
        examples = self.sampler.batch(self.step)
        batch = collate(examples, self.texts, self.config)
        labels = torch.tensor([label for _, _, label, _ in examples])
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(self.step, spent, self.config)
        loss = loss_of(self.head(**batch), labels)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.head.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        decay = min(EMA, self.step / (self.step + 50))
        with torch.no_grad():
            for mean, now in zip(self.average.parameters(), self.head.parameters(), strict=True):
                mean.lerp_(now, 1 - decay)
        return float(loss.detach())

    def evaluate(self, losses: list[float]) -> None:
        """Measure on development pairs; keep the weights if they are the best so far."""
        dev = development(self.average, self.dev, self.texts, self.config)
        self.history.append({"step": self.step, "loss": float(np.mean(losses)), "dev": dev})
        if dev["macro"] > self.best:
            self.best = dev["macro"]
            torch.save(self.average.state_dict(), self.folder / "best.pt")
        (self.folder / "history.json").write_text(json.dumps(self.history, indent=1) + "\n")

    def go(self) -> None:
        """Train until the steps or the minutes of the configuration are used up."""
        started = saved = time.monotonic()
        losses: list[float] = []
        while self.step < self.config["steps"]:
            now = time.monotonic()
            losses.append(self.one_step((now - started) / 60 / self.config["minutes"]))
            if self.step % self.config["evaluate_every"] == 0 or self.step == self.config["steps"]:
                self.evaluate(losses)
                shown = {k: round(v, 3) for k, v in self.history[-1]["dev"].items()}
                print(f"{self.step} {now - started:.0f}s {np.mean(losses):.4f} {shown}", flush=True)
                losses = []
            elif self.step % 50 == 0:
                print(f"{self.step} {now - started:.0f}s {np.mean(losses):.4f}", flush=True)
            if now - saved > CHECKPOINT_S:
                self.save()
                saved = now
            if now - started > self.config["minutes"] * 60:
                break
        if losses:
            self.evaluate(losses)
        self.save()
        draw_curves(self.history, self.folder / "curves.png")


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--cache", type=Path, required=True, help="what prepare.py wrote")
    parser.add_argument("--run", type=Path, required=True, help="folder of this run")
    parser.add_argument("--pack", type=Path, default=HERE.parents[1] / "embedded")
    parser.add_argument("--steps", type=int, help="instead of the configuration's, for smoke runs")
    arguments = parser.parse_args()
    config = json.loads(arguments.config.read_text(encoding="utf-8"))
    if arguments.steps:
        config = {**config, "steps": arguments.steps, "evaluate_every": arguments.steps}
    Run(config, arguments.cache, arguments.run, arguments.pack).go()


if __name__ == "__main__":
    main()
