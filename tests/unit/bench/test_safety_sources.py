"""Leaving sources out, with the branch that ships: few short texts, so that it stays quick."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from guardrail_bench import safety_sources
from guardrail_bench.quality import auroc
from guardrail_bench.safety_sources import (
    SourceText,
    head,
    markdown,
    read_folder,
    render,
    run,
    sampled,
    with_states,
)
from guardrail_service.errors import InputError
from tests import tiny_pack

TEXTS = {
    "toxicity": {
        "forum": (["You are an idiot.", "Shut up, moron."], ["Thank you.", "See you at noon."]),
        "chat": (["What a stupid bitch.", "Drop dead, loser."], ["Nice to meet you.", "Good."]),
    },
    "bias": {
        "posts": (["Women cannot drive.", "Girls are bad at maths."], ["She drives.", "It rains."]),
        "talk": (["All Muslims are violent.", "Gypsies steal."], ["He is a Muslim.", "It snows."]),
    },
}


def folder_of_texts(tmp_path: Path, copies: int = 2) -> Path:
    """Return a folder in which every source has each text so many times; `few` has two texts."""
    for task, sources in TEXTS.items():
        rows = [
            {"text": text, "label": int(is_bad), "source": source, "task": task}
            for source, both in sources.items()
            for is_bad, texts in zip((True, False), both, strict=True)
            for text in texts * copies
        ]
        few = [{"text": "Ugly pig.", "label": 1, "source": "few", "task": task}]
        for part in ("train", "dev"):
            page = "".join(json.dumps(row) + "\n" for row in [*rows, *few])
            (tmp_path / f"{task}_{part}.jsonl").write_text(page, encoding="utf-8")
    return tmp_path


def test_every_source_with_enough_texts_is_left_out_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A head that has seen the very texts ranks them; one text is no development set."""
    monkeypatch.setattr(safety_sources, "LEAST", 4)
    found = run(folder_of_texts(tmp_path), None, 40)
    assert [(one.task, one.source) for one in found] == [
        (task, source) for task, sources in TEXTS.items() for source in sources
    ]
    for one in found:
        assert (one.texts, one.bad) == (8, 4)
        assert one.known == {"branch": 1.0, "encoder": 1.0}
        assert all(0 <= area <= 1 for area in one.left_out.values())
    assert found[0].ships == 1.0
    page = markdown(found)
    assert page.count("\n") == len(found) + 2
    assert "| toxicity | forum | 8 | 4 | 1.000 | 1.000 |" in page
    console = Console(width=200)
    with console.capture() as captured:
        console.print(render(found))
    assert "chat" in captured.get()


def test_a_head_finds_the_direction_that_sources_share() -> None:
    """Each source has an offset of its own in the other direction."""
    rng = np.random.default_rng(5)

    def source(offset: float) -> tuple[Any, Any]:
        bad = rng.random(200) < 0.3
        return np.stack([bad + rng.normal(0, 0.3, 200), np.full(200, offset)], axis=1), bad

    features, bad = source(9.0)
    assert auroc(head([source(0.0), source(1.0)], features), bad) > 0.95


def test_at_most_half_of_the_drawn_texts_have_one_label() -> None:
    """Evenly over the file."""
    texts = [SourceText(str(i), i % 10 == 0, "a") for i in range(100)]
    found = sampled(texts, 20)
    assert [one.text for one in found if one.is_bad] == [str(i) for i in range(0, 100, 10)]
    assert sum(not one.is_bad for one in found) == 10
    assert len(sampled(texts[:5], 20)) == 5


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (None, r"bias_train\.jsonl\[\.gz\]"),
        ('{"text": "a", "label": 1}', "bias_train.jsonl:1.*expected text, label and source"),
    ],
    ids=["no file", "no source"],
)
def test_a_bad_folder_is_refused(tmp_path: Path, line: str | None, told: str) -> None:
    """By the name of the file, and the line."""
    path = folder_of_texts(tmp_path, 1) / "bias_train.jsonl"
    path.unlink() if line is None else path.write_text(line, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read_folder(tmp_path, "train")


def test_a_branch_without_layers_is_refused(tmp_path: Path) -> None:
    """Heads need states to stand on."""
    folder = tiny_pack.build(tmp_path)
    tiny_pack.add_branch(folder, roles=["toxicity", "bias"], labels=None)
    with pytest.raises(InputError, match=r"branch\.onnx: found no layer"):
        with_states(folder / "branch.onnx")
