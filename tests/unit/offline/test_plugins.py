"""A detector and an evaluator of another distribution, by name, through every offline command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.runs.result_files import read_run
from guardrail_service.commands.main import app
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.plugins import DETECTORS, EVALUATORS
from tests.plugged import unpack

MODULE = "acme_of_the_offline_tests"
SOURCE = """
from guardrail_offline import Evaluator, EvaluatorSpec, NoParameters
from guardrail_service.detectors.registry import Detector, DetectorSpec, Parameters
from guardrail_service.types import MetricSpec, Outcome


class Shouts(Evaluator[NoParameters]):
    spec = EvaluatorSpec(
        id="acme_shouts",
        name="Shouts",
        summary="How much of the answer is in capitals?",
        metrics=(MetricSpec("capitals", threshold=0.5),),
        inputs=frozenset({"answer"}),
        run_class="D",
        also=("acme:shouts",),
    )
    parameters = NoParameters

    def judge(self, view, parameters):
        letters = [c for c in view.answer if c.isalpha()]
        return {"capitals": sum(map(str.isupper, letters)) / len(letters)}


class Nothing(Parameters):
    pass


class Short(Detector[Nothing]):
    spec = DetectorSpec(
        id="acme_short",
        summary="Is the answer short?",
        metrics=(MetricSpec("model_passes", gating=True, boolean=True),),
        inputs=frozenset({"answer"}),
        default_thresholds={"model_passes": 0.5},
    )
    parameters = Nothing

    def reduce(self, sample, outputs, parameters):
        return Outcome.evaluated({"model_passes": float(len(sample.sample.answer) < 10)})
"""
ROWS = [
    {"key": "a", "question": "When?", "answer": "AT NINE"},
    {"key": "b", "question": "Where?", "answer": "behind the old house"},
]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a lab, beside a distribution that is installed as long as the test runs."""
    points = {
        EVALUATORS: {"acme_shouts": f"{MODULE}:Shouts", "acme_broken": f"{MODULE}:ABSENT"},
        DETECTORS: {"acme_short": f"{MODULE}:Short"},
    }
    folder = unpack(tmp_path, "acme-offline", points, {MODULE: SOURCE})
    monkeypatch.syspath_prepend(folder)
    for owner, name in (
        (CATALOGUE, "_evaluators"), (CATALOGUE, "plugged"),
        (REGISTRY, "detectors"), (REGISTRY, "_plugged"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, getattr(owner, name).copy())
    path = tmp_path / "lab.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    return path


def run(*words: str) -> tuple[int, str]:
    """Return how a command ends and what it prints."""
    found = CliRunner().invoke(app, list(words), env={"COLUMNS": "250"})
    return found.exit_code, found.output


@pytest.mark.parametrize("workers", [1, 2])
def test_both_are_evaluated_by_name(lab: Path, tmp_path: Path, workers: int) -> None:
    """In this process, and in others that know nothing but the name."""
    out = tmp_path / "out"
    names = "acme:shouts,acme_shouts,acme_short,rouge"
    code, shown = run(
        "evaluate", str(lab), "-e", names, "-o", str(out), "--workers", str(workers),
        "--shard-rows", "1",
    )  # fmt: skip
    assert code == 3, shown  # rouge has nothing to compare with
    found = read_run(out)
    values = {
        name: [row.scores[metric].value for row in found[name].rows]
        for name, metric in (("acme_shouts", "capitals"), ("acme_short", "model_passes"))
    }
    assert values == {"acme_shouts": [1.0, 0.0], "acme_short": [1.0, 0.0]}
    assert found["acme_shouts"].metrics["capitals"].threshold == 0.5


def test_both_are_listed_and_one_that_does_not_load_is_named(lab: Path) -> None:
    """It spoils nothing of the list."""
    code, shown = run("evaluators", "list")
    assert code == 0
    assert {"acme_shouts", "acme_short"} <= set(shown.split())
    assert "plug-in 'acme_broken'" in shown
    code, shown = run("evaluators", "show", "acme_shouts", "--json")
    assert (code, json.loads(shown)["metrics"][0]["key"]) == (0, "capitals")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("acme_shout", "did you mean 'acme_shouts'"),
        ("zzz", "evaluator ids"),
        ("acme_broken", "AttributeError on import"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_in_a_short_line(
    lab: Path, tmp_path: Path, name: str, says: str
) -> None:
    """With at most three suggestions."""
    code, shown = run("evaluate", str(lab), "-e", name, "-o", str(tmp_path / "out"))
    assert code == 2
    assert says in " ".join(shown.split())
    assert len(shown) < 400


def test_all_means_the_evaluators_that_are_shipped(lab: Path) -> None:
    """What else is installed, or was asked for before, does not change a run."""
    from guardrail_offline.evaluators.configured import configure

    configure(["acme_shouts"])
    assert "acme_shouts" not in {one.id for one in configure(["all"])}
