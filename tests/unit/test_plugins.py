"""Entry points of other distributions: listed without import, loaded by name, refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guardrail_service.errors import PluginError
from guardrail_service.plugins import COMMANDS, DETECTORS, installed, load
from tests.plugged import unpack

MODULE = "acme_of_the_plugin_tests"


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a distribution's name, with one entry point that works and two that do not."""
    points = {
        DETECTORS: {"works": f"{MODULE}:VALUE", "lacks": f"{MODULE}:ABSENT"},
        COMMANDS: {"missing": "acme_that_is_nowhere:app"},
    }
    monkeypatch.syspath_prepend(
        unpack(tmp_path, "acme-tests", points, {MODULE: "VALUE = ['the value']\n"})
    )
    return "acme-tests"


def test_names_are_listed_by_group(acme: str) -> None:
    """And nothing is imported for it: one of them could not be."""
    assert {"works", "lacks"} <= set(installed(DETECTORS))
    assert "missing" in installed(COMMANDS)
    assert "missing" not in installed(DETECTORS)


def test_a_named_one_is_loaded(acme: str) -> None:
    """To whatever it stands for."""
    assert load(DETECTORS, "works") == ["the value"]


@pytest.mark.parametrize(
    ("group", "name", "found"),
    [
        (DETECTORS, "lacks", f"AttributeError on import of {MODULE}:ABSENT"),
        (COMMANDS, "missing", "ModuleNotFoundError on import of acme_that_is_nowhere:app"),
        (DETECTORS, "unheard", "none"),
    ],
)
def test_one_that_cannot_be_loaded_is_a_typed_error(
    acme: str, group: Any, name: str, found: str
) -> None:
    """With its name, its group, what was found and what was expected."""
    with pytest.raises(PluginError) as caught:
        load(group, name)
    assert (caught.value.name, caught.value.group, caught.value.found) == (name, group, found)
    assert str(caught.value).startswith(f"plug-in {name!r} ({group}): found {found}; expected ")


def test_two_distributions_with_one_name_are_named(
    acme: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that one of them can be removed."""
    other = unpack(
        tmp_path_factory.mktemp("other"), "other", {DETECTORS: {"works": "json:dumps"}}, {}
    )
    monkeypatch.syspath_prepend(other)
    with pytest.raises(PluginError, match="found acme-tests, other; expected one distribution"):
        load(DETECTORS, "works")
