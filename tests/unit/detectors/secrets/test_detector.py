"""The secrets detector: what it finds, what it shows, what its parameters change."""

from __future__ import annotations

import base64
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from guardrail_service.detectors.secrets import detector as secret_search
from guardrail_service.detectors.secrets.detector import (
    KINDS,
    PATTERNS,
    CustomSecret,
    Secrets,
    SecretsParameters,
    find,
    scan,
)
from guardrail_service.text.patterns.search import PatternSet
from guardrail_service.text.patterns.slow_regexes import unbounded_repeat
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Outcome, Passage, Sample

# Cut in two, so that no push scanner takes the made-up keys of this file for real ones.
GITHUB = "gh" + "p_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
AWS = "AKI" + "AQ7ZT5M2NP4RS6UVW"
OPENAI = "sk" + "-proj-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3"
STRIPE = "sk" + "_live_aB3dE5fG7hJ9kL1mN3pQ5rS7"
PLANTED = {
    GITHUB: "github_token",
    AWS: "aws_access_key_id",
    OPENAI: "openai_api_key",
    STRIPE: "stripe_key",
}
BODY = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"] * 3)


def judge(answer: str, contexts: tuple[str, ...] = (), **parameters: object) -> Outcome:
    """Return the detector's outcome on one answer."""
    sample = SegmentedSample(Sample(answer, contexts=tuple(map(Passage, contexts))))
    return Secrets().reduce(sample, (), SecretsParameters.model_validate(parameters))


def types(text: str) -> list[str]:
    """Return the kinds found in a text."""
    return [finding.type for finding in find(text)]


@pytest.mark.parametrize("key", PLANTED)
@pytest.mark.parametrize("frame", ["{}", "{} leads", "ends with {}", "in ({}), so", '{{"k":"{}"}}'])
def test_a_key_counts_wherever_it_stands(key: str, frame: str) -> None:
    """H2O's `sk-` rule needed a blank before the key."""
    text = frame.format(key)
    (finding,) = find(text)
    assert (text[finding.start : finding.end], finding.type) == (key, PLANTED[key])


@pytest.mark.parametrize("text", [" sk-learn", "sk-learn is a package", "task-runner-2024-05-31-x"])
def test_package_names_are_no_keys(text: str) -> None:
    """H2O's `sk-` rule flagged the first."""
    assert types(text) == []


@pytest.mark.parametrize(
    "label",
    ["RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY", "OPENSSH PRIVATE KEY",
     "ENCRYPTED PRIVATE KEY", "PRIVATE KEY", "PGP PRIVATE KEY BLOCK", "ANY PRIVATE KEY"],
)  # fmt: skip
def test_every_private_key_block_is_found_whole(label: str) -> None:
    """H2O's rule missed the plain `BEGIN PRIVATE KEY`."""
    block = f"-----BEGIN {label}-----\n{BODY}\n-----END {label}-----"
    (finding,) = find(f"Here: {block} Keep it.")
    assert (finding.start, finding.end) == (6, 6 + len(block))
    assert finding.type == "private_key"


def test_an_encrypted_key_with_headers_is_found() -> None:
    """The old OpenSSL form has header lines before its body."""
    head = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n"
    block = f"{head}{BODY}\n-----END RSA PRIVATE KEY-----"
    assert [(f.start, f.end) for f in find(block)] == [(0, len(block))]


def test_a_key_block_that_was_cut_off_is_found() -> None:
    """Answers end in the middle; the key material is out all the same."""
    block = f"-----BEGIN PRIVATE KEY-----\n{BODY}"
    assert [(f.start, f.end) for f in find(block)] == [(0, len(block))]


def test_a_key_in_a_json_file_is_found_and_known_as_googles() -> None:
    """Line ends are written as a backslash and an n there."""
    pem = f"-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----\n"
    text = json.dumps({"type": "service_account", "private_key": pem, "client_id": "1"})
    assert types(text) == ["gcp_service_account_key"]


def test_a_certificate_counts_only_on_request() -> None:
    """H2O's rule flagged public certificates."""
    text = f"-----BEGIN CERTIFICATE-----\n{BODY}\n-----END CERTIFICATE-----"
    assert judge(text).scores["model_passes"] == 1.0
    outcome = judge(text, flag_certificates=True)
    assert outcome.scores["model_passes"] == 0.0
    assert [s.label for s in outcome.spans] == ["certificate"]


@pytest.mark.parametrize("frame", ["{}", "{} is it", "it is {}", "({})"])
@pytest.mark.parametrize("key", ["VK7JG-NPHTM-C97JM-9MPGT-3V66T", "A0B1C-D2E3F-G4H5J-K6L7M-N8P9Q"])
def test_activation_keys_count_at_both_ends_and_with_zeros(frame: str, key: str) -> None:
    """H2O's rule needed a character before the key and had no 0 in its alphabet."""
    assert types(frame.format(key)) == ["windows_activation_key"]


@pytest.mark.parametrize("around", ["{}-ABCDE", "ABCDE-{}", "X{}", "{}9"])
def test_activation_keys_are_not_cut_out_of_longer_numbers(around: str) -> None:
    """Six groups are a serial number of something else."""
    assert types(around.format("VK7JG-NPHTM-C97JM-9MPGT-3V66T")) == []


def test_a_jwt_is_taken_whole_however_long() -> None:
    """The payload of a signed token has no fixed length."""
    parts = [{"alg": "RS256"}, {"scope": "x" * 4_000}]
    coded = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts]
    token = ".".join([*coded, "s" * 340])
    (finding,) = find(f"Use {token}.")
    assert (finding.start, finding.end, finding.type) == (4, 4 + len(token), "jwt")


def test_spans_say_what_and_where_and_never_show_the_secret() -> None:
    """Labels, numbers and severities only; the same value has the same number."""
    other = GITHUB[:-2] + "zZ"
    outcome = judge(f"{GITHUB} {other} {GITHUB} {AWS}")
    assert [s.replacement for s in outcome.spans] == [
        "[GITHUB_TOKEN_1]", "[GITHUB_TOKEN_2]", "[GITHUB_TOKEN_1]", "[AWS_ACCESS_KEY_ID_1]",
    ]  # fmt: skip
    assert all(GITHUB not in repr(span) and AWS not in repr(span) for span in outcome.spans)
    assert outcome.spans[0].attributes == {"severity": "critical", "checksum": False}
    assert outcome.spans[3].attributes == {"severity": "critical"}


def test_of_overlapping_findings_the_more_specific_stays() -> None:
    """A GitHub token as password of an address is a GitHub token."""
    assert types(f"https://bot:{GITHUB}@git.test/x and api_key={GITHUB}") == ["github_token"] * 2


def test_of_equally_specific_findings_the_longer_stays() -> None:
    """The stated rule: rank, then length, then place."""
    make = secret_search.SecretFinding
    short, long, low = (
        make(5, 9, "a", 2, "high"),
        make(0, 7, "b", 2, "high"),
        make(0, 99, "c", 0, ""),
    )
    assert secret_search.resolve([low, short, long]) == [long]


def test_a_clean_answer_passes_every_metric() -> None:
    """Nothing found, nothing parsed, nothing flagged."""
    outcome = judge("The capital of France is Paris.")
    assert outcome.scores == {
        "model_passes": 1.0,
        "model_failures": 0.0,
        "model_retrieval_failures": 0.0,
        "model_generation_failures": 0.0,
        "model_parse_failures": 0.0,
    }


def test_a_secret_in_a_passage_is_a_retrieval_failure_only() -> None:
    """And only when passages are asked."""
    assert judge("Fine.", (AWS,)).scores["model_retrieval_failures"] == 0.0
    outcome = judge("Fine.", (AWS,), evaluate_retrieved_context=True)
    assert outcome.scores["model_retrieval_failures"] == 1.0
    assert outcome.scores["model_passes"] == 1.0
    assert outcome.coverage is not None
    assert outcome.coverage.contexts == (len(AWS), len(AWS))


def test_a_secret_of_a_passage_may_be_repeated_on_request() -> None:
    """Documentation assistants over key stores exist."""
    assert judge(AWS, (f"key {AWS}",)).scores["model_passes"] == 0.0
    assert judge(AWS, (f"key {AWS}",), allow_if_in_context=True).scores["model_passes"] == 1.0
    assert judge(GITHUB, (f"key {AWS}",), allow_if_in_context=True).scores["model_passes"] == 0.0


def test_allowed_values_and_patterns_pass() -> None:
    """Literals are compared whole, patterns are searched."""
    assert judge(AWS, allow=[AWS]).scores["model_passes"] == 1.0
    assert judge(AWS, allow=[AWS[:-1]]).scores["model_passes"] == 0.0
    assert judge(AWS, allow_patterns=["^AKIAQ7"]).scores["model_passes"] == 1.0


def test_only_the_wanted_kinds_are_reported() -> None:
    """The others are still there, nobody asked."""
    outcome = judge(f"{AWS} {GITHUB}", kinds=["github_token"])
    assert [s.label for s in outcome.spans] == ["github_token"]


def test_custom_patterns_are_kinds_of_their_own() -> None:
    """They beat the built-in ones where they overlap."""
    rule = {"id": "acme_ticket", "regex": "acme-([0-9a-f]{12})", "group": 1, "severity": "medium"}
    outcome = judge("see acme-0123456789ab", custom=[rule])
    assert [(s.start, s.end, s.label) for s in outcome.spans] == [(9, 21, "acme_ticket")]
    assert outcome.spans[0].replacement == "[ACME_TICKET_1]"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"allow_patterns": ["ok", "(ab"]}, "at position"),
        ({"custom": [{"id": "x", "regex": "a(?=b)"}]}, "at position"),
        ({"custom": [{"id": "x", "regex": "a", "group": 3}]}, "group 3"),
        ({"custom": [{"id": "jwt", "regex": "a"}]}, "taken"),
        ({"kinds": ["github_tokn"]}, "github_tokn"),
        ({"unknown": 1}, "Extra inputs"),
    ],
)
def test_wrong_parameters_are_refused_with_place_and_reason(
    parameters: dict[str, object], message: str
) -> None:
    """A rule that silently matches nothing is an open door."""
    with pytest.raises(ValidationError, match=message):
        SecretsParameters.model_validate(parameters)


def test_no_pattern_repeats_without_bound() -> None:
    """Linear by construction: every match has a greatest length."""
    assert [p.id for p in PATTERNS if unbounded_repeat(p.regex) is not None] == []


def test_both_gates_lead_to_the_same_findings() -> None:
    """Where hyperscan has no wheel, keywords must not lose anything."""
    slow = PatternSet(PATTERNS, engine="keywords")
    for text in (
        *PLANTED,
        f"password: hunter2x {AWS} eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOjF9.c2ln",
        BODY,
    ):
        assert slow.scan(text) == secret_search.engine().scan(text)


def test_there_are_more_than_150_patterns_and_every_kind_says_what_it_is() -> None:
    """The table is published in docs/secrets.md."""
    assert len(PATTERNS) >= 150
    assert all(
        what and severity in ("critical", "high", "medium") for what, severity in KINDS.values()
    )
    assert len(CustomSecret(id="a", regex="b").severity) > 0


# Letters and digits next to a key would make it part of a longer word, and a quote or sign before
# it could name it, so the surroundings are any text closed by a blank.
SURROUNDINGS = st.text(max_size=200)


@given(before=SURROUNDINGS, after=SURROUNDINGS, key=st.sampled_from(sorted(PLANTED)))
def test_a_planted_key_is_found_with_exact_offsets_in_any_unicode(
    before: str, after: str, key: str
) -> None:
    """Surrogates, control characters and right-to-left marks do not move a span."""
    text = f"{before} {key} {after}"
    start = len(before) + 1
    assert (start, start + len(key), PLANTED[key]) in [(f.start, f.end, f.type) for f in find(text)]


@given(st.text())
def test_any_text_gives_ordered_findings_that_do_not_overlap(text: str) -> None:
    """Spans can be replaced one after the other."""
    found = scan(text, SecretsParameters())
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert all(0 <= f.start < f.end <= len(text) for f in found)


@pytest.mark.parametrize(
    "piece",
    ["password=1", "api key=1api", "eyJhbGciOiJIUzI1NiJ9.abcd.", "-----BEGIN PRIVATE KEY-----",
     "%25", "A" * 64, "-", "https://a:", "xoxb-", "://:@", "sk-", "PuTTY-User-Key-File-2:"],
)  # fmt: skip
def test_floods_are_read_to_their_end(piece: str) -> None:
    """100 KB of one piece: a quadratic rule would run into the suite's time limit."""
    find(piece * (100_000 // len(piece)))
