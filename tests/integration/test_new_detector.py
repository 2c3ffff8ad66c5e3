"""A new built-in detector or evaluator is one file: nothing lists, counts or names the others."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import COMMAND, environment, running
from tests.plugged import NEW_EVALUATOR

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(600)
NEW_FILE = '''
"""Does the answer exclaim? Added by a test."""

from __future__ import annotations

from collections.abc import Sequence

from guardrail_service.detectors.registry import Detector, DetectorSpec, Parameters, detector
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Coverage, MetricSpec, Outcome, RowOutput


class ExclaimsParameters(Parameters):
    """Nothing to set."""


@detector
class Exclaims(Detector[ExclaimsParameters]):
    """1.0 for an answer without an exclamation mark."""

    spec = DetectorSpec(
        id="exclaims",
        summary="Does the answer exclaim?",
        metrics=(MetricSpec("calm", gating=True, boolean=True),),
        inputs=frozenset({"answer"}),
        default_thresholds={"calm": 0.5},
    )
    parameters = ExclaimsParameters

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: ExclaimsParameters,
    ) -> Outcome:
        """Return whether the answer is calm."""
        size, calm = len(sample.answer), float("!" not in sample.answer)
        return Outcome.evaluated({"calm": calm}, (), Coverage((size, size)))
'''


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of both packages, each with one file more, as a folder of the import path."""
    top = tmp_path_factory.mktemp("checkout")
    for name in ("models", "configs", "VERSION"):
        (top / name).symlink_to(ROOT / name)
    ignored = shutil.ignore_patterns("__pycache__")
    service = top / "service"
    shutil.copytree(ROOT / "service", service, ignore=ignored)
    (service / "guardrail_service" / "detectors" / "exclaims.py").write_text(NEW_FILE, "utf-8")
    greets = service / "guardrail_offline" / "evaluators" / "greets.py"
    greets.write_text(NEW_EVALUATOR, "utf-8")
    return service


@pytest.mark.parametrize(
    ("suite", "new"),
    [
        ("test_detectors.py", "exclaims"),
        ("test_evaluators.py", "greets or exclaims"),  # a detector is an evaluator, too
    ],
)
def test_it_keeps_the_contract_of_its_kind(copied: Path, suite: str, new: str) -> None:
    """The conformance suite takes it in by itself, and its other tests stay as they are."""
    selected = [ROOT / "tests" / "conformance" / suite, "-k", new]
    done = run(copied, "-m", "pytest", "-q", "-p", "no:cacheprovider", *selected)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_it_is_configured_and_served(copied: Path, tiny: Path, tmp_path: Path) -> None:
    """`config check`, the list of detectors and a check know it."""
    path = tmp_path / "calm.json"
    path.write_text(json.dumps({"evaluator_ids": ["exclaims"]}))
    done = run(copied, *COMMAND[1:], "config", "check", path, "--pack", tiny)
    assert done.returncode == 0, done.stderr
    options = ("--port", "0", "--pack", tiny, "--config", path)
    with running(*options, PYTHONPATH=str(copied)) as served, served.client() as client:
        found = {one["id"]: one for one in client.get("/v1/detectors").json()["detectors"]}
        reply = client.post("/v1/check", json={"answer": "Hurry!"}).json()
    assert found["exclaims"]["served"]
    assert found["groundedness"]["providers"] == {"embedding": "cpu"}
    assert reply["decision"] == "flag"


def test_both_are_evaluated_with(copied: Path, tiny: Path, tmp_path: Path) -> None:
    """`evaluators show` describes them, and a run scores answers with them."""
    shown = run(copied, *COMMAND[1:], "evaluators", "show", "greets")
    assert shown.returncode == 0, shown.stderr
    assert "Does the answer say hello?" in shown.stdout
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps({"question": "Hi?", "answer": "Hello!"}) + "\n")
    out = tmp_path / "out"
    options = ("-e", "greets,exclaims", "--out", out, "--pack", tiny)
    done = run(copied, *COMMAND[1:], "evaluate", cases, *options)
    assert done.returncode == 0, done.stderr
    for name, metric in (("greets", "greets"), ("exclaims", "calm")):
        (row,) = json.loads((out / "results" / f"{name}.json").read_text())["results"]
        assert row[metric] == float(name == "greets")


def run(copied: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy in place of the package."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment(PYTHONPATH=str(copied)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
