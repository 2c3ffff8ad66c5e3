"""The grounding model in PyTorch: the encoder's upper layers, and a late-interaction head.

The branch (upper layers and a projection) reads each text alone, so its states can be kept; the
head reads the states of a claim and of its evidence: each side reads the other, then the claim is
pooled.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from branch_graph import Branch
from guardrail_service.inference.models.lexical import (
    CLAIM_FEATURES,
    PAIR_FEATURES,
    PASSAGE_FEATURES,
)

DIM = 384
"""Width of the encoder's middle states."""
STOP_COLUMN = 7  # of the claim's features
INNER_COLUMN = 13


class Attention(nn.Module):
    """Multi-head attention with an additive bias per head."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, left: Tensor, right: Tensor, bias: Tensor) -> Tensor:
        """Return what each left token reads; bias broadcasts to (batch, heads, left, right)."""
        batch = left.shape[0]

        def split(x: Tensor) -> Tensor:
            return x.reshape(batch, -1, self.heads, self.size).transpose(1, 2)

        query, key, value = (
            split(self.query(left)),
            split(self.key(right)),
            split(self.value(right)),
        )
        scores = query @ key.transpose(2, 3) / math.sqrt(self.size) + bias
        read = scores.softmax(dim=-1) @ value
        return self.out(read.transpose(1, 2).reshape(batch, -1, self.heads * self.size))


class BranchLayer(nn.Module):
    """Read the passage, compare, then let the claim's tokens see each other."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.cross = Attention(width, heads)
        self.own = Attention(width, heads)
        self.match = nn.Parameter(torch.full((heads, 1, 1), 1.0))
        self.cosine = nn.Parameter(torch.full((heads, 1, 1), 3.0))
        self.compare = nn.Sequential(
            nn.Linear(4 * width, width), nn.GELU(), nn.Dropout(dropout), nn.Linear(width, width)
        )
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, claim: Tensor, passage: Tensor, match: Tensor, cosine: Tensor,
        passage_bias: Tensor, claim_bias: Tensor,
    ) -> Tensor:  # fmt: skip
        """Return the claim's tokens, changed."""
        bias = self.match * match[:, None] + self.cosine * cosine[:, None] + passage_bias
        read = self.cross(claim, passage, bias)
        both = torch.cat([claim, read, claim * read, claim - read], dim=-1)
        claim = self.norms[0](claim + self.dropout(self.compare(both)))
        return self.norms[1](claim + self.dropout(self.own(claim, claim, claim_bias)))


class Back(nn.Module):
    """Let the passage's tokens read the claim, so that both know what the other says."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.cross = Attention(width, heads)
        self.match = nn.Parameter(torch.full((heads, 1, 1), 1.0))
        self.cosine = nn.Parameter(torch.full((heads, 1, 1), 3.0))
        self.compare = nn.Sequential(
            nn.Linear(4 * width, width), nn.GELU(), nn.Linear(width, width)
        )
        nn.init.zeros_(self.compare[2].weight)  # starts as if it were not there

    def forward(
        self, passage: Tensor, claim: Tensor, match: Tensor, cosine: Tensor, claim_bias: Tensor
    ) -> Tensor:
        """Return the passage's tokens, changed."""
        bias = self.match * match[:, None] + self.cosine * cosine[:, None]
        read = self.cross(passage, claim, bias.transpose(2, 3) + claim_bias)
        both = torch.cat([passage, read, passage * read, passage - read], dim=-1)
        return passage + self.compare(both)


class Head(nn.Module):
    """Three logits (supported, contradicted, not mentioned) of a claim and its evidence."""

    def __init__(self, width: int, heads: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.claim_facts = nn.Linear(CLAIM_FEATURES + 1, width)
        self.passage_facts = nn.Linear(PASSAGE_FEATURES, width)
        self.nothing = nn.Parameter(torch.randn(1, 1, width) * 0.1)
        self.norm_claim, self.norm_passage = nn.LayerNorm(width), nn.LayerNorm(width)
        self.layers = nn.ModuleList([BranchLayer(width, heads, dropout) for _ in range(layers)])
        self.back = Back(width, heads)
        self.weight = nn.Linear(width, 2)
        self.out = nn.Sequential(
            nn.Linear(4 * width + PAIR_FEATURES + 2, width), nn.GELU(), nn.Dropout(dropout),
            nn.Linear(width, 3),
        )  # fmt: skip
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, claim: Tensor, passage: Tensor, claim_features: Tensor, passage_features: Tensor,
        match: Tensor, pair: Tensor, claim_mask: Tensor, passage_mask: Tensor,
    ) -> Tensor:  # fmt: skip
        """Return logits (batch, 3); masks are 1 for tokens and 0 for padding."""
        cosine = F.normalize(claim, dim=-1) @ F.normalize(passage, dim=-1).transpose(1, 2)
        cosine = cosine - 2 * (1 - passage_mask[:, None, :])
        best = cosine.amax(dim=2, keepdim=True)
        tokens = claim + self.claim_facts(torch.cat([claim_features, best], dim=-1))
        tokens = self.norm_claim(tokens)
        read = self.norm_passage(passage + self.passage_facts(passage_features))
        batch = claim.shape[0]
        read = torch.cat([self.nothing.expand(batch, -1, -1), self.dropout(read)], dim=1)
        match, cosine = F.pad(match, (1, 0)), F.pad(cosine, (1, 0))
        passage_bias = -1e4 * (1 - F.pad(passage_mask, (1, 0), value=1.0))[:, None, None, :]
        claim_bias = -1e4 * (1 - claim_mask)[:, None, None, :]
        for number, layer in enumerate(self.layers):
            tokens = layer(tokens, read, match, cosine, passage_bias, claim_bias)
            if number == 0:
                read = self.back(read, tokens, match, cosine, claim_bias)
        return self.out(self._pooled(tokens, claim_features, best[:, :, 0], pair, claim_mask))

    def _pooled(
        self, tokens: Tensor, features: Tensor, best: Tensor, pair: Tensor, mask: Tensor
    ) -> Tensor:
        share = mask / mask.sum(dim=1, keepdim=True)
        mean = (tokens * share[:, :, None]).sum(dim=1)
        worst = (tokens - 1e4 * (1 - mask)[:, :, None]).amax(dim=1)
        chosen = (self.weight(tokens) - 1e4 * (1 - mask)[:, :, None]).softmax(dim=1)
        weighed = (chosen.transpose(1, 2) @ tokens).flatten(1)
        content = mask * (1 - features[:, :, STOP_COLUMN]) * (1 - features[:, :, INNER_COLUMN])
        covered = (best * content).sum(dim=1, keepdim=True) / (content.sum(1, keepdim=True) + 1e-3)
        least = (best + 2 * (1 - content)).amin(dim=1, keepdim=True).clamp(max=1.0)
        return torch.cat([mean, worst, weighed, pair, covered, least], dim=-1)


class GroundingTail(nn.Module):
    """Projects the upper layers' output to the width that the head reads."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.token = nn.Linear(DIM, width)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """Return (batch, tokens, width)."""
        return self.token(states)


class GroundingModel(nn.Module):
    """Branch and head together, as they are trained."""

    def __init__(self, layers: nn.ModuleList, config: dict[str, Any]) -> None:
        super().__init__()
        width = config["width"]
        self.branch = Branch(layers, GroundingTail(width))
        self.head = Head(width, config["heads"], config["layers"], config["dropout"])

    def upper(self) -> list[nn.Parameter]:
        """Return the parameters that were trained before."""
        return list(self.branch.layers.parameters())

    def others(self) -> list[nn.Parameter]:
        """Return the new parameters."""
        return [*self.branch.tail.parameters(), *self.head.parameters()]

    def forward(self, batch: dict[str, Any]) -> Tensor:
        """Return logits (batch, 3) of what `data.collate` made; each text is read once."""
        parts = [self.branch(states.float(), mask) for states, mask in batch["texts"]]
        states = torch.cat([part.flatten(0, 1) for part in parts]).float()
        pair = batch["pair"]
        return self.head(
            states[batch["claim"]], states[batch["passage"]], batch["claim_features"],
            batch["passage_features"], batch["match"], pair, batch["claim_mask"],
            batch["passage_mask"],
        )  # fmt: skip
