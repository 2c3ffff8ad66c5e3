"""A workflow's folder as its nine steps write it, with invented numbers and hostile names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from guardrail_offline.model_risk.step_data import STEP_FILES

HOSTILE = '<script>alert(1)</script> & "quotes"'
METRICS = (
    ("answer_correctness.answer_correctness", "answer_correctness", "answer_correctness"),
    ("faithfulness.faithfulness", "faithfulness", "faithfulness"),
    ("groundedness.groundedness", "groundedness", "groundedness"),
)
TEXT = "Guests may stay for 14 nights. Parking costs 5 euros per night. Dogs stay for free."


def rate(x: int, n: int, low: float, high: float) -> dict[str, Any]:
    """Return a rate as steps write it."""
    return {"x": x, "n": n, "rate": x / n, "interval95": [low, high]}


def mean(n: int, value: float) -> dict[str, Any]:
    """Return a mean as steps write it."""
    return {"n": n, "mean": value, "interval95": [value - 0.05, value + 0.05]}


def _metric(place: int) -> dict[str, Any]:
    name, evaluator, key = METRICS[place]
    return {"metric": name, "evaluator": evaluator, "key": key, "direction": "higher_is_better"}


def _threshold(place: int, failing: dict[str, Any], calibrated: bool) -> dict[str, Any]:
    return {
        **_metric(place),
        "before": 0.75,
        "threshold": 0.625 if calibrated else 0.75,
        "origin": "calibrated" if calibrated else "fitted",
        "calibrated": calibrated,
        "gates": True,
        "promise": {"alpha": 0.1, "delta": 0.05} if calibrated else None,
        "why": None if calibrated else "12 labelled as good, 29 are needed for this promise",
        "failing": failing,
    }


def _weak(place: int, **where: Any) -> dict[str, Any]:
    return {
        **_metric(place),
        **where,
        "threshold": 0.625,
        "n": 12,
        "failing": rate(9, 12, 0.428, 0.945),
        "mean": mean(12, 0.31),
        "rest": {"n": 48, "failing": rate(4, 48, 0.023, 0.2), "mean": mean(48, 0.82)},
        "difference": 0.667,
        "p": 0.00001,
        "p_holm": 0.0004,
        "weak": True,
        "box": [0.0, 0.1, 0.3, 0.5, 0.7],
        "words": "not shown",
    }


RESULTS: dict[str, dict[str, Any]] = {
    "topics": {
        "chunks": [
            {"id": f"guide.md#{n}", "document": "guide.md", "start": 0, "end": len(TEXT),
             "topic": n % 2, "text": TEXT} for n in range(6)
        ],
        "topics": [
            {"id": 0, "title": "parking, night, euros", "size": 3, "silhouette": 0.41,
             "excluded": False, "words": [{"word": "parking", "weight": 1.0}]},
            {"id": 1, "title": HOSTILE, "size": 3, "silhouette": 0.29, "excluded": False,
             "words": [{"word": "ignore", "weight": 1.0}]},
        ],
        "quality": {"method": "kmeans", "silhouette": 0.35, "noise": 0},
    },
    "generation": {
        "cases": [{"key": f"case-{n}", "generator": "numerical_reasoning", "topic": "0",
                   "question": "Q?"} for n in range(60)],
        "by_generator": {"numerical_reasoning": 24, "yes_or_no": 36},
    },
    "validation": {
        "kept": [f"case-{n}" for n in range(58)],
        "rejected": [{"key": "case-58", "reason": "near duplicate", "values": {"cosine": 0.99}},
                     {"key": "case-59", "reason": "near duplicate", "values": {"cosine": 0.98}}],
    },
    "evaluation": {
        "scores": {"sha256": "0" * 64, "cases": 60, "answered": 58},
        "target": {"target": "https://rag.example.com/v1"},
        "problems": 3,
        "metrics": [
            {**_metric(place), "low": 0.0, "high": 1.0, "threshold": 0.75, "origin": "fitted",
             **mean(58, value), "missing": {"no_answer": 2}, "failing": failing}
            for place, (value, failing) in enumerate(
                ((0.71, rate(13, 58, 0.125, 0.353)), (0.93, rate(3, 58, 0.011, 0.144)),
                 (0.02, rate(0, 58, 0.0, 0.05)))
            )
        ],
    },
    "calibration": {
        "thresholds": [
            _threshold(0, rate(13, 58, 0.125, 0.353), True),
            _threshold(1, rate(3, 58, 0.011, 0.144), False),
            _threshold(2, rate(0, 58, 0.0, 0.05), True),
        ],
        "agreement": [
            {"metric": METRICS[0][0],
             "before": {"agree": rate(30, 40, 0.588, 0.873), "kappa": 0.51},
             "after": {"agree": rate(36, 40, 0.763, 0.972), "kappa": 0.78}, "good": 28, "bad": 12}
        ],
        "labels": {"cases": 40, "pass": 28, "fail": 12, "abstain": 0, "annotators": 2,
                   "kappa": {"kappa": 0.74}},
        "overruled": [
            {"key": "case-3", "question": "Do dogs pay?", "answer": "Dogs stay for free.",
             "label": "pass", "failed": [METRICS[0][0]]}
        ],
    },
    "failures": {
        "failures": [
            {"key": f"case-{n}", "failed": [METRICS[0][0]], "topic": "0",
             "generator": "numerical_reasoning", "cluster": 0, "spread": None} for n in range(13)
        ],
        "clusters": [
            {"id": 0, "size": 13, "keys": [], "words": "not shown", "label": None,
             "features": [{"feature": "generator", "value": "numerical_reasoning",
                           "inside": rate(9, 13, 0.386, 0.909), "outside": rate(15, 45, 0.2, 0.49),
                           "p_holm": 0.03}]}
        ],
        "quality": {"silhouette": 0.4, "clusters": 1, "oob_accuracy": 0.86},
    },
    "weaknesses": {
        "marginal": [],
        "bivariate": [],
        "weak": [
            _weak(0, dimension="generator", value="numerical_reasoning"),
            _weak(0, dimensions=["topic", "generator"], values=[HOSTILE, "yes_or_no"]),
        ],
        "grid": [
            {"metric": METRICS[0][0], "rows": ["parking, night, euros", HOSTILE],
             "columns": ["numerical_reasoning", "yes_or_no"],
             "cells": [[{"n": 12, "mean": 0.3, "failing": 9, "scores": []}, None],
                       [{"n": 12, "mean": 0.8, "failing": 1, "scores": []},
                        {"n": 20, "mean": 0.9, "failing": 0, "scores": []}]]}
        ],
        "family": {"tests": 34, "alpha": 0.05},
    },
    "variations": {
        "rates": [
            {"metric": METRICS[0][0], "perturbation": "random_keyboard_typos",
             "intensity": "medium", "generator": None, "topic": None,
             "flips": rate(6, 20, 0.119, 0.543), "pass_to_fail": 5, "expectation": "stay"},
            {"metric": METRICS[0][0], "perturbation": "comma", "intensity": "medium",
             "generator": None, "topic": None, "flips": rate(0, 20, 0.0, 0.168),
             "pass_to_fail": 0, "expectation": "stay"},
        ],
        "flips": [
            {"metric": METRICS[0][0], "source": "case-5", "variant": "case-5-v1",
             "perturbation": "random_keyboard_typos", "intensity": "medium", "before": 0.9,
             "after": 0.2, "kind": "pass_to_fail", "threshold": 0.625,
             "question": "What does parking cost?", "variant_question": "What doss parking cist?"}
        ],
        "unpaired": 0,
    },
    "adversarial": {
        "metrics": [
            {**_metric(0), "baseline": mean(58, 0.71), "adversarial": mean(30, 0.38), "ks": 0.44,
             "ks_interval95": [0.25, 0.62], "wasserstein": 0.31,
             "wasserstein_interval95": [0.2, 0.42], "p": 0.0001, "p_holm": 0.0003, "shifted": True,
             "failing": {"baseline": rate(13, 58, 0.125, 0.353),
                         "adversarial": rate(18, 30, 0.406, 0.773)}, "by_generator": []}
        ],
        "cases": 30,
    },
}  # fmt: skip
TITLES = (
    "Topic modelling", "Test generation", "Test validation", "Automated evaluation",
    "Human calibration", "Failure clustering", "Weakness detection",
    "Robustness: input variations", "Robustness: adversarial inputs",
)  # fmt: skip


def _case(number: int, **changed: Any) -> dict[str, Any]:
    return {
        "key": f"case-{number}",
        "input": "What does parking cost?",
        "corpus": ["guide.md"],
        "context": ["Dogs stay for free."],
        "categories": ["generated", "generator:numerical_reasoning"],
        "relationships": [
            {"type": "source_span", "target": "guide.md[31:63]", "target_type": "text_span"}
        ],
        "expected_output": "5 euros",
        "actual_output": "I do not know.",
        "reference_contexts": [TEXT],
        "model_key": "target",
        **changed,
    }


def lab() -> dict[str, Any]:
    """Return the answered lab: retrieval missed the passage, held it, or the corpus lacks it."""
    cases = [
        _case(0),
        _case(1, input="May I bring a horse?", expected_output="Horses need a permit.",
              reference_contexts=[], relationships=[]),
        _case(2, context=[TEXT]),
        _case(3, input="Do dogs pay?", expected_output="No.", actual_output="Dogs stay for free.",
              context=["Dogs stay for free."]),
        _case(5, actual_output="5 euros", context=[TEXT]),
        _case(6, input="Is parking free?", expected_output="No", context=["No dogs."]),
        _case(7, input="Who is the king?", expected_output="It is not said.", answerable=False),
    ]  # fmt: skip
    return {"name": "made", "description": "", "dataset": {"inputs": cases}, "models": []}


def make_workflow(root: Path, without: tuple[str, ...] = (), skipped: tuple[str, ...] = ()) -> Path:
    """Write the folder and return it; steps may be missing or skipped."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "documents").mkdir(exist_ok=True)
    (root / "documents" / "guide.md").write_text(TEXT, "utf-8")
    definition = {
        "schema_version": "1",
        "name": "Guest desk assistant",
        "description": "Answers guests' questions from the house rules. " + HOSTILE,
        "documents": [{"path": "documents/guide.md", "sha256": "a" * 64}],
        "cases": None,
        "labels": "labels.csv",
        "target": {"target": "https://rag.example.com/v1", "model": "desk-1", "contexts": False},
        "judge": None,
        "pack": "embedded",
        "steps": {},
    }
    (root / "workflow.json").write_text(json.dumps(definition), "utf-8")
    for number, (step, file) in enumerate(STEP_FILES.items(), start=1):
        if step in without:
            continue
        content = {
            "schema_version": "1",
            "step": step,
            "number": number,
            "title": TITLES[number - 1],
            "state": "skipped" if step in skipped else "done",
            "reason": "there was nothing to do" if step in skipped else None,
            "parameters": {"seed": 7, "named": [HOSTILE]},
            "judge": None,
            "depends_on": [],
            "inputs": {"cases": 60},
            "results": {} if step in skipped else RESULTS[step],
            "files": [],
            "notes": ["one document was not read: \x00" + HOSTILE] if step == "topics" else [],
            "timings": {},
        }
        (root / file).write_text(json.dumps(content), "utf-8")
    (root / "4-evaluation").mkdir(exist_ok=True)
    (root / "4-evaluation" / "lab.json").write_text(json.dumps(lab()), "utf-8")
    return root
