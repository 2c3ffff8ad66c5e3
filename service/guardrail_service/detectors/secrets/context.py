"""Secrets that only their surroundings give away: `password = ...`, "the Datadog API key is ...".

A few patterns find a name, a sign and a value; the table says whose key it is. Nothing here decides
whether the value is worth an alarm, `value_checks.py` does.
"""

from __future__ import annotations

from guardrail_service.detectors.secrets.kinds import SecretKind, kind
from guardrail_service.detectors.secrets.owners import OWNERS, Owner
from guardrail_service.text.patterns.search import compile_regex

_NAME = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|pin code|secret|token|credentials?|api[ _.-]?key"
    r"|auth[ _-]?key|[a-z0-9][ _-]key|[a-z]key)"
)
_AFTER_NAME = r"[A-Za-z0-9_.-]{0,24}(?: [A-Za-z0-9_-]{1,15}){0,5}"
_SIGN = (
    r"""[\\"'`*\])}]{0,5}[ \t]{0,4}(?:[?.|+]{0,2}:{0,3}={1,3}>?|->|:|>|\||\bis|\bwas)"""
    r"""\s{0,16}[\\"'`*(<\[]{0,4}"""
)
_VALUE = r"([!#-&(-;=?-_a-{}~]{0,24}[0-9!@#$%^&*])"  # its beginning; the check reads on

_GATE = (
    r"(?:pass|pwd|pin code|secret|token|credential|key)"
    r"""[A-Za-z0-9_. "'`*\\\])}\t-]*(?:[?.|+]*:*=+>?|[:>|]|\bis|\bwas)\s*[\\"'`*(<\[]*"""
    r"[!#-&(-;=?-_a-{}~]*[0-9!@#$%^&*]"
)
"""The same without the bounds, which cost hyperscan a second to compile."""
_NAME_PARTS = ("pass", "pwd", "pin", "secret", "token", "credential", "key")
_FLAG = r"--[a-z-]{0,24}(?:password|passwd|token|secret|key)[ =]"
_CALL = (
    r"""["'][A-Za-z0-9_.-]{0,40}(?:pass(?:word|wd|phrase)|secret|token|key)["']"""
    r"""(?:, {0,2}| value=)["']"""
)
"""A quoted name and its value as two arguments or attributes."""
_CALL_GATE = r"""(?:pass(?:word|wd|phrase)|secret|token|key)["'](?:, *| value=)["']"""
_SPOKEN = r"\b(?:password|passcode|passphrase|secret key|api key|token)"

MAX_VALUE = 256
"""Code points of a named value; longer ones have forms of their own."""

_WHOLE_VALUE = compile_regex(r"[!#-&(-;=?-_a-{}~]{1,256}", "named value")


def value_end(text: str, start: int) -> int:
    """Return where the unquoted value that begins at `start` ends."""
    ahead = text[start : start + MAX_VALUE].encode("utf-8", "replace")
    match = _WHOLE_VALUE.match(ahead)
    return start + (match.end() if match else 0)


ASSIGNMENT = "assignment"
"""Pseudo-kind of a named value before `classify` knows whose it is."""

ASSIGNMENTS: tuple[SecretKind, ...] = tuple(
    kind(
        f"{ASSIGNMENT}/{name}",
        "A named value",
        regex,
        *keywords,
        entropy=0.0,
        check="quoted" if name == "prose" else ASSIGNMENT,
        group=1,
        ignore_case=True,
        closed=False,
        rank=0,
        gate=gate,
    )
    for name, regex, keywords, gate in (
        ("sign", _NAME + _AFTER_NAME + _SIGN + _VALUE, _NAME_PARTS, _GATE),
        ("flag", _FLAG + "[\"']?" + _VALUE, ("--",), r"--[a-z-]*(?:pass|token|secret|key)"),
        ("call", _CALL + _VALUE, _NAME_PARTS, _CALL_GATE),
        ("netrc", r"\blogin [!-~]{1,80}\s{1,4}password " + _VALUE, ("password",), r"\blogin [!-~]"),
        ("prose", _SPOKEN + "[ ,]{1,2}[\"'`]" + _VALUE, _NAME_PARTS, ""),
    )
)


PASSWORD = Owner(
    "password", "Password assigned to a name", ("pass", "pwd", "pin code"), ".", "medium", rank=0
)
GENERIC = Owner(
    "generic_secret", "High-entropy value under a telling name", (), ".", "medium", rank=0
)


def classify(name: str, value: str) -> Owner:
    """Return whose secret a named value would be; `GENERIC` if the name tells no more."""
    for owner in OWNERS:
        if owner.owns(name, value):
            return owner
    tail = name[-40:]
    return PASSWORD if any(word in tail for word in PASSWORD.names) else GENERIC
