"""Steps 2 and 3: generates test cases from the documents' passages, and keeps those that hold."""

from __future__ import annotations

from typing import Any

from guardrail_offline.datasets.cases import Case, case_json
from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.workflow.evaluation import LAB, write_lab
from guardrail_offline.workflow.step_engine import StepContext, StepOutcome
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.provenance import sha256_of


def generate_tests(context: StepContext) -> StepOutcome:
    """Return cases from the passages of the chosen topics."""
    empty: dict[str, Any] = {"digest": "", "cases": [], "by_generator": {}, "coverage": {}}
    return StepOutcome(empty, skipped="no passage to generate from")


def validate_tests(context: StepContext) -> StepOutcome:
    """Return the cases that hold, and those that people made; with reasons for the others."""
    name = context.definition.cases
    lab = [] if name is None else list(open_lab(context.folder.root / name).cases())
    if not lab:
        expected = "documents, or guardrail workflow edit --cases FILE"
        raise ConfigurationError(str(context.folder.root), "no case", expected)
    write_lab(context.own / LAB, lab, context.definition.name)
    results: dict[str, Any] = {
        "kept": [case.key for case in lab],
        "digest": sha256_of([case_json(case) for case in lab]),
        "rejected": [],
        "figures": {},
        "coverage": {},
    }
    notes = [f"{len(lab)} cases are made by people"]
    inputs = {"generated": 0, "curated": len(lab)}
    return StepOutcome(results, inputs, context.relative([context.own / LAB]), notes)


def adversarial_cases(context: StepContext) -> tuple[list[Case], list[str]]:
    """Return valid adversarial cases from the same passages, and what to say about them."""
    return [], ["no passage to generate from"]
