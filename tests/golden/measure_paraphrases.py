"""Counts how many paraphrases and negations of 60 answers end on the good side of each metric.

Prints the table of docs/evaluation.md: `python tests/golden/measure_paraphrases.py`. The sentences
of `evaluators/paraphrases.jsonl` were written for this by hand. The answer is a paraphrase, or says
another number, date or the opposite; the passage and the expected answer are the sentence itself.
For the context metrics the expected answer is the paraphrase, or the other.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import guardrail_offline.evaluators  # noqa: F401 - importing registers the evaluators
from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.runs.worker import models_for, score
from guardrail_service.types import Passage

WRITTEN = Path(__file__).parent / "evaluators" / "paraphrases.jsonl"
CUTS = {
    ("answer_correctness", "answer_correctness"): 0.75,
    ("ragchecker", "f1"): 0.5,
    ("summarization_judge", "model_passes"): 0.5,
    ("faithfulness", "faithfulness"): 0.75,
    ("context_recall", "context_recall"): 0.75,
    ("context_precision", "context_precision"): 0.75,
}
KINDS = ("same", "paraphrase", "negation")
_OF_CONTEXT = ("context_recall", "context_precision")


def written() -> list[dict[str, str]]:
    """Return the rows: key, question, expected, paraphrase, negation."""
    return [json.loads(line) for line in WRITTEN.read_text("utf-8").splitlines()]


def cases(kind: str, *, of_context: bool) -> list[Case]:
    """Return a case per row whose answer, or whose expected answer, is of one kind."""
    found = []
    for row in written():
        source = row["expected"]
        other = row.get(kind, source)
        answer, expected = (source, other) if of_context else (other, source)
        found.append(Case(row["key"], row["question"], answer, expected, (Passage(source),)))
    return found


def measured(pack: str = "embedded") -> Mapping[tuple[str, str], dict[str, int]]:
    """Return per metric and kind how many rows reach its cut."""
    configured = configure([evaluator for evaluator, _ in CUTS])
    models = models_for(configured, pack)
    good: dict[tuple[str, str], dict[str, int]] = {metric: {} for metric in CUTS}
    for kind in KINDS:
        for of_context in (False, True):
            found = score(list(enumerate(cases(kind, of_context=of_context))), configured, models)
            for (evaluator, key), cut in CUTS.items():
                if of_context == (evaluator in _OF_CONTEXT):
                    values = [found[i][evaluator].scores[key].value for i in found]
                    good[evaluator, key][kind] = sum(v is not None and v >= cut for v in values)
    return good


def table() -> str:
    """Return the counts as Markdown."""
    lines = ["| metric, cut | the sentence itself | paraphrases | negations |", "|---|---|---|---|"]
    for (evaluator, key), counts in measured().items():
        name = f"`{evaluator}`" if key == evaluator else f"`{evaluator}.{key}`"
        cells = " | ".join(str(counts[kind]) for kind in KINDS)
        lines.append(f"| {name} ≥ {CUTS[evaluator, key]:g} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
