"""Commands of other distributions: they are offered, and a broken one breaks nothing but itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from guardrail_service.commands.main import app
from guardrail_service.plugins import COMMANDS
from tests.plugged import unpack

MODULE = "acme_of_the_command_tests"
SOURCE = '''
def greet(name: str) -> None:
    """Greet somebody."""
    print("Hello", name)


def strange(name: int | str) -> None:
    """Take what no command line can give."""


NUMBER = 7
'''


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution with a sound command, broken ones, and one under `models`."""
    values = {
        "greet": "greet",
        "models.greet": "greet",
        "strange": "strange",
        "number": "NUMBER",
        "serve": "greet",
    }
    points = {name: f"{MODULE}:{value}" for name, value in values.items()}
    points["gone"] = "acme_that_is_nowhere:app"
    monkeypatch.syspath_prepend(unpack(tmp_path, "acme", {COMMANDS: points}, {MODULE: SOURCE}))


def run(*words: str) -> Result:
    """Run the `guardrail` command."""
    return CliRunner().invoke(app, words)


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("words", [("greet",), ("models", "greet")])
def test_a_command_of_another_distribution_runs(words: tuple[str, ...]) -> None:
    """At the top or inside a group."""
    assert run(*words, "Ada").output == "Hello Ada\n"


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone", "ModuleNotFoundError on import of acme_that_is_nowhere:app"),
        ("number", "found int; expected a typer.Typer or a function"),
        ("strange", "plug-in 'strange' (rag_guardrail.commands): AssertionError"),
    ],
)
def test_a_broken_one_says_so_in_one_line(name: str, message: str) -> None:
    """And ends with an error."""
    done = run(name, "--whatever", "x")
    assert done.exit_code != 0
    assert message in " ".join(done.output.split())


@pytest.mark.usefixtures("acme")
def test_a_broken_one_breaks_no_other_command() -> None:
    """Not the help, which asks all of them, and not one that it tries to take the place of."""
    helped = run("--help")
    assert helped.exit_code == 0
    assert all(name in helped.output for name in ("serve", "greet", "gone", "strange"))
    assert "Greet somebody" not in run("serve", "--help").output
