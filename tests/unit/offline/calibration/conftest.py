"""The files of a fit: a lab, its labels and the base policy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.calibration.fit import FitInputs, FitResult, run_fit
from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.labels import Label, labels_jsonl
from guardrail_offline.calibration.scored_lab import ScoredLab, write_lab
from tests.unit.offline.calibration import labs

TEN = FitOptions(alpha=0.10, delta=0.10)


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., FitInputs]:
    """Write a lab, its labels and the base policy; return what a fit reads."""

    def write(lab: ScoredLab | None = None, **more: Any) -> FitInputs:
        made, passes = labs.lab(160)
        scored = lab or made
        (tmp_path / "lab.jsonl").write_text("\n".join(write_lab(scored)) + "\n")
        words = [
            Label(key, "pass" if good else "fail", at=f"2026-11-{1 + n % 9:02}")
            for n, (key, good) in enumerate(passes.items())
        ]
        if not (tmp_path / "labels.jsonl").exists():
            (tmp_path / "labels.jsonl").write_text(labels_jsonl(words))
        (tmp_path / "base.json").write_text(json.dumps(labs.BASE))
        inputs = {
            "lab": tmp_path / "lab.jsonl",
            "labels": tmp_path / "labels.jsonl",
            "base": tmp_path / "base.json",
        }
        return FitInputs(**{**inputs, **more})

    return write


Files = Callable[..., FitInputs]


def run(files: Files, options: FitOptions = TEN, **more: Any) -> FitResult:
    """Return a fit of the files."""
    return run_fit(files(**more), options, labs.SERVING)
