"""From files to the guardrail file: served unchanged, the same bytes each time, honest in words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from guardrail_offline.calibration.explanation import explain
from guardrail_offline.calibration.fit import run_fit
from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.labels import Label, labels_jsonl, ledger_of, read_looks
from guardrail_offline.calibration.provenance_block import file_text
from guardrail_offline.calibration.scored_lab import ScoredLab
from guardrail_service.commands.main import app
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Policy, decide, describe
from guardrail_service.policy.file import load_file
from guardrail_service.types import Outcome
from tests.unit.offline.calibration import labs
from tests.unit.offline.calibration.conftest import TEN, Files, run


def served(folder: Path, content: dict[str, Any]) -> Policy:
    """Return the policy that the service makes of a file."""
    path = folder / "emitted.json"
    path.write_text(file_text(content))
    return load_file(path, labs.SERVING).policy


def test_the_file_is_served_unchanged_and_calibrated(files: Files, tmp_path: Path) -> None:
    """Without a warning; replies say calibrated."""
    found = run(files)
    policy = served(tmp_path, found.content)
    assert policy.warnings == ()
    assert policy.name == "base-calibrated"
    outcomes = {
        "groundedness": Outcome.evaluated({"groundedness": 0.9}),
        "answer_relevancy_sentence": Outcome.evaluated({"answer_relevancy": 0.9}),
        "language_mismatch": Outcome.not_applicable("language_undetermined"),
    }
    assert decide(policy, outcomes).calibrated
    for rule in describe(policy)["detectors"].values():
        assert {m["status"] for m in rule["metrics"].values()} <= {"calibrated", "reported"}


def test_serving_flags_exactly_what_the_fit_counted(files: Files, tmp_path: Path) -> None:
    """The comparison that serves, on every labelled case."""
    found = run(files)
    policy = served(tmp_path, found.content)
    data = found.fitted.data
    for case, flag in zip(data.cases, found.fitted.joint.flags(data.values), strict=True):
        outcomes = {
            name: Outcome.evaluated({key: score.value or 0.0 for key, score in metrics.items()})
            for name, metrics in case.scores.items()
        }
        assert (decide(policy, outcomes).decision == "flag") == bool(flag)


def test_the_same_input_gives_the_same_bytes(files: Files) -> None:
    """Also after other looks have been written down in between."""
    first = file_text(run(files).content)
    run(files, FitOptions(alpha=0.2))
    assert file_text(run(files).content) == first


def test_the_block_says_what_the_thresholds_rest_on(files: Files) -> None:
    """Data, labels, target, achieved point, slices, baselines, fingerprints."""
    block = run(files, expires="2030-01-01").content["calibration"]
    data = block["dataset"]
    assert data["n_labeled"] == data["n_good"] + data["n_bad"] == 160
    assert data["sampling"] == "every case of the lab"
    assert data["date_range"] == ["2026-11-01", "2026-11-09"]
    assert len(data["group_digests"]) == data["n_labeled_groups"] == 160
    assert block["target"] == {
        "kind": "false_flag_rate", "alpha": 0.1, "delta": 0.1, "scope": "joint",
        "unit": "one_per_group",
    }  # fmt: skip
    assert block["joint"]["false_flag_upper"] <= 0.1
    assert block["joint"]["false_flag"]["x"] <= block["joint"]["k"]
    assert block["fingerprints"] == labs.FINGERPRINTS
    assert block["expires"] == "2030-01-01"
    assert {s["value"] for s in block["slices"]} == {"leave", "travel"}
    metric = block["per_metric"][
        "h2o_sonar.evaluators.rag_groundedness_evaluator.RagGroundednessEvaluator"
    ]["groundedness"]
    assert metric["operator"] == "flag_if_lt"
    assert metric["ci95"][0] <= metric["threshold"] <= metric["ci95"][1]
    assert sum(metric["baseline"]["counts"]) + metric["baseline"]["missing"] == 160
    assert metric["p_bad"]["expected_calibration_error"] < 0.25
    assert "one annotator" in block["warnings"][0]


def test_a_second_look_is_recorded_and_stated(files: Files, tmp_path: Path) -> None:
    """The promises then hold together with less confidence, and the file says so."""
    run(files)
    second = run(files, FitOptions(alpha=0.2)).content
    assert second["calibration"]["looks"]["count"] == 2
    assert second["calibration"]["looks"]["delta_total"] == pytest.approx(0.2)
    assert any("confidence 0.800" in text for text in second["calibration"]["warnings"])
    assert "looked at 2 times" in " ".join(explain(second))
    assert len(read_looks(ledger_of(tmp_path / "labels.jsonl"))) == 2


def test_a_promise_on_average_spends_no_delta(files: Files, tmp_path: Path) -> None:
    """It has none; nor has a comparison. Other looks cost it the words it makes, not a number."""
    run(files)
    average = run(files, FitOptions(rule="average", alpha=0.1)).content
    assert average["calibration"]["looks"] == {"mode": "fixed", "count": 2, "delta_total": 0.1}
    assert "holds for a rule that no other look chose" in " ".join(explain(average))
    assert any("no other look chose" in text for text in average["calibration"]["warnings"])
    third = run(files, FitOptions(alpha=0.2)).content
    assert third["calibration"]["looks"] == {"mode": "fixed", "count": 3, "delta_total": 0.2}
    compared = run(files, FitOptions(rule="youden")).content
    assert "looked at" not in " ".join(explain(compared))
    assert compared["calibration"]["looks"]["delta_total"] == 0.2
    assert len(read_looks(ledger_of(tmp_path / "labels.jsonl"))) == 3


def test_labels_may_grow_under_an_anytime_rule_for_one_delta(files: Files, tmp_path: Path) -> None:
    """With the earlier file's scales; without them it is another rule and another delta."""
    options = FitOptions(alpha=0.15, looks="anytime", method="scaled_min")
    inputs = files()
    whole = (tmp_path / "labels.jsonl").read_text()
    (tmp_path / "labels.jsonl").write_text("".join(whole.splitlines(keepends=True)[:130]))
    first = run_fit(inputs, options, labs.SERVING).content
    (tmp_path / "first.json").write_text(file_text(first))
    (tmp_path / "labels.jsonl").write_text(whole)
    again = run(files, options, previous=tmp_path / "first.json").content["calibration"]
    assert again["dataset"]["n_labeled"] > first["calibration"]["dataset"]["n_labeled"]
    assert (again["looks"]["count"], again["looks"]["delta_total"]) == (1, 0.10)
    assert again["shape"]["scales"] == first["calibration"]["shape"]["scales"]
    assert run(files, options).content["calibration"]["looks"]["count"] == 2


@pytest.mark.parametrize("changes", [{"split": 0.2}, {"seed": 8}])
def test_an_earlier_shape_is_kept_with_its_division(
    files: Files, tmp_path: Path, changes: dict[str, Any]
) -> None:
    """Else questions that chose the scales would prove them."""
    options = FitOptions(alpha=0.15, method="scaled_min")
    (tmp_path / "first.json").write_text(file_text(run(files, options).content))
    (name,) = changes
    with pytest.raises(ConfigurationError, match=f"--{name}: found .*as in --previous"):
        run(files, replace(options, **changes), previous=tmp_path / "first.json")
    again = run(files, replace(options, method="auto"), previous=tmp_path / "first.json")
    assert again.content["calibration"]["dataset"]["n_design"]


def test_labels_changed_between_looks_at_any_time_are_refused(files: Files, tmp_path: Path) -> None:
    """They may grow; one that is turned around changes what the earlier look saw."""
    options = FitOptions(alpha=0.15, looks="anytime", method="scaled_min")
    first = run(files, options)
    (tmp_path / "first.json").write_text(file_text(first.content))
    data = first.fitted.data
    proving = np.flatnonzero(data.good & ~data.design)
    key = data.cases[proving[0]].key
    labels = tmp_path / "labels.jsonl"
    whole = labels.read_text()
    turned = whole.replace(
        f'{{"case": "{key}", "label": "pass"', f'{{"case": "{key}", "label": "fail"'
    )
    labels.write_text(turned)
    found = f"1 of {len(proving)} answers it rests on without their label or score"
    with pytest.raises(ConfigurationError, match=found):
        run(files, options, previous=tmp_path / "first.json")
    labels.write_text(whole)
    assert run(files, options, previous=tmp_path / "first.json").content == first.content


@pytest.mark.parametrize("text", ["[]", "{}", '{"calibration": null}'])
def test_an_earlier_file_without_a_shape_is_refused(
    files: Files, tmp_path: Path, text: str
) -> None:
    """It was not fitted by the joint rule."""
    (tmp_path / "first.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"no calibration\.shape"):
        run(files, previous=tmp_path / "first.json")


def test_scores_of_another_model_are_refused(files: Files) -> None:
    """Naming what differs; so are scores under other parameters."""
    made, _ = labs.lab(160)
    other = ScoredLab("x", made.cases, {**labs.FINGERPRINTS, "embedding": "f" * 64})
    with pytest.raises(ConfigurationError, match="fingerprint of embedding: found 'ffff"):
        run(files, lab=other)
    parameters = {"groundedness": {"h2o_compatible": True}}
    with pytest.raises(ConfigurationError, match="groundedness parameter h2o_compatible"):
        run(files, lab=ScoredLab("x", made.cases, labs.FINGERPRINTS, parameters))


def test_labels_that_are_not_there_are_asked_for(tmp_path: Path) -> None:
    """With the command that makes them."""
    words = ["calibrate", "fit", str(tmp_path), "--labels", str(tmp_path / "no.jsonl")]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "g.json")])
    assert done.exit_code == 2
    shown = " ".join(done.output.split())
    assert "found no file; expected labels; label first: guardrail studio DRAWN" in shown


def test_stopping_before_the_sample_is_labelled_is_refused(files: Files, tmp_path: Path) -> None:
    """Which labels are missing must not depend on what the others say."""
    sample = tmp_path / "sample.jsonl"
    keys = [f"q{n}-0" for n in range(160)]
    sample.write_text("".join(json.dumps({"case": k, "weight": 1.0}) + "\n" for k in keys))
    block = run(files, sample=sample).content["calibration"]
    assert block["dataset"]["sampling"] == "simple random, 160 questions"
    with sample.open("a") as stream:
        stream.write('{"case": "unlabelled", "weight": 1.0}\n')
    with pytest.raises(ConfigurationError, match="1 of 161 sampled cases without a label"):
        run(files, sample=sample)
    sample.write_text('{"case": "a"}\n')
    with pytest.raises(ConfigurationError, match="calibrate sample wrote"):
        run(files, sample=sample)


def test_an_abstention_counts_as_read_for_the_worst_answer(files: Files, tmp_path: Path) -> None:
    """A person who cannot tell has not passed the answer; one without any label may be good."""
    scored, passes = labs.lab(100, reruns=2)
    words = [Label(key, "pass" if good else "fail") for key, good in passes.items()]
    words[1] = Label("q0-1", "abstain")
    worst = FitOptions(alpha=0.15, unit="worst_of_group")
    (tmp_path / "labels.jsonl").write_text(labels_jsonl(words))
    assert run(files, worst, lab=scored).content["calibration"]["dataset"]["n_abstained"] == 1
    (tmp_path / "labels.jsonl").write_text(labels_jsonl([words[0], *words[2:]]))
    with pytest.raises(ConfigurationError, match=r"1 of 100 labelled questions \('q0-1'\)"):
        run(files, worst, lab=scored)


def test_how_labels_were_drawn_is_a_warning_where_nobody_said(files: Files, tmp_path: Path) -> None:
    """A bound needs an even draw."""
    inputs = files()
    lines = (tmp_path / "labels.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "labels.jsonl").write_text("".join(lines[:120]))
    content = run_fit(inputs, TEN, labs.SERVING).content
    assert any("not stated" in text for text in content["calibration"]["warnings"])


def test_labels_about_one_metric_are_used_where_they_are_asked_for(files: Files) -> None:
    """And words on the whole answer are then passed over."""
    inputs = files()
    whole = inputs.labels.read_text()
    about = whole.replace('"metric": null', '"metric": "groundedness.groundedness"')
    inputs.labels.write_text(whole.replace('"pass"', '"fail"') + about)
    content = run(files, about="groundedness.groundedness").content
    assert content["calibration"]["dataset"]["labels_about"] == "groundedness.groundedness"
    with pytest.raises(ConfigurationError, match="no answer labelled pass"):
        run(files)


def test_a_rule_without_a_promise_serves_uncalibrated(files: Files, tmp_path: Path) -> None:
    """And spends nothing, since it promises nothing."""
    content = run(files, FitOptions(rule="youden")).content
    policy = served(tmp_path, content)
    assert not any(cut.calibrated for rule in policy.rules.values() for cut in rule.cuts.values())
    assert explain(content)[0].startswith("Promise: none")
    assert read_looks(ledger_of(tmp_path / "labels.jsonl")) == []


def test_a_recall_file_is_served_and_says_what_it_rests_on(files: Files, tmp_path: Path) -> None:
    """On bad answers, also where most of them have no score; it does not unsay its promise."""
    made, passes = labs.lab(160)
    cases = tuple(
        c if passes[c.key] else labs.case(c.key, c.group, labs.MISSING) for c in made.cases
    )
    options = FitOptions(rule="recall", recall=0.5)
    scored = ScoredLab("x", cases, labs.FINGERPRINTS)
    content = run(files, options, lab=scored, metrics=["groundedness"]).content
    assert served(tmp_path, content).warnings == ()
    bad = sum(not word for word in passes.values())
    text = " ".join(explain(content))
    assert f"The bound rests on {bad} independent bad ones." in text
    assert "that bad answers are caught" not in text
    assert "Not promised: that good answers are not flagged" in text
    assert f"Of the bad ones it was fitted on: {bad} of {bad}" in text
