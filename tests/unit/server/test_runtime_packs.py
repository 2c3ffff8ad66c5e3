"""Which models stand beside the selected pack, and which of its roles nothing reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.errors import PackError
from guardrail_service.inference.pack import load_pack
from guardrail_service.server.runtime import refuse_unread, with_models_of
from tests import tiny_pack, tiny_reference


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Return a pack with an encoder."""
    return tiny_pack.build(tmp_path / "pack")


def serving(folder: Path, **roles: str) -> Path:
    """Return a pack that serves these roles and no others."""
    tiny_reference.change(folder, lambda manifest: manifest.update(roles=roles))
    return folder


def test_a_role_that_nothing_reads_is_refused_with_a_suggestion(pack: Path) -> None:
    """It is most likely misspelt, and its detector would find no model."""
    with pytest.raises(PackError, match=r"found 'embeding'.*did you mean 'embedding'"):
        refuse_unread(load_pack(serving(pack, embeding="tiny")))
    refuse_unread(load_pack(serving(pack, embedding="tiny")))


@pytest.mark.parametrize("own", [True, False])
def test_a_detectors_own_pack_serves_what_the_selected_one_lacks(
    own: bool, pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role that the selected pack serves itself stays its own."""
    brought = tiny_pack.build(tmp_path / "brought", seed=9)
    monkeypatch.setattr(type(REGISTRY["groundedness"]), "pack", brought)
    selected = load_pack(pack if own else serving(pack, nli="tiny"))
    joined: Any = with_models_of(selected, ["groundedness", "looping"])
    assert joined.owner("embedding").folder == (pack if own else brought)


def test_a_pack_that_lacks_the_role_of_its_detector_is_named(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it has instead."""
    brought = serving(tiny_pack.build(tmp_path / "brought"), embeddings="tiny")
    monkeypatch.setattr(type(REGISTRY["groundedness"]), "pack", brought)
    with pytest.raises(PackError, match=r"found no role 'embedding'.*did you mean 'embeddings'"):
        with_models_of(load_pack(serving(pack, nli="tiny")), ["groundedness"])
