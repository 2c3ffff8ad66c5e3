"""Compares a joint network with the graph written of it: `joint_logits.py WEIGHTS GRAPH`.

Rows are of chance tokens. The graph is INT8: it is near the network, and of rows of one length
each has together what it has alone, bit for bit.
"""

from __future__ import annotations

import sys

import numpy as np
import onnxruntime as ort
import torch
from joint import JointModel, JointRow, padded, row_of

from guardrail_service.inference.models.session import NOT_FUSED

VOCABULARY = 30_522
NEAR = 0.5
"""Most that a logit may differ by; those of a network that was hardly trained spread by 1."""


def rows_of(lengths: list[tuple[int, int]]) -> list[JointRow]:
    """Return rows of so many tokens of claim and evidence."""
    chance = np.random.default_rng(5)
    is_no_word = np.arange(VOCABULARY) < 2000
    return [
        row_of(chance.integers(999, 9000, n), chance.integers(999, 9000, m), is_no_word)
        for n, m in lengths
    ]


def feeds(rows: list[JointRow]) -> dict[str, np.ndarray]:
    """Return the graph's inputs."""
    ids, marks, sides, is_token, is_claim = padded(rows)
    share = is_claim / is_claim.sum(dim=1, keepdim=True)
    named = {"input_ids": ids, "marks": marks, "sides": sides, "claim_share": share,
             "attention_mask": is_token.long()}  # fmt: skip
    return {name: value.numpy() for name, value in named.items()}


def main() -> None:
    """Compare."""
    weights, graph = sys.argv[1:]
    model = JointModel()
    model.load_state_dict(torch.load(weights, weights_only=True))
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(graph, options, disabled_optimizers=list(NOT_FUSED))
    rows = rows_of([(5, 30), (12, 44), (3, 9), (20, 60), (7, 28), (9, 26)])
    with torch.no_grad():
        told = model.eval()(padded(rows)).numpy()
    served = np.concatenate([session.run(None, feeds([row]))[0] for row in rows])
    together = session.run(None, feeds(rows))[0]
    assert np.isfinite(told).all()
    assert np.ptp(told, axis=0).max() > 0.001, "every row has the same logits"
    assert np.abs(told - served).max() < NEAR, np.abs(told - served)
    assert np.allclose(served, together, atol=1e-3)
    same = [row for row in rows if len(row.ids) == len(rows[0].ids)]
    assert len(same) == 3
    alone = np.concatenate([session.run(None, feeds([row]))[0] for row in same])
    assert np.array_equal(alone, session.run(None, feeds(same))[0])


if __name__ == "__main__":
    main()
