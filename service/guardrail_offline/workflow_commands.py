"""The commands under `guardrail workflow`: model risk in nine steps over a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from guardrail_service.commands.console import (
    AsJson,
    PackOption,
    command,
    late_progress_bar,
    out,
    plain,
)
from guardrail_service.errors import ConfigurationError, choices

if TYPE_CHECKING:
    from guardrail_offline.workflow.definition import Definition, JudgeChoice, TargetChoice
    from guardrail_offline.workflow.folder import WorkflowFolder

workflow_app = typer.Typer(
    add_completion=False,
    help="Test a system from its documents in nine steps: topics to weaknesses, each a file.",
    no_args_is_help=True,
)
FolderArgument = Annotated[Path, typer.Argument(help="Folder of the workflow.")]
Target = Annotated[
    str | None,
    typer.Option(
        help="Who is tested: https://host/v1, azure+https://..., ollama+http://..., "
        "bedrock:REGION, a template file (.json), or python:MODULE:FUNCTION."
    ),
]
TargetModel = Annotated[str | None, typer.Option(help="The model's name on the host.")]
TargetKind = Annotated[
    str | None, typer.Option(help="The host's protocol, where the address does not say it.")
]
KeyEnv = Annotated[
    str | None, typer.Option(help="Environment variable with the key that the target is sent.")
]
Contexts = Annotated[
    bool | None,
    typer.Option(
        "--contexts/--no-contexts",
        help="Give the target the passages a case is made from; a system that searches needs none.",
    ),
]
Answers = Annotated[
    Path | None, typer.Option(help="Lab with answers that the target gave, in place of asking it.")
]
JudgeAddress = Annotated[
    str | None, typer.Option("--judge", metavar="URL", help="Host of a judge; key as for evaluate.")
]
JudgeName = Annotated[str | None, typer.Option("--judge-model", help="The judge's name there.")]
JudgeTranscripts = Annotated[
    Path | None, typer.Option("--judge-store", help="Transcripts to begin with, copied.")
]
JudgeHow = Annotated[
    str | None, typer.Option("--judge-mode", help="read-write; replay asks nobody; off.")
]
Cases = Annotated[Path | None, typer.Option(help="Lab of cases that people made.")]
LabelsFile = Annotated[
    Path | None, typer.Option("--labels", help="Human labels: .jsonl, .csv, or an export .json.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="STEP.NAME=VALUE", help="A parameter of a step; repeatable."),
]
StepOption = Annotated[
    str | None, typer.Option("--step", help="One step by itself, by name or number.")
]


@workflow_app.command("init")
@command
def init(
    folder: FolderArgument,
    documents: Annotated[
        list[Path] | None, typer.Argument(help="Documents, or folders of them; copied.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="For people; the folder's name if unset.")
    ] = None,
    description: Annotated[str, typer.Option(help="For people.")] = "",
    target: Target = None,
    target_model: TargetModel = None,
    target_kind: TargetKind = None,
    key_env: KeyEnv = None,
    contexts: Contexts = None,
    answers: Answers = None,
    judge: JudgeAddress = None,
    judge_model: JudgeName = None,
    judge_store: JudgeTranscripts = None,
    judge_mode: JudgeHow = None,
    cases: Cases = None,
    labels: LabelsFile = None,
    set_: SetOption = None,
    pack: PackOption = None,
) -> None:
    """Make a workflow: its folder with copies of the documents and the parameters of all steps."""
    from guardrail_offline.workflow.definition import create

    asked, files = _target(target, target_model, target_kind, key_env, contexts, answers)
    judged, transcripts = _judge(judge, judge_model, judge_store, judge_mode)
    made = create(
        folder,
        documents or (),
        name=name,
        description=description,
        target=asked,
        judge=judged,
        cases=cases,
        labels=labels,
        pack=pack or "embedded",
        assignments=set_ or (),
        files=files | transcripts,
    )
    out.print(f"made {plain(str(made.root))}; guardrail workflow run {plain(str(folder))} runs it")


@workflow_app.command("run")
@command
def run(
    folder: FolderArgument,
    step: StepOption = None,
    again: Annotated[
        list[str] | None,
        typer.Option(help="A step to do anew although it is current; repeatable. Asks anew, too."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that score; one per core if unset.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=64, help="Questions to the target at a time.")
    ] = 4,
    as_json: AsJson = False,
) -> None:
    """Run the steps that are missing or stale. A run that was stopped goes on where it was."""
    from guardrail_offline.workflow.folder import STEPS, TITLES, opened, step_named
    from guardrail_offline.workflow.nine_steps import engine
    from guardrail_offline.workflow.step_engine import Effort

    found, running = opened(folder), engine()
    told = {} if as_json else {"told": lambda name, what: out.print(
        f"{STEPS.index(name) + 1} {TITLES[name]} {what}", highlight=False
    )}  # fmt: skip
    ran = running.run(
        found,
        None if step is None else step_named(step),
        again=[step_named(name) for name in again or ()],
        effort=Effort(workers or os.cpu_count() or 1, concurrency),
        bars=late_progress_bar,
        **told,
    )
    if as_json:
        out.print_json(json.dumps({"ran": ran}))
        return
    for name in ran:
        _tell(found, name)


@workflow_app.command("status")
@command
def show_status(folder: FolderArgument, as_json: AsJson = False) -> None:
    """Show which steps are current, stale or missing, and why: from which file and part."""
    from guardrail_offline.workflow.folder import STEPS
    from guardrail_offline.workflow.nine_steps import status

    found = status(folder)
    if as_json:
        out.print_json(json.dumps([one.as_json() for one in found]))
        return
    table = Table("step", "", "state", "why")
    for one in found:
        state: str = one.state
        if one.record is not None and one.record.state == "skipped":
            state = f"{state}, skipped: {one.record.reason}"
        why = "; ".join(map(str, one.why))
        number = STEPS.index(one.step) + 1
        table.add_row(str(number), one.step, plain(state), plain(why))
    out.print(table)


@workflow_app.command("report")
@command
def report(
    folder: FolderArgument,
    out_file: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The file; in the folder if unset."),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="The model-risk report for a committee: html, docx or pdf."),
    ] = None,
) -> None:
    """Write one page of all steps with their pictures, or with --format the model-risk report."""
    from guardrail_offline.model_risk import FORMATS, write_mrm_report
    from guardrail_offline.workflow.folder import REPORT, locked, opened
    from guardrail_offline.workflow.workflow_page import write_page

    found, target = opened(folder), out_file or folder / REPORT
    if format_ is None:
        write_page(found, target)
    else:
        kind = next((one for one in FORMATS if one == format_), None)
        if kind is None:
            raise ConfigurationError("--format", repr(format_), choices(format_, FORMATS, "format"))
        with locked(found):
            target = write_mrm_report(folder, kind, out_file)
    out.print(f"wrote {plain(str(target))}", soft_wrap=True)


@workflow_app.command("artefacts")
@command
def artefacts(folder: FolderArgument, as_json: AsJson = False) -> None:
    """Write what mends the system: guardrail configuration, corpus patch, prompt extension."""
    from guardrail_offline.model_risk import write_artefacts
    from guardrail_offline.workflow.folder import locked, opened

    with locked(opened(folder)):
        found = write_artefacts(folder)
    if as_json:
        out.print_json(json.dumps(found))
        return
    for name, where in found.items():
        out.print(f"{name}: {plain(where)}")


@workflow_app.command("edit")
@command
def edit(
    folder: FolderArgument,
    set_: SetOption = None,
    add: Annotated[
        list[Path] | None, typer.Option("--add", help="A document to add; repeatable.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", help="A document to take out; repeatable.")
    ] = None,
    target: Target = None,
    target_model: TargetModel = None,
    target_kind: TargetKind = None,
    key_env: KeyEnv = None,
    contexts: Contexts = None,
    answers: Answers = None,
    judge: JudgeAddress = None,
    judge_model: JudgeName = None,
    judge_store: JudgeTranscripts = None,
    judge_mode: JudgeHow = None,
    no_judge: Annotated[bool, typer.Option("--no-judge", help="Ask no judge any more.")] = False,
    cases: Cases = None,
    labels: LabelsFile = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Ask the target and judge of a workflow you received.")
    ] = False,
) -> None:
    """Change what a workflow is made of; every value is checked."""
    from guardrail_offline.workflow.definition import (
        CASES,
        LABELS,
        assigned,
        copied,
        place_files,
        read_definition,
        with_documents,
        write_definition,
    )
    from guardrail_offline.workflow.folder import locked, opened

    found = opened(folder)
    with locked(found):
        definition = assigned(read_definition(found), set_ or ())
        changes: dict[str, Any] = {}
        files: dict[str, Path] = {}
        if any(value is not None for value in (target, answers)):
            changes["target"], files = _target(
                target, target_model, target_kind, key_env, contexts, answers
            )
        elif any(v is not None for v in (target_model, target_kind, key_env, contexts)):
            changes["target"] = _same_target(
                definition, target_model, target_kind, key_env, contexts
            )
        if judge is not None:
            changes["judge"], more = _judge(judge, judge_model, judge_store, judge_mode)
            files |= more
        elif no_judge:
            changes["judge"] = None
        elif judge_model or judge_store or judge_mode:
            raise ConfigurationError("--judge", "nothing", "the judge's address beside its options")
        if cases is not None:
            changes["cases"] = copied(found, cases, CASES)
        if labels is not None:
            changes["labels"] = copied(found, labels, LABELS)
        if trust:
            changes["received"] = False
        place_files(found, files)
        definition = with_documents(found, definition.model_copy(update=changes), add, remove)
        write_definition(found, definition)
    out.print(f"changed {plain(str(found.definition))}")


@workflow_app.command("delete")
@command
def delete(
    folder: FolderArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove a workflow with everything in its folder; asks first."""
    from guardrail_offline.workflow.folder import opened
    from guardrail_offline.workflow.sharing import delete as remove

    found = opened(folder)
    if not yes and not typer.confirm(f"Remove {folder} and everything in it?"):
        out.print("nothing was removed")
        return
    remove(found)
    out.print(f"removed {plain(str(folder))}")


@workflow_app.command("share")
@command
def share(
    folder: FolderArgument,
    out_file: Annotated[Path | None, typer.Option("--out", "-o", help="The zip to write.")] = None,
    take: Annotated[
        Path | None,
        typer.Option("--import", help="A zip that somebody shared: unpacked into FOLDER."),
    ] = None,
    documents: Annotated[bool, typer.Option(help="Put the documents into the zip, too.")] = True,
) -> None:
    """Write a workflow as one zip, or unpack one. No path of this machine is in it."""
    from guardrail_offline.workflow.definition import read_definition
    from guardrail_offline.workflow.folder import opened
    from guardrail_offline.workflow.sharing import receive
    from guardrail_offline.workflow.sharing import share as write

    if (out_file is None) == (take is None):
        raise ConfigurationError("share", "neither or both", "--out ZIP, or --import ZIP")
    if take is not None:
        receive(take, folder)
        out.print(f"unpacked into {plain(str(folder))}")
        if read_definition(opened(folder)).received:
            out.print("its target and judge are asked nothing before workflow edit FOLDER --trust")
        out.print(
            "whom to ask is yours to say: target and judge are not taken over, see workflow edit"
        )
        return
    assert out_file is not None  # noqa: S101 - one of both is given
    count = write(opened(folder), out_file, texts=documents)
    out.print(f"{count} files in {plain(str(out_file))}")


@workflow_app.command("compare")
@command
def compare(
    before: Annotated[Path, typer.Argument(help="Folder of the workflow to compare with.")],
    after: Annotated[list[Path], typer.Argument(help="Folders of others, one or more.")],
    as_json: AsJson = False,
) -> None:
    """Compare workflows with a first one: scores with paired intervals, verdicts, weaknesses."""
    from guardrail_offline.workflow.folder import opened
    from guardrail_offline.workflow.workflow_comparison import compare as compared

    found = compared(opened(before), [opened(one) for one in after])
    if as_json:
        out.print_json(json.dumps(found))
        return
    for one in found:
        _show_comparison(one)


def _show_comparison(one: dict[str, Any]) -> None:
    table = Table("metric", "before", "after", "difference", "95 % interval", "p (Holm)", "")
    for row in one["scores"]["differences"]:
        reach = row["interval"]
        told = "-" if reach is None else f"{reach[0]:+.3f} to {reach[1]:+.3f}"
        name = f"{row['evaluator']}.{row['metric']}"
        figures = (f"{row['before']:.3f}", f"{row['after']:.3f}", f"{row['difference']:+.3f}")
        table.add_row(plain(name), *figures, told, f"{row['p_holm']:.3g}", row["verdict"])
    out.print(f"{plain(one['after'])} against {plain(one['before'])}")
    out.print(table)
    verdicts = one["verdicts"]
    if verdicts is not None:
        rates = (verdicts["failing_before"]["rate"], verdicts["failing_after"]["rate"])
        out.print(
            f"failing: {rates[0]:.0%} before, {rates[1]:.0%} after; {verdicts['mended']} mended, "
            f"{verdicts['broken']} broken (p {verdicts['p']:.3g})",
            highlight=False,
        )
    for kind, words in one["weaknesses"].items():
        for text in words:
            out.print(f"weakness, {kind}: {plain(text)}", highlight=False, soft_wrap=True)


def _tell(folder: WorkflowFolder, name: Any) -> None:
    """Print what a step found worth saying."""
    from guardrail_offline.workflow.folder import STEPS, TITLES

    record = folder.record(name)
    if record is None:
        return
    skipped = f": skipped, {record.reason}" if record.state == "skipped" else ""
    head = f"{STEPS.index(name) + 1} {TITLES[record.step]}{skipped}"
    out.print(plain(head), highlight=False)
    for note in record.notes:
        out.print(f"  {plain(note)}", highlight=False, soft_wrap=True)
    for weak in record.results.get("weak", ()):
        out.print(f"  weak: {plain(weak['words'])}", highlight=False, soft_wrap=True)


def _target(
    address: str | None,
    model: str | None,
    kind: str | None,
    key_env: str | None,
    contexts: bool | None,
    answers: Path | None,
) -> tuple[TargetChoice | None, dict[str, Path]]:
    """Return the target that options name, and the files it needs in the folder."""
    from guardrail_offline.hosts.custom import function_at
    from guardrail_offline.hosts.opening import parse_address
    from guardrail_offline.workflow.definition import TargetChoice

    if address is not None and answers is not None:
        raise ConfigurationError("--answers", "a target beside it", "one or the other")
    if answers is not None:
        name = f"answers{answers.suffix.lower()}"
        return TargetChoice(answers=name), {name: answers}
    if address is None:
        if model or kind or key_env:
            raise ConfigurationError("--target", "nothing", "its address beside its options")
        return None, {}
    parsed = parse_address(address, kind)
    if parsed.kind == "python":
        function_at(parsed.place, "--target")
    chosen = TargetChoice(
        target=address, model=model, kind=kind, key_env=key_env, contexts=bool(contexts)
    )
    if parsed.kind != "template":
        return chosen, {}
    moved = chosen.model_copy(update={"target": None, "template": "target.json"})
    return moved, {"target.json": Path(parsed.place)}


def _same_target(
    definition: Definition,
    model: str | None,
    kind: str | None,
    key_env: str | None,
    contexts: bool | None,
) -> TargetChoice:
    if definition.target is None:
        raise ConfigurationError("--target", "nothing", "its address beside its options")
    given = {"model": model, "kind": kind, "key_env": key_env, "contexts": contexts}
    return definition.target.model_copy(
        update={name: value for name, value in given.items() if value is not None}
    )


def _judge(
    url: str | None, model: str | None, store: Path | None, mode: str | None
) -> tuple[JudgeChoice | None, dict[str, Path]]:
    """Return the judge that options name, and its transcripts for the folder."""
    from guardrail_offline.workflow.definition import JudgeChoice, checked

    if url is None:
        if model or store or mode:
            raise ConfigurationError("--judge", "nothing", "its address beside its options")
        return None, {}
    values = {"url": url, "model": model or "", "mode": mode or "read-write"}
    if not model:
        raise ConfigurationError("--judge-model", "nothing", "the judge's name on its server")
    found: JudgeChoice = checked(JudgeChoice, values, "--judge")
    return found, {} if store is None else {found.store: store}
