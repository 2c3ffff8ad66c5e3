"""The example plug-in, installed as its users install it, through serving and offline commands."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import environment

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for the import path that the plug-in's wheel is installed in."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PLUGIN, folder / "source")  # a build leaves files beside its source
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--target", str(folder / "site")]
    subprocess.run([*pip, *options, str(folder / "source")], check=True, capture_output=True)
    return folder / "site"


def test_it_serves_streams_is_evaluated_and_calibrated(installed: Path) -> None:
    """The script of the example asserts each step; here it has to come to its end."""
    done = subprocess.run(
        [sys.executable, str(PLUGIN / "try_it.py")],
        env=environment(PYTHONPATH=str(installed)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = [line.partition(":")[0] for line in done.stdout.splitlines()]
    serving = ["config check", "detectors", "check", "stream"]
    assert steps == [*serving, "evaluate", "config check", "calibrate fit"]


def test_a_plug_in_that_nobody_names_is_not_imported(installed: Path, tmp_path: Path) -> None:
    """Nor can it stop a start: only what a configuration names is loaded."""
    (installed / "acme_guardrail" / "__init__.py").rename(tmp_path / "kept")
    try:
        (installed / "acme_guardrail" / "__init__.py").write_text("raise RuntimeError")
        plain, named = tmp_path / "plain.json", tmp_path / "named.json"
        plain.write_text(json.dumps({"evaluator_ids": ["looping"]}))
        named.write_text(json.dumps({"evaluator_ids": ["acme_pressure"]}))
        results = [checked(path, installed) for path in (plain, named)]
    finally:
        (tmp_path / "kept").replace(installed / "acme_guardrail" / "__init__.py")
    assert [done.returncode for done in results] == [0, 2]
    assert "plug-in 'acme_pressure' (rag_guardrail.detectors): found RuntimeError" in " ".join(
        results[1].stderr.split()
    )


def checked(path: Path, installed: Path) -> subprocess.CompletedProcess[str]:
    """Run `config check` on one file with the plug-in installed."""
    return subprocess.run(
        [sys.executable, "-m", "guardrail_service.commands.main", "config", "check", str(path)],
        env=environment(PYTHONPATH=str(installed)),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_committed_model_is_what_the_script_makes(tmp_path: Path) -> None:
    """So nobody has to believe a binary file."""
    shutil.copytree(PLUGIN, tmp_path / "plugin", ignore=shutil.ignore_patterns("pack"))
    script = tmp_path / "plugin" / "make_model.py"
    subprocess.run([sys.executable, str(script)], check=True, env=environment())
    made = tmp_path / "plugin" / "acme_guardrail" / "pack"
    for name in ("model.onnx", "tokenizer.json", "CARD.md"):
        kept = PLUGIN / "acme_guardrail" / "pack" / name
        assert (made / name).read_bytes() == kept.read_bytes(), name
