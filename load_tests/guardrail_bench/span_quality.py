"""Measure precision and recall of the pattern detectors on labelled texts."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import guardrail_service.detectors  # noqa: F401 - registers the built-in detectors
from guardrail_bench.quality import ShareInterval, lines, wilson
from guardrail_service.detectors.pii import data_types as pii_types
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.errors import InputError
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Sample

RULE = (
    "A finding is right if it has the label's type and the two overlap by at least half of their "
    "union; each label counts once. Findings of types the data never labels are not judged."
)
_OVERLAP = 0.5
_RESAMPLES = 1000


class LabelledSpan(NamedTuple):
    """A typed stretch of a text, by a human or by a detector; code points [start, end)."""

    type: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TypeQuality:
    """Counts and rates of one type, or of several summed."""

    type: str
    right: int
    wrong: int
    missed: int
    precision: ShareInterval
    recall: ShareInterval
    f1: ShareInterval


@dataclass(frozen=True, slots=True)
class QualityReport:
    """The measurements on one file.

    Attributes:
        task: Which detector.
        data: File name.
        texts: Number of records.
        types: By type, then sums: `structured` and `all`.
        unmapped: Labels of types outside the published list, by their name in the data.
        unlabelled: Findings of types the data never labels, not judged.
        baseline: The same numbers for the baseline; empty if it is not installed.
        baseline_note: What the baseline is, or how to get it.
        rule: When a finding is right.
    """

    task: str
    data: str
    texts: int
    types: tuple[TypeQuality, ...]
    unmapped: Mapping[str, int]
    unlabelled: Mapping[str, int]
    baseline: tuple[TypeQuality, ...]
    baseline_note: str
    rule: str = RULE

    def as_json(self) -> str:
        """Return the report as JSON; a rate that could not be counted is null."""
        return json.dumps(_finite(asdict(self)), ensure_ascii=False, indent=2)


def run(task: str, data: Path) -> QualityReport:
    """Return the quality of one pattern detector on labelled texts.

    Args:
        task: `pii` or `secrets`.
        data: JSON lines, plain or gzip: `{"text", "spans": [{"start", "end", "type"}]}`.

    Raises:
        InputError: If the task is unknown, the file no gzip, or a line not such a record.
    """
    if task not in TASKS:
        raise InputError(f"found task {task!r}; expected one of {', '.join(sorted(TASKS))}")
    chosen = TASKS[task]
    records = list(_read(data))
    gold, unmapped = _gold(records, chosen)
    labelled = {label.type for labels in gold for label in labels}
    texts = [record["text"] for record in records]
    found = [[LabelledSpan(*f) for f in chosen.find(text)] for text in texts]
    baseline, note = presidio(chosen)
    return QualityReport(
        task=task,
        data=data.name,
        texts=len(records),
        types=tuple(_measure(gold, found, chosen, labelled)),
        unmapped=unmapped,
        unlabelled=dict(
            Counter(f.type for fs in found for f in fs if f.type not in labelled).most_common()
        ),
        baseline=()
        if baseline is None
        else tuple(_measure(gold, [_labels(baseline(t)) for t in texts], chosen, labelled)),
        baseline_note=note,
    )


def _labels(found: Iterable[tuple[str, int, int]]) -> list[LabelledSpan]:
    return [LabelledSpan(*item) for item in found]


def _read(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in lines(path):
        yield _record(line, f"{path.name}:{number}")


def _record(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
        valid = isinstance(record["text"], str) and all(
            0 <= s["start"] < s["end"] <= len(record["text"]) and isinstance(s["type"], str)
            for s in record["spans"]
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{where}: expected an object with text and spans") from error
    if not valid:
        raise InputError(f"{where}: expected spans with type and start < end within the text")
    return dict(record)


def _gold(
    records: Iterable[Mapping[str, Any]], task: SpanTask
) -> tuple[list[list[LabelledSpan]], dict[str, int]]:
    """Return labels under our names, and counts of those the published list does not have."""
    unmapped: Counter[str] = Counter()
    gold = []
    for record in records:
        labels = []
        for span in record["spans"]:
            type_ = task.canonical(span["type"])
            if type_ is None:
                unmapped[span["type"]] += 1
            else:
                labels.append(LabelledSpan(type_, span["start"], span["end"]))
        gold.append(labels)
    return gold, dict(unmapped.most_common())


def _measure(
    gold: Sequence[list[LabelledSpan]],
    found: Sequence[list[LabelledSpan]],
    task: SpanTask,
    labelled: set[str],
) -> Iterator[TypeQuality]:
    """Yield each labelled type's quality, then the sums."""
    counts = defaultdict[str, Any](lambda: np.zeros((len(gold), 3), dtype=np.int64))
    for row, (labels, findings) in enumerate(zip(gold, found, strict=True)):
        for type_ in labelled:
            counts[type_][row] = _compare(
                [x for x in labels if x.type == type_], [x for x in findings if x.type == type_]
            )
    for type_ in sorted(labelled):
        yield _quality(type_, counts[type_])
    structured = [counts[t] for t in labelled if task.structured(t)]
    if structured:
        yield _quality("structured", sum(structured))
    if labelled:
        yield _quality("all", sum(counts[t] for t in labelled))


def _compare(gold: list[LabelledSpan], found: list[LabelledSpan]) -> tuple[int, int, int]:
    """Return how many findings are right, how many wrong, and how many labels are missed."""
    pairs = sorted(
        ((_overlap(g, f), -i, -j) for i, g in enumerate(gold) for j, f in enumerate(found)),
        reverse=True,
    )
    used_gold: set[int] = set()
    used_found: set[int] = set()
    for overlap, i, j in pairs:
        if overlap >= _OVERLAP and i not in used_gold and j not in used_found:
            used_gold.add(i)
            used_found.add(j)
    right = len(used_gold)
    return right, len(found) - right, len(gold) - right


def _overlap(one: LabelledSpan, other: LabelledSpan) -> float:
    """Return the intersection over the union of two stretches."""
    shared = min(one.end, other.end) - max(one.start, other.start)
    union = max(one.end, other.end) - min(one.start, other.start)
    return max(0, shared) / union


def _quality(type_: str, counts: np.ndarray[Any, Any]) -> TypeQuality:
    right, wrong, missed = (int(n) for n in counts.sum(axis=0))
    return TypeQuality(
        type_,
        right,
        wrong,
        missed,
        wilson(right, right + wrong),
        wilson(right, right + missed),
        _bootstrap_f1(counts),
    )


def _bootstrap_f1(counts: np.ndarray[Any, Any]) -> ShareInterval:
    """Return F1 with the 2.5 and 97.5 % quantiles over resampled texts (seed fixed)."""
    rng = np.random.default_rng(0)
    rows = counts[counts.any(axis=1)]
    if not len(rows):
        return ShareInterval(math.nan, math.nan, math.nan)
    drawn = rows[rng.integers(0, len(rows), (_RESAMPLES, len(rows)))].sum(axis=1)
    low, high = np.quantile(_f1(drawn), (0.025, 0.975))
    return ShareInterval(float(_f1(rows.sum(axis=0, keepdims=True))[0]), float(low), float(high))


def _f1(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    right, wrong, missed = counts[:, 0], counts[:, 1], counts[:, 2]
    return np.asarray(2 * right / np.maximum(1, 2 * right + wrong + missed))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def render(report: QualityReport, console: Console) -> None:
    """Print the report as tables."""
    console.print(_table(f"{report.task} on {report.data}, {report.texts} texts", report.types))
    if report.baseline:
        console.print(_table("baseline", report.baseline))
    console.print(report.baseline_note)
    for title, counted in (
        ("labels outside the published types", report.unmapped),
        ("findings of types the data never labels", report.unlabelled),
    ):
        if counted:
            listed = ", ".join(f"{name} {count}" for name, count in counted.items())
            console.print(f"{title}: {listed}")
    console.print(report.rule)


def _table(title: str, rows: Iterable[TypeQuality]) -> Table:
    table = Table(title=title)
    for heading in ("type", "right", "wrong", "missed", "precision", "recall", "F1"):
        table.add_column(heading, justify="left" if heading == "type" else "right")
    for row in rows:
        table.add_row(
            row.type,
            *(str(n) for n in (row.right, row.wrong, row.missed)),
            *(_shown(rate) for rate in (row.precision, row.recall, row.f1)),
        )
    return table


def _shown(rate: ShareInterval) -> str:
    if math.isnan(rate.value):
        return "-"
    return f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]"


Found = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class SpanTask:
    """One detector under measurement.

    Attributes:
        id: Detector id.
        canonical: Our type for any tool's name; None where the published list has none.
        structured: Whether a type is held to the targets.
    """

    id: str
    canonical: Callable[[str], str | None]
    structured: Callable[[str], bool]

    def find(self, text: str) -> list[Found]:
        """Return what the detector serves for this answer, with its default parameters."""
        detector = REGISTRY[self.id]
        outcome = detector.reduce(SegmentedSample(Sample(text)), (), detector.parameters())
        return [(span.label, span.start, span.end) for span in outcome.spans]


def _secret(name: str) -> str | None:
    """Return the secrets detector's type for a name; it publishes its own list."""
    return import_module("guardrail_service.detectors.secrets.detector").canonical(name)  # type: ignore[no-any-return]


TASKS = {
    "pii": SpanTask("pii", pii_types.canonical, lambda t: pii_types.TYPES[t].structured),
    "secrets": SpanTask("secrets", _secret, lambda _: True),
}


_RECOGNIZERS = "presidio_analyzer.predefined_recognizers"
_CLASSES = (
    "EmailRecognizer", "PhoneRecognizer", "CreditCardRecognizer", "IbanRecognizer",
    "UsSsnRecognizer", "UsItinRecognizer", "UsPassportRecognizer", "UsLicenseRecognizer",
    "UsBankRecognizer", "AbaRoutingRecognizer", "IpRecognizer", "CryptoRecognizer",
    "MedicalLicenseRecognizer", "NhsRecognizer", "EsNifRecognizer", "ItFiscalCodeRecognizer",
    "SgFinRecognizer", "AuTfnRecognizer", "InPanRecognizer", "InAadhaarRecognizer",
    "PlPeselRecognizer", "FiPersonalIdentityCodeRecognizer",
)  # fmt: skip
_SCORE = 0.4
"""Presidio's confidence from which a finding counts: its documented patterns without context
score 0.01 to 0.3 when weak and 0.4 or more otherwise."""
MISSING = (
    "baseline not installed: pip install presidio-analyzer (its pattern recognizers are used "
    "alone, so no language model is downloaded)"
)


def presidio(task: SpanTask) -> tuple[Callable[[str], list[Found]] | None, str]:
    """Return Presidio's pattern recognizers under our type names, and a note for the report."""
    if task.id != "pii":
        return None, "no baseline for this task"
    if find_spec("presidio_analyzer") is None:
        return None, MISSING
    module = import_module(_RECOGNIZERS)
    recognizers = [getattr(module, name)() for name in _CLASSES if hasattr(module, name)]

    def find(text: str) -> list[Found]:
        return list(_convert(task, recognizers, text))

    return find, f"baseline: Presidio's {len(recognizers)} pattern recognizers, score >= {_SCORE}"


def _convert(task: SpanTask, recognizers: Iterable[Any], text: str) -> Iterable[Found]:
    for recognizer in recognizers:
        for result in recognizer.analyze(text, recognizer.supported_entities, None) or ():
            type_ = task.canonical(result.entity_type)
            if type_ is not None and result.score >= _SCORE:
                yield type_, result.start, result.end
