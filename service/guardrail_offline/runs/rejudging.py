"""Asks a judge again what has no answer in a finished run, and scores again what that changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from guardrail_offline.evaluators.backends import backed
from guardrail_offline.evaluators.catalogue import CATALOGUE, Common
from guardrail_offline.evaluators.configured import Configured, config_sha256
from guardrail_offline.hosts.opening import served_choice
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.judge.results import FINAL
from guardrail_offline.runs.execution import RunOptions, Summary, fingerprints_of, finished
from guardrail_offline.runs.judge_runs import JudgeRun, manifest_digest, with_transcripts
from guardrail_offline.runs.run_folder import MANIFEST, recorded
from guardrail_offline.runs.shards import Layout, ShardPlan, read_scored
from guardrail_service.errors import ConfigurationError

_SERVED = {"language_model": "--language-model", "embeddings": "--embeddings"}
"""Models that a manifest names beside the judge, and the options that named them."""


def judge_of_run(out: Path) -> Mapping[str, Any]:
    """Return address, model and options of a run's judge.

    Raises:
        ConfigurationError: If the folder holds no run with a judge.
    """
    content, _ = recorded(out / MANIFEST)
    found = [one["judge"] for one in content["evaluators"].values() if "judge" in one]
    if not found:
        raise ConfigurationError(str(out), "a run without a judge", "a run with one")
    judge: Mapping[str, Any] = found[0]
    return judge


def rejudge(options: RunOptions, settings: JudgeSettings) -> Summary:
    """Ask again what has no answer, and return the counts of the run as it is then.

    Args:
        options: Of the run in `options.out`.
        settings: Its judge; with `ask_again` parse failures and refusals are asked again, too.

    Raises:
        ConfigurationError: If the folder holds no such run, its shards are gone, or it was made by
            another version.
    """
    layout = Layout(options.out)
    content, plan = recorded(options.out / MANIFEST)
    options = replace(
        options,
        texts=content["texts"],
        layout=content.get("layout", "keys"),
        missing=content.get("missing", "both"),
    )
    configured = with_transcripts(_configured(content["evaluators"], settings), layout)
    fingerprints = fingerprints_of(configured, options.pack)
    if config_sha256(configured, fingerprints) != content["config_sha256"]:
        expected = "the model pack and the version that it was made with"
        raise ConfigurationError(str(options.out), "a run of another version", expected)
    _forget(layout, plan, configured, final=not settings.ask_again)
    asking = JudgeRun(layout, plan, configured, manifest_digest(content), options.host)
    asking.ask(options.asked)
    options.begin(plan.cases)
    summary = finished(layout, plan, configured, fingerprints, options)
    asking.close()
    return summary


def _configured(
    described: Mapping[str, Mapping[str, Any]], settings: JudgeSettings
) -> Sequence[Configured]:
    """Return the evaluators that a manifest describes."""
    found = []
    for name, entry in described.items():
        backend = entry.get("backend")
        evaluator = backed(CATALOGUE.find(name), backend)
        common = Common.model_validate(entry["settings"])
        parameters = evaluator.parameters.model_validate(entry["parameters"])
        judge = settings if "judge" in entry else None
        served = {
            key: served_choice(option, entry[key]["address"], entry[key]["model"])
            for key, option in _SERVED.items()
            if key in entry
        }
        found.append(Configured(evaluator.spec.id, common, parameters, backend, judge, **served))
    return found


def _forget(
    layout: Layout, plan: ShardPlan, configured: Sequence[Configured], *, final: bool
) -> None:
    """Remove the scores of shards in which a question has no answer."""
    judged = [one.id for one in configured if one.judge is not None]
    for shard in range(plan.shards):
        if not layout.cases(shard).exists():
            raise ConfigurationError(str(layout.work), "no shards", "those of the run")
        if not layout.scores(shard).exists():
            continue
        results = (scored.results[name] for scored in read_scored(layout, shard) for name in judged)
        if _has_failure((one.details.get("judge", {}) for one in results), final=final):
            layout.scores(shard).unlink()


def _has_failure(told: Iterable[Mapping[str, Any]], *, final: bool) -> bool:
    kept = FINAL if final else {"ok"}
    return any(set(one.get("statuses", ())) - set(kept) for one in told)
