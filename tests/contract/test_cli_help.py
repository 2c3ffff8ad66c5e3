"""Every command, argument and option says what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from guardrail_service.commands.main import app

ROOT = typer.main.get_command(app)


def commands(
    command: Any, path: str = "guardrail", parent: Any = None
) -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name, those of other distributions, too."""
    yield path, command
    if not hasattr(command, "list_commands"):
        return
    context = typer.Context(command, parent=parent, info_name=path.rpartition(" ")[2])
    for name in command.list_commands(context):
        yield from commands(command.get_command(context, name), f"{path} {name}", context)


COMMANDS = dict(commands(ROOT))


def test_the_published_commands_exist() -> None:
    """Documents and habits name these."""
    assert set(COMMANDS) >= {
        "guardrail serve",
        "guardrail check",
        "guardrail config check",
        "guardrail models list",
        "guardrail models verify",
        "guardrail bench start",
    }


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_help_that_says_more_than_its_name(path: str) -> None:
    """And ends with status 0 when asked for it."""
    command = COMMANDS[path]
    assert command.help
    assert len(command.help) > 15
    shown = CliRunner().invoke(app, [*path.split()[1:], "--help"], env={"COLUMNS": "300"})
    assert shown.exit_code == 0
    assert command.help.splitlines()[0][:40] in shown.stdout


@pytest.mark.parametrize(
    ("path", "name"),
    [(path, p.name) for path, command in COMMANDS.items() for p in command.params],
)
def test_every_option_and_argument_has_help(path: str, name: str) -> None:
    """A reader should not need the source."""
    (parameter,) = (p for p in COMMANDS[path].params if p.name == name)
    assert getattr(parameter, "help", None)


@pytest.mark.parametrize("path", [p for p, c in COMMANDS.items() if hasattr(c, "list_commands")])
def test_a_group_alone_shows_what_it_offers(path: str) -> None:
    """Instead of doing nothing."""
    offered = [other.rpartition(" ")[2] for other in COMMANDS if other.rpartition(" ")[0] == path]
    shown = CliRunner().invoke(app, path.split()[1:])
    assert "Usage:" in shown.output
    assert all(name in shown.output for name in offered)


def test_an_unknown_option_is_a_usage_error() -> None:
    """With status 2 and no traceback."""
    shown = CliRunner().invoke(app, ["serve", "--prot", "1"])
    assert shown.exit_code == 2
    assert "--prot" in shown.output
    assert "Traceback" not in shown.output


def test_the_version_is_printed() -> None:
    """The installed one."""
    from guardrail_service import __version__

    assert CliRunner().invoke(app, ["--version"]).stdout.strip() == __version__
