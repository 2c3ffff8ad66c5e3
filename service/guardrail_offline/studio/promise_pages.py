"""Promises of the store's policies and drift of their scores, as `decisions report` has them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from guardrail_offline.production.decisions_page import WORDS, percent
from guardrail_offline.studio.studio_pages import Person, StudioIn, page

if TYPE_CHECKING:
    from guardrail_decisions.monitor.promise import PromiseFinding
    from guardrail_decisions.monitor.watch import PolicyFindings

router = APIRouter(prefix="/promise")
LEFT, RIGHT, TOP, BOTTOM = 10.0, 97.0, 3.0, 30.0
"""Edges of the picture's field."""


@router.get("")
def promises(request: Request, studio: StudioIn, person: Person) -> Response:
    """Show each policy's promises and drift, the policy that came last first."""
    found = [_shown(one) for one in reversed(studio.workspace.findings())]
    return page(
        request, "promise.html.j2", policies=found, words=WORDS, percent=percent, moment=_moment
    )


def _shown(found: PolicyFindings) -> dict[str, Any]:
    """Return a policy's findings as the report's JSON has them, with a picture of each promise."""
    content = found.as_json()
    for promise, finding in zip(content["promises"], found.promises, strict=True):
        promise["picture"] = picture(finding)
    return content


def picture(finding: PromiseFinding) -> dict[str, Any] | None:
    """Return the places of estimate and interval over labels; None without labels.

    Upwards is the share, from 0 to four times the bound or a little more than the estimate.
    """
    path = finding.path()
    if not path:
        return None
    bound = finding.promise.bound
    highest = min(1.0, max(4 * bound, 1.25 * path[-1].share))
    most = max(1, path[-1].labels)

    def place(labels: int, share: float) -> str:
        across = LEFT + (RIGHT - LEFT) * labels / most
        return f"{across:.2f},{_up(min(share, highest) / highest):.2f}"

    upper = [place(one.labels, one.interval[1]) for one in path]
    lower = [place(one.labels, one.interval[0]) for one in path]
    return {
        "band": " ".join([*upper, *reversed(lower)]),
        "line": " ".join(place(one.labels, one.share) for one in path),
        "bound": f"{_up(bound / highest):.2f}",
        "highest": highest,
        "labels": path[-1].labels,
    }


def _up(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
