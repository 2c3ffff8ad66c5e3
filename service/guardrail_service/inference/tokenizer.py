"""A pack's tokenizer: ids for the model, token offsets for windows. Never cuts, never pads."""

from __future__ import annotations

import string
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.text.budget import check_time, in_time
from guardrail_service.text.sample import TokenSpan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SURROGATES = dict.fromkeys(range(55296, 57344), 65533)
"""Lone surrogates have no UTF-8 form; U+FFFD keeps every offset where it was."""


_PROBE = "a b"
_UNKNOWN = ("[UNK]", "<unk>")
"""The unknown token of WordPiece and of Unigram models; byte-level models know every text."""


KEPT_TEXTS = 2_048
KEPT_CHARS = 300
"""A check asks for a sentence's tokens up to three times: for its window, its row and its lexical
view. Sentences of 180 characters take about 2 MB; the most that these limits allow is 10 MB, and
32 MB for a tokenizer that makes four tokens of one character."""


LONG_CHARS = 4_000
"""Texts beyond this are tokenised in pieces, each as a batch of one: only then does the library let
other threads run, and 100,000 characters take it 0.2 s."""
PIECE_CHARS = 2_000
"""Code points of a piece, if there is a place to cut: a few milliseconds."""


TOKENS_AT_ONCE = 2_048
"""Tokens of a long text whose ids and offsets are copied at once: no other thread runs meanwhile,
and all of 100,000 tokens took 40 ms."""


class Encoded(NamedTuple):
    """A row as a model reads it: token ids, and 1 for each token of the second text, else 0."""

    ids: list[int]
    types: list[int]


_Read = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]
"""A text's ids without special tokens, shape (n,), and start and end of each, shape (n, 2). Arrays
in a plain tuple are small, and the garbage collector does not walk through them."""


class _Frame(NamedTuple):
    """The tokens before and after a text's own tokens in a row of one text, and their types."""

    before: list[int]
    after: list[int]
    types: tuple[list[int], int, list[int]]


class Tokenizer:
    """Thread-safe. Implements `text.windows.Windower`.

    Args:
        path: A `tokenizer.json` with truncation and padding switched off.
        max_row_tokens: Longest row the model reads, special tokens included.
    """

    def __init__(self, path: Path, max_row_tokens: int) -> None:
        self._fast = _read(path)
        if self._fast.truncation is not None or self._fast.padding is not None:
            raise PackError(f"{path}: truncates or pads; expected both switched off")
        found = (self._fast.token_to_id(token) for token in _UNKNOWN)
        self._unknown: int | None = next((token for token in found if token is not None), None)
        self._max_row_tokens = max_row_tokens
        self.max_tokens = max_row_tokens - self._fast.num_special_tokens_to_add(is_pair=False)
        self._frame = _frame(self._fast)
        self._cuts = _cut_before(self._fast)
        self._kept = lru_cache(KEPT_TEXTS)(self._encode)

    def tokens(self, text: str) -> Sequence[TokenSpan]:
        """Return each token's code points [start, end) and whether the model knows it."""
        unknown = self._unknown
        ids, offsets = self._read(text)
        found: Iterable[tuple[int, list[int]]] = zip(ids.tolist(), offsets.tolist(), strict=True)
        if len(ids) > TOKENS_AT_ONCE:
            found = in_time(found)
        return [TokenSpan(start, end, token != unknown) for token, (start, end) in found]

    def ids(self, text: str, second: str | None = None) -> list[int]:
        """Return the model's input ids for one text or a pair.

        Raises:
            RowFailed: If the row is longer than the model reads. Text is never cut here.
        """
        return self.encoded(text, second).ids

    def encoded(self, text: str, second: str | None = None) -> Encoded:
        """Return one text or a pair with special tokens, and which text each token is of.

        Raises:
            RowFailed: If the row is longer than the model reads. Text is never cut here.
        """
        if second is None and self._frame is not None:
            encoded = _framed(self.raw_ids(text), self._frame)
        else:
            found = self._fast.encode(_plain(text), None if second is None else _plain(second))
            encoded = Encoded(found.ids, found.type_ids)
        self._fits(encoded.ids)
        return encoded

    def raw_ids(self, text: str) -> list[int]:
        """Return a text's token ids without special tokens, however many there are."""
        ids: list[int] = self._read(text)[0].tolist()
        return ids

    def token_id(self, token: str) -> int | None:
        """Return the id of one token of the vocabulary."""
        found: int | None = self._fast.token_to_id(token)
        return found

    def special_tokens(self, *, is_pair: bool) -> int:
        """Return how many special tokens a row of one or two texts gets."""
        count: int = self._fast.num_special_tokens_to_add(is_pair=is_pair)
        return count

    def _read(self, text: str) -> _Read:
        if len(text) <= KEPT_CHARS:
            return self._kept(text)
        check_time()
        found = self._encode(text)
        check_time()
        return found

    def _encode(self, text: str) -> _Read:
        if len(text) <= LONG_CHARS:
            return _arrays(self._fast.encode(_plain(text), add_special_tokens=False))
        parts = []
        for start, end in _pieces(text, self._cuts):
            check_time()
            (found,) = self._fast.encode_batch([_plain(text[start:end])], add_special_tokens=False)
            found.truncate(TOKENS_AT_ONCE)  # cuts nothing off: the rest is in `overflowing`
            for part in (found, *found.overflowing):
                check_time()
                ids, offsets = _arrays(part)
                parts.append((ids, offsets + start))
        all_ids, all_offsets = zip(*parts, strict=True)
        return np.concatenate(all_ids), np.concatenate(all_offsets)

    def _fits(self, ids: list[int]) -> None:
        if len(ids) > self._max_row_tokens:
            raise RowFailed(
                f"a row has {len(ids)} tokens; the model reads at most {self._max_row_tokens}"
            )


def _cut_before(fast: FastTokenizer) -> str:
    """Return the characters in front of which a text falls into parts with tokens of their own.

    BERT's rules make a token of each sign, end one at each blank, and read nothing across either.
    Of other rules nothing is known: one may mark the first word of a text. Tokens that stand in the
    text as they are, such as `[SEP]`, must stay whole.
    """
    added = list(fast.get_added_tokens_decoder().values())
    is_bert = isinstance(fast.pre_tokenizer, BertPreTokenizer)
    if not is_bert or not isinstance(fast.normalizer, BertNormalizer):
        return ""
    if any(token.lstrip or token.rstrip or token.single_word for token in added):
        return ""
    inside = {char for token in added for char in token.content[1:]}
    return "".join(char for char in "\n " + string.punctuation if char not in inside)


def _pieces(text: str, cuts: str) -> Iterator[tuple[int, int]]:
    """Yield where to cut a text: at the last possible place within `PIECE_CHARS`, or the next."""
    start = 0
    while len(text) - start > PIECE_CHARS and cuts:
        end = max(text.rfind(char, start + 1, start + PIECE_CHARS) for char in cuts)
        if end < 0:
            behind = range(start + PIECE_CHARS, len(text))
            end = next((place for place in behind if text[place] in cuts), len(text))
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


def _arrays(found: Encoding) -> _Read:
    offsets = np.array(found.offsets, dtype=np.int32).reshape(-1, 2)
    return np.array(found.ids, dtype=np.int32), offsets


def _plain(text: str) -> str:
    return text if text.isascii() else text.translate(_SURROGATES)


def _framed(ids: list[int], frame: _Frame) -> Encoded:
    before, own, after = frame.types
    return Encoded([*frame.before, *ids, *frame.after], [*before, *([own] * len(ids)), *after])


def _frame(fast: FastTokenizer) -> _Frame | None:
    """Return what special tokens stand around one text; None if a probe does not tell.

    The template is the same for every text, so one text shows it.
    """
    with_special: Encoding = fast.encode(_PROBE)
    own = fast.encode(_PROBE, add_special_tokens=False).ids
    ids, types = with_special.ids, with_special.type_ids
    places = [
        place for place, special in enumerate(with_special.special_tokens_mask) if not special
    ]
    if not own or [ids[place] for place in places] != own:
        return None
    start, end = places[0], places[-1] + 1
    if end - start != len(own) or len(set(types[start:end])) != 1:
        return None
    return _Frame(ids[:start], ids[end:], (types[:start], types[start], types[end:]))


def _read(path: Path) -> FastTokenizer:
    try:
        return FastTokenizer.from_file(str(path))
    except Exception as error:
        raise PackError(f"{path}: {type(error).__name__}; expected a tokenizer.json") from error
