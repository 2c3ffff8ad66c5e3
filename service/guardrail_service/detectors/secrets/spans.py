"""Tests of a match that need the text around it; each returns the secret's span or None.

All of them read a bounded stretch of text on either side, so a scan stays linear.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import NamedTuple

from guardrail_service.detectors.secrets import value_checks
from guardrail_service.detectors.secrets.context import classify, value_end
from guardrail_service.detectors.secrets.names import has_innocent_name, is_code, is_secret_value
from guardrail_service.text.patterns.search import compile_regex

_ALNUM = frozenset(string.ascii_letters + string.digits)
_BASE64 = _ALNUM | frozenset("+/=")
_TOKEN = _ALNUM | frozenset("_-.")
_HEX = frozenset(string.hexdigits)

MAX_PEM = 20_000
"""Code points; an RSA key of 16,384 bits takes 12,700."""
MAX_JWT = 16_000
"""Code points; servers refuse headers beyond 8 to 16 KB."""
MAX_PAIR = 160
PAIRS_REACH = 400
"""Code points of a connection string before its password."""
PAIRS_START = ("server=", "data source=", "host=", "driver=", "provider=", "jdbc:", "endpoint=")
_PAIR = compile_regex(r";[A-Za-z][A-Za-z0-9 _-]{1,40}=[A-Za-z0-9_.:,/()+-]{1,100}", "pair")
MIN_VALUE = 6
"""Code points of a named value; shorter ones are versions, counts and flags."""
_NAME_REACH = 64
"""Code points read before a named value; "the API key of our staging cluster in Datadog is"."""


class Located(NamedTuple):
    """A secret's span, whose it is if the surroundings say so, and how sure that is."""

    start: int
    end: int
    kind: str | None = None
    rank: int | None = None


Check = Callable[[str, int, int], Located | None]


def is_closed(text: str, start: int, end: int) -> bool:
    """Return whether a match is a whole token: no letter or digit touches it.

    A backslash escape (JSON's `\\n`) and a percent escape before it are boundaries.
    """
    if text[end : end + 1] in _ALNUM or text[end : end + 1] == "_":
        return False
    if text[max(0, start - 1) : start] not in _ALNUM:
        return True
    if text[max(0, start - 2) : start] in ("\\n", "\\r", "\\t"):
        return True
    escape = text[max(0, start - 3) : start]
    return len(escape) == 3 and escape[0] == "%" and set(escape[1:]) <= _HEX


def pem(text: str, start: int, end: int) -> Located | None:
    """Return the key block behind a BEGIN line, whole or cut off, if it holds key material."""
    limit = min(end + MAX_PEM, len(text))
    following = text.find("BEGIN ", end, limit)
    limit = limit if following < 0 else following
    close = text.find("END ", end, limit)
    body = text[end : close if close >= 0 else limit]
    lines = body.replace("\\n", "\n").replace("\\r", "\n").split("\n")
    runs = [run for line in lines for run in line.split() if _is_key_material(run)]
    if close >= 0:
        whole = [line.strip().rstrip("-").strip() for line in lines]
        short = [line for line in whole if line and ":" not in line]
        if not runs and not (short and all(set(line) <= _BASE64 for line in short)):
            return None
        return Located(start, _end_of_dashes(text, close))
    return Located(start, end + body.rfind(runs[-1]) + len(runs[-1])) if runs else None


def _is_key_material(run: str) -> bool:
    run = run.strip("\"',.;:)]}…-`")
    return len(run) >= 20 and set(run) <= _BASE64 and not run.islower()


def _end_of_dashes(text: str, close: int) -> int:
    """Return the end of the END line that begins at `close`."""
    dashes = text.find("--", close, close + 80)
    if dashes < 0:
        return min(len(text), close + 4)
    while dashes < len(text) and text[dashes] == "-":
        dashes += 1
    return dashes


def google_pem(text: str, start: int, end: int) -> Located | None:
    """Return the key block of a JSON key file that Google Cloud issued."""
    around = text[max(0, start - 2_000) : start] + text[end : end + MAX_PEM]
    google = "service_account" in around or "gserviceaccount" in around
    return pem(text, start, end) if google or "private_key_id" in around else None


def putty(text: str, start: int, end: int) -> Located | None:
    """Return a PuTTY key file up to its MAC."""
    limit = min(len(text), end + MAX_PEM)
    lines = text.find("Private-Lines:", end, limit)
    if lines < 0:
        return None
    mac = text.find("Private-MAC:", lines, limit)
    if mac < 0:
        return Located(start, limit)
    newline = text.find("\n", mac, limit)
    return Located(start, limit if newline < 0 else newline)


def jwt(text: str, start: int, end: int) -> Located | None:
    """Return the whole token if its header decodes to JSON."""
    header = text[start:end].partition(".")[0]
    if not is_closed(text, start, len(text)) or not value_checks.is_jwt_header(header):
        return None
    limit = min(len(text), start + MAX_JWT)
    while end < limit and text[end] in _TOKEN:
        end += 1
    while text[end - 1] in "._-" and text[end - 2] in "._-":
        end -= 1
    return Located(start, end - 1 if _ends_a_sentence(text, start, end) else end)


def _ends_a_sentence(text: str, start: int, end: int) -> bool:
    """Return whether the last point is punctuation; a token of two points may end with one."""
    return text[end - 1] == "." and text.count(".", start, end) > 2


def discord(text: str, start: int, end: int) -> Located | None:
    """Return a bot token if its first part decodes to the bot's number, or nearly."""
    raw = value_checks.decode_base64(text[start:end].partition(".")[0])
    digits = sum(48 <= byte <= 57 for byte in raw or b"")
    return Located(start, end) if raw and digits == len(raw) else _if_mixed_case(text, start, end)


def _if_mixed_case(text: str, start: int, end: int) -> Located | None:
    parts = text[start:end].split(".")
    return Located(start, end) if all(map(value_checks.is_mixed, (parts[0], parts[2]))) else None


def product_key(text: str, start: int, end: int) -> Located | None:
    """Return an activation key that is not part of a longer number."""
    touching = text[max(0, start - 1) : start] + text[end : end + 1]
    return None if "-" in touching else _when(value_checks.is_product_key, text, start, end)


def password(text: str, start: int, end: int) -> Located | None:
    """Return the password part of an address unless it is a placeholder or a manual's example."""
    value = text[start:end]
    shown = (
        value_checks.is_placeholder(value)
        or value_checks.is_common(value)
        or value[:1] in "[({<:$%*"
    )
    return None if shown or is_code(value, quoted=True) else Located(start, end)


def address(text: str, start: int, end: int) -> Located | None:
    """Return a whole address whose user part holds a password."""
    user_part = text[start : text.rindex("@", start, end)].partition("://")[2]
    secret = text.rindex("@", start, end) - len(user_part.partition(":")[2])
    if password(text, secret, text.rindex("@", start, end)) is None:
        return None
    return Located(start, _trimmed_address(text, start, max(end, value_end(text, start))))


def _trimmed_address(text: str, start: int, end: int) -> int:
    """Return the end of an address without the punctuation of its sentence."""
    while end > start and text[end - 1] in ".,;:)]}\\*?!":
        end -= 1
    return end


def pairs(text: str, start: int, end: int) -> Located | None:
    """Return a whole `Server=...;Password=...;` string, or the password if none of it is known."""
    if password(text, start, end) is None:
        return None
    floor = max(0, start - PAIRS_REACH)
    begin = max(text.rfind(mark, floor, start) + 1 for mark in "\"'`\n")
    before = text[max(begin, floor) : start].lower()
    places = [at for name in PAIRS_START if (at := before.find(name)) >= 0]
    if not places:
        return Located(start, end)
    while (
        following := _PAIR.match(text[end : end + MAX_PAIR].encode("utf-8", "replace"))
    ) is not None:
        end += following.end()
    return Located(max(begin, floor) + min(places), end)


def curl(text: str, start: int, end: int) -> Located | None:
    """Return the password given to a command that talks HTTP."""
    before = text[max(0, start - 300) : start]
    spoken = any(command in before for command in ("curl", "wget", "http"))
    return password(text, start, end) if spoken else None


def sas(text: str, start: int, end: int) -> Located | None:
    """Return a signature that other parts of an Azure access signature stand beside."""
    around = text[max(0, start - 400) : start] + text[end : end + 400]
    parts = sum(part in around for part in ("sv=", "se=", "sp=", "sr=", "st=", "skn="))
    return Located(start, end) if parts >= 2 else None


def assignment(text: str, start: int, end: int) -> Located | None:
    """Return a named value that is a secret, and whose."""
    end = value_end(text, start)
    if end - start < MIN_VALUE:
        return None
    quoted = text[start - 1] in "\"'`" and text[end : end + 1] == text[start - 1]
    end = end if quoted else _trimmed(text, start, end)
    value = text[start:end]
    name = _name_before(text, start)
    owner = classify(name, value)
    if owner.names and owner.rank:
        fits = not has_innocent_name(owner.rest(name)) and not value_checks.is_placeholder(value)
        random = value_checks.entropy(value) >= owner.entropy
        return Located(start, end, owner.kind, owner.rank) if fits and random else None
    if is_secret_value(name, value, quoted=quoted):
        return Located(start, end, owner.kind, 0)
    return None


def quoted_value(text: str, start: int, end: int) -> Located | None:
    """Return a value that follows its name with no sign between, which only quotes excuse."""
    found = assignment(text, start, end)
    return found if found and text[found.end : found.end + 1] == text[start - 1] else None


def _trimmed(text: str, start: int, end: int) -> int:
    """Return the end of an unquoted value, without the punctuation of its sentence."""
    for mark in (";", "&") if _is_list(text, start) else (";",):
        cut = text.find(mark, start, end)
        end = cut if cut > start else end
    while end > start and text[end - 1] in ".,;:)]}\\*?":
        end -= 1
    return end


def _is_list(text: str, start: int) -> bool:
    """Return whether the value stands in a query string."""
    before = text[max(0, start - 40) : start]
    return "?" in before or "&" in before


def _name_before(text: str, start: int) -> str:
    """Return what a value is called: the same line, or two where the sign ends the first."""
    before = text[max(0, start - _NAME_REACH) : start].lower().rstrip("\"'`*(<[ \t\\\n")
    return before.rpartition("\n")[2]


def _when(test: Callable[[str], bool], text: str, start: int, end: int) -> Located | None:
    return Located(start, end) if test(text[start:end]) else None


def _value_check(test: Callable[[str], bool]) -> Check:
    return lambda text, start, end: _when(test, text, start, end)


CHECKS: dict[str, Check] = {
    "pem": pem,
    "google_pem": google_pem,
    "putty": putty,
    "jwt": jwt,
    "discord": discord,
    "product_key": product_key,
    "password": password,
    "address": address,
    "pairs": pairs,
    "curl": curl,
    "sas": sas,
    "assignment": assignment,
    "quoted": quoted_value,
    "basic": _value_check(value_checks.is_basic_credentials),
    "sk": _value_check(value_checks.is_sk_key),
    "mixed": _value_check(value_checks.is_mixed),
    "jumbled": _value_check(value_checks.is_jumbled),
    "has_digit": _value_check(lambda value: any(c.isdigit() for c in value)),
}
"""Tests by the name that the pattern table gives them."""
