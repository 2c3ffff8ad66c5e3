"""Measures how well toxicity and bias rank and decide labelled texts, through the guard.

Records are JSON lines (gzip or not): `{"text", "labels": {...}}` or `{"text", "label"}`. `label` is
about the metric that gates. `source`, `class` and `group` of a record, where given, make slices.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table

from guardrail_bench.quality import (
    Array,
    Bools,
    auprc,
    auroc,
    interval,
    lines,
    wilson,
)
from guardrail_bench.server import serving_only
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.errors import InputError
from guardrail_service.server.runtime import Runtime
from guardrail_service.text.patterns.search import Prepared, compile_regex
from guardrail_service.types import DetectorResult, Sample, State

TASKS = ("toxicity", "bias")
GATING = {"toxicity": "toxicity", "bias": "fairness_bias"}
ALIASES = {
    "toxic": "toxicity",
    "severe_toxic": "severe_toxicity",
    "identity_hate": "identity_attack",
    "bias": "fairness_bias",
}
"""Names that data sets give to our metrics."""
PARTS = {"bias_gender": "gender", "bias_group": "group", "bias_framing": "framing"}
"""A record's `task` says which part of bias its label is about, too."""
SLICES = ("source", "class", "group")
OURS = "ours"
Ways = dict[str, dict[str, list[float]]]
POSITIVE = 0.5
"""Share of raters from which a soft label counts as positive."""


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One record: text, label per metric (only the known ones), and what it is sliced by."""

    text: str
    labels: Mapping[str, bool]
    slices: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ScoredText:
    """One record with every metric's score and whether the detector flagged it."""

    record: LabelledText
    scores: Mapping[str, float]
    flagged: bool
    state: State


def run(
    task: str, data: Path, pack: str | None = None, baseline_data: Sequence[Path] = ()
) -> dict[str, Any]:
    """Score every record and return the report as JSON-ready values.

    A record that the detector says nothing about counts as what the service does with it: not
    applicable passes (score 0), unverified flags (score 1). `states` counts both.

    Args:
        task: `toxicity` or `bias`.
        data: Labelled records.
        pack: Model pack.
        baseline_data: Records that the TF-IDF baseline is trained on.

    Raises:
        InputError: If the task is unknown or a record malformed; the message names its line.
    """
    if task not in TASKS:
        raise InputError(f"found task {task!r}; expected one of {', '.join(TASKS)}")
    records, ignored = read(task, data)
    with serving_only((task,), pack) as runtime:
        scored = score(runtime, task, records)
        rule = next(iter(runtime.guard.policies.values())).rules[task]
        threshold = rule.cuts[GATING[task]].threshold if GATING[task] in rule.cuts else None
    train = [record for path in baseline_data for record in read(task, path)[0]]
    texts, wanted = [r.text for r in records], [m for m in metrics(task) if _known(records, m)]
    beside, notes = baselines([(r.text, r.labels) for r in train], wanted)
    gating = GATING[task]
    ways: Ways = {OURS: {m: [s.scores[m] for s in scored] for m in wanted}}
    ways |= {b.name: _scored_by(b, texts, wanted) for b in beside}
    return {
        "task": task,
        "data": data.name,
        "records": len(records),
        "states": dict(Counter(one.state.value for one in scored)),
        "ignored_labels": ignored,
        "metrics": {m: ranking(ways[OURS][m], records, m) for m in wanted},
        "threshold": threshold,
        "decision": decision(scored, gating) if _known(records, gating) else None,
        "slices": slices(scored, gating, ways),
        "baselines": {name: _beside(ways[name], records) for name in ways if name != OURS},
        "baseline_notes": notes,
    }


def metrics(task: str) -> list[str]:
    """Return the keys of a task's metrics, the gating one first."""
    return [metric.key for metric in REGISTRY[task].spec.metrics]


def read(task: str, path: Path) -> tuple[list[LabelledText], dict[str, int]]:
    """Return records, and how often labels occur that are none of the task's metrics.

    Raises:
        InputError: If a line is no record.
    """
    known, ignored = set(metrics(task)), Counter[str]()
    records = []
    for number, line in lines(path):
        text, labels, kept = _fields(line, f"{path.name}:{number}", GATING[task])
        ignored.update(name for name in labels if name not in known)
        own = {name: value for name, value in labels.items() if name in known}
        records.append(LabelledText(text, own, kept))
    if not records:
        raise InputError(f"{path.name}: found no record; expected JSON lines with text and labels")
    return records, dict(ignored)


def _fields(line: bytes, where: str, gating: str) -> tuple[str, dict[str, bool], dict[str, str]]:
    try:
        row = json.loads(line)
        text = row["text"]
        labels = {
            ALIASES.get(name, name): float(value) >= POSITIVE
            for name, value in (row.get("labels") or {}).items()
        }
        if "label" in row:
            labels.setdefault(gating, float(row["label"]) >= POSITIVE)
            if (part := PARTS.get(row.get("task", ""))) is not None:
                labels.setdefault(part, float(row["label"]) >= POSITIVE)
        if not isinstance(text, str) or not text or not ("labels" in row or "label" in row):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError("expected an object with text and labels or label", where) from error
    return text, labels, {name: str(row[name]) for name in SLICES if row.get(name)}


def score(runtime: Runtime, task: str, records: Sequence[LabelledText]) -> list[ScoredText]:
    """Return every record with its scores, in order."""

    def one(record: LabelledText) -> ScoredText:
        verdict = runtime.guard.check(Sample(record.text), deadline_ms=math.inf)
        result = verdict.detectors[task]
        return ScoredText(record, _scores(task, result), result.flagged, result.state)

    with ThreadPoolExecutor(max(1, runtime.settings.workers)) as pool:
        return list(pool.map(one, records))


def _scores(task: str, result: DetectorResult) -> dict[str, float]:
    if result.state is State.EVALUATED:
        return {key: metric.score for key, metric in result.metrics.items()}
    return dict.fromkeys(metrics(task), 0.0 if result.state is State.NOT_APPLICABLE else 1.0)


def _known(records: Sequence[LabelledText], metric: str) -> bool:
    return any(metric in record.labels for record in records)


def _arrays(
    values: Sequence[float], records: Sequence[LabelledText], metric: str
) -> tuple[Array, Bools]:
    """Return scores and labels of the records whose label is known."""
    pairs = [
        (v, r.labels[metric]) for v, r in zip(values, records, strict=True) if metric in r.labels
    ]
    return np.array([v for v, _ in pairs]), np.array([label for _, label in pairs], dtype=bool)


def ranking(
    values: Sequence[float], records: Sequence[LabelledText], metric: str
) -> dict[str, Any]:
    """Return how well scores rank one metric's labels; areas are null where a class is empty."""
    scores, labels = _arrays(values, records, metric)
    found: dict[str, Any] = {"records": len(labels), "positives": int(labels.sum())}
    if not 0 < labels.sum() < len(labels):
        return found | {"auroc": None, "auroc_interval95": None, "auprc": None}
    return found | {
        "auroc": auroc(scores, labels),
        "auroc_interval95": list(interval(auroc, scores, labels, draws=200)),
        "auprc": auprc(scores, labels),
    }


def decision(scored: Sequence[ScoredText], gating: str) -> dict[str, Any]:
    """Return what the default threshold decides: rates with Wilson intervals, F1 by bootstrap."""
    judged = [one for one in scored if gating in one.record.labels]
    flagged = np.array([one.flagged for one in judged], dtype=float)
    labels = np.array([one.record.labels[gating] for one in judged], dtype=bool)
    bad = int(labels.sum())
    caught = int(flagged[labels].sum())
    false = int(flagged[~labels].sum())
    both = 0 < bad < len(labels)
    return {
        "recall": _rate(caught, bad),
        "precision": _rate(caught, caught + false),
        "false_flags": _rate(false, len(labels) - bad),
        "f1": f1(flagged, labels) if bad else None,
        "f1_interval95": list(interval(f1, flagged, labels, draws=200)) if both else None,
    }


def f1(flagged: Array, labels: Bools) -> float:
    """Return the harmonic mean of precision and recall; 0 if nothing was caught."""
    caught = float(flagged[labels].sum())
    return 2 * caught / max(1.0, float(flagged.sum()) + float(labels.sum()))


def _rate(part: int, whole: int) -> dict[str, Any] | None:
    """Return a share with its interval, or None where nothing could be counted."""
    return {**asdict(wilson(part, whole)), "n": whole} if whole else None


def slices(scored: Sequence[ScoredText], gating: str, ways: Ways) -> dict[str, dict[str, Any]]:
    """Return accuracy, false flags and ROC areas of each source, class and group of the records.

    Args:
        scored: The records.
        gating: The metric whose threshold flags.
        ways: Every way's scores by metric, in the order of the records.
    """
    found: dict[str, dict[str, Any]] = {}
    for kind in SLICES:
        places: dict[str, list[int]] = {}
        for number, one in enumerate(scored):
            if kind in one.record.slices:
                places.setdefault(one.record.slices[kind], []).append(number)
        parts = {
            name: _decided([scored[i] for i in places[name]], gating)
            | {"auroc": _areas([one.record for one in scored], ways, places[name])}
            for name in sorted(places)
        }
        if kept := {name: part for name, part in parts.items() if part["records"]}:
            found[kind] = kept
    return found


def _decided(scored: Sequence[ScoredText], gating: str) -> dict[str, Any]:
    judged = [
        (one.flagged, one.record.labels[gating]) for one in scored if gating in one.record.labels
    ]
    good = [flagged for flagged, label in judged if not label]
    return {
        "records": len(judged),
        "accuracy": _rate(sum(flagged == label for flagged, label in judged), len(judged)),
        "false_flags": _rate(sum(good), len(good)),
    }


def _areas(
    records: Sequence[LabelledText], ways: Ways, places: Sequence[int]
) -> dict[str, dict[str, float]]:
    """Return each way's ROC area of each metric over some records, where both classes occur."""
    found: dict[str, dict[str, float]] = {}
    for name, by_metric in ways.items():
        for metric, values in by_metric.items():
            chosen = [values[i] for i in places]
            scores, labels = _arrays(chosen, [records[i] for i in places], metric)
            if 0 < labels.sum() < len(labels):
                found.setdefault(metric, {})[name] = auroc(scores, labels)
    return found


def _scored_by(
    baseline: Baseline, texts: Sequence[str], wanted: Sequence[str]
) -> dict[str, list[float]]:
    """Return a baseline's scores of the metrics that it can say something about."""
    found = {metric: baseline.score(texts, metric) for metric in wanted}
    return {metric: values for metric, values in found.items() if values is not None}


def _beside(
    by_metric: Mapping[str, list[float]], records: Sequence[LabelledText]
) -> dict[str, Any]:
    """Return a baseline's ranking of each metric, and its F1 at one half."""
    found: dict[str, Any] = {}
    for metric, values in by_metric.items():
        scores, labels = _arrays(values, records, metric)
        own = f1((scores >= POSITIVE).astype(float), labels)
        found[metric] = {**ranking(values, records, metric), "f1": own}
    return found


def render(report: Mapping[str, Any]) -> Group:
    """Return the report as tables."""
    title = f"{report['task']} on {report['data']}, {report['records']} texts"
    table = Table("metric", "positives", "AUROC", "AUPRC", *report["baselines"], title=title)
    for metric, row in report["metrics"].items():
        beside = [_shown(found.get(metric)) for found in report["baselines"].values()]
        area = "-" if row["auprc"] is None else f"{row['auprc']:.3f}"
        table.add_row(metric, str(row["positives"]), _shown(row), area, *beside)
    parts: list[Any] = [table]
    if report["decision"]:
        rates = report["decision"]
        table = Table("recall", "precision", "false flags", "F1", title=f"at {report['threshold']}")
        shares = [_share(rates[name]) for name in ("recall", "precision", "false_flags")]
        table.add_row(*shares, "-" if rates["f1"] is None else f"{rates['f1']:.3f}")
        parts.append(table)
    for kind, found in report["slices"].items():
        table = Table(kind, "texts", "right", "false flags", "AUROC")
        for name, row in found.items():
            areas = [f"{m} {ways[OURS]:.3f}" for m, ways in row["auroc"].items()]
            rates = [_share(row["accuracy"]), _share(row["false_flags"])]
            table.add_row(name, str(row["records"]), *rates, ", ".join(areas) or "-")
        parts.append(table)
    return Group(*parts, *report["baseline_notes"])


def _shown(row: Mapping[str, Any] | None) -> str:
    if row is None or row["auroc"] is None:
        return "-"
    low, high = row["auroc_interval95"]
    return f"{row['auroc']:.3f} [{low:.3f}, {high:.3f}]"


def _share(rate: Mapping[str, float] | None) -> str:
    if rate is None:
        return "-"
    return f"{rate['value']:.3f} [{rate['low']:.3f}, {rate['high']:.3f}]"


ABUSIVE_WORDS = tuple(
    "idiot moron imbecile stupid dumb dumbass retard retarded loser pathetic scum vermin filth "  # noqa: SIM905
    "trash garbage worthless ugly disgusting bastard bitch whore slut cunt dick dickhead prick "
    "pussy cock asshole arsehole jackass ass arse fuck fucking fucker fucked motherfucker shit "
    "shitty bullshit crap damn piss wanker twat nigger nigga faggot fag dyke tranny kike spic "
    "chink gook paki raghead towelhead wetback gypsy cracker redneck kill murder die hang shoot "
    "stab rape strangle slaughter exterminate hate despise subhuman parasite pervert freak creep "
    "clown psycho bigot nazi terrorist savage animal pig rat monkey ape whale cow hag bimbo".split()
)
"""Words of insult, obscenity, threat and slur, written for this comparison."""
NO_PROFANITY = (
    "alt-profanity-check not installed: pip install alt-profanity-check (it needs scikit-learn)"
)
NO_TRAINING = "no TF-IDF baseline: name the texts to train it on with --baseline-data"
NO_SKLEARN = "no TF-IDF baseline: pip install scikit-learn"
TrainingText = tuple[str, Mapping[str, bool]]
MIN_POSITIVES = 5
"""Fewer examples of a class make no model."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A way of scoring texts for a metric; None where it cannot say anything about it."""

    name: str
    score: Callable[[Sequence[str], str], list[float] | None]


def baselines(
    train: Sequence[TrainingText], metrics: Sequence[str]
) -> tuple[list[Baseline], list[str]]:
    """Return what can be run here, and notes on what cannot.

    Args:
        train: Texts with known labels for the linear model; none leaves it out.
        metrics: What the linear model is trained for.
    """
    found, notes = [Baseline("word_list", word_list)], []
    if find_spec("profanity_check"):
        found.append(Baseline("alt_profanity_check", profanity_check))
    else:
        notes.append(NO_PROFANITY)
    if not train:
        notes.append(NO_TRAINING)
    elif find_spec("sklearn") is None:
        notes.append(NO_SKLEARN)
    else:
        found.append(Baseline("tfidf_logistic", linear_model(train, metrics)))
    return found, notes


def word_list(texts: Sequence[str], metric: str) -> list[float]:
    """Return 1.0 for a text with a listed word, else 0.0, whatever the metric."""
    pattern = compile_regex(rf"\b(?:{'|'.join(ABUSIVE_WORDS)})s?\b", "abusive words", True)
    return [float(pattern.search(Prepared(text).data) is not None) for text in texts]


def profanity_check(texts: Sequence[str], metric: str) -> list[float] | None:
    """Return alt-profanity-check's probability that a text is offensive."""
    if metric not in ("toxicity", "obscene", "insult"):
        return None
    module = import_module("profanity_check")
    return [float(p) for p in module.predict_prob(list(texts))]


def linear_model(
    train: Sequence[TrainingText], metrics: Sequence[str]
) -> Callable[[Sequence[str], str], list[float] | None]:
    """Return TF-IDF (words and pairs) with logistic regression, trained for each metric apart."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    models = {}
    for metric in metrics:
        known = [(text, labels[metric]) for text, labels in train if metric in labels]
        positives = sum(label for _, label in known)
        if MIN_POSITIVES <= positives <= len(known) - MIN_POSITIVES:
            words = TfidfVectorizer(
                ngram_range=(1, 2), min_df=2, max_features=100_000, sublinear_tf=True
            )
            model = make_pipeline(words, LogisticRegression(C=4.0, max_iter=300))
            models[metric] = model.fit([t for t, _ in known], [label for _, label in known])

    def score(texts: Sequence[str], metric: str) -> list[float] | None:
        if metric not in models:
            return None
        return [float(p) for p in models[metric].predict_proba(list(texts))[:, 1]]

    return score
