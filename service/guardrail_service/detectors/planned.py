"""Published detector ids this build has no code for yet.

A configuration that names one is well formed; `config check` says it cannot be served and start-up
refuses it. The file that implements a detector takes its entry from here: the registry refuses
an id that is declared twice.
"""

from guardrail_service.registry import REGISTRY, DetectorSpec, MetricSpec
from guardrail_service.types import Direction

_H2O = "h2o_sonar.evaluators."

TOXICITY = DetectorSpec(
    id="toxicity",
    h2o_id=_H2O + "toxicity_evaluator.ToxicityEvaluator",
    summary="Is the answer rude, hateful, obscene or threatening?",
    metrics=tuple(
        MetricSpec(key, Direction.LOWER, gating=key == "toxicity")
        for key in (
            "toxicity",
            "severe_toxicity",
            "obscene",
            "threat",
            "insult",
            "identity_attack",
        )
    ),
    inputs=frozenset({"answer"}),
    roles=frozenset({"toxicity"}),
    cost="model",
)
BIAS = DetectorSpec(
    id="bias",
    h2o_id=_H2O + "fairness_bias_evaluator.FairnessBiasEvaluator",
    summary="Does the answer stereotype, or frame a topic one-sidedly?",
    metrics=(
        MetricSpec("fairness_bias", Direction.LOWER, gating=True),
        MetricSpec("gender", Direction.LOWER),
        MetricSpec("group", Direction.LOWER),
        MetricSpec("framing", Direction.LOWER),
    ),
    inputs=frozenset({"answer"}),
    roles=frozenset({"bias"}),
    cost="model",
)
for _spec in (TOXICITY, BIAS):
    REGISTRY.declare(_spec)
