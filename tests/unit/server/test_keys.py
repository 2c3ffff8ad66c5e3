"""Keys: those of a list and those of a file, what each allows, and when a file is read again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from guardrail_service.errors import ConfigurationError, KeyExpired, KeyRevoked
from guardrail_service.server.keys import Keys, digest_of, key_id, read_keys_file, read_ring, ring
from guardrail_service.settings import Settings
from guardrail_service.types import ANONYMOUS, Caller, Rate

SALT = "ab" * 32


def entry(key: str, **given: Any) -> dict[str, Any]:
    """Return an entry of a keys file for a key, its id the key itself."""
    return {"id": key, "digest": digest_of(bytes.fromhex(SALT), key.encode()).hex(), **given}


def keys_file(folder: Path, *entries: dict[str, Any], **given: Any) -> Path:
    """Write a JSON file of keys."""
    path = folder / "keys.json"
    path.write_text(json.dumps({"salt": SALT, "keys": entries, **given}))
    return path


def label(keys: Keys, key: str) -> str | None:
    """Return what the log calls a key."""
    found = keys.find(key.encode())
    return found and found.caller.label


def test_a_file_of_keys_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """A file that cannot be used leaves the last good keys in force."""
    file = tmp_path / "keys"
    file.write_text("one\n")
    settings = Settings(api_keys=("fixed",), api_keys_file=file)
    keys = Keys(lambda: read_ring(settings), file)
    for content, known in (("one\ntwo\n", "two"), ("three\n", "three"), ("# none left\n", "three")):
        file.write_text(content)
        keys.renew()
        keys.renew()
        assert label(keys, known) == key_id(known.encode())
        assert keys.find(b"fixed") is not None
    assert keys.find(b"one") is None
    file.unlink()
    keys.renew()
    assert keys.find(b"three") is not None
    os.mkfifo(file)  # nobody ever writes into it
    keys.renew()
    keys.renew()
    assert label(keys, "three") == key_id(b"three")
    with pytest.raises(ConfigurationError, match="no regular file"):
        read_ring(settings)


def test_half_a_file_of_keys_is_not_read(tmp_path: Path) -> None:
    """The beginning of a key is no key; what was changed long ago is read at the first look."""
    file = tmp_path / "keys"
    file.write_text("one\n")
    keys = Keys(lambda: ring(file.read_bytes().split()), file)
    for content in ("one\nse", "one\nsecret"):
        file.write_text(content)
        keys.renew()
        assert keys.find(content.encode()[4:]) is None
    keys.renew()
    assert keys.find(b"secret") is not None
    file.write_text("other\n")
    os.utime(file, (1e9, 1e9))
    keys.renew()
    assert keys.find(b"secret") is None


def test_a_key_is_named_by_its_hash_and_never_shown() -> None:
    """The same name after a restart, whatever the order of keys."""
    assert key_id(b"right") == label(Keys(lambda: ring([b"other", b"right"])), "right")
    assert len(key_id(b"right")) == 8
    assert Keys(lambda: ring([b"right"])).find(b"wrong") is None


def test_a_file_with_rights_and_plain_keys_stand_beside_each_other(tmp_path: Path) -> None:
    """A plain key may ask for checks and give feedback, under every policy."""
    limits = {"rate": "600/minute", "concurrency": 8, "policies": ["support", "sales@*"]}
    path = keys_file(tmp_path, entry("one", rights=["check"], **limits), entry("two"))
    settings = Settings(api_keys=("plain",), api_keys_file=path)
    keys = Keys(lambda: read_ring(settings), path)
    one, two, plain = (keys.find(key) for key in (b"one", b"two", b"plain"))
    assert one is not None
    assert two is not None
    assert plain is not None
    assert one.caller == Caller(
        "one", frozenset({"check"}), ("support", "sales@*"), False, Rate(600, 60), 8, "one"
    )
    assert two.caller.rights == plain.caller.rights == {"check", "feedback"} == ANONYMOUS.rights
    assert (two.caller.overrides, plain.caller.overrides) == (False, True)
    assert plain.caller.id == f"key-{key_id(b'plain')}"
    assert keys.find(b"three") is None


@pytest.mark.parametrize(
    ("policies", "policy", "may"),
    [
        (None, "any", True),
        (("a",), "a", True),
        (("a",), "a@2", False),
        (("a@2",), "a@2", True),
        (("a@2",), "a", False),
        (("a@*",), "a@7", True),
        (("a@*",), "a", True),
        (("a@*",), "ab@7", False),
    ],
)
def test_a_key_names_the_policies_it_may_use(
    policies: tuple[str, ...] | None, policy: str, may: bool
) -> None:
    """A version only where it is named, or all of them are."""
    assert Caller("x", policies=policies).may_use(policy) is may


def test_a_key_whose_time_is_over_says_so(tmp_path: Path) -> None:
    """Who sends it proves to know it, so nothing is given away."""
    past, future = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
    path = keys_file(
        tmp_path,
        entry("old", expires=past),
        entry("gone", revoked=past, expires=past),
        entry("good", expires=future),
    )
    held = ring((), read_keys_file(path)).known.values()
    refusals = {key.caller.id: type(key.refusal()) for key in held}
    assert refusals == {"old": KeyExpired, "gone": KeyRevoked, "good": type(None)}


@pytest.mark.parametrize(
    ("entries", "given", "where"),
    [
        ([entry("a"), entry("a")], {}, "keys: found one id twice"),
        ([entry("a"), {**entry("b"), "digest": entry("a")["digest"]}], {}, "one digest twice"),
        ([entry("a", rate="0/minute")], {}, "keys.0.rate"),
        ([entry("a", rate="5/day")], {}, "keys.0.rate"),
        ([entry("a", concurrency=0)], {}, "keys.0.concurrency"),
        ([entry("a", rights=["root"])], {}, "keys.0.rights.0"),
        ([entry("a", policies=[])], {}, "keys.0.policies"),
        ([entry("a", expires="2027-01-01T00:00:00")], {}, "keys.0.expires"),
        ([entry("a", secret="zq9")], {}, "keys.0.secret"),
        ([entry("a b")], {}, "keys.0.id"),
        ([{"id": "a", "digest": "zq9"}], {}, "keys.0.digest"),
        ([], {"salt": "zq9"}, "salt"),
    ],
)
def test_a_wrong_file_names_the_field_and_no_value(
    tmp_path: Path, entries: list[dict[str, Any]], given: dict[str, Any], where: str
) -> None:
    """A message may stand in a log; a key pasted in the wrong place must not."""
    with pytest.raises(ConfigurationError) as refused:
        read_keys_file(keys_file(tmp_path, *entries, **given))
    assert where in str(refused.value)
    assert "zq9" not in str(refused.value)
