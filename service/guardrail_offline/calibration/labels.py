"""Human labels: records, the files they come in, and one verdict per case.

A record is `{"case", "label", "metric", "annotator", "at"}`: `pass` says the answer may be shown,
`fail` that it may not, `abstain` that this person cannot tell. A record with a `metric` speaks
about that metric alone.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from guardrail_offline.calibration.agreement import Agreement, agreement_of
from guardrail_offline.calibration.lab import read_records
from guardrail_service.errors import ConfigurationError

Mark = Literal["pass", "fail", "abstain"]
MARKS: tuple[Mark, ...] = ("pass", "fail", "abstain")
FIELDS = ("case", "label", "metric", "annotator", "at")
TEXTS = ("question", "answer", "contexts")
"""What `calibrate sample` adds for people to read; passed over when labels come back."""

_COMPUTED = ("=", "+", "-", "@", "\t", "\r", "'")
"""First characters of a cell that spreadsheets take for a formula, and the one that stops them."""

ADJUDICATOR = "adjudicator"
"""Name of the annotator whose word is final, unless another is given."""


@dataclass(frozen=True, slots=True)
class Label:
    """One person's word on one case; `metric` None speaks of the whole answer."""

    case: str
    label: Mark
    metric: str | None = None
    annotator: str = "unnamed"
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One word per case.

    Attributes:
        passes: By case key, whether the answer may be shown.
        abstained: Cases on which nobody could tell; they are not used.
        agreement: Between annotators, the adjudicator left out; None with one annotator.
        annotators: How many people labelled.
        dates: The earliest and the latest time of a label, where labels have times.
    """

    passes: Mapping[str, bool]
    abstained: tuple[str, ...]
    agreement: Agreement | None
    annotators: int
    dates: tuple[str, str] | None


def read_labels(path: Path) -> list[Label]:
    """Return labels from JSON lines, CSV or a Label Studio export (a JSON list of tasks).

    Raises:
        ConfigurationError: Naming the record, what was found and what was expected.
    """
    if path.suffix == ".csv":
        records: Iterable[Mapping[str, Any]] = _csv_records(path)
    elif path.suffix == ".json":
        from guardrail_offline.calibration.label_studio import read_export

        records = read_export(path)
    else:
        records = read_records(path)
    labels = [_label(path, number, record) for number, record in enumerate(records, start=1)]
    if not labels:
        raise ConfigurationError(str(path), "no label", "at least one")
    return labels


def labels_jsonl(labels: Iterable[Label]) -> str:
    """Return labels as JSON lines."""
    return "".join(json.dumps(asdict(label), ensure_ascii=False) + "\n" for label in labels)


def labels_csv(labels: Iterable[Label]) -> str:
    """Return labels as CSV with a header; an unset field is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for label in labels:
        writer.writerow({key: inert(value) for key, value in asdict(label).items()})
    return text.getvalue()


def inert(value: object) -> object:
    """Return a cell that a spreadsheet shows and does not compute; reading undoes it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_COMPUTED) else value


def _as_typed(value: str | None) -> str | None:
    """Return what `inert` was given; an empty cell is nothing."""
    if value and value[0] == "'" and value[1:].startswith(_COMPUTED):
        return value[1:]
    return value or None


def verdicts(
    labels: Sequence[Label],
    where: str,
    metric: str | None = None,
    adjudicator: str = ADJUDICATOR,
) -> Verdicts:
    """Return one word per case from everybody's labels.

    The adjudicator's word is final. Without it, annotators who do not abstain must agree.

    Args:
        labels: All of them; those about another metric are passed over.
        where: The file, for messages.
        metric: None for words on the whole answer.
        adjudicator: Whose word settles disagreements.

    Raises:
        ConfigurationError: If somebody labels a case twice differently, or a disagreement is open.
    """
    about = [label for label in labels if label.metric == metric]
    votes = _votes(about, where)
    passes: dict[str, bool] = {}
    abstained, disputed = [], []
    for case, words in votes.items():
        said = {word for word in words.values() if word != "abstain"}
        final = words.get(adjudicator)
        if final in ("pass", "fail"):
            passes[case] = final == "pass"
        elif len(said) == 1:
            passes[case] = said == {"pass"}
        elif said:
            disputed.append(case)
        else:
            abstained.append(case)
    _refuse_disputed(disputed, where, adjudicator)
    people = {label.annotator for label in about} - {adjudicator}
    times = sorted(label.at for label in about if label.at)
    return Verdicts(
        passes=passes,
        abstained=tuple(abstained),
        agreement=agreement_of([_without(words, adjudicator) for words in votes.values()]),
        annotators=len(people),
        dates=(times[0], times[-1]) if times else None,
    )


def _without(words: Mapping[str, Mark], adjudicator: str) -> dict[str, str]:
    return {name: word for name, word in words.items() if name != adjudicator}


def _votes(labels: Iterable[Label], where: str) -> dict[str, dict[str, Mark]]:
    votes: dict[str, dict[str, Mark]] = {}
    for label in labels:
        words = votes.setdefault(label.case, {})
        if words.setdefault(label.annotator, label.label) != label.label:
            found = f"two different labels of {label.annotator!r} for case {label.case!r}"
            raise ConfigurationError(where, found, "one label per annotator and case")
    return votes


def _refuse_disputed(disputed: Sequence[str], where: str, adjudicator: str) -> None:
    if disputed:
        some = ", ".join(repr(case) for case in disputed[:5])
        raise ConfigurationError(
            where,
            f"{len(disputed)} cases on which annotators disagree ({some})",
            f"a label by {adjudicator!r} for each of them",
        )


def counted(values: Iterable[bool]) -> tuple[int, int]:
    """Return how many passes and fails there are."""
    counts = Counter(values)
    return counts[True], counts[False]


def _csv_records(path: Path) -> list[dict[str, Any]]:
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig")), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(str(path), type(error).__name__, "CSV in UTF-8") from error
    if any(None in row for row in rows):
        raise ConfigurationError(str(path), "a row with more cells than the header", "CSV")
    return [{key: _as_typed(value) for key, value in row.items()} for row in rows]


def _label(path: Path, number: int, record: Mapping[str, Any]) -> Label:
    where = f"{path}: record {number}"
    unknown = sorted(str(key) for key in set(record) - {*FIELDS, *TEXTS})
    if unknown:
        raise ConfigurationError(where, f"the key {unknown[0]!r}", ", ".join(FIELDS))
    case, mark = record.get("case"), str(record.get("label") or "").strip().lower()
    if not isinstance(case, str) or not case:
        raise ConfigurationError(f"{where}: case", repr(case)[:40], "the key of a case")
    if mark not in MARKS:
        raise ConfigurationError(f"{where}: label", repr(mark)[:40], ", ".join(MARKS))
    for name in ("metric", "annotator", "at"):
        if not isinstance(record.get(name), str | None):
            raise ConfigurationError(f"{where}: {name}", repr(record[name])[:40], "a text")
    return Label(
        case=case,
        label=mark,
        metric=record.get("metric"),
        annotator=record.get("annotator") or "unnamed",
        at=record.get("at"),
    )
