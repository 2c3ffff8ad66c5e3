"""Cross-encoders: three probabilities from premise and hypothesis, evidence chosen or given."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.models.pair import (
    NliSession,
    PairGroundingSession,
    PairModel,
    template_parts,
)
from guardrail_service.inference.pack import load_pack
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.types import Row
from tests import tiny_reference

EVIDENCE = ("the pool opens at seven", "dogs are not allowed", "breakfast is served until ten")
ASKED = ("probabilities", "places", "cosines")


def packed(tiny: Path, folder: Path, role: str, labels: tuple[str, ...], **declared: Any) -> Path:
    """Return the tiny pack with a cross-encoder behind a role."""
    copy = Path(shutil.copytree(tiny, folder / role))
    activation = "sigmoid" if len(labels) == 1 else "softmax"
    model = tiny_reference.pair(labels)
    tiny_reference.add(copy, role, model, labels=labels, activation=activation, **declared)
    return copy


@pytest.fixture(scope="module")
def grounding(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack whose role `grounding` is a cross-encoder with three outputs."""
    return packed(tiny, tmp_path_factory.mktemp("three"), "grounding", tiny_reference.THREE)


def session(folder: Path) -> PairGroundingSession:
    """Return the pack's grounding session, as the service opens it."""
    found = open_sessions(load_pack(folder))["grounding"]
    assert isinstance(found, PairGroundingSession)
    return found


def test_a_claim_is_read_against_the_evidence_nearest_to_it(grounding: Path) -> None:
    """What was read is told, nearest first; the premise is in the passages' order."""
    run = session(grounding)
    found = run.run(Row("grounding", "the pool opens", outputs=ASKED, evidence=EVIDENCE)).outputs
    places = found["places"].tolist()
    assert places[0] == 0
    assert sorted(places) == [0, 1, 2]
    assert list(found["cosines"]) == sorted(found["cosines"], reverse=True)
    pair = PairModel(load_pack(grounding), "grounding")
    (expected,) = pair.probabilities([pair.encoded(" ".join(EVIDENCE), "the pool opens")])
    np.testing.assert_array_equal(found["probabilities"], expected)
    assert found["probabilities"].sum() == pytest.approx(1)


def test_only_what_is_asked_for_is_given(grounding: Path) -> None:
    """As every session does it."""
    row = Row("grounding", "dogs", outputs=("probabilities",), evidence=EVIDENCE)
    assert set(session(grounding).run(row).outputs) == {"probabilities"}


def test_the_far_evidence_is_left_out_when_it_does_not_fit(grounding: Path) -> None:
    """Whole texts, never parts of one; `places` says which were read."""
    many = tuple(f"the pool opens at {n} in the morning" for n in "123456789")
    row = Row("grounding", "the pool opens at 5", outputs=ASKED, evidence=many)
    found = session(grounding).run(row).outputs
    assert found["places"].tolist()[0] == 4
    assert 1 <= len(found["places"]) < 6


def test_evidence_that_cannot_fit_fails(grounding: Path) -> None:
    """The nearest alone is longer than the model reads; it is not cut."""
    claim = "the pool opens at seven in the morning"
    long = "guests may stay for two weeks at most . " * 3
    with pytest.raises(RowFailed, match="at most 32"):
        session(grounding).run(Row("grounding", claim, outputs=ASKED, evidence=(long,)))


@pytest.mark.parametrize(("text", "evidence"), [("dogs", ()), (" ", EVIDENCE), ("dogs", ("",))])
def test_a_row_without_claim_or_evidence_fails(
    text: str, evidence: tuple[str, ...], grounding: Path
) -> None:
    """There is nothing to judge."""
    with pytest.raises(RowFailed):
        session(grounding).run(Row("grounding", text, outputs=ASKED, evidence=evidence))


def test_which_text_a_token_is_of_matters(grounding: Path) -> None:
    """Token types reach the graph: premise and hypothesis are not exchangeable."""
    pair = PairModel(load_pack(grounding), "grounding")
    one, other = pair.encoded("dogs are", "the pool"), pair.encoded("the pool", "dogs are")
    assert one.types == [0, 0, 0, 0, 1, 1, 1]
    assert not np.allclose(pair.probabilities([one]), pair.probabilities([other]))


def test_a_model_with_one_logit_knows_no_contradiction(tiny: Path, tmp_path: Path) -> None:
    """The rest of its probability is what is not mentioned."""
    pair = PairModel(load_pack(packed(tiny, tmp_path, "nli", ("supported",))), "nli")
    (found,) = pair.probabilities([pair.encoded("dogs are allowed", "the pool")])
    assert found[1] == 0
    assert found[0] + found[2] == pytest.approx(1)
    assert 0 < found[0] < 1
    assert found.dtype == np.float32


def test_an_nli_row_is_a_premise_and_a_hypothesis(tiny: Path, tmp_path: Path) -> None:
    """Which are not composed of anything."""
    run = NliSession(load_pack(packed(tiny, tmp_path, "nli", tiny_reference.THREE)))
    found = run.run(Row("nli", "dogs are allowed", "the pool", ("probabilities",))).outputs
    assert found["probabilities"].shape == (3,)
    with pytest.raises(RowFailed, match="hypothesis"):
        run.run(Row("nli", "dogs are allowed"))


def test_a_template_puts_both_texts_into_one(tiny: Path, tmp_path: Path) -> None:
    """A text that contains a placeholder's name is text."""
    template = "guests {premise} may {hypothesis} stay"
    folder = packed(tiny, tmp_path, "nli", ("supported",), template=template)
    pair = PairModel(load_pack(folder), "nli")
    expected = pair.tokenizer.encoded("guests {hypothesis} may pool stay")
    assert pair.encoded("{hypothesis}", "pool") == expected
    assert set(pair.encoded("dogs", "pool").types) == {0}


@pytest.mark.parametrize(
    "template", ["", "{premise}", "{hypothesis} {premise}", "{premise} {premise} {hypothesis}"]
)
def test_a_template_names_each_text_once(template: str) -> None:
    """In the order the model was trained on: premise first."""
    with pytest.raises(PackError, match="template"):
        template_parts(template)


def test_labels_of_another_scheme_are_refused(tiny: Path, tmp_path: Path) -> None:
    """Swapped names would turn a contradiction into support."""
    labels = ("contradicted", "supported", "not_mentioned")
    with pytest.raises(PackError, match=r"labels: found .*contradicted.*expected"):
        NliSession(load_pack(packed(tiny, tmp_path, "nli", labels)))


def test_a_pack_without_an_encoder_cannot_choose_evidence(grounding: Path, tmp_path: Path) -> None:
    """Start-up stops instead of reading everything."""
    folder = Path(shutil.copytree(grounding, tmp_path / "alone"))
    tiny_reference.change(folder, lambda m: m["roles"].pop("embedding"))
    with pytest.raises(PackError, match="no role embedding"):
        open_sessions(load_pack(folder))
