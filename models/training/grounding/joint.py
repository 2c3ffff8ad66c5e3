"""The other grounding model: six layers that read claim and evidence as one row.

A row is a claim and its nearest sentences, in their order; each token is told whether the other
side has it, too. So nothing of a passage can be kept, and every claim costs a pass over its
evidence. The encoder's own layers are trained; its word and place embeddings stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from data import Example, chosen, in_order
from encode import known_arrays, known_texts
from head import DIM
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertModel

from build_embedding import source_folder
from guardrail_service.inference.models.lexical import STOP
from guardrail_service.inference.models.session import Tokenizer

HEADS, HEAD_DIM = 12, 32
CLAIM_TOKENS = 48
"""Tokens of a claim that are read, for training only."""
BEGIN, END = 101, 102
NO_WORD, ON_BOTH_SIDES, ON_ONE_SIDE = range(3)
"""Marks of a token: a stop word, a sign or a place that holds no text; held by the other side; not
held by it."""


class TokenTexts:
    """Every text's token ids and sentence embedding. The cache's states are not read."""

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        self.vectors = np.concatenate(known_arrays(folder, "vectors"))
        self._lengths = np.concatenate(known_arrays(folder, "lengths")) - 2
        encode = tokenizer._fast.encode_batch
        texts = known_texts(folder)
        ids = [
            np.array(one.ids[:length], dtype=np.int64)
            for first in range(0, len(texts), 20_000)
            for one, length in zip(
                encode(texts[first : first + 20_000], add_special_tokens=False),
                self._lengths[first : first + 20_000],
                strict=True,
            )
        ]
        self._starts = np.cumsum([0, *map(len, ids)])
        self._ids = np.concatenate(ids).astype(np.int32)
        vocabulary = tokenizer._fast.get_vocab()
        self.is_no_word = np.zeros(len(vocabulary), dtype=bool)
        for word, number in vocabulary.items():
            self.is_no_word[number] = word in STOP or not word.strip("#").isalnum()

    def length(self, text: int) -> int:
        """Return a text's number of tokens without special tokens."""
        return int(self._lengths[text])

    def ids(self, text: int) -> Any:
        """Return a text's token ids without special ones."""
        return self._ids[self._starts[text] : self._starts[text + 1]]


class JointRow(NamedTuple):
    """A claim and its evidence as one row: ids and marks of tokens, and where evidence begins."""

    ids: Any
    marks: Any
    evidence_at: int


def row_of(claim: Any, evidence: Any, is_no_word: Any) -> JointRow:
    """Return `[CLS] claim [SEP] evidence [SEP]` with each token's mark.

    Args:
        claim: Token ids of the claim.
        evidence: Token ids of the sentences it is read with, one behind the other.
        is_no_word: Of each id of the vocabulary, whether it is a stop word or a sign.
    """
    alone = [NO_WORD]
    ids = np.concatenate([[BEGIN], claim, [END], evidence, [END]])
    left, right = _marks(claim, evidence, is_no_word), _marks(evidence, claim, is_no_word)
    return JointRow(ids, np.concatenate([alone, left, alone, right, alone]), len(claim) + 2)


def _marks(own: Any, other: Any, is_no_word: Any) -> Any:
    held = np.where(np.isin(own, other), ON_BOTH_SIDES, ON_ONE_SIDE)
    return np.where(is_no_word[own], NO_WORD, held)


def collate(examples: Sequence[Example], texts: TokenTexts, config: dict[str, Any]) -> Any:
    """Return padded tensors (rows, tokens): ids, marks, sides, masks of tokens and of the claim."""
    rows = []
    for claim, sentences, _, _ in examples:
        kept, _ = chosen(texts, claim, sentences, config["sentences"], config["passage_tokens"])
        evidence = np.concatenate([texts.ids(text) for text in in_order(kept, sentences)])
        rows.append(row_of(texts.ids(claim)[:CLAIM_TOKENS], evidence, texts.is_no_word))
    return padded(rows)


def padded(rows: Sequence[JointRow]) -> tuple[Tensor, ...]:
    """Return rows as `JointModel` reads them."""
    shape = len(rows), max(len(row.ids) for row in rows)
    ids, marks, sides = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    is_token, is_claim = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=np.float32)
    for place, (own, marked, evidence_at) in enumerate(rows):
        ids[place, : len(own)], marks[place, : len(own)] = own, marked
        sides[place, evidence_at : len(own)] = 1
        is_token[place, : len(own)] = True
        is_claim[place, 1 : evidence_at - 1] = 1
    return tuple(map(torch.from_numpy, (ids, marks, sides, is_token, is_claim)))


class _Softmax(torch.autograd.Function):
    """The softmax in the format that it is given: `autocast` would compute it in float32."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        shares = torch._softmax(scores, -1, False)
        ctx.save_for_backward(shares)
        return shares

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (shares,) = ctx.saved_tensors
        return torch._softmax_backward_data(gradient, shares, -1, shares.dtype)


class JointModel(nn.Module):
    """Three logits (supported, contradicted, not mentioned) of a claim beside its evidence."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = BertModel.from_pretrained(
            source_folder(), attn_implementation="eager", add_pooling_layer=False
        )
        for module in self.bert.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        embeddings = self.bert.embeddings
        for kept in (embeddings.word_embeddings, embeddings.position_embeddings):
            kept.weight.requires_grad_(False)
        self.flag = nn.Embedding(3, DIM)
        nn.init.zeros_(self.flag.weight)
        self.out = nn.Sequential(nn.Linear(2 * DIM, 256), nn.GELU(), nn.Linear(256, 3))

    def upper(self) -> list[nn.Parameter]:
        """Return the parameters that were trained before and go on."""
        return [p for p in self.bert.parameters() if p.requires_grad]

    def others(self) -> list[nn.Parameter]:
        """Return the new parameters."""
        return [*self.flag.parameters(), *self.out.parameters()]

    def forward(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Return logits (rows, 3) of what `padded` made.

        Whatever is computed for a token alone is computed for tokens that there are: a third of a
        batch is padding.
        """
        ids, marks, sides, is_token, is_claim = batch
        count, width = ids.shape
        at = is_token.flatten().nonzero()[:, 0]

        def real(values: Tensor) -> Tensor:
            return values.reshape(-1)[at]

        def by_head(values: Tensor) -> Tensor:
            """Return (rows * heads, width, dim of a head) of what real tokens have."""
            full = values.new_zeros(count * width, DIM).index_copy(0, at, values)
            split = full.view(count, width, HEADS, HEAD_DIM).transpose(1, 2)
            return split.reshape(count * HEADS, width, HEAD_DIM)

        embeddings = self.bert.embeddings
        places = torch.arange(width)[None].expand(count, width)
        values = embeddings.LayerNorm(
            embeddings.word_embeddings(real(ids))
            + embeddings.position_embeddings(real(places))
            + embeddings.token_type_embeddings(real(sides))
            + self.flag(real(marks))
        )
        hidden = torch.zeros(count, 1, 1, width).masked_fill(~is_token[:, None, None, :], -1e4)
        for layer in self.bert.encoder.layer:
            reads = layer.attention.self
            query, key, value = (
                by_head(part(values)) for part in (reads.query, reads.key, reads.value)
            )
            scores = torch.bmm(query * HEAD_DIM**-0.5, key.transpose(1, 2))
            scores = scores.view(count, HEADS, width, width) + hidden.to(scores.dtype)
            shares = _Softmax.apply(scores).view(count * HEADS, width, width)
            read = torch.bmm(shares, value).view(count, HEADS, width, HEAD_DIM)
            attended = read.transpose(1, 2).reshape(count * width, DIM)[at]
            values = layer.attention.output(attended, values)
            values = layer.output(layer.intermediate(values), values)
        return self._pooled(values.float(), at // width, real(is_claim), count)

    def _pooled(self, values: Tensor, row: Tensor, is_claim: Tensor, count: int) -> Tensor:
        """Return logits from the first token of each row and the mean over its claim's."""
        first = F.pad(torch.bincount(row, minlength=count).cumsum(0), (1, 0))[:-1]
        sums = torch.zeros(count, DIM).index_add(0, row, values * is_claim[:, None])
        lengths = torch.zeros(count).index_add(0, row, is_claim).clamp(min=1)
        return self.out(torch.cat([values[first], sums / lengths[:, None]], dim=-1))
