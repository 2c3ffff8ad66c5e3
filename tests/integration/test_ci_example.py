"""examples/ci and docs/ci.md are true: builds end as the page says, and its tests pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.integration.conftest import PATIENCE_S, environment

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "ci"
PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
pytestmark = pytest.mark.timeout(600)


def checked(answers: str, out: Path) -> int:
    """Run the example's script on some answers and return how it ended."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    words = ["sh", str(EXAMPLE / "check.sh"), str(EXAMPLE / answers), str(out)]
    return subprocess.run(
        words, env=environment(PATH=path), timeout=2 * PATIENCE_S, check=False
    ).returncode


def test_a_change_that_keeps_the_answers_passes(tmp_path: Path) -> None:
    """With files for the build server, in which nothing failed."""
    assert checked("change.jsonl", tmp_path) == 0
    assert "✅ change: 1 bounds met" in (tmp_path / "bounds.md").read_text("utf-8")
    assert "✅ change against main" in (tmp_path / "compared.md").read_text("utf-8")
    for name in ("bounds.xml", "compared.xml"):
        root = ElementTree.parse(tmp_path / name).getroot()  # noqa: S314 - our own
        assert (root.get("failures"), root.get("errors")) == ("0", "0")


def test_a_change_that_breaks_the_answers_does_not(tmp_path: Path) -> None:
    """The bound is missed, so the build stops there."""
    assert checked("broken.jsonl", tmp_path) == 1
    assert "❌ change: 1 of 1 bounds not met" in (tmp_path / "bounds.md").read_text("utf-8")


@pytest.mark.parametrize("source", ["example", "page"])
def test_bounds_as_tests_pass(tmp_path: Path, source: str) -> None:
    """As files and as the page shows them."""
    for name in ("change.jsonl", "test_answers.py"):
        (tmp_path / name).write_bytes((EXAMPLE / name).read_bytes())
    if source == "page":
        (tmp_path / "test_answers.py").write_text(BLOCKS["python"])
    options = ["-p", "guardrail_offline.pytest_plugin", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env=environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        timeout=PATIENCE_S,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_workflow_runs_what_exists() -> None:
    """The script, with files that it writes."""
    script = (EXAMPLE / "check.sh").read_text("utf-8")
    steps = yaml.safe_load(BLOCKS["yaml"])["jobs"]["answers"]["steps"]
    (check,) = [step["run"] for step in steps if "check.sh" in step.get("run", "")]
    assert check.split()[1] == "examples/ci/check.sh"
    for name in re.findall(r"out/(\w+\.md)", steps[-1]["run"]):
        assert f'"$2/{name}"' in script
