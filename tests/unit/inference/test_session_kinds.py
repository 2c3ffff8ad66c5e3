"""What a manifest says about its models, and what runs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrail_service.errors import PackError, PluginError
from guardrail_service.inference.models.classifier import ClassifierSession
from guardrail_service.inference.models.encoder import BranchClassifier, SharedEncoder
from guardrail_service.inference.pack import Pack, load_pack
from guardrail_service.inference.session_kinds import golden_form, kind_of, open_sessions
from guardrail_service.plugins import SESSIONS
from guardrail_service.policy.fingerprints import fingerprints
from guardrail_service.resources import packs_dir
from tests import tiny_pack, tiny_reference
from tests.plugged import unpack

MODULE = "acme_of_the_session_tests"
SOURCE = """
from guardrail_service.inference.models.classifier import ClassifierSession
from guardrail_service.inference.session_kinds import SessionKind

STATED = SessionKind("acme_kind", lambda o: ClassifierSession(o.pack, o.role), "texts", "acme/1")
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Return a pack with an encoder, a branch of it and a classifier."""
    folder = tiny_pack.build(tmp_path / "pack")
    tiny_pack.add_branch(folder, roles=["bias"], labels=["fairness_bias"])
    labels = tiny_reference.TOXICITY
    model = tiny_reference.classifier(labels)
    tiny_reference.add(folder, "toxicity", model, labels=labels, activation="sigmoid")
    return folder


def stating(folder: Path, **kinds: str) -> Pack:
    """Return a pack after its manifest has been made to state kinds."""

    def edit(manifest: dict[str, Any]) -> None:
        for model, kind in kinds.items():
            manifest["models"][model]["kind"] = kind

    tiny_reference.change(folder, edit)
    return load_pack(folder)


def test_an_older_manifest_says_it_by_role_and_inputs(pack: Path) -> None:
    """Packs that were made before the key existed go on working."""
    loaded = load_pack(pack)
    found = {role: kind_of(loaded, role).name for role in loaded.roles}
    assert found == {"embedding": "encoder", "toxicity": "classifier", "bias": "branch"}


def test_the_shipped_pack_states_what_would_be_derived() -> None:
    """So the key changed nothing about it."""
    folder = packs_dir() / "embedded"
    stated = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert {entry["kind"] for entry in stated["models"].values()} == {"encoder", "head", "branch"}
    loaded = load_pack(folder)
    found = {role: kind_of(loaded, role).name for role in loaded.roles}
    assert found == {
        "embedding": "encoder",
        "grounding": "head",
        "toxicity": "branch",
        "bias": "branch",
    }


def test_a_stated_kind_moves_no_fingerprint(pack: Path) -> None:
    """Thresholds stay valid when a pack is exported again with the key."""
    before = fingerprints(load_pack(pack))
    after = fingerprints(stating(pack, tiny="encoder", toxicity="classifier", branch="branch"))
    assert after == before


def test_a_role_of_others_runs_by_its_models_kind(pack: Path) -> None:
    """Roles are names; the kind says what runs."""

    def edit(manifest: dict[str, Any]) -> None:
        manifest["roles"] |= {"acme_tone": "toxicity", "acme_frame": "branch", "acme_near": "tiny"}
        manifest["models"]["tiny"]["kind"] = "encoder"

    tiny_reference.change(pack, edit)
    loaded = load_pack(pack)
    sessions = open_sessions(loaded)
    assert loaded.roles[-3:] == ("acme_frame", "acme_near", "acme_tone")
    assert isinstance(sessions["acme_tone"], ClassifierSession)
    assert isinstance(sessions["acme_frame"], BranchClassifier)
    assert isinstance(sessions["acme_near"], SharedEncoder)
    assert golden_form(loaded, "acme_tone") == "texts"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("clasifier", "models.toxicity.kind: found 'clasifier'.*did you mean 'classifier'"),
        ("nothing like it", r"found 'nothing like it'; expected one of \d known kind"),
    ],
)
def test_an_unknown_kind_is_named_with_suggestions(kind: str, message: str, pack: Path) -> None:
    """Model, what was found, and what it may have been meant to be."""
    with pytest.raises(PackError, match=message):
        open_sessions(stating(pack, toxicity=kind))


@pytest.mark.parametrize("kind", ["head", "branch"])
def test_a_kind_that_reads_states_needs_them(kind: str, pack: Path) -> None:
    """A text classifier is no branch, whatever its manifest says."""
    with pytest.raises(PackError):
        open_sessions(stating(pack, toxicity=kind))


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Install a distribution that brings kinds of sessions."""

    def install(**points: str) -> None:
        values = {name: f"{MODULE}:{value}" for name, value in points.items()}
        folder = tmp_path / "installed"
        folder.mkdir()
        unpack(folder, "acme-kinds", {SESSIONS: values}, {MODULE: SOURCE})
        monkeypatch.syspath_prepend(folder)

    return install


def test_a_plugged_in_kind_runs_and_is_part_of_the_fingerprint(
    pack: Path, plug_in: Callable[..., None]
) -> None:
    """By its name in the manifest; its version stands in the fingerprint of the role."""
    before = fingerprints(load_pack(pack))
    plug_in(acme_kind="STATED")
    loaded = stating(pack, toxicity="acme_kind")
    assert isinstance(open_sessions(loaded)["toxicity"], ClassifierSession)
    after = fingerprints(loaded)
    assert after["toxicity"] == f"{before['toxicity']} acme/1"
    assert after["bias"] == before["bias"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("STATED", "found name 'acme_kind'; expected the entry point's own name"),
        ("ClassifierSession", "found type; expected a SessionKind"),
        ("ABSENT", "AttributeError on import"),
    ],
)
def test_a_plugged_in_kind_that_is_none_is_refused(
    value: str, message: str, pack: Path, plug_in: Callable[..., None]
) -> None:
    """In one line that names the plug-in."""
    plug_in(another=value)
    with pytest.raises(
        PluginError, match=rf"plug-in 'another' \(rag_guardrail.sessions\): .*{message}"
    ):
        open_sessions(stating(pack, toxicity="another"))


def test_roles_of_another_pack_stand_beside_its_own(pack: Path, tmp_path: Path) -> None:
    """Each with its own files, golden rows and fingerprint."""
    other = tiny_pack.build(tmp_path / "other", seed=9)
    tiny_reference.change(other, lambda m: m.update(roles={"acme_near": "tiny"}))
    mine, brought = load_pack(pack), load_pack(stating(other, tiny="encoder").folder)
    joined = mine.joined({"acme_near": brought})
    assert joined.roles == (*mine.roles, "acme_near")
    assert joined.golden("acme_near") == other / "golden.json"
    assert joined.golden("embedding") == pack / "golden.json"
    assert joined.fingerprint("acme_near") == brought.fingerprint("acme_near")
    assert joined.fingerprint("embedding") == mine.fingerprint("embedding")
    assert set(open_sessions(joined)) == set(joined.roles)
