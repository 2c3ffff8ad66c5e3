"""`guardrail decisions`: looks at a store, and looks after it."""

from __future__ import annotations

import typer

from guardrail_service.commands.group import Commands

decisions_app = typer.Typer(
    cls=Commands, no_args_is_help=True, help="Look at stored decisions, and look after them."
)


@decisions_app.callback()
def decisions() -> None:
    """Look at stored decisions, and look after them."""
