"""The second look of `facts`: numbers that the rules let pass and a passage has otherwise."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from guardrail_bench.guarding import read
from guardrail_service.detectors.facts import align, detector, suspicion
from guardrail_service.detectors.facts.detector import FactVerdict, verdicts
from guardrail_service.detectors.facts.read import read_all
from guardrail_service.detectors.hallucination.reading import claims_of
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.text.segmentation.sentences import Sentence
from guardrail_service.types import Passage, Sample

ROOT = Path(__file__).parents[4]
GOLDEN = ROOT / "tests" / "golden"
TRAINING = ROOT / "models" / "training" / "facts"
NEVER = 99.0
FOUND = {
    "fourth-fd-bad-005": ("fourth", "16 h"),
    "fifth-hj-bad-044": ("fifth", "6.8"),
}
"""Bad answers of which no rule finds the number, by corpus."""


def flagged(sample: Sample) -> list[FactVerdict]:
    """Return the facts that are held against an answer."""
    segmented = SegmentedSample(sample)
    return [one for one in verdicts(segmented, claims_of(segmented).stated) if one.score < 0.5]


@pytest.mark.parametrize("case_id", FOUND)
def test_the_second_look_finds_what_rules_let_pass(
    case_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the number, and the passage's other one as the place."""
    corpus, number = FOUND[case_id]
    files = (GOLDEN / corpus / "attacks").glob("*.jsonl")
    (case,) = [one for file in files for one in read(file) if one.id == case_id]
    (found,) = flagged(case.sample)
    assert case.sample.answer[found.start : found.end] == number
    assert found.label == "contradicted"
    assert found.place is not None
    passage = case.sample.contexts[found.place.context].text
    assert passage[found.place.start : found.place.end] not in ("", number)
    monkeypatch.setattr(detector, "MOST_SUSPICION", NEVER)
    assert flagged(case.sample) == []


@pytest.mark.parametrize("corpus", [".", "second", "third", "fourth", "fifth", "sixth"])
def test_no_good_answer_is_lost_to_it(corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trees were fitted on these, so this says that what ships is what was fitted."""
    files = sorted((GOLDEN / corpus / "ordinary").glob("*.jsonl"))
    good = [case.sample for file in files for case in read(file)]
    assert len(good) >= 60
    with_it = [bool(flagged(sample)) for sample in good]
    monkeypatch.setattr(detector, "MOST_SUSPICION", NEVER)
    assert with_it == [bool(flagged(sample)) for sample in good]


def test_a_date_told_by_another_is_left_alone() -> None:
    """Which year follows from which is arithmetic, and for the rules."""
    passage = "The castle was demolished in 1649, three years after the market cross was rebuilt."
    answer = "The market cross was rebuilt first, in 1646, and the castle was demolished later."
    assert flagged(Sample(answer, "", (Passage(passage),))) == []


@pytest.mark.parametrize(
    ("said", "held"),
    [("pays 11", "pays a fee of 15 euros"), ("is for 50 seats", "seats 45")],
)
def test_a_bare_number_may_stand_for_one_in_other_words(said: str, held: str) -> None:
    """Rules compare counts of the same things only; the second look sees these, too."""
    (claim,), (passage,) = (read_all([Sentence(0, len(t), t)])[0] for t in (said, held))
    fact, other = claim.facts[0], passage.facts[-1]
    assert not align.rivals(fact, other)
    assert suspicion.may_stand_for(fact, other)


@pytest.mark.parametrize(
    "year", ["Vale et al., 2014", "Vale, 2014; Oda, 2015", "so Vale et al. (2014"]
)
def test_the_year_of_a_source_is_left_alone(year: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passages cite other works beside the same words."""
    monkeypatch.setattr(detector, "MOST_SUSPICION", -NEVER)
    passage = "Hubs are easily attacked (Albert et al., 2000; Ruiz, 2013)."
    assert flagged(Sample(f"Hubs are easily attacked ({year}).", "", (Passage(passage),))) == []
    for other in ("Hubs were easily attacked in 2014.", "Hubs are easily attacked (Ruiz, 2014)."):
        assert [one.kind for one in flagged(Sample(other, "", (Passage(passage),)))] == ["date"]


def test_the_file_has_the_columns_that_are_read() -> None:
    """Trees fitted on other features would be read as nonsense."""
    file = Path(suspicion.__file__).with_name(suspicion.TREES_FILE)
    content = json.loads(file.read_text("utf-8"))
    assert tuple(content["columns"]) == suspicion.COLUMNS
    trees = suspicion.trees()
    assert len(trees) == 100
    for tree in trees:
        for place, node in enumerate(tree):
            if isinstance(node, list):  # children stand behind, so that every walk ends
                assert place < node[2] < len(tree)
                assert place < node[3] < len(tree)
                assert 0 <= node[0] < len(suspicion.COLUMNS)


def test_trees_are_read_as_they_were_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written says the same as scikit-learn's own trees."""
    monkeypatch.syspath_prepend(str(TRAINING))
    script = importlib.import_module("fit_suspicion")
    chance = np.random.default_rng(3)
    features = chance.random((600, len(suspicion.COLUMNS))).round(2)
    trees = script.fitted(features, features[:, 0] + features[:, 20] > 1)
    own = script.written(trees)
    read_back = [sum(suspicion.leaf(tree, list(row)) for tree in own) for row in features]
    assert np.allclose(read_back, trees.decision_function(features), atol=0.01)
    assert np.ptp(read_back) > 2


def test_the_script_fits_what_the_service_reads(tmp_path: Path) -> None:
    """On every 60th record: the whole of it takes a minute."""
    out = tmp_path / "suspicion.json"
    paths = [str(ROOT / name) for name in ("service", "load_tests")]
    script = str(TRAINING / "fit_suspicion.py")
    command = [sys.executable, script, "--every", "60", "--out", str(out)]
    done = subprocess.run(
        command, env={"PYTHONPATH": ":".join(paths)}, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "answers, above 2.6:" in done.stdout
    content = json.loads(out.read_text("utf-8"))
    assert tuple(content["columns"]) == suspicion.COLUMNS
    assert len(content["trees"]) == 100
