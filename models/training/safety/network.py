"""The safety branch's tail: attention per label, mean and maximum of the tokens, ten log-odds."""

from __future__ import annotations

from pathlib import Path

import torch
from texts import TRAINED
from torch import Tensor, nn
from transformers import logging as transformers_logging

from branch_graph import Branch, upper_layers
from embedding_graph import DIM


class SafetyTail(nn.Module):
    """From token states to one number per trained label.

    Args:
        hidden: Width of the shared layer over mean and maximum.
        dropout: Share of inputs dropped in training.
        labels: How many numbers.
    """

    def __init__(self, hidden: int, dropout: float, labels: int = len(TRAINED)) -> None:
        super().__init__()
        self.attend = nn.Linear(DIM, labels)
        self.weight = nn.Parameter(torch.randn(labels, DIM) * 0.02)
        self.shared = nn.Sequential(nn.Linear(2 * DIM, hidden), nn.GELU(), nn.Dropout(dropout))
        self.out = nn.Linear(hidden, labels)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return log-odds (batch, labels) from (batch, tokens, dim); `mask` 0 marks padding."""
        scores = self.attend(states)
        if mask is None:
            mean, most = states.mean(1), states.amax(1)
        else:
            hidden = (mask == 0)[..., None]
            scores = scores.masked_fill(hidden, -1e4)
            mean = states.masked_fill(hidden, 0).sum(1) / mask.sum(1, keepdim=True)
            most = states.masked_fill(hidden, -1e4).amax(1)
        pooled = scores.softmax(1).transpose(1, 2) @ states
        shared = self.shared(torch.cat([mean, most], dim=-1))
        return (pooled * self.weight).sum(-1) + self.out(shared)


def open_branch(source: Path, hidden: int, dropout: float) -> Branch:
    """Return the untrained branch: the encoder's upper layers and a new tail."""
    transformers_logging.set_verbosity_error()  # else it reports the pooling head left out
    return Branch(upper_layers(source), SafetyTail(hidden, dropout))
