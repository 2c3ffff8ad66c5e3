"""What the three shipped policies do with what is found and with what cannot be judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail_service.detectors.pii.detector import PII
from guardrail_service.inference.pack import load_pack
from guardrail_service.policy.decide import Policy, decide, findings
from guardrail_service.policy.file import load_policies
from guardrail_service.resources import configs_dir
from guardrail_service.server.runtime import serving_for
from guardrail_service.settings import Settings
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Action, NoValue, Outcome, Passage, Sample, Span, State

PACK = Path(__file__).resolve().parents[3] / "models" / "embedded"
GROUNDING = ("hallucination", "groundedness")


@pytest.fixture(scope="module")
def policies() -> dict[str, Policy]:
    """The policies a service loads when it is told of none."""
    files = Settings().config_files()
    assert all(path.parent == configs_dir() for path in files)
    return load_policies(files, serving_for(load_pack(PACK)))


def nothing_found(policy: Policy) -> dict[str, Outcome]:
    """Every detector has nothing to say."""
    return dict.fromkeys(policy.rules, Outcome.not_applicable("no_claim"))


@pytest.mark.parametrize(
    ("policy", "unread", "missing", "late", "failed"),
    [
        ("default", ("pass", "mark"), ("flag", "block"), ("flag", "block"), ("flag", "block")),
        ("strict", ("flag", "block"), ("flag", "block"), ("flag", "block"), ("flag", "block")),
        ("observe", ("pass", "allow"), ("pass", "allow"), ("pass", "allow"), ("pass", "allow")),
    ],
)
def test_what_could_not_be_judged(
    policies: dict[str, Policy],
    policy: str,
    unread: tuple[str, str],
    missing: tuple[str, str],
    late: tuple[str, str],
    failed: tuple[str, str],
) -> None:
    """By state and reason, for each detector that gates on grounding, and for toxicity."""
    rules = policies[policy]
    cases = {
        NoValue(State.UNVERIFIED, "unsupported_language"): (unread, (*GROUNDING, "toxicity")),
        NoValue(State.UNVERIFIED, "missing_input"): (missing, GROUNDING),
        NoValue(State.NOT_EVALUATED, "deadline"): (late, (*GROUNDING, "toxicity")),
        NoValue(State.ERROR, "row_failed"): (failed, (*GROUNDING, "toxicity", "pii")),
    }
    for why, (expected, detectors) in cases.items():
        for name in detectors:
            decided = decide(rules, {**nothing_found(rules), name: Outcome(missing=why)})
            assert (decided.decision, decided.action.label) == expected, (why, name)


@pytest.mark.parametrize(
    ("policy", "action"),
    [("default", Action.BLOCK), ("strict", Action.BLOCK), ("observe", Action.ALLOW)],
)
def test_what_is_flagged_on_evidence(
    policies: dict[str, Policy], policy: str, action: Action
) -> None:
    """Is not shown, but for the policy that only watches; every policy reports the decision."""
    rules = policies[policy]
    for name, rule in rules.rules.items():
        if rule.report_only or not rule.cuts or name == "pii":
            continue
        worst = {
            metric.key: metric.low if metric.direction == "higher_is_better" else metric.high
            for metric in rule.spec.metrics
        }
        decided = decide(rules, {**nothing_found(rules), name: Outcome.evaluated(worst)})
        assert (decided.decision, decided.action) == ("flag", action), name
        assert decided.flagged == (name,)


@pytest.mark.parametrize(
    ("policy", "action", "replaced"),
    [("default", Action.REDACT, 1), ("strict", Action.BLOCK, 1), ("observe", Action.ALLOW, 0)],
)
def test_personal_data_is_replaced_unless_the_policy_lets_it_be_shown(
    policies: dict[str, Policy], policy: str, action: Action, replaced: int
) -> None:
    """What is allowed to be shown is redacted nowhere."""
    rules = policies[policy]
    failures = {metric.key: 0.0 for metric in rules.rules["pii"].spec.metrics}
    leak = Outcome.evaluated(failures, (Span(0, 5, "email", replacement="[email]"),))
    decided = decide(rules, {**nothing_found(rules), "pii": leak})
    assert (decided.decision, decided.action) == ("flag", action)
    assert len(findings(rules, decided.results, Action.FLAG)) == replaced


def test_no_request_may_change_a_shipped_policy(policies: dict[str, Policy]) -> None:
    """A guard that a caller can switch off guards nobody."""
    assert list(policies) == ["default", "strict", "observe"]
    assert not any(policy.allow_overrides for policy in policies.values())
    assert {policy.version for policy in policies.values()} == {"3"}


@pytest.mark.parametrize("name", ["default", "strict", "observe"])
@pytest.mark.parametrize(
    ("answer", "passage", "shown"),
    [
        ("Write to help@shop.example.", "Questions? help@shop.example", True),
        ("Write to help@shop.example.", "Questions? info@shop.example", False),
        ("Call +44 20 7946 0999.", "Blocking line: +44 (0)20 7946-0999", False),
        ("Call +44 20 7946 0999.", "Blocking line: +44 20-7946-0999", True),
        ("Call +44 20 7946 0999.", "Blocking line: +44 20 7946 0998", False),
        ("We are at 14 Quay Street.", "Visit us: 14 Quay Street, Bristol", True),
        ("We are at 14 Quay Street.", "Visit us: 41 Quay Street, Bristol", False),
        ("It was 4111 1111 1111 1111.", "Card: 4111 1111 1111 1111", False),
        ("Pay to DE89370400440532013000.", "IBAN: DE89370400440532013000", False),
        ("Her SSN is 219-09-9998.", "SSN 219-09-9998", False),
        ("Passport number X1234567.", "passport number X1234567", False),
        ("She was born on 14 March 1986.", "born on 14 March 1986", False),
    ],
)
def test_contact_data_of_the_passages_may_be_shown(
    policies: dict[str, Policy], name: str, answer: str, passage: str, shown: bool
) -> None:
    """A support bot says how to reach it; cards, accounts and numbers of persons never."""
    view = SegmentedSample(Sample(answer, "How?", (Passage(passage),)))
    outcome = PII().reduce(view, (), policies[name].rules["pii"].parameters)
    assert outcome.scores["model_passes"] == float(shown)


def test_a_sensitive_threshold_flags_whatever_a_precise_one_flags() -> None:
    """For every metric that has presets, in its own direction."""
    serving = serving_for(load_pack(PACK))
    seen = 0
    for detector, metrics in serving.presets["balanced"].items():
        for key in metrics:
            precise, balanced, sensitive = (
                serving.presets[name][detector][key]
                for name in ("precise", "balanced", "sensitive")
            )
            higher = serving.registry[detector].spec.metric(key).direction == "higher_is_better"
            assert (precise <= sensitive) if higher else (precise >= sensitive), (detector, key)
            assert (balanced <= sensitive) if higher else (balanced >= sensitive), (detector, key)
            seen += 1
    assert seen >= 8
