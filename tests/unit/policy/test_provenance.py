"""When a calibration's promise ends: other models, an edit, a date."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import guardrail_service.detectors  # noqa: F401 - registers the built-in detectors
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Policy, decide, describe
from guardrail_service.policy.file import Serving, load_file
from guardrail_service.policy.file_schema import GuardrailFile
from guardrail_service.policy.provenance import (
    block_sha256,
    canonical,
    decides_sha256,
    doubts,
    sha256_of,
)
from guardrail_service.types import Outcome

SERVING = Serving(
    registry=REGISTRY,
    pack_name="tiny",
    roles=frozenset({"embedding"}),
    fingerprints={"embedding": "a" * 64, "segmenter": "segmenter/1"},
    defaults={"looping": {"unique_sentences": 0.5}},
)
Edit = Callable[[dict[str, Any]], object]


def emitted() -> dict[str, Any]:
    """Return a guardrail file as a calibration run writes it."""
    content: dict[str, Any] = {
        "calibrated_thresholds": {"groundedness": {"groundedness": 0.4}},
        "evaluator_ids": ["groundedness"],
        "policy": {"name": "mine", "version": "1"},
        "calibration": {
            "method": "np_joint_scaled_min",
            "fingerprints": {"embedding": "a" * 64},
            "per_metric": {"groundedness": {"groundedness": {"status": "calibrated"}}},
        },
    }
    block = content["calibration"]
    block["decides_sha256"] = decides_sha256(
        GuardrailFile.model_validate(content).model_dump(mode="json")
    )
    block["sha256_of_this_block"] = block_sha256(block)
    return content


def load(tmp_path: Path, content: dict[str, Any]) -> Policy:
    """Return the file's policy."""
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(content))
    return load_file(path, SERVING).policy


def in_calibration(key: str, value: Any) -> Edit:
    """Return an edit of the block that keeps its own hash right."""

    def edit(content: dict[str, Any]) -> None:
        content["calibration"][key] = value
        content["calibration"]["sha256_of_this_block"] = block_sha256(content["calibration"])

    return edit


EDITS: dict[str, Edit] = {
    "fingerprints.embedding": in_calibration("fingerprints", {"embedding": "b" * 64}),
    "fingerprints.grounding": in_calibration("fingerprints", {"grounding": "b" * 64}),
    "sha256_of_this_block": lambda c: c["calibration"].update(method="guess"),
    "decides_sha256": lambda c: c["calibrated_thresholds"]["groundedness"].update(groundedness=0.3),
    "expires": in_calibration("expires", "2020-01-01"),
}


def test_an_unedited_file_is_calibrated(tmp_path: Path) -> None:
    """Nothing to doubt."""
    policy = load(tmp_path, emitted())
    assert policy.warnings == ()
    assert policy.rules["groundedness"].cuts["groundedness"].calibrated


@pytest.mark.parametrize("key", EDITS)
def test_a_doubt_refuses_the_file_and_names_the_key(tmp_path: Path, key: str) -> None:
    """The default of `on_mismatch`."""
    content = emitted()
    EDITS[key](content)
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, content)
    assert caught.value.where.endswith(f"calibration.{key}")


@pytest.mark.parametrize("key", EDITS)
def test_a_doubt_that_only_warns_takes_the_word_calibrated_away(tmp_path: Path, key: str) -> None:
    """A reply under `warn` must not claim an error rate that does not hold."""
    content = emitted()
    EDITS[key](content)
    content["policy"]["on_mismatch"] = "warn"
    policy = load(tmp_path, content)
    assert any(f"calibration.{key}" in warning for warning in policy.warnings)
    assert not policy.rules["groundedness"].cuts["groundedness"].calibrated
    metrics = describe(policy)["detectors"]["groundedness"]["metrics"]
    assert metrics["groundedness"]["status"] == "uncalibrated"


@pytest.mark.parametrize(
    "change", [{"on_unverified": "pass"}, {"report_only": ["groundedness"]}, {"on_error": "pass"}]
)
def test_what_a_missing_score_means_is_part_of_the_promise(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    """It changes which answers are flagged."""
    content = emitted()
    content["policy"].update(change)
    with pytest.raises(ConfigurationError, match="decides_sha256"):
        load(tmp_path, content)


def test_names_versions_and_actions_may_change(tmp_path: Path) -> None:
    """They change nothing about which answers are flagged."""
    content = emitted()
    content["policy"].update(name="other", version="9", actions={"groundedness": "block"})
    assert load(tmp_path, content).warnings == ()


def test_the_date_counts_from_its_first_moment() -> None:
    """In UTC where it names no zone; a date nobody can read is a doubt, too."""
    file = GuardrailFile(evaluator_ids=("looping",)).model_dump(mode="json")
    end = datetime(2027, 1, 1, tzinfo=UTC)
    just_before = end - timedelta(seconds=1)
    for text in ("2027-01-01", "2027-01-01T00:00:00Z", "2027-01-01T02:00:00+02:00"):
        assert not list(doubts({"expires": text}, file, {}, just_before))
        assert [d.key for d in doubts({"expires": text}, file, {}, end)] == ["expires"]
    assert [d.key for d in doubts({"expires": "soon"}, file, {}, end)] == ["expires"]


def test_a_block_that_promises_nothing_is_not_doubted() -> None:
    """H2O's files have none."""
    file = GuardrailFile(evaluator_ids=("looping",)).model_dump(mode="json")
    assert not list(doubts({}, file, {}, datetime.now(UTC)))


def test_a_report_only_detector_does_not_make_a_reply_uncalibrated(tmp_path: Path) -> None:
    """It never gates, so no error rate depends on its threshold."""
    content = emitted()
    content["evaluator_ids"].append("looping")
    content["policy"]["report_only"] = ["looping"]
    del content["calibration"]["decides_sha256"]
    in_calibration("method", "np_joint_scaled_min")(content)
    policy = load(tmp_path, content)
    outcomes = {name: Outcome.not_applicable("abstention") for name in policy.rules}
    assert not policy.rules["looping"].cuts["unique_sentences"].calibrated
    assert decide(policy, outcomes).calibrated


def test_hashes_depend_on_content_alone() -> None:
    """Not on the order of keys."""
    assert sha256_of({"a": 1, "b": 2}) == sha256_of({"b": 2, "a": 1})
    assert canonical({"b": 1, "a": "é"}) == '{"a":"é","b":1}'.encode()
    assert block_sha256({"a": 1, "sha256_of_this_block": "x"}) == block_sha256({"a": 1})
