"""Regular expressions that arrive in a request: google-re2, bounded, never quoted in a message."""

from typing import Any

import re2

from guardrail_service.text.patterns.search import prepared

MAX_PATTERN_CHARS = 1_000
MAX_PROGRAM = 2_000
"""RE2 instructions of one pattern; a class of all letters (`\\pL`) takes 1,201. RE2 may need
instructions * characters steps: 2,005 of them took 1.8 s on 100,000 characters at worst."""

_MAX_MEMORY = 1 << 20  # bytes for program and automaton; RE2's own default is 8 MiB
_REASONS = (
    "missing )",
    "missing ]",
    "missing argument to repetition operator",
    "unexpected )",
    "trailing \\",
    "no argument for repetition operator",
    "invalid repetition size",
    "bad repetition operator",
    "invalid perl operator",
    "invalid character class range",
    "invalid character class",
    "invalid escape sequence",
    "invalid named capture group",
    "duplicate capture group name",
    "invalid UTF-8",
    "pattern too large",
)


class PatternError(ValueError):
    """A pattern RE2 does not accept; `position` is 1-based, in code points of the pattern."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"{reason} at position {position} of the pattern; expected RE2 syntax")
        self.reason = reason
        self.position = position


class CallerPattern:
    """One compiled pattern, matched anywhere in a text as `re.search` would.

    Args:
        regex: RE2 syntax: no look-around and no back-references, hence linear time.

    Raises:
        PatternError: If RE2 rejects it or it is larger than the limits of this module.
    """

    def __init__(self, regex: str) -> None:
        if len(regex) > MAX_PATTERN_CHARS:
            raise PatternError(f"more than {MAX_PATTERN_CHARS} characters", MAX_PATTERN_CHARS + 1)
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MAX_MEMORY
        try:
            self._compiled: Any = re2.compile(prepared(regex).data, options)
        except re2.error as error:
            raise _explained(regex, error) from None
        self.program_size = int(self._compiled.programsize)
        if self.program_size > MAX_PROGRAM:
            raise PatternError("pattern too large", 1)

    def occurs_in(self, text: str) -> bool:
        """Return whether the pattern matches somewhere; lone surrogates are read as U+FFFD."""
        return self._compiled.search(prepared(text).data) is not None


def _explained(regex: str, error: Exception) -> PatternError:
    """Return RE2's reason from a fixed list and the position of the fragment it names."""
    raw = error.args[0] if error.args else b""
    message = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    reason = next((known for known in _REASONS if message.startswith(known)), "not accepted")
    fragment = message.partition(": ")[2]
    return PatternError(reason, max(0, regex.find(fragment) if fragment else 0) + 1)
