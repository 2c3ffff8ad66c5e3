"""How much of a sample a rule without a model has read: it reads a text whole or not at all."""

from guardrail_service.types import Coverage, Sample


def whole_answer(sample: Sample) -> Coverage:
    """Return the coverage of a rule that reads the answer and looks at no passage."""
    return Coverage(answer=(len(sample.answer), len(sample.answer)))


def whole_sample(sample: Sample) -> Coverage:
    """Return the coverage of a rule that reads the answer and every passage."""
    contexts = sum(len(passage.text) for passage in sample.contexts)
    return Coverage(answer=(len(sample.answer), len(sample.answer)), contexts=(contexts, contexts))
