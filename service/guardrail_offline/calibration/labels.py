"""Human labels: records, the files they come in, one verdict per case, and the ledger of looks.

A record is `{"case", "label", "metric", "annotator", "at"}`: `pass` says the answer may be shown,
`fail` that it may not, `abstain` that this person cannot tell. A record with a `metric` speaks
about that metric alone.

Every look at labelled data is written down, and what it costs is added up. Trying a rule, seeing
the result and trying another is choosing on the data that are to prove the choice. With a bound
that fails with chance delta each time, m looks fail with chance at most m delta; a promise on
average has no such chance, so its look is counted and costs nothing. The ledger lies beside the
labels; a fit that repeats an earlier one is no new look.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from guardrail_offline.calibration.scored_lab import LabCase, read_records
from guardrail_offline.calibration.statistics import Agreement, agreement_of
from guardrail_service.errors import ConfigurationError

Mark = Literal["pass", "fail", "abstain"]
MARKS: tuple[Mark, ...] = ("pass", "fail", "abstain")
FIELDS = ("case", "label", "metric", "annotator", "at")
TEXTS = ("question", "answer", "contexts")
"""Columns that `calibrate sample` adds for people to read; ignored when labels come back."""

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
class HumanVerdicts:
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


def as_typed(value: str | None) -> str | None:
    """Return what `inert` was given; an empty cell is nothing."""
    if value and value[0] == "'" and value[1:].startswith(_COMPUTED):
        return value[1:]
    return value or None


def verdicts(
    labels: Sequence[Label],
    where: str,
    metric: str | None = None,
    adjudicator: str = ADJUDICATOR,
) -> HumanVerdicts:
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
    votes = votes_of(about, where)
    found = {case: settled(words, adjudicator) for case, words in votes.items()}
    disputed = [case for case, word in found.items() if word is None]
    _refuse_disputed(disputed, where, adjudicator)
    people = {label.annotator for label in about} - {adjudicator}
    times = sorted(label.at for label in about if label.at)
    return HumanVerdicts(
        passes={case: word == "pass" for case, word in found.items() if word != "abstain"},
        abstained=tuple(case for case, word in found.items() if word == "abstain"),
        agreement=between_annotators(votes.values(), adjudicator),
        annotators=len(people),
        dates=(times[0], times[-1]) if times else None,
    )


def settled(words: Mapping[str, Mark], adjudicator: str = ADJUDICATOR) -> Mark | None:
    """Return the word on a case that everybody's words give, None where they disagree."""
    said = {word for word in words.values() if word != "abstain"}
    final = words.get(adjudicator)
    if final is not None and final != "abstain":
        return final
    if not said:
        return "abstain"
    return said.pop() if len(said) == 1 else None


def between_annotators(
    votes: Iterable[Mapping[str, Mark]], adjudicator: str = ADJUDICATOR
) -> Agreement | None:
    """Return how far people agree, the adjudicator left out; None if no case has two words."""
    return agreement_of(
        [{name: word for name, word in v.items() if name != adjudicator} for v in votes]
    )


def votes_of(labels: Iterable[Label], where: str) -> dict[str, dict[str, Mark]]:
    """Return by case each annotator's word.

    Raises:
        ConfigurationError: If somebody labels a case twice differently.
    """
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
    return [{key: as_typed(value) for key, value in row.items()} for row in rows]


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


FORM = """<View>
  <Header value="Question"/>
  <Text name="question" value="$question"/>
  <Header value="Answer"/>
  <Text name="answer" value="$answer"/>
  <Header value="Passages"/>
  <Text name="contexts" value="$contexts"/>
  <Choices name="label" toName="answer" choice="single" required="true">
    <Choice value="pass" hint="The answer may be shown."/>
    <Choice value="fail" hint="The answer may not be shown."/>
    <Choice value="abstain" hint="I cannot tell."/>
  </Choices>
</View>
"""
"""The labelling form; `label` and its three values are what `read_export` looks for."""


def tasks(cases: Iterable[LabCase]) -> list[dict[str, Any]]:
    """Return tasks for Label Studio's import: texts to read, the case's key to find it again.

    Scores are left out on purpose: a label given in sight of a score is not independent of it.
    """
    return [
        {
            "data": {
                "case": case.key,
                "question": case.question or "",
                "answer": case.answer or "",
                "contexts": "\n\n".join(case.contexts),
            }
        }
        for case in cases
    ]


def read_export(path: Path) -> list[dict[str, Any]]:
    """Return one label record per annotation of a JSON export; skipped tasks have none.

    Raises:
        ConfigurationError: If the file is no export, or a task does not name its case.
    """
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(str(path), type(error).__name__, "a JSON export") from error
    if not isinstance(content, list):
        raise ConfigurationError(str(path), type(content).__name__, "a list of tasks")
    records: list[dict[str, Any]] = []
    for index, task in enumerate(content):
        where = f"{path}: task {index}"
        try:
            records.extend(_records(task))
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(
                where, "another shape", "data.case and annotations with a choice"
            ) from error
    return records


def _records(task: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        for result in annotation["result"]:
            choices = result["value"].get("choices")
            if choices and result.get("from_name", "label") == "label":
                yield {
                    "case": task["data"]["case"],
                    "label": choices[0],
                    "metric": task["data"].get("metric"),
                    "annotator": _person(annotation.get("completed_by")),
                    "at": annotation.get("created_at"),
                }


def _person(completed_by: Any) -> str | None:
    """Return who annotated: an id, or an object with an e-mail address and an id."""
    if isinstance(completed_by, Mapping):
        completed_by = completed_by.get("id") or completed_by.get("email")
    return None if completed_by is None else str(completed_by)


@dataclass(frozen=True, slots=True)
class Look:
    """One fit: which rule saw which labels, and what chance of a false promise it spent."""

    rule: str
    data: str
    delta: float
    mode: str

    @property
    def paid(self) -> tuple[str, ...]:
        """Return what a delta pays for: a rule for good, or one rule on one set of labels."""
        return (self.rule,) if self.mode == "anytime" else (self.rule, self.data)


@dataclass(frozen=True, slots=True)
class Spent:
    """All looks up to and including one.

    Attributes:
        count: Which look it is, from 1; repeats not counted.
        delta: Sum of what they cost: the chance that any of their promises is false.
    """

    count: int
    delta: float

    def as_json(self, mode: str) -> dict[str, Any]:
        """Return the sum for the provenance block."""
        return {"mode": mode, "count": self.count, "delta_total": round(self.delta, 10)}


def ledger_of(labels: Path) -> Path:
    """Return where the looks at a file of labels are written down."""
    return labels.with_name(f"{labels.name}.looks.jsonl")


def read_looks(ledger: Path) -> list[Look]:
    """Return the looks so far; none if there is no ledger yet.

    Raises:
        ConfigurationError: If the ledger was damaged: without it nobody knows what was spent.
    """
    if not ledger.exists():
        return []
    try:
        return [Look(**record) for record in read_records(ledger)]
    except TypeError as error:
        raise ConfigurationError(str(ledger), "another shape", "the ledger as it was") from error


def spend(looks: list[Look], look: Look) -> Spent:
    """Return what has been spent once `look` is among the looks.

    Raises:
        ConfigurationError: If no confidence would be left.
    """
    paid: dict[tuple[str, ...], float] = {}
    for earlier in looks:
        paid.setdefault(earlier.paid, earlier.delta)
        if earlier == look:
            break
    paid.setdefault(look.paid, look.delta)
    total = sum(paid.values())
    if round(total, 9) >= 1:
        raise ConfigurationError(
            "looks",
            f"{len(paid)} looks at these labels, which fail together with chance {total:.2f}",
            "new labels: these can prove nothing any more",
        )
    return Spent(len(paid), total)


def record(ledger: Path, look: Look) -> None:
    """Write a look down, unless it repeats an earlier one."""
    if look in read_looks(ledger):
        return
    entry = {"rule": look.rule, "data": look.data, "delta": look.delta, "mode": look.mode}
    with ledger.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(entry) + "\n")
