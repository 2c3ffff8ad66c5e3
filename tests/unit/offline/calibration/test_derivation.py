"""Old scores under a new configuration, and what the RAG system can learn from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail_offline.calibration.derivation import (
    FLIPPED,
    PASSED_BY_A_PERSON,
    Derived,
    artefacts,
    corpus_patch,
    derive,
    patch_html,
    prompt_extension,
)
from guardrail_offline.calibration.scored_lab import LabCase, ScoredLab
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.calibration import labs

ORIGINAL = labs.case("a", "g1", 0.9, question="How long is the leave?", answer="18 weeks.")
VARIANT = labs.case(
    "b", "g1", 0.1, source="a", question="How lnog is the leave?", answer="Unknown <b>."
)

LOW = labs.case("c", "g2", 0.35, question="Who <i> pays?", answer="The <employer>.")
SILENT = labs.case("d", "g3", labs.MISSING, question="When?", answer="Monday.")
LAB = ScoredLab("lab", (ORIGINAL, VARIANT, LOW, SILENT), labs.FINGERPRINTS)


def derived(folder: Path, lab: ScoredLab = LAB, **changes: str) -> Derived:
    """Return the lab under the base policy."""
    return derive(lab, labs.policy(folder, **changes))


def test_decisions_and_problems_follow_the_policy(tmp_path: Path) -> None:
    """A missing score that flags is a problem of its own."""
    found = derived(tmp_path)
    assert {key: d.decision for key, d in found.decisions.items()} == {
        "a": "pass",
        "b": "flag",
        "c": "pass",
        "d": "flag",
    }
    assert found.problems == {
        "groundedness.groundedness": ("b",),
        "groundedness: unverified": ("d",),
    }
    summary = found.as_json()
    assert summary["flagged"] == ["b", "d"]
    assert summary["actions"] == {"allow": 2, "flag": 2}


def test_a_variant_decided_otherwise_is_a_flip(tmp_path: Path) -> None:
    """One record per variant."""
    (flip,) = derived(tmp_path).variant_flips
    assert flip.as_json() == {"case": "b", "before": "pass", "after": "flag", "source": "a"}


def test_another_configuration_changes_what_it_changes(tmp_path: Path) -> None:
    """Nothing is scored again."""
    before = derived(tmp_path)
    after = derived(tmp_path, on_unverified="pass")
    assert [(f.case, f.before, f.after) for f in after.changes(before)] == [("d", "flag", "pass")]
    assert after.changes(after) == ()


def test_a_detector_without_scores_is_refused(tmp_path: Path) -> None:
    """It would pass everything."""
    scores = {"groundedness": ORIGINAL.scores["groundedness"]}
    bare = ScoredLab("bare", (LabCase("a", "g", scores),), labs.FINGERPRINTS)
    with pytest.raises(ConfigurationError, match="answer_relevancy_sentence, language_mismatch"):
        derived(tmp_path, bare)


def test_the_corpus_patch_holds_what_people_passed_and_what_flipped(tmp_path: Path) -> None:
    """The variant gets the original's answer; what a person failed is not taught."""
    found = derived(tmp_path)
    entries = corpus_patch(LAB, found, {"d": True, "b": False, "a": True})
    assert [(e.question, e.answer, e.why) for e in entries] == [
        ("When?", "Monday.", PASSED_BY_A_PERSON),
        ("How lnog is the leave?", "18 weeks.", FLIPPED),
    ]
    assert corpus_patch(LAB, found, {"a": False}) == []


def test_the_corpus_patch_escapes_texts(tmp_path: Path) -> None:
    """They are other people's."""
    strict = ScoredLab("lab", (LOW,), labs.FINGERPRINTS)
    policy = labs.policy(tmp_path)
    low = labs.case("c", "g2", 0.2, question=LOW.question, answer=LOW.answer)
    found = derive(ScoredLab("lab", (low,), strict.fingerprints), policy)
    text = patch_html(corpus_patch(strict, found, {"c": True}))
    assert "Who &lt;i&gt; pays?" in text
    assert "The &lt;employer&gt;." in text


def test_the_prompt_extension_answers_the_problems_found(tmp_path: Path) -> None:
    """Wording for flips, passages for groundedness; nothing for problems that are not there."""
    text = prompt_extension(derived(tmp_path))
    assert "### Spelling and wording of questions" in text
    assert "### Staying with the passages" in text
    assert "### Safety" not in text
    clean = ScoredLab("clean", (ORIGINAL,), labs.FINGERPRINTS)
    assert prompt_extension(derived(tmp_path, clean)) == ""


def test_three_artefacts_are_written(tmp_path: Path) -> None:
    """Two for the corpus, one for the prompt."""
    files = artefacts(LAB, derived(tmp_path), {})
    assert set(files) == {"corpus_patch.html", "corpus_patch.json", "system_prompt_extension.md"}
