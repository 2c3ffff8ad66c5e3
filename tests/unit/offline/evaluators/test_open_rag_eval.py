"""Open RAG Eval's YAML chooses evaluators; what cannot be followed is said or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.judge_forms import judge_backed
from guardrail_offline.evaluators.open_rag_eval import read_settings
from guardrail_offline.evaluators.retrieval import retrieval_scores
from guardrail_service.errors import ConfigurationError

TREC = """
input_queries: "queries.csv"
evaluator:
  type: "TRECEvaluator"
  model: {type: "OpenAIModel", name: "gpt-4o-mini", api_key: "${oc.env:OPENAI_API_KEY}"}
  options:
    k_values: [1, 3, 5]
connector: {type: "VectaraConnector"}
"""
"""As in config_examples/eval_config_vectara.yaml of vectara/open-rag-eval."""
BOTH = """
evaluator:
  - name: trecrag
    options: {k_values: [1], run_consistency: true, metrics_to_run_consistency: [umbrela_score]}
  - name: consistency
    options:
      metrics:
        - bert_score: {model_type: "xlm-roberta-large", lang: en, rescale_with_baseline: true}
        - rouge_score: {}
"""
"""The names and options of its README."""


def written(folder: Path, text: str) -> Path:
    """Return the path of a configuration."""
    path = folder / "eval_config.yaml"
    path.write_text(text)
    return path


def test_an_evaluator_of_theirs_is_those_of_ours_that_compute_it(tmp_path: Path) -> None:
    """With the type of the examples or the name of the manual."""
    found = read_settings(written(tmp_path, TREC))
    assert found.evaluators == ("umbrela", "nuggets", "citations", "hallucination", "no_answer")
    assert found.notes == ()
    assert len(configure(found.evaluators)) == 5


@pytest.mark.parametrize(
    ("values", "ranks"), [("[1, 3, 5]", (1, 3, 5)), ("[10, 2, 2]", (2, 10)), ("4", (4,))]
)
def test_its_ranks_are_those_of_precision_and_average_precision(
    tmp_path: Path, values: str, ranks: tuple[int, ...]
) -> None:
    """Whichever they are; where fewer passages were retrieved there is no value."""
    text = f"evaluator: {{name: trecrag, options: {{k_values: {values}}}}}"
    found = read_settings(written(tmp_path, text))
    (umbrela,) = configure(["umbrela"], found.assignments)
    names = [f"{name}_at_{k}" for name in ("precision", "average_precision") for k in ranks]
    assert umbrela.evaluator.spec.keys == ("umbrela", "mrr", *names)
    judged = judge_backed("umbrela")
    assert judged.with_parameters(judged.parameters(k_values=ranks)).spec.keys == (
        "umbrela", "mrr", *names,
    )  # fmt: skip
    scores = retrieval_scores([3, 0, 2], ranks)
    assert scores.keys() == set(umbrela.evaluator.spec.keys)
    lacking = [k for k in ranks if scores[f"precision_at_{k}"].value is None]
    assert lacking == [k for k in ranks if k > 3]


@pytest.mark.parametrize("value", ["[]", "[0]", "3", "[1.5]"])
def test_ranks_that_are_none_are_refused(value: str) -> None:
    """Named with their field."""
    with pytest.raises(ConfigurationError, match=r"umbrela\.k_values"):
        configure(["umbrela"], [f"umbrela.k_values={value}"])


def test_what_is_computed_otherwise_is_said(tmp_path: Path) -> None:
    """Another encoder without a baseline; the spread of every metric, not of some."""
    found = read_settings(written(tmp_path, BOTH))
    assert found.evaluators[-1] == "consistency"
    assert any("run_consistency.json" in note for note in found.notes)
    assert sum("the pack's encoder" in note for note in found.notes) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("evaluator: {type: Other}", "expected TRECEvaluator, ConsistencyEvaluator"),
        ("evaluator: [x]", "expected one or more with a type"),
        ("results: 1", "expected one or more with a type"),
        ("- a", "expected one or more with a type"),
        ("evaluator: {name: trecrag, options: {k_values: [0]}}", "expected a list of ranks from 1"),
        ("evaluator: {name: trecrag, options: {k_values: [yes]}}", "a list of ranks from 1"),
        ("evaluator: {name: trecrag, options: {k_values: [2.5]}}", "a list of ranks from 1"),
        ("evaluator: {name: consistency, options: {metrics: [{bleu: {}}]}}", "bert_score or rouge"),
        ("evaluator: {name: trecrag, options: 3}", "options: found int"),
        ("evaluator: [", "settings in YAML"),
        ("!!python/object/apply:os.system [ls]", "settings in YAML"),
    ],
)
def test_what_does_not_exist_here_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Never half followed, and no object is made of a file."""
    with pytest.raises(ConfigurationError, match=message):
        read_settings(written(tmp_path, text))
