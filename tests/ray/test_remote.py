"""Labs and results behind addresses: a server that speaks S3, and memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest
from moto.server import ThreadedMotoServer
from typer.testing import CliRunner, Result

from guardrail_offline.datasets import remote_files
from guardrail_offline.datasets.remote_files import FarFolder
from guardrail_service.commands.main import app
from guardrail_service.errors import ConfigurationError

LAB = "".join(
    json.dumps({"key": f"k{n}", "question": f"q{n}", "answer": "one two", "expected_output": "two"})
    + "\n"
    for n in range(30)
)


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """Yield the address of a bucket with a lab in it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        store = fsspec.filesystem("s3")
        store.mkdir("bucket")
        store.pipe("bucket/labs/lab.jsonl", LAB.encode())
        yield "s3://bucket"
    server.stop()


def evaluate(lab: str, out: str, *more: str) -> Result:
    """Run `guardrail evaluate`."""
    words = ["evaluate", lab, "-o", out, "-e", "rouge,bleu", "--shard-rows", "5", *more]
    return CliRunner().invoke(app, [*words, "--workers", "1", "--no-report"])


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """Return the folder of the same run on this machine."""
    (tmp_path / "lab.jsonl").write_text(LAB)
    ended = evaluate(str(tmp_path / "lab.jsonl"), str(tmp_path / "alone"))
    assert ended.exit_code == 0, ended.output
    return tmp_path / "alone"


@pytest.mark.parametrize("kind", ["s3", "memory"])
def test_a_run_behind_an_address_has_the_files_of_one_here(
    kind: str,
    bucket: str,
    alone: Path,
    tmp_path: Path,
    contents: Callable[[Path], dict[str, bytes]],
) -> None:
    """From a lab behind an address, into a folder behind another."""
    place = bucket if kind == "s3" else "memory://here"
    store = fsspec.filesystem(kind)
    if kind == "memory":
        store.pipe("/here/labs/lab.jsonl", LAB.encode())
    ended = evaluate(f"{place}/labs/lab.jsonl", f"{place}/runs/first")
    assert ended.exit_code == 0, ended.output
    assert f"{place}/runs/first/report.html" in ended.output.replace("\n", "")
    store.get(f"{place}/runs/first/", str(tmp_path / "copied"), recursive=True)
    assert contents(tmp_path / "copied") == contents(alone)


def test_a_run_that_was_stopped_goes_on_from_what_was_kept(
    bucket: str, alone: Path, tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]
) -> None:
    """On another machine: finished shards come from the store and are not computed again."""
    store, place = fsspec.filesystem("s3"), f"{bucket}/runs/stopped"
    gone = {"scores-00003.jsonl", "scores-00004.jsonl"}
    kept = [path for path in (alone / "work").iterdir() if path.name not in gone]
    for path in [alone / "manifest.json", *kept]:
        store.put_file(str(path), f"{place}/{path.relative_to(alone).as_posix()}")
    before = store.info(f"{place}/work/scores-00000.jsonl")["LastModified"]
    ended = evaluate(f"{bucket}/labs/lab.jsonl", place)
    assert ended.exit_code == 0, ended.output
    store.invalidate_cache()
    assert store.info(f"{place}/work/scores-00000.jsonl")["LastModified"] == before
    store.get(f"{place}/", str(tmp_path / "copied"), recursive=True)
    assert contents(tmp_path / "copied") == contents(alone)


def test_shards_are_kept_while_the_run_goes_on(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New and changed files only, and a database as it is between two changes."""
    monkeypatch.setattr(remote_files, "KEEP_S", 0.0)
    far = FarFolder(f"{bucket}/runs/growing", tmp_path / "own")
    far.fetch()
    (tmp_path / "own/work").mkdir()
    (tmp_path / "own/work/scores-00000.jsonl").write_text("1\n")
    (tmp_path / "own/work/.scores-00001.jsonl.7.tmp").write_text("half")
    with sqlite3.connect(tmp_path / "own/transcripts.sqlite") as database:
        database.execute("CREATE TABLE t (x)")
        far.keep_soon()
    database.close()
    store = fsspec.filesystem("s3")
    store.invalidate_cache()
    names = {
        name.removeprefix("bucket/runs/growing/") for name in store.find("bucket/runs/growing")
    }
    assert names == {"transcripts.sqlite", "work/scores-00000.jsonl"}


@pytest.mark.parametrize(
    ("lab", "out", "told"),
    [
        ("{bucket}/labs/none.jsonl", "here", "FileNotFoundError; expected a lab that can be read"),
        ("s3://nobucket/lab.jsonl", "here", "expected a lab that can be read"),
        ("{bucket}/labs/lab.jsonl", "{bucket}/labs", "found other files; expected an empty folder"),
        ("gs://bucket/lab.jsonl", "here", "found no package for gs://"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    bucket: str, tmp_path: Path, lab: str, out: str, told: str
) -> None:
    """With the address, what was found and what was expected."""
    where = str(tmp_path / "here") if out == "here" else out.format(bucket=bucket)
    ended = evaluate(lab.format(bucket=bucket), where)
    assert ended.exit_code == 2
    assert told in " ".join(ended.output.split())


def test_an_address_of_no_kind_is_refused_without_its_password(tmp_path: Path) -> None:
    """In one line that names what was found."""
    with pytest.raises(ConfigurationError, match="an unknown kind") as raised:
        remote_files.lab_here("gopher://me:secret@hole/lab.jsonl?key=secret", tmp_path)
    assert "secret" not in str(raised.value)


def test_a_store_that_cannot_be_reached_is_one_line(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a stack of errors of three libraries."""
    fsspec.filesystem("s3").clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(ConfigurationError, match="expected a lab that can be read"):
        remote_files.lab_here("s3://other/lab.jsonl", tmp_path)
    fsspec.filesystem("s3").clear_instance_cache()
