"""Tables are read row by row; every kind gives the same records."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from guardrail_offline.datasets.tables import read_records
from guardrail_service.errors import ConfigurationError

ROWS = [
    {"question": "Q1?", "contexts": ["one", "two"], "answer": 'A, with "quotes"\nand lines'},
    {"question": "Q2?", "contexts": [], "answer": None},
]


def json_lines(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Write JSON lines."""
    path = folder / "lab.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n", "utf-8")
    return path


def table(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Write Parquet."""
    path = folder / "lab.parquet"
    parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


def saved(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Write what `Dataset.save_to_disk` writes: an Arrow stream and a state file."""
    path = folder / "dataset"
    path.mkdir()
    found = pa.Table.from_pylist(rows)
    name = str(path / "data-00000-of-00001.arrow")
    with pa.OSFile(name, "wb") as out, pa.ipc.new_stream(out, found.schema) as stream:
        stream.write_table(found)
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": None}
    (path / "state.json").write_text(json.dumps(state))
    (path / "dataset_info.json").write_text("{}")
    return path


def sheet(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Write CSV with a byte-order mark, lists as JSON."""
    path = folder / "lab.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        for row in rows:
            cells = {k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()}
            writer.writerow(cells)
    return path


@pytest.mark.parametrize("write", [json_lines, table, saved])
def test_records_are_read_as_they_were_written(
    tmp_path: Path, write: Callable[[Path, list[dict[str, Any]]], Path]
) -> None:
    """Lists stay lists, missing stays None."""
    assert list(read_records(write(tmp_path, ROWS))) == ROWS


def test_cells_of_a_sheet_are_text(tmp_path: Path) -> None:
    """Lists are parsed where a column means one; an empty cell is None."""
    first, second = read_records(sheet(tmp_path, ROWS))
    assert first == {"question": "Q1?", "contexts": '["one", "two"]', "answer": ROWS[0]["answer"]}
    assert second["answer"] is None


def test_a_passage_a_row_becomes_an_answer_a_row(tmp_path: Path) -> None:
    """Open RAG Eval's table: rows of one query and run belong together, in their order."""
    rows = [
        {"query_id": "q1", "query": "Q?", "query_run": 1, "passage_id": "p1", "passage": "one"},
        {"query_id": "q1", "query": "Q?", "query_run": 1, "passage_id": "p2", "passage": "two"},
        {"query_id": "q1", "query": "Q?", "query_run": 2, "passage_id": "p1", "passage": "one"},
    ]
    rows = [row | {"generated_answer": f"A{row['query_run']}"} for row in rows]
    first, second = read_records(json_lines(tmp_path, rows))
    assert first["key"] == "q1@1"
    assert first["contexts"] == [{"id": "p1", "text": "one"}, {"id": "p2", "text": "two"}]
    assert (second["key"], second["generated_answer"]) == ("q1@2", "A2")


def test_a_record_is_read_only_when_it_is_asked_for(tmp_path: Path) -> None:
    """A broken line further down does not stop the first one."""
    path = tmp_path / "lab.jsonl"
    path.write_text('{"question": "Q?"}\nbroken\n')
    records = read_records(path)
    assert next(iter(records)) == {"question": "Q?"}
    with pytest.raises(ConfigurationError, match=r"line 2: found no JSON"):
        list(records)


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("lab.xlsx", b"", "the ending '.xlsx'"),
        ("lab.jsonl", b"[]\n", "line 1: found list"),
        ("lab.parquet", b"no parquet at all", "no Parquet"),
        ("lab.jsonl", b"[" * 100_000, "line 1: found no JSON"),
        ("lab.csv", b"a,b\n1,2\n1,2,3\n", "row 2: found 3 cells; expected at most 2"),
        ("lab.csv", b'a\n1\n"2"3\n', "line 3: found Error; expected CSV"),
        ("lab.csv", b"a\n\xff\n", "UnicodeDecodeError"),
    ],
)
def test_what_cannot_be_read_is_refused(
    tmp_path: Path, name: str, content: bytes, found: str
) -> None:
    """With the file and what was expected."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=found):
        list(read_records(tmp_path / name))


def test_a_folder_that_datasets_did_not_write_is_refused(tmp_path: Path) -> None:
    """A dictionary of splits has no state file of its own."""
    with pytest.raises(ConfigurationError, match="state"):
        list(read_records(tmp_path))
