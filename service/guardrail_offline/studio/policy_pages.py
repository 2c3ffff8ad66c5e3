"""Policies of a deployment in versions: what is live, in the shadow, and what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from guardrail_offline.studio.studio_pages import (
    Administrator,
    Fields,
    Person,
    Studio,
    StudioIn,
    page,
    studio_of,
)
from guardrail_service.errors import ConfigurationError, ServiceError
from guardrail_service.policy.difference import difference
from guardrail_service.policy.versions import (
    PolicyFolder,
    checked_path,
    promote,
    read_folder,
    rollback,
    set_shadow,
)

router = APIRouter(prefix="/policies")
MOST_SHADOWED = 5_000
"""Latest decisions among which a shadow's disagreements are counted."""


@router.get("")
def list_policies(request: Request, studio: StudioIn, person: Person) -> Response:
    """List the policies with their live versions."""
    folder = studio.workspace.policies
    if folder is None:
        return page(request, "no_policies.html.j2")
    return page(request, "policies.html.j2", found=read_folder(folder))


def policy_of(request: Request, name: str) -> PolicyFolder:
    """Return a policy by its name, as the folder lists it."""
    folder = studio_of(request).workspace.policies
    found = () if folder is None else read_folder(folder)
    for policy in found:
        if policy.name == name:
            return policy
    raise HTTPException(404, "no such policy")


PolicyIn = Annotated[PolicyFolder, Depends(policy_of)]


@router.get("/{name}")
def policy_page(request: Request, studio: StudioIn, policy: PolicyIn, person: Person) -> Response:
    """Show the versions of a policy, with what distinguishes each from the live one."""
    return _policy_page(request, studio, policy)


def _policy_page(
    request: Request, studio: Studio, policy: PolicyFolder, wrong: str = ""
) -> Response:
    return page(
        request,
        "policy.html.j2",
        422 if wrong else 200,
        policy=policy,
        versions=sorted(policy.versions.values(), key=lambda v: -int(v.version)),
        changes=dict(_changes(studio, policy)),
        shadows=_shadows(studio, policy),
        can_roll_back=_can_roll_back(policy),
        wrong=wrong,
    )


def _can_roll_back(policy: PolicyFolder) -> bool:
    try:
        policy.before()
    except ConfigurationError:
        return False
    return True


def _changes(studio: Studio, policy: PolicyFolder) -> Iterator[tuple[str, Mapping[str, Any] | str]]:
    """Yield by version what it means otherwise than the live one, or why it cannot be served."""
    live = policy.alias.live
    for number in policy.versions:
        if live is None or number == live:
            continue
        try:
            both = [
                studio.judge.policy(checked_path(policy.version(one))) for one in (live, number)
            ]
            yield number, difference(*both)
        except ServiceError as error:
            yield number, str(error)


def _shadows(studio: Studio, policy: PolicyFolder) -> dict[str, dict[str, int]]:
    """Return by version in the shadow how often it agreed with the decision, of the latest ones."""
    store = studio.workspace.store
    counts = {number: {"same": 0, "flags": 0, "passes": 0} for number in policy.alias.shadow}
    if store is None or not counts:
        return counts
    for stored in store.decisions(limit=MOST_SHADOWED, newest_first=True):
        for word in stored.record.shadow:
            count = counts.get(word.policy_version)
            if count is None or word.policy != policy.name:
                continue
            same = word.decision == stored.record.decision
            count["same" if same else "flags" if word.decision == "flag" else "passes"] += 1
    return counts


@router.post("/{name}/{what}")
def change(
    request: Request, studio: StudioIn, policy: PolicyIn, what: str, who: Administrator,
    fields: Fields,
) -> Response:  # fmt: skip
    """Promote a version, roll back, or begin or end a shadow."""
    folder = studio.workspace.policies
    if folder is None or what not in ("promote", "rollback", "shadow", "unshadow"):
        raise HTTPException(404, "no such change")
    version = fields.get("version", "")
    why = fields.get("why", "").strip()[:500]
    check = studio.judge.policy
    shadow = policy.alias.shadow
    try:
        if what == "promote":
            if fields.get("live", "") != (policy.alias.live or ""):
                raise ConfigurationError("live", "another version than this page showed",
                                         "a look at the new state, then the same step")  # fmt: skip
            promote(folder, policy.name, version, why=why, by=who, check=check)
        elif what == "rollback":
            rollback(folder, policy.name, why=why, by=who, check=check)
        elif what == "shadow":
            set_shadow(folder, policy.name, (*shadow, version), why=why, by=who, check=check)
        else:
            left = tuple(one for one in shadow if one != version)
            set_shadow(folder, policy.name, left, why=why, by=who, check=check)
    except ServiceError as error:
        return _policy_page(request, studio, policy_of(request, policy.name), str(error))
    return RedirectResponse(f"/policies/{policy.name}", 303)
