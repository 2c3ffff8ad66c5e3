"""Stored decisions: filters, one with its marks and evidence, feedback in one key, a sample.

Opening a decision is reading its texts: the store notes it in its table `views`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from guardrail_decisions.keys import CannotDecrypt
from guardrail_decisions.reading import Decisions, Filters
from guardrail_decisions.rows import StoredDecision
from guardrail_offline.production.drawing import draw_sample
from guardrail_offline.studio.label_files import checked_mark
from guardrail_offline.studio.label_pages import whole_number
from guardrail_offline.studio.studio_pages import (
    Fields,
    Person,
    Studio,
    StudioIn,
    page,
    session_of,
    studio_of,
)
from guardrail_service.errors import ConfigurationError, ServiceError
from guardrail_service.server.decisions import Feedback
from guardrail_service.server.translate import to_detector
from guardrail_service.types import Decision

router = APIRouter(prefix="/decisions")
PER_PAGE = 50
LONGEST_COMMENT = 10_000
"""As of `POST /v1/feedback`."""
SAMPLE = 50
"""Decisions to draw if nothing else is said."""
_LAST_DAY = datetime(9999, 12, 31, tzinfo=UTC)
"""No day follows it: until then is until any time."""
WORDS: Mapping[str, Decision] = {"flag": "flag", "pass": "pass"}


def store_of(request: Request) -> Decisions:
    """Return the store that the studio was given."""
    store = studio_of(request).workspace.store
    if store is None:
        raise HTTPException(404, "no decision store was given at the start")
    return store


StoreIn = Annotated[Decisions, Depends(store_of)]


def filters_of(asked: Mapping[str, str]) -> Filters:
    """Return the filters of an address; a value that is none is refused.

    Raises:
        HTTPException: 422 naming the filter.
    """
    given = {name: asked.get(name, "").strip()[:200] or None for name in FILTERS}
    decision = given["decision"]
    if decision is not None and decision not in WORDS:
        raise HTTPException(422, "decision: flag or pass")
    labelled = {None: None, "yes": True, "no": False}.get(given["labelled"], "other")
    if labelled == "other":
        raise HTTPException(422, "labelled: yes or no")
    return Filters(
        since=_day(given["since"], "since"),
        until=_day(given["until"], "until", after=True),
        policy=given["policy"],
        caller=given["caller"],
        decision=WORDS[decision] if decision else None,
        detector=given["detector"],
        request_id=given["request_id"],
        labelled=labelled if isinstance(labelled, bool) else None,
    )


FILTERS = (
    "decision", "policy", "detector", "caller", "labelled", "since", "until", "request_id",
)  # fmt: skip


def _day(text: str | None, name: str, *, after: bool = False) -> datetime | None:
    if text is None:
        return None
    try:
        day = datetime.combine(datetime.strptime(text, "%Y-%m-%d").date(), time(), UTC)  # noqa: DTZ007 - the zone is added
    except ValueError:
        raise HTTPException(422, f"{name}: a day as 2026-01-31") from None
    if not after:
        return day
    return day + timedelta(days=1) if day < _LAST_DAY else None


@router.get("")
def list_decisions(
    request: Request, studio: StudioIn, person: Person, before: str = "", wrong: str = ""
) -> Response:
    """List decisions, the newest first; without texts."""
    store = studio.workspace.store
    if store is None:
        return page(request, "no_store.html.j2")
    asked = dict(request.query_params)
    return page(request, "decisions.html.j2", **_listed(store, asked, before), wrong=wrong)


def _listed(store: Decisions, asked: Mapping[str, str], before: str = "") -> dict[str, Any]:
    filters = filters_of(asked)
    edge = int(before) if before.isdecimal() and len(before) < 18 else None
    found = list(store.decisions(filters, before=edge, limit=PER_PAGE + 1, newest_first=True))
    policies = sorted({str(entry["name"]) for entry in store.policies().values()})
    detectors = sorted({name for one in found for name in one.record.detectors})
    chosen = {name: asked.get(name, "") for name in FILTERS}
    return {
        "sample": SAMPLE,
        "found": found[:PER_PAGE],
        "more": found[PER_PAGE - 1].key if len(found) > PER_PAGE else None,
        "total": store.count(filters),
        "all": store.count(),
        "policies": policies,
        "detectors": detectors,
        "chosen": chosen,
        "asked": {name: value for name, value in chosen.items() if value},
    }


def stored_of(request: Request, store: StoreIn, key: int) -> StoredDecision:
    """Return a decision without its texts."""
    found = store.at(key) if 0 < key < 2**53 else None
    if found is None:
        raise HTTPException(404, "no such decision")
    return found


Stored = Annotated[StoredDecision, Depends(stored_of)]


@router.get("/{key}")
def decision(request: Request, store: StoreIn, stored: Stored, person: Person) -> Response:
    """Show one decision; its texts come with the next request, which is noted."""
    asked = dict(request.query_params)
    filters = filters_of(asked)
    newer = next(store.decisions(filters, after=stored.key, limit=1), None)
    older = next(store.decisions(filters, before=stored.key, limit=1, newest_first=True), None)
    return page(
        request,
        "decision.html.j2",
        one=stored,
        newer=newer,
        older=older,
        asked={name: asked[name] for name in FILTERS if asked.get(name)},
    )


@router.get("/{key}/data")
def decision_data(store: StoreIn, stored: Stored, person: Person) -> dict[str, Any]:
    """Return a decision with its texts; the store notes who reads them."""
    try:
        found = store.at(stored.key, viewer=person)
    except CannotDecrypt:
        found = None
    except (ServiceError, OSError):
        raise HTTPException(503, "the store cannot be reached") from None
    record = (found or stored).record
    has_texts = found is not None and found.text_mode in ("redacted", "full")
    return {
        "decision": record.decision,
        "action": record.action,
        "status": record.status,
        "summary": "",
        "question": record.question if has_texts else None,
        "answer": record.answer if has_texts else None,
        "contexts": list(record.contexts) if has_texts else [],
        "texts": stored.text_mode,
        "detectors": {
            name: to_detector(result, {"spans", "evidence"}).model_dump(mode="json")
            for name, result in record.detectors.items()
        },
        "feedback": _said(stored, person),
    }


def _said(stored: StoredDecision, person: str) -> list[dict[str, Any]]:
    """Return everybody's last word on the whole answer."""
    last = {word.caller: word for word in stored.feedback if word.metric is None}
    return [
        {
            "label": word.label,
            "caller": caller,
            "mine": caller == person,
            "comment": word.comment,
        }
        for caller, word in last.items()
    ]


@router.post("/{key}/feedback")
async def give_feedback(
    request: Request, store: StoreIn, stored: Stored, person: Person
) -> Response:
    """Store this person's word on a decision; the reply comes once it is durable.

    Of a comment is kept what the store kept of the decision's own texts.
    """
    if "feedback" not in session_of(request).rights:
        raise HTTPException(403, "this key has not the right feedback")
    try:
        said = json.loads(await request.body())
        label = checked_mark(said["label"])
        if label is None:
            raise ValueError
        comment = _comment(said)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise HTTPException(422, "pass, fail or abstain") from None
    record = stored.record
    word = Feedback(record.request_id, label, person, item=record.item, comment=comment)
    kept = stored.text_mode if comment else None
    try:
        state = await run_in_threadpool(store.add_feedback, word, kept)
    except ConfigurationError:
        raise HTTPException(
            422, "comments are encrypted or hashed here; start the studio with --decision-keys"
        ) from None
    now = await run_in_threadpool(store.at, stored.key)
    return JSONResponse({"state": state, "feedback": _said(now or stored, person)})


def _comment(said: Mapping[str, Any]) -> str | None:
    """Return the comment of a word, None without one.

    Raises:
        HTTPException: 422 if it is no text, or too long.
    """
    comment = said.get("comment") or ""
    try:
        comment.encode()
        if len(comment) > LONGEST_COMMENT:
            raise ValueError
    except (AttributeError, ValueError):  # no text, half a character, or too long
        wanted = f"comment: a text of at most {LONGEST_COMMENT} characters"
        raise HTTPException(422, wanted) from None
    return comment.strip() or None


@router.post("/sample")
def draw(request: Request, studio: StudioIn, person: Person, fields: Fields) -> Response:
    """Draw flagged and random decisions with known probabilities; ready to be labelled then."""
    try:
        return RedirectResponse(f"/label/{_drawn(studio, person, fields)}", 303)
    except ConfigurationError as error:
        store = studio.workspace.store
        if store is None:
            raise HTTPException(404, "no decision store was given at the start") from None
        return page(request, "decisions.html.j2", 422, **_listed(store, {}), wrong=str(error))


def _drawn(studio: Studio, person: str, fields: Mapping[str, str]) -> str:
    """Draw into a new folder and return the labelling's name."""
    workspace = studio.workspace
    if workspace.store is None:
        raise ConfigurationError("store", "none", "a decision store at the start")
    count = whole_number(fields, "count", 1, 100_000)
    drawn = {"evenly": count} if fields.get("how") != "halves" else {
        "flagged": count // 2, "random": count - count // 2
    }  # fmt: skip
    policy = fields.get("policy") or None
    folder = workspace.new_folder(f"decisions-{datetime.now(UTC):%Y-%m-%d}")
    try:
        chosen = Filters(policy=policy)
        draw_sample(workspace.store, folder, person, filters=chosen, **drawn)
    except ConfigurationError:
        for left in folder.iterdir():
            left.unlink()
        folder.rmdir()
        raise
    return workspace.open_labelling(folder).name
