"""A scored case as the policy will see it: numbers, flags that no threshold changes, passes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from guardrail_offline.calibration.deciding_metrics import (
    deciding_metrics,
    matrix,
    used_fingerprints,
)
from guardrail_offline.calibration.scored_lab import LabCase, ScoredLab
from guardrail_offline.evaluators.result import Score
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import State
from tests.unit.offline.calibration import labs


def lab(*cases: LabCase) -> ScoredLab:
    """Return a lab of some cases."""
    return ScoredLab("lab", cases or (labs.case("a", "g"),), labs.FINGERPRINTS)


def test_metrics_with_a_threshold_gate_and_checks_come_last(tmp_path: Path) -> None:
    """A report-only detector does not."""
    names = [gate.name for gate in deciding_metrics(labs.policy(tmp_path), lab())]
    assert names == [
        "groundedness.groundedness",
        "answer_relevancy_sentence.answer_relevancy",
        "language_mismatch.model_passes",
    ]
    quiet = labs.policy(tmp_path, report_only=["groundedness"])
    assert len(deciding_metrics(quiet, lab())) == 2


@pytest.mark.parametrize(
    ("state", "key", "flags"),
    [
        (State.UNVERIFIED, "on_unverified", True),
        (State.ERROR, "on_error", True),
        (State.NOT_EVALUATED, "on_timeout", True),
        (State.NOT_APPLICABLE, "on_error", False),
    ],
)
def test_a_missing_score_means_what_the_policy_says(
    tmp_path: Path, state: State, key: str, flags: bool
) -> None:
    """The rule that serves is the rule that calibrates."""
    scored = lab(labs.case("a", "g", Score.missing(state, "why")))
    strict = matrix(deciding_metrics(labs.policy(tmp_path), scored), scored.cases)
    assert strict[0, 0] == (-math.inf if flags else math.inf)
    lenient = matrix(deciding_metrics(labs.policy(tmp_path, **{key: "pass"}), scored), scored.cases)
    assert lenient[0, 0] == math.inf


def test_a_yes_no_check_is_a_flag_or_nothing(tmp_path: Path) -> None:
    """It has no threshold to fit."""
    scored = lab(labs.case("a", "g", language=0.0), labs.case("b", "g", language=1.0))
    values = matrix(deciding_metrics(labs.policy(tmp_path), scored), scored.cases)
    assert values[:, 2].tolist() == [-math.inf, math.inf]


def test_one_state_may_stand_for_all_metrics_of_a_detector(tmp_path: Path) -> None:
    """Replies of the service say it that way."""
    scores = {**labs.case("a", "g").scores, "groundedness": {"*": labs.ABSTAINED}}
    scored = lab(LabCase("a", "g", scores))
    assert matrix(deciding_metrics(labs.policy(tmp_path), scored), scored.cases)[0, 0] == math.inf


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("toxicity", "unknown detector 'toxicity'"),
        ("groundedness.nope", "unknown metric 'nope'; expected one of groundedness"),
    ],
)
def test_unknown_metrics_are_refused_with_what_exists(
    tmp_path: Path, wanted: str, says: str
) -> None:
    """Before any label is looked at."""
    with pytest.raises(ConfigurationError, match=says):
        deciding_metrics(labs.policy(tmp_path), lab(), [wanted])


def test_a_lab_without_scores_of_a_gate_is_refused(tmp_path: Path) -> None:
    """For all cases, or for one."""
    scores = dict(labs.case("a", "g").scores)
    del scores["groundedness"]
    with pytest.raises(ConfigurationError, match=r"groundedness\.groundedness: found no scores"):
        deciding_metrics(labs.policy(tmp_path), lab(LabCase("a", "g", scores)))
    holed = LabCase("b", "g", {**scores, "groundedness": {}})
    with pytest.raises(ConfigurationError, match="nothing for case 'b'"):
        deciding_metrics(labs.policy(tmp_path), lab(labs.case("a", "g"), holed))


def test_metrics_may_be_chosen(tmp_path: Path) -> None:
    """A detector stands for its gating metrics."""
    gates = deciding_metrics(
        labs.policy(tmp_path), lab(), ["groundedness", "groundedness.groundedness"]
    )
    assert [gate.name for gate in gates] == ["groundedness.groundedness"]
    assert gates[0].evaluator_id.endswith("RagGroundednessEvaluator")


def test_fingerprints_are_those_the_gates_depend_on(tmp_path: Path) -> None:
    """A model that nothing here reads does not tie the file to it."""
    gates = deciding_metrics(labs.policy(tmp_path), lab(), ["language_mismatch"])
    everything = {**labs.FINGERPRINTS, "toxicity": "t"}
    assert used_fingerprints(gates, everything) == {
        "segmenter": "segmenter/1",
        "evidence": "claims/1",
    }
