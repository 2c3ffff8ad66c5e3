"""Leaves each source of toxicity and bias out in turn: how much of its area needs its own texts?

A folder holds `*_train.jsonl` and `*_dev.jsonl` (gzip or not) with text, label, task and source.
Linear heads are fitted on frozen token states of the training texts, on those of all sources and on
those of all but one, and rank the development texts of the one. Two kinds of states are read: those
of the branch that ships, which has seen every source when it was trained, so that only its head
has not; and those of the encoder below it, which nobody trained on any of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime as ort
from rich.table import Table

from guardrail_bench.components import Planner
from guardrail_bench.output import markdown_table
from guardrail_bench.quality import Array, Bools, auroc, lines
from guardrail_bench.safety_quality import GATING, TASKS
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.errors import InputError, MissingExtra
from guardrail_service.inference.models.encoder import MIDDLE
from guardrail_service.types import Row

PART = "bench quality safety-sources"
STATES = ("branch", "encoder")
PENALTY = 0.01
"""Of the squared weights beside the mean loss; features have mean 0 and deviation 1."""
LEAST = 20
"""A source is left out if it has so many development texts of either label."""


class SourceText(NamedTuple):
    """A text, whether it is bad, and the source it comes from."""

    text: str
    is_bad: bool
    source: str


@dataclass(frozen=True, slots=True)
class SourceAreas:
    """ROC areas on the development texts of one source.

    Attributes:
        task: The detector whose gating metric the labels are about.
        source: The source.
        texts: Development texts.
        bad: Those of them that are labelled bad.
        ships: Area of the score that ships.
        known: By kind of states, the area of a head that was fitted on this source, too.
        left_out: By kind of states, the area of a head that was not.
    """

    task: str
    source: str
    texts: int
    bad: int
    ships: float
    known: Mapping[str, float]
    left_out: Mapping[str, float]


class StateReader:
    """Reads texts as the detectors do: the score that ships, and features of the token states.

    Raises:
        InputError: If the pack's models of toxicity and bias are not one branch of its encoder.
    """

    def __init__(self, pack: str | None) -> None:
        self._planner = Planner((), pack)
        used = self._planner.pack.manifest
        names = {used.roles.get(task) for task in TASKS}
        files = [file for name, file in used.models.items() if name in names]
        if len(names) > 1 or not files or MIDDLE not in files[0].inputs:
            raise InputError("expected a pack whose toxicity and bias are one branch of an encoder")
        self._below = self._planner.sessions["embedding"]
        self._branch = with_states(self._planner.pack.path(files[0]))

    def read(self, task: str, text: str) -> tuple[float, dict[str, Array]]:
        """Return the score that ships (without wordings), and the features by kind of states."""
        body: dict[str, object] = {"answer": text, "question": None, "contexts": []}
        detector = REGISTRY[task]
        rows = detector.encode(self._planner.segmented(body), detector.parameters())
        states: dict[str, list[Array]] = {kind: [] for kind in STATES}
        score = 0.0
        for row in rows:
            found = self._planner.sessions[task].run(row).outputs
            score = max(score, float(found[GATING[task]]))
            middle = self._below.run(Row("embedding", row.text, outputs=(MIDDLE,))).outputs[MIDDLE]
            states["encoder"].append(middle)
            top = self._branch.run(None, {MIDDLE: middle[None]})[-1]
            states["branch"].append(top.reshape(-1, top.shape[-1]))  # tokens lie below each other
        return score, {kind: _features(found) for kind, found in states.items() if found}


def with_states(path: Path) -> ort.InferenceSession:
    """Return a branch whose last output is the states that its tail reads."""
    try:
        import onnx
    except ImportError as error:
        raise MissingExtra("rag-guardrail-models[export]") from error
    model = onnx.load(str(path))
    last = [node.output[0] for node in model.graph.node if "LayerNorm" in node.op_type]
    if not last:
        raise InputError(f"{path.name}: found no layer; expected a branch with layers")
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(last[-1]))
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options)


def _features(states: Sequence[Array]) -> Array:
    """Return mean and maximum over all tokens of a text, shape (2 dim,)."""
    tokens = np.concatenate(states)
    return np.concatenate([tokens.mean(0), tokens.max(0)]).astype(np.float32)


def read_folder(folder: Path, part: str) -> dict[str, dict[str, list[SourceText]]]:
    """Return the texts of a part (`train`, `dev`) by task and source.

    Raises:
        InputError: If a task has no file, or a line is no record.
    """
    found: dict[str, dict[str, list[SourceText]]] = {}
    for task in TASKS:
        names = (f"{task}_{part}.jsonl", f"{task}_{part}.jsonl.gz")
        path = next((folder / name for name in names if (folder / name).is_file()), None)
        if path is None:
            raise InputError(f"{folder.name}: found no {names[0]}[.gz]; expected one")
        for number, line in lines(path):
            try:
                row = json.loads(line)
                one = SourceText(str(row["text"]), bool(row["label"]), str(row["source"]))
            except (ValueError, KeyError, TypeError) as error:
                where = f"{path.name}:{number}"
                raise InputError("expected text, label and source", where) from error
            found.setdefault(task, {}).setdefault(one.source, []).append(one)
    return found


def sampled(texts: Sequence[SourceText], limit: int) -> list[SourceText]:
    """Return at most `limit` texts, at most half of either label, evenly spaced in the file."""
    found: list[SourceText] = []
    for is_bad in (True, False):
        own = [one for one in texts if one.is_bad is is_bad]
        step = max(1.0, len(own) / (limit // 2))
        found += [own[int(i * step)] for i in range(min(len(own), limit // 2))]
    return found


def run(folder: Path, pack: str | None, limit: int) -> list[SourceAreas]:
    """Fit and measure.

    Args:
        folder: With the training and development texts of both detectors.
        pack: The pack to measure; None: the one that ships.
        limit: Texts of each source and part at most, half of either label.

    Raises:
        InputError: If a file is missing or malformed, or the pack has no such branch.
        MissingExtra: If the package that opens a model's graph is not installed.
    """
    reader = StateReader(pack)
    train, dev = read_folder(folder, "train"), read_folder(folder, "dev")
    found = []
    for task in TASKS:
        fitted = {name: _Read(reader, task, sampled(t, limit)) for name, t in train[task].items()}
        for source, texts in dev[task].items():
            own = _Read(reader, task, sampled(texts, limit))
            if source in fitted and LEAST <= own.bad.sum() <= len(own.bad) - LEAST:
                found.append(areas(task, source, own, fitted))
    return found


class _Read:
    """Texts that were read: score, label and features of each."""

    def __init__(self, reader: StateReader, task: str, texts: Sequence[SourceText]) -> None:
        read = [(reader.read(task, one.text), one.is_bad) for one in texts]
        kept = [(score, states, is_bad) for (score, states), is_bad in read if states]
        self.scores = np.array([score for score, _, _ in kept])
        self.bad: Bools = np.array([is_bad for _, _, is_bad in kept], dtype=bool)
        self.features = {kind: np.stack([states[kind] for _, states, _ in kept]) for kind in STATES}


def areas(task: str, source: str, own: _Read, fitted: Mapping[str, _Read]) -> SourceAreas:
    """Return what the score that ships and heads with and without a source make of its texts."""
    known: dict[str, float] = {}
    left_out: dict[str, float] = {}
    for kind in STATES:
        for found, names in (
            (known, list(fitted)),
            (left_out, [name for name in fitted if name != source]),
        ):
            sets = [(fitted[name].features[kind], fitted[name].bad) for name in names]
            found[kind] = auroc(head(sets, own.features[kind]), own.bad)
    bad = int(own.bad.sum())
    return SourceAreas(task, source, len(own.bad), bad, auroc(own.scores, own.bad), known, left_out)


def head(sets: Sequence[tuple[Array, Bools]], features: Array) -> Array:
    """Return log-odds of a logistic regression; the labels of each set weigh alike.

    Args:
        sets: Features (texts, dim) and labels (texts,) of each source to fit on.
        features: Of the texts to judge, (texts, dim).
    """
    from scipy.optimize import minimize

    rows = np.concatenate([values for values, _ in sets]).astype(np.float64)
    labels = np.concatenate([bad for _, bad in sets])
    weights = np.concatenate([_alike(bad) for _, bad in sets])
    weights /= weights.sum()
    mean, spread = rows.mean(0), rows.std(0) + 1e-6
    rows = (rows - mean) / spread
    signs = np.where(labels, 1.0, -1.0)

    def loss(values: Array) -> tuple[float, Array]:
        margins = signs * (rows @ values[:-1] + values[-1])
        slopes = -weights * signs / (1 + np.exp(np.clip(margins, -50, 50)))
        total = weights @ np.logaddexp(0, -margins) + PENALTY / 2 * values[:-1] @ values[:-1]
        return float(total), np.append(rows.T @ slopes + PENALTY * values[:-1], slopes.sum())

    found = minimize(loss, np.zeros(rows.shape[1] + 1), jac=True, method="L-BFGS-B").x
    return np.asarray((features - mean) / spread @ found[:-1] + found[-1])


def _alike(bad: Bools) -> Array:
    """Return weights by which both labels of a source count the same, and a source as another."""
    share = np.where(bad, 1 / max(1, bad.sum()), 1 / max(1, (~bad).sum()))
    return np.asarray(share / share.sum())


def markdown(found: Sequence[SourceAreas]) -> str:
    """Return the table of a page."""
    rows = [
        [one.task, one.source, str(one.texts), str(one.bad), f"{one.ships:.3f}", *_cells(one)]
        for one in found
    ]
    means = np.mean(
        [[one.ships, *(v for kind in STATES for v in _both(one, kind))] for one in found], axis=0
    )
    rows.append(["both", "mean", "", "", *(f"{value:.3f}" for value in means)])
    return markdown_table(_HEADS, rows)


def render(found: Sequence[SourceAreas]) -> Table:
    """Return the same for a terminal."""
    table = Table(*_HEADS)
    for one in found:
        cells = [str(one.texts), str(one.bad), f"{one.ships:.3f}", *_cells(one)]
        table.add_row(one.task, one.source, *cells)
    return table


_HEADS = (
    "detector", "source left out", "texts", "bad", "ships",
    *(f"{kind}: head {way}" for kind in STATES for way in ("with it", "without it")),
)  # fmt: skip


def _cells(one: SourceAreas) -> list[str]:
    return [f"{value:.3f}" for kind in STATES for value in _both(one, kind)]


def _both(one: SourceAreas, kind: str) -> tuple[float, float]:
    return one.known[kind], one.left_out[kind]
