"""Shows the progress of a training run: its learning rate by step, and its curves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any


def rate_at(step: int, config: dict[str, Any], spent: float = 0.0) -> float:
    """Return the share of the top learning rate: linear warm-up, then half a cosine to a hundredth.

    `spent` is the share of the minutes used up, where the clock may end a run: the rate falls in
    time for the last step, so such a run depends on the machine.
    """
    warm = min(1.0, (step + 1) / config["warmup"])
    done = min(1.0, max(step / config["steps"], spent))
    return float(warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done))))


def kept_share(step: int, most: float, after: int = 50) -> float:
    """Return how much of the averaged weights a step keeps, at most `most`.

    The average reaches back about `step / after` steps. A run of a few hundred steps needs a small
    `after`; with 50 its average is hardly more than its last weights.
    """
    return min(most, step / (step + after))


def draw_curves(history: list[dict[str, Any]], path: Path) -> None:
    """Write loss and development areas over steps."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 5))
    steps = [entry["step"] for entry in history]
    left.plot(steps, [entry["loss"] for entry in history])
    left.set(title="training loss", xlabel="step")
    names = list(history[-1]["dev"])
    for name in names:
        values = [entry["dev"].get(name) for entry in history]
        right.plot(steps, values, label=name, linewidth=3 if name == "macro" else 1)
    right.set(title="development ROC area", xlabel="step")
    right.legend(fontsize=6 if len(names) > 8 else 9, ncol=2 if len(names) > 8 else 1)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
