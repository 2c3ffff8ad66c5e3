"""The seeds' models together: a stand-in `reference` pack that serves every model detector."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from guardrail_models import stand_ins
from guardrail_models.export import ExportOptions, export_model
from guardrail_models.recipes import shipped_recipes
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings
from guardrail_service.types import Passage, Sample, State

Build = Callable[[str], Path]
GATES = {
    "hallucination": "hallucination",
    "groundedness": "groundedness",
    "answer_relevancy_sentence": "answer_relevancy",
    "context_relevancy_soft": "recall_relevancy",
    "toxicity": "toxicity",
    "bias": "fairness_bias",
}


@pytest.mark.parametrize("grounding", ["hhem-1.0-open", "hhem-2.1-open"])
def test_a_stand_in_reference_pack_judges_with_every_model_detector(
    grounding: str, stand_in: Build, tmp_path: Path
) -> None:
    """One command per model, then a start: golden rows run through the detectors' sessions."""
    pack = tmp_path / "reference"
    names = ("bge-small-en-v1.5", grounding, "detoxify-unbiased", "bias-detection-model")
    for name in names:
        recipe = stand_ins.tiny_recipe(shipped_recipes()[name], 256)
        options = ExportOptions(out=pack, quantisation="int8-dynamic", local=stand_in(name))
        export_model(recipe, options)
    path = tmp_path / "reference.json"
    thresholds = {name: {key: 0.5} for name, key in GATES.items()}
    path.write_text(json.dumps({"calibrated_thresholds": thresholds, "evaluator_ids": list(GATES)}))
    runtime = Runtime(Settings(model_pack=str(pack), config=(path,), workers=1))
    sample = Sample(
        "Delivery takes three to five working days. The invoice is due on 14 March 2025.",
        "How long does delivery take?",
        (Passage("Delivery takes five days."), Passage("Payment must arrive by 14 March.")),
    )
    verdict = runtime.guard.check(sample)
    again = runtime.guard.check(sample)
    runtime.close()
    states = {name: result.state for name, result in verdict.detectors.items()}
    assert states == dict.fromkeys(GATES, State.EVALUATED)
    for name, result in verdict.detectors.items():
        scores = {key: metric.score for key, metric in result.metrics.items()}
        assert scores == {k: m.score for k, m in again.detectors[name].metrics.items()}
