"""Packs on disk: what is missing, changed or malformed is named before a model is opened."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from guardrail_service.errors import PackError
from guardrail_service.inference.pack import (
    load_pack,
    read_manifest,
    resolve,
    write_manifest,
)
from guardrail_service.resources import packs_dir

FILES = ["model.onnx", "tokenizer.json", "golden.json"]


@pytest.fixture
def pack(tiny: Path, tmp_path: Path) -> Path:
    """A copy of the tiny pack to damage."""
    return Path(shutil.copytree(tiny, tmp_path / "tiny"))


def edit(pack: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest."""
    manifest = json.loads((pack / "manifest.json").read_text())
    change(manifest)
    (pack / "manifest.json").write_text(json.dumps(manifest))


def test_an_unchanged_pack_loads(pack: Path) -> None:
    """It knows its roles and where its files lie."""
    loaded = load_pack(pack)
    assert loaded.name == "tiny"
    assert loaded.roles == ("embedding",)
    assert loaded.path(loaded.model("embedding")) == pack / "model.onnx"
    with pytest.raises(KeyError):
        loaded.model("toxicity")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(name: str, pack: Path) -> None:
    """With what to do about it."""
    (pack / name).unlink()
    with pytest.raises(PackError, match=f"{name}: missing.*Re-install"):
        load_pack(pack)


def flipped(data: bytes) -> bytes:
    """Return the same with one bit of the middle changed."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-1], "truncated: found .* bytes"),
        (lambda data: data + b" ", "changed"),
        (flipped, "changed: found sha256"),
    ],
    ids=["truncated", "longer", "one bit"],
)
def test_a_damaged_file_is_named(
    damage: Callable[[bytes], bytes], says: str, name: str, pack: Path
) -> None:
    """The size is compared before anything is hashed; the hash sees what the size does not."""
    path = pack / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(PackError, match=f"{name}: {says}"):
        load_pack(pack)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda m: m.pop("name"), "name"),
        (lambda m: m.update(schema_version="2"), "schema_version"),
        (lambda m: m.update(extra=1), "extra"),
        (lambda m: m.update(roles={"embedding": "other"}), "names the model other"),
        (lambda m: m.update(roles={"Astrology!": "tiny"}), "roles"),
        (lambda m: m["models"]["tiny"].update(kind=1), "kind"),
        (lambda m: m["models"]["tiny"].update(sha256="abc"), "sha256"),
        (lambda m: m["models"]["tiny"].update(max_tokens=2), "max_tokens"),
        (lambda m: m["models"]["tiny"].update(batch_rule="any"), "batch_rule"),
        (lambda m: m["models"]["tiny"]["tokenizer"].update(bytes=0), "tokenizer.bytes"),
    ],
)
def test_a_malformed_manifest_names_the_key(
    change: Callable[[dict[str, Any]], object], key: str, pack: Path
) -> None:
    """File and key, not a traceback."""
    edit(pack, change)
    with pytest.raises(PackError, match=key) as caught:
        read_manifest(pack)
    assert "manifest.json" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"null"])
def test_a_manifest_that_is_no_object_is_named(content: bytes, pack: Path) -> None:
    """Whatever lies there instead."""
    (pack / "manifest.json").write_bytes(content)
    with pytest.raises(PackError, match=r"manifest\.json"):
        read_manifest(pack)


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../b", "a\\..\\b"])
def test_a_file_outside_the_folder_is_refused(path: str, pack: Path) -> None:
    """A pack from elsewhere must not read what is not its own."""
    edit(pack, lambda m: m["models"]["tiny"].update(path=path))
    with pytest.raises(PackError, match="inside the pack's folder"):
        read_manifest(pack)


def test_the_fingerprint_moves_with_everything_that_moves_scores(pack: Path) -> None:
    """Weights, tokenizer, row length, batch rule and labels; a changed source does not."""
    before = read_manifest(pack).models["tiny"].fingerprint()

    def changed(change: Callable[[dict[str, Any]], object]) -> bool:
        copy = json.loads((pack / "manifest.json").read_text())
        edit(pack, lambda m: change(m["models"]["tiny"]))
        found = read_manifest(pack).models["tiny"].fingerprint()
        (pack / "manifest.json").write_text(json.dumps(copy))
        return found != before

    assert changed(lambda m: m.update(sha256="0" * 64))
    assert changed(lambda m: m["tokenizer"].update(sha256="0" * 64))
    assert changed(lambda m: m.update(max_tokens=31))
    assert changed(lambda m: m.update(batch_rule="token_budget"))
    assert changed(lambda m: m.update(labels=["a", "b"]))
    assert not changed(lambda m: m["source"].update(revision="2"))


def sealed(pack: Path) -> Path:
    """Seal a copy of the pack as whatever makes an entry does."""
    write_manifest(pack, json.loads((pack / "manifest.json").read_text()))
    return pack


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(name="other"),
        lambda m: m["models"]["tiny"].update(max_tokens=31),
        lambda m: m["models"]["tiny"].update(batch_rule="token_budget"),
        lambda m: m["models"]["tiny"]["source"].update(license="MIT"),
        lambda m: m["models"]["tiny"].update(padding={"side": "right", "id": 0}),
        lambda m: m.update(seal="0" * 64),
    ],
)
def test_a_sealed_manifest_that_was_edited_is_refused(
    change: Callable[[dict[str, Any]], object], pack: Path
) -> None:
    """Whatever was edited; the message says what to do instead."""
    assert load_pack(sealed(pack)).manifest.seal is not None
    edit(pack, change)
    with pytest.raises(PackError, match=r"edited by hand.*Make the entry again"):
        read_manifest(pack)


def test_a_manifest_is_sealed_again_when_it_is_written(pack: Path) -> None:
    """An entry that was made anew replaces the old seal; what is no manifest is not written."""
    first = load_pack(sealed(pack)).manifest
    content = first.model_dump(mode="json")
    content["models"]["tiny"]["max_tokens"] = 31
    write_manifest(pack, content)
    assert load_pack(pack).manifest.seal not in (None, first.seal)
    before = (pack / "manifest.json").read_bytes()
    with pytest.raises(ValidationError, match="not in `models`"):
        write_manifest(pack, {**content, "models": {}})
    assert (pack / "manifest.json").read_bytes() == before


def test_the_shipped_manifest_edited_by_hand_is_refused(tmp_path: Path) -> None:
    """It is sealed like an export; every key of it counts."""
    shipped = packs_dir() / "embedded" / "manifest.json"
    content = json.loads(shipped.read_bytes())
    assert read_manifest(shipped.parent).seal == content["seal"]
    content["models"][content["roles"]["toxicity"]]["labels"].reverse()
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(PackError, match=r"manifest\.json: edited by hand: found seal"):
        read_manifest(tmp_path)


def test_the_seal_of_an_export_cannot_be_left_out(pack: Path) -> None:
    """Or an edit would only have to take it away, too."""
    edit(pack, lambda m: m["models"]["tiny"].update(padding={"side": "right", "id": 0}))
    with pytest.raises(PackError, match="seal: found none"):
        read_manifest(pack)


def other(pack: Path, **changed: Any) -> dict[str, Any]:
    """Return another model's entry over the same file."""
    entry = json.loads((pack / "manifest.json").read_text())["models"]["tiny"]
    return {**entry, **changed}


def test_a_roles_fingerprint_moves_with_the_models_it_reads(pack: Path) -> None:
    """A head's scores change with its encoder, a cross-encoder's with what chooses its evidence."""

    def grounded(**below: Any) -> str:
        change = {"encoder": "tiny", "max_tokens": 40}
        edit(pack, lambda m: m["models"].update(tiny=other(pack, **below)))
        edit(pack, lambda m: m["models"].update(head=other(pack, **change)))
        edit(pack, lambda m: m["roles"].update(grounding="head"))
        return load_pack(pack).fingerprint("grounding")

    before = grounded(max_tokens=32)
    assert grounded(max_tokens=32) == before
    assert grounded(max_tokens=31) != before
    edit(pack, lambda m: m["models"]["head"].update(encoder=None))
    chosen = load_pack(pack).fingerprint("grounding")
    edit(pack, lambda m: m["models"]["tiny"].update(max_tokens=30))
    assert load_pack(pack).fingerprint("grounding") != chosen
    assert (
        load_pack(pack).fingerprint("embedding") == load_pack(pack).model("embedding").fingerprint()
    )


def test_a_model_cannot_read_itself(pack: Path) -> None:
    """Through however many others."""
    edit(pack, lambda m: m["models"].update(a=other(pack, encoder="b")))
    edit(pack, lambda m: m["models"].update(b=other(pack, encoder="a")))
    with pytest.raises(PackError, match="reads itself"):
        read_manifest(pack)


def test_a_pack_is_found_by_name_before_path(pack: Path, tmp_path: Path) -> None:
    """Shipped packs have names; others are folders."""
    assert resolve("tiny", tmp_path) == tmp_path / "tiny"
    assert resolve(str(pack), tmp_path / "nowhere") == pack


def test_an_unknown_pack_lists_those_that_exist(pack: Path, tmp_path: Path) -> None:
    """The message says what could have been meant."""
    with pytest.raises(PackError, match=r"'huge'.*shipped pack \(tiny\)"):
        resolve("huge", tmp_path)
    with pytest.raises(PackError, match="none found"):
        resolve("huge", tmp_path / "nowhere")
