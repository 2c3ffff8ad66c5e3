"""Addresses are copied here and back; paths are left alone, and need no package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from guardrail_offline.datasets.remote_files import lab_here, places_here
from guardrail_service.errors import MissingExtra


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_path_is_a_path_and_needs_no_package(
    tmp_path: Path, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with `file://` in front, and with a blank in it."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    lab = str(tmp_path / "a lab.jsonl")
    with places_here(f"{scheme}{lab}".replace(" ", "%20" if scheme else " "), "out") as places:
        assert (places.lab, places.out, places.far) == (Path(lab), Path("out"), None)


def test_without_the_package_an_address_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For labs as for results."""
    for name in ("fsspec", "fsspec.core"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"rag-guardrail-offline\[remote\]"):
        lab_here("s3://bucket/lab.jsonl", tmp_path)
