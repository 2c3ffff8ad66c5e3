"""Agreement of a judge with people, with itself and with what should not matter."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from guardrail_offline.calibration.judge_agreement import (
    JudgedRun,
    VerdictOnCase,
    agreement,
    order_effect,
    repeatability,
    self_preference,
    verbosity,
)
from guardrail_offline.calibration.prediction_powered import good_shares, prediction_powered
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Direction, MetricSpec


def judged(
    scores: list[float | None],
    people: list[bool | None] | None = None,
    *,
    words: list[int] | None = None,
    models: list[str] | None = None,
    direction: Direction = Direction.HIGHER,
) -> JudgedRun:
    """Return a run with one question per score and .5 as threshold."""
    higher = direction is Direction.HIGHER
    cases = []
    for i, score in enumerate(scores):
        passes = None if score is None else (score >= 0.5 if higher else score <= 0.5)
        person = people[i] if people else None
        length = words[i] if words else 10
        model = models[i] if models else "m"
        cases.append(VerdictOnCase(f"k{i}", f"q{i}", model, score, passes, person, length))
    names = {name: name.upper() for name in dict.fromkeys(models or ["m"])}
    spec = MetricSpec("faithfulness", direction)
    return JudgedRun("run", "faithfulness", spec, 0.5, {"model": "M"}, names, tuple(cases))


@pytest.mark.parametrize("direction", list(Direction))
def test_agreement_is_that_of_the_field(direction: Direction) -> None:
    """Share, kappa and area as scikit-learn has them; cases without a score or a word are out."""
    rng = np.random.default_rng(3)
    good = rng.random(120) < 0.6
    score = np.clip(0.5 + (good - 0.5) * 0.4 + rng.normal(0, 0.3, 120), 0, 1).round(1)
    shown = score if direction is Direction.HIGHER else 1 - score
    run = judged([*shown.tolist(), None, 0.9], [*good.tolist(), True, None], direction=direction)
    found = agreement(run)
    verdict = shown >= 0.5 if direction is Direction.HIGHER else shown <= 0.5
    assert found["agree"].value == pytest.approx((verdict == good).mean())
    assert found["kappa"].value == pytest.approx(cohen_kappa_score(verdict, good))
    assert found["area"].value == pytest.approx(roc_auc_score(good, score))
    for one in found.values():
        assert one.n == 120
        assert one.low is not None
        assert one.high is not None
        assert one.low < (one.value or 0) < one.high


def test_labels_of_other_cases_are_refused() -> None:
    """Rather than an agreement of nothing."""
    with pytest.raises(ConfigurationError, match="no label of a scored case"):
        agreement(judged([0.1, 0.9]))


def test_labels_of_one_kind_have_no_kappa() -> None:
    """And say so; a number would be made up."""
    found = agreement(judged([0.9] * 20, [True] * 20))
    assert found["agree"].value == 1.0
    assert (found["kappa"].value, found["area"].value) == (None, None)
    assert found["kappa"].why == "labels of one kind only"


def test_a_judge_that_contradicts_itself_is_counted() -> None:
    """Two of ten verdicts flip, one of the two scores near the threshold among them."""
    first = judged([0.9] * 8 + [0.55, 0.45])
    second = judged([0.9] * 7 + [0.1, 0.45, 0.45])
    found = repeatability(first, [second])
    assert (found["flips"].value, found["flips"].n) == (0.2, 10)
    assert (found["flips_near"].value, found["flips_near"].n) == (0.5, 2)
    assert found["spread"].value == pytest.approx((0.8 + 0.1) / np.sqrt(2) / 10)
    with pytest.raises(ConfigurationError, match="no case scored in all runs"):
        repeatability(first, [judged([None] * 10)])


def test_another_order_of_passages_shifts_scores() -> None:
    """By its mean, and flips what it flips."""
    found = order_effect(judged([0.6] * 20), judged([0.6] * 10 + [0.4] * 10))
    assert found["shift"].value == pytest.approx(-0.1)
    assert found["flips"].value == 0.5


def test_a_judge_that_likes_long_answers_has_a_slope() -> None:
    """Of what it gives per doubling, whatever people say; none where lengths tell nothing."""
    rng = np.random.default_rng(5)
    words = rng.integers(4, 200, 80)
    good = rng.random(80) < 0.5
    fair = 0.3 + 0.3 * good
    long = verbosity(judged((fair + 0.05 * np.log2(words)).tolist(), good.tolist(), words=[*words]))
    assert long.value == pytest.approx(0.05)
    even = verbosity(judged(fair.tolist(), good.tolist(), words=[*words]))
    assert even.value == pytest.approx(0, abs=1e-9)
    assert verbosity(judged(fair.tolist(), good.tolist())).why == "all answers have one length"
    assert verbosity(judged([0.5] * 3, [True] * 3)).value is None


def test_a_judge_that_prefers_its_own_is_found() -> None:
    """It passes all of its own answers, of which people pass half, and is right about others."""
    people = [True, False] * 40
    scores = [0.9 if i < 40 or person else 0.1 for i, person in enumerate(people)]
    run = judged(scores, people, models=["m"] * 40 + ["other"] * 40)
    found = self_preference(run, None)
    assert found.value == pytest.approx(0.5)
    assert found.low is not None
    assert found.low > 0.2
    assert self_preference(run, "nobody").why == "needs answers of the judge's and of others"


@pytest.mark.parametrize("kind", ["sharp", "biased", "blind"])
def test_people_and_judge_together_hold_the_truth_as_often_as_they_say(kind: str) -> None:
    """However bad the judge is; a sharp one makes the interval shorter, a blind one no longer."""
    rng = np.random.default_rng(11)
    held, shorter, rounds = 0, [], 400
    for _ in range(rounds):
        good = rng.random(460) < 0.7
        told = {
            "sharp": np.where(rng.random(460) < 0.92, good, ~good),
            "biased": good | (rng.random(460) < 0.6),
            "blind": rng.random(460) < 0.5,
        }[kind]
        people, guessed, others = (x.astype(float) for x in (good[:60], told[:60], told[60:]))
        _, low, high, _ = prediction_powered(people, guessed, others)
        _, alone_low, alone_high, _ = prediction_powered(people, guessed, others[:0])
        assert None not in (low, high, alone_low, alone_high)
        held += low <= 0.7 <= high  # type: ignore[operator]
        shorter.append((high - low) / (alone_high - alone_low))  # type: ignore[operator]
    assert held / rounds >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / rounds)
    assert np.mean(shorter) < {"sharp": 0.75, "biased": 0.95, "blind": 1.01}[kind]


def test_shares_of_good_answers_are_by_model() -> None:
    """With labels of few questions and the judge's word on all; a model nobody labelled is out."""
    rng = np.random.default_rng(2)
    good = rng.random(300) < 0.6
    people = [bool(g) if i < 50 else None for i, g in enumerate(good)]
    run = judged(np.where(good, 0.9, 0.1).tolist(), [*people], models=["a"] * 200 + ["b"] * 100)
    (share,) = good_shares(run)
    assert share.model == "A"
    assert share.judge.value == pytest.approx(good[:200].mean())
    assert share.trust > 0.6
    assert share.powered.low is not None
    assert share.people.low is not None
    assert share.powered.low > share.people.low


def test_no_spread_is_no_certainty() -> None:
    """Twenty labels that all say yes do not prove that all answers are good."""
    value, low, high, _ = prediction_powered(np.ones(20), np.ones(20), np.ones(200))
    assert (value, high) == (1.0, 1.0)
    assert low == pytest.approx(0.832, abs=1e-3)
    assert prediction_powered(np.ones(1), np.ones(1), np.ones(9))[1] is None
