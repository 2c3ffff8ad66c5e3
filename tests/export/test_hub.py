"""The documented command against a hub: one commit, its files and no others, or a clear refusal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from guardrail_models.recipes import shipped_recipes
from guardrail_service.inference.pack import load_pack
from tests.export.hub import Hub, serving

Build = Callable[[str], Path]
Run = Callable[..., subprocess.CompletedProcess[str]]
COMMIT = "c0ffee" + "0" * 34
KEY = "hf_ThisKeyMustNotBeShown"
NLI = "nli-distilroberta-base"
EMBEDDING = "all-minilm-l6-v2"
PATIENCE_S = 300


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A hub without repositories."""
    with serving() as hub:
        yield hub


@pytest.fixture
def run(hub: Hub, tmp_path: Path) -> Run:
    """Run the installed command with that hub, an empty cache and a key."""

    def run(*asked: str | Path, address: str = hub.address) -> subprocess.CompletedProcess[str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        hub_settings = {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": KEY}
        return subprocess.run(
            [Path(sys.executable).with_name("guardrail"), *map(str, asked)],
            env={**own, **hub_settings, "NO_PROXY": "127.0.0.1", "COLUMNS": "300"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    return run


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        (NLI, "model.safetensors"),
        ("bias-detection-model", "tf_model.h5"),
        ("hhem-2.1-open", "model.safetensors"),
    ],
)
def test_one_command_fetches_the_pinned_commit(
    name: str, weights: str, stand_in: Build, hub: Hub, run: Run, tmp_path: Path
) -> None:
    """Its configuration, tokenizer and one file of weights; the foundation's without weights."""
    recipe, folder = shipped_recipes()[name], stand_in(name)
    more = ("pytorch_model.bin", "README.md", "modeling_own.py", "onnx/model.onnx", "1/config.json")
    unwanted = dict.fromkeys(more, b"not to be fetched")
    hub.add(recipe.hub or "", COMMIT, folder, **unwanted)
    if recipe.foundation:
        hub.add(recipe.foundation.hub, recipe.foundation.revision, folder, **unwanted)
    asked = ["models", "export", name, "--revision", COMMIT, "--quantise", "none"]
    shown = run(*asked, "--out", tmp_path / "pack")
    assert shown.returncode == 0, shown.stderr
    fetched = hub.fetched()
    assert fetched.count(weights) == 1
    assert "config.json" in fetched
    assert {"vocab.txt", "merges.txt", "tokenizer.json"} & set(fetched)
    assert not set(fetched) & set(more)
    commits = {COMMIT, recipe.foundation.revision if recipe.foundation else COMMIT}
    assert {part for _, path, _ in hub.requests for part in path.split("/") if len(part) == 40} | {
        path.partition("?")[0].rsplit("/", 1)[1]
        for _, path, _ in hub.requests
        if path.startswith("/api/")
    } == commits
    assert all(key for _, _, key in hub.requests)
    source = load_pack(tmp_path / "pack").model(recipe.role).source
    assert source.name == recipe.hub
    assert source.revision.startswith(f"{COMMIT}, {weights} sha256 ")
    assert KEY not in shown.stdout + shown.stderr


def test_nothing_is_requested_at_serve_time(
    stand_in: Build, hub: Hub, run: Run, tmp_path: Path
) -> None:
    """Neither when the pack is verified nor when it judges; the hub listens and hears nothing."""
    hub.add(shipped_recipes()[EMBEDDING].hub or "", COMMIT, stand_in(EMBEDDING))
    pack = tmp_path / "pack"
    assert run("models", "export", EMBEDDING, "--revision", COMMIT, "--out", pack).returncode == 0
    before = list(hub.requests)
    assert before
    assert run("models", "verify", "--pack", pack).returncode == 0
    config, lines = tmp_path / "policy.json", tmp_path / "lines.jsonl"
    config.write_text(
        json.dumps(
            {
                "calibrated_thresholds": {"groundedness": {"groundedness": -1.0}},
                "evaluator_ids": ["groundedness"],
            }
        )
    )
    lines.write_text(
        json.dumps({"answer": "It opens at ten.", "contexts": ["It opens at ten."]}) + "\n"
    )
    checked = run("check", lines, "--pack", pack, "--config", config)
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["detectors"]["groundedness"]["state"] == "evaluated"
    assert hub.requests == before


def _changed(hub: Hub, content: bytes) -> None:
    middle = len(content) // 2
    flipped = bytes([content[middle] ^ 1])
    hub.replaced["model.safetensors"] = content[:middle] + flipped + content[middle + 1 :]


def _cut(hub: Hub, content: bytes) -> None:
    hub.replaced["model.safetensors"] = content[:-1000]


def _moved(hub: Hub, _: bytes) -> None:
    hub.moved = "ab" * 20


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_changed, "model.safetensors: found a file with hash"),
        (_cut, "instead of its files; expected a hub that answers, or --from FOLDER"),
        (_moved, "another commit in the hub's answer"),
    ],
)
def test_what_is_not_the_commits_file_is_refused(
    damage: Callable[[Hub, bytes], None],
    message: str,
    stand_in: Build,
    hub: Hub,
    run: Run,
    tmp_path: Path,
) -> None:
    """Changed on the way, cut short, or another commit: nothing is written."""
    folder = stand_in(NLI)
    hub.add(shipped_recipes()[NLI].hub or "", COMMIT, folder)
    damage(hub, (folder / "model.safetensors").read_bytes())
    refused(run, tmp_path, message, "--revision", COMMIT)


@pytest.mark.parametrize("revision", ["main", COMMIT[:12]])
def test_an_unpinned_revision_is_refused_before_any_request(
    revision: str, stand_in: Build, hub: Hub, run: Run, tmp_path: Path
) -> None:
    """A branch can move to other weights."""
    hub.add(shipped_recipes()[NLI].hub or "", revision, stand_in(NLI))
    refused(run, tmp_path, "revision", "--revision", revision)
    assert hub.requests == []


def test_what_the_hub_lacks_is_named(stand_in: Build, hub: Hub, run: Run, tmp_path: Path) -> None:
    """A repository, a commit, the weights: each with what to do."""
    refused(run, tmp_path, "no such repository, or no access to it", "--revision", COMMIT)
    name = shipped_recipes()[NLI].hub or ""
    hub.add(name, "d" * 40, stand_in(NLI))
    refused(run, tmp_path, f"{name}@c0ffee000000: found no such commit", "--revision", COMMIT)
    hub.add(name, COMMIT, stand_in("bias-detection-model"))
    expected = "none of the weight files; expected model.safetensors or pytorch_model.bin"
    refused(run, tmp_path, expected, "--revision", COMMIT)


def test_an_unreachable_hub_says_what_to_do(hub: Hub, run: Run, tmp_path: Path) -> None:
    """Carry a local copy in."""
    with serving() as gone:
        address = gone.address
    refused(run, tmp_path, "or --from FOLDER", "--revision", COMMIT, address=address)
    assert hub.requests == []


def refused(run: Run, tmp_path: Path, message: str, *options: str, **more: str) -> None:
    """Expect one line, with no key, address or path of this machine in it, and no pack."""
    pack = tmp_path / "pack"
    shown = run("models", "export", NLI, "--out", pack, *options, **more)
    assert shown.returncode == 2, shown.stderr
    (line,) = [line for line in shown.stderr.splitlines() if line.startswith("error:")]
    assert message in line
    for secret in (KEY, "127.0.0.1", str(tmp_path), "Traceback"):
        assert secret not in shown.stdout + shown.stderr
    assert not pack.exists()
