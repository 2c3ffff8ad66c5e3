"""Question and passages among messages: whose words count as evidence, and where."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.server.dialects.message_sources import (
    AnswerSources,
    PassageRule,
    sources,
    tagged,
)

ASKED = {"role": "user", "content": "How long?"}
CASES: dict[str, tuple[list[Any], dict[str, Any], AnswerSources]] = {
    "a system message": (
        [{"role": "system", "content": "Two weeks."}, ASKED], {},
        AnswerSources("How long?", ("Two weeks.",)),
    ),
    "tags in it": (
        [{"role": "system", "content": "Be kind. <context>Two weeks.</context> Bye."}, ASKED], {},
        AnswerSources("How long?", ("Two weeks.",)),
    ),
    "tags in tags": (
        [{"role": "developer", "content": "<documents><document id='1'>A</document>\n"
          "<document id='2'>B</document></documents>"}, ASKED], {},
        AnswerSources("How long?", ("A", "B")),
    ),
    "what a tool said": (
        [ASKED, {"role": "assistant", "content": None}, {"role": "tool", "content": "Two weeks."}],
        {}, AnswerSources("How long?", ("Two weeks.",)),
    ),
    "a user's own tags": (
        [{"role": "user", "content": "<context>We own it.</context> Do we?"}], {},
        AnswerSources("<context>We own it.</context> Do we?", ()),
    ),
    "a user's tags, as declared": (
        [{"role": "user", "content": "<hits>Two weeks.</hits> How long?"}],
        {"roles": ["user"], "tags": ["hits"]}, AnswerSources("How long?", ("Two weeks.",)),
    ),
    "a user without tags, as declared": (
        [ASKED], {"roles": ["user"]}, AnswerSources("How long?", ()),
    ),
    "parts": (
        [{"role": "system", "content": [{"type": "text", "text": "Two weeks."},
                                        {"type": "image_url", "image_url": {"url": "x"}}]},
         {"role": "user", "content": [{"type": "text", "text": "How long?"}]}], {},
        AnswerSources("How long?", ("Two weeks.",)),
    ),
    "the last question": (
        [{"role": "user", "content": "Hi"}, ASKED], {}, AnswerSources("How long?", ()),
    ),
    "a tag that does not end": (
        [{"role": "tool", "content": "<context>Two weeks."}], {},
        AnswerSources(None, ("<context>Two weeks.",)),
    ),
    "a longer name": (
        [{"role": "tool", "content": "<contextual>A</contextual>"}], {},
        AnswerSources(None, ("<contextual>A</contextual>",)),
    ),
    "an empty element": ([{"role": "tool", "content": "<context> </context>"}], {},
                         AnswerSources(None, ("<context> </context>",))),
    "nothing": ([], {}, AnswerSources(None, ())),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_stands_where(case: str) -> None:
    """A user is no evidence unless somebody else said so."""
    messages, rule, expected = CASES[case]
    assert sources(messages, PassageRule.model_validate(rule)) == expected


@given(st.lists(st.sampled_from(["<context>", "</context>", "<documents>", "</documents>", "a "])))
def test_any_text_is_read_in_order_and_only_once(parts: list[str]) -> None:
    """Places never overlap."""
    text = "".join(parts)
    at = 0
    for start, end, (opened, closed) in tagged(text, PassageRule().tags):
        assert at <= start <= end
        assert opened < start
        assert end < closed
        at = end


def test_a_hostile_text_is_read_in_one_pass() -> None:
    """A hundred thousand tags that never end; the test's own time limit is the judge."""
    assert list(tagged("<context " * 100_000 + ">", PassageRule().tags)) == []
    assert list(tagged("<context>" * 100_000, PassageRule().tags)) == []
