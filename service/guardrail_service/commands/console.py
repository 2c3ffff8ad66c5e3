"""Helpers that every command uses: consoles, common options, and how an error ends a command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.console import Console

from guardrail_service.errors import ServiceError
from guardrail_service.settings import Settings

_WIDE = 200  # columns of a pipe; a table cut to 80 loses names and licences
out = Console(width=None if sys.stdout.isatty() else _WIDE)
err = Console(stderr=True)
P = ParamSpec("P")
EXIT_FLAGGED = 1
EXIT_ERROR = 2

Configs = Annotated[
    list[Path] | None,
    typer.Option("--config", "-c", help="Guardrail JSON to load as a policy; repeatable."),
]
PackOption = Annotated[
    str | None, typer.Option("--pack", help="Shipped model pack or a folder with a manifest.")
]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Model runs at the same time."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def command(function: Callable[P, None]) -> Callable[P, None]:
    """Print our own errors as one line and end with status 2."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except ServiceError as error:
            fail(str(error))
        except ValidationError as error:
            first = error.errors()[0]
            prefix = "GUARDRAIL_MAX_" if error.title == "Limits" else "GUARDRAIL_"
            name = "_".join(map(str, first["loc"])).upper()
            fail(f"{prefix}{name}: {first['msg']}")
        except SettingsError as error:
            fail(f"environment: {error}")

    return run


def fail(message: str) -> NoReturn:
    """Print a message as an error and end with status 2."""
    err.print(f"[red]error:[/red] {plain(message)}", highlight=False, soft_wrap=True)
    raise typer.Exit(EXIT_ERROR)


def plain(text: str) -> str:
    """Return text that a console prints as it is."""
    return text.replace("[", r"\[")


def settings_from(**given: Any) -> Settings:
    """Return settings from the environment, overridden by the options that were given."""
    return Settings(**{key: value for key, value in given.items() if value not in (None, ())})


@contextmanager
def progress_bar(total: int, doing: str = "checking") -> Iterator[Callable[..., None]]:
    """Show a bar on a terminal's standard error; elsewhere nothing."""
    with late_progress_bar(doing) as (begin, advance):
        begin(total)
        yield lambda done=1: advance(done)


@contextmanager
def late_progress_bar(
    doing: str,
) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Show a bar whose total is known later: yields what sets the total and what advances it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (doing, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal) as progress:
        task = progress.add_task(doing, total=None)
        yield (
            lambda total: progress.update(task, total=total),
            lambda count: progress.advance(task, count),
        )
