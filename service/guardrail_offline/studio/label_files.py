"""One labelling: the tasks, everybody's labels and the history of changes. Files are the state.

A labelling folder holds

    to_label.jsonl               the cases to label (`.csv`, `.json`), as `calibrate sample` has it
    to_label.jsonl.sample.jsonl  how they were drawn
    lab.jsonl                    the scored lab, where the sample came from a decision store
    labels.jsonl                 the labels; `guardrail calibrate` reads this file and nothing else
    labels.jsonl.history.jsonl   every change with its time, and the notes

A change is on disk before its writer is told. A label that is new is appended; one that was changed
or withdrawn has the file written anew, whole or not at all, because `calibrate` refuses two
different words of one person on one case.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from guardrail_offline.calibration.labels import (
    ADJUDICATOR,
    MARKS,
    Label,
    Mark,
    between_annotators,
    labels_jsonl,
    ledger_of,
    read_labels,
    settled,
    votes_of,
)
from guardrail_offline.calibration.sampling import read_tasks
from guardrail_offline.calibration.scored_lab import read_records
from guardrail_offline.calibration.statistics import Agreement
from guardrail_offline.runs.shards import whole_file
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.provenance import sha256_of

TASKS = ("to_label.jsonl", "to_label.csv", "to_label.json")
LABELS = "labels.jsonl"
LAB = "lab.jsonl"
LONGEST_NOTE = 4_000
"""Code points of a note."""
Key = tuple[str, str | None, str]
"""A label's case, metric and annotator."""


class EditConflict(Exception):
    """Somebody, or another tab, has changed the label since it was read."""


class Unwritable(Exception):
    """The disk did not take a label; nothing was changed."""


@dataclass(frozen=True, slots=True)
class LabelTask:
    """One answer to label; scores are left out on purpose."""

    case: str
    question: str
    answer: str
    contexts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GivenLabel:
    """One person's word on one case as it stands now.

    Attributes:
        label: None where there is none yet.
        note: Empty where there is none.
        version: Changes with every change; whoever writes says which version he has seen.
    """

    label: Mark | None
    note: str
    version: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a labelling.

    Attributes:
        cases: How many there are to label.
        labelled: Cases with at least one word, abstentions among them.
        by_annotator: Words of each person, the adjudicator left out.
        disputed: Cases on which people disagree and nobody has decided.
        agreement: None where no case has two words.
    """

    cases: int
    labelled: int
    by_annotator: Mapping[str, int]
    disputed: tuple[str, ...]
    agreement: Agreement | None

    @property
    def complete(self) -> bool:
        """Return whether thresholds can be fitted to it."""
        return self.labelled == self.cases and not self.disputed


class Labelling:
    """The labels of one folder; safe to use from several threads, refused to a second process.

    Raises:
        ConfigurationError: If the folder has no tasks, its labels cannot be read, or another
            process has it open.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        self.labels_file = folder / LABELS
        self.history_file = folder / f"{LABELS}.history.jsonl"
        self.tasks_file = tasks_file_of(folder)
        self.tasks = [LabelTask(*task) for task in read_tasks(self.tasks_file)]
        self._index = {task.case: number for number, task in enumerate(self.tasks)}
        self._lock = threading.Lock()
        self._open_file = _alone(folder)
        self._labels: dict[Key, Label] = {}
        self._notes: dict[tuple[str, str], str] = {}
        self.reload()

    def reload(self) -> None:
        """Read the files again, after this process has changed them otherwise.

        Raises:
            ConfigurationError: If they cannot be read.
        """
        with self._lock:
            for path in (self.labels_file, self.history_file):
                _drop_torn_line(path)
            there = self.labels_file.exists() and self.labels_file.stat().st_size > 0
            labels = read_labels(self.labels_file) if there else []
            votes_of([label for label in labels if label.metric is None], str(self.labels_file))
            self._labels = {(one.case, one.metric, one.annotator): one for one in labels}
            self._notes = dict(self._kept_notes())

    def close(self) -> None:
        """Let another process open the folder."""
        self._open_file.close()

    @property
    def ledger(self) -> Path:
        """Return the file in which fits write down their looks at these labels."""
        return ledger_of(self.labels_file)

    def index_of(self, case: str) -> int:
        """Return the place of a case among the tasks."""
        return self._index[case]

    def word(self, case: str, annotator: str) -> GivenLabel:
        """Return somebody's word on a case."""
        with self._lock:
            return self._word(case, annotator)

    def words(self, case: str) -> list[GivenLabel]:
        """Return the words of all annotators on a case, the adjudicator left out."""
        with self._lock:
            return [self._word(case, name) for name in self._annotators(case)]

    def version_of(self, case: str) -> str:
        """Return the version of everybody's words on a case: the one an adjudicator has seen."""
        with self._lock:
            return self._version_of(case)

    def labels_by(self, annotator: str) -> dict[str, Mark]:
        """Return one person's labels by case."""
        with self._lock:
            return {
                label.case: label.label
                for label in self._labels.values()
                if label.metric is None and label.annotator == annotator
            }

    def progress(self) -> Progress:
        """Return how far the labelling is and how far people agree."""
        with self._lock:
            about = [
                label
                for label in self._labels.values()
                if label.metric is None and label.case in self._index
            ]
        votes = votes_of(about, str(self.labels_file))
        people: dict[str, int] = {}
        for label in about:
            if label.annotator != ADJUDICATOR:
                people[label.annotator] = people.get(label.annotator, 0) + 1
        disputed = [case for case, words in votes.items() if settled(words) is None]
        return Progress(
            cases=len(self.tasks),
            labelled=len(votes),
            by_annotator=dict(sorted(people.items())),
            disputed=tuple(sorted(disputed, key=self.index_of)),
            agreement=between_annotators(votes.values()),
        )

    def put(
        self, case: str, annotator: str, label: Mark | None, note: str, version: str, by: str
    ) -> GivenLabel:
        """Write one person's word on a case; None withdraws it.

        Args:
            case: The key of a task.
            annotator: Whose word it becomes.
            label: The word.
            note: For people only; `calibrate` does not read it.
            version: Of the word that the writer has seen; an adjudicator's, of all words.
            by: Who is signed in.

        Raises:
            EditConflict: If the version is not the present one. Nothing is written.
            Unwritable: If the disk did not take it. Nothing is changed.
        """
        key: Key = (case, None, annotator)
        with self._lock:
            before = self._labels.get(key)
            seen = self._version_of(case) if annotator == ADJUDICATOR else None
            if version != (seen or self._word(case, annotator).version):
                raise EditConflict
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            entry = {
                "at": at,
                "case": case,
                "annotator": annotator,
                "label": label,
                "before": before.label if before else None,
                "note": note,
                "by": by,
            }
            new = None if label is None else Label(case, label, None, annotator, at)
            try:
                size = _append(self.history_file, json.dumps(entry, ensure_ascii=False) + "\n")
                if label != (before.label if before else None):
                    self._write(key, new, size)
            except OSError as error:
                raise Unwritable(error.strerror or type(error).__name__) from error
            self._notes[case, annotator] = note
            return self._word(case, annotator)

    def _write(self, key: Key, new: Label | None, history_size: int) -> None:
        """Bring one label to disk, then to memory; a change that fails is none in the history."""
        labels = dict(self._labels)
        is_new = new is not None and labels.pop(key, None) is None
        if new is not None:
            labels[key] = new
        else:
            labels.pop(key, None)
        try:
            if is_new and new is not None:
                _append(self.labels_file, labels_jsonl([new]))
            else:
                with whole_file(self.labels_file) as stream:
                    stream.write(labels_jsonl(labels.values()))
                _sync_folder(self.folder)
        except OSError:
            os.truncate(self.history_file, history_size)
            raise
        self._labels = labels

    def _word(self, case: str, annotator: str) -> GivenLabel:
        label = self._labels.get((case, None, annotator))
        note = self._notes.get((case, annotator), "")
        seen = None if label is None else asdict(label)
        return GivenLabel(label.label if label else None, note, sha256_of([seen, note])[:16])

    def _version_of(self, case: str) -> str:
        people = [*self._annotators(case), ADJUDICATOR]
        return sha256_of([[name, self._word(case, name).version] for name in people])[:16]

    def _annotators(self, case: str) -> Sequence[str]:
        about = (key for key in self._labels if key[0] == case and key[1] is None)
        return sorted({annotator for _, _, annotator in about} - {ADJUDICATOR})

    def _kept_notes(self) -> Iterator[tuple[tuple[str, str], str]]:
        if self.history_file.exists():
            for entry in read_records(self.history_file):
                yield (str(entry["case"]), str(entry["annotator"])), str(entry["note"] or "")


def tasks_file_of(folder: Path) -> Path:
    """Return a folder's file of tasks.

    Raises:
        ConfigurationError: If it has none.
    """
    for name in TASKS:
        if (folder / name).is_file():
            return folder / name
    raise ConfigurationError(str(folder), "no tasks", f"one of {', '.join(TASKS)}")


def checked_mark(value: Any) -> Mark | None:
    """Return a label from outside, None for none.

    Raises:
        ValueError: If it is neither.
    """
    if value is None:
        return None
    for mark in MARKS:
        if mark == value:
            return mark
    raise ValueError("label")


def _alone(folder: Path) -> IO[str]:
    """Return an open file that keeps a second studio out for as long as this process lives."""
    stream = (folder / ".labels.lock").open("a", encoding="utf-8")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        stream.close()
        raise ConfigurationError(
            str(folder), "a labelling that another studio has open", "one studio per folder"
        ) from error
    return stream


def _drop_torn_line(path: Path) -> None:
    """Cut off a last line without an end: nobody was told that it is written."""
    if not path.exists():
        return
    with path.open("rb+") as stream:
        data = stream.read()
        if data and not data.endswith(b"\n"):
            end = data.rfind(b"\n") + 1
            if _is_json(data[end:]):  # written by hand, and whole
                stream.write(b"\n")
            else:
                stream.truncate(end)
            os.fsync(stream.fileno())


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _append(path: Path, text: str) -> int:
    """Add to a file, wait for the disk and return its size before; a failure changes nothing."""
    is_new = not path.exists()
    with path.open("ab", buffering=0) as stream:
        size = os.fstat(stream.fileno()).st_size
        data = text.encode(errors="backslashreplace")
        try:
            while data:
                data = data[stream.write(data) :]
            os.fsync(stream.fileno())
        except OSError:
            stream.truncate(size)
            raise
    if is_new:
        _sync_folder(path.parent)
    return size


def _sync_folder(folder: Path) -> None:
    """Wait until a folder's new names are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
