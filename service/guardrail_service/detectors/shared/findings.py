"""The outcome of a yes/no rule, how much it read, and the placeholders of its findings."""

from __future__ import annotations

from guardrail_service.types import Coverage, Outcome, Sample, Span


def boolean_outcome(
    passes: bool,
    *,
    retrieval_failure: bool = False,
    parse_failure: bool | None = None,
    spans: tuple[Span, ...] = (),
    coverage: Coverage | None = None,
) -> Outcome:
    """Return the metrics of a yes/no detector, each 1.0 or 0.0.

    `model_passes` is about the answer alone. `model_generation_failures` repeats its failure, and
    `model_retrieval_failures` stands beside it: a passage may fail while the answer passes.

    Args:
        passes: Whether the answer passes.
        retrieval_failure: Whether the passages fail, whatever the answer does.
        parse_failure: Whether the output could not be parsed; None where the detector has no such
            metric.
        spans: What to point at.
        coverage: How much was read.

    Source:
        H2O Eval Studio's boolean evaluators; there the numbers are averages over rows.
    """
    scores = {
        "model_passes": float(passes),
        "model_failures": float(not passes),
        "model_retrieval_failures": float(retrieval_failure),
        "model_generation_failures": float(not passes),
    }
    if parse_failure is not None:
        scores["model_parse_failures"] = float(parse_failure)
    return Outcome.evaluated(scores, spans, coverage)


def whole_answer(sample: Sample) -> Coverage:
    """Return the coverage of a rule that reads the answer and looks at no passage."""
    return Coverage(answer=(len(sample.answer), len(sample.answer)))


def whole_sample(sample: Sample) -> Coverage:
    """Return the coverage of a rule that reads the answer and every passage."""
    contexts = sum(len(passage.text) for passage in sample.contexts)
    return Coverage(answer=(len(sample.answer), len(sample.answer)), contexts=(contexts, contexts))


class Placeholders:
    """Numbers the values of one answer; the same value of a kind gets the same number."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}

    def of(self, kind: str, value: str) -> str:
        """Return `[KIND_1]` for the first value of a kind, `[KIND_2]` for the next one."""
        numbers = self._numbers.setdefault(kind, {})
        return f"[{kind.upper()}_{numbers.setdefault(value, len(numbers) + 1)}]"
