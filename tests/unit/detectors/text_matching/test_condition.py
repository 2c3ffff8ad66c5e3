"""The condition language: known verdicts, legacy lists, positions in errors, and bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.detectors.text_matching.condition import (
    MAX_CHARS,
    ConditionError,
    from_constraints,
    parse_condition,
)
from guardrail_service.detectors.text_matching.condition_tree import Failure

ANSWER = "…the revenue of Brazil was Ps. 15,969 million for the first quarter of 2023."


def holds(condition: str, text: str = ANSWER) -> bool:
    """Return whether a text satisfies a condition."""
    return parse_condition(condition).failure([text]) is None


# H2O Eval Studio manual, "Text Matching Evaluator", examples 1 to 5.
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('"15,969"', True),
        ('regexp("15,?969")', True),
        ('"15,969" AND regexp("[Mm]illion")', True),
        ('("Brazil" OR "brazil") AND regexp("15,?969 [Mm]illion") AND NOT "Real"', True),
        ('regexp("^Brazil revenue was 15,969 million$")', False),
    ],
)
def test_the_manuals_examples_have_their_verdicts(condition: str, expected: bool) -> None:
    """Substrings, patterns, connectives and parentheses."""
    assert holds(condition) is expected


# H2O's lexer splits on single blanks: the first two are errors there, the third is one string.
@pytest.mark.parametrize(
    "condition", ['NOT  "x"', 'NOT\t"x"', '"Brazil"AND"2023"', '\n( "Ps." )\n']
)
def test_any_whitespace_or_none_stands_between_tokens(condition: str) -> None:
    """Tokens are recognised by what they are."""
    assert holds(condition)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('"no" AND "no" OR "Brazil"', True),
        ('"Brazil" OR "no" AND "no"', True),
        ('("Brazil" OR "no") AND "no"', False),
        ('NOT "no" AND "Brazil"', True),
        ('NOT ("no" OR "Brazil")', False),
        ('NOT NOT "Brazil"', True),
    ],
)
def test_not_binds_before_and_before_or(condition: str, expected: bool) -> None:
    """NOT > AND > OR; parentheses change it."""
    assert holds(condition) is expected


@pytest.mark.parametrize("condition", ["", "  \t\n"])
def test_the_empty_condition_always_holds(condition: str) -> None:
    """Nothing is asked for."""
    assert holds(condition)


@pytest.mark.parametrize(
    ("condition", "text"),
    [(r'"say \"hi\""', 'say "hi"'), (r'"a\\b"', r"a\b"), (r'"a\d"', r"a\d"), (r'"\\"', "\\")],
)
def test_a_backslash_escapes_quotes_and_itself_only(condition: str, text: str) -> None:
    """Before anything else it is an ordinary character."""
    assert holds(condition, text)
    assert not holds(condition, "say hi")


def test_a_pattern_is_taken_as_written() -> None:
    """No second layer of escapes between the caller and RE2."""
    assert holds(r'regexp("\d{2},\d{3}")')
    assert holds(r'regexp("\"x\"")', '"x"')
    assert holds(r'regexp("^a\\b$")', r"a\b")


# In H2O's micro lab "22" passes three wrong answers because it is inside "2022".
@pytest.mark.parametrize(
    ("word", "text", "expected"),
    [
        ("22", "in 2022", False),
        ("22", "22", True),
        ("22", "It was 22.", True),
        ("22", "22.5 or 1,22", False),
        ("969", "15,969", False),
        ("15,969", "Ps. 15,969 million", True),
        ("Real", "Really", False),
        ("Real", "the_Real", False),
        ("real", "cafe\u0301real", False),
        ("C++", "in C++, too", True),
        ("año", "El año, sí", True),
    ],
)
def test_a_word_stands_alone(word: str, text: str, expected: bool) -> None:
    """Neither letters, digits nor the rest of a number go on beside it."""
    assert holds(f'word("{word}")', text) is expected


# Strings of h2o-sonar's own text-matching test.
@pytest.mark.parametrize(
    ("constraints", "condition"),
    [
        ([], ""),
        (["REGEXP:^C.*"], 'regexp("^C.*")'),
        (["a", "b", "c"], '"a" AND "b" AND "c"'),
        (
            ["15,969", "REGEXP:15?,969 [Mm]illion", ["BRAZIL", "REGEXP:[B]razil"]],
            '"15,969" AND regexp("15?,969 [Mm]illion") AND ("BRAZIL" OR regexp("[B]razil"))',
        ),
    ],
)
def test_legacy_constraints_become_conditions(
    constraints: list[str | list[str]], condition: str
) -> None:
    """A list is AND, an inner list OR, `REGEXP:` a pattern. Known answer 39."""
    assert from_constraints(constraints) == condition


def test_constraints_with_quotes_and_arabic_fail_without_an_exception() -> None:
    """h2o-sonar's bug test, with a text of our own: not in the answer, so it fails.

    Known answer 40.
    """
    condition = from_constraints(['العاصمة هي "باريس" \\ ', 'REGEXP:"x\\"y'])
    assert not holds(condition)
    assert holds(condition, 'العاصمة هي "باريس" \\ "x"y')


def test_an_empty_alternative_is_refused() -> None:
    """Nothing could satisfy it, which is hardly meant."""
    with pytest.raises(ValueError, match="empty inner list"):
        from_constraints(["a", []])


@given(st.lists(st.text() | st.lists(st.text(), min_size=1, max_size=3), max_size=5))
def test_every_plain_constraint_list_is_expressible(constraints: list[str | list[str]]) -> None:
    """Whatever the strings are, the condition parses and asks for exactly them."""
    plain = [
        item.replace("REGEXP:", "")
        if isinstance(item, str)
        else [s.replace("REGEXP:", "") for s in item]
        for item in constraints
    ]
    text = "\n".join(item if isinstance(item, str) else item[0] for item in plain)
    assert holds(from_constraints(plain), text)


@pytest.mark.parametrize(
    ("condition", "column", "expected"),
    [
        ('"a" and "b"', 5, "AND or OR or the end"),
        ('"a" "b"', 5, "AND or OR or the end"),
        ('"a" AND', 8, "a string in double quotes"),
        ('("a"', 5, '")"'),
        ('"a")', 4, "the end"),
        ('"abc', 1, "a closing quote"),
        ("'a'", 1, "a string in double quotes"),
        ("regexp(a)", 8, "a string in double quotes"),
        ('"a" AND regexp("b(?=c)")', 18, "an RE2 pattern"),
        ('regexp("a(")', 9, "an RE2 pattern"),
        ('word(" ")', 6, "a word"),
    ],
)
def test_errors_say_where_and_what_was_expected(condition: str, column: int, expected: str) -> None:
    """The column is 1-based; the message explains without repeating the condition."""
    with pytest.raises(ConditionError) as caught:
        parse_condition(condition)
    assert caught.value.column == column
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "condition",
    [
        '"' + "secretword" + '" "x"',
        'regexp("secretword(")',
        "secretword",
    ],
)
def test_errors_do_not_repeat_the_condition(condition: str) -> None:
    """A condition may quote the answer it is about."""
    with pytest.raises(ConditionError) as caught:
        parse_condition(condition)
    assert "secretword" not in str(caught.value)


@pytest.mark.parametrize(
    ("condition", "failure"),
    [
        ('"x"', Failure(1, 1)),
        ('"Brazil" AND "x"', Failure(2, 14)),
        ('"x" OR ("Brazil" AND "y")', Failure(1, 1)),
        ('"Brazil" AND NOT regexp("15")', Failure(2, 18)),
        ('NOT ("x" OR "Brazil")', Failure(2, 13)),
        ('NOT ("Ps." AND "Brazil")', Failure(1, 6)),
    ],
)
def test_the_operand_that_decided_is_named(condition: str, failure: Failure) -> None:
    """By its number from the left and its column."""
    assert parse_condition(condition).failure([ANSWER]) == failure


def test_an_operand_may_occur_in_any_of_several_texts() -> None:
    """Each operand by itself; NOT means in none of them."""
    condition = parse_condition('"a" AND "b" AND NOT "c"')
    assert condition.failure(["a", "b"]) is None
    assert condition.failure(["a", "b", "c"]) == Failure(3, 21)
    assert condition.failure([]) == Failure(1, 1)


@pytest.mark.parametrize(
    "condition",
    [
        "(" * 9_999,
        "NOT " * 2_000 + '"a"',
        "(" * 50 + "NOT (" * 70 + '"a"' + ")" * 120,
        " OR ".join(['"a"'] * 300),
        '"' + "a" * MAX_CHARS + '"',
        'regexp("' + "a" * 1_500 + '")',
        'regexp("(x{1,900}y{1,900}){1,2}")',
        " OR ".join([r'regexp("\\pL{20}")'.replace("\\\\", "\\")] * 40),
        'regexp("a{2000}")',
    ],
)
@pytest.mark.timeout(20)
def test_oversized_conditions_are_refused(condition: str) -> None:
    """Length, nesting, operands and pattern size are bounded; nothing overflows the stack."""
    with pytest.raises(ConditionError):
        parse_condition(condition)


@pytest.mark.timeout(20)
def test_deep_parentheses_cost_no_stack() -> None:
    """Parentheses alone add no depth: the parser keeps its own stack."""
    assert holds("(" * 4_000 + '"Brazil"' + ")" * 4_000)


@pytest.mark.timeout(20)
def test_a_backtracking_bomb_runs_in_linear_time() -> None:
    """The pattern that never ends in a backtracking engine."""
    assert not holds('regexp("^(a+)+$")', "a" * 50_000 + "!")


PIECES = st.sampled_from(
    [
        '"a"',
        '"',
        "AND",
        "OR",
        "NOT",
        "(",
        ")",
        " ",
        "regexp(",
        "word(",
        "\\",
        '"b\\""',
        "x",
        "\ud800",
    ]
)


@given(st.lists(PIECES, max_size=20).map("".join) | st.text(max_size=40))
def test_any_text_is_a_condition_or_an_error_inside_it(text: str) -> None:
    """Never another exception, never a column outside the text."""
    columns = []
    try:
        parse_condition(text).failure(["a"])
    except ConditionError as error:
        columns.append(error.column)
    assert all(1 <= column <= len(text) + 1 for column in columns)
