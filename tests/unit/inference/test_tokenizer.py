"""The tokenizer: offsets of the submitted text, nothing cut, nothing padded."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import ByteLevelBPETokenizer
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import RobertaProcessing, TemplateProcessing

from guardrail_service.errors import OutOfTime, PackError, RowFailed
from guardrail_service.inference.models import session as module
from guardrail_service.inference.models.session import (
    KEPT_CHARS,
    LONG_CHARS,
    PIECE_CHARS,
    TOKENS_AT_ONCE,
    Tokenizer,
    _cut_before,
    _pieces,
)
from guardrail_service.resources import packs_dir
from guardrail_service.text.budget import Budget, spending

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


def _wordpiece() -> FastTokenizer:
    made = FastTokenizer(WordPiece({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "b": 4, "é": 5}))
    made.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )  # fmt: skip
    return made


def _byte_level() -> FastTokenizer:
    made = ByteLevelBPETokenizer(add_prefix_space=True, trim_offsets=True)
    made.train_from_iterator(
        ["a b guests may use the pool"] * 3, 300, special_tokens=["<s>", "</s>"]
    )
    fast: FastTokenizer = made._tokenizer
    fast.post_processor = RobertaProcessing(("</s>", 1), ("<s>", 0), add_prefix_space=True)
    return fast


def _other_types() -> FastTokenizer:
    """Return one whose template gives the text another type than its special tokens."""
    made = _wordpiece()
    made.post_processor = TemplateProcessing(
        single="[CLS]:2 $A:1 [SEP]:3 [SEP]:0", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return made


def _inside() -> FastTokenizer:
    """Return one that repeats the text around a special token: no frame fits that."""
    made = _wordpiece()
    made.post_processor = TemplateProcessing(single="$A [SEP] $A", special_tokens=[("[SEP]", 2)])
    return made


def _none() -> FastTokenizer:
    made = _wordpiece()
    made.post_processor = None
    return made


@pytest.mark.parametrize("make", [_wordpiece, _byte_level, _other_types, _inside, _none])
def test_a_row_is_what_the_library_makes_of_it(
    make: Callable[[], FastTokenizer], tmp_path: Path
) -> None:
    """Special tokens are put around what is kept, also around typed ones and nothing."""
    library = make()
    library.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer(tmp_path / "tokenizer.json", 10_000)
    texts = ["a b", "", "é水 b", "[SEP] a [CLS]", "</s> a", "a " * KEPT_CHARS]
    for text in (*texts, *texts):
        expected = library.encode(text)
        assert tokenizer.encoded(text) == (expected.ids, expected.type_ids)
        plain = library.encode(text, add_special_tokens=False)
        assert tokenizer.raw_ids(text) == plain.ids
        assert [(span.start, span.end) for span in tokenizer.tokens(text)] == plain.offsets


def test_what_a_caller_does_to_a_row_stays_with_the_caller(tokenizer: Tokenizer) -> None:
    """Rows are made of what is kept, and are not what is kept."""
    first = tokenizer.encoded("the pool opens")
    first.ids.clear()
    first.types.clear()
    assert (
        len(tokenizer.ids("the pool opens")) == len(tokenizer.encoded("the pool opens").types) > 2
    )


@pytest.mark.parametrize("count", [0, TOKENS_AT_ONCE, TOKENS_AT_ONCE + 1, 3 * TOKENS_AT_ONCE + 7])
def test_a_long_text_has_the_tokens_that_the_library_gives(
    tiny: Path, tokenizer: Tokenizer, count: int
) -> None:
    """It is tokenised beside other threads and copied in parts."""
    text = "pool \U0001d41a " * (count // 2) + "pool" * (count % 2) + " " * LONG_CHARS
    found = FastTokenizer.from_file(str(tiny / "tokenizer.json")).encode(
        text, add_special_tokens=False
    )
    assert len(found.ids) == count
    assert tokenizer.raw_ids(text) == found.ids
    assert [(span.start, span.end) for span in tokenizer.tokens(text)] == found.offsets


def test_a_long_text_ends_where_its_time_is_over(tokenizer: Tokenizer) -> None:
    """Between two parts, at the latest."""
    with spending(Budget(None, cpu_s=0.0)), pytest.raises(OutOfTime):
        tokenizer.raw_ids("pool " * LONG_CHARS)


_SIGNS = st.text(
    st.sampled_from("ab.@ \n[]-_\u0301\u0338\u4e00\u00e9\u1e9b\u0130\u03a3\ud800"), max_size=12
)
_ADDED = st.sampled_from(["[SEP]", "[UNK]", "[SEP", "SEP]", "[ SEP]", "[[CLS]]", "x[MASK].y"])


@given(st.lists(st.one_of(_SIGNS, _ADDED, st.text(max_size=8)), max_size=12), st.integers(1, 9))
def test_pieces_of_a_long_text_have_the_tokens_of_the_whole(parts: list[str], piece: int) -> None:
    """Wherever it is cut: signs, blanks, marks, tokens that stand in the text as they are."""
    text = "".join(parts)
    path = packs_dir() / "embedded" / "embedding" / "tokenizer.json"
    whole = _embedded(path)._encode(text)
    with patch.multiple(module, LONG_CHARS=0, PIECE_CHARS=piece):
        ids, offsets = _embedded(path)._encode(text) if text else whole
    assert ids.tolist() == whole[0].tolist()
    assert offsets.tolist() == whole[1].tolist()


_embedded = lru_cache(lambda path: Tokenizer(path, 256))


@pytest.mark.parametrize("unit", ["a@a.", "word ", "a.b-c_d+e", "x" * 3_000 + " "])
def test_a_long_text_is_tokenised_in_small_steps(unit: str) -> None:
    """Its time is looked at after every piece; one without a place to cut is one piece."""
    text = unit * (20_000 // len(unit))
    pieces = list(_pieces(text, " .@-_+"))
    assert "".join(text[start:end] for start, end in pieces) == text
    assert all(end - start <= max(PIECE_CHARS, len(unit)) for start, end in pieces)


def test_tokenizers_of_other_rules_read_a_text_whole(tiny: Path) -> None:
    """Nothing says that their tokens are the same in pieces."""
    fast = FastTokenizer.from_file(str(tiny / "tokenizer.json"))
    assert "." in _cut_before(fast)
    fast.pre_tokenizer = Whitespace()
    assert _cut_before(fast) == ""
    assert list(_pieces("a b " * 9_000, "")) == [(0, 36_000)]
