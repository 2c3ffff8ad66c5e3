"""Writes decisions as JSON lines, CSV or Parquet. Only JSON lines have everything."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from guardrail_decisions.reading import to_json
from guardrail_decisions.rows import StoredDecision
from guardrail_service.errors import ConfigurationError, MissingExtra

SUFFIXES = (".jsonl", ".csv", ".parquet")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""First characters of a cell that spreadsheets take for a formula, and the one that stops them."""
_ROWS = 1_000
COLUMNS = (
    "key", "request_id", "item", "time", "caller", "route", "policy", "policy_version",
    "policy_hash", "decision", "action", "status", "share", "flagged", "detector", "state",
    "reason", "metric", "score", "threshold", "metric_flagged", "label", "question", "answer",
    "contexts",
)  # fmt: skip
"""Columns of a table: one row per metric of a decision, or per detector without one."""


def export(decisions: Iterable[StoredDecision], path: Path) -> int:
    """Write decisions into a new file and return how many there were.

    Raises:
        ConfigurationError: If the file is there, or its name says no known form.
        MissingExtra: If Parquet is asked for and cannot be written here.
    """
    if path.suffix not in SUFFIXES:
        raise ConfigurationError("--out", path.suffix or "no suffix", " or ".join(SUFFIXES))
    counted = _Counted(decisions)
    try:
        if path.suffix == ".parquet":
            _parquet(counted, path)
        else:
            with open(path, "x", encoding="utf-8", newline="", opener=private) as file:
                if path.suffix == ".csv":
                    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(_inert(row) for found in counted for row in _rows(found))
                else:
                    file.writelines(json.dumps(to_json(found)) + "\n" for found in counted)
    except FileExistsError as error:
        raise ConfigurationError("--out", "a file that is there", "a new one") from error
    return counted.count


def private(path: str, flags: int) -> int:
    """Open a file for `open`; one that is made now is for its owner only."""
    return os.open(path, flags, 0o600)


class _Counted:
    def __init__(self, decisions: Iterable[StoredDecision]) -> None:
        self._decisions = decisions
        self.count = 0

    def __iter__(self) -> Iterator[StoredDecision]:
        for found in self._decisions:
            self.count += 1
            yield found


def _rows(found: StoredDecision) -> Iterator[dict[str, Any]]:
    record = found.record
    same = {name: getattr(record, name) for name in COLUMNS[1:13]}
    same |= {
        "key": found.key,
        "time": record.time.isoformat(),
        "flagged": ",".join(found.flagged),
        "label": found.feedback[-1].label if found.feedback else None,
        "question": record.question,
        "answer": record.answer or None,
        "contexts": "\n\n".join(record.contexts) or None,
    }
    for name, result in record.detectors.items():
        of = {**same, "detector": name, "state": result.state.value, "reason": result.reason}
        if not result.metrics:
            yield of
        for key, metric in result.metrics.items():
            scores = {"score": metric.score, "threshold": metric.threshold}
            yield {**of, "metric": key, **scores, "metric_flagged": metric.flagged}


def _inert(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose texts no spreadsheet computes."""
    return {
        key: f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
        for key, value in row.items()
    }


def _parquet(decisions: Iterable[StoredDecision], path: Path) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtra("rag-guardrail-decisions[parquet]") from error
    whole = {"key": pa.int64(), "item": pa.int32(), "metric_flagged": pa.bool_()}
    whole |= dict.fromkeys(("share", "score", "threshold"), pa.float64())
    schema = pa.schema([(name, whole.get(name, pa.string())) for name in COLUMNS])
    with open(path, "xb", opener=private) as file, parquet.ParquetWriter(file, schema) as writer:
        waiting: list[dict[str, Any]] = []
        for found in decisions:
            waiting += _rows(found)
            if len(waiting) >= _ROWS:
                writer.write_table(pa.Table.from_pylist(waiting, schema))
                waiting = []
        writer.write_table(pa.Table.from_pylist(waiting, schema))
