"""Chooses the cases that a report shows, within a bound of bytes, and writes them for its script.

Texts stand once: passages and questions are shared by the models that were asked them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardrail_offline.report.figures import RunFigures
from guardrail_offline.report.run_data import EvaluatorData, RunData, beyond, short

MOST_BYTES = 4_000_000
"""Of a page that is to stay below 6 MB."""
OTHERS = 500
"""Cases that neither fail nor flip."""
LONGEST_TEXT = 20_000
"""Characters of one text in the page; the page says how many more there are."""
_MOST_SPANS = 200
"""Scored parts of one answer by one evaluator."""
_KINDS = {"supported": "good", "not_mentioned": "weak", "contradicted": "bad"}
"""How a part is coloured, by label; any other finding of a rule is bad."""


@dataclass(frozen=True)
class ShownCases:
    """The cases of a page and how many were left out.

    Attributes:
        content: What the script reads.
        failing: How many failing cases the run has, and how many are shown.
        others: The same of the other cases.
    """

    content: Mapping[str, Any]
    failing: tuple[int, int]
    others: tuple[int, int]


class _Texts:
    """Texts by their place in a list, each once."""

    def __init__(self) -> None:
        self.places: dict[tuple[str, int], int] = {}
        self.bytes = 0

    def place(self, text: str) -> int:
        kept = text[:LONGEST_TEXT], len(text) - len(text[:LONGEST_TEXT])
        if kept not in self.places:
            self.places[kept] = len(self.places)
            self.bytes += size(kept[0])
        return self.places[kept]

    def as_json(self) -> list[str | list[Any]]:
        return [text if not more else [text, more] for text, more in self.places]


def shown_cases(
    figures: RunFigures, most_bytes: int = MOST_BYTES, others: int = OTHERS
) -> ShownCases:
    """Return failing and flipped cases, the worst first, and some others, within a bound."""
    run = figures.run
    failing = {name: figures.failing(data) for name, data in run.evaluators.items()}
    counts = np.zeros(len(run.cases), dtype=int)
    for mask in failing.values():
        counts += mask
    flipped = {str(flip["variant"]) for flip in run.flips["flips"] if _decides(run, flip)}
    is_flipped = np.array([case["key"] in flipped for case in run.cases], dtype=bool)
    notable = (counts > 0) | is_flipped
    order = np.lexsort((np.arange(len(counts)), -(counts + 1000 * is_flipped)))
    texts = _Texts()
    kept: list[tuple[int, dict[str, Any]]] = []
    used = shown = rest = 0
    evaluators = [name for name, data in run.evaluators.items() if data.has_values]
    for place in order:
        if not notable[place] and rest >= others:
            break
        record = _record(run, int(place), evaluators, failing, texts)
        used += size(record)
        if used + texts.bytes > most_bytes and kept:
            break
        kept.append((int(place), record | ({"flip": 1} if is_flipped[place] else {})))
        shown += bool(notable[place])
        rest += not notable[place]
    total = int(notable.sum())
    content = {
        "evaluators": [_described(run, name) for name in evaluators],
        "models": [{"key": short(model.key), "title": short(model.title)} for model in run.models],
        "texts": texts.as_json(),
        "cases": [record for _, record in sorted(kept, key=lambda one: one[0])],
    }
    return ShownCases(content, (total, shown), (len(run.cases) - total, rest))


def _decides(run: RunData, flip: Mapping[str, Any]) -> bool:
    data = run.evaluators.get(str(flip["evaluator"]))
    return data is not None and flip["metric"] in data.cuts


def _described(run: RunData, name: str) -> dict[str, Any]:
    data = run.evaluators[name]
    return {
        "id": name,
        "name": data.name,
        "domain": data.domain,
        "metrics": [
            {
                "key": metric.key,
                "up": metric.direction.value == "higher_is_better",
                "cut": data.cuts[metric.key].value if metric.key in data.cuts else None,
                "bool": metric.boolean,
            }
            for metric in data.metrics
        ],
    }


def _record(
    run: RunData,
    place: int,
    evaluators: Iterable[str],
    failing: Mapping[str, Any],
    texts: _Texts,
) -> dict[str, Any]:
    case = run.cases[place]
    record: dict[str, Any] = {"k": short(case["key"]), "m": short(case["model_key"])}
    if case.get("categories"):
        record["c"] = [short(str(name)) for name in case["categories"]]
    for letter, name in (("q", "input"), ("e", "expected_output"), ("a", "actual_output")):
        if isinstance(case.get(name), str):
            record[letter] = texts.place(case[name])
    if case.get("context"):
        record["p"] = [texts.place(_passage(one)) for one in case["context"]]
    scores, bad, spans = {}, [], {}
    why: dict[str, list[int]] = {}
    for index, name in enumerate(evaluators):
        data = run.evaluators[name]
        values = [_number(data.values[metric.key][place]) for metric in data.metrics]
        if any(value is not None for value in values):
            scores[index] = values
        elif reason := data.reasons[data.primary.key][place]:
            why.setdefault(reason, []).append(index)
        if failing[name][place]:
            bad.append(index)
        length = len(str(case.get("actual_output") or ""))
        if place in data.spans and (parts := _spans(data, place, length)):
            spans[index] = parts
    record["s"] = scores
    record |= {"f": bad} if bad else {}
    record |= {"w": why} if why else {}
    return record | ({"sp": spans} if spans else {})


def _passage(passage: Any) -> str:
    if isinstance(passage, Mapping):
        name, text = passage.get("id"), str(passage.get("text") or "")
        return f"[{name}] {text}" if name else text
    return str(passage)


def _spans(data: EvaluatorData, place: int, length: int) -> list[list[Any]]:
    """Return the parts of an answer that a reader should see, few enough to be read.

    A rule that speaks of the whole answer colours nothing; the page names the evaluator anyway.
    """
    found = (_span(data, span) for span in data.spans[place])
    whole = [0, length]
    seen = [span for span in found if span and (span[:2] != whole or span[3] in _KINDS)]
    return seen[:_MOST_SPANS]


def _span(data: EvaluatorData, span: Mapping[str, Any]) -> list[Any] | None:
    """Return start, end, kind, label, score, place of the passage, and what else is known.

    A classifier scores every sentence: of those only what is beyond a threshold that decides.
    """
    score, metric, label = span.get("score"), span.get("metric"), str(span.get("label") or "")
    kind = _KINDS.get(label)
    if kind is None and metric is not None:
        spec = next((one for one in data.metrics if one.key == metric), None)
        cut = data.cuts.get(str(metric))
        if spec is None or cut is None or not isinstance(score, int | float):
            return None
        if not beyond(np.array([float(score)]), cut.value, spec.direction)[0]:
            return None
    known = {
        str(key): value
        for key, value in (span.get("attributes") or {}).items()
        if isinstance(value, str | int | float | bool) and len(str(value)) <= 200
    }
    return [
        int(span.get("start") or 0),
        int(span.get("end") or 0),
        kind or "bad",
        label,
        _number(score) if isinstance(score, int | float) else None,
        span.get("context"),
        known or 0,
    ]


def _number(value: float) -> float | str | None:
    if np.isnan(value):
        return None
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    return float(f"{float(value):.4g}")


def embedded(content: Any) -> str:
    """Return JSON that may stand within a script element, whatever its texts say."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def size(content: Any) -> int:
    """Return how many bytes a part of the page takes."""
    return len(embedded(content).encode("utf-8", "backslashreplace")) + 1


def histogram(run: RunData, evaluator: str, metric: str, model: str, bins: int = 20) -> list[int]:
    """Return how many values of a model lie in each part of a metric's range."""
    data = run.evaluators[evaluator]
    of_model = np.array([case["model_key"] == model for case in run.cases], dtype=bool)
    values = data.values[metric][of_model]
    values = values[np.isfinite(values)]
    if not len(values):
        return []
    low, high = axis(run, evaluator, metric)
    found: list[int] = np.histogram(values, bins=bins, range=(low, high))[0].tolist()
    return found


def axis(run: RunData, evaluator: str, metric: str) -> tuple[float, float]:
    """Return the ends of a metric's axis: its range, or what occurs where that has no end."""
    data = run.evaluators[evaluator]
    spec = next(one for one in data.metrics if one.key == metric)
    values = data.values[metric][np.isfinite(data.values[metric])]
    low = spec.low if np.isfinite(spec.low) else float(values.min(initial=0.0))
    high = spec.high if np.isfinite(spec.high) else float(values.max(initial=1.0))
    if spec.low < 0 <= values.min(initial=0.0):
        low = 0.0  # cosines that are never negative
    return (low, high) if high > low else (low, low + 1.0)
