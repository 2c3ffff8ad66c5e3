"""Two policies over the same answers, or two runs, case by case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from guardrail_offline.calibration.derivation import derive
from guardrail_offline.calibration.scored_lab import LabCase, ScoredLab, read_lab
from guardrail_offline.production.replay import replay_one
from guardrail_offline.runs.run_comparison import compare
from guardrail_offline.runs.run_folder import MANIFEST
from guardrail_offline.studio.studio_pages import Person, Studio, StudioIn, page
from guardrail_service.errors import ConfigurationError, ServiceError
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.difference import difference

router = APIRouter(prefix="/compare")
MOST_SHOWN = 200
MOST_REPLAYED = 5_000
"""Latest stored decisions that are replayed."""
STORE = "(stored decisions)"


@dataclass(frozen=True, slots=True)
class ChangedCase:
    """One case that two policies, or two runs, judge differently.

    Attributes:
        before: The decision or the score, in words.
        after: The same of the other.
        why: Checks that decided, or the metric.
        address: Of the stored decision; None for a case of a lab.
    """

    key: str
    before: str
    after: str
    why: str
    case: LabCase | None = None
    address: str | None = None


@router.get("")
def compare_page(request: Request, studio: StudioIn, person: Person) -> Response:
    """Show what can be compared, and the comparison that was asked for."""
    asked = {k: v[:200] for k, v in request.query_params.items()}
    found: dict[str, Any] = {"kind": None}
    wrong = ""
    try:
        if asked.get("kind") == "policies":
            found = _policies(studio, asked)
        elif asked.get("kind") == "runs":
            found = _runs(studio, asked)
    except ServiceError as error:
        wrong = str(error)
    try:
        bases = list(studio.bases())
    except ServiceError as error:
        bases, wrong = [], str(error)
    return page(
        request,
        "compare.html.j2",
        422 if wrong else 200,
        asked={"kind": "", "before": "", "after": "", "over": "", **asked},
        bases=bases,
        labs=list(studio.workspace.all_labs()),
        runs=[n for n, p in studio.workspace.labs.items() if (p / MANIFEST).is_file()],
        store=STORE if studio.workspace.store is not None else None,
        found=found,
        wrong=wrong,
    )


def _policies(studio: Studio, asked: Mapping[str, str]) -> dict[str, Any]:
    bases = studio.bases()
    before, after = (_policy(studio, bases, asked.get(side, "")) for side in ("before", "after"))
    over = asked.get("over", "")
    if over == STORE:
        counts, cases = _replayed(studio, before, after)
    else:
        lab = studio.workspace.all_labs().get(over)
        if lab is None:
            raise ConfigurationError("over", "none of that name", "one of the list")
        counts, cases = _derived(read_lab(lab), before, after)
    return {
        "kind": "policies",
        "counts": counts,
        "cases": cases[:MOST_SHOWN],
        "changed": len(cases),
        "settings": difference(before, after),
    }


def _policy(studio: Studio, bases: Mapping[str, Path], name: str) -> Policy:
    if name not in bases:
        raise ConfigurationError("policy", "none of that name", "one of the list")
    return studio.judge.policy(bases[name])


def _derived(
    lab: ScoredLab, before: Policy, after: Policy
) -> tuple[dict[str, int], list[ChangedCase]]:
    old, new = derive(lab, before), derive(lab, after)
    cases = lab.by_key()
    flips = new.changes(old)
    counts = {
        "cases": len(cases),
        "flagged before": sum(d.decision == "flag" for d in old.decisions.values()),
        "flagged after": sum(d.decision == "flag" for d in new.decisions.values()),
        "newly flagged": sum(flip.after == "flag" for flip in flips),
        "no longer flagged": sum(flip.after == "pass" for flip in flips),
    }
    changed = []
    for flip in flips:
        deciding = new if flip.after == "flag" else old
        why = ", ".join(deciding.decisions[flip.case].flagged)
        changed.append(ChangedCase(flip.case, flip.before, flip.after, why, cases[flip.case]))
    return counts, changed


def _replayed(
    studio: Studio, before: Policy, after: Policy
) -> tuple[dict[str, int], list[ChangedCase]]:
    store = studio.workspace.store
    if store is None:
        raise ConfigurationError("over", "no store", "one of the list")
    fingerprints = studio.judge.serving.fingerprints
    counts = dict.fromkeys(
        ("cases", "flagged before", "flagged after", "newly flagged", "no longer flagged",
         "cannot be replayed"), 0,
    )  # fmt: skip
    changed = []
    for stored in store.decisions(limit=MOST_REPLAYED, newest_first=True):
        old, new = (replay_one(stored.record, policy, fingerprints) for policy in (before, after))
        if old.new is None or new.new is None:
            counts["cannot be replayed"] += 1
            continue
        counts["cases"] += 1
        counts["flagged before"] += old.new == "flag"
        counts["flagged after"] += new.new == "flag"
        if old.new != new.new:
            counts["newly flagged" if new.new == "flag" else "no longer flagged"] += 1
            why = ", ".join(new.new_flagged if new.new == "flag" else old.new_flagged)
            address = f"/decisions/{stored.key}"
            changed.append(
                ChangedCase(stored.record.request_id, old.new, new.new, why, address=address)
            )
    return counts, changed


def _runs(studio: Studio, asked: Mapping[str, str]) -> dict[str, Any]:
    labs = studio.workspace.labs
    try:
        before, after = (labs[asked.get(side, "")] for side in ("before", "after"))
    except KeyError:
        raise ConfigurationError("run", "none of that name", "one of the list") from None
    found = compare(before, after)
    cases = sorted(_scores(read_lab(before), read_lab(after)), key=lambda one: -one[0])
    return {
        "kind": "runs",
        "comparison": found,
        "cases": [case for _, case in cases[:MOST_SHOWN]],
        "changed": len(cases),
    }


def _scores(before: ScoredLab, after: ScoredLab) -> Iterator[tuple[float, ChangedCase]]:
    """Yield each case whose scores differ, by its largest difference."""
    partners = before.by_key()
    for case in after.cases:
        old = partners.get(case.key)
        if old is None:
            continue
        moved = [
            (abs(score.value - was.value), f"{name}.{key}", was.value, score.value)
            for name, metrics in case.scores.items()
            for key, score in metrics.items()
            if score.value is not None
            and (was := old.scores.get(name, {}).get(key)) is not None
            and was.value is not None
            and was.value != score.value
        ]
        if moved:
            size, metric, was_value, now = max(moved)
            yield size, ChangedCase(case.key, f"{was_value:.3f}", f"{now:.3f}", metric, case)
