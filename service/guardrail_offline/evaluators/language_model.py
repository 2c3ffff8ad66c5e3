"""Perplexity and GPTScore: how likely a causal language model finds a text.

The pack's role `causal_lm` gives log probabilities, or a model that somebody serves; without either
these have no value. Thresholds of
the seed documents (0.5 for a number that is at least 1, infinity) can never or always pass, so
there is no default: calibrate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import (
    CATALOGUE,
    LOWER,
    UNBOUNDED,
    Evaluator,
    EvaluatorSpec,
    Input,
    NoParameters,
    evaluator,
)
from guardrail_offline.hosts.errors import HostError
from guardrail_service.errors import NotScorable
from guardrail_service.types import MetricSpec, Role, State

_H2O = "h2o_sonar.evaluators."
_ROLES: frozenset[Role] = frozenset({"causal_lm"})
_OTHER_WORDS = "{prompt} {first} In other words, "
_TLDR = "{prompt} {first} Tl;dr\n"
_ASKED = (
    "Answer the question based on the conversation between a human and AI. Question: {prompt} "
    "(a) Yes. (b) No. Conversation: {first} Answer: "
)


def mean_nll(log_probabilities: npt.NDArray[Any]) -> float:
    """Return the mean negative log likelihood per token, in nats.

    Raises:
        NotScorable: If there is no token, or a value is no number.
    """
    values = np.asarray(log_probabilities, dtype=np.float64)
    if not values.size or not np.isfinite(values).all():
        raise NotScorable("no token or no number")
    return max(0.0, float(-values.mean()))


def perplexity(log_probabilities: npt.NDArray[Any]) -> float:
    """Return exp of the mean negative log likelihood: at least 1, lower is likelier."""
    with np.errstate(over="ignore"):
        return float(np.exp(mean_nll(log_probabilities)))


@evaluator
class Perplexity(Evaluator[NoParameters]):
    """Of the answer alone."""

    spec = EvaluatorSpec(
        id="perplexity",
        name="Perplexity",
        summary="How surprising is the answer to a language model?",
        metrics=(MetricSpec("perplexity", LOWER, low=1.0, high=UNBOUNDED),),
        inputs=frozenset({"answer"}),
        run_class="L",
        h2o_id=_H2O + "perplexity_evaluator.PerplexityEvaluator",
        original="L",
        roles=_ROLES,
        tags=("language-model", "nist:valid-reliable"),
    )
    parameters = NoParameters

    def judge(self, view: CaseView, parameters: NoParameters) -> Mapping[str, float]:
        """Return the perplexity of the answer."""
        return {"perplexity": perplexity(_log_probabilities(view, "", view.answer))}


def _log_probabilities(view: CaseView, prompt: str, text: str) -> npt.NDArray[Any]:
    """Return what the model says; a served one that does not is the case's error, by its code."""
    try:
        return view.models.log_probabilities(prompt, text)
    except HostError as error:
        raise Unavailable(State.ERROR, error.code) from error


Texts = Callable[[CaseView], Sequence[tuple[str, str]]]


class GptScore(Evaluator[NoParameters]):
    """Mean negative log likelihood of a target after an aspect's prompt; lower is better.

    Args:
        spec: Its metrics are the aspects.
        frame: Where the prompt and the first text go.
        prompts: By metric key.
        texts: The pairs (first text, target) to average over.

    Source:
        J. Fu et al., "GPTScore: evaluate as you desire", 2023; prompts of the H2O manual.
    """

    parameters = NoParameters

    def __init__(
        self, spec: EvaluatorSpec, frame: str, prompts: Mapping[str, str], texts: Texts
    ) -> None:
        self.spec = spec
        self._frame = frame
        self._prompts = dict(prompts)
        self._texts = texts

    def judge(self, view: CaseView, parameters: NoParameters) -> Mapping[str, float]:
        """Return one number per aspect."""
        pairs = self._texts(view)
        return {key: self._score(view, prompt, pairs) for key, prompt in self._prompts.items()}

    def _score(self, view: CaseView, prompt: str, pairs: Sequence[tuple[str, str]]) -> float:
        scores = []
        for first, target in pairs:
            start = self._frame.replace("{prompt}", prompt).replace("{first}", first)
            scores.append(mean_nll(_log_probabilities(view, start, target)))
        return sum(scores) / len(scores)


def _both_ways(view: CaseView) -> list[tuple[str, str]]:
    expected, answer = view.expected, view.answer
    return [(expected, answer), (answer, expected)]


def _conversation(view: CaseView) -> list[tuple[str, str]]:
    return [(f"Human: {view.question} AI: {view.answer}", "Yes")]


def _summary(view: CaseView) -> list[tuple[str, str]]:
    return [(view.question, view.answer)]


def _add(
    id_: str,
    name: str,
    h2o: str,
    inputs: frozenset[Input],
    frame: str,
    prompts: Mapping[str, str],
    texts: Texts,
) -> None:
    spec = EvaluatorSpec(
        id=id_,
        name=name,
        summary="How likely is the text to a language model, aspect by aspect?",
        metrics=tuple(MetricSpec(key, LOWER, high=UNBOUNDED) for key in prompts),
        inputs=inputs,
        run_class="L",
        h2o_id=_H2O + h2o,
        original="L",
        roles=_ROLES,
        tags=("language-model", "nist:valid-reliable"),
    )
    CATALOGUE.add(GptScore(spec, frame, prompts, texts))


_add(
    "machine_translation_gptscore",
    "Machine translation (GPTScore)",
    "gptscore_machine_translation_evaluator.GptScoreMachineTranslationEvaluator",
    frozenset({"expected", "answer"}),
    _OTHER_WORDS,
    {
        "accuracy": "Rewrite the following text with its core information and consistent facts:",
        "fluency": "Rewrite the following text to make it more grammatical and well-written:",
        "multidimensional quality metrics": "Rewrite the following text into high-quality text "
        "with its core information:",
    },
    _both_ways,
)
_add(
    "question_answering_gptscore",
    "Question answering (GPTScore)",
    "gptscore_question_answering_evaluator.GptScoreQuestionAnsweringEvaluator",
    frozenset({"question", "answer"}),
    _ASKED,
    {
        "interest": "Are the responses of AI interesting?",
        "engagement": "Are the responses of AI engaging?",
        "understandability": "Are the responses of AI understandable?",
        "relevance": "Are the responses of AI relevant to the conversation?",
        "specific": "Are the responses of AI generic or specific to the conversation?",
        "correctness": "Are the responses of AI correct to conversations?",
        "semantically appropriate": "Are the responses of AI semantically appropriate?",
        "fluency": "Are the responses of AI fluently written?",
    },
    _conversation,
)
_add(
    "summarization_with_reference_gptscore",
    "Summarization with reference (GPTScore)",
    "gptscore_summary_with_reference_evaluator.GptScoreSummaryWithReferenceEvaluator",
    frozenset({"expected", "answer"}),
    _OTHER_WORDS,
    {
        "semantic coverage": "Rewrite the following text with the same semantics.",
        "factuality": "Rewrite the following text with consistent facts.",
        "informativeness": "Rewrite the following text with its core information.",
        "coherence": "Rewrite the following text into a coherent text.",
        "relevance": "Rewrite the following text with consistent details.",
        "fluency": "Rewrite the following text into a fluent and grammatical text.",
    },
    _both_ways,
)
_add(
    "summarization_without_reference_gptscore",
    "Summarization without reference (GPTScore)",
    "gptscore_summary_without_reference_evaluator.GptScoreSummaryWithoutReferenceEvaluator",
    frozenset({"question", "answer"}),
    _TLDR,
    {
        "semantic coverage": "Generate a summary with as much semantic coverage as possible for "
        "the following text:",
        "factuality": "Generate a summary with consistent facts for the following text:",
        "consistency": "Generate a factually consistent summary for the following text:",
        "informativeness": "Generate an informative summary that captures the key points of the "
        "following text:",
        "coherence": "Generate a coherent summary for the following text:",
        "relevance": "Generate a relevant summary with consistent details for the following text:",
        "fluency": "Generate a fluent and grammatical summary for the following text:",
    },
    _summary,
)
