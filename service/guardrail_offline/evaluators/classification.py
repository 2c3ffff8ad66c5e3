"""Compares answers with expected labels: accuracy per case; precision, recall, F1 per model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from pydantic import Field

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import Evaluator, EvaluatorSpec, evaluator
from guardrail_offline.evaluators.result import Result, Score
from guardrail_service.detectors.facts.read import read
from guardrail_service.detectors.registry import Parameters
from guardrail_service.errors import NotScorable
from guardrail_service.text.patterns.search import encodable
from guardrail_service.types import MetricSpec, State

_EDGES = " \t\r\n.,;:!?\"'`*_()[]"
PER_MODEL = frozenset({"precision", "recall", "f1"})


class Classified(NamedTuple):
    """Scores over many labelled cases; each of precision, recall and F1 is a mean over classes."""

    accuracy: float
    precision: float
    recall: float
    f1: float


def classified(pairs: Mapping[tuple[str, str], int]) -> Classified:
    """Return the scores of (expected, predicted) pairs, by how often each occurred.

    Classes are all labels that were expected or predicted. A class that was never predicted has
    precision 0, one that was never expected has recall 0, as scikit-learn's macro averages have.

    Raises:
        NotScorable: If there is no pair.
    """
    total = sum(pairs.values())
    if not total:
        raise NotScorable("no labelled case")
    labels = sorted({label for pair in pairs for label in pair})
    rows = [_class_scores(pairs, label) for label in labels]
    precision, recall, f1 = (sum(column) / len(labels) for column in zip(*rows, strict=True))
    right = sum(count for (expected, predicted), count in pairs.items() if expected == predicted)
    return Classified(right / total, precision, recall, f1)


def _class_scores(pairs: Mapping[tuple[str, str], int], label: str) -> tuple[float, float, float]:
    right = pairs.get((label, label), 0)
    predicted = sum(count for (_, guess), count in pairs.items() if guess == label)
    expected = sum(count for (truth, _), count in pairs.items() if truth == label)
    precision = right / predicted if predicted else 0.0
    recall = right / expected if expected else 0.0
    f1 = 2 * right / (predicted + expected)
    return precision, recall, f1


def label_of(text: str) -> str:
    """Return a label as labels are compared: without case, outer punctuation and extra blanks."""
    return " ".join(text.strip(_EDGES).casefold().split())


class ClassificationParameters(Parameters):
    """The rule that tells a label from other text.

    Attributes:
        max_label_words: A longer expected answer is no label, and its case is not judged.
        labels: The labels there are. Without them an expected answer is a label if it looks like
            one: no number, no date, no name.
    """

    max_label_words: int = Field(5, ge=1)
    labels: tuple[str, ...] = ()


def is_label(text: str, categories: Collection[str], parameters: ClassificationParameters) -> bool:
    """Return whether an expected answer is a label and no free text.

    One of the labels that are known; else a few words without a value and a name: "565", "14 March
    1879" and "Jane Austen" are answers to questions. A lab says with the category
    `classification` that its cases have labels, whatever they look like.
    """
    label = label_of(text)
    if not 0 < len(label.split()) <= parameters.max_label_words:
        return False
    if parameters.labels:
        return label in map(label_of, parameters.labels)
    if TASK in (category.casefold() for category in categories):
        return True
    return not (read(encodable(text)).facts or _looks_named(text))


def _looks_named(text: str) -> bool:
    """Return whether several words are capitalised, not all of them throughout."""
    found = [word for word in text.split() if word[0].isupper() and not word.isupper()]
    return len(found) > 1


TASK = "classification"


@evaluator
class Classification(Evaluator[ClassificationParameters]):
    """Compares labels; the confusion matrix is kept per model."""

    spec = EvaluatorSpec(
        id="classification",
        name="Classification",
        summary="Is the answer the expected label?",
        metrics=(
            MetricSpec("accuracy", threshold=0.75),
            MetricSpec("precision", threshold=0.75),
            MetricSpec("recall", threshold=0.75),
            MetricSpec("f1", threshold=0.75),
        ),
        inputs=frozenset({"expected", "answer"}),
        run_class="D",
        h2o_id="h2o_sonar.evaluators.classification_evaluator.ClassificationEvaluator",
        original="D",
        tags=("rule-based", "nist:valid-reliable", "sr11-7:outcomes-analysis"),
        per_model=PER_MODEL,
    )
    parameters = ClassificationParameters

    def judge(self, view: CaseView, parameters: ClassificationParameters) -> Result:
        """Return 1.0 or 0.0, and the two labels for the model's confusion matrix."""
        expected, predicted = label_of(view.expected), label_of(view.answer)
        if not is_label(view.expected, view.case.categories, parameters):
            raise Unavailable(State.NOT_APPLICABLE, "no_label")
        later = {key: Score.missing(State.NOT_APPLICABLE, "per_model") for key in PER_MODEL}
        return Result(
            {"accuracy": Score(float(expected == predicted)), **later},
            details={"expected": expected, "predicted": predicted},
        )

    def per_model(self, tallies: Counter[tuple[str, ...]]) -> Mapping[str, float]:
        """Return precision, recall and F1 over one model's cases."""
        pairs = {(pair[0], pair[1]): count for pair, count in tallies.items()}
        found = classified(pairs)._asdict()
        return {key: found[key] for key in PER_MODEL}

    def tally(self, result: Result) -> tuple[str, ...] | None:
        """Return the case's pair of labels."""
        if not result.details:
            return None
        return result.details["expected"], result.details["predicted"]
