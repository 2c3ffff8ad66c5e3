"""Written statements that train grounding: what the file holds, and how claims are left out."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from guardrail_bench.quality import auroc

TRAINING = Path(__file__).parents[3] / "models" / "training"
FILES = {"statements": 12, "short_statements": 10}
"""Claims of a record; of one that was written in two versions from the start, two a change."""
TWINS_FROM = 81
"""The first writer of such records."""
LABELS = {"supported", "contradicted", "not_mentioned"}
NEAR_CHANCE = 0.05


@pytest.fixture(scope="module")
def modules() -> tuple[ModuleType, ModuleType, ModuleType]:
    """Return the scripts that balance, read and group statements."""
    folders = [str(TRAINING / "grounding"), str(TRAINING)]
    sys.path[:0] = folders
    try:
        balance, written, texts = map(importlib.import_module, ("balance", "written", "texts"))
        return balance, written, texts
    finally:
        for folder in folders:
            sys.path.remove(folder)
        for name in ("balance", "written", "corpora", "texts", "edits", "documents"):
            sys.modules.pop(name, None)


def records_of(name: str) -> list[dict[str, Any]]:
    """Return the records of a file."""
    path = TRAINING / "grounding" / f"{name}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


@pytest.mark.parametrize(("name", "claims"), FILES.items())
def test_every_record_has_as_many_true_as_false_claims(name: str, claims: int) -> None:
    """Half of the claims are supported; a writer is in one split only."""
    splits: dict[int, set[str]] = {}
    for row in records_of(name):
        labels = Counter(claim["label"] for claim in row["claims"])
        assert labels.keys() <= LABELS
        own = 2 * len(row["changes"]) if row["writer"] >= TWINS_FROM else claims
        assert labels.total() == own
        assert labels["supported"] == own // 2
        splits.setdefault(row["writer"], set()).add(row["split"])
    assert all(len(found) == 1 for found in splits.values())


@pytest.mark.parametrize("name", FILES)
def test_changes_can_be_made(modules: tuple[ModuleType, ModuleType, ModuleType], name: str) -> None:
    """What an edit replaces stands in the passages once, and most claims are turned round."""
    _, written, _ = modules
    turned = every = 0
    for row in records_of(name):
        if "changes" not in row:
            continue
        text = "\n\n".join(row["passages"])
        edits = [edit for change in row["changes"] for edit in change["edits"]]
        assert [old for old, _ in edits if text.count(old) != 1] == []
        spans = sorted((text.index(old), text.index(old) + len(old)) for old, _ in edits)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        numbers = {c["change"] for c in row["claims"] if "change" in c}
        assert numbers <= set(range(len(row["changes"])))
        every += len(row["claims"])
        turned += sum("change" in claim for claim in row["claims"])
        found = [pair for pair in written._pairs(row) if "group" in pair]
        assert len({pair["premise"] for pair in found}) == 4
    assert turned > 0.8 * every > 0


def test_what_the_surface_gives_away_is_left_out(
    modules: tuple[ModuleType, ModuleType, ModuleType],
) -> None:
    """Before, words in the passages alone tell; afterwards nothing of the surface does."""
    balance, _, _ = modules
    claims = balance.claims_of(records_of("statements"))
    stay = balance.kept(claims)
    left = [claim for claim, stays in zip(claims, stay, strict=True) if stays]
    assert len(left) > len(claims) / 2

    def overlap(found: list[Any]) -> float:
        values = np.array([claim.surface[0] for claim in found])
        return auroc(values, np.array([claim.is_true for claim in found]))

    assert overlap(claims) < 0.5 - NEAR_CHANCE
    assert overlap(left) == pytest.approx(0.5, abs=NEAR_CHANCE)


def test_words_alone_tell_nothing_of_short_statements(
    modules: tuple[ModuleType, ModuleType, ModuleType],
) -> None:
    """What nobody mentions is left to be told by the passages' words."""
    balance, _, _ = modules
    claims = balance.claims_of(records_of("short_statements"))
    stay = balance.kept(claims, balance.by_words)
    left = [claim for claim, stays in zip(claims, stay, strict=True) if stays]
    assert len(left) > 2 * len(claims) / 3
    labels = np.array([claim.is_true for claim in left])
    assert auroc(balance.by_words(claims), np.array([c.is_true for c in claims])) > 0.6
    assert auroc(balance.by_words(left), labels) == pytest.approx(0.5, abs=NEAR_CHANCE)


def test_a_record_is_read_as_a_pair_for_each_claim(
    modules: tuple[ModuleType, ModuleType, ModuleType], tmp_path: Path
) -> None:
    """Beside rows with one claim, with all passages as the premise."""
    _, written, _ = modules
    row = {
        "split": "train", "passages": ["Ann wrote it.", "Bo drew it."],
        "claims": [
            {"text": "Ann is the author of it.", "label": "supported"},
            {"text": "Bo wrote it, not Ann.", "label": "contradicted"},
            {"text": "Bo drew it in a week.", "label": "not_mentioned"},
        ],
    }  # fmt: skip
    (tmp_path / "own.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    found = written.sources_of(tmp_path, "train", [])["own"]
    assert [pair["label"] for pair in found] == ["entailment", "contradiction", "neutral"]
    assert {pair["premise"] for pair in found} == {"Ann wrote it.\n\nBo drew it."}
    assert written.sources_of(tmp_path, "dev", [])["own"] == []


CHANGED: dict[str, Any] = {
    "split": "train",
    "passages": ["Ann pays. Before June it is free.", "Bo may enter."],
    "changes": [
        {"edits": [["Ann pays", "Bo pays"]]},
        {"edits": [["Before June", "From June"], ["free", "nearly free"]]},
        {"edits": [["Bo may enter", "The lift is old"]]},
    ],
    "claims": [
        {"text": "The bill goes to Ann.", "label": "supported", "change": 0},
        {"text": "The bill goes to Bo.", "label": "contradicted", "change": 0},
        {"text": "In May nobody pays.", "label": "supported", "change": 1, "open_after": [0]},
        {"text": "They let Bo in.", "label": "supported", "change": 2},
        {"text": "The lift works.", "label": "not_mentioned"},
    ],
}


def test_a_claim_is_true_beside_half_of_the_versions(
    modules: tuple[ModuleType, ModuleType, ModuleType], tmp_path: Path
) -> None:
    """Every change turns its own claims round; a claim without one is read as it stands."""
    _, written, _ = modules
    (tmp_path / "own.jsonl").write_text(json.dumps(CHANGED) + "\n", encoding="utf-8")
    found = written.sources_of(tmp_path, "train", [])["own"]
    old = "Ann pays. Before June it is free.\n\nBo may enter."
    new = "Bo pays. From June it is nearly free.\n\nThe lift is old."
    assert len({pair["premise"] for pair in found}) == 4
    assert {old, new} <= {pair["premise"] for pair in found}
    true: Counter[str] = Counter()
    for pair in found:
        claim, premise, holds = pair["hypothesis"], pair["premise"], pair["label"] == "entailment"
        true[claim] += holds
        assert ("group" in pair) == (claim != "The lift works.")
        if claim.startswith("The bill"):
            assert holds == (claim == f"The bill goes to {premise.partition(' pays')[0]}.")
        if claim == "They let Bo in.":
            assert holds == ("Bo may enter" in premise)
        if claim == "In May nobody pays.":
            assert "Ann pays" in premise
    counts = Counter(pair["hypothesis"] for pair in found)
    assert [counts[claim["text"]] for claim in CHANGED["claims"]] == [4, 4, 2, 4, 1]
    assert all(true[name] == counts[name] // 2 for name in counts)


def test_versions_are_drawn_together(
    modules: tuple[ModuleType, ModuleType, ModuleType],
) -> None:
    """Each claim with a version that supports it and one that does not; others as they come."""
    _, _, texts = modules
    rows = [
        {"claim": claim, "label": label, "group": "twins 0"}
        for claim in (7, 8, 9) for label in (0, 1, 0, 1)
    ]  # fmt: skip
    drawn = [5, 2, 11, 9, 0, 3, 1, 4, 6, 7, 8, 10, 5]
    assert texts.beside(rows, drawn, 4) == [5, 4, 2, 3]
    plain = [{"claim": i, "label": 0} for i in range(5)]
    assert texts.beside(plain, [3, 1, 3, 0, 2], 3) == [3, 1, 0]
