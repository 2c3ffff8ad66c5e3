"""Tests whether a value alone looks like a secret; the text around it is never read here.

Every function is pure and linear in a value of at most a few thousand characters.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import math
import string
import zlib
from collections import Counter

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_HEX = frozenset(string.hexdigits)
_ALNUM = frozenset(string.ascii_letters + string.digits)
_PRODUCT_KEY_LETTERS = frozenset("BCDFGHJKMNPQRTVWXY2346789-")

PLACEHOLDER_WORDS = (
    "example", "placeholder", "redacted", "changeme", "change_me", "change-me", "replace", "insert",
    "your_", "your-", "yourkey", "yourtoken", "yourpass", "yoursecret", "yourapi", "xxxx", "****",
    "...", "____", "removed", "undefined", "<", "${", "{{", "%(", "…",
)  # fmt: skip
"""Words no generated key contains: 8 letters meet a random base-62 key once in 10^12 places."""

COMMON_VALUES = frozenset({
    "pass", "password", "passwd", "pwd", "secret", "token", "user", "admin", "root", "guest",
    "test", "none", "null", "true", "false", "password1", "password123", "123456", "1234567",
    "12345678", "123456789", "1234567890", "qwerty", "letmein", "login", "username", "foobar",
    "value", "string", "hidden", "masked", "p@ssword", "p@ssw0rd", "passw0rd",
})  # fmt: skip
"""Values that manuals print where a password goes; nobody is harmed by their publication."""


def entropy(value: str) -> float:
    """Return Shannon's bits per character; 0 for the empty value and for one repeated character."""
    counts = Counter(value).values()
    return sum(-n / len(value) * math.log2(n / len(value)) for n in counts)


def is_placeholder(value: str) -> bool:
    """Return whether a value only marks the place of a secret.

    The documented example keys of AWS (they end in EXAMPLE) are placeholders: they open nothing
    and are in every manual a passage may quote.
    """
    lower = value.lower()
    if any(word in lower for word in PLACEHOLDER_WORDS):
        return True
    if len(value) >= 8 and len(set(lower)) <= 3:
        return True
    if value[:1] in ("$", "%") and value.strip("$%{}").replace("_", "").isalnum():
        return True
    letters = value.replace("_", "").replace("-", "")
    return "_" in value and letters.isalpha() and letters.isupper()


def is_common(value: str) -> bool:
    """Return whether a password is one that manuals use for illustration."""
    return value.lower().strip("'\"`") in COMMON_VALUES


def is_uuid(value: str) -> bool:
    """Return whether a value is a UUID in its usual form."""
    parts = value.strip("{}").split("-")
    return [len(p) for p in parts] == [8, 4, 4, 4, 12] and set("".join(parts)) <= _HEX


def is_mixed(value: str) -> bool:
    """Return whether a value has digits and letters, as a generated key has and words have not."""
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def is_jumbled(value: str) -> bool:
    """Return whether a value has digits, or as a word has not, letters of both cases."""
    letters = [c for c in value if c.isalpha()]
    switches = sum(a.islower() != b.islower() for a, b in itertools.pairwise(letters))
    return any(c.isdigit() for c in value) or 4 * switches > len(letters)


def longest_run(value: str) -> str:
    """Return the longest stretch of ASCII letters and digits."""
    spaced = "".join(c if c in _ALNUM else " " for c in value)
    return max(spaced.split(), key=len, default="")


def is_sk_key(value: str) -> bool:
    """Return whether `sk-...` is a key and not a package, a CSS class or a hyphenated name.

    A key has one stretch of at least 16 letters and digits that are mixed; `sk-learn`,
    `sk-estimator-id-12` and `sk-toggleable__label-arrow` have none.
    """
    run = longest_run(value[3:])
    return len(run) >= 16 and is_mixed(run) and entropy(run) >= 2.5


def has_crc32(token: str, prefix: str) -> bool:
    """Return whether the last six characters are the checksum of the ones before.

    Source:
        GitHub's "Behind GitHub's new authentication token formats" (2021): CRC32 in base 62,
        padded to six digits; npm's tokens follow it.
    """
    body = token[len(prefix) : -6]
    return token.startswith(prefix) and token[-6:] == base62(zlib.crc32(body.encode()), 6)


def base62(number: int, width: int) -> str:
    """Return a number in base 62, padded with zeros."""
    digits = ""
    while number:
        number, rest = divmod(number, 62)
        digits = _BASE62[rest] + digits
    return digits.rjust(width, "0")


def decode_base64(value: str) -> bytes | None:
    """Return what standard or url-safe base64 stands for, or None."""
    plain = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def is_jwt_header(segment: str) -> bool:
    """Return whether a segment is the JSON header of a signed or encrypted token."""
    raw = decode_base64(segment)
    try:
        header = json.loads(raw or b"")
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and bool({"alg", "enc", "typ"} & header.keys())


def is_basic_credentials(value: str) -> bool:
    """Return whether base64 decodes to `user:password` in printable text."""
    raw = decode_base64(value)
    try:
        text = (raw or b"").decode()
    except UnicodeDecodeError:
        return False
    user, colon, password = text.partition(":")
    if not colon or not user or not password or not text.isprintable():
        return False
    return not is_placeholder(password) and not is_common(password)


def is_product_key(value: str) -> bool:
    """Return whether five groups of five can be an activation key, not a part or order number.

    Real keys use 24 letters and digits without vowels, but any mix of letters and digits counts:
    a damaged key is still worth hiding. In lower case, where slugs look alike, only the real
    alphabet does. Groups of digits alone, or of words, never do.
    """
    distinct = set(value.upper())
    if len(distinct) < 8 or value.replace("-", "").isdigit():
        return False
    return distinct <= _PRODUCT_KEY_LETTERS or (value.isupper() and is_mixed(value))
