"""Trains grounding branch and head on a prepared cache: `train.py CONFIG --cache DIR --run DIR`.

With `"joint": true` in the configuration it trains `joint.py`'s network in their place.

Seeded; a checkpoint every five minutes, and a run that is started again goes on from it. SIGTERM
ends a run after its step. `carried.pt` is smaller than its checkpoint, and enough to go on from.
Development pairs only choose the checkpoint that is kept. Learning curves are written as PNG.
"""

from __future__ import annotations

import argparse
import copy
import json
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data import Example, PairSampler, Texts, collate
from encode import pack_tokenizer
from head import GroundingModel
from joint import JointModel, TokenTexts
from joint import collate as collate_joint
from start import averaged, start_branch, start_head
from torch import Tensor
from torch.nn import functional as F

from branch_graph import upper_layers
from build_embedding import source_folder
from guardrail_bench.quality import auroc
from precision import autocast
from progress import draw_curves, kept_share, rate_at

HERE = Path(__file__).resolve().parent
CHECKPOINT_S = 300
EMA = 0.998
SAME_CLAIM = 4.0
"""Weight of a pair of one claim in the ranking loss."""
MARGIN = 1.0


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


def ranking_loss(logits: Tensor, examples: list[Example]) -> Tensor:
    """Return by how much supported claims fail to lie above the others of the same sentences.

    The mean over all such pairs of a batch; zero where there is none.
    """
    odds = logits[:, 0] - torch.logsumexp(logits[:, 1:], dim=-1)
    read = [frozenset(sentences) for _, sentences, _, _ in examples]
    good = [i for i, example in enumerate(examples) if example[2] == 0]
    bad = [i for i, example in enumerate(examples) if example[2] != 0]
    pairs = [(i, j) for i in good for j in bad if read[i] & read[j]]
    if not pairs:
        return logits.new_zeros(())
    above, below = (torch.tensor(side) for side in zip(*pairs, strict=True))
    # The same claim beside two versions of its passage: nothing but reading tells them apart.
    same = torch.tensor([examples[i][0] == examples[j][0] for i, j in pairs])
    weights = torch.where(same, SAME_CLAIM, 1.0)
    losses = F.relu(MARGIN - odds[above] + odds[below])
    return (weights * losses).sum() / weights.sum()


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return prepared pairs."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


Network = GroundingModel | JointModel
AnyTexts = Texts | TokenTexts


def logits_of(
    model: Network, examples: list[Example], texts: AnyTexts, config: dict[str, Any]
) -> Tensor:
    """Return a network's logits, shape (examples, 3)."""
    if isinstance(model, JointModel):
        assert isinstance(texts, TokenTexts)
        batch = collate_joint(examples, texts, config)
    else:
        assert isinstance(texts, Texts)
        batch = collate(examples, texts, config)
    with autocast():
        logits: Tensor = model(batch)
    return logits.float()


@torch.no_grad()
def supported(
    model: Network,
    rows: list[dict[str, Any]],
    texts: AnyTexts,
    config: dict[str, Any],
) -> Any:
    """Return P(supported) of each pair."""
    model.eval()
    found = np.zeros(len(rows))
    order = sorted(range(len(rows)), key=lambda i: sum(map(texts.length, rows[i]["sentences"])))
    for start in range(0, len(order), 64):
        part = order[start : start + 64]
        examples = [(rows[i]["claim"], rows[i]["sentences"], 0, "") for i in part]
        logits = logits_of(model, examples, texts, config)
        found[part] = logits.softmax(-1)[:, 0].numpy()
    model.train()
    return found


def deciding(rows: list[dict[str, Any]], scores: Any) -> list[int]:
    """Return which rows decide, in order: each for itself unless several belong together.

    Of a claim's several passages (`wice_oracle`) the best supported one, of a written record's
    claims the least supported one.
    """
    best: dict[tuple[str, Any], int] = {}
    for i, row in enumerate(rows):
        sign = -1 if "record" in row else 1
        own = row.get("record", row["claim"] if row["source"].startswith("wice") else i)
        key = (row["source"], own)
        if key not in best or sign * scores[i] > sign * scores[best[key]]:
            best[key] = i
    return sorted(best.values())


def development(
    model: Network, rows: list[dict[str, Any]], texts: AnyTexts, config: dict[str, Any]
) -> dict[str, float]:
    """Return the ROC area per source and their means: old, written and left-out sources."""
    scores = supported(model, rows, texts, config)
    kept = deciding(rows, scores)
    scores, rows = scores[kept], [rows[i] for i in kept]
    written = {row["source"] for row in rows if "record" in row}
    labels = np.array([row["label"] == 0 for row in rows])
    sources = np.array([row["source"] for row in rows])
    areas = {
        str(s): auroc(scores[sources == s], labels[sources == s])
        for s in np.unique(sources)
        if 0 < labels[sources == s].sum() < (sources == s).sum()
    }
    left = written & set(config.get("leave_out", ()))
    means = {"macro": areas.keys() - written, "written": written - left, "left_out": left}
    return areas | {
        name: float(np.mean([areas[s] for s in sources]))
        for name, found in means.items()
        if (sources := [s for s in found if s in areas])
    }


def _network(config: dict[str, Any]) -> Network:
    """Return the network of a configuration with the original encoder's weights."""
    if config.get("joint"):
        return JointModel()
    layers = upper_layers(source_folder())
    for module in layers.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0  # a third of the time on a CPU, for a run of barely one epoch
    return GroundingModel(layers, config)


class GroundingRun:
    """One training run with its state on disk."""

    def __init__(
        self, config: dict[str, Any], cache: Path, folder: Path, pack: Path, start: Path | None,
        branch: Path | None = None, weights: Sequence[Path] = (),
    ) -> None:  # fmt: skip
        torch.manual_seed(config["seed"])
        torch.set_num_threads(config.get("threads", 1))
        self.config, self.folder = config, folder
        folder.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        read_texts = TokenTexts if config.get("joint") else Texts
        self.texts: AnyTexts = read_texts(cache, pack_tokenizer(pack))
        dev = [r for r in rows_of(cache / "dev.jsonl") if self.texts.length(r["claim"])]
        # By claim, so that a claim's several passages stay together.
        self.dev = [r for r in dev if "record" in r or r["claim"] % config["dev_share"] == 0]
        self.sampler = PairSampler(rows_of(cache / "train.jsonl"), self.texts, config)
        print(f"loaded after {time.monotonic() - started:.0f} s", flush=True)
        self.model = _network(config)
        if start:
            print(f"starts from {start_head(self.model, start)} arrays of {start}", flush=True)
        if branch:
            print(f"starts from {start_branch(self.model, branch)} arrays of {branch}", flush=True)
        if weights:
            self.model.load_state_dict(averaged(weights))
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
        full, small = (self.folder / name for name in ("state.pt", "carried.pt"))
        path = full if full.exists() else small
        if path.exists():
            state = torch.load(path, weights_only=True)
            self.model.load_state_dict(state.get("model", state["average"]))
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

    def carry(self) -> None:
        """Write averaged weights in fp16 and moments in bfloat16, whose squares fp16 would lose."""
        state = torch.load(self.folder / "state.pt", weights_only=True)
        del state["model"]
        state["average"] = {name: value.half() for name, value in state["average"].items()}
        for moments in state["optimizer"]["state"].values():
            for name in ("exp_avg", "exp_avg_sq"):
                moments[name] = moments[name].bfloat16()
        torch.save(state, self.folder / "carried.pt")

    def one_step(self) -> float:
        """Draw a batch, take a step, return the loss."""
        examples = self.sampler.batch(self.step)
        labels = torch.tensor([label for _, _, label, _ in examples])
        for group in self.optimizer.param_groups:
            group["lr"] = group["top"] * rate_at(self.step, self.config)
        logits = logits_of(self.model, examples, self.texts, self.config)
        loss = loss_of(logits, labels)
        if share := self.config.get("ranking", 0.0):
            loss = loss + share * ranking_loss(logits, examples)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        kept = kept_share(self.step, EMA, self.config.get("average_after", 50))
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.average.parameters()), list(self.model.parameters()), 1 - kept
            )
        return float(loss.detach())

    def evaluate(self, losses: list[float]) -> None:
        """Measure on development pairs; keep the weights if they are the best so far."""
        dev = development(self.average, self.dev, self.texts, self.config)
        self.history.append({"step": self.step, "loss": float(np.mean(losses)), "dev": dev})
        reached = (dev["macro"] + dev.get("written", dev["macro"])) / 2
        if reached > self.best:
            self.best = reached
            torch.save(self.average.state_dict(), self.folder / "best.pt")
        (self.folder / "history.json").write_text(json.dumps(self.history, indent=1) + "\n")
        draw_curves(self.history, self.folder / "curves.png")

    def go(self) -> None:
        """Train until the steps of the configuration are done."""
        started = saved = time.monotonic()
        losses: list[float] = []
        self.model.train()
        ended: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
        while self.step < self.config["steps"] and not ended:
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
        self.carry()


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--cache", type=Path, required=True, help="what prepare.py wrote")
    parser.add_argument("--run", type=Path, required=True, help="folder of this run")
    parser.add_argument("--pack", type=Path, default=HERE.parents[1] / "embedded")
    parser.add_argument("--start", type=Path, help="an exported head to start from (ONNX)")
    parser.add_argument("--start-branch", type=Path, help="an exported branch, likewise")
    parser.add_argument(
        "--start-weights", type=Path, nargs="+", default=[],
        help="what another run kept; several are averaged",
    )  # fmt: skip
    parser.add_argument("--steps", type=int, help="instead of the configuration's, for smoke runs")
    arguments = parser.parse_args()
    config = json.loads(arguments.config.read_text(encoding="utf-8"))
    if arguments.steps:
        config = {**config, "steps": arguments.steps, "evaluate_every": arguments.steps}
    starts = arguments.start, arguments.start_branch, arguments.start_weights
    GroundingRun(config, arguments.cache, arguments.run, arguments.pack, *starts).go()


if __name__ == "__main__":
    main()
