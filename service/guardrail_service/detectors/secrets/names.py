"""Decides whether `name = value` assigns a secret, by the name and by values that are prose."""

from __future__ import annotations

from guardrail_service.detectors.secrets.value_checks import (
    entropy,
    is_common,
    is_mixed,
    is_placeholder,
    is_uuid,
    longest_run,
)

INNOCENT_NAMES = (
    "hash", "sha1", "sha2", "sha5", "sha-", "md5", "checksum", "digest", "integrity", "fingerprint",
    "commit", "etag", "public", "thumbprint", "primary key", "primary_key", "foreign", "sort",
    "cache", "object", "partition", "row key", "row_key", "message", "idempotency", "keyboard",
    "max_token", "max token", "next_token", "next token", "nexttoken", "page_token", "page token",
    "pagetoken", "continuation", "policy", "version", "monkey", "turkey", "donkey", "jockey",
    "hockey", "whiskey", "key id", "key_id", "keyid", "token_id", "secret_id", "keyname",
    "token_type", "token type", "token_url", "token_uri", "token endpoint", "expir", "expires",
    "length", "_count", " count", "limit", "tokenizer", "issue key", "ticket",
)  # fmt: skip
"""Parts of names whose values are long and random and no secret."""

_TELLING = (
    "api", "access", "auth", "secret", "token", "credential", "private", "encrypt", "signing",
    "master", "client", "account", "storage", "shared", "app", "admin", "deploy", "license",
    "service", "session", "webhook", "subscription", "pass", "pwd", "pin code",
)  # fmt: skip
"""Words, one of which a name must have beside "key"."""

_NEAR = 32
"""Code points before a value in which its own name stands."""
MIN_GENERIC = 16
MIN_ENTROPY = 3.0
"""Bits per character. Hexadecimal keys of 32 digits have 3.2 to 3.9, English words about 3."""


def is_secret_value(name: str, value: str, *, quoted: bool) -> bool:
    """Return whether a value under a telling name is random enough to be its secret.

    Args:
        name: What stands before the value, in lower case.
        value: The value without its quotes.
        quoted: Whether it stood in quotes, so that it cannot be a variable.
    """
    if _names_no_secret(name) or is_placeholder(value) or is_common(value):
        return False
    if is_uuid(value) or is_code(value, quoted=quoted) or is_plain_data(value):
        return False
    if any(word in name[-40:] for word in ("pass", "pwd", "pin code")):
        return is_password(value)
    return _is_generic_key(value)


def _names_no_secret(name: str) -> bool:
    return has_innocent_name(name) or not any(word in name for word in _TELLING)


def has_innocent_name(name: str) -> bool:
    """Return whether the words next to a value say that it is public, a hash or a number."""
    near = name[-_NEAR:].replace("hashicorp", "")
    return any(word in near for word in INNOCENT_NAMES)


def is_password(value: str) -> bool:
    """Return whether a value is more than one plain word: two classes of characters, six long."""
    kinds = (
        any(c.islower() for c in value),
        any(c.isupper() for c in value),
        any(c.isdigit() for c in value),
        any(c in "!@#$%^&*+=?~_" for c in value),
    )
    if value.startswith("@"):
        return False  # the rest of an address
    return len(value) >= 6 and sum(kinds) >= 2 and (kinds[2] or kinds[3]) and entropy(value) >= 2.0


def _is_generic_key(value: str) -> bool:
    run = longest_run(value)
    return (
        len(value) >= MIN_GENERIC
        and is_mixed(value)
        and len(run) >= 8
        and sum(c.isdigit() for c in value) >= 2
        and entropy(value) >= MIN_ENTROPY
    )


def is_code(value: str, *, quoted: bool) -> bool:
    """Return whether a value is a variable, a call or a look-up rather than a literal."""
    lower = value.lower()
    if any(mark in lower for mark in ("environ", "getenv", "process.env", "secrets.", "vault(")):
        return True
    if quoted:
        return False
    head = value.partition("(")[0].partition("[")[0]
    called = len(head) < len(value) and head.replace(".", "").replace("_", "").isalnum()
    if called and ("[" in value or value.endswith((")", "(")) or "." in head):
        return True
    parts = head.split(".")
    if len(parts) > 1 and all(_is_name(part) for part in parts):
        return True
    return _is_name(value) and "_" in value and value == lower


def _is_name(part: str) -> bool:
    """Return whether a part reads like an identifier: words, with a digit at most at the end."""
    return part.isidentifier() and part.rstrip("0123456789").replace("_", "").isalpha()


def is_plain_data(value: str) -> bool:
    """Return whether a value is a number, date, version, path, address or file name."""
    if not value.translate(_NUMERIC) or "://" in value or value.startswith(_PATHS):
        return True
    if "/" in value and len(longest_run(value)) < 20:
        return True
    words = value.replace("/", "-").replace(".", "-").replace(":", "-").replace(",", "-").split("-")
    return (
        len(words) > 1
        and all(w.isalpha() or w.isdigit() or not w for w in words)
        and not any(len(w) > 12 for w in words)
    )


_PATHS = ("./", "../", "~/", "arn:", "#", "\\")
_NUMERIC = str.maketrans("", "", "0123456789.,:-+/%eE ")
