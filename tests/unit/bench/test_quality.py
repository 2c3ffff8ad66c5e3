"""Areas, rates and intervals against values computed by hand."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from guardrail_bench.quality import (
    auprc,
    auroc,
    balanced_accuracy,
    false_flags_at,
    interval,
    lines,
)
from guardrail_service.errors import InputError, NotScorable

SCORES = np.array([0.1, 0.4, 0.35, 0.8])
LABELS = np.array([False, False, True, True])


def test_roc_area_counts_pairs_and_halves_ties() -> None:
    """3 of the 4 pairs are in order; a constant score is chance."""
    assert auroc(SCORES, LABELS) == 0.75
    assert auroc(np.zeros(4), LABELS) == 0.5


def test_average_precision() -> None:
    """First hit at rank 1, second at rank 3; ties enter together."""
    assert auprc(SCORES, LABELS) == pytest.approx((1 + 2 / 3) / 2)
    assert auprc(np.zeros(4), LABELS) == 0.5


def test_balanced_accuracy_weighs_both_classes_alike() -> None:
    """One of two bad found, both good passed."""
    assert balanced_accuracy(np.array([False, False, True, False]), LABELS) == 0.75


def test_false_flags_at_a_recall() -> None:
    """Catching both bad ones (.35, .8) flags the good ones at or below .8."""
    assert false_flags_at(1.0, SCORES, LABELS) == 1.0
    assert false_flags_at(0.5, SCORES, LABELS) == 0.5


def test_an_interval_holds_the_value_and_repeats() -> None:
    """Seeded; groups are drawn whole."""
    rng = np.random.default_rng(1)
    labels = rng.random(300) < 0.5
    scores = rng.normal(size=300) + labels
    groups = np.arange(300) // 3
    low, high = interval(auroc, scores, labels, groups=groups, draws=100)
    assert low < auroc(scores, labels) < high
    assert (low, high) == interval(auroc, scores, labels, groups=groups, draws=100)


@pytest.mark.parametrize("labels", [np.zeros(4, bool), np.ones(4, bool)])
def test_one_class_has_no_area(labels: np.ndarray) -> None:  # type: ignore[type-arg]
    """It raises; it is not 0."""
    with pytest.raises(NotScorable):
        auroc(SCORES, labels)


LINES = b'{"a": "x\xe2\x80\xa8y"}\n\n{"b": 1}'


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_lines_have_their_numbers_and_end_at_line_feeds_only(name: str, tmp_path: Path) -> None:
    """Blank ones are counted and left out."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(LINES, mtime=0) if path.suffix == ".gz" else LINES)
    first, _, last = LINES.split(b"\n")
    assert list(lines(path)) == [(1, first + b"\n"), (3, last)]


@pytest.mark.parametrize(
    "data",
    [LINES, gzip.compress(LINES, mtime=0)[:-9], gzip.compress(LINES, mtime=0)[:14] + b"\x00" * 30],
)
def test_what_is_no_gzip_is_named(data: bytes, tmp_path: Path) -> None:
    """Plain, cut off or damaged: one line with the file's name, no traceback."""
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"x\.jsonl\.gz: found \w+; expected gzip"):
        list(lines(path))
