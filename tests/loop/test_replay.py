"""Replayed scores say what judging the texts again says, for the demo and the golden answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.production.replay import replay_one
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.file import load_file
from guardrail_service.server.decisions import DecisionRecord, options_hash
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings
from guardrail_service.types import Passage, Sample

ROOT = Path(__file__).parents[2]
ANSWERS = [
    record.get("sample", record)
    for path in ("examples/demo/answers.jsonl", "models/thresholds/answers.jsonl")
    for record in map(json.loads, (ROOT / path).read_text("utf-8").splitlines())
]
NO_TIME = float("inf")
IDS = [
    "hallucination", "groundedness", "answer_relevancy_sentence", "toxicity", "pii",
    "secrets", "looping", "language_mismatch",
]  # fmt: skip
"""What serves in production; the thresholds are the shipped ones."""
NEW: dict[str, dict[str, Any]] = {
    "stricter": {"calibrated_thresholds": {"hallucination": {"hallucination": 0.9}}},
    "milder": {
        "calibrated_thresholds": {
            "groundedness": {"groundedness": 0.05},
            "toxicity": {"toxicity": 0.99},
            "hallucination": {"hallucination": 0.01},
        }
    },
    "fewer": {"evaluator_ids": ["hallucination", "toxicity", "language_mismatch"]},
    "report only": {"policy": {"report_only": ["hallucination", "groundedness"]}},
    "unverified passes": {"policy": {"on_unverified": "pass", "on_error": "pass"}},
    "by reason": {
        "policy": {
            "on_unverified": {
                "*": "pass",
                "toxicity": {"unsupported_language": {"decision": "flag", "action": "block"}},
            }
        }
    },
    "sensitive": {"policy": {"preset": "sensitive"}},
}


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], Path]:
    """Write a policy over the detectors that served, some keys changed."""
    folder = tmp_path_factory.mktemp("policies")

    def written(changes: dict[str, Any]) -> Path:
        path = folder / f"p{len(list(folder.iterdir()))}.json"
        path.write_text(json.dumps({"evaluator_ids": IDS, **changes}))
        return path

    return written


@pytest.fixture(scope="module")
def runtime(load: Callable[[dict[str, Any]], Path]) -> Iterator[Runtime]:
    """The embedded pack under the policy that decided in production."""
    with closing(Runtime(Settings(config=(load({}),), workers=2))) as found:
        yield found


def sample(body: dict[str, Any]) -> Sample:
    """Return the sample of a request."""
    contexts = tuple(Passage(text) for text in body.get("contexts", ()))
    return Sample(body["answer"], body.get("question"), contexts)


def stored(runtime: Runtime, policy: Policy, body: dict[str, Any], number: int) -> DecisionRecord:
    """Return the record of one request, as the service offers it to a store."""
    verdict = runtime.guard.judge(policy, sample(body), NO_TIME)
    return DecisionRecord(
        request_id=f"r{number}",
        time=datetime.now(UTC),
        caller="anonymous",
        route="check",
        policy=verdict.policy.name,
        policy_version=verdict.policy.version,
        policy_hash=verdict.policy.sha256,
        decision=verdict.decision,
        action=verdict.action.label,
        status=verdict.status,
        detectors=verdict.detectors,
        timings=verdict.timings,
        question=body.get("question"),
        answer=body["answer"],
        contexts=tuple(body.get("contexts", ())),
        options={name: options_hash(rule) for name, rule in policy.rules.items()},
        fingerprints=runtime.serving.fingerprints,
    )


@pytest.fixture(scope="module")
def decisions(runtime: Runtime) -> list[DecisionRecord]:
    """Every answer as it was decided."""
    policy = runtime.guard.policies[runtime.guard.default_policy]
    return [stored(runtime, policy, body, number) for number, body in enumerate(ANSWERS)]


@pytest.mark.parametrize("changes", NEW.values(), ids=NEW)
def test_scores_say_what_texts_say(
    runtime: Runtime,
    decisions: list[DecisionRecord],
    load: Callable[[dict[str, Any]], Path],
    changes: dict[str, Any],
) -> None:
    """Decision and flagged detectors, over thresholds, switched detectors and missing scores."""
    serving = runtime.serving
    policy = load_file(load(changes), serving).policy
    changed = 0
    for record, body in zip(decisions, ANSWERS, strict=True):
        told = replay_one(record, policy, serving.fingerprints)
        again = runtime.guard.judge(policy, sample(body), NO_TIME)
        assert told.source == "scores"
        assert (told.new, told.new_flagged) == (again.decision, again.flagged)
        changed += told.new != told.old or set(told.new_flagged) != set(told.old_flagged)
    assert changed, "a change that changes nothing proves nothing"


def test_other_options_and_new_detectors_are_judged_from_texts(
    runtime: Runtime, decisions: list[DecisionRecord], load: Callable[[dict[str, Any]], Path]
) -> None:
    """Scores would be a guess; the reason says so, and kept texts give the answer."""
    serving = runtime.serving
    for changes, why in (
        (
            {"policy": {"parameters": {"language_mismatch": {"allowed_languages": ["de"]}}}},
            "other_options: language_mismatch",
        ),
        ({"evaluator_ids": [*IDS, "bias"]}, "detector_not_run: bias"),
    ):
        policy = load_file(load(changes), serving).policy
        record, body = decisions[0], ANSWERS[0]
        told = replay_one(record, policy, serving.fingerprints)
        assert (told.new, str(told.cannot_replay)) == (None, why)
        judged = replay_one(
            record, policy, serving.fingerprints,
            lambda given, policy=policy: runtime.guard.judge(policy, given, NO_TIME), "full",
        )  # fmt: skip
        again = runtime.guard.judge(policy, sample(body), NO_TIME)
        assert (judged.source, judged.new) == ("texts", again.decision)
