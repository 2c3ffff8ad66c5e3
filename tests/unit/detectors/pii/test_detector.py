"""The detector: what counts, what is allowed, what the metrics mean, what a span says."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from guardrail_service.detectors.pii.detector import PII, PIIParameters, findings, partial
from guardrail_service.detectors.pii.scan import Finding, find, fold, resolve, warm_up
from guardrail_service.guard.check import redact
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Outcome, Passage, Sample

CARD = "4111111111111111"


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile before Hypothesis starts its clock."""
    warm_up()


def check(answer: str, *contexts: str, question: str | None = None, **parameters: Any) -> Outcome:
    """Run the detector as the guard does."""
    sample = Sample(answer, question, tuple(Passage(text) for text in contexts))
    return PII().reduce(SegmentedSample(sample), (), PIIParameters(**parameters))


def found(answer: str, **parameters: Any) -> list[tuple[str, str]]:
    """Return types and texts of the findings."""
    return [(s.label, answer[s.start : s.end]) for s in check(answer, **parameters).spans]


class TestDefectsOfOtherTools:
    """Behaviours of the evaluator this one replaces that are defects, each the other way here."""

    @pytest.mark.parametrize("value", [CARD, "219-09-9998", "4111 1111 1111 1111"])
    @pytest.mark.parametrize("frame", ["{}", "{} is it", "it is {}", "it\n{}", "{}."])
    def test_start_and_end_of_the_text_count(self, value: str, frame: str) -> None:
        """No character is needed on either side."""
        assert [text for _, text in found(frame.format(value))] == [value]

    def test_sixteen_digits_are_no_card_without_the_check_digit(self) -> None:
        """Luhn and issuer are verified."""
        assert found("4111111111111112 and 1234567890123456") == []

    def test_the_advertised_security_number_is_nobodys(self) -> None:
        """The allow-listed example is recognised wherever it stands."""
        assert found("078-05-1120") == found("SSN: 078-05-1120.") == []

    @pytest.mark.parametrize("value", ["000-12-3456", "666-12-3456", "123-00-4567", "123-45-0000"])
    def test_areas_that_do_not_exist_are_no_security_numbers(self, value: str) -> None:
        """Area, group and serial rules hold."""
        assert found(value) == []


TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
PLANTED = [
    ("email", "ana.silva@example.com"),
    ("credit_card", CARD),
    ("credit_card", "5555-5555-5555-4444"),
    ("iban", "DE89370400440532013000"),
    ("us_ssn", "219-09-9998"),
    ("phone", "(415) 555-0132"),
    ("ip_address", "203.0.113.77"),
    ("crypto_wallet", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"),
]


@given(TEXT, st.sampled_from(PLANTED), TEXT)
def test_planted_values_are_found_with_exact_offsets(
    before: str, planted: tuple[str, str], after: str
) -> None:
    """Any Unicode around a value leaves its offsets exact; the blanks only keep it apart."""
    type_, value = planted
    text = f"{before}\n {value} \n{after}"
    start = len(before) + 2
    assert Finding(type_, start, start + len(value), type_ != "email") in [
        f._replace(distance=0) for f in find(text)
    ]


@given(st.text(st.characters(codec=None), max_size=60))
def test_any_text_is_read(text: str) -> None:
    """Lone surrogates and control characters included; findings never overlap."""
    spans = check(text).spans
    assert all(0 <= s.start < s.end <= len(text) for s in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert len(fold(text)) == len(text)


def test_a_clean_answer_passes() -> None:
    """All four metrics are present, and every code point was read."""
    outcome = check("Nothing personal.", "a passage")
    assert outcome.scores == {
        "model_passes": 1.0,
        "model_failures": 0.0,
        "model_retrieval_failures": 0.0,
        "model_generation_failures": 0.0,
    }
    assert outcome.coverage is not None
    assert (outcome.coverage.answer, outcome.coverage.contexts) == ((17, 17), (0, 9))


def test_a_leak_in_the_answer_fails() -> None:
    """With passages unread, a leak counts as generated."""
    outcome = check(f"Card {CARD}", f"Card {CARD}")
    assert outcome.scores["model_passes"] == 0.0
    assert outcome.scores["model_generation_failures"] == 1.0
    assert outcome.scores["model_retrieval_failures"] == 0.0
    assert "in_context" not in outcome.spans[0].attributes


def test_a_leak_only_in_a_passage_is_a_retrieval_failure() -> None:
    """It never fails the answer, and is looked for on request only."""
    assert check("Fine.", CARD).scores["model_retrieval_failures"] == 0.0
    outcome = check("Fine.", CARD, evaluate_retrieved_context=True)
    assert outcome.scores["model_passes"] == 1.0
    assert outcome.scores["model_retrieval_failures"] == 1.0
    assert outcome.coverage is not None
    assert outcome.coverage.contexts == (16, 16)


def test_a_repeated_leak_is_not_generated() -> None:
    """The answer fails, and the passage is where it came from, however it was grouped there."""
    outcome = check(CARD, "4111 1111 1111 1111", evaluate_retrieved_context=True)
    assert outcome.scores["model_passes"] == 0.0
    assert outcome.scores["model_generation_failures"] == 0.0
    assert outcome.spans[0].attributes == {"validated": True, "in_context": True}


def test_types_may_be_repeated_from_the_passages() -> None:
    """Only the named types, only values that a passage holds."""
    parameters: dict[str, Any] = {"allow_if_in_context": ["EMAIL_ADDRESS"]}
    assert check("a@example.com", "write to a@example.com", **parameters).spans == ()
    assert len(check("b@example.com", "write to a@example.com", **parameters).spans) == 1
    assert len(check(CARD, CARD, **parameters).spans) == 1


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"types": ["phone"]}, []),
        ({"types": ["national_id"]}, []),
        ({"actions": {"email": "allow"}}, []),
        ({"actions": {"all": "allow"}}, []),
        ({"actions": {"all": "allow", "email": "flag"}}, ["email"]),
        ({"allow": ["ANA@example.com"]}, []),
        ({"allow": ["ana"]}, ["email"]),
        ({"allow_domains": ["example.com"]}, []),
        ({"allow_domains": ["@Example.COM"]}, []),
        ({"allow_domains": ["com"]}, []),
        ({"allow_domains": ["ample.com"]}, ["email"]),
        ({"allow_patterns": [r"[a-z]+@example\.com"]}, []),
        ({"allow_patterns": ["ana"]}, ["email"]),
        ({"h2o_compatible": True}, ["email"]),
    ],
)
def test_what_a_policy_allows(parameters: dict[str, Any], expected: list[str]) -> None:
    """Allow-lists are whole values; domains cover their subdomains."""
    assert [label for label, _ in found("ana@example.com", **parameters)] == expected


def test_h2o_looks_for_three_types() -> None:
    """And still finds each of them."""
    text = f"a@example.com {CARD} 219-09-9998 (415) 555-0132"
    labels = [label for label, _ in found(text, h2o_compatible=True)]
    assert labels == ["email", "credit_card", "us_ssn"]


def test_own_patterns() -> None:
    """A custom type has its own label, action and placeholder, and wins equal places."""
    parameters: dict[str, Any] = {
        "custom": [{"id": "employee", "regex": r"\bEMP-(\d{4,8})\b", "keywords": ["emp"]}],
        "actions": {"employee": "block"},
    }
    (span,) = check("ask EMP-12345.", **parameters).spans
    assert (span.start, span.end, span.label, span.replacement) == (
        4,
        13,
        "employee",
        "[EMPLOYEE_1]",
    )
    assert span.attributes == {"validated": False, "action": "block"}
    grouped = {"custom": [{"id": "employee", "regex": r"EMP-(\d+)", "group": 1}]}
    assert found("ask EMP-12345.", **grouped) == [("employee", "12345")]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"types": ["PERSON"]}, "found type 'PERSON'"),
        ({"actions": {"nothing": "flag"}}, "found type 'nothing'"),
        ({"actions": {"email": "drop"}}, "allow"),
        ({"allow_if_in_context": ["x"]}, "found type 'x'"),
        ({"allow_patterns": ["ok", "a(b"]}, r"allow_patterns\[1\].*position 0"),
        ({"custom": [{"id": "x", "regex": "ab(?=c)"}]}, r"custom\[0\].regex.*position 2"),
        ({"custom": [{"id": "x", "regex": "a*"}]}, "empty text"),
        ({"custom": [{"id": "x", "regex": "a*b|a"}]}, "bounded repeats"),
        ({"custom": [{"id": "email", "regex": "a"}]}, "published type"),
        ({"custom": [{"id": "x", "regex": "a", "group": 1}]}, "group 1"),
        ({"custom": [{"id": "x", "regex": "a"}, {"id": "x", "regex": "b"}]}, "twice"),
        ({"custom": [{"id": "Bad Id", "regex": "a"}]}, "pattern"),
        ({"phone_regions": ["XX"]}, "found region 'XX'"),
        ({"unknown": 1}, "Extra inputs"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    """Start-up says which parameter, what was found and what was expected."""
    with pytest.raises(ValidationError, match=message):
        PIIParameters(**parameters)


def test_placeholders_are_stable_within_an_answer() -> None:
    """The same value gets the same number, however it is written."""
    text = f"{CARD}, a@example.com, 4111 1111 1111 1111, b@example.com, A@EXAMPLE.COM"
    expected = "[CREDIT_CARD_1], [EMAIL_1], [CREDIT_CARD_1], [EMAIL_2], [EMAIL_1]"
    assert redact(text, check(text).spans) == expected


@pytest.mark.parametrize(
    ("type_", "value", "masked"),
    [
        ("email", "ana.silva@mail.example.com", "a**.*****@****.*******.com"),
        ("credit_card", "4111 1111 1111 1234", "**** **** **** 1234"),
        ("us_ssn", "219-09-9998", "***-**-**98"),
        ("passport", "X12345", "******"),
    ],
)
def test_partial_masks(type_: str, value: str, masked: str) -> None:
    """Enough stays to recognise one's own value; the length and separators stay."""
    assert partial(type_, value) == masked


def test_actions_reach_the_span() -> None:
    """`flag` leaves the text as it is; a group's action is overridden by the type's own."""
    text = f"a@example.com {CARD} My PESEL is 90010112349"
    actions = {"national_id": "block", "email": "flag", "CREDIT_CARD": "redact"}
    spans = check(text, actions=actions).spans
    assert [s.attributes["action"] for s in spans] == ["flag", "redact", "block"]
    assert [s.replacement for s in spans] == [None, "[CREDIT_CARD_1]", "[PL_PESEL_1]"]


def test_spans_never_hold_the_text() -> None:
    """Neither label nor attributes nor the default replacement repeat the value."""
    (span,) = check("mail ana.silva@example.com").spans
    assert "ana" not in repr(span)


def test_the_question_announces_a_short_answer() -> None:
    """`What is her passport number?` makes `X1234567` one."""
    assert found("X1234567") == []
    spans = check("X1234567", question="What is her passport number?").spans
    assert [s.label for s in spans] == ["passport"]


def test_a_longer_finding_wins_then_a_validated_one() -> None:
    """The stated rule for overlaps, whatever the order they come in."""
    long = Finding("phone", 0, 12, False)
    short = Finding("us_ssn", 0, 11, True)
    unsure = Finding("passport", 20, 29, False, 3)
    sure = Finding("pl_pesel", 20, 29, True, 40)
    near = Finding("bank_account", 40, 49, False, 1)
    far = Finding("passport", 40, 49, False, 9)
    phone = Finding("phone", 60, 69, False, 0)
    other = Finding("bank_account", 60, 69, False, 30)
    everything = [short, unsure, far, phone, long, sure, near, other]
    assert resolve(everything) == resolve(reversed(everything)) == [long, sure, near, other]


@pytest.mark.parametrize(
    "text",
    ["order 4111111111111111", "part no. 415-555-0132", "PESEL order number 90010112349"],
)
def test_a_nearer_word_says_what_a_number_is(text: str) -> None:
    """`order`, `part`, `version` in front turn digits into something else."""
    assert found(text) == []


def test_private_addresses_count_on_request() -> None:
    """By default they name nobody; networks and versions are none either way."""
    text = "192.168.7.40, 127.0.0.1, fe80::a00:27ff:fe4e:66a1, 10.0.0.0/8, version 10.0.0.1"
    assert found(text) == []
    values = [value for _, value in found(text, private_ips=True)]
    assert values == ["192.168.7.40", "127.0.0.1", "fe80::a00:27ff:fe4e:66a1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Updated 08/24 16:25, call the desk", []),
        ("my account page, 2018 02:15 PM", []),
        ("Reisepass C01X00T41 vom 01.01.2020", [("passport", "C01X00T41")]),
        ("born 14 March 1979", [("date_of_birth", "14 March 1979")]),
    ],
)
def test_dates_and_times_are_no_numbers(text: str, expected: list[tuple[str, str]]) -> None:
    """They stand near the same words; a date of birth is one in figures or in words."""
    assert found(text) == expected


def test_typographic_twins_are_read() -> None:
    """Non-breaking hyphens and blanks, full-width digits."""
    assert found("phone 415\u2011555\u20110132") == [("phone", "415\u2011555\u20110132")]
    assert found("\uff14" + "\uff11" * 15)[0][0] == "credit_card"


def test_findings_serve_other_detectors() -> None:
    """Decoded layers are scanned by the same function."""
    assert [f.type for f in findings("a@example.com", PIIParameters())] == ["email"]
