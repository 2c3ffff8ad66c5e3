"""Records row by row from JSON lines, CSV, Parquet and Hugging Face `datasets` folders."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from guardrail_service.errors import ConfigurationError, MissingExtra

Record = Mapping[str, Any]
_BATCH = 256  # rows of a Parquet or Arrow file in memory at a time
_RUN = ("query_id", "query_run")


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a table, by its ending; a folder is one that `datasets` saved.

    Open RAG Eval's tables have a row per passage; theirs are put together to a record per answer.

    Raises:
        ConfigurationError: If the ending is not known, or a row is not readable.
        MissingExtra: If Parquet or a folder is read without pyarrow.
    """
    readers = {".jsonl": _json_lines, ".ndjson": _json_lines, ".csv": _csv, ".parquet": _parquet}
    if path.is_dir():
        return _by_answer(_folder(path))
    reader = readers.get(path.suffix.lower())
    if reader is None:
        expected = "a .json, .jsonl, .csv or .parquet file, or a folder saved by datasets"
        raise ConfigurationError(str(path), f"the ending {path.suffix!r}", expected)
    return _by_answer(reader(path))


def _json_lines(path: Path) -> Iterator[Record]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                where = f"{path}: line {number}"
                raise ConfigurationError(where, "no JSON", "a JSON object per line") from error
            if not isinstance(record, dict):
                where = f"{path}: line {number}"
                raise ConfigurationError(where, type(record).__name__, "a JSON object")
            yield record


def _csv(path: Path) -> Iterator[Record]:
    csv.field_size_limit(sys.maxsize)  # a passage is often longer than the default 131,072
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.DictReader(stream, strict=True)
        try:
            for number, row in enumerate(rows, start=1):
                if None in row:
                    columns = len(row) - 1
                    found = f"{columns + len(row[None])} cells"
                    where = f"{path}: row {number}"
                    raise ConfigurationError(where, found, f"at most {columns}, one per column")
                yield {key: value or None for key, value in row.items()}
        except csv.Error as error:
            where = f"{path}: line {rows.reader.line_num}"
            raise ConfigurationError(where, type(error).__name__, "CSV") from error
        except UnicodeDecodeError as error:  # met in a block of lines
            raise ConfigurationError(str(path), type(error).__name__, "CSV in UTF-8") from error


def _parquet(path: Path) -> Iterator[Record]:
    try:
        import pyarrow.parquet as parquet
        from pyarrow import ArrowInvalid
    except ImportError as error:
        raise MissingExtra("rag-guardrail-offline") from error
    try:
        with parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(_BATCH):
                yield from batch.to_pylist()
    except ArrowInvalid as error:
        raise ConfigurationError(str(path), "no Parquet", "a Parquet file") from error


def _folder(path: Path) -> Iterator[Record]:
    """Yield the records of `Dataset.save_to_disk`: the Arrow files that its state.json lists."""
    try:
        from pyarrow import ArrowInvalid, ipc
    except ImportError as error:
        raise MissingExtra("rag-guardrail-offline") from error
    try:
        state = json.loads((path / "state.json").read_text("utf-8"))
        files = [entry["filename"] for entry in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        expected = "a folder that Dataset.save_to_disk wrote, of one split"
        raise ConfigurationError(str(path), "no readable state.json", expected) from error
    for name in files:
        try:
            with (path / Path(name).name).open("rb") as stream, ipc.open_stream(stream) as reader:
                for batch in reader:
                    yield from batch.to_pylist()
        except (ArrowInvalid, OSError) as error:
            where = f"{path}: {Path(name).name}"
            raise ConfigurationError(where, type(error).__name__, "an Arrow stream") from error


def _by_answer(records: Iterable[Record]) -> Iterator[Record]:
    """Put rows together that are the passages of one answer; other records pass as they are."""
    for (is_passage, _), rows in groupby(records, key=_answer_of):
        if not is_passage:
            yield from rows
            continue
        found = list(rows)
        first = {k: v for k, v in found[0].items() if k not in ("passage", "passage_id")}
        answers = [row["generated_answer"] for row in found if row.get("generated_answer")]
        run = first.pop("query_run", None)
        if run is not None:
            first["key"] = f"{first.get('query_id')}@{run}"
        first["generated_answer"] = answers[0] if answers else None
        first["contexts"] = [
            {"id": row.get("passage_id"), "text": row.get("passage") or ""} for row in found
        ]
        yield first


def _answer_of(record: Record) -> tuple[bool, tuple[Any, ...]]:
    is_passage = "passage" in record and "query_id" in record
    return is_passage, tuple(record.get(name) for name in _RUN) if is_passage else ()
