"""The engine: exact offsets, one answer from both gates, errors that name the pattern."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.errors import ConfigurationError
from guardrail_service.text.patterns.search import Engine, Match, Pattern, PatternSet, prepared

ENGINES: tuple[Engine, ...] = ("hyperscan", "keywords")
PATTERNS = (
    Pattern("number", r"\b\d{2,6}\b"),
    Pattern("word", r"\b[a-z]{2,8}ing\b", keywords=("ing",), ignore_case=True),
    Pattern("pair", r"key=(\w{1,9})", keywords=("key",), group=1),
    Pattern("street", r"[\p{L}]{1,20}straße", keywords=("straße",), ignore_case=True),
    Pattern("quoted", r'"[^"\n]{1,20}"', keywords=('"',)),
    Pattern("roman", r"\b[ivx]{2,7}\b|(?-i:Q)\b", ignore_case=True),
)
SETS = {engine: PatternSet(PATTERNS, engine) for engine in ENGINES}
TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from('0123456789 key=INGing\u017f\u212a"ß_-\n\x00é号😀'),
        st.characters(codec=None),
    ),
    max_size=80,
)


def _as_str(text: str) -> str:
    """Return the text as RE2 is able to read it."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


def _plain(text: str) -> list[Match]:
    """Return what re2 finds with one plain `finditer` per pattern over the text itself."""
    found = []
    for index, pattern in enumerate(PATTERNS):
        options = re2.Options()
        options.case_sensitive = not pattern.ignore_case
        for match in re2.compile(pattern.regex, options).finditer(_as_str(text)):
            start, end = match.span(pattern.group)
            found.append((start, end, index))
    return [Match(PATTERNS[index].id, start, end) for start, end, index in sorted(found)]


@given(TEXTS)
def test_both_gates_find_what_plain_re2_finds(text: str) -> None:
    """A gate saves time and never changes the matches."""
    expected = _plain(text)
    assert SETS["hyperscan"].scan(text) == expected
    assert SETS["keywords"].scan(text) == expected


@given(TEXTS, TEXTS)
def test_a_planted_match_has_exact_offsets(before: str, after: str) -> None:
    """Offsets are code points of the text as submitted, whatever surrounds the match."""
    text = before + " key=plant " + after
    start = len(before) + 5
    for patterns in SETS.values():
        assert Match("pair", start, start + 5) in patterns.scan(text)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("42", [Match("number", 0, 2)]),
        ("42 43", [Match("number", 0, 2), Match("number", 3, 5)]),
        ("号42号", [Match("number", 1, 3)]),
        ("\ud83d 42 \udc00", [Match("number", 2, 4)]),
        ("\x0042\x00", [Match("number", 1, 3)]),
        ("😀 HAUPTSTRASSE Hauptstraße", [Match("street", 15, 26)]),
        ("MaK\u0130ng ma\u212aing", [Match("word", 7, 13)]),
        ('"12"', [Match("quoted", 0, 4), Match("number", 1, 3)]),
    ],
)
def test_matches_in_awkward_texts(engine: Engine, text: str, expected: list[Match]) -> None:
    """Start and end count, as do NUL, lone surrogates and neighbours of any script."""
    assert SETS[engine].scan(text) == expected


def test_a_prepared_text_serves_several_sets() -> None:
    """Encoding is done once."""
    source = prepared("é 42")
    assert SETS["hyperscan"].scan(source) == SETS["keywords"].scan(source)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (Pattern("bad", "ab(c"), "position 0"),
        (Pattern("bad", "ab(?=c)"), "position 2"),
        (Pattern("bad", "a{1,2000}"), "position 1"),
        (Pattern("bad", "a*"), "empty text"),
        (Pattern("bad", "a", group=1), "group 1"),
    ],
)
def test_a_rejected_pattern_is_named(engine: Engine, pattern: Pattern, message: str) -> None:
    """Whoever wrote the pattern learns which one, where and why."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        PatternSet([PATTERNS[0], pattern], engine)
    assert "'bad'" in caught.value.where


def test_an_id_occurs_once() -> None:
    """Two patterns with one id could not be told apart."""
    with pytest.raises(ConfigurationError, match="twice"):
        PatternSet([PATTERNS[0], PATTERNS[0]])


def test_what_only_hyperscan_rejects_still_runs() -> None:
    """A configuration is valid on every platform or on none."""
    patterns = PatternSet([Pattern("lazy", "(?U)ab{1,3}c"), PATTERNS[0]], "hyperscan")
    assert patterns.ungated == ("lazy",)
    assert patterns.scan("42 abbc") == [Match("number", 0, 2), Match("lazy", 3, 7)]
    assert PatternSet([Pattern("lazy", "(?U)ab{1,3}c")]).scan("abc") == [Match("lazy", 0, 3)]


def test_patterns_that_cannot_be_one_are_tried_alone() -> None:
    """Two groups of one name are no regex together; a literal without end would take the next."""
    named = [Pattern("a", r"(?P<n>\d)!"), Pattern("b", r"(?P<n>\d)\?"), Pattern("c", r"\Q(5)|")]
    assert PatternSet(named, "keywords").scan("1! 2? (5)|") == [
        Match("a", 0, 2),
        Match("b", 3, 5),
        Match("c", 6, 10),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cheaper_gate_changes_nothing(engine: Engine) -> None:
    """Hyperscan compiles the gate, re2 the pattern."""
    long = Pattern("long", r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}", gate=r"[A-Z]{2}\d{2}")
    assert PatternSet([long], engine).scan("AB12 CDEF") == []
    assert PatternSet([long], engine).scan("é AB12CDEF34567890") == [Match("long", 2, 18)]


def test_an_empty_set_finds_nothing() -> None:
    """A policy may switch every pattern off."""
    assert [PatternSet((), engine).scan("42") for engine in ENGINES] == [[], []]


def test_threads_share_a_set() -> None:
    """Each thread has its own scratch space, so concurrent scans do not disturb each other."""
    texts = [f"é {'x' * n} {n + 10} key=v{n}" for n in range(80)]
    barrier = threading.Barrier(8)

    def work(_: int) -> list[list[Match]]:
        barrier.wait()
        return [SETS["hyperscan"].scan(text) for text in texts]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    assert all(result == [SETS["keywords"].scan(t) for t in texts] for result in results)
