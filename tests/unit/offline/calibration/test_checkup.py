"""A promise against a second lab: broken, confirmed or not told; drift; refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guardrail_offline.calibration.checkup import Checkup, checkup
from guardrail_offline.calibration.deciding_metrics import deciding_metrics
from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.labels import Label, verdicts
from guardrail_offline.calibration.provenance_block import (
    Sources,
    file_text,
    guardrail_file,
    provenance_block,
)
from guardrail_offline.calibration.scored_lab import ScoredLab
from guardrail_offline.calibration.statistics import (
    FlagRate,
    baseline,
    compare,
    rate,
    slices,
    stability_index,
)
from guardrail_offline.calibration.thresholds import fit_thresholds
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.file import load_file
from tests.unit.offline.calibration import labs


def emitted(folder: Path) -> tuple[Policy, dict[str, Any]]:
    """Return a calibrated policy and its block."""
    lab, passes = labs.lab(200)
    base = labs.policy(folder)
    fitted = fit_thresholds(lab, passes, deciding_metrics(base, lab), FitOptions(alpha=0.1))
    words = verdicts([Label(k, "pass" if v else "fail") for k, v in passes.items()], "labels")
    block = provenance_block(fitted, lab, words, Sources("0" * 64, "every case of the lab"))
    path = folder / "emitted.json"
    path.write_text(file_text(guardrail_file(fitted, block, base, "mine", "1")))
    return load_file(path, labs.SERVING).policy, block


def checked(folder: Path, lab: ScoredLab, passes: dict[str, bool]) -> Checkup:
    """Return the checkup of the emitted policy."""
    return checkup(*emitted(folder), lab, passes)


def test_a_large_lab_of_the_same_kind_confirms(tmp_path: Path) -> None:
    """No drift, every interval below the bound."""
    lab, passes = labs.lab(2500, 5, start=1000)
    found = checked(tmp_path, lab, passes)
    assert found.finding == "confirmed"
    assert not any(drift.found for drift in found.drift)
    assert found.as_json()["finding"] == "confirmed"


def test_the_worst_of_a_question_is_checked_on_all_its_answers(tmp_path: Path) -> None:
    """As it was fitted: an answer nobody read may be the worst one."""
    policy, block = emitted(tmp_path)
    worst = {**block, "options": {**block["options"], "unit": "worst_of_group"}}
    lab, passes = labs.lab(40, 5, reruns=2, start=1000)
    assert checkup(policy, worst, lab, passes).false_flags.n
    del passes["q1003-1"]
    with pytest.raises(ConfigurationError, match=r"1 of 40 labelled questions \('q1003-1'\)"):
        checkup(policy, worst, lab, passes)
    assert checkup(policy, worst, lab, passes, ["q1003-1"]).false_flags.n
    assert checkup(policy, block, lab, passes).false_flags.n


def test_a_small_lab_cannot_tell(tmp_path: Path) -> None:
    """And says so."""
    lab, passes = labs.lab(20, 6, start=1000)
    found = checked(tmp_path, lab, passes)
    assert found.finding == "consistent"
    assert "too small" in next(iter(found.sentences()))


def test_a_lab_of_another_kind_breaks_the_promise_and_shows_drift(tmp_path: Path) -> None:
    """Scores of good answers have moved down."""
    lab, passes = labs.lab(300, 7, start=1000)
    moved = tuple(
        labs.case(c.key, c.group, (c.scores["groundedness"]["groundedness"].value or 0) - 0.3)
        for c in lab.cases
    )
    found = checked(tmp_path, ScoredLab("moved", moved, lab.fingerprints), passes)
    assert found.finding == "broken"
    assert [d.found for d in found.drift if d.metric == "groundedness.groundedness"] == [True]
    assert "have moved" in " ".join(found.sentences())


def test_questions_that_were_fitted_on_are_refused(tmp_path: Path) -> None:
    """Their rate is flattered."""
    lab, passes = labs.lab(201)
    with pytest.raises(ConfigurationError, match="200 questions that thresholds were fitted on"):
        checked(tmp_path, lab, passes)


def test_drift_is_measured_on_new_questions_alone(tmp_path: Path) -> None:
    """A lab that still holds the old ones would hide it."""
    old, _ = labs.lab(200)
    new, passes = labs.lab(150, 7, start=1000)
    moved = tuple(
        labs.case(c.key, c.group, (c.scores["groundedness"]["groundedness"].value or 0) - 0.3)
        for c in new.cases
    )
    apart = checked(tmp_path, ScoredLab("new", moved, old.fingerprints), passes)
    together = checked(tmp_path, ScoredLab("all", old.cases + moved, old.fingerprints), passes)
    assert together.drift == apart.drift


def test_scores_of_another_model_are_refused(tmp_path: Path) -> None:
    """They are other numbers."""
    lab, passes = labs.lab(50, start=1000)
    other = ScoredLab("other", lab.cases, {**lab.fingerprints, "embedding": "x"})
    with pytest.raises(ConfigurationError, match="fingerprint of embedding"):
        checked(tmp_path, other, passes)


def test_a_file_without_a_joint_promise_is_only_measured(tmp_path: Path) -> None:
    """There is nothing to break."""
    policy, _ = emitted(tmp_path)
    lab, passes = labs.lab(50, start=1000)
    found = checkup(policy, {}, lab, passes)
    assert (found.alpha, found.finding, found.drift) == (None, None, ())
    assert "promises nothing about all checks together" in next(iter(found.sentences()))


def test_drift_sounds_no_alarm_on_the_same_scores_and_one_on_others() -> None:
    """At one percent false alarms, over 400 pairs of samples with many ties."""
    generator = np.random.default_rng(3)

    def sample(shift: float, n: int = 200) -> np.ndarray:
        values = np.round(generator.normal(shift, 1, n), 1)
        values[generator.random(n) < 0.1] = np.inf
        return values

    alarms = [compare("m", baseline(sample(0)), sample(0)).found for _ in range(400)]
    assert np.mean(alarms) < 0.03
    assert all(compare("m", baseline(sample(0)), sample(1)).found for _ in range(20))


def test_missing_scores_are_part_of_the_comparison() -> None:
    """A detector that stops scoring drifts, too; an empty baseline says nothing."""
    then, now = np.r_[np.zeros(90), np.full(10, np.inf)], np.r_[np.zeros(40), np.full(60, np.inf)]
    drift = compare("m", baseline(then), now)
    assert drift.found
    assert (drift.then, drift.now) == (0.1, 0.6)
    assert drift.as_json()["drift"]
    nothing = baseline(np.full(10, np.inf))
    assert nothing == {"edges": [], "counts": [0], "missing": 10}
    assert not compare("m", nothing, np.full(20, np.inf)).found


def test_the_stability_index_is_zero_for_equal_shares_and_symmetric() -> None:
    """And grows with the difference."""
    assert stability_index([500, 500], [50, 50]) == pytest.approx(0, abs=1e-4)
    assert stability_index([900, 100], [500, 500]) > 0.25
    assert stability_index([9, 1], [1, 9]) == pytest.approx(stability_index([1, 9], [9, 1]))


def test_rates_have_exact_intervals_and_nothing_of_nothing() -> None:
    """In words, too."""
    assert str(FlagRate(0, 0)) == "0 of 0"
    assert FlagRate(0, 0).share is None
    assert rate(np.array([True, False])).share == 0.5
    assert FlagRate(3, 50).as_json()["ci95"] == pytest.approx([0.012549, 0.165482], abs=1e-6)


def test_slices_cover_every_answer_and_leave_names_out() -> None:
    """A fact with a value per case is a name."""
    cases = [labs.case(str(n), "g", facts={"topic": "ab"[n % 2], "id": str(n)}) for n in range(40)]
    good = np.arange(40) % 4 > 0
    found = slices(cases, good, np.arange(40) % 2 == 0)
    assert [s.value for s in found] == ["a", "b"]
    assert sum(s.false_flags.n + s.recall.n for s in found) == 40
    assert found[0].false_flags.x == 10
    assert found[0].as_json()["fact"] == "topic"
