"""The client's folder: keys, locks, restarts, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from guardrail_offline.h2o_client import Client
from guardrail_offline.h2o_client.client_folder import ClientFolder
from guardrail_service.errors import ConfigurationError

ADD = """
for _ in range(15):
    folder.add("document", {})
    folder.append("lab-1", {"by": name})
    with folder.change("test-1") as record:
        record["count"] += 1
"""
ALONE = """
import sys
from pathlib import Path
from guardrail_offline.h2o_client.client_folder import ClientFolder
folder, name = ClientFolder(Path(sys.argv[1])), "other"
print("ready", flush=True)
"""


def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    """Keys are given out once, and every change is kept."""
    folder = ClientFolder(tmp_path)
    folder.add("test", {"count": 0})
    folder.add("lab", {})
    command = [sys.executable, "-c", ALONE + ADD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        exec(ADD, {"folder": folder, "name": "this"})  # noqa: S102 - the text above
        assert other.wait(120) == 0
    assert folder.get("test-1")["count"] == 30
    assert [one["key"] for one in folder.all("document")] == [
        f"document-{number}" for number in range(1, 31)
    ]
    assert sorted(line["by"] for line in folder.lines("lab-1")) == ["other"] * 15 + ["this"] * 15


def test_a_restart_finds_everything(tmp_path: Path) -> None:
    """Objects, their keys and their order; keys of what was deleted are not given out again."""
    first = Client(folder=tmp_path)
    test = first.tests.create("One")
    test.create_test_case("Q?", "A.")
    first.tests.create("Gone").delete()
    second = Client(folder=str(tmp_path))
    assert [one.name for one in second.tests.list()] == ["One"]
    assert second.tests.get(test.key).test_cases == test.test_cases
    assert second.tests.create("New").key == "test-3"


@pytest.mark.parametrize(
    "key",
    ["test-9", "../test-1", "test-1/../../x", "test-01", "test-", "nothing-1", "", "test-1\n"],
)
def test_a_key_that_was_not_made_here_is_no_path(tmp_path: Path, key: str) -> None:
    """KeyError, whatever it looks like."""
    client = Client(folder=tmp_path / "in")
    client.tests.create("../../../etc/passwd")
    for get in (client.tests.get, client.documents.get, client.tests.delete):
        with pytest.raises(KeyError):
            get(key)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_line_that_was_cut_off_is_gone_and_the_next_one_is_whole(tmp_path: Path) -> None:
    """As a process leaves it that dies while it writes."""
    folder = ClientFolder(tmp_path)
    key = folder.add("lab", {})["key"]
    assert folder.append(key, {"n": 1}) == 1
    with (folder.place(key) / "lines.jsonl").open("a") as stream:
        stream.write('{"n": 2')
    assert folder.lines(key) == [{"n": 1}]
    assert folder.append(key, {"n": 3}) == 2
    assert folder.lines(key) == [{"n": 1}, {"n": 3}]


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    """And so is one of another version."""
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="other files"):
        Client(folder=tmp_path)
    assert not (tmp_path / "client.json").exists()
    newer = tmp_path / "newer"
    Client(folder=newer)
    (newer / "client.json").write_text(json.dumps({"format": 2, "keys": {}}))
    with pytest.raises(ConfigurationError, match="found format 2; expected format 1"):
        Client(folder=newer)


def test_a_temporary_folder_is_said_to_be_one(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Once, in the log; the environment names another one."""
    client = Client("https://eval-studio.example.com", token_provider=object())
    assert client.is_temporary
    assert "goes with this process" in caplog.text
    assert "eval-studio.example.com" not in caplog.text
    folder = client.folder
    del client
    assert not folder.exists()
    monkeypatch.setenv("GUARDRAIL_CLIENT_FOLDER", str(tmp_path / "kept"))
    assert Client().folder == tmp_path / "kept"
