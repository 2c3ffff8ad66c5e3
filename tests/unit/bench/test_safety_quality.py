"""Reading labelled texts and measuring verdicts on them; a tiny real pack stands in for ours."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from guardrail_bench import safety_quality
from guardrail_bench.safety_quality import (
    LabelledText,
    ScoredText,
    baselines,
    decision,
    f1,
    linear_model,
    ranking,
    read,
    render,
    run,
    slices,
    word_list,
)
from guardrail_service.detectors.safety import LABELS
from guardrail_service.errors import InputError
from guardrail_service.types import State
from tests import tiny_pack


def written(tmp_path: Path, rows: list[dict[str, object]]) -> Path:
    """Return a file of records."""
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return path


def test_labels_are_read_under_other_tools_names(tmp_path: Path) -> None:
    """Jigsaw's names are mapped, unknown ones counted, soft ones cut at half of the raters."""
    rows: list[dict[str, object]] = [
        {"text": "a", "labels": {"toxic": 1, "identity_hate": 0.4, "other": 1}},
        {"text": "b", "label": 0, "source": "s"},
    ]
    records, ignored = read("toxicity", written(tmp_path, rows))
    assert records[0].labels == {"toxicity": True, "identity_attack": False}
    assert records[1].labels == {"toxicity": False}
    assert records[1].slices == {"source": "s"}
    assert ignored == {"other": 1}


def test_a_bias_record_counts_for_its_part_too(tmp_path: Path) -> None:
    """`task` says which part was labelled; the others stay unknown."""
    path = written(tmp_path, [{"text": "a", "label": 1, "task": "bias_gender"}])
    (record,), _ = read("bias", path)
    assert record.labels == {"fairness_bias": True, "gender": True}


@pytest.mark.parametrize(
    "row", [{"text": "a"}, {"label": 1}, {"text": "", "label": 1}, {"text": "a", "label": "bad"}]
)
def test_a_malformed_record_is_refused_with_its_line(
    tmp_path: Path, row: dict[str, object]
) -> None:
    """Nothing is skipped silently, and the text is not repeated."""
    with pytest.raises(InputError, match="expected an object with text"):
        read("toxicity", written(tmp_path, [row]))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    """No record is no quality."""
    path = tmp_path / "empty.jsonl"
    path.write_text("\n")
    with pytest.raises(InputError, match="no record"):
        read("toxicity", path)


def scored(flagged: bool, label: bool, group: str = "g") -> ScoredText:
    """Return a record that was scored."""
    record = LabelledText("t", {"toxicity": label}, {"group": group})
    return ScoredText(record, {"toxicity": float(flagged)}, flagged, State.EVALUATED)


def test_rates_are_counted_by_hand() -> None:
    """Three of four bad ones caught, one of six good ones flagged."""
    found = [scored(True, True)] * 3 + [scored(False, True)]
    found += [scored(True, False)] + [scored(False, False)] * 5
    rates = decision(found, "toxicity")
    assert rates["recall"]["value"] == 0.75
    assert rates["precision"]["value"] == 0.75
    assert rates["false_flags"]["value"] == pytest.approx(1 / 6)
    assert rates["false_flags"]["n"] == 6
    assert rates["f1"] == pytest.approx(0.75)
    low, high = rates["f1_interval95"]
    assert low < 0.75 < high


def test_a_file_without_bad_texts_has_a_false_flag_rate_and_no_area() -> None:
    """A missing value is null, never a number."""
    found = [scored(False, False)] * 5
    rates = decision(found, "toxicity")
    assert rates["recall"] is None
    assert rates["f1"] is None
    assert rates["false_flags"]["value"] == 0
    ranked = ranking([0.1] * 5, [one.record for one in found], "toxicity")
    assert ranked["auroc"] is None


def test_groups_have_their_own_false_flags() -> None:
    """A rate over all would hide a group that is always flagged."""
    found = [scored(True, False, "one"), scored(False, False, "two"), scored(True, True, "two")]
    values = [one.scores["toxicity"] for one in found]
    parts = slices(found, "toxicity", {"ours": {"toxicity": values}})["group"]
    assert parts["two"]["auroc"] == {"toxicity": {"ours": 1.0}}
    assert parts["one"]["auroc"] == {}
    assert parts["one"]["false_flags"]["value"] == 1
    assert parts["two"]["false_flags"]["value"] == 0
    assert parts["two"]["accuracy"]["value"] == 1


def test_f1_of_nothing_caught_is_zero() -> None:
    """There were bad texts."""
    import numpy as np

    assert f1(np.zeros(2), np.array([True, False])) == 0


def test_the_whole_report_runs_on_a_pack(tiny: Path, tmp_path: Path) -> None:
    """Through the guard that serves: every state counted, baselines and notes beside it."""
    folder = Path(shutil.copytree(tiny, tmp_path / "pack"))
    tiny_pack.add_branch(folder, roles=["toxicity", "bias"], labels=LABELS)
    texts = ["dogs are not allowed", "the pool opens at seven", "idiot", "parking costs five euros"]
    rows = [{"text": t, "labels": {"toxic": int(t == "idiot")}} for t in texts]
    path = written(tmp_path, list(rows) * 5)
    golden = {
        "schema_version": "1",
        "role": "toxicity",
        "tolerance": 0.99,
        "rows": [{"text": "the pool", "probabilities": [0.5] * len(LABELS)}] * 50,
    }
    (folder / "branch-golden.json").write_text(json.dumps(golden))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["models"]["branch"]["golden"] = tiny_pack.describe(folder, "branch-golden.json")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    report = run("toxicity", path, str(folder), [path])
    assert report["states"] == {"evaluated": 20}
    assert report["metrics"]["toxicity"]["positives"] == 5
    assert report["baselines"]["word_list"]["toxicity"]["auroc"] == 1
    assert report["baselines"]["tfidf_logistic"]["toxicity"]["auroc"] == 1
    console = Console(record=True, width=150)
    console.print(render(report))
    assert "false flags" in console.export_text()


def test_an_unknown_task_is_refused(tmp_path: Path) -> None:
    """The message lists what exists."""
    with pytest.raises(InputError, match="toxicity, bias"):
        run("rudeness", tmp_path / "none")


def test_a_listed_word_counts_as_a_word_only() -> None:
    """Scunthorpe is a town."""
    texts = ["You IDIOTS!", "Scunthorpe and Essex", "the class is assigned", "kill -9"]
    assert word_list(texts, "toxicity") == [1.0, 0.0, 0.0, 1.0]


def test_the_linear_model_learns_each_metric_apart() -> None:
    """A metric without enough examples of both classes has no model."""
    train = [("rude words here", {"toxicity": True})] * 8
    train += [("kind words there", {"toxicity": False})] * 8
    score = linear_model(train, ["toxicity", "threat"])
    found = score(["rude", "kind"], "toxicity")
    assert found is not None
    assert found[0] > 0.5 > found[1]
    assert score(["rude"], "threat") is None


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A baseline that is left out silently would look as if there were none."""
    monkeypatch.setattr(safety_quality, "find_spec", lambda _name: None)
    found, notes = baselines([("a", {"toxicity": True})], ["toxicity"])
    assert [one.name for one in found] == ["word_list"]
    assert notes == [safety_quality.NO_PROFANITY, safety_quality.NO_SKLEARN]
    assert baselines([], ["toxicity"])[1][-1] == safety_quality.NO_TRAINING


def test_another_tool_is_asked_only_about_what_it_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing about threats or bias."""

    class Module:
        @staticmethod
        def predict_prob(texts: list[str]) -> list[float]:
            """Return a probability for each text."""
            return [0.25 for _ in texts]

    monkeypatch.setattr(safety_quality, "import_module", lambda _name: Module)
    assert safety_quality.profanity_check(["a", "b"], "toxicity") == [0.25, 0.25]
    assert safety_quality.profanity_check(["a"], "fairness_bias") is None
