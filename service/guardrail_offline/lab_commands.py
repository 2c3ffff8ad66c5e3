"""The command that writes a lab as another suite reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from guardrail_offline.evaluation_commands import LabArgument, MapOption, write_text
from guardrail_service.commands.console import command, out, plain
from guardrail_service.errors import ConfigurationError


@command
def convert(
    lab: LabArgument,
    out_file: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    to: Annotated[
        str,
        typer.Option(
            help="h2o, deepeval, ragas, ragas-0.1, ragchecker, langsmith, llama_index, bedrock "
            "or open_rag_eval."
        ),
    ] = "h2o",
    map_: MapOption = None,
) -> None:
    """Write a lab as another suite reads it, and say which fields that suite has no place for."""
    from guardrail_offline.datasets.cases import Lab, models_of
    from guardrail_offline.datasets.h2o_labs import lab_json
    from guardrail_offline.datasets.labs import beside, open_lab
    from guardrail_offline.datasets.suite_files import SUITE_FORMATS, lost
    from guardrail_offline.datasets.suites import RecordReader, mapping_of

    if to != "h2o" and to not in SUITE_FORMATS:
        raise ConfigurationError("--to", repr(to), f"h2o or one of {', '.join(SUITE_FORMATS)}")
    source = open_lab(lab, RecordReader(mapping_of(map_ or ())))
    cases = list(source.cases())
    without: list[str] = []
    if to == "h2o":
        located = tuple(beside(case, out_file) for case in cases)
        known = models_of(cases, source.models)
        text = json.dumps(lab_json(Lab(located, known, source.name)), indent=1) + "\n"
    else:
        suite = SUITE_FORMATS[to]
        if out_file.suffix != suite.ending:
            raise ConfigurationError("--out", repr(out_file.suffix), f"a {suite.ending} file")
        text, without = suite.text(cases), lost(suite, cases)
    write_text("--out", out_file, text)
    out.print(f"{len(cases)} cases in {plain(str(out_file))}")
    if without:
        out.print(f"[yellow]note[/yellow] {to} has no place for: {', '.join(without)}")
