"""The commands `guardrail report` and `guardrail plot`."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrail_service.commands.console import command, out, plain
from guardrail_service.errors import ConfigurationError, MissingExtra

if TYPE_CHECKING:
    from guardrail_offline.report.run_data import RunData

FORMATS = (".html", ".json", ".csv", ".md", ".zip")


@command
def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of guardrail evaluate, or archives of them.")
    ],
    out_file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="What to write, by its ending: .html, .json, .csv, .md, or .zip in H2O's layout; "
            "report.html of the first run if unset.",
        ),
    ] = None,
    tolerate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of failing answers that is accepted.")
    ] = 0.05,
    part: Annotated[
        str | None,
        typer.Option(
            help="One part only, as a fragment for another page (.html, .md) or as .json: summary, "
            "metrics, not-judged, findings, an evaluator; .html: evaluators, data, run; .json: eye."
        ),
    ] = None,
) -> None:
    """Write a run, or several side by side, as one page that needs no network, or as one file."""
    try:
        from guardrail_offline.report.page import REPORT
    except ImportError as error:  # jinja2
        raise MissingExtra("rag-guardrail-offline") from error
    first = runs[0].with_suffix("") if runs[0].suffix.lower() == ".zip" else runs[0]
    target = out_file or (first / REPORT if first.is_dir() else first.with_suffix(".html"))
    if target.suffix.lower() not in FORMATS:
        raise ConfigurationError("--out", repr(target.suffix), f"one of {', '.join(FORMATS)}")
    if part and (out_file is None or target.suffix.lower() not in (".html", ".md", ".json")):
        raise ConfigurationError("--part", "no --out for it", "--out with .html, .md or .json")
    try:
        _write(runs, target, tolerate, part)
    except OSError as error:
        raise ConfigurationError("--out", type(error).__name__, "a file to write") from error
    out.print(f"see {plain(str(target))}")


@command
def plot(
    sources: Annotated[
        list[Path], typer.Argument(help="Folders of runs, or CSV files of Open RAG Eval.")
    ],
    evaluator: Annotated[
        str | None,
        typer.Option(help="trec, consistency, or an evaluator of the run, such as rouge."),
    ] = None,
    metrics_to_plot: Annotated[
        list[str] | None, typer.Option(help="Metrics with commas; all if unset.")
    ] = None,
    part: Annotated[
        str,
        typer.Option(
            help="What to draw: boxes, leaderboard, confusion, categories, grid or hardest of an "
            "evaluator; or eye, metrics, heatmap, differences, flips, clusters or data of a run."
        ),
    ] = "boxes",
    output_file: Annotated[
        Path,
        typer.Option(
            "--output-file",
            "-o",
            help="A .png or .svg; a name without an ending is a folder for all pictures as both.",
        ),
    ] = Path("metrics_comparison.png"),
) -> None:
    """Draw box plots as Open RAG Eval does, or any other picture of the report, as PNG or SVG."""
    only = [name.strip() for some in metrics_to_plot or () for name in some.split(",")]
    try:
        _draw(sources, evaluator, part, [name for name in only if name], output_file)
    except ImportError as error:  # matplotlib
        raise MissingExtra("rag-guardrail[offline]") from error
    except OSError as error:
        raise ConfigurationError(
            "--output-file", type(error).__name__, "a file to write"
        ) from error
    out.print(f"see {plain(str(output_file))}")


def _draw(
    sources: Sequence[Path], evaluator: str | None, part: str, only: Sequence[str], target: Path
) -> None:
    from guardrail_offline.report.archive import opened_run
    from guardrail_offline.report.figures import RunFigures
    from guardrail_offline.report.pictures import picture, write_all
    from guardrail_offline.report.plots import box_plots, save
    from guardrail_offline.report.plotted_values import samples
    from guardrail_offline.report.run_data import read_run_data
    from guardrail_offline.report.several_runs import side_by_side

    if part == "boxes" and target.suffix:
        if evaluator is None:
            raise ConfigurationError("--evaluator", "nothing", "trec, consistency or an evaluator")
        save(box_plots(samples(sources, evaluator), only), target)
        return
    with ExitStack() as stack:
        folders = [stack.enter_context(opened_run(path)) for path in sources]
        figures = RunFigures(side_by_side([read_run_data(folder) for folder in folders]))
        if target.suffix:
            save(picture(figures, part, evaluator), target)
        else:
            write_all(figures, target)


def _write(runs: Sequence[Path], target: Path, tolerate: float, part: str | None) -> None:
    from guardrail_offline.report.archive import opened_run, write_archive
    from guardrail_offline.report.run_data import read_run_data
    from guardrail_offline.report.several_runs import side_by_side
    from guardrail_offline.runs.shards import whole_file

    with ExitStack() as stack:
        folders = [stack.enter_context(opened_run(path)) for path in runs]
        kind = target.suffix.lower()
        if kind == ".zip":
            if len(folders) > 1:
                raise ConfigurationError("--out", "an archive of several runs", "one run")
            write_archive(folders[0], target)
            return
        run = side_by_side([read_run_data(folder) for folder in folders])
        text = _text(run, kind, tolerate) if part is None else _part(run, kind, tolerate, part)
        with whole_file(target) as stream:
            stream.write(text)


def _text(run: RunData, kind: str, tolerate: float) -> str:
    from guardrail_offline.report.exports import report_json, scores_csv
    from guardrail_offline.report.markdown import report_markdown
    from guardrail_offline.report.page import report_page

    if kind == ".csv":
        table = io.StringIO(newline="")
        scores_csv(run, table)
        return table.getvalue()
    if kind == ".json":
        return _json(report_json(run, tolerate))
    return report_markdown(run, tolerate) if kind == ".md" else report_page(run, tolerate)


def _part(run: RunData, kind: str, tolerate: float, part: str) -> str:
    from guardrail_offline.report.content import page_content
    from guardrail_offline.report.exports import json_part, report_json
    from guardrail_offline.report.figures import RunFigures
    from guardrail_offline.report.markdown import markdown_fragment
    from guardrail_offline.report.page import REPORT, html_fragment

    if kind == ".json":
        return _json(json_part(report_json(run, tolerate), part))
    content = page_content(RunFigures(run), tolerate)
    return (
        markdown_fragment(content, part) if kind == ".md" else html_fragment(content, part, REPORT)
    )


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, allow_nan=False) + "\n"
