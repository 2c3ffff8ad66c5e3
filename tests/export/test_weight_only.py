"""Weights in blocks: the one quantisation whose library only the extra `export` brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail_models import quantise
from tests.unit.models.test_quantise import nearly_the_same


def test_weights_in_blocks_give_nearly_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a smaller file."""
    monkeypatch.setattr(quantise, "TABLE_VALUES", 1000)
    nearly_the_same("weight-only", 0.02, tmp_path)
