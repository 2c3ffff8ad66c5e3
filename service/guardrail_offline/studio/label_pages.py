"""Labelling: blind to scores, by keyboard, and on disk before the browser is told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from guardrail_offline.calibration.labels import ADJUDICATOR
from guardrail_offline.studio.label_files import (
    LONGEST_NOTE,
    EditConflict,
    Labelling,
    LabelTask,
    Progress,
    Unwritable,
    checked_mark,
)
from guardrail_offline.studio.studio_pages import (
    Fields,
    Person,
    StudioIn,
    escaped_json,
    page,
    studio_of,
)
from guardrail_service.errors import ConfigurationError

router = APIRouter(prefix="/label")


def labelling_of(request: Request, name: str) -> Labelling:
    """Return a labelling by the name that the workspace gave it."""
    found = studio_of(request).workspace.labellings.get(name)
    if found is None:
        raise HTTPException(404, "no such labelling")
    return found


LabellingIn = Annotated[Labelling, Depends(labelling_of)]


def task_of(labelling: LabellingIn, place: int) -> LabelTask:
    """Return a case by its place."""
    if not 0 <= place < len(labelling.tasks):
        raise HTTPException(404, "no such case")
    return labelling.tasks[place]


Task = Annotated[LabelTask, Depends(task_of)]


@router.get("")
def label_overview(request: Request, studio: StudioIn, person: Person) -> Response:
    """List the labellings, and offer to draw a sample."""
    workspace = studio.workspace
    return page(
        request, "labellings.html.j2",
        labellings=workspace.overview(), labs=list(workspace.labs), wrong="",
    )  # fmt: skip


@router.post("")
def draw_sample(request: Request, studio: StudioIn, person: Person, fields: Fields) -> Response:
    """Draw a sample of a lab; it is ready to be labelled then."""
    workspace = studio.workspace
    lab = fields.get("lab", "")
    try:
        if lab not in workspace.labs:
            raise ConfigurationError("lab", "none of that name", "one of the list")
        labelling = workspace.draw(lab, whole_number(fields, "count", 1, 100_000))
    except ConfigurationError as error:
        return page(
            request, "labellings.html.j2", 422,
            labellings=workspace.overview(), labs=list(workspace.labs), wrong=str(error),
        )  # fmt: skip
    return RedirectResponse(f"/label/{labelling.name}", 303)


def whole_number(fields: Mapping[str, str], name: str, low: int, high: int) -> int:
    """Return a whole number of a form.

    Raises:
        ConfigurationError: If it is none, or out of its range.
    """
    text = fields.get(name, "").strip()
    if not text.isdecimal() or len(text) > 9 or not low <= int(text) <= high:
        raise ConfigurationError(name, "another value", f"a whole number from {low} to {high}")
    return int(text)


@router.get("/{name}")
def label(request: Request, labelling: LabellingIn, person: Person) -> Response:
    """Show the cases one by one."""
    return page(request, "label.html.j2", labelling=labelling, adjudicating=False)


@router.get("/{name}/adjudicate")
def adjudicate(request: Request, labelling: LabellingIn, person: Person) -> Response:
    """Show the cases on which people disagree."""
    return page(request, "label.html.j2", labelling=labelling, adjudicating=True)


@router.get("/{name}/state")
def state(labelling: LabellingIn, person: Person, adjudicating: bool = False) -> dict[str, Any]:
    """Return the labels of this person, or what there is to settle."""
    progress = labelling.progress()
    mine = labelling.labels_by(ADJUDICATOR if adjudicating else person)
    wanted: Sequence[str] = [task.case for task in labelling.tasks]
    if adjudicating:
        wanted = [case for case in wanted if case in mine or case in set(progress.disputed)]
    return {
        "cases": [[labelling.index_of(case), mine.get(case)] for case in wanted],
        "progress": progress_json(progress),
    }


def progress_json(progress: Progress) -> dict[str, Any]:
    """Return a labelling's state for its page."""
    agreement = progress.agreement
    return {
        "cases": progress.cases,
        "labelled": progress.labelled,
        "annotators": len(progress.by_annotator),
        "disputed": len(progress.disputed),
        "kappa": agreement.kappa if agreement else None,
        "by_two": agreement.cases if agreement else 0,
    }


@router.get("/{name}/case/{place}")
def case(
    labelling: LabellingIn, task: Task, person: Person, adjudicating: bool = False
) -> Response:
    """Return one case and this person's word; for an adjudicator also the others', unnamed."""
    return escaped_json(
        {
            "question": task.question,
            "answer": task.answer,
            "contexts": list(task.contexts),
            **_word_json(labelling, task.case, person, adjudicating=adjudicating),
        }
    )


def _word_json(
    labelling: Labelling, case: str, person: str, *, adjudicating: bool
) -> dict[str, Any]:
    word = labelling.word(case, ADJUDICATOR if adjudicating else person)
    if not adjudicating:
        return {"label": word.label, "note": word.note, "version": word.version}
    others = sorted((other.label or "", other.note) for other in labelling.words(case))
    return {
        "label": word.label,
        "note": word.note,
        "version": labelling.version_of(case),
        "words": [{"label": label, "note": note} for label, note in others],
    }


@router.put("/{name}/case/{place}")
async def put_label(
    request: Request, labelling: LabellingIn, task: Task, person: Person
) -> Response:
    """Write a word on a case.

    The reply says 200 once it is on disk, 409 if it was changed since it was read, 507 if the disk
    did not take it.
    """
    try:
        body = json.loads(await request.body())
        label, note = checked_mark(body["label"]), body["note"]
        version, adjudicating = body["version"], body["adjudicating"]
        note.encode()
        if not isinstance(version, str) or not isinstance(adjudicating, bool):
            raise TypeError
        if len(note) > LONGEST_NOTE or (adjudicating and label == "abstain"):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise HTTPException(422, "a label with its note and version") from None
    annotator = ADJUDICATOR if adjudicating else person
    status = 200
    try:
        labelling.put(task.case, annotator, label, note, version, person)
    except EditConflict:
        status = 409
    except Unwritable:
        raise HTTPException(507, "the disk did not take the label") from None
    return JSONResponse(
        {
            **_word_json(labelling, task.case, person, adjudicating=adjudicating),
            "progress": progress_json(labelling.progress()),
        },
        status,
    )
