"""Answers about images: whether pictures and passages show what is said, and answer the question.

Only a judge that sees can tell. One that says it saw fewer images than it was sent, or whose host
takes none, gives no value: `unverified`, `needs_vision`.
"""

from __future__ import annotations

from guardrail_offline.evaluators.catalogue import CATALOGUE, EvaluatorSpec
from guardrail_offline.evaluators.judges import NeedsJudge
from guardrail_service.types import MetricSpec

CATALOGUE.add(
    NeedsJudge(
        EvaluatorSpec(
            id="image_faithfulness",
            name="Image faithfulness",
            summary="Do the case's images and passages show what the answer claims?",
            metrics=(MetricSpec("image_faithfulness", threshold=0.75),),
            inputs=frozenset({"question", "answer", "contexts", "images"}),
            run_class="J",
            also=("ragas:multimodal_faithfulness", "llama_index:multi_modal_faithfulness"),
            original="J",
            needs_judge=True,
            deterministic=False,
            avid="E0400",
            tags=("judge", "nist:valid-reliable"),
        )
    )
)
CATALOGUE.add(
    NeedsJudge(
        EvaluatorSpec(
            id="image_relevancy",
            name="Image relevancy",
            summary="Does the answer say what the question asks about the case's images?",
            metrics=(MetricSpec("image_relevancy", threshold=0.75),),
            inputs=frozenset({"question", "answer", "contexts", "images"}),
            run_class="J",
            also=("ragas:multimodal_relevance", "llama_index:multi_modal_relevancy"),
            original="J",
            needs_judge=True,
            deterministic=False,
            tags=("judge", "nist:valid-reliable"),
        )
    )
)
