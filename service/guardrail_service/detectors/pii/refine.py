"""Cut a match down to the value, or refuse it for what stands around it."""

from __future__ import annotations

from collections.abc import Callable

from guardrail_service.detectors.pii.checks import version_like
from guardrail_service.text.patterns.search import Match

Bounds = tuple[int, int]
_FILE_ENDINGS = frozenset(
    {
        "png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "js", "mjs", "ts", "jsx", "tsx", "css",
        "scss", "json", "html", "htm", "xml", "yml", "yaml", "toml", "md", "txt", "py", "rb",
        "java", "jar", "zip", "tar", "gz", "pdf", "csv", "log", "whl",
    }
)  # fmt: skip
_NUMBERED = frozenset({"version", "release", "v", "section", "chapter", "build", "firmware"})
_NOT_NAMES = frozenset(
    {
        "required", "optional", "string", "text", "none", "null", "nil", "true", "false",
        "undefined", "user", "username", "name", "your", "the", "this", "that", "not", "value",
        "field", "admin", "root", "test", "default", "unknown", "password", "and", "number",
        "varchar", "char", "int", "unique", "needed", "missing", "invalid", "incorrect", "taken",
        "set", "stored", "used", "empty", "example", "case", "sensitive", "private", "public",
        "available",
    }
)  # fmt: skip


def refine(text: str, match: Match, *, announced: bool) -> Bounds | None:
    """Return where the value of a match starts and ends, or None if it is something else.

    Args:
        text: The text as scanned.
        match: What a form matched.
        announced: Whether words nearby announce its type.
    """
    special = _SPECIAL.get(match.pattern)
    if special is not None:
        return special(text, match.start, match.end, announced)
    if tied(text, match.start, match.end):
        return None
    return match.start, match.end


def tied(text: str, start: int, end: int) -> bool:
    """Return whether a hyphen, underscore, point or comma ties it to more letters or digits."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if len(before) == 2 and before[1] in "-._" and _word(before[0]):
        return True
    if len(before) == 2 and before[1] == "," and before[0].isdigit():
        return True
    return len(after) == 2 and (
        (after[0] in "-_" and _word(after[1])) or (after[0] == "." and after[1].isdigit())
    )


def _word(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _email(text: str, start: int, end: int, _: bool) -> Bounds | None:
    at = text.index("@", start)
    start = _local_start(text, start, at, end)
    last = text.rfind(".", at, end)
    if start == at or text[last + 1 : end].casefold() in _FILE_ENDINGS:
        return None
    if text[end : end + 1] == "@" or _in_url(text, start) or _ssh(text, start, at, end):
        return None
    return start, end


def _local_start(text: str, start: int, at: int, end: int) -> int:
    """Return where the local part starts: behind scripts without spaces, emphasis, points."""
    for index in range(at - 1, start - 1, -1):
        character = text[index]
        if ord(character) >= 0x2E80 or not (character.isascii() or character.isalpha()):
            start = index + 1
            break
    if text[start : start + 1] == "_" == text[end : end + 1]:
        start += 1
    while start < at and text[start] in ".'%-":
        start += 1
    return start


def _in_url(text: str, start: int) -> bool:
    """Return whether it is the password and host of `scheme://user:password@host`."""
    scheme = text.rfind("://", max(0, start - 80), start)
    return scheme >= 0 and not any(c.isspace() or c in "?/" for c in text[scheme + 3 : start])


def _ssh(text: str, start: int, at: int, end: int) -> bool:
    return text[start:at] == "git" and text[end : end + 1] in (":", "/")


def _spelled(text: str, start: int, end: int, _: bool) -> Bounds | None:
    value = text[start:end].casefold()
    return (start, end) if "dot" in value or "." in value[value.find("at") :] else None


def _ip4(text: str, start: int, end: int, announced: bool) -> Bounds | None:
    after = text[end : end + 3]
    if _word_before(text, start) in _NUMBERED:
        return None
    if after[:1] == "/" and after[1:].rstrip().isdigit() and after[1:3].strip() != "32":
        return None
    if version_like(text[start:end]) and not announced:
        return None
    return None if tied(text, start, end) else (start, end)


def _word_before(text: str, start: int) -> str:
    """Return the word that stands right before a place on the same line, in lower case."""
    before = text[max(0, start - 16) : start].rstrip(" ")
    letters = 0
    while letters < len(before) and before[-1 - letters].isalpha():
        letters += 1
    return before[len(before) - letters :].casefold()


def _ip6(text: str, start: int, end: int, _: bool) -> Bounds | None:
    value = text[start:end]
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    if before == ":" or (before and _word(before)) or (after and _word(after)):
        return None
    if value.endswith(":") and not value.endswith("::"):
        value = value[:-1]
    grouped = sum(1 for part in value.split(":") if part)
    enough = grouped >= 3 and any(c.isdigit() for c in value)
    return (start, start + len(value)) if enough else None


def _mac(text: str, start: int, end: int, _: bool) -> Bounds | None:
    longer = text[end : end + 1] in (":", "-") and text[end + 1 : end + 2].isalnum()
    return None if longer or text[max(0, start - 1) : start] in (":", "-") else (start, end)


def _username(text: str, start: int, end: int, _: bool) -> Bounds | None:
    value = text[start:end]
    before = text[max(0, start - 6) : start].casefold()
    distinctive = any(not c.isalpha() for c in value)
    quoted = text[start - 1 : start] in ('"', "'", "`", "@")
    assigned = ":" in before or "=" in before
    if value.casefold() in _NOT_NAMES or not (distinctive or quoted or assigned):
        return None
    return start, end


def _street_en(text: str, start: int, end: int, _: bool) -> Bounds | None:
    """Refuse years ("the 2008 Wall Street crash") unless the place or flat follows."""
    number = text[start:end].split(" ", 1)[0].rstrip(",")
    year = len(number) == 4 and number.isdigit() and 1800 <= int(number) <= 2099
    follows = text[end : end + 1]
    return None if year and follows not in (",", "\n", "") else (start, end)


def _whole(_: str, start: int, end: int, __: bool) -> Bounds:
    return start, end


_SPECIAL: dict[str, Callable[[str, int, int, bool], Bounds | None]] = {
    "email": _email,
    "email_spelled": _spelled,
    "ip4": _ip4,
    "ip6": _ip6,
    "mac": _mac,
    "username": _username,
    "street_en": _street_en,
    "street_de": _whole,
    "street_fr": _whole,
    "street_romance": _whole,
    "post_box": _whole,
    "military_post": _whole,
}
