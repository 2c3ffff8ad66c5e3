"""Which patterns of a set may occur in a text: never too few, sometimes too many."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Protocol

from guardrail_service.errors import ConfigurationError

if TYPE_CHECKING:
    from guardrail_service.text.patterns.search import Pattern, Prepared

Engine = Literal["auto", "hyperscan", "keywords"]


class Gate(Protocol):
    """The cheap first look at a text."""

    name: str
    ungated: tuple[int, ...]
    """Indices of the patterns this gate can say nothing about; always candidates."""

    def candidates(self, source: Prepared) -> Iterable[int]:
        """Return indices of the patterns that may match, each once."""


def open_gate(patterns: Sequence[Pattern], engine: Engine) -> Gate:
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
    try:
        database.compile(
            expressions=[_expression(patterns[i]) for i in indices],
            ids=indices,
            elements=len(indices),
            flags=[
                always | (hyperscan.HS_FLAG_CASELESS if patterns[i].ignore_case else 0)
                for i in indices
            ],
        )
    except hyperscan.error:
        return None
    return database


def _expression(pattern: Pattern) -> bytes:
    return (pattern.gate or pattern.regex).encode("utf-8", "replace")


class KeywordGate:
    """Aho-Corasick over the patterns' keywords; a pattern without keywords is always tried."""

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

    def candidates(self, source: Prepared) -> set[int]:
        """Return indices of the patterns that may match, each once."""
        found = set(self.ungated)
        if not self._empty:
            for _, indices in self._automaton.iter(source.text.casefold()):
                found |= indices
        return found
