"""The command `guardrail report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardrail_service.commands.console import command, out, plain
from guardrail_service.errors import ConfigurationError, MissingExtra


@command
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of guardrail evaluate.")],
    out_file: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The page; report.html of the first run if unset."),
    ] = None,
    tolerate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of failing answers that is accepted.")
    ] = 0.05,
) -> None:
    """Write a run, or several side by side, as one HTML page that needs no network."""
    try:
        from guardrail_offline.report.page import REPORT, write_report
    except ImportError as error:  # jinja2
        raise MissingExtra("rag-guardrail-offline") from error
    target = out_file or runs[0] / REPORT
    try:
        write_report(runs, target, tolerate)
    except OSError as error:
        raise ConfigurationError("--out", type(error).__name__, "a file to write") from error
    out.print(f"see {plain(str(target))}")
