"""The nine steps, what each rests on, and functions that run them over a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guardrail_offline.workflow.adversarial import challenge
from guardrail_offline.workflow.evaluation import evaluate
from guardrail_offline.workflow.failures import cluster
from guardrail_offline.workflow.folder import StepName, StepRecord, opened, step_named
from guardrail_offline.workflow.generated_tests import generate_tests, validate_tests
from guardrail_offline.workflow.people_thresholds import calibrate
from guardrail_offline.workflow.step_engine import Step, StepEngine, StepStatus
from guardrail_offline.workflow.topics import model_topics
from guardrail_offline.workflow.variations import vary
from guardrail_offline.workflow.weak_cells import detect

_JUDGE = ("judge.url", "judge.model", "judge.kind", "judge.options")
"""Answers rest on these; whether they are asked for now or replayed moves nothing."""
_ASKED = ("target", *_JUDGE, "steps.evaluation")
NINE: Mapping[StepName, Step] = {
    step.name: step
    for step in (
        Step("topics", model_topics, chosen=("documents",), stored=("documents",), models=True),
        Step(
            "generation",
            generate_tests,
            parts=(("topics", "chunks"), ("topics", "topics")),
            chosen=_JUDGE,
            stored=("documents",),
        ),
        Step(
            "validation",
            validate_tests,
            parts=(("topics", "chunks"), ("generation", "digest")),
            stored=("documents", "cases"),
            models=True,
        ),
        Step(
            "evaluation",
            evaluate,
            parts=(("validation", "digest"),),
            chosen=("target", *_JUDGE),
            stored=("target",),
            models=True,
        ),
        Step(
            "calibration",
            calibrate,
            parts=(("evaluation", "scores"), ("evaluation", "metrics")),
            stored=("labels",),
        ),
        Step(
            "failures",
            cluster,
            parts=(
                ("evaluation", "scores"),
                ("calibration", "thresholds"),
                ("calibration", "verdicts"),
            ),
            models=True,
        ),
        Step(
            "weaknesses",
            detect,
            parts=(("evaluation", "scores"), ("calibration", "thresholds")),
        ),
        Step(
            "variations",
            vary,
            parts=(("evaluation", "scores"), ("calibration", "thresholds")),
            chosen=_ASKED,
            stored=("target",),
            models=True,
        ),
        Step(
            "adversarial",
            challenge,
            parts=(
                ("topics", "chunks"),
                ("topics", "topics"),
                ("evaluation", "scores"),
                ("calibration", "thresholds"),
            ),
            chosen=(*_ASKED, "steps.generation"),
            stored=("documents", "target"),
            models=True,
        ),
    )
}


def engine() -> StepEngine:
    """Return what runs the nine steps; it keeps loaded models."""
    return StepEngine(NINE)


def run(folder: Path, step: str | None = None, **options: Any) -> list[StepName]:
    """Run a workflow's steps that are missing or stale, or one by itself.

    Args:
        folder: Of the workflow.
        step: Name or number of one step; None for all.
        options: See `StepEngine.run`.

    Returns:
        The steps that ran.

    Raises:
        ConfigurationError: If there is no workflow or step, or it cannot run.
    """
    only = None if step is None else step_named(step)
    return engine().run(opened(folder), only, **options)


def status(folder: Path) -> list[StepStatus]:
    """Return the steps of a workflow as they stand."""
    return engine().status(opened(folder))


def results(folder: Path, step: str) -> StepRecord | None:
    """Return a finished step of a workflow; None where it has not run."""
    return opened(folder).record(step_named(step))
