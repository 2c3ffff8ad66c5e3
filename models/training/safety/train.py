"""Trains the safety branch on a prepared cache: `train.py CONFIG --cache DIR --run DIR`.

Seeded; a checkpoint every five minutes and at SIGTERM, and a run that is started again goes on from
it. With `shares` in the configuration every source is drawn as often as its share says, and minimal
pairs come together and are pulled apart by a hinge. With `keep` a branch that goes on from
`--start` is held to what it said of all other comments: pairs teach it and it does not forget.
Development texts only choose the checkpoint that is kept. Learning curves are written as PNG.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data import SentenceBatch, SentenceSampler, TextSource, batches, collate, collate_units
from network import open_branch
from start import start_branch
from texts import BIAS, TRAINED
from torch import Tensor
from torch.nn import functional as F

from branch_graph import Branch
from guardrail_bench.quality import auroc
from precision import autocast
from progress import draw_curves, kept_share, rate_at

CHECKPOINT_S = 300
MARGIN = 2.0
"""Log-odds by which the bad text of a minimal pair should be above its twin."""
EMA = 0.998
BIAS_AT = [TRAINED.index(name) for name in BIAS]
DEV = {
    "jigsaw": ("toxicity", "severe_toxicity", "obscene", "threat", "insult", "identity_attack"),
    "hatexplain": ("toxicity", "hate"), "hatemoji_build": ("toxicity", "hate"),
    "convabuse": ("toxicity",), "edos": ("gender", "fairness_bias"),
    "redditbias": ("group", "fairness_bias"), "stereoset": ("group", "fairness_bias"),
    "wiki_npov": ("framing", "fairness_bias"), "written": ("toxicity", "hate", "fairness_bias"),
    "pairs": ("toxicity", "fairness_bias"),
}  # fmt: skip
"""Labels to measure on each source's development texts."""


def sentence_odds(branch: Branch, batch: SentenceBatch) -> Tensor:
    """Return every sentence's log-odds, in the order of `batch.owner`."""
    with autocast():
        found = [branch(states, mask) for states, mask in batch.chunks]
    return torch.cat(found).float()


def comment_odds(odds: Tensor, owner: Tensor, count: int, sharpness: float) -> Tensor:
    """Return a smooth maximum over each comment's sentences: log-sum-exp, shape (count, labels)."""
    spread = owner[:, None].expand_as(odds)
    most = torch.full((count, odds.shape[1]), -1e4).scatter_reduce(0, spread, odds, "amax").detach()
    shifted = torch.exp((odds - most[owner]) * sharpness)
    summed = torch.zeros(count, odds.shape[1]).scatter_add(0, spread, shifted)
    return most + summed.log() / sharpness


def fairness(odds: Tensor) -> tuple[Tensor, Tensor]:
    """Return log P and log (1 - P) that at least one bias head is right to fire."""
    silent = F.logsigmoid(-odds[:, BIAS_AT]).sum(-1)
    return torch.log(-torch.expm1(silent.clamp(max=-1e-6))), silent


def loss_of(odds: Tensor, batch: SentenceBatch, scale: Tensor) -> Tensor:
    """Return the mean loss over what is known, and of the combined bias score."""
    each = F.binary_cross_entropy_with_logits(odds, batch.values, reduction="none")
    weights = batch.weights * scale * torch.where(batch.values > 0.5, POSITIVE, 1.0)
    total = (each * weights).sum() / len(odds)
    loud, silent = fairness(odds)
    fair = -(batch.fair * loud + (1 - batch.fair) * silent)
    return total + 0.5 * fair[batch.fair >= 0].sum() / len(odds)


def twin_loss(odds: Tensor, batch: SentenceBatch, margin: float) -> Tensor:
    """Return by how much log-odds of minimal pairs are less than `margin` apart, on average."""
    if not len(batch.twins):
        return torch.zeros(())
    bad, good, label = batch.twins.unbind(1)
    return F.relu(margin - (odds[bad, label] - odds[good, label])).mean()


def kept_loss(odds: Tensor, before: Tensor, batch: SentenceBatch) -> Tensor:
    """Return how far log-odds moved from those before the training, except those of pairs."""
    alone = torch.ones(len(odds), dtype=torch.bool)
    alone[batch.twins[:, :2].flatten()] = False
    return F.smooth_l1_loss(odds[alone], before[alone]) if alone.any() else torch.zeros(())


_RARE = {"toxicity": 1.3, "hate": 1.3, "threat": 2.0, "severe_toxicity": 2.0}
POSITIVE = torch.tensor([_RARE.get(name, 1.0) for name in TRAINED])
"""Weights of positives beside negatives; the rare ones would be learned late otherwise."""


@torch.no_grad()
def scores(branch: Branch, source: TextSource, tokens: int = 4096) -> Any:
    """Return the largest log-odds over each comment's sentences (comments, labels)."""
    branch.eval()
    found = np.zeros((len(source.rows), len(TRAINED)), np.float32)
    for places in batches([(source, row) for row in range(len(source.rows))], tokens):
        batch = collate(places)
        odds = sentence_odds(branch, batch)
        spread = batch.owner[:, None].expand_as(odds)
        most = torch.full((len(places), odds.shape[1]), -1e4).scatter_reduce(
            0, spread, odds, "amax"
        )
        found[[row for _, row in places]] = most.numpy()
    branch.train()
    return found


def areas(odds: Any, source: TextSource, labels: tuple[str, ...]) -> dict[str, float]:
    """Return the ROC area of some labels of one source's development texts."""
    found = {}
    for label in labels:
        if label == "fairness_bias":
            score, truth = fairness(torch.from_numpy(odds))[0].numpy(), source.fair
            kept = truth >= 0
        else:
            at = TRAINED.index(label)
            score, truth, kept = odds[:, at], source.values[:, at], source.weights[:, at] > 0
        truth = truth[kept] > 0.5
        if 0 < truth.sum() < len(truth):
            found[label] = auroc(score[kept], truth)
    return found


def development(branch: Branch, sources: dict[str, TextSource]) -> dict[str, float]:
    """Return the ROC areas by source and label, and the mean over sources."""
    found: dict[str, float] = {}
    means = []
    for name, source in sources.items():
        own = areas(scores(branch, source), source, DEV.get(name, ()))
        found |= {f"{name} {label}": value for label, value in own.items()}
        if own:
            means.append(float(np.mean(list(own.values()))))
    return {**found, "macro": float(np.mean(means))}


class SafetyRun:
    """One training run with its state on disk."""

    def __init__(
        self, config: dict[str, Any], cache: Path, folder: Path, source: Path,
        start: Path | None = None,
    ) -> None:  # fmt: skip
        torch.manual_seed(config["seed"])
        torch.set_num_threads(config["threads"])
        self.config, self.folder = config, folder
        folder.mkdir(parents=True, exist_ok=True)
        names = sorted(path.stem for path in cache.glob("*.npz"))
        started = time.monotonic()
        self.dev = {n[4:]: TextSource(cache, n) for n in names if n.startswith("dev_")}
        self.sampler = SentenceSampler(
            {n: TextSource(cache, n) for n in names if not n.startswith("dev_")}, config
        )
        print(f"loaded after {time.monotonic() - started:.0f} s", flush=True)
        shape = (source, config["hidden"], config["dropout"])
        self.branch, self.average = open_branch(*shape), open_branch(*shape)
        if start:
            start_branch(self.branch, start)
        self.average.load_state_dict(self.branch.state_dict())
        self.before: Branch | None = None
        if config.get("keep"):
            if start is None:
                raise ValueError("`keep` holds a branch to what it was: name it with --start")
            self.before = open_branch(*shape).eval().requires_grad_(requires_grad=False)
            self.before.load_state_dict(self.branch.state_dict())
        groups = [
            {"params": self._trained_layers(), "top": config["layers_rate"]},
            {"params": self.branch.tail.parameters(), "top": config["tail_rate"]},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-4, weight_decay=0.01)
        self.scale = torch.tensor([config["label_weights"].get(name, 1.0) for name in TRAINED])
        self.step = self.number = self.place = 0
        self.best = 0.0
        self.history: list[dict[str, Any]] = []
        self._resume()

    def _trained_layers(self) -> list[torch.nn.Parameter]:
        frozen = self.config.get("frozen_layers", 0)
        for layer in self.branch.layers[:frozen]:
            layer.requires_grad_(requires_grad=False)
        return [p for layer in self.branch.layers[frozen:] for p in layer.parameters()]

    def _resume(self) -> None:
        path = self.folder / "state.pt"
        if path.exists():
            state = torch.load(path, weights_only=True)
            self.branch.load_state_dict(state["branch"])
            self.average.load_state_dict(state["average"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.number, self.place = state["step"], state["number"], state["place"]
            self.best, self.history = state["best"], state["history"]
            torch.set_rng_state(state["rng"])
            print(f"goes on from step {self.step}", flush=True)

    def save(self) -> None:
        """Write everything a later run needs to go on."""
        state = {
            "branch": self.branch.state_dict(), "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(), "step": self.step, "number": self.number,
            "place": self.place, "best": self.best, "history": self.history,
            "rng": torch.get_rng_state(),
        }  # fmt: skip
        partial = self.folder / "state.partial"
        torch.save(state, partial)
        partial.rename(self.folder / "state.pt")

    def one_step(self, batch: SentenceBatch, spent: float = 0.0) -> float:
        """Take a step on a batch, return the loss."""
        share = rate_at(self.step, self.config, spent)
        for group in self.optimizer.param_groups:
            group["lr"] = group["top"] * share
        odds = self._comment_odds(self.branch, batch)
        loss = loss_of(odds, batch, self.scale)
        loss = loss + self.config.get("twins", 0.0) * twin_loss(odds, batch, MARGIN)
        if self.before is not None:
            with torch.no_grad():
                before = self._comment_odds(self.before, batch)
            loss = loss + self.config["keep"] * kept_loss(odds, before, batch)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.branch.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        kept = kept_share(self.step, EMA)
        with torch.no_grad():
            for mean, now in zip(self.average.parameters(), self.branch.parameters(), strict=True):
                mean.lerp_(now, 1 - kept)
        return float(loss.detach())

    def _comment_odds(self, branch: Branch, batch: SentenceBatch) -> Tensor:
        odds = sentence_odds(branch, batch)
        return comment_odds(odds, batch.owner, len(batch.values), self.config["sharpness"])

    def evaluate(self, losses: list[float]) -> None:
        """Measure on development texts; keep the weights if they are the best so far."""
        dev = development(self.average, self.dev)
        self.history.append({"step": self.step, "loss": float(np.mean(losses)), "dev": dev})
        if dev["macro"] > self.best:
            self.best = dev["macro"]
            torch.save(self.average.state_dict(), self.folder / "best.pt")
        text = json.dumps(self.history, indent=1) + "\n"
        (self.folder / "history.json").write_text(text, encoding="utf-8")

    def go(self) -> None:
        """Train until the steps or the minutes of the configuration are used up, or SIGTERM."""
        started = saved = time.monotonic()
        losses: list[float] = []
        minutes = self.config.get("minutes", math.inf)
        tokens, before = 0, self.step / self.config["steps"]
        done = self.step >= self.config["steps"]
        ended: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
        while not done and not ended:
            drawn = self.sampler.batches(self.number)
            for places in drawn[self.place :]:
                used = min(1.0, (time.monotonic() - started) / 60 / minutes)
                batch = collate_units(places)
                losses.append(self.one_step(batch, before + (1 - before) * used))
                tokens += sum(source.size(row) for unit in places for source, row in unit)
                self.place += 1
                now = time.monotonic()
                if self.step % 50 == 0:
                    rate = tokens / (now - started)
                    print(f"{self.step} {now - started:.0f}s {np.mean(losses):.4f} "
                          f"{rate:.0f} tokens/s", flush=True)  # fmt: skip
                done = self.step >= self.config["steps"] or used >= 1
                if done or self.step % self.config["evaluate_every"] == 0:
                    self.evaluate(losses)
                    shown = {k: round(v, 3) for k, v in self.history[-1]["dev"].items()}
                    print(f"{self.step} {np.mean(losses):.4f} {shown}", flush=True)
                    losses = []
                if now - saved > CHECKPOINT_S:
                    self.save()
                    saved = now
                if done or ended:
                    break
            else:
                self.number, self.place = self.number + 1, 0
        self.save()
        if self.history:  # a run may be ended before its first look at development texts
            draw_curves(self.history, self.folder / "curves.png")


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--cache", type=Path, required=True, help="what prepare.py wrote")
    parser.add_argument("--run", type=Path, required=True, help="folder of this run")
    parser.add_argument("--source", type=Path, required=True, help="the original encoder's weights")
    parser.add_argument("--start", type=Path, help="an exported branch to go on from")
    parser.add_argument("--steps", type=int, help="instead of the configuration's, for smoke runs")
    arguments = parser.parse_args()
    config = json.loads(arguments.config.read_text(encoding="utf-8"))
    if arguments.steps:
        config = {**config, "steps": arguments.steps, "evaluate_every": arguments.steps}
    SafetyRun(config, arguments.cache, arguments.run, arguments.source, arguments.start).go()


if __name__ == "__main__":
    main()
