"""Names, parameters and thresholds are checked before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.configured import config_sha256, configure
from guardrail_offline.evaluators.tasks import TASKS
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.file import load_defaults
from guardrail_service.server.runtime import default_thresholds_file


def test_evaluators_are_named_by_any_of_their_names() -> None:
    """Ours, H2O's, another suite's; each runs once, in the order of the catalogue."""
    names = ["rouge", "h2o_sonar.evaluators.bleu_evaluator.BleuEvaluator", "ragas:faithfulness"]
    assert {one.id for one in configure(names)} == {"rouge", "bleu", "faithfulness"}
    assert configure(["rouge", "bleu"]) == configure(["bleu", "rouge", "rouge"])


def test_all_and_deterministic_are_groups() -> None:
    """Deterministic is run class D: no model is opened."""
    assert len(configure(["all"])) == len(CATALOGUE)
    assert all(not one.evaluator.spec.roles for one in configure(["deterministic"]))


def test_values_are_json_or_text_and_reach_both_kinds_of_parameters() -> None:
    """The common ones and the evaluator's own."""
    (one,) = configure(
        ["context_mrr"],
        ["context_mrr.mrr_relevant_chunk_threshold=0.5", "context_mrr.metric_threshold=0.6"],
    )
    assert one.parameters.model_dump()["mrr_relevant_chunk_threshold"] == 0.5
    assert one.thresholds() == {"mean_reciprocal_rank": 0.6}
    assert one.as_json()["settings"]["metric_threshold"] == 0.6


def test_an_option_comes_after_the_settings_file(tmp_path: Path) -> None:
    """And a star reaches every evaluator that has the key."""
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"*": {"min_test_cases": 5}, "bleu": {"min_test_cases": 6}}))
    rouge, bleu = sorted(
        configure(["rouge", "bleu"], ["rouge.min_test_cases=7"], path),
        key=lambda one: one.id,
        reverse=True,
    )
    assert (rouge.common.min_test_cases, bleu.common.min_test_cases) == (7, 6)


def test_h2os_name_of_the_schema_is_understood() -> None:
    """`json_schema`, in their parameter list."""
    (one,) = configure(["json_schema"], ['json_schema.json_schema={"type": "array"}'])
    assert one.parameters.model_dump(by_alias=True)["schema"] == {"type": "array"}


def test_a_detectors_threshold_is_the_shipped_one() -> None:
    """Fitted for this pack; the seed documents' would not fit."""
    (hallucination,) = configure(["hallucination"])
    (toxic,) = configure(["faithfulness"])
    shipped = load_defaults(default_thresholds_file())["hallucination"]
    assert hallucination.thresholds() == shipped
    assert toxic.thresholds()["faithfulness"] == 0.75


@pytest.mark.parametrize(
    ("names", "assignments", "found"),
    [
        ([], [], "--evaluators: found none"),
        (["fathfulness"], [], "did you mean 'faithfulness'"),
        (["rouge"], ["rouge"], "EVALUATOR.key=value"),
        (["rouge"], ["bleu.metric_threshold=1"], "an evaluator that this run leaves out"),
        (["rouge"], ["rouge.no_such_key=1"], "one of max_dataset_rows"),
        (["rouge"], ["*.no_such_key=1"], "the key 'no_such_key', which no evaluator has"),
        (["rouge"], ["rouge.min_test_cases=-1"], "greater than or equal to 0"),
        (["rouge"], ["rouge.metric_threshold=2"], "found 2.0; expected 0.0 to 1.0"),
        (["rouge"], ['rouge.metric_threshold={"rouge_9": 0.5}'], "the metric 'rouge_9'"),
        (["text_matching"], ["text_matching.condition=a AND"], "a wrong value"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(
    names: list[str], assignments: list[str], found: str
) -> None:
    """What was found and what was expected."""
    with pytest.raises(ConfigurationError) as refused:
        configure(names, assignments)
    assert found in str(refused.value)


@pytest.mark.parametrize("content", ["[]", '{"rouge": 3}', "no json"])
def test_a_settings_file_of_another_shape_is_refused(tmp_path: Path, content: str) -> None:
    """With its name."""
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(ConfigurationError, match=r"s\.json"):
        configure(["rouge"], (), tmp_path / "s.json")


def test_the_hash_changes_with_parameters_and_models_and_not_with_order() -> None:
    """Two runs with one hash scored the same way."""
    one, other = configure(["rouge", "bleu"]), configure(["bleu", "rouge"])
    moved = configure(["rouge", "bleu"], ["bleu.max_dataset_rows=3"])
    assert config_sha256(one, {"a": "1"}) == config_sha256(other, {"a": "1"})
    assert (
        len({config_sha256(one, {}), config_sha256(one, {"a": "1"}), config_sha256(moved, {})}) == 3
    )


@pytest.mark.parametrize("task", TASKS)
def test_a_task_names_evaluators_that_are_there(task: str) -> None:
    """And leaves out what belongs to another task."""
    found = {one.id for one in configure([f"task:{task}"])}
    assert set(TASKS[task]) <= found
    assert ("summarization" in found) == (task == "summarization")
    assert found | {"byop"} == {one.id for one in configure([f"task:{task}", "byop"])}


def test_a_task_that_is_not_known_is_refused() -> None:
    """With those that are."""
    with pytest.raises(ConfigurationError, match="expected one of qa, summarization"):
        configure(["task:chess"])
