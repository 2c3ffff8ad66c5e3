"""What stands in a redacted answer in place of personal data."""

from __future__ import annotations

from typing import Literal

from guardrail_service.detectors.pii.checks import alnum


class Masker:
    """Replacements of one answer: the same value gets the same one.

    Args:
        mask: `placeholder` for `[EMAIL_1]`; `partial` for the value with most of it starred.
    """

    def __init__(self, mask: Literal["placeholder", "partial"]) -> None:
        self._partial = mask == "partial"
        self._numbers: dict[str, dict[str, int]] = {}

    def replacement(self, type_: str, value: str) -> str:
        """Return what to show in place of a value."""
        if self._partial:
            return partial(type_, value)
        known = self._numbers.setdefault(type_, {})
        number = known.setdefault(alnum(value), len(known) + 1)
        return f"[{type_.upper()}_{number}]"


def partial(type_: str, value: str) -> str:
    """Return a value with letters and digits starred, except what helps to recognise it.

    An e-mail address keeps its first letter and its last label; anything else keeps its last four
    letters and digits if it has at least twelve, its last two from eight, else nothing.
    """
    if type_ == "email" and "@" in value:
        at, dot = value.index("@"), value.rindex(".")
        return value[0] + _stars(value[1:at]) + "@" + _stars(value[at + 1 : dot]) + value[dot:]
    size = len(alnum(value))
    shown = 4 if size >= 12 else 2 if size >= 8 else 0
    kept = ""
    for character in reversed(value):
        hidden = character.isalnum() and shown <= 0
        shown -= character.isalnum()
        kept = ("*" if hidden else character) + kept
    return kept


def _stars(text: str) -> str:
    return "".join("*" if c.isalnum() else c for c in text)
