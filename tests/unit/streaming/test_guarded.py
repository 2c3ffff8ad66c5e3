"""No character of a finding leaves before its check, for any chunking; the end is `/v1/check`'s."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail_service.errors import Cancelled
from guardrail_service.guard.guard import Guard
from guardrail_service.guard.waiting import Cancellation
from guardrail_service.policy.consequences import ANY, Consequence
from guardrail_service.policy.decide import Policy
from guardrail_service.streaming.guarded import Ended, Release, StreamedCheck
from guardrail_service.streaming.holdback import MAX_HOLD
from guardrail_service.types import Action, Decision, DetectorResult, Outcome, Sample, State
from tests.unit.streaming.conftest import begin, chunks, pattern_policy, streamed

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
ADDRESS = "anna.berg@harbour-hotel.example"
CARD = "4111 1111 1111 1111"
KEY = "AKIA3FY2HCUKSR6LZQKV"
SPACED = " ".join(f"{byte:02x}" for byte in f"mail {ADDRESS} now".encode())
PEM = "\n".join(
    ["-----BEGIN RSA PRIVATE KEY-----", *(["MIIEpAIBAAKCAQEA7bq2kXk1RzvW0QyVd3Lk9nTg"] * 3),
     "-----END RSA PRIVATE KEY-----"]
)  # fmt: skip
PLANTED = {
    "an address": ADDRESS,
    "a telephone number": "call +49 30 901 820 44 ext. 12",
    "a card": CARD,
    "an IBAN over two lines": "DE89 3704 0044\n0532 0130 00",
    "a cloud key": KEY,
    "a key block": PEM,
    "a password on the next line": "the password:\n  hunter2!Zx9qLm",
    "base64": base64.b64encode(f"write to {ADDRESS} today".encode()).decode(),
    "wrapped base64": base64.encodebytes(f"{'words and words, ' * 12}{ADDRESS}".encode()).decode(),
    "hexadecimal": f"card {CARD}".encode().hex(),
    "spaced hexadecimal": SPACED,
    "numbers": ", ".join(str(byte) for byte in f"mail {ADDRESS} now".encode()),
    "URL-encoded": quote(ADDRESS, safe="").replace(".", "%2E"),
    "a connection string": "Data Source=db.example;User Id=sa;Initial Catalog=x;Password=hunT3r!9x",
    "announced from behind": "123-45-6780 C01X00T47 is the number of my passport",
}  # fmt: skip
PROSE = [
    "Guests may stay for two weeks at most. ",
    "The pool opens at seven in the morning.\n",
    "Breakfast is served until 10. ",
    "Dogs are not allowed near the pool.\n\n",
    "- Free parking for all guests\n",
    "In 2019, 300 people came. ",
    "Is that all? ",
    "He moved to Paris. ",
    "Note: ",
]
SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=8)


def golden() -> list[str]:
    """Return the project's texts with personal data, secrets and encoded payloads."""
    texts = []
    for name in ("pii", "secrets", "encoding"):
        for line in (GOLDEN / f"{name}_cases.jsonl").read_text("utf-8").splitlines():
            case = json.loads(line)
            if case["spans"]:
                texts.append(case["text"].replace("¦", ""))
    return texts


PLANTS = st.one_of(st.sampled_from(sorted(PLANTED.values())), st.sampled_from(golden()))
SURROUNDINGS = st.lists(st.sampled_from(PROSE), max_size=5).map("".join)
BORDERS = st.sampled_from([" ", "\n", ". ", ".\n", "\n\n"])


def leaves(releases: Sequence[Release], start: int, end: int) -> bool:
    """Return whether a part of [start, end) left apart from the rest of it."""
    return any(r.start < end and start < r.end < end for r in releases)


@pytest.mark.parametrize("name", PLANTED)
def test_each_planted_text_is_found_in_the_whole(name: str, guard: Guard) -> None:
    """Or the properties below would hold for nothing."""
    verdict = guard.check(Sample(f"{PROSE[0]}{PLANTED[name]} {PROSE[0]}"), "redact")
    assert verdict.decision == "flag"


@given(before=SURROUNDINGS, plant=PLANTS, border=BORDERS, after=SURROUNDINGS, sizes=SIZES)
@settings(max_examples=250, deadline=None, derandomize=True)
def test_no_prefix_of_a_planted_span_leaves(
    before: str, plant: str, border: str, after: str, sizes: list[int], guard: Guard
) -> None:
    """Whatever the chunks: a block stops before the first finding, nothing of it is out."""
    text = before + plant + border + after
    whole = guard.check(Sample(text), "block")
    releases, ended = streamed(begin(guard, "block"), chunks(text, sizes))
    starts = [span.start for result in whole.detectors.values() for span in result.spans]
    out = "".join(release.text for release in releases)
    assert text.startswith(out)
    if starts:
        assert ended.reason == "blocked"
        assert len(out) <= min(starts)


@given(before=SURROUNDINGS, plant=PLANTS, border=BORDERS, after=SURROUNDINGS, sizes=SIZES)
@settings(max_examples=250, deadline=None, derandomize=True)
def test_redaction_in_flight_is_the_redacted_answer(
    before: str, plant: str, border: str, after: str, sizes: list[int], guard: Guard
) -> None:
    """Character for character, numbered placeholders included.

    Fixed examples: a rule that looks at the whole text (letters for digits count only in a text
    without "@") may hide more in flight than at the end, once in thousands of random texts.
    """
    text = before + plant + border + after
    whole = guard.check(Sample(text), "redact")
    releases, ended = streamed(begin(guard, "redact"), chunks(text, sizes))
    for result in whole.detectors.values():
        for span in result.spans:
            assert not leaves(releases, span.start, span.end)
    if not ended.release and ended.reason == "blocked":  # a detector that could not look
        return
    assert "".join(release.text for release in releases) == whole.redacted_answer


WORDS = [
    "guests",
    "hotel",
    "pool",
    "garden",
    "morning",
    "breakfast",
    "window",
    "kitchen",
    "quiet",
    "open",
    "little",
    "river",
]
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=4, max_size=12).map(
    lambda words: " ".join(words).capitalize() + ". "
)


@given(sentences=st.lists(SENTENCES, min_size=3, max_size=8), sizes=SIZES)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_on_clean_text_the_first_sentence_leaves_before_the_third_arrives(
    sentences: list[str], sizes: list[int], guard: Guard
) -> None:
    """And everything leaves in the end, unchanged."""
    text = "".join(sentences)
    check = begin(guard)
    held: list[tuple[int, int]] = []
    pieces = chunks(text, [min(size, 10) for size in sizes])
    releases, ended = streamed(check, pieces, lambda r, size: held.append((r.end, size)))
    assert held[0][0] == len(sentences[0])
    assert held[0][1] <= len(sentences[0]) + len(sentences[1])
    assert "".join(release.text for release in releases) == text
    assert ended.verdict.decision == "pass"


def decided(results: dict[str, DetectorResult]) -> dict[str, DetectorResult]:
    """Return results without what differs from call to call."""
    return {name: dataclasses.replace(r, latency_ms=0.0) for name, r in results.items()}


@given(plant=PLANTS, sizes=SIZES)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_final_verdict_is_that_of_a_check(plant: str, sizes: list[int], guard: Guard) -> None:
    """Decision, action, scores, spans: everything but the time it took."""
    text = f"{PROSE[0]}{plant} {PROSE[1]}"
    whole = guard.check(Sample(text), "redact")
    _, ended = streamed(begin(guard, "redact"), chunks(text, sizes))
    if ended.checked != (0, len(text)):
        return  # stopped on the way
    assert decided(dict(ended.verdict.detectors)) == decided(dict(whole.detectors))
    assert (ended.verdict.decision, ended.verdict.action) == (whole.decision, whole.action)
    assert ended.verdict.redacted_answer == whole.redacted_answer


def test_a_detector_judges_when_its_spec_says(guard: Guard) -> None:
    """Before text leaves, or at the end."""
    check = begin(guard)
    waits = {n for n, rule in check.policy.rules.items() if rule.spec.in_flight == "end"}
    assert set(check.at_end) == waits
    assert set(check.in_flight) == set(check.policy.rules) - waits


def test_a_stop_says_what_stopped_it(guard: Guard) -> None:
    """The part, the detectors that ran on it, offsets of the answer."""
    text = f"{PROSE[0]}{PROSE[1]}Write to {ADDRESS} about it. " + PROSE[0] * 3
    _, ended = streamed(begin(guard, "block"), chunks(text, [7]))
    assert ended.reason == "blocked"
    assert ended.verdict.action is Action.BLOCK
    (span,) = ended.verdict.detectors["pii"].spans
    assert text[span.start : span.end] == ADDRESS
    assert ended.checked[0] <= span.start < span.end <= ended.checked[1]


@pytest.mark.parametrize(("policy", "reason"), [("flag", "complete"), ("redact", "blocked")])
def test_a_stream_may_stop_on_less_than_a_block(guard: Guard, policy: str, reason: str) -> None:
    """`stop_on: flag` stops on everything that flags; else a mere flag lets the text pass."""
    text = f"Write to {ADDRESS} about it. " + PROSE[0] * 3
    stop_on = "flag" if reason == "blocked" else "block"
    releases, ended = streamed(begin(guard, policy, stop_on=stop_on), chunks(text, [5]))
    assert ended.reason == reason
    if reason == "complete":
        assert "".join(r.text for r in releases) == text
        assert releases[0].flagged == ("pii",)


def test_shadow_lets_everything_pass_and_reports(guard: Guard) -> None:
    """The text as it is, the decision as it would have been."""
    text = f"Write to {ADDRESS} about it. " + PROSE[0] * 3
    releases, ended = streamed(begin(guard, "block", mode="shadow"), chunks(text, [5]))
    assert "".join(r.text for r in releases) == text
    assert (ended.verdict.decision, ended.verdict.action) == ("flag", Action.ALLOW)


@pytest.mark.parametrize("on_unverified", ["flag", "pass"])
def test_a_run_without_end_is_held_until_the_bound_and_then_the_policy_says(
    on_unverified: Decision, guard: Guard
) -> None:
    """Fail closed stops; else its first part leaves after a search. More is never held."""
    policy = pattern_policy(Action.REDACT)
    rules = {
        name: dataclasses.replace(rule, on_unverified={"*": Consequence(on_unverified)})
        for name, rule in policy.rules.items()
    }
    check = StreamedCheck(guard, dataclasses.replace(policy, rules=rules), Sample(""))
    releases: list[Release] = []
    for piece in chunks("xy7" * MAX_HOLD, [500]):
        check.feed(piece)
        assert len(check.state.held) <= MAX_HOLD + 500
        found = check.step() if check.due() else None
        if isinstance(found, Release):
            releases.append(found)
        if isinstance(found, Ended):
            assert on_unverified == "flag"
            assert found.verdict.detectors["pii"].state is State.UNVERIFIED
            assert found.verdict.detectors["pii"].reason == "unbroken_run"
            return
    assert on_unverified == "pass"
    assert len(releases) > 2


def test_a_detector_that_should_redact_and_fails_stops_the_stream(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot say where its findings are, so the text must not leave."""

    def fail(*_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(guard._registry["pii"], "reduce", fail)
    releases, ended = streamed(begin(guard, "redact"), chunks(PROSE[0] * 3, [9]))
    assert (releases, ended.reason) == ([], "blocked")
    assert ended.verdict.detectors["pii"].state is State.ERROR


@pytest.mark.parametrize("change", ["no span", "no replacement", "one replacement"])
def test_what_should_be_redacted_and_cannot_be_stops_the_stream(
    change: str, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding without a replacement would leave as it is."""
    detector = guard._registry["pii"]
    reduce = detector.reduce

    def changed(*asked: Any) -> Outcome:
        outcome = reduce(*asked)
        spans = () if change == "no span" else outcome.spans
        kept = 1 if change == "one replacement" else 0
        bare = [dataclasses.replace(span, replacement=None) for span in spans[kept:]]
        return dataclasses.replace(outcome, spans=(*spans[:kept], *bare))

    monkeypatch.setattr(detector, "reduce", changed)
    text = f"{PROSE[0]}Write to {ADDRESS} or office@{ADDRESS.partition('@')[2]} now. {PROSE[1]}"
    releases, ended = streamed(begin(guard, "redact"), chunks(text, [9]))
    assert ended.reason == "blocked"
    assert "@" not in "".join(release.text for release in releases)
    releases, ended = streamed(begin(guard, "redact", mode="shadow"), chunks(text, [9]))
    assert (ended.reason, "".join(release.text for release in releases)) == ("complete", text)


def test_an_error_passes_only_where_the_policy_says_so(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`on_error: pass` is a choice of the operator's."""

    def fail(*_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(guard._registry["pii"], "reduce", fail)
    policy = pattern_policy(Action.REDACT)
    passes = {ANY: Consequence("pass")}
    rules = {n: dataclasses.replace(r, on_error=passes) for n, r in policy.rules.items()}
    check = StreamedCheck(guard, Policy("p", "1", "0", rules), Sample(""))
    releases, ended = streamed(check, chunks(PROSE[0] * 3, [9]))
    assert ended.reason == "complete"
    assert "".join(r.text for r in releases) == PROSE[0] * 3


def test_a_cancelled_stream_raises(guard: Guard) -> None:
    """Its caller has left; there is no verdict."""
    check = begin(guard)
    check.feed(PROSE[0] * 3)
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(Cancelled):
        check.step(cancellation)
