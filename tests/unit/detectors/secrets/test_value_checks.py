"""Rules on single values: entropy, checksums, placeholders, names."""

import zlib

import pytest

from guardrail_service.detectors.secrets import value_checks
from guardrail_service.detectors.secrets.names import is_code, is_password, is_secret_value

BODY = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1"


def test_entropy_counts_bits_per_character() -> None:
    """Known values: one symbol 0, two 1, sixteen 4."""
    assert value_checks.entropy("") == value_checks.entropy("aaaa") == 0
    assert value_checks.entropy("abab") == pytest.approx(1)
    assert value_checks.entropy("0123456789abcdef") == pytest.approx(4)


def test_a_github_token_carries_its_checksum() -> None:
    """CRC32 of the body in base 62, six digits."""
    token = "ghp_" + BODY + value_checks.base62(zlib.crc32(BODY.encode()), 6)
    assert len(token) == 40
    assert value_checks.has_crc32(token, "ghp_")
    assert not value_checks.has_crc32("ghp_" + BODY + "000000", "ghp_")


def test_base62_is_padded() -> None:
    """Small checksums keep the token's length."""
    assert value_checks.base62(0, 6) == "000000"
    assert value_checks.base62(61, 6) == "00000z"
    assert value_checks.base62(62, 6) == "000010"


@pytest.mark.parametrize(
    "value",
    ["<YOUR_KEY>", "xxxxxxxxxxxx", "AKIA" + "IOSFODNN7EXAMPLE", "YOUR_API_KEY", "${TOKEN}",
     "$TOKEN",
     "{{ token }}", "%(token)s", "************", "REDACTED", "00000000", "your-token-here",
     "....."],
)  # fmt: skip
def test_placeholders_are_recognised(value: str) -> None:
    """What manuals print where a key goes; AWS's documented example keys are among it."""
    assert value_checks.is_placeholder(value)


@pytest.mark.parametrize(
    "value", [BODY, "hunter2x", "Tr0ub4dor&3", "9f86d081884c7d659a2feaa0c55ad015"]
)
def test_random_values_are_no_placeholders(value: str) -> None:
    """A rule that swallows keys would be worse than none."""
    assert not value_checks.is_placeholder(value)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("sk-learn", False),
        ("sk-learn-intelex-2023-1-2-3", False),
        ("sk-toggleable__label-arrow", False),
        ("sk-estimator-id-12", False),
        ("sk-" + BODY, True),
        ("sk-" + "0123456789abcdef0123456789abcdef", True),
    ],
)
def test_sk_needs_one_long_mixed_stretch(value: str, key: bool) -> None:
    """H2O's rule flagged " sk-learn"."""
    assert value_checks.is_sk_key(value) is key


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("VK7JG-NPHTM-C97JM-9MPGT-3V66T", True),
        ("A0I1O-B2C3D-E4F5G-H6J7K-L8M9N", True),
        ("vk7jg-nphtm-c97jm-9mpgt-3v66t", True),
        ("12345-67890-12345-67890-12345", False),
        ("HELLO-WORLD-THESE-WORDS-ABOUT", False),
        ("about-these-words-1234a-alpha", False),
        ("AAAAA-AAAAA-AAAAA-AAAAA-AAAA1", False),
    ],
)
def test_product_keys_are_letters_and_digits(value: str, key: bool) -> None:
    """The whole alphabet with 0 counts, unlike H2O's `[A-Z1-9]`; digits or words alone do not."""
    assert value_checks.is_product_key(value) is key


def test_a_jwt_header_is_json_with_an_algorithm() -> None:
    """Random base64 that starts with eyJ is no token."""
    assert value_checks.is_jwt_header("eyJhbGciOiJIUzI1NiJ9")
    assert not value_checks.is_jwt_header("eyJust")
    assert not value_checks.is_jwt_header("eyJmb28iOjF9")
    assert not value_checks.is_jwt_header("W10")


def test_basic_credentials_hold_a_colon_and_no_example() -> None:
    """`user:password` of the manual is no secret."""
    assert value_checks.is_basic_credentials("Ym9iOmh1bnRlcjJ4eA==")
    assert not value_checks.is_basic_credentials("dXNlcjpwYXNzd29yZA==")
    assert not value_checks.is_basic_credentials("aGVsbG8=")
    assert not value_checks.is_basic_credentials("////")


@pytest.mark.parametrize(
    ("value", "quoted", "code"),
    [
        ("os.environ['KEY_2']", False, True),
        ("process.env.KEY_2", True, True),
        ("getpass.getpass()", False, True),
        ("auth[1]", False, True),
        ("config.secret_key_2", False, True),
        ("new_token_2", False, True),
        ("new_token_2", True, False),
        ("aB3dE5fG7hJ9", False, False),
        ("9f86d081884c7d65", False, False),
    ],
)
def test_code_is_told_from_literals(value: str, quoted: bool, code: bool) -> None:
    """Quotes make a literal of what would be a variable."""
    assert is_code(value, quoted=quoted) is code


@pytest.mark.parametrize("value", ["hunter2", "Tr0ub4dor&3", "P@ssphrase", "abc!defg"])
def test_passwords_mix_classes_of_characters(value: str) -> None:
    """Six characters of two classes, one of them digits or signs."""
    assert is_password(value)


@pytest.mark.parametrize("value", ["must", "required", "12345678", "abc1", "aaaaaa1"])
def test_words_and_numbers_are_no_passwords(value: str) -> None:
    """ "Password: required" is a form, not a leak."""
    assert not is_password(value)


@pytest.mark.parametrize(
    "name", ["password_hash=", "public_key=", "key_id=", "commit token ", "primary key ", "key="]
)
def test_names_of_public_values_excuse_them(name: str) -> None:
    """Hashes, ids and public keys are long and random, too."""
    assert not is_secret_value(name, "a8f5f167f44f4964e6c998dee827110c", quoted=True)


def test_hashicorp_is_not_a_hash() -> None:
    """A part of a name is not read inside this one."""
    assert is_secret_value("hashicorp token=", "a8f5f167f44f4964e6c998dee827110c", quoted=True)
