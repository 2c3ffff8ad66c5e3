"""Packs for `guardrail bench models`: real sizes, built apart from being measured."""

from __future__ import annotations

from pathlib import Path

from guardrail_models import timing_packs
from guardrail_service.errors import PackError
from guardrail_service.inference.pack import load_pack


def test_a_real_size_pack_is_built_once(tmp_path: Path) -> None:
    """What cannot be built says why and does not stop the rest; no half is left behind."""
    (recipe,) = timing_packs.chosen(["all-minilm-l6-v2"])
    blocked = timing_packs.place(recipe, tmp_path, "int8-dynamic")
    blocked.parent.mkdir()
    blocked.write_text("in the way")
    found = timing_packs.build(recipe, tmp_path, ["int8-dynamic", "fp16"])
    refused, pack = found["int8-dynamic"], found["fp16"]
    assert isinstance(refused, PackError)
    assert "building ended with 1: FileExistsError" in str(refused)
    assert isinstance(pack, Path)
    file = load_pack(pack).model("embedding")
    assert file.max_tokens == timing_packs.LONGEST
    assert 40e6 < file.bytes < 50e6  # 22.6 million weights in 16 bits
    assert sorted(path.name for path in tmp_path.iterdir()) == ["packs"]
    before = (pack / "manifest.json").stat().st_mtime_ns
    assert timing_packs.build(recipe, tmp_path, ["fp16"]) == {"fp16": pack}
    assert (pack / "manifest.json").stat().st_mtime_ns == before
