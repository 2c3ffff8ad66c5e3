"""Claims of whole documents: how they are read, and what is made from them."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "models" / "training" / "grounding"
NAMES = ("documents", "written", "texts", "edits", "corpora")
OWN = (
    "The harbour of Lund was opened in 1908 by Anna Berg, the mayor of the town.",
    "The old mill was sold to Peter Holm for 1,200 crowns in March.",
    "Visitors from Oslo said the ferry was late because the engine had failed.",
    "The council planned a second pier near the market hall.",
    "Nobody objected to the plan during the meeting on Monday.",
)
OTHER = (
    "Trees were planted along the river after the great flood.",
    "The museum bought a painting with help from volunteers and donors.",
)


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    """Yield the modules, which lie outside every package."""
    sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]
    try:
        yield {name: importlib.import_module(name) for name in NAMES}
    finally:
        del sys.path[:2]
        for name in NAMES:
            sys.modules.pop(name, None)


def draw(seed: int = 0) -> Random:
    """Return a reproducible source of chance."""
    return Random(seed)  # noqa: S311 - a reproducible draw


@pytest.mark.parametrize(
    ("function", "text", "expected"),
    [
        ("shorten", OWN[0], "The harbour of Lund was opened in 1908 by Anna Berg."),
        ("shorten", OWN[1], "The old mill was sold to Peter Holm for 1,200 crowns."),
        ("fuse", OWN[1], "The harbour of Lund was sold to Peter Holm for 1,200 crowns in March."),
        ("another_number", OWN[0], OWN[0].replace("1908", "1,200")),
        ("another_name", "It was bought by Peter Holm then.", "It was bought by Anna Berg then."),
    ],
    ids=["aside", "last phrase", "another subject", "another number", "another name"],
)
def test_an_operation_gives_what_one_would_write(
    modules: dict[str, ModuleType], function: str, text: str, expected: str
) -> None:
    """For some draw; nothing comes from outside the document."""
    found = {getattr(modules["documents"], function)(text, OWN, draw(seed)) for seed in range(12)}
    assert expected in found


def test_support_is_deleted_whole_or_not_at_all(modules: dict[str, ModuleType]) -> None:
    """Its neighbours stay; a claim of words that are all over the document keeps its support."""
    delete = modules["documents"].without_support
    assert delete(OWN[1], OWN) == [s for s in OWN if s != OWN[1]]
    assert delete("Peter Holm and Anna Berg met visitors from Oslo.", OWN) is None or (
        "Anna Berg" not in " ".join(delete("Peter Holm and Anna Berg met visitors.", OWN) or ())
    )


def test_made_pairs_have_both_signs_and_a_document(modules: dict[str, ModuleType]) -> None:
    """The same draw makes the same pairs; a true claim stands beside what was made from it."""
    pairs = [
        {"source": "bump", "claim": OWN[0], "sentences": list(OWN), "label": 0},
        {"source": "bump", "claim": OTHER[0], "sentences": [*OTHER, *OWN[2:]], "label": 0},
    ]
    made = modules["documents"].document_pairs(pairs, 200, draw(3))
    assert made == modules["documents"].document_pairs(pairs, 200, draw(3))
    good = sum(pair["label"] == 0 for pair in made)
    assert 0.45 < good / len(made) < 0.7
    assert all(pair["sentences"] and pair["source"].startswith("doc_") for pair in made)
    deleted = [pair for pair in made if pair["source"] == "doc_deleted"]
    assert deleted
    assert all(pair["claim"] not in pair["sentences"] for pair in deleted)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"hypothesis": "Ten crowns.", "question": "What is it?", "label": "entailment"},
         [("What is it? Ten crowns.", 0)]),
        ({"hypothesis": "Ten crowns.", "question": "What is it? " * 20, "label": "neutral"},
         [("Ten crowns.", 2)]),
        ({"hypothesis": f"{OWN[0]} {OWN[1]}", "label": "entailment"}, [(OWN[0], 0), (OWN[1], 0)]),
        ({"hypothesis": f"{OWN[0]} {OWN[1]}", "label": "neutral"}, []),
        ({"hypothesis": f"{OWN[0]} {OWN[1]}", "label": "contradiction",
          "spans": [[len(OWN[0]) + 5, len(OWN[0]) + 20]]}, [(OWN[1], 1)]),
    ],
    ids=["short answer", "long question", "supported", "unsupported somewhere", "marked"],
)  # fmt: skip
def test_only_claims_whose_label_is_certain_are_trained_on(
    modules: dict[str, ModuleType], row: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    """Read as the service reads them: a short answer with its question."""
    assert list(modules["written"].labelled_claims(row)) == expected


def test_sources_are_left_out_and_splits_kept_apart(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    """A source that is left out is still measured."""
    for source in ("bump", "hagrid"):
        rows = [
            {"source": source, "premise": " ".join(OWN), "hypothesis": f"{OWN[0]} {split}",
             "label": label, "split": split}
            for split in ("train", "dev") for label in ("entailment", "neutral")
        ]  # fmt: skip
        with gzip.open(tmp_path / f"{source}.jsonl.gz", "wt", encoding="utf-8") as stream:
            stream.write("\n".join(map(json.dumps, rows)))
    config = {"caps": {}, "near": 2, "leave_out": ["bump"], "written_dev": 10}
    written = modules["written"]
    trained = written.written_pairs(tmp_path, config, draw())
    assert {pair["source"] for pair in trained} == {"hagrid"}
    assert all(pair["claim"].endswith("train") for pair in trained)
    assert all(OWN[0] in pair["sentences"] and len(pair["sentences"]) <= 4 for pair in trained)
    measured = written.written_development(tmp_path, config, draw())
    assert {pair["source"] for pair in measured} == {"bump", "hagrid"}
    assert all(pair["claim"].endswith("dev") for pair in measured)
    assert len({pair["record"] for pair in measured}) == 4
