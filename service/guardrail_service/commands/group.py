"""The commands of one group: our own, and those that installed distributions bring.

An entry point of the group `rag_guardrail.commands` names the command it brings: `evaluate` is
`guardrail evaluate`, `models.export` is `guardrail models export`. It loads to a `typer.Typer` or
to a function, and only when it is called or its help is asked for: `guardrail serve` imports none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from guardrail_service.commands.console import fail
from guardrail_service.errors import PluginError
from guardrail_service.plugins import COMMANDS, installed, load

if TYPE_CHECKING:
    from typer._click.core import Command, Context  # typer carries a click of its own

FROM_OFFLINE = "rag-guardrail-offline"
FROM_DECISIONS = "rag-guardrail-decisions"
FROM_MODELS = "rag-guardrail-models"
FROM_CLIENT = "rag-guardrail-client"
DISTRIBUTIONS = {
    "evaluate": FROM_OFFLINE,
    "compare": FROM_OFFLINE,
    "convert": FROM_OFFLINE,
    "perturb": FROM_OFFLINE,
    "report": FROM_OFFLINE,
    "plot": FROM_OFFLINE,
    "ask": FROM_OFFLINE,
    "calibrate": FROM_OFFLINE,
    "generate": FROM_OFFLINE,
    "grammar": FROM_OFFLINE,
    "judge": FROM_OFFLINE,
    "studio": FROM_OFFLINE,
    "workflow": FROM_OFFLINE,
    "evaluators": FROM_OFFLINE,
    "replay": FROM_OFFLINE,
    "decisions.report": FROM_OFFLINE,
    "decisions": FROM_DECISIONS,
    "decisions.sample": FROM_OFFLINE,
    "decisions.labels": FROM_OFFLINE,
    "models.export": FROM_MODELS,
    "models.recipes": FROM_MODELS,
    "proxy": FROM_CLIENT,
    "bench": "a checkout of the project (make demo)",
}
"""Commands that are ours but live elsewhere, and what brings them."""


class Commands(TyperGroup):
    """A command group that entry points may extend; its own commands come first."""

    def list_commands(self, ctx: Context) -> list[str]:
        """Return our own commands in the order they were added, then the ones brought along."""
        return [*self.commands, *sorted(set(self._brought(ctx)) - set(self.commands))]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Return a command; one that lies in a distribution that is not installed says which."""
        own = self.commands.get(cmd_name)
        if own is not None:
            return own
        brought = self._brought(ctx).get(cmd_name)
        if brought is not None:
            return _loaded(brought, cmd_name)
        full = _prefix(ctx) + cmd_name
        if full in DISTRIBUTIONS:
            spoken = full.replace(".", " ")
            return _failing(cmd_name, f"guardrail {spoken} needs {DISTRIBUTIONS[full]}: install it")
        return None

    def _brought(self, ctx: Context) -> dict[str, str]:
        """Return the entry points of this group by the command they bring."""
        prefix = _prefix(ctx)
        short = {point: point.removeprefix(prefix) for point in installed(COMMANDS)}
        return {
            name: point
            for point, name in short.items()
            if point.startswith(prefix) and "." not in name
        }


def _prefix(ctx: Context) -> str:
    """Return how entry points of this group begin: nothing at the root, `models.` under it."""
    names = []
    while ctx.parent is not None:
        names.append(ctx.info_name or "")
        ctx = ctx.parent
    return "".join(f"{name}." for name in reversed(names))


def _loaded(point: str, name: str) -> Command:
    """Return what an entry point brings. A broken one is a command that says so."""
    try:
        found = load(COMMANDS, point)
        if not isinstance(found, typer.Typer):
            if not callable(found):
                kind = type(found).__name__
                raise PluginError(point, COMMANDS, kind, "a typer.Typer or a function")
            alone = typer.Typer(add_completion=False)
            alone.command(name)(found)
            found = alone
        brought = get_command(found)
    except PluginError as error:
        return _failing(name, str(error))
    except Exception as error:  # noqa: BLE001 - somebody else's code; ours must go on without it
        return _failing(name, f"plug-in {point!r} ({COMMANDS}): {type(error).__name__}")
    brought.name = name
    return brought


def _failing(name: str, message: str) -> Command:
    """Return a command that ends with one line, whatever it is given."""
    return TyperCommand(
        name,
        callback=lambda: fail(message),
        help=message,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
