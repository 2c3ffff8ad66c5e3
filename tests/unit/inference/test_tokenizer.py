"""The tokenizer: offsets of the submitted text, nothing cut, nothing padded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.tokenizer import Tokenizer

LIMIT = 32


@pytest.fixture(scope="module")
def tokenizer(tiny: Path) -> Tokenizer:
    """The tiny pack's tokenizer; stateless, so hypothesis may share it."""
    return Tokenizer(tiny / "tokenizer.json", LIMIT)


def test_a_window_leaves_room_for_special_tokens(tokenizer: Tokenizer) -> None:
    """[CLS] and [SEP] count towards what the model reads."""
    assert tokenizer.max_tokens == LIMIT - 2
    assert len(tokenizer.ids("pool " * tokenizer.max_tokens)) == LIMIT


def test_a_row_that_is_too_long_fails_instead_of_being_cut(tokenizer: Tokenizer) -> None:
    """Nothing is dropped silently; the message has numbers and no text."""
    with pytest.raises(RowFailed, match="33 tokens; the model reads at most 32") as caught:
        tokenizer.ids("pool " * 31)
    assert "pool" not in str(caught.value)


def test_offsets_point_into_the_submitted_text(tokenizer: Tokenizer) -> None:
    """Code points, also behind characters of several bytes or UTF-16 units."""
    text = "👩‍👩‍👧 é pool"
    spans = tokenizer.tokens(text)
    assert text[spans[-1].start : spans[-1].end] == "pool"
    assert spans[-1].known


def test_what_the_model_does_not_know_is_said(tokenizer: Tokenizer) -> None:
    """Coverage counts what was read, so unknown pieces must be visible."""
    assert [span.known for span in tokenizer.tokens("pool 水")] == [True, False]


@given(text=st.text(alphabet=st.characters(), max_size=60))
def test_any_text_has_ordered_offsets_inside_it(text: str, tokenizer: Tokenizer) -> None:
    """Lone surrogates and NUL bytes too."""
    spans = tokenizer.tokens(text)
    assert all(0 <= span.start <= span.end <= len(text) for span in spans)
    assert [span.start for span in spans] == sorted(span.start for span in spans)


def test_a_lone_surrogate_keeps_every_offset(tokenizer: Tokenizer) -> None:
    """It becomes U+FFFD, which is one character as well."""
    assert tokenizer.tokens("a\ud800 pool") == tokenizer.tokens("a\ufffd pool")
    assert tokenizer.ids("\udfff") == tokenizer.ids("\ufffd")


@pytest.mark.parametrize("key", ["truncation", "padding"])
def test_a_tokenizer_that_cuts_or_pads_is_refused(key: str, tiny: Path, tmp_path: Path) -> None:
    """Either would change scores without a word."""
    content = json.loads((tiny / "tokenizer.json").read_text())
    content[key] = {
        "truncation": {
            "direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0
        },
        "padding": {
            "strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
        },
    }[key]  # fmt: skip
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content))
    with pytest.raises(PackError, match="truncates or pads"):
        Tokenizer(path, LIMIT)


def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    """Its hash may be right and its content still of no use."""
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(PackError, match=r"tokenizer\.json: .*expected a tokenizer"):
        Tokenizer(path, LIMIT)
