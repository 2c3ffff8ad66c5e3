"""Shows measurements: a progress bar, then JSON, parts of a Markdown page, plots."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from guardrail_service.commands.console import err, out
from guardrail_service.errors import ConfigurationError, InputError, MissingExtra

BUSY_SHARE = 0.1
"""Share of all cores that others used before the start, above which the machine was not ours."""
_WORDS = {True: "met", False: "**missed**", None: "not measured"}


def replace_part(path: Path, name: str, content: str) -> None:
    """Write a generated part of a Markdown page.

    Args:
        path: The page; it has `<!-- name -->` and `<!-- /name -->` on lines of their own.
        name: Which part.
        content: What comes between the markers.

    Raises:
        InputError: If the page cannot be read or does not have each marker once.
    """
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    try:
        page = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a page with {start}") from error
    before, opened, rest = page.partition(f"{start}\n")
    _, closed, after = rest.partition(end)
    if not (opened and closed) or start in rest or end in after:
        raise InputError(f"{path}: expected {start} and {end} once each, in this order")
    path.write_text(f"{before}{opened}{content.strip()}\n{closed}{after}", "utf-8")


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; a bar in a cell is escaped."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


class MarkdownTable(NamedTuple):
    """A table of a report; the title may be empty."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables_page(about: str, busy: float, tables: Iterable[MarkdownTable], picture: str) -> str:
    """Return a part of a page: how it was measured, a warning if need be, tables, a picture.

    Args:
        about: How it was measured.
        busy: Share of all cores that others used before.
        tables: In their order.
        picture: As Markdown.
    """
    parts = [about, busy_warning(busy) or ""]
    for table in tables:
        parts += [table.title, markdown_table(table.headings, table.rows)]
    return "\n\n".join(filter(None, [*parts, picture]))


def publish_tables(text: str, tables: Iterable[MarkdownTable], json_file: Path | None) -> None:
    """Write a report as JSON, and print its tables unless the JSON is what is printed."""
    write_json(text, json_file)
    if str(json_file) == "-":
        return
    for found in tables:
        table = Table(*found.headings, title=found.title or None, title_justify="left")
        for row in found.rows:
            table.add_row(*row)
        out.print(table)


def shown(met: bool | None) -> str:
    """Return in words whether a target is met."""
    return verdict(met).strip("*")


def verdict(met: bool | None) -> str:
    """Return the same for a page, where a missed target stands out."""
    return _WORDS[met]


def busy_warning(share: float) -> str | None:
    """Return what a reader must know about a machine that others used, too; None if they did not.

    Args:
        share: Of all cores, just before a measurement.
    """
    if share <= BUSY_SHARE:
        return None
    return f"The machine was not quiet: others used {share:.0%} of its cores. Times are too long."


@contextmanager
def drawing(path: Path, **figure: Any) -> Iterator[Any]:
    """Yield the axes of a figure that is written to `path` at the end of the block.

    Args:
        path: A PNG; its folder is made.
        figure: Arguments of matplotlib's `subplots`.

    Raises:
        MissingExtra: If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingExtra("matplotlib") from error
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    drawn, axes = plt.subplots(layout="constrained", **figure)
    try:
        yield axes
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn.savefig(path, dpi=110, metadata={"Software": None})
    finally:
        plt.close(drawn)


def check_page(doc: Path, part: str, *, has_plots: bool = True) -> None:
    """Raise before the measurement what would be raised after it."""
    if has_plots and find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib")
    page = doc.read_text("utf-8") if doc.is_file() else ""
    if f"<!-- {part} -->" not in page:
        raise ConfigurationError(str(doc), "no such part", f"a page with <!-- {part} --> markers")


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Leave on SIGTERM as on an error, so that the service that was started ends, too."""

    def leave(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def steps_bar(steps: int) -> Iterator[Callable[[str], None]]:
    """Show a bar on a terminal's standard error, elsewhere a line for each step."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal) as progress:
        task = progress.add_task("starting", total=steps)

        def note(text: str) -> None:
            progress.update(task, description=text)
            progress.advance(task)
            if not err.is_terminal:
                err.print(text)

        yield note


def write_json(text: str, json_file: Path | None) -> None:
    """Write a report to a file, or print it where the file is `-`."""
    if str(json_file) == "-":
        sys.stdout.write(text + "\n")
    elif json_file is not None:
        json_file.write_text(text + "\n", "utf-8")
