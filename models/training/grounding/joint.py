"""The other grounding model: upper layers that see claim and evidence together.

Lower layers still run per text and can be kept; claim and evidence then go through the upper layers
as one row, so every claim costs a pass over its evidence. Trained to be compared with `head.py`.
"""

from __future__ import annotations

from typing import Any

import torch
from head import DIM, INNER_COLUMN, STOP_COLUMN
from torch import Tensor, nn
from torch.nn import functional as F

from guardrail_service.inference.models.lexical import (
    CLAIM_FEATURES,
    PAIR_FEATURES,
    PASSAGE_FEATURES,
)

HEADS = 12


class JointModel(nn.Module):
    """Three logits (supported, contradicted, not mentioned) from layers over the whole pair."""

    def __init__(self, layers: nn.ModuleList, config: dict[str, Any]) -> None:
        super().__init__()
        self.layers = layers
        self.claim_facts = nn.Linear(CLAIM_FEATURES + 1, DIM)
        self.passage_facts = nn.Linear(PASSAGE_FEATURES, DIM)
        for facts in (self.claim_facts, self.passage_facts):  # begin as if they were not there
            nn.init.zeros_(facts.weight)
            nn.init.zeros_(facts.bias)
        self.side = nn.Parameter(torch.randn(2, DIM) * 0.02)
        self.match = nn.Parameter(torch.full((len(layers), HEADS, 1, 1), 1.0))
        self.weight = nn.Linear(DIM, 2)
        width = config["width"]
        self.out = nn.Sequential(
            nn.Linear(4 * DIM + PAIR_FEATURES + 2, width), nn.GELU(), nn.Dropout(config["dropout"]),
            nn.Linear(width, 3),
        )  # fmt: skip

    def upper(self) -> list[nn.Parameter]:
        """Return the parameters that were trained before."""
        return list(self.layers.parameters())

    def others(self) -> list[nn.Parameter]:
        """Return the new parameters."""
        known = {id(p) for p in self.upper()}
        return [p for p in self.parameters() if id(p) not in known]

    def forward(self, batch: dict[str, Any]) -> Tensor:
        """Return logits (batch, 3) of what `data.collate` made."""
        middle = torch.cat([states.float().flatten(0, 1) for states, _ in batch["texts"]])
        claim, passage = middle[batch["claim"]], middle[batch["passage"]]
        claim_mask, passage_mask = batch["claim_mask"], batch["passage_mask"]
        best = _cosines(claim, passage, passage_mask).amax(dim=2, keepdim=True)
        facts = torch.cat([batch["claim_features"], best], dim=-1)
        left = claim + self.claim_facts(facts) + self.side[0]
        right = passage + self.passage_facts(batch["passage_features"]) + self.side[1]
        states = torch.cat([left, right], dim=1)
        mask = torch.cat([claim_mask, passage_mask], dim=1)
        hidden = -1e4 * (1 - mask)[:, None, None, :]
        n = claim.shape[1]
        same = F.pad(batch["match"], (n, 0, 0, passage.shape[1]))
        same = (same + same.transpose(1, 2))[:, None]
        for number, layer in enumerate(self.layers):
            found = layer(states, attention_mask=hidden + self.match[number] * same)
            states = found[0] if isinstance(found, tuple) else found
        return self.out(self._pooled(states[:, :n], batch, best[:, :, 0]))

    def _pooled(self, tokens: Tensor, batch: dict[str, Any], best: Tensor) -> Tensor:
        mask, features = batch["claim_mask"], batch["claim_features"]
        share = mask / mask.sum(dim=1, keepdim=True)
        mean = (tokens * share[:, :, None]).sum(dim=1)
        hidden = 1e4 * (1 - mask)[:, :, None]
        weighed = (self.weight(tokens) - hidden).softmax(dim=1).transpose(1, 2) @ tokens
        content = mask * (1 - features[:, :, STOP_COLUMN]) * (1 - features[:, :, INNER_COLUMN])
        covered = (best * content).sum(dim=1, keepdim=True) / (content.sum(1, keepdim=True) + 1e-3)
        least = (best + 2 * (1 - content)).amin(dim=1, keepdim=True).clamp(max=1.0)
        most = (tokens - hidden).amax(dim=1)
        return torch.cat([mean, most, weighed.flatten(1), batch["pair"], covered, least], dim=-1)


def _cosines(claim: Tensor, passage: Tensor, mask: Tensor) -> Tensor:
    left, right = F.normalize(claim, dim=-1), F.normalize(passage, dim=-1)
    return left @ right.transpose(1, 2) - 2 * (1 - mask[:, None, :])
