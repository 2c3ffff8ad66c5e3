"""The frame of every page of the studio, signing in and the overview."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from guardrail_offline.calibration.labels import ADJUDICATOR
from guardrail_offline.report.page import number
from guardrail_offline.studio.access import (
    Access,
    StudioSession,
    form_fields,
    set_session,
)
from guardrail_service import __version__

if TYPE_CHECKING:
    from guardrail_offline.studio.calibrate_pages import KeptFit
    from guardrail_offline.studio.judging import StudioJudge
    from guardrail_offline.studio.workspace import Workspace

LONGEST_NAME = 80
STATIC = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PARTS = (
    ("/decisions", "Decisions"),
    ("/label", "Label"),
    ("/calibrate", "Calibrate"),
    ("/policies", "Policies"),
    ("/promise", "Promise"),
    ("/compare", "Compare"),
    ("/try", "Try"),
)
"""Address and name of each part, in the order of the loop."""
SHARED_STYLE = "colours.css"
"""The report's colours, in light and dark."""


@dataclass(frozen=True)
class Studio:
    """All that pages are made of.

    Attributes:
        access: Tokens and sessions.
        workspace: Labellings, labs, the store and the policies that were given at the start.
        judge: Models and policies, loaded when first needed.
        secure: The browser reaches the studio by https only.
        notices: Shown on the overview.
        fits: Since the start, by key.
    """

    access: Access
    workspace: Workspace
    judge: StudioJudge
    secure: bool = False
    notices: tuple[str, ...] = field(default=())
    fits: dict[str, KeptFit] = field(default_factory=dict)

    def bases(self) -> dict[str, Path]:
        """Return the guardrail JSONs at hand by name, versions of policies first.

        Raises:
            ConfigurationError: If the folder of versions cannot be read.
        """
        found = self.workspace.version_files()
        for file in self.judge.settings.config_files():
            name = file.stem if file.stem not in found else str(file)
            found[name] = file
        return found


router = APIRouter()


def studio_of(request: Request) -> Studio:
    """Return what the pages are made of."""
    studio: Studio = request.app.state.studio
    return studio


def session_of(request: Request) -> StudioSession:
    """Return the session of a request that the door let in."""
    session: StudioSession | None = request.state.session
    if session is None:
        raise HTTPException(401, "sign in first")
    return session


def person_of(request: Request) -> str:
    """Return the name that labels and feedback carry."""
    name = session_of(request).person
    if not name:
        raise HTTPException(303, headers={"Location": "/name"})
    return name


def administrator_of(request: Request) -> str:
    """Return the person's name if he may change policies.

    Raises:
        HTTPException: 403 if he may not.
    """
    if "admin" not in session_of(request).rights:
        raise HTTPException(403, "this key has not the right admin")
    return person_of(request)


StudioIn = Annotated[Studio, Depends(studio_of)]
Person = Annotated[str, Depends(person_of)]
Administrator = Annotated[str, Depends(administrator_of)]


@lru_cache
def studio_templates() -> Environment:
    """Return the templates; whatever they show is escaped."""
    environment = Environment(
        loader=PackageLoader("guardrail_offline.studio"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["num"] = number
    return environment


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page; a lone surrogate in a text is shown escaped."""
    session: StudioSession | None = request.state.session
    studio = studio_of(request)
    return HTMLResponse(
        studio_templates()
        .get_template(template)
        .render(
            version=__version__,
            person=session.person if session else "",
            csrf=session.csrf if session else "",
            admin=session is not None and "admin" in session.rights,
            by_key=studio.access.by_key,
            path=request.url.path,
            parts=PARTS,
            has_store=studio.workspace.store is not None,
            **values,
        )
        .encode("utf-8", "backslashreplace"),
        status,
    )


def escaped_json(content: Mapping[str, Any]) -> Response:
    """Return texts for a script; a lone surrogate, for which UTF-8 has no form, comes escaped."""
    return Response(json.dumps(content), media_type="application/json")


async def fields_of(request: Request) -> dict[str, str]:
    """Return the fields of a form.

    Raises:
        HTTPException: 400 if there are more than any of our forms has.
    """
    try:
        return form_fields(await request.body())
    except ValueError:
        raise HTTPException(400, "another form than the studio's") from None


Fields = Annotated[dict[str, str], Depends(fields_of)]


@lru_cache
def _static(name: str) -> tuple[str, bytes] | None:
    """Return type and bytes of one of our own files; names come from the folder's list."""
    if name == SHARED_STYLE:
        found = resources.files("guardrail_offline.report") / "templates" / SHARED_STYLE
        return STATIC[".css"], found.read_bytes()
    for file in (resources.files(__package__) / "static").iterdir():
        kind = STATIC.get(Path(file.name).suffix)
        if file.name == name and kind is not None:
            return kind, file.read_bytes()
    return None


@router.get("/static/{name}")
def static(name: str) -> Response:
    """Return a style or a script of the studio."""
    found = _static(name) if len(name) < LONGEST_NAME else None
    if found is None:
        raise HTTPException(404, "no such file")
    return Response(found[1], media_type=found[0])


@router.get("/enter")
def enter(request: Request, studio: StudioIn, token: str = "") -> Response:
    """Use a one-time token up. The page goes on by itself.

    A redirect would not carry the cookie where the address was opened from another site.
    """
    if studio.access.by_key:
        raise HTTPException(404, "no tokens here")
    secret = studio.access.enter(token)
    if secret is None:
        return page(request, "sign_in.html.j2", 403, failed=True)
    reply = page(request, "entered.html.j2")
    set_session(reply, studio.access, secret, secure=studio.secure)
    return reply


@router.get("/sign-in")
def sign_in_page(request: Request) -> Response:
    """Show how to come in."""
    return page(request, "sign_in.html.j2", failed=False)


@router.post("/sign-in")
def sign_in(request: Request, studio: StudioIn, fields: Fields) -> Response:
    """Open a session with a key; elsewhere than on loopback."""
    secret = studio.access.enter_with_key(fields.get("key", ""))
    if secret is None:
        return page(request, "sign_in.html.j2", 403, failed=True)
    reply = RedirectResponse("/", 303)
    set_session(reply, studio.access, secret, secure=studio.secure)
    return reply


@router.post("/leave")
def leave(request: Request, studio: StudioIn) -> Response:
    """End the session."""
    studio.access.leave(request.state.secret or "")
    reply = RedirectResponse("/sign-in", 303)
    reply.delete_cookie(studio.access.cookie)
    return reply


@router.get("/name")
def name_page(request: Request) -> Response:
    """Ask who labels."""
    return page(request, "name.html.j2", wrong="")


@router.post("/name")
def give_name(request: Request, studio: StudioIn, fields: Fields) -> Response:
    """Take the name that labels and feedback will carry; a key's id stays."""
    name = " ".join(fields.get("name", "").split())
    wrong = _wrong_name(name)
    if studio.access.by_key:
        wrong = "a key's name is its id"
    if wrong:
        return page(request, "name.html.j2", 422, wrong=wrong)
    session_of(request).person = name
    return RedirectResponse("/", 303)


def _wrong_name(name: str) -> str:
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        return f"a name has 1 to {LONGEST_NAME} characters"
    if name.casefold() == ADJUDICATOR:
        return f"{ADJUDICATOR} is whoever settles disagreements; take your own name"
    return ""


@router.post("/invite")
def invite(request: Request, studio: StudioIn, person: Person) -> Response:
    """Return an address that lets one more browser in, once and for an hour."""
    if studio.access.by_key:
        raise HTTPException(404, "people come in with their own keys")
    token = studio.access.new_token()
    return JSONResponse(
        {"address": f"{request.url.scheme}://{request.url.netloc}/enter?token={token}"}
    )


@router.get("/")
def overview(request: Request, studio: StudioIn, person: Person) -> Response:
    """Show where the loop stands: decisions, labels, thresholds, versions."""
    return page(
        request,
        "overview.html.j2",
        labellings=studio.workspace.overview(),
        workspace=studio.workspace,
        notices=studio.notices,
    )
