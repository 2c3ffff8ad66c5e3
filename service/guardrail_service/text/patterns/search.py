"""Find many regular expressions in one text, in linear time and with code-point offsets.

A gate (hyperscan, or Aho-Corasick keywords where hyperscan has no wheel) says which patterns may
occur; google-re2 then finds exactly where. Both gates lead to the same matches. This is the only
way the service runs regular expressions over text it did not write.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import re2

from guardrail_service.errors import ConfigurationError
from guardrail_service.resources import StartCache, start_cache_dir
from guardrail_service.text.budget import in_time
from guardrail_service.text.cached import cached_property

_REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class Pattern:
    r"""One regular expression to look for.

    Attributes:
        id: Name its matches carry; unique within a set.
        regex: RE2 syntax. `\b`, `\d` and `\w` are ASCII; classes and `.` are code points.
        keywords: Every match contains at least one of them, in any case. Only the fallback gate
            reads them; a pattern without keywords is tried on every text there.
        group: Capture group whose span is reported; a match where it took no part is dropped.
        ignore_case: Match letters in any case.
        gate: A cheaper pattern that occurs wherever this one does; hyperscan compiles it instead.
            Long bounded repeats cost it seconds (0.5 s for one IBAN pattern).
    """

    id: str
    regex: str
    keywords: tuple[str, ...] = ()
    group: int = 0
    ignore_case: bool = False
    gate: str = ""


class Match(NamedTuple):
    """One match of a pattern; offsets are code points [start, end)."""

    pattern: str
    start: int
    end: int


class Prepared:
    """A text encoded once, so that several sets can scan it.

    Lone surrogates are scanned as U+FFFD, one for one, so offsets hold.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.ascii = text.isascii()
        self.data = _encode(text)

    def code_point(self, offset: int) -> int:
        """Return the code-point offset of a byte offset on a character boundary."""
        return offset if self.ascii else int(self._code_points[offset])

    @cached_property
    def _code_points(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Code points before each byte; built only for a text that has a match."""
        starts = (np.frombuffer(self.data, dtype=np.uint8) & 0xC0) != 0x80
        return np.concatenate(([0], np.cumsum(starts)))


def prepared(text: str) -> Prepared:
    """Return a text that several pattern sets can scan without encoding it again."""
    return Prepared(text)


def encodable(text: str) -> str:
    """Return a text of the same length that RE2 takes: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


class PatternSet:
    """Compiled patterns; immutable and safe to share between threads.

    Args:
        patterns: At most a few hundred, ids unique.
        engine: `auto` takes hyperscan where it is installed; the others force one gate.

    Raises:
        ConfigurationError: If RE2 rejects a pattern, a pattern matches the empty text, its group
            does not exist, or an id occurs twice. A pattern that hyperscan alone rejects is no
            error: it is tried on every text (see `ungated`), so that a configuration is valid on
            every platform or on none.
    """

    def __init__(self, patterns: Sequence[Pattern], engine: Engine = "auto") -> None:
        self.patterns = tuple(patterns)
        self._compiled = tuple(_Compiled(pattern) for pattern in self.patterns)
        _refuse_duplicates(self.patterns)
        self._gate: Prefilter = open_gate(self.patterns, engine)

    @property
    def engine(self) -> str:
        """Return which gate is in use."""
        return self._gate.name

    @property
    def ungated(self) -> tuple[str, ...]:
        """Return ids of the patterns that are tried on every text."""
        return tuple(self.patterns[i].id for i in self._gate.ungated)

    def scan(self, text: str | Prepared) -> list[Match]:
        """Return every match of every pattern, ordered by start, end, then pattern order.

        Matches of one pattern do not overlap each other (leftmost first, as `finditer`); matches
        of different patterns may.
        """
        source = text if isinstance(text, Prepared) else Prepared(text)
        found = [
            (start, end, index)
            for index in self._gate.candidates(source)
            for start, end in self._compiled[index].spans(source)
        ]
        found.sort()
        return [Match(self.patterns[index].id, start, end) for start, end, index in found]


class _Compiled:
    """One pattern ready to run."""

    def __init__(self, pattern: Pattern) -> None:
        self._regex = compile_regex(pattern.regex, f"pattern {pattern.id!r}", pattern.ignore_case)
        self._group = pattern.group
        if not 0 <= pattern.group <= self._regex.groups:
            raise ConfigurationError(
                f"pattern {pattern.id!r}", f"group {pattern.group}", "a group the pattern has"
            )

    def spans(self, source: Prepared) -> list[tuple[int, int]]:
        """Return code-point spans of the reported group, without empty ones."""
        matches = self._whole(source.data) if self._group == 0 else self._grouped(source.data)
        return [
            (source.code_point(start), source.code_point(end)) for start, end in in_time(matches)
        ]

    def _whole(self, data: bytes) -> Iterator[tuple[int, int]]:
        return (match.span() for match in self._regex.finditer(data))

    def _grouped(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the group's spans. The next match may begin with the text behind a group, so the
        search goes on where the group ended, not where the match did.
        """
        position = 0
        while (match := self._regex.search(data, position)) is not None:
            start, end = match.span(self._group)
            position = end if start < end else match.end()
            if start < end:
                yield start, end


def compile_regex(regex: str, where: str, ignore_case: bool = False) -> Any:
    """Return an RE2 object over UTF-8 bytes.

    Args:
        regex: RE2 syntax.
        where: What the error message calls the pattern, such as `custom[0].regex`.
        ignore_case: Match letters in any case.

    Raises:
        ConfigurationError: If RE2 rejects it, with the position and reason, or it matches the
            empty text.
    """
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        compiled = re2.compile(_encode(regex), options)
    except re2.error as error:
        raise ConfigurationError(where, _reason(regex, error), "an RE2 pattern") from error
    if compiled.search(b"") is not None:
        raise ConfigurationError(
            where, "a pattern that matches the empty text", "one that needs a character"
        )
    return compiled


def _reason(regex: str, error: Exception) -> str:
    """Return RE2's message with the position of the fragment it complains about."""
    raw = error.args[0] if error.args else str(error)
    message = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    fragment = message.partition(": ")[2]
    position = regex.find(fragment) if fragment else -1
    return f"{message!r} at position {position}" if position >= 0 else repr(message)


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return "".join(_REPLACEMENT if "\ud800" <= c <= "\udfff" else c for c in text).encode()


def _refuse_duplicates(patterns: Sequence[Pattern]) -> None:
    seen: set[str] = set()
    for pattern in patterns:
        if pattern.id in seen:
            raise ConfigurationError(
                f"pattern {pattern.id!r}", "an id that occurs twice", "unique ids"
            )
        seen.add(pattern.id)


Engine = Literal["auto", "hyperscan", "keywords"]


class Prefilter(Protocol):
    """The cheap first look at a text."""

    name: str
    ungated: tuple[int, ...]
    """Indices of the patterns this gate can say nothing about; always candidates."""

    def candidates(self, source: Prepared) -> Iterable[int]:
        """Return indices of the patterns that may match, each once."""


def open_gate(patterns: Sequence[Pattern], engine: Engine) -> Prefilter:
    """Return the gate asked for, or the best one installed.

    Raises:
        ConfigurationError: If hyperscan is asked for and not installed.
    """
    installed = find_spec("hyperscan") is not None
    if engine == "hyperscan" and not installed:
        raise ConfigurationError("engine", "'hyperscan', not installed", "'auto' or 'keywords'")
    if engine != "keywords" and installed:
        return HyperscanGate(patterns)
    return KeywordGate(patterns)


class HyperscanGate:
    """All patterns in one hyperscan database, one event per pattern and text.

    A scratch space serves one scan at a time, so every thread has its own.
    """

    name = "hyperscan"

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._threads = threading.local()
        gated = list(range(len(patterns)))
        database = _database(patterns, gated)
        if database is None:
            gated = [i for i in gated if _database(patterns, [i]) is not None]
            database = _database(patterns, gated)
        self._database = database if gated else None
        self.ungated = tuple(i for i in range(len(patterns)) if i not in set(gated))

    def candidates(self, source: Prepared) -> list[int]:
        """Return indices of the patterns that may match, each once."""
        found = list(self.ungated)
        if self._database is not None and source.data:
            self._database.scan(
                source.data,
                match_event_handler=lambda index, *_: found.append(index),
                scratch=self._scratch(),
            )
        return found

    def _scratch(self) -> Any:
        scratch = getattr(self._threads, "scratch", None)
        if scratch is None:
            import hyperscan

            scratch = self._threads.scratch = hyperscan.Scratch(self._database)
        return scratch


def _database(patterns: Sequence[Pattern], indices: list[int]) -> Any | None:
    """Return a database of some patterns, or None if hyperscan rejects one of them."""
    import hyperscan

    always = hyperscan.HS_FLAG_UTF8 | hyperscan.HS_FLAG_SINGLEMATCH
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    if not indices:
        return database
    expressions = [_expression(patterns[i]) for i in indices]
    flags = [
        always | (hyperscan.HS_FLAG_CASELESS if patterns[i].ignore_case else 0) for i in indices
    ]
    # Compiling takes a second or two of every start. A database of another processor is refused.
    cache = StartCache(start_cache_dir())
    rests_on = repr((version("hyperscan"), platform.machine(), expressions, flags, indices))
    kept = cache.get("patterns", rests_on.encode())
    if kept is not None:
        with suppress(hyperscan.error):
            return hyperscan.loadb(kept, hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(expressions=expressions, ids=indices, elements=len(indices), flags=flags)
    except hyperscan.error:
        return None
    cache.put("patterns", rests_on.encode(), hyperscan.dumpb(database))
    return database


def _expression(pattern: Pattern) -> bytes:
    return (pattern.gate or pattern.regex).encode("utf-8", "replace")


class KeywordGate:
    """Aho-Corasick over the patterns' keywords; those without keywords are tried all or none."""

    name = "keywords"

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        import ahocorasick

        owners: dict[str, set[int]] = {}
        for index, pattern in enumerate(patterns):
            for keyword in pattern.keywords:
                owners.setdefault(keyword.casefold(), set()).add(index)
        self.ungated = tuple(i for i, pattern in enumerate(patterns) if not pattern.keywords)
        self._automaton = ahocorasick.Automaton()
        for keyword, indices in owners.items():
            self._automaton.add_word(keyword, frozenset(indices))
        self._empty = not owners
        if owners:
            self._automaton.make_automaton()
        self._any = _union([patterns[index] for index in self.ungated])

    def candidates(self, source: Prepared) -> set[int]:
        """Return indices of the patterns that may match, each once."""
        is_any = self._any is None or self._any.search(source.data) is not None
        found = set(self.ungated if is_any else ())
        if not self._empty:
            for _, indices in self._automaton.iter(source.text.casefold()):
                found |= indices
        return found


def _union(patterns: Sequence[Pattern]) -> Any | None:
    """Return a regex that matches where one of some patterns does; None if there can be none.

    One pass in place of a hundred: most texts hold nothing. Two patterns may give one name to their
    groups, or be too large together; then each is tried.
    """
    if len(patterns) < 2:
        return None
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    parts = (f"(?{'i' if p.ignore_case else '-i'}:{p.regex})" for p in patterns)
    with suppress(re2.error):
        return re2.compile(_encode("|".join(parts)), options)
    return None
