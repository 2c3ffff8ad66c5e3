"""A lab is opened once and read as often as needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrail_offline.datasets.cases import Case, Lab, Model
from guardrail_offline.datasets.labs import file_sha256, lab_source, open_lab
from guardrail_service.errors import ConfigurationError


def test_a_table_can_be_read_again(tmp_path: Path) -> None:
    """Each time from its first row."""
    path = tmp_path / "lab.jsonl"
    path.write_text('{"question": "Q?"}\n{"question": "R?"}\n')
    lab = open_lab(path)
    assert [case.question for case in lab.cases()] == ["Q?", "R?"]
    assert [case.key for case in lab.cases()] == ["row-1", "row-2"]


def test_json_and_a_lab_in_memory_are_sources_too(tmp_path: Path) -> None:
    """With the models they describe."""
    path = tmp_path / "lab.json"
    path.write_text(json.dumps([{"question": "Q?", "model": "m"}]))
    assert [model.key for model in open_lab(path).models] == ["m"]
    memory = lab_source(Lab((Case("1", "Q?"),), (Model("m"),), "N"))
    assert ([c.key for c in memory.cases()], memory.name) == (["1"], "N")


def test_an_artifacts_folder_is_found_beside_the_lab_and_nowhere_else(tmp_path: Path) -> None:
    """A lab from elsewhere must not make the evaluator read other files."""
    path = tmp_path / "lab.jsonl"
    path.write_text('{"question": "Q?", "artifacts": "run/1"}\n')
    assert next(open_lab(path).cases()).artifacts == str(tmp_path.resolve() / "run" / "1")
    path.write_text('{"question": "Q?", "artifacts": "../../etc"}\n')
    with pytest.raises(ConfigurationError, match="a folder elsewhere"):
        list(open_lab(path).cases())


@pytest.mark.parametrize("name", ["x\\u0000y", "\\ud800"])
def test_what_cannot_be_a_folders_name_is_refused_with_its_row(tmp_path: Path, name: str) -> None:
    """From a table and from JSON."""
    record = f'{{"question": "Q?", "artifacts": "{name}"}}'
    for path, text in ((tmp_path / "a.jsonl", f"{record}\n"), (tmp_path / "a.json", f"[{record}]")):
        path.write_text(text)
        with pytest.raises(
            ConfigurationError, match="row 1: artifacts: found a value that is no folder's name"
        ):
            list(open_lab(path).cases())


def test_a_hash_changes_with_the_content_and_with_a_files_name(tmp_path: Path) -> None:
    """Of a file, and of a folder's files."""
    (tmp_path / "a").write_text("x")
    one = file_sha256(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert file_sha256(tmp_path) != one
    assert file_sha256(tmp_path / "b") == (
        "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    )


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    """Before anything else happens."""
    with pytest.raises(ConfigurationError, match="no such file"):
        open_lab(tmp_path / "none.json")
