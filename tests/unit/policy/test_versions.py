"""A folder of policy versions: what is added stays, what is live changes whole, all is noted."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.served import Canary
from guardrail_service.policy.versions import (
    add_version,
    checked_path,
    promote,
    read_folder,
    read_policy,
    rollback,
    set_canary,
    set_shadow,
)

Add = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with three versions of one policy, none of them live."""
    for deadline in (1, 2, 3):
        add_version(tmp_path / "policies", source(tmp_path, deadline), why="to try", by="ada")
    return tmp_path / "policies"


def source(folder: Path, deadline: int) -> Path:
    """Write a guardrail JSON that differs by its deadline."""
    path = folder / "given.json"
    block = {"name": "support", "deadline_ms": deadline}
    path.write_text(json.dumps({"evaluator_ids": ["looping"], "policy": block}))
    return path


def live(folder: Path) -> str | None:
    """Return the live version."""
    return read_policy(folder, "support").alias.live


def test_versions_are_numbered_and_kept_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    """The ledger says who, when, why, and the hash."""
    (policy,) = read_folder(folder)
    assert list(policy.versions) == ["1", "2", "3"]
    assert policy.version("3").address == "support@3"
    assert checked_path(policy.version("3")).read_bytes() == (tmp_path / "given.json").read_bytes()
    assert {(line.by, line.why) for line in policy.lines} == {("ada", "to try")}
    assert live(folder) is None


def test_promote_and_rollback_walk_through_what_was_live(folder: Path) -> None:
    """A rollback undoes a promotion, the next one the promotion before."""
    for version in ("1", "3", "2"):
        promote(folder, "support", version)
    seen = []
    for _ in range(2):
        rollback(folder, "support", why="worse")
        seen.append(live(folder))
    assert seen == ["3", "1"]
    with pytest.raises(ConfigurationError, match="no version that was live before"):
        rollback(folder, "support")
    promote(folder, "support", "2")
    assert rollback(folder, "support").version == "1"
    events = [line.event for line in read_policy(folder, "support").lines[3:]]
    assert events == ["promote"] * 3 + ["rollback"] * 2 + ["promote", "rollback"]


def test_what_goes_live_is_no_longer_on_trial_or_in_the_shadow(folder: Path) -> None:
    """What else is there stays."""
    promote(folder, "support", "1")
    set_shadow(folder, "support", ("2", "3", "2"))
    set_canary(folder, "support", "2", 0.25)
    alias = read_policy(folder, "support").alias
    assert (alias.shadow, alias.canary and alias.canary.share) == (("2", "3"), 0.25)
    assert alias.needed == ("1", "2", "3")
    promote(folder, "support", "2")
    alias = read_policy(folder, "support").alias
    assert (alias.live, alias.shadow, alias.canary) == ("2", ("3",), None)
    set_shadow(folder, "support", ())
    set_canary(folder, "support", "3", 1.0)
    set_canary(folder, "support", None)
    assert read_policy(folder, "support").alias.needed == ("2",)


def test_a_version_that_was_changed_is_refused(folder: Path) -> None:
    """By promotion as by whoever loads it."""
    path = folder / "support" / "2.json"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(ConfigurationError, match="other bytes than the ledger says"):
        promote(folder, "support", "2")
    assert live(folder) is None


def test_what_a_killed_writer_left_is_no_version(folder: Path, tmp_path: Path) -> None:
    """Half a line is no line, and a file that the ledger does not name is passed over."""
    ledger = folder / "support" / "versions.jsonl"
    with ledger.open("ab") as file:
        file.write(b'{"event":"add","version":"4","sha')
    (folder / "support" / "4.json").write_text("{")
    assert list(read_policy(folder, "support").versions) == ["1", "2", "3"]
    assert add_version(folder, source(tmp_path, 9)).version == "5"
    assert list(read_policy(folder, "support").versions) == ["1", "2", "3", "5"]


def test_a_file_that_is_a_version_already_becomes_none_again(folder: Path, tmp_path: Path) -> None:
    """The newest such version is named, and the ledger has no further line."""
    again = add_version(folder, source(tmp_path, 2))
    assert (again.version, again.is_new) == ("2", False)
    assert len(read_policy(folder, "support").lines) == 3
    (folder / "support" / "2.json").write_text("{}")
    new = add_version(folder, source(tmp_path, 2))
    assert (new.version, new.is_new) == ("4", True)
    assert add_version(folder, source(tmp_path, 2)).version == "4"


def test_many_who_add_at_once_get_numbers_of_their_own(folder: Path, tmp_path: Path) -> None:
    """Nothing is overwritten."""
    files = [source(tmp_path, n).rename(tmp_path / f"{n}.json") for n in range(16, 32)]
    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda file: add_version(folder, file), files))
    assert sorted(int(line.version) for line in added) == list(range(4, 20))
    assert len(read_policy(folder, "support").versions) == 19
    assert not [path for path in (folder / "support").iterdir() if path.name.startswith("..")]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda f, s: add_version(f, s(0)), "deadline_ms"),
        (lambda f, s: add_version(f, s(1), name="../up"), "no name"),
        (lambda f, s: promote(f, "support", "9"), "version"),
        (lambda f, s: promote(f, "../../etc", "1"), "no name"),
        (lambda f, s: promote(f, "suport", "1"), "did you mean 'support'"),
        (lambda f, s: set_canary(f, "support", "1", 0.5), "promote one"),
        (lambda f, s: set_canary(f, "support", "1", 1.5), "at most 1"),
        (lambda f, s: set_shadow(f, "support", ("1", "9")), "version"),
    ],
)
def test_a_wrong_change_changes_nothing(
    folder: Path,
    tmp_path: Path,
    act: Callable[[Path, Callable[[int], Path]], object],
    message: str,
) -> None:
    """And says what is wrong."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(ConfigurationError, match=message):
        act(folder, lambda deadline: source(tmp_path, deadline))
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {path: text for path, text in after.items() if path.name != ".lock"} == {
        path: text for path, text in before.items() if path.name != ".lock"
    }


def test_a_folder_that_cannot_be_written_to_says_so(tmp_path: Path) -> None:
    """A mounted configuration is changed where it comes from."""
    (tmp_path / "policies").write_text("a file")
    with pytest.raises(ConfigurationError, match="folder"):
        add_version(tmp_path / "policies", source(tmp_path, 1))


def test_a_canary_takes_its_share_of_callers_always_the_same_ones() -> None:
    """Whoever is among a tenth is among a half; another version draws others."""
    policy = Policy("support", "4", "", {})
    callers = [f"key {n}" for n in range(4_000)]

    def taken(share: float, version: str = "4") -> set[str]:
        trial = Canary(Policy(policy.name, version, "", {}), share)
        return {caller for caller in callers if trial.takes(caller)}

    assert abs(len(taken(0.1)) - 400) < 80  # four standard deviations
    assert taken(0.1) < taken(0.5) < taken(1.0) == set(callers)
    assert taken(0.1) != taken(0.1, "5")
