"""The outcome of a yes/no detector, so that all of them mean the same by the same metric."""

from guardrail_service.types import Coverage, Outcome, Span


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
