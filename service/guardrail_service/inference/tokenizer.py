"""A pack's tokenizer: ids for the model, token offsets for windows. Never cuts, never pads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tokenizers import Tokenizer as FastTokenizer

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.text.windows import TokenSpan

if TYPE_CHECKING:
    from collections.abc import Sequence

_SURROGATES = dict.fromkeys(range(55296, 57344), 65533)
"""Lone surrogates have no UTF-8 form; U+FFFD keeps every offset where it was."""


_UNKNOWN = ("[UNK]", "<unk>")
"""The unknown token of WordPiece and of Unigram models; byte-level models know every text."""


class Encoded(NamedTuple):
    """A row as a model reads it: token ids, and 1 for each token of the second text, else 0."""

    ids: list[int]
    types: list[int]


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

    def tokens(self, text: str) -> Sequence[TokenSpan]:
        """Return each token's code points [start, end) and whether the model knows it."""
        encoded = self._fast.encode(text.translate(_SURROGATES), add_special_tokens=False)
        return [
            TokenSpan(start, end, token != self._unknown)
            for token, (start, end) in zip(encoded.ids, encoded.offsets, strict=True)
        ]

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
        pair = None if second is None else second.translate(_SURROGATES)
        found = self._fast.encode(text.translate(_SURROGATES), pair)
        self._fits(found.ids)
        return Encoded(found.ids, found.type_ids)

    def raw_ids(self, text: str) -> list[int]:
        """Return a text's token ids without special tokens, however many there are."""
        ids: list[int] = self._fast.encode(
            text.translate(_SURROGATES), add_special_tokens=False
        ).ids
        return ids

    def token_id(self, token: str) -> int | None:
        """Return the id of one token of the vocabulary."""
        found: int | None = self._fast.token_to_id(token)
        return found

    def special_tokens(self, *, is_pair: bool) -> int:
        """Return how many special tokens a row of one or two texts gets."""
        count: int = self._fast.num_special_tokens_to_add(is_pair=is_pair)
        return count

    def _fits(self, ids: list[int]) -> None:
        if len(ids) > self._max_row_tokens:
            raise RowFailed(
                f"a row has {len(ids)} tokens; the model reads at most {self._max_row_tokens}"
            )


def _read(path: Path) -> FastTokenizer:
    try:
        return FastTokenizer.from_file(str(path))
    except Exception as error:
        raise PackError(f"{path}: {type(error).__name__}; expected a tokenizer.json") from error
