"""Does the promise hold, and what do usual methods do? Simulated scores and real ones.

    python -m tests.simulation.study                 writes the simulations (about 10 minutes)
    python -m tests.simulation.study --real LAB      adds the study on real scores of a scored lab

Results go to docs/images/calibration/ as JSON and PNG. tests/simulation/test_study.py runs the
same functions with fewer repetitions.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from guardrail_offline.calibration.joint_rule import Axis, JointCut, choose_shape
from guardrail_offline.calibration.single_rules import NAIVE
from guardrail_offline.calibration.statistics import (
    average_rank,
    guaranteed_rank,
)
from guardrail_offline.intervals import exact_interval
from guardrail_service.detectors.registry import MetricSpec
from guardrail_service.types import Direction

OUT = Path(__file__).resolve().parents[2] / "docs" / "images" / "calibration"
ALPHA, DELTA, METRICS = 0.10, 0.10, 5
SIZES = ((60, 30), (120, 40), (250, 60))
"""Good and bad answers that are labelled."""

FRESH = 10_000
"""New good answers on which a rule is judged, half as many bad ones. Their own error shifts all
rows of a world alike: give more with --fresh where 1000 labellings are to be told apart."""

Scores = NDArray[np.float64]
FREE = Axis(MetricSpec("free", Direction.HIGHER, low=-math.inf, high=math.inf))
SHARE = Axis(MetricSpec("share", Direction.HIGHER))
MIXED = (SHARE, SHARE, SHARE, FREE, FREE)


@dataclass(frozen=True)
class World:
    """Where answers come from: `draw(generator, n, bad)` returns oriented scores, (n, metrics)."""

    axes: tuple[Axis, ...]
    draw: Callable[[np.random.Generator, int, bool], Scores]


def gaussian(generator: np.random.Generator, n: int, bad: bool) -> Scores:
    """Return scores with pairwise correlation 0.4; a bad answer fails one random metric clearly.

    That metric is shifted by -2.2 standard deviations, all of them by -0.4.
    """
    shared = math.sqrt(0.4) * generator.standard_normal((n, 1))
    scores = shared + math.sqrt(0.6) * generator.standard_normal((n, METRICS))
    if bad:
        scores -= 0.4
        scores[np.arange(n), generator.integers(0, METRICS, n)] -= 2.2
    return scores


def sigmoid(scores: Scores) -> Scores:
    """Return probabilities crowded towards 1, as classifiers give them."""
    return 1 / (1 + np.exp(-(2.0 * scores + 3.0)))


def skewed(generator: np.random.Generator, n: int, bad: bool) -> Scores:
    """Return three probabilities, a score with a heavy lower tail and a plain one."""
    scores = gaussian(generator, n, bad)
    return np.column_stack([sigmoid(scores[:, :3]), -np.exp(-scores[:, 3]), scores[:, 4]])


def tied(generator: np.random.Generator, n: int, bad: bool) -> Scores:
    """Return scores in steps of a fifth: most answers share few values."""
    squashed = 1 / (1 + np.exp(-(1.5 * gaussian(generator, n, bad) + 1.5)))
    return np.round(5 * squashed) / 5


def zero_spread(generator: np.random.Generator, n: int, bad: bool) -> Scores:
    """Return scores of which nine in ten good answers have the best one exactly."""
    scores = sigmoid(gaussian(generator, n, bad))
    return np.where(scores > 0.5, 1.0, scores)


def missing(generator: np.random.Generator, n: int, bad: bool) -> Scores:
    """Return skewed scores with holes: 30 % of cells do not apply, 2 % of answers fail to score."""
    scores = skewed(generator, n, bad)
    scores[generator.random(scores.shape) < 0.30] = math.inf
    scores[generator.random(n) < 0.02, 0] = -math.inf
    return scores


WORLDS: Mapping[str, World] = {
    "gaussian": World((FREE,) * METRICS, gaussian),
    "skewed": World(MIXED, skewed),
    "tied": World((SHARE,) * METRICS, tied),
    "zero_spread": World((SHARE,) * METRICS, zero_spread),
    "missing": World(MIXED, missing),
}
Method = Callable[[Sequence[Axis], Scores, Scores, np.random.Generator], JointCut | None]


def joint(method: str, split: float) -> Method:
    """Return the joint rule with a method and a design part."""

    def run(
        axes: Sequence[Axis], good: Scores, bad: Scores, generator: np.random.Generator
    ) -> JointCut | None:
        design = generator.random(len(good)) < split
        rank = guaranteed_rank(int((~design).sum()), ALPHA, DELTA)
        if not rank:
            return None
        level = rank / int((~design).sum())
        seen = bad[generator.random(len(bad)) < split]
        shape = choose_shape(
            axes, good[design], seen, level, method, [1.0] * len(axes), learn=False  # type: ignore[arg-type]
        )  # fmt: skip
        return shape.cut(good[~design], rank)

    return run


def per_metric(rule: Callable[[Scores, Scores], float]) -> Method:
    """Return a rule that treats each metric by itself."""

    def run(
        axes: Sequence[Axis], good: Scores, bad: Scores, _generator: np.random.Generator
    ) -> JointCut:
        cuts = (rule(good[:, j], bad[:, j]) for j in range(len(axes)))
        return JointCut(tuple(cuts), 0)

    return run


def bonferroni(good: Scores, _bad: Scores) -> float:
    """Return each metric's cut at a fifth of alpha and of delta; none where labels are too few."""
    rank = guaranteed_rank(len(good), ALPHA / METRICS, DELTA / METRICS)
    return float(np.sort(good)[rank - 1]) if rank else -math.inf


def bonferroni_on_average(good: Scores, _bad: Scores) -> float:
    """Return each metric's conformal cut at a fifth of alpha."""
    rank = average_rank(len(good), ALPHA / METRICS)
    return float(np.sort(good)[rank - 1]) if rank else -math.inf


def naive(name: str) -> Method:
    """Return one of the methods in common use."""
    return per_metric(lambda good, bad: NAIVE[name](good, bad, ALPHA))


METHODS: Mapping[str, Method] = {
    "joint auto (ours)": joint("auto", 1 / 3),
    "joint scaled-min": joint("scaled_min", 1 / 3),
    "joint by ranks": joint("by_ranks", 0.0),
    "Bonferroni": per_metric(bonferroni),
    "Bonferroni on average": per_metric(bonferroni_on_average),
    "10 % percentile": naive("percentile"),
    "Youden": naive("youden"),
    "max F1": naive("max_f1"),
}
PROMISING = ("joint auto (ours)", "joint scaled-min", "joint by ranks", "Bonferroni")
"""Methods that promise the bound with confidence 1 - DELTA."""


@dataclass(frozen=True)
class Row:
    """One method over many labellings.

    Attributes:
        broken: Labellings after which more than alpha of fresh good answers were flagged.
        runs: Labellings that gave a rule at all.
    """

    method: str
    n_good: int
    n_bad: int
    false_flags: float
    recall: float
    broken: int
    runs: int

    @property
    def interval(self) -> tuple[float, float]:
        """Return the exact 99 % interval of the chance that the promise is broken."""
        return exact_interval(self.broken, self.runs, 0.99)

    def as_json(self) -> dict[str, Any]:
        """Return the row for the results."""
        return {
            "method": self.method,
            "n_good": self.n_good,
            "n_bad": self.n_bad,
            "mean_false_flags": round(self.false_flags, 4),
            "mean_recall": round(self.recall, 4),
            "broken": self.broken,
            "runs": self.runs,
            "p_broken_ci99": [round(end, 4) for end in self.interval],
        }


def measured(name: str, sizes: tuple[int, int], results: Sequence[tuple[float, float]]) -> Row:
    """Return a row from false-flag rate and recall per labelling."""
    flags, recalls = (np.array(column) for column in zip(*results, strict=True))
    return Row(
        name,
        *sizes,
        float(flags.mean()),
        float(recalls.mean()),
        int((flags > ALPHA + 1e-9).sum()),
        len(results),
    )


def simulate(
    world: World,
    sizes: tuple[int, int],
    runs: int,
    seed: int,
    methods: Sequence[str],
    fresh: int = FRESH,
) -> list[Row]:
    """Return every method's row: label, fit, then judge fresh answers of the same world."""
    fresh_generator = np.random.default_rng([seed, 1])
    good_fresh = world.draw(fresh_generator, fresh, False)
    bad_fresh = world.draw(fresh_generator, fresh // 2, True)
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    for run in range(runs):
        generator = np.random.default_rng([seed, 2, run])
        good, bad = world.draw(generator, sizes[0], False), world.draw(generator, sizes[1], True)
        for name in methods:
            cut = METHODS[name](world.axes, good, bad, np.random.default_rng([seed, 3, run]))
            results[name].append(_outcome(cut, good_fresh, bad_fresh))
    return [measured(name, sizes, found) for name, found in results.items()]


def _outcome(cut: JointCut | None, good: Scores, bad: Scores) -> tuple[float, float]:
    """Return both rates; a refusal flags nothing and catches nothing."""
    if cut is None:
        return 0.0, 0.0
    return float(cut.flags(good).mean()), float(cut.flags(bad).mean())


def real(axes: Sequence[Axis], good: Scores, bad: Scores, runs: int, seed: int) -> Iterator[Row]:
    """Yield every method's row on real scores, which are drawn from with replacement.

    The labelled answers are taken as the whole population, so the true rates are known exactly.
    """
    sizes = (120, 40)
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in METHODS}
    for run in range(runs):
        generator = np.random.default_rng([seed, run])
        some_good = good[generator.integers(0, len(good), sizes[0])]
        some_bad = bad[generator.integers(0, len(bad), sizes[1])]
        for name, method in METHODS.items():
            cut = method(axes, some_good, some_bad, np.random.default_rng([seed, run, 1]))
            results[name].append(_outcome(cut, good, bad))
    for name, found in results.items():
        yield measured(name, sizes, found)


def real_scores(lab: Path) -> tuple[list[Axis], Scores, Scores, list[str]]:
    """Return the example policy's metrics and the good and bad answers' scores of a scored lab.

    Yes/no checks are left out: they have no threshold to fit. The fourth value names the metrics.
    """
    from guardrail_offline.calibration.deciding_metrics import deciding_metrics, matrix
    from guardrail_offline.calibration.fit import base_policy
    from guardrail_offline.calibration.scored_lab import read_lab
    from guardrail_service.inference.pack import load_pack, resolve
    from guardrail_service.resources import packs_dir
    from guardrail_service.server.runtime import serving_for

    root = OUT.parents[2]
    serving = serving_for(load_pack(resolve("embedded", packs_dir())))
    policy = base_policy(root / "examples" / "calibration" / "base.json", serving)
    scored = read_lab(lab)
    gates = [gate for gate in deciding_metrics(policy, scored) if not gate.metric.boolean]
    answers = (root / "models" / "thresholds" / "answers.jsonl").read_text("utf-8").splitlines()
    passes = {a["id"]: a["label"] == "pass" for a in map(json.loads, answers)}
    values = matrix(gates, scored.cases)
    is_good = np.array([passes[case.key] for case in scored.cases])
    axes = [gate.axis for gate in gates]
    return axes, values[is_good], values[~is_good], [gate.name for gate in gates]


def plot(results: Mapping[str, Sequence[Row]], path: Path) -> None:
    """Draw how often each method broke the bound, per world, at every size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * len(results), 4.2), layout="constrained")
    for index, (name, rows) in enumerate(results.items()):
        cell = figure.add_subplot(1, len(results), index + 1)
        labels = [f"{row.method}, n={row.n_good}" for row in rows]
        where = np.arange(len(rows))[::-1]
        shares = np.array([row.broken / row.runs for row in rows])
        colours = ["#0072b2" if row.method in PROMISING else "#d55e00" for row in rows]
        cell.barh(where, shares, color=colours)
        cell.axvline(DELTA, color="#333333", linestyle="--", linewidth=0.8)
        cell.set_yticks(where, labels if index == 0 else [""] * len(rows), fontsize=6)
        cell.set_title(name.replace("_", " "), fontsize=9)
        cell.set_xlim(0, 1)
        cell.set_xlabel("P(false-flag rate > 10 %)", fontsize=8)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def plot_recall(results: Mapping[str, Sequence[Row]], path: Path) -> None:
    """Draw mean false flags against mean recall, per world, at the middle size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(results), 3.4), layout="constrained")
    for index, (name, rows) in enumerate(results.items()):
        cell = figure.add_subplot(1, len(results), index + 1)
        for row in (r for r in rows if r.n_good == SIZES[1][0]):
            colour = "#0072b2" if row.method in PROMISING else "#d55e00"
            cell.plot(row.false_flags, row.recall, "o", color=colour)
            cell.annotate(row.method, (row.false_flags, row.recall), fontsize=6)
        cell.axvline(ALPHA, color="#333333", linestyle="--", linewidth=0.8)
        cell.set_title(f"{name.replace('_', ' ')}, n=120", fontsize=9)
        cell.set_xlabel("good answers flagged", fontsize=8)
        cell.set_ylabel("bad answers caught", fontsize=8)
        cell.set_xlim(0, 1)
        cell.set_ylim(0, 1.05)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    sys.stdout.write(f"wrote {path}\n")


def _simulations(runs: int, fresh: int) -> None:
    results: dict[str, list[Row]] = {}
    jobs = [(name, sizes) for name in WORLDS for sizes in SIZES]
    for name, sizes in track(jobs, "simulating", console=Console(stderr=True)):
        methods = tuple(METHODS)
        found = simulate(WORLDS[name], sizes, runs, 20261122, methods, fresh)
        results.setdefault(name, []).extend(found)
        rows = {world: [row.as_json() for row in kept] for world, kept in results.items()}
        # After every step: a run that is stopped keeps what it has.
        _write(
            OUT / "simulations.json",
            {"alpha": ALPHA, "delta": DELTA, "runs": runs, "fresh": fresh, "worlds": rows},
        )
    plot(results, OUT / "simulations.png")
    plot_recall(results, OUT / "simulations-recall.png")


def _real(lab: Path, runs: int) -> None:
    axes, good, bad, names = real_scores(lab)
    rows = list(real(axes, good, bad, runs, 20261122))
    _write(
        OUT / "real.json",
        {
            "alpha": ALPHA,
            "delta": DELTA,
            "metrics": names,
            "population": {"good": len(good), "bad": len(bad)},
            "rows": [row.as_json() for row in rows],
        },
    )
    plot({"real scores": rows}, OUT / "real.png")


def main() -> int:
    """Run the studies and write their results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="labellings per row")
    parser.add_argument("--fresh", type=int, default=FRESH, help="new good answers")
    parser.add_argument("--real", type=Path, help="scored lab of the example; only this study")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if arguments.real:
        _real(arguments.real, arguments.runs)
    else:
        _simulations(arguments.runs, arguments.fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
