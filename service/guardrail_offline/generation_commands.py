"""The command `guardrail generate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrail_offline.evaluation_commands import EXIT_INCOMPLETE
from guardrail_offline.judge_options import (
    JudgeMode,
    JudgeModel,
    JudgeStore,
    JudgeUrl,
    judge_settings,
)
from guardrail_service.commands.console import (
    AsJson,
    PackOption,
    command,
    late_progress_bar,
    out,
    plain,
    settings_from,
)
from guardrail_service.errors import ConfigurationError

NOT_ASKED = ("timeout", "rate_limited", "budget", "error")
"""Nobody answered the judge's questions; another run asks them again."""

if TYPE_CHECKING:
    from guardrail_offline.generation.lab import GeneratedLab
    from guardrail_offline.judge.results import Asks


@command
def generate(
    documents: Annotated[
        list[Path] | None,
        typer.Argument(help="PDF, DOCX, HTML, Markdown and text files, and folders of them."),
    ] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", "-o", help="Lab to write, in H2O's JSON.")
    ] = None,
    generators: Annotated[
        str, typer.Option(help="Names with commas, all, default or adversarial; `list` shows them.")
    ] = "default",
    count: Annotated[
        int | None, typer.Option(min=1, help="Cases; all that there are if unset.")
    ] = None,
    per_chunk: Annotated[
        int, typer.Option(min=1, help="Cases of one generator from one chunk at most.")
    ] = 3,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    queries_only: Annotated[
        bool, typer.Option("--queries-only", help="Write questions without expected answers.")
    ] = False,
    from_library: Annotated[
        str | None,
        typer.Option(help="Take cases of a shipped suite instead; `list` shows the suites."),
    ] = None,
    outside: Annotated[
        list[Path] | None,
        typer.Option(help="Documents that the system does not have; repeatable."),
    ] = None,
    validate: Annotated[
        bool, typer.Option(help="Check with the pack's models, too, not only by rules.")
    ] = True,
    judge: JudgeUrl = None,
    judge_model: JudgeModel = None,
    judge_store: JudgeStore = None,
    judge_mode: JudgeMode = "read-write",
    judge_for: Annotated[
        str | None, typer.Option(help="Generators that the judge makes; all it can if unset.")
    ] = None,
    pack: PackOption = None,
    as_json: AsJson = False,
) -> None:
    """Make test cases from documents, each with its places in them, checked; or from the library.

    Beside the lab stand its manifest with hashes and coverage, the rejected cases with reasons, and
    a picture. Ends with 3 if no case came out, or if a document could not be read; files
    of other kinds are named and left.
    """
    if generators == "list" or from_library == "list":
        _show_list("suites" if from_library else "generators", as_json=as_json)
        return
    if out_file is None or out_file.suffix != ".json":
        raise ConfigurationError("--out", repr(str(out_file or "")), "a .json file")
    if from_library is not None:
        if documents:
            raise ConfigurationError("--from-library", "documents as well", "one of the two")
        _from_library(from_library, count, seed, out_file, queries_only=queries_only)
        return
    if not documents:
        raise ConfigurationError("DOCUMENTS", "nothing", "documents, or --from-library NAME")
    from guardrail_offline.generation.generators import GenerationOptions, named_generators
    from guardrail_offline.generation.lab import generate_lab, write_generated

    by_judge = None if judge_for is None else named_generators(judge_for)
    options = GenerationOptions(named_generators(generators), count, seed, per_chunk, by_judge)
    asked = judge_settings(judge, judge_model, store=judge_store, mode=judge_mode)
    models = None
    if validate:
        from guardrail_offline.evaluators.pack_models import load_models

        models = load_models(settings_from(model_pack=pack).model_pack)
    with late_progress_bar("generating") as (_, advance):
        lab = generate_lab(
            documents, options, outside=outside or (), judge=_opened(asked), models=models,
            advance=advance,
        )  # fmt: skip
    files = write_generated(lab, out_file, queries_only=queries_only)
    _show(lab, files, as_json=as_json)
    unread = any(document.state not in ("read", "unknown_kind") for document in lab.documents)
    silent = not set(lab.manifest["judge_failed"]).isdisjoint(NOT_ASKED)
    raise typer.Exit(EXIT_INCOMPLETE if unread or silent or not lab.cases else 0)


def _opened(asked: Any) -> Asks | None:
    if asked is None:
        return None
    from guardrail_offline.judge.judge_client import open_judge

    return open_judge(asked)


def _from_library(
    name: str, count: int | None, seed: int, out_file: Path, *, queries_only: bool
) -> None:
    from guardrail_offline.generation.library import library_lab, write_library

    lab = library_lab(name, count, seed)
    write_library(lab, out_file, queries_only=queries_only)
    out.print(f"{len(lab.cases)} cases of {plain(name)} in {plain(str(out_file))}")


def _show(lab: GeneratedLab, files: list[Path], *, as_json: bool) -> None:
    manifest = lab.manifest
    if as_json:
        told = {"files": [str(path) for path in files], "cases": len(lab.cases)}
        out.print_json(json.dumps(told | {"manifest": manifest}), ensure_ascii=True)
        return
    others = [document.id for document in lab.documents if document.state == "unknown_kind"]
    if others:
        named = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
        line = f"{len(others)} files of other kinds: {named}"
        out.print(f"[yellow]not read[/yellow] {plain(line)}", soft_wrap=True)
    for document in lab.documents:
        if document.state not in ("read", "unknown_kind"):
            why = f"{document.id}: {document.state}: {document.reason}"
            out.print(f"[yellow]not read[/yellow] {plain(why)}", soft_wrap=True)
        for note in document.notes if document.state == "read" else ():
            out.print(f"[yellow]note[/yellow] {plain(f'{document.id}: {note}')}", soft_wrap=True)
    for id, reason in manifest["short"].items():
        out.print(f"[yellow]note[/yellow] {id}: {plain(reason)}", soft_wrap=True)
    failed = ", ".join(f"{n} {why}" for why, n in manifest["judge_failed"].items())
    if failed:
        line = f"the judge's questions without a usable answer: {failed}"
        out.print(f"[yellow]note[/yellow] {plain(line)}", soft_wrap=True)
    rejected = ", ".join(f"{n} {check}" for check, n in manifest["validation"]["rejected"].items())
    found = manifest["coverage"]["chunks"]
    out.print(
        f"{len(lab.cases)} cases in {plain(str(files[0]))}; {found['covered']} of "
        f"{found['chunks']} chunks have one; rejected: {rejected or 'none'}",
        soft_wrap=True,
    )


def _show_list(what: str, *, as_json: bool) -> None:
    from guardrail_offline.generation.generators import GENERATORS
    from guardrail_offline.generation.library import SUITES

    if what == "generators":
        rows = [
            {"id": s.id, "h2o": s.h2o, "rule": s.rule, "judge": s.judge or None,
             "default": s.default and not s.adversarial, "adversarial": s.adversarial}
            for s in GENERATORS.values()
        ]  # fmt: skip
    else:
        rows = [suite.as_json() for suite in SUITES.values()]
    if as_json:
        out.print_json(json.dumps(rows))
        return
    from rich.table import Table

    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(plain(str(v)) if v is not None else "" for v in row.values()))
    out.print(table)
