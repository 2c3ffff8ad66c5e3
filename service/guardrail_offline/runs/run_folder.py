"""The folder of a run: its plan, what may lie in it, and what an earlier run has left there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from guardrail_offline.datasets.cases import model_from_json, model_json
from guardrail_offline.datasets.labs import LabSource
from guardrail_offline.datasets.sampled_labs import sample_from_json
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.runs.shards import Layout, ShardPlan, cut, write_json, written_name
from guardrail_service.errors import ConfigurationError

MANIFEST = "manifest.json"
SUMMARY = "summary.json"
TIMINGS = "timings.json"
OUTPUTS = frozenset({
    MANIFEST, SUMMARY, TIMINGS, "scores.parquet", "open_rag_eval.csv", "leaderboards.json",
    "leaderboards.md", "flips.json", "problems.json", "insights.json",
    "conversations.json", "run_consistency.json", "grammar.json", "cases.jsonl", "report.html",
    "judge.json", "transcripts.sqlite", "sample.json",
})  # fmt: skip
"""Files of a run, beside its result files and shards."""
_WANTED = "an empty folder, or a run to go on with"


def planned(lab: LabSource, layout: Layout, manifest: dict[str, Any]) -> ShardPlan:
    """Return the plan of an earlier run of the same thing, or cut the lab.

    Args:
        lab: What is evaluated.
        layout: Where the files lie.
        manifest: What is run, with which settings; an earlier run has to have the same.

    Raises:
        ConfigurationError: If the lab is empty or wrong, or the folder holds another run or
            anything else.
    """
    _refuse_a_file(layout.out)
    path = layout.out / MANIFEST
    if path.exists():
        found, plan = recorded(path)
        if found != manifest:
            different = sorted(k for k in {**found, **manifest} if found.get(k) != manifest.get(k))
            words = ", ".join(f"{'other' if k.endswith('s') else 'another'} {k}" for k in different)
            raise ConfigurationError(str(layout.out), f"a run with {words}", "an empty folder")
        return plan
    if any(_others(layout)):
        raise ConfigurationError(str(layout.out), "other files", _WANTED)
    plan = cut(lab, layout, manifest["shard_rows"])
    described = asdict(plan) | {"models": [model_json(model) for model in plan.models]}
    if not plan.ignored_columns:
        del described["ignored_columns"]
    if plan.sample is None:
        del described["sample"]
    write_json(path, manifest | {"plan": described})
    return plan


def sweep(layout: Layout, plan: ShardPlan, configured: Sequence[Configured]) -> None:
    """Remove what an earlier run was writing when it was stopped; only files of our own names."""
    shards = range(plan.shards)
    parts = (layout.cases, layout.scores, layout.times, layout.tallies)
    written = {
        layout.out: OUTPUTS,
        layout.work: {path(n).name for n in shards for path in parts},
        layout.out / "results": {f"{one.id}.json" for one in configured},
    }
    for folder, names in written.items():
        for leftover in folder.glob(".*.tmp"):
            if written_name(leftover) in names:
                leftover.unlink()


def is_cut(layout: Layout, plan: ShardPlan) -> bool:
    """Return True if the lab lies there in shards, False if nothing is left of them.

    Raises:
        ConfigurationError: If some are missing.
    """
    there = sum(layout.cases(shard).exists() for shard in range(plan.shards))
    scored = any(layout.scores(shard).exists() for shard in range(plan.shards))
    if there == plan.shards:
        return True
    if there or scored:
        found = f"{there} of {plan.shards} shards"
        raise ConfigurationError(str(layout.work), found, "all of them, or no such folder")
    return False


def _refuse_a_file(out: Path) -> None:
    nearest = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise ConfigurationError(str(nearest), "a file", "a folder")


def recorded(path: Path) -> tuple[dict[str, Any], ShardPlan]:
    """Return what a manifest says beside the plan, and the plan.

    Raises:
        ConfigurationError: If it is no manifest.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
        plan = found.pop("plan")
        models = tuple(model_from_json(model) for model in plan["models"])
        ignored = tuple(map(str, plan.get("ignored_columns", ())))
        sample = sample_from_json(plan["sample"]) if "sample" in plan else None
        return found, ShardPlan(int(plan["cases"]), int(plan["shards"]), models, ignored, sample)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigurationError(str(path), "no manifest of a run", _WANTED) from error


def _others(layout: Layout) -> Iterator[Path]:
    """Yield what is in a folder without a manifest and not of a run that was stopped before it."""
    for path in layout.out.iterdir() if layout.out.exists() else ():
        if path != layout.work and written_name(path) != MANIFEST:
            yield path
    for path in layout.work.iterdir() if layout.work.is_dir() else ():
        if not layout.is_cases(written_name(path) or path.name):
            yield path
