"""The policy: comparison, gating, states, actions. No model, no file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.detectors.registry import DetectorSpec, MetricSpec, Parameters
from guardrail_service.policy.consequences import Consequence
from guardrail_service.policy.decide import Cut, Policy, Rule, crosses, decide
from guardrail_service.types import Action, Direction, Evidence, NoValue, Outcome, Span, State

SPEC = DetectorSpec(
    id="risk",
    summary="A made-up risk.",
    metrics=(
        MetricSpec("good", Direction.HIGHER, gating=True),
        MetricSpec("bad", Direction.LOWER),
    ),
    inputs=frozenset({"answer"}),
)


def policy(cuts: Mapping[str, Cut], **rule: Any) -> Policy:
    """A policy of one detector."""
    made = Rule(SPEC, Parameters(), cuts, **rule)
    return Policy("p", "1", "0" * 64, {"risk": made})


def scored(good: float, bad: float = 0.0, spans: tuple[Span, ...] = ()) -> dict[str, Outcome]:
    """An evaluated outcome of the one detector."""
    return {"risk": Outcome.evaluated({"good": good, "bad": bad}, spans)}


@pytest.mark.parametrize(
    ("score", "threshold", "direction", "flagged"),
    [
        (0.3, 0.25, Direction.LOWER, True),
        (0.25, 0.25, Direction.LOWER, False),
        (0.3, 0.8, Direction.HIGHER, True),
        (0.8, 0.8, Direction.HIGHER, False),
    ],
)
def test_a_score_on_the_threshold_passes(
    score: float, threshold: float, direction: Direction, flagged: bool
) -> None:
    """Flag is strictly beyond the threshold, in the metric's own direction."""
    assert crosses(score, threshold, direction) is flagged


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_raising_a_threshold_never_unflags(score: float, low: float, high: float) -> None:
    """For a metric where higher is better."""
    low, high = sorted((low, high))
    assert crosses(score, low, Direction.HIGHER) <= crosses(score, high, Direction.HIGHER)


def test_a_metric_without_a_cut_is_reported_and_never_gates() -> None:
    """Its score and direction are shown, its threshold is None."""
    decided = decide(policy({"good": Cut(0.5, calibrated=True)}), scored(0.9, bad=1.0))
    assert decided.decision == "pass"
    assert decided.results["risk"].metrics["bad"].threshold is None
    assert decided.results["risk"].metrics["bad"].score == 1.0


@pytest.mark.parametrize("state", [State.ERROR, State.NOT_EVALUATED, State.UNVERIFIED])
@pytest.mark.parametrize("means", ["flag", "pass"])
def test_a_state_without_a_score_means_what_the_policy_says(state: State, means: Any) -> None:
    """Never a silent pass, never a number."""
    consequences = {"*": Consequence(means)}
    rules = dict.fromkeys(("on_error", "on_timeout", "on_unverified"), consequences)
    decided = decide(policy({}, **rules), {"risk": Outcome(missing=NoValue(state, "why"))})
    assert decided.decision == means
    assert decided.results["risk"].metrics == {}
    assert decided.results["risk"].reason == "why"


def test_not_applicable_never_flags() -> None:
    """There is nothing to judge."""
    outcomes = {"risk": Outcome.not_applicable("missing_input")}
    assert decide(policy({"good": Cut(1.0, calibrated=True)}), outcomes).decision == "pass"


def test_only_a_missed_deadline_makes_a_reply_partial() -> None:
    """An error is complete: it has happened."""
    late = {"risk": Outcome(missing=NoValue(State.NOT_EVALUATED, "deadline"))}
    assert decide(policy({}), late).status == "partial"
    assert (
        decide(policy({}), {"risk": Outcome(missing=NoValue(State.ERROR, "row_failed"))}).status
        == "complete"
    )


def test_report_only_leaves_the_decision_alone() -> None:
    """The metric shows its flag; the detector does not gate."""
    decided = decide(policy({"good": Cut(0.5, calibrated=True)}, report_only=True), scored(0.1))
    assert decided.decision == "pass"
    assert decided.results["risk"].metrics["good"].flagged


def test_shadow_mode_reports_the_decision_and_allows() -> None:
    """Users can watch before they enforce."""
    blocking = policy({"good": Cut(0.5, calibrated=True)}, action=Action.BLOCK)
    decided = decide(blocking, scored(0.1), mode="shadow")
    assert (decided.decision, decided.action) == ("flag", Action.ALLOW)
    assert decide(blocking, scored(0.1)).action is Action.BLOCK


def test_a_passing_detector_asks_for_no_action() -> None:
    """Only flagged detectors count towards the action."""
    blocking = policy({"good": Cut(0.5, calibrated=True)}, action=Action.BLOCK)
    assert decide(blocking, scored(0.9)).action is Action.ALLOW


def test_a_findings_own_action_beats_the_detectors() -> None:
    """The severest of the findings decides."""
    spans = (
        Span(0, 1, "email", replacement="[email]", attributes={"action": "redact"}),
        Span(2, 3, "card", attributes={"action": "block"}),
    )
    cuts = {"good": Cut(0.5, calibrated=True)}
    assert decide(policy(cuts), scored(0.1, spans=spans)).action is Action.BLOCK
    assert decide(policy(cuts, action=Action.BLOCK), scored(0.1, spans=spans[:1])).action is (
        Action.REDACT
    )


def test_a_finding_without_an_action_asks_for_the_detectors_own() -> None:
    """A milder neighbour cannot hide it."""
    spans = (Span(0, 1, "email", attributes={"action": "flag"}), Span(2, 3, "us_ssn"))
    cuts = {"good": Cut(0.5, calibrated=True)}
    decided = decide(policy(cuts, action=Action.BLOCK), scored(0.1, spans=spans))
    assert decided.action is Action.BLOCK


def test_a_span_is_shown_while_its_own_score_crosses_the_cut() -> None:
    """Detectors propose every sentence; the policy keeps the unsupported ones."""
    spans = (
        Span(0, 1, "unsupported", 0.2, "good"),
        Span(1, 2, "unsupported", 0.7, "good"),
        Span(2, 3, "finding"),
        Span(3, 4, "reported", 0.9, "bad"),
    )
    decided = decide(policy({"good": Cut(0.5, calibrated=True)}), scored(0.2, spans=spans))
    assert [span.start for span in decided.results["risk"].spans] == [0, 2]


def test_calibrated_needs_every_gating_cut_to_be() -> None:
    """One shipped default, or none at all, makes the reply uncalibrated."""
    fitted, shipped = Cut(0.5, calibrated=True), Cut(0.5, calibrated=False)
    assert decide(policy({"good": fitted}), scored(0.9)).calibrated
    assert not decide(policy({"good": fitted, "bad": shipped}), scored(0.9)).calibrated
    assert not decide(policy({}), scored(0.9)).calibrated


@pytest.mark.parametrize(
    ("means", "decision", "action"),
    [
        (Consequence("pass"), "pass", Action.ALLOW),
        (Consequence("pass", Action.MARK), "pass", Action.MARK),
        (Consequence("flag"), "flag", Action.BLOCK),  # redact is the detector's own: nothing to
        (Consequence("flag", Action.ALLOW), "flag", Action.ALLOW),
        (Consequence("flag", Action.BLOCK), "flag", Action.BLOCK),
    ],
)
def test_what_could_not_be_judged_has_an_action_of_its_own(
    means: Consequence, decision: str, action: Action
) -> None:
    """By reason; every other reason means what the star says."""
    rules = {"*": Consequence("flag", Action.FLAG), "unsupported_language": means}
    unjudged = policy({}, on_unverified=rules, action=Action.REDACT)
    decided = decide(unjudged, {"risk": Outcome.unverified("unsupported_language")})
    assert (decided.decision, decided.action) == (decision, action)
    other = decide(unjudged, {"risk": Outcome.unverified("missing_input")})
    assert (other.decision, other.action) == ("flag", Action.FLAG)


def test_a_finding_that_cannot_be_replaced_blocks() -> None:
    """Redaction would show it."""
    cuts = {"good": Cut(0.5, calibrated=True)}
    redacting = policy(cuts, action=Action.REDACT)
    bare, masked = Span(0, 1, "email"), Span(0, 1, "email", replacement="[email]")
    assert decide(redacting, scored(0.1, spans=(bare,))).action is Action.BLOCK
    assert decide(redacting, scored(0.1, spans=(masked,))).action is Action.REDACT
    assert decide(redacting, scored(0.1, spans=(masked, bare))).action is Action.BLOCK


def test_a_report_only_detector_asks_for_nothing() -> None:
    """Whether it found something or could not look."""
    cuts = {"good": Cut(0.5, calibrated=True)}
    quiet = policy(cuts, action=Action.BLOCK, report_only=True)
    assert decide(quiet, scored(0.1)).action is Action.ALLOW
    assert (
        decide(quiet, {"risk": Outcome(missing=NoValue(State.ERROR, "row_failed"))}).action
        is Action.ALLOW
    )


def test_a_shown_span_is_called_what_crossing_its_threshold_means() -> None:
    """A claim likelier supported than not may still be below a strict threshold."""
    spans = (Span(0, 1, "supported", 0.6, "good", crossed="not_mentioned"),)
    strict = decide(policy({"good": Cut(0.8, calibrated=True)}), scored(0.6, spans=spans))
    assert [span.label for span in strict.results["risk"].spans] == ["not_mentioned"]
    mild = decide(policy({"good": Cut(0.5, calibrated=True)}), scored(0.6, spans=spans))
    assert mild.results["risk"].spans == ()


def several(**rules: tuple[float, Action, Outcome]) -> tuple[Policy, dict[str, Outcome]]:
    """A policy of several detectors by name, and what each found."""
    made, outcomes = {}, {}
    for name, (cut, action, outcome) in rules.items():
        spec = dataclasses.replace(SPEC, id=name)
        made[name] = Rule(spec, Parameters(), {"good": Cut(cut, calibrated=True)}, action)
        outcomes[name] = outcome
    return Policy("p", "1", "0" * 64, made), outcomes


def test_the_worst_is_named_first() -> None:
    """By action, then what was found before what could not be judged, then by distance."""
    low, lower = scored(0.4)["risk"], scored(0.1)["risk"]
    rules, outcomes = several(
        near=(0.5, Action.BLOCK, low),
        mild=(0.5, Action.FLAG, lower),
        failed=(0.5, Action.BLOCK, Outcome(missing=NoValue(State.ERROR, "row_failed"))),
        far=(0.5, Action.BLOCK, lower),
        good=(0.5, Action.BLOCK, scored(0.9)["risk"]),
    )
    decided = decide(rules, outcomes)
    assert decided.flagged == ("far", "near", "failed", "mild")
    assert decided.summary == (
        "Not shown: far, near and mild flagged it; failed could not be judged (row_failed), "
        "which counts as a flag."
    )


def test_a_summary_says_what_happens_to_the_answer() -> None:
    """Also where nothing was found, and where something could not be judged but passes."""
    passing = {"risk": scored(0.9)["risk"]}
    assert decide(policy({}), passing).summary == "Shown: no check found a fault."
    marked = policy({}, on_unverified={"*": Consequence("pass", Action.MARK)})
    unread = {"risk": Outcome.unverified("unsupported_language")}
    assert decide(marked, unread).summary == (
        "Shown with a mark: risk could not be judged (unsupported_language)."
    )


def test_an_explanation_names_scores_and_places_and_no_text() -> None:
    """In the answer and in the passage it was compared with."""
    evidence = (Evidence(1, 10, 80, 0.2),)
    spans = tuple(
        Span(at, at + 5, "supported", 0.2, "good", evidence, crossed="contradicted")
        for at in range(0, 50, 10)
    )
    decided = decide(policy({"good": Cut(0.5, calibrated=True)}), scored(0.2, spans=spans))
    assert decided.results["risk"].explanation == (
        "risk: good is 0.2, below the threshold 0.5. "
        "Characters 0 to 5 of the answer: contradicted; passage 2 says otherwise, characters 10 to "
        "80; characters 10 to 15 of the answer: contradicted; passage 2 says otherwise, characters "
        "10 to 80; characters 20 to 25 of the answer: contradicted; passage 2 says otherwise, "
        "characters 10 to 80; and 2 more."
    )
    late = decide(policy({}), {"risk": Outcome(missing=NoValue(State.NOT_EVALUATED, "deadline"))})
    assert late.results["risk"].explanation == (
        "risk was not judged in time: the time for this check was over."
    )
    assert decide(policy({}), scored(0.9)).results["risk"].explanation is None
