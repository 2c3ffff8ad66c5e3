"""Every import path of version 0.1.0 works, or says in one line where its contents are now."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from guardrail_service.moved import MOVED

MODULES = Path(__file__).with_name("modules_of_0_1_0.txt").read_text().split()


@pytest.mark.parametrize("name", MODULES)
def test_an_old_module_is_there_or_says_where_it_is(name: str) -> None:
    """The message names a place that exists, and is one line."""
    try:
        found = find_spec(name)
    except ModuleNotFoundError as error:
        pytest.fail(f"{error}: name its new place in guardrail_service/moved.py")
    except ImportError as error:
        said = str(error)
    else:
        assert found is not None, "name its new place in guardrail_service/moved.py"
        return
    place = said.partition("look in ")[2].split()[0]
    assert find_spec(place) is not None
    assert "\n" not in said


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_the_table_is_true(old: str, new: str) -> None:
    """The old place is gone, the new one exists; a name that moved is found there."""
    assert find_spec(new) is not None
    with pytest.raises(ImportError, match=f"{old} moved in version 0.2: look in {new}"):
        importlib.import_module(old)
    name = old.rpartition(".")[2]
    if name[0].isupper():
        assert hasattr(importlib.import_module(new), name)


def test_a_name_that_left_its_module_says_where_it_is() -> None:
    """`guard` is a package now; what was in the module is in one of its files."""
    with pytest.raises(ImportError, match=r"look in guardrail_service\.guard\.waiting"):
        exec("from guardrail_service.guard import Cancellation")  # noqa: S102 - our own words


def test_a_module_that_never_was_is_not_found_as_ever() -> None:
    """The table answers for what it lists only."""
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("guardrail_service.no_such_module")
