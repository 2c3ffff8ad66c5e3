"""Fits: thresholds that keep their word on fresh answers, and every refusal with its numbers."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from guardrail_offline.calibration.deciding_metrics import deciding_metrics, matrix
from guardrail_offline.calibration.fit_options import FitOptions, Looks, RuleName
from guardrail_offline.calibration.sampling import draw
from guardrail_offline.calibration.scored_lab import ScoredLab
from guardrail_offline.calibration.statistics import guaranteed_rank
from guardrail_offline.calibration.thresholds import Fitted, fit_thresholds
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.calibration import labs

TEN = FitOptions(alpha=0.10, delta=0.10)


def fitted(folder: Path, options: FitOptions = TEN, questions: int = 200, seed: int = 1) -> Fitted:
    """Return a fit on a synthetic lab."""
    lab, passes = labs.lab(questions, seed)
    return fit_thresholds(lab, passes, deciding_metrics(labs.policy(folder), lab), options)


@pytest.mark.parametrize("method", ["scaled_min", "by_ranks"])
def test_the_whole_rule_keeps_its_word_on_fresh_answers(tmp_path: Path, method: str) -> None:
    """Over 60 labellings: at most a tenth, plus three errors, flags more than alpha of good."""
    fresh, passes = labs.lab(4000, 999, start=10_000)
    good = [case for case in fresh.cases if passes[case.key]]
    options = dataclasses.replace(TEN, method=method)
    broken, recalls = 0, []
    for seed in range(60):
        found = fitted(tmp_path, options, 120, seed)
        rate = float(found.joint.flags(matrix(found.gates, good)).mean())
        bad = [case for case in fresh.cases if not passes[case.key]]
        recalls.append(float(found.joint.flags(matrix(found.gates, bad)).mean()))
        broken += rate > TEN.alpha
    assert broken / 60 <= TEN.delta + 3 * math.sqrt(0.09 / 60)
    assert np.mean(recalls) > 0.5


def test_the_bound_rests_on_one_answer_a_question(tmp_path: Path) -> None:
    """Reruns add answers and no certainty."""
    policy = labs.policy(tmp_path)
    once, passes_once = labs.lab(150, 3)
    thrice, passes_thrice = labs.lab(150, 3, reruns=3)
    one = fit_thresholds(once, passes_once, deciding_metrics(policy, once), TEN)
    three = fit_thresholds(thrice, passes_thrice, deciding_metrics(policy, thrice), TEN)
    assert len(three.units) == len(one.units)
    assert three.rank == one.rank == guaranteed_rank(len(one.units), 0.10, 0.10)
    assert len(three.data.cases) == 3 * len(one.data.cases)


def test_no_question_is_on_both_sides_of_the_split(tmp_path: Path) -> None:
    """The part that chooses the shape and the part that proves it share nothing."""
    lab, passes = labs.lab(150, 3, reruns=3)
    data = fit_thresholds(lab, passes, deciding_metrics(labs.policy(tmp_path), lab), TEN).data
    groups = np.array(data.groups)
    assert not set(groups[data.design]) & set(groups[~data.design])
    assert 0.2 < data.design.mean() < 0.5


def test_few_labels_all_go_into_the_bound(tmp_path: Path) -> None:
    """The choice looks at counts alone; by ranks needs no design part."""
    found = fitted(tmp_path, questions=40)
    assert found.shape is not None
    assert found.shape.method == "by_ranks"
    assert not found.data.design.any()


def test_too_few_labels_are_refused_with_how_many_are_missing(tmp_path: Path) -> None:
    """22 good questions promise 10 % at 90 %."""
    lab, passes = labs.lab(200)
    good = [key for key, word in passes.items() if word][:20]
    bad = [key for key, word in passes.items() if not word][:10]
    few = {key: passes[key] for key in good + bad}
    gates = deciding_metrics(labs.policy(tmp_path), lab)
    with pytest.raises(ConfigurationError) as caught:
        fit_thresholds(lab, few, gates, TEN)
    assert "20 questions with a good answer" in caught.value.found
    assert "at least 22" in caught.value.expected
    assert "2 more, about 3 more labelled questions" in caught.value.expected


@pytest.mark.parametrize(("word", "says"), [(True, "no answer labelled fail"), (False, "pass")])
def test_labels_of_one_kind_are_refused(tmp_path: Path, word: bool, says: str) -> None:
    """Either there is no bound, or nobody knows what it catches."""
    lab, passes = labs.lab(100)
    gates = deciding_metrics(labs.policy(tmp_path), lab)
    with pytest.raises(ConfigurationError, match=says):
        fit_thresholds(lab, dict.fromkeys(passes, word), gates, TEN)


def test_labels_of_other_cases_are_refused(tmp_path: Path) -> None:
    """The message names some and counts them."""
    lab, passes = labs.lab(100)
    gates = deciding_metrics(labs.policy(tmp_path), lab)
    with pytest.raises(ConfigurationError, match="1 of 101 for cases not in synthetic lab"):
        fit_thresholds(lab, {**passes, "elsewhere": True}, gates, TEN)


def test_one_question_in_two_groups_is_refused(tmp_path: Path) -> None:
    """A split by group would put it on both sides; so would a variant away from its source."""
    lab, passes = labs.lab(100)
    gates = deciding_metrics(labs.policy(tmp_path), lab)
    twin = dataclasses.replace(lab.cases[0], key="twin", group="elsewhere")
    variant = dataclasses.replace(twin, question="Qestion 0?", source=lab.cases[0].key)
    for extra, says in ((twin, "the question of 'q0-0'"), (variant, "a variant of 'q0-0'")):
        leaking = ScoredLab(lab.where, (*lab.cases, extra), lab.fingerprints)
        with pytest.raises(ConfigurationError, match=says):
            fit_thresholds(leaking, passes, gates, TEN)


def test_checks_that_flag_too_many_good_answers_are_named(tmp_path: Path) -> None:
    """No threshold helps against a yes/no check or a missing score that flags."""
    lab, passes = labs.lab(100)
    failing = tuple(
        labs.case(c.key, c.group, labs.MISSING) if n % 4 == 0 else c
        for n, c in enumerate(lab.cases)
    )
    broken = ScoredLab(lab.where, failing, lab.fingerprints)
    with pytest.raises(ConfigurationError) as caught:
        fit_thresholds(broken, passes, deciding_metrics(labs.policy(tmp_path), broken), TEN)
    assert "groundedness.groundedness" in caught.value.found
    lenient = labs.policy(tmp_path, on_unverified="pass")
    assert fit_thresholds(broken, passes, deciding_metrics(lenient, broken), TEN).rank > 0


def test_missing_scores_and_failed_checks_count_as_flags_within_the_bound(tmp_path: Path) -> None:
    """As they will when served."""
    lab, passes = labs.lab(200)
    first = next(n for n, c in enumerate(lab.cases) if passes[c.key])
    cases = list(lab.cases)
    cases[first] = labs.case(cases[first].key, cases[first].group, labs.MISSING)
    cases[first + 4] = labs.case(cases[first + 4].key, cases[first + 4].group, language=0.0)
    holed = ScoredLab(lab.where, tuple(cases), lab.fingerprints)
    found = fit_thresholds(holed, passes, deciding_metrics(labs.policy(tmp_path), holed), TEN)
    flags = found.joint.flags(found.data.values)
    where = {case.key: n for n, case in enumerate(found.data.cases)}
    assert flags[where[cases[first].key]]
    assert flags[where[cases[first + 4].key]]
    assert found.joint.flags(found.units).sum() <= found.rank


@pytest.mark.parametrize("rule", ["false_flag", "average"])
def test_a_rule_per_metric_bounds_each_alone(tmp_path: Path, rule: str) -> None:
    """And together they flag more."""
    found = fitted(tmp_path, dataclasses.replace(TEN, rule=rule))
    for j in (0, 1):
        assert (found.units[:, j] < found.cuts[j]).mean() <= TEN.alpha
    assert found.joint.flags(found.units).mean() > TEN.alpha / 2
    assert found.promising


@pytest.mark.parametrize("rule", ["false_flag", "average"])
def test_a_check_that_flags_too_many_good_answers_keeps_no_promise(
    tmp_path: Path, rule: RuleName
) -> None:
    """There is nothing to fit, and its own false flags are promised as any metric's."""
    lab, passes = labs.lab(100)
    cases = tuple(
        labs.case(c.key, c.group, language=float(n % 3 > 0)) for n, c in enumerate(lab.cases)
    )
    failing = ScoredLab(lab.where, cases, lab.fingerprints)
    gates = deciding_metrics(labs.policy(tmp_path), failing)
    with pytest.raises(ConfigurationError, match=r"that fail language_mismatch\.model_passes"):
        fit_thresholds(failing, passes, gates, dataclasses.replace(TEN, rule=rule))
    assert (
        fit_thresholds(failing, passes, gates, FitOptions(rule="recall", recall=0.01)).cuts[-1]
        == 0.5
    )


def test_a_recall_rule_catches_its_share_of_bad_answers(tmp_path: Path) -> None:
    """Per metric, at whatever cost in false flags."""
    found = fitted(tmp_path, FitOptions(rule="recall", recall=0.5))
    bad = found.data.values[~found.data.good]
    for j in (0, 1):
        assert (bad[:, j] < found.cuts[j]).mean() >= 0.5


def test_recall_that_missing_scores_reach_alone_takes_the_end_of_the_range(tmp_path: Path) -> None:
    """The threshold flags no score, and the range still holds it."""
    lab, passes = labs.lab(160)
    silent = tuple(
        c if passes[c.key] else labs.case(c.key, c.group, labs.MISSING) for c in lab.cases
    )
    holed = ScoredLab(lab.where, silent, lab.fingerprints)
    gates = deciding_metrics(labs.policy(tmp_path), holed, ["groundedness"])
    found = fit_thresholds(holed, passes, gates, FitOptions(rule="recall", recall=0.5))
    assert found.threshold(0) == gates[0].metric.low
    assert found.joint.flags(found.data.values).tolist() == (~found.data.good).tolist()


def test_recall_out_of_reach_is_refused(tmp_path: Path) -> None:
    """A bad answer with the best possible score is caught by no threshold."""
    lab, passes = labs.lab(100)
    best = tuple(c if passes[c.key] else labs.case(c.key, c.group, 1.0, 1.0) for c in lab.cases)
    perfect = ScoredLab(lab.where, best, lab.fingerprints)
    gates = deciding_metrics(labs.policy(tmp_path), perfect)
    with pytest.raises(ConfigurationError, match="gives its best score"):
        fit_thresholds(perfect, passes, gates, FitOptions(rule="recall", recall=0.5))
    with pytest.raises(ConfigurationError, match="questions with a bad answer"):
        fit_thresholds(perfect, passes, gates, FitOptions(rule="recall", recall=0.99))


@pytest.mark.parametrize("rule", ["cost", "max_f1", "youden"])
def test_comparison_rules_promise_nothing(tmp_path: Path, rule: str) -> None:
    """They are there to be compared with."""
    found = fitted(tmp_path, dataclasses.replace(TEN, rule=rule))
    assert not found.promising
    assert found.joint.flags(found.data.values[~found.data.good]).mean() > 0.5


def test_the_same_input_gives_the_same_thresholds(tmp_path: Path) -> None:
    """To the last bit."""
    assert fitted(tmp_path).cuts == fitted(tmp_path).cuts


def test_an_uneven_sample_is_thinned_or_refused(tmp_path: Path) -> None:
    """Weights must cover every labelled case."""
    lab, passes = labs.lab(300)
    gates = deciding_metrics(labs.policy(tmp_path), lab)
    weights = {case.key: 3.0 if n < 150 else 1.0 for n, case in enumerate(lab.cases)}
    data = fit_thresholds(lab, passes, gates, TEN, weights).data
    assert data.thinned_away > 60
    del weights["q0-0"]
    with pytest.raises(ConfigurationError, match="no weight for 1 labelled cases"):
        fit_thresholds(lab, passes, gates, TEN, weights)


def test_whole_questions_of_an_uneven_sample_come_out_even(tmp_path: Path) -> None:
    """What was drawn three times as densely loses two thirds, however many answers it has.

    Answers to one question must agree about how densely it was drawn.
    """
    lab, passes = labs.lab(600, reruns=5)
    gates = deciding_metrics(labs.policy(tmp_path), lab)
    weights = {case.key: 1.0 + 2.0 * (case.facts["topic"] == "leave") for case in lab.cases}
    data = fit_thresholds(lab, passes, gates, TEN, weights).data
    topics = Counter({case.group: case.facts["topic"] for case in data.cases}.values())
    assert topics["leave"] == 300
    assert topics["travel"] == pytest.approx(100, abs=30)
    weights["q1-0"] = 3.0
    with pytest.raises(ConfigurationError, match="'q1-1' than for other answers to its question"):
        fit_thresholds(lab, passes, gates, TEN, weights)


def test_the_worst_of_a_question_is_not_known_before_all_its_answers_are_read(
    tmp_path: Path,
) -> None:
    """A promise about any of its good answers cannot rest on those that happen to have a label."""
    lab, passes = labs.lab(100, reruns=3)
    gates = deciding_metrics(labs.policy(tmp_path), lab)
    options = dataclasses.replace(TEN, unit="worst_of_group")
    one_each = {key: word for key, word in passes.items() if key.endswith("-0")}
    with pytest.raises(ConfigurationError) as caught:
        fit_thresholds(lab, one_each, gates, options)
    assert "100 of 100 labelled questions ('q0-1')" in caught.value.found
    assert "--whole-questions" in caught.value.expected
    whole = {key: word for key, word in passes.items() if int(key[1:-2]) < 60}
    assert len(set(fit_thresholds(lab, whole, gates, options).data.groups)) == 60
    told = {key: word for key, word in whole.items() if key != "q5-2"}
    with pytest.raises(ConfigurationError, match=r"1 of 60 labelled questions \('q5-2'\)"):
        fit_thresholds(lab, told, gates, options)
    assert fit_thresholds(lab, told, gates, options, abstained=["q5-2"]).rank
    assert fit_thresholds(lab, one_each, gates, TEN).rank


def test_an_earlier_shape_is_kept(tmp_path: Path) -> None:
    """So that labels can be added at any time; of other metrics it is refused."""
    options = dataclasses.replace(TEN, method="scaled_min", looks="anytime")
    first = fitted(tmp_path, options)
    assert first.shape is not None
    names = [gate.name for gate in first.gates if not gate.metric.boolean]
    lab, passes = labs.lab(320, 5)
    gates = deciding_metrics(labs.policy(tmp_path), lab)
    second = fit_thresholds(lab, passes, gates, options, previous=first.shape.as_json(names))
    assert second.shape is not None
    assert second.shape.scales == first.shape.scales
    with pytest.raises(ConfigurationError, match="--previous"):
        fit_thresholds(lab, passes, gates, options, previous=first.shape.as_json(["a.b", "c.d"]))


def test_questions_that_chose_an_earlier_shape_do_not_prove_it(tmp_path: Path) -> None:
    """With few labels all of them go into the bound, unless a shape was chosen by some."""
    first = fitted(tmp_path, dataclasses.replace(TEN, method="scaled_min", alpha=0.2), 60)
    assert first.shape is not None
    kept = first.shape.as_json([gate.name for gate in first.gates if not gate.metric.boolean])
    lab, passes = labs.lab(60)
    gates = deciding_metrics(labs.policy(tmp_path), lab)
    options = dataclasses.replace(TEN, alpha=0.2)
    assert fit_thresholds(lab, passes, gates, options, previous=kept).data.design.any()
    fewer = dataclasses.replace(TEN, alpha=0.1)
    with pytest.raises(ConfigurationError, match="more"):
        fit_thresholds(lab, dict(list(passes.items())[:35]), gates, fewer, previous=kept)


def test_a_label_added_at_any_time_leaves_earlier_answers_in_place(tmp_path: Path) -> None:
    """Else the walk that the anytime rule bounds would have another past at every look."""
    lab, passes = labs.lab(240, reruns=4)
    gates = deciding_metrics(labs.policy(tmp_path), lab)
    options = dataclasses.replace(TEN, alpha=0.2, method="scaled_min", looks="anytime")
    drawn = {item.case.key for item in draw(lab.cases, 240, options.seed)}
    few = {key: word for key, word in passes.items() if (key in drawn) == (int(key[1:-2]) < 180)}
    looks = [fit_thresholds(lab, words, gates, options).data for words in (few, passes)]
    before, after = (data.unit_digests(data.good & ~data.design, options) for data in looks)
    assert set(before) < set(after)
    others = {key: word for key, word in passes.items() if key not in drawn}
    with pytest.raises(ConfigurationError, match="240 more whose drawn answer has no label"):
        fit_thresholds(lab, others, gates, options)


def test_an_uneven_sample_cannot_grow_at_any_time(tmp_path: Path) -> None:
    """Its weights change, and with them what is thinned away."""
    lab, passes = labs.lab(300)
    gates = deciding_metrics(labs.policy(tmp_path), lab)
    options = dataclasses.replace(TEN, method="scaled_min", looks="anytime")
    weights = {case.key: 3.0 if n < 150 else 1.0 for n, case in enumerate(lab.cases)}
    with pytest.raises(ConfigurationError, match="uneven weights with --looks anytime"):
        fit_thresholds(lab, passes, gates, options, weights)
    assert fit_thresholds(lab, passes, gates, options, dict.fromkeys(weights, 3.0)).rank


@pytest.mark.parametrize("looks", ["fixed", "anytime"])
def test_scales_from_a_handful_of_answers_are_refused(tmp_path: Path, looks: Looks) -> None:
    """Quartiles of seven scores are guesses; nothing falls back to a rule nobody asked for."""
    options = FitOptions(alpha=0.2, method="scaled_min", split=0.05, looks=looks)
    with pytest.raises(ConfigurationError, match="good questions in the design part"):
        fitted(tmp_path, options, 90)


def test_weights_of_metrics_that_are_not_there_are_refused(tmp_path: Path) -> None:
    """The message lists those that are."""
    options = dataclasses.replace(TEN, weights={"toxicity.toxicity": 2.0})
    with pytest.raises(ConfigurationError, match=r"groundedness\.groundedness"):
        fitted(tmp_path, options)


def test_checks_alone_can_be_calibrated(tmp_path: Path) -> None:
    """A policy of yes/no checks has a false-flag rate, too, and nothing to tune."""
    lab, passes = labs.lab(100)
    gates = deciding_metrics(labs.policy(tmp_path), lab, ["language_mismatch"])
    found = fit_thresholds(lab, passes, gates, TEN)
    assert found.shape is None
    assert found.cuts == (0.5,)
    cases = tuple(
        labs.case(c.key, c.group, language=float(n % 3 > 0)) for n, c in enumerate(lab.cases)
    )
    failing = ScoredLab(lab.where, cases, lab.fingerprints)
    with pytest.raises(ConfigurationError, match=r"language_mismatch\.model_passes"):
        fit_thresholds(
            failing,
            passes,
            deciding_metrics(labs.policy(tmp_path), failing, ["language_mismatch"]),
            TEN,
        )
