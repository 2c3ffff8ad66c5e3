"""Checks the files that an agent left, and how its session went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import (
    LOWER,
    UNBOUNDED,
    Evaluator,
    EvaluatorSpec,
    evaluator,
)
from guardrail_offline.evaluators.result import Result, Score
from guardrail_service.detectors.json_schema.strict_json import StrictJsonError, parse_json
from guardrail_service.detectors.registry import Parameters
from guardrail_service.errors import NotScorable
from guardrail_service.types import MetricSpec, State

SESSION = "session.json"
"""The file of the agent's steps: {"steps": [{"tool": name, "ok": true}], "plan_changes": 0}."""
MAX_FILE_BYTES = 32 * 2**20
MAX_FILES = 10_000
_PAGED = frozenset({".txt", ".md", ".text"})
_MB = 1e6


class Artifact(NamedTuple):
    """One file and what is wrong with it; `problem` is empty for a sound one."""

    path: str
    size: int
    problem: str


class AgentSanityParameters(Parameters):
    """The expected content of the folder.

    Attributes:
        agent_expected_files: Files that must be there, relative to the folder.
        agent_expected_values: By file, the value at each path: {"report.json": {"a.b": 1}}.
    """

    agent_expected_files: tuple[str, ...] = ()
    agent_expected_values: dict[str, dict[str, Any]] = Field(default_factory=dict)


def check_folder(folder: Path, parameters: AgentSanityParameters) -> list[Artifact]:
    """Return every file of a folder, and every missing one, with what is wrong with it.

    JSON must parse and hold the expected values; a file must not be empty, nor a page of a text,
    pages being separated by form feeds.

    Raises:
        NotScorable: If the folder has no file and none is expected, or more than 10,000.
    """
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if len(paths) > MAX_FILES:
        raise NotScorable("too many files")
    names = {str(path.relative_to(folder)): path for path in paths}
    names.pop(SESSION, None)
    wanted = {*parameters.agent_expected_files, *parameters.agent_expected_values}
    found = [
        Artifact(name, path.stat().st_size, _problem(name, path, parameters))
        for name, path in names.items()
    ]
    found += [Artifact(name, 0, "missing") for name in sorted(wanted - set(names))]
    if not found:
        raise NotScorable("no file")
    return found


def _problem(name: str, path: Path, parameters: AgentSanityParameters) -> str:
    size = path.stat().st_size
    if not size:
        return "empty"
    if size > MAX_FILE_BYTES:
        return "too_large"
    data = path.read_bytes()
    if not data.strip():
        return "empty"
    if path.suffix.lower() == ".json":
        return _json_problem(data, parameters.agent_expected_values.get(name, {}))
    if path.suffix.lower() == ".jsonl":
        lines = (line for line in data.splitlines() if line.strip())
        return next((problem for line in lines if (problem := _json_problem(line, {}))), "")
    pages = data.split(b"\x0c") if path.suffix.lower() in _PAGED else [data]
    return "empty_page" if any(not page.strip() for page in pages) else ""


def _json_problem(data: bytes, wanted: Mapping[str, Any]) -> str:
    try:
        content = parse_json(data.decode("utf-8"))
    except (StrictJsonError, UnicodeDecodeError):
        return "invalid_json"
    if any(_at(content, place) != value for place, value in wanted.items()):
        return "wrong_value"
    return ""


def _at(content: Any, place: str) -> Any:
    for part in place.split("."):
        if not isinstance(content, Mapping) or part not in content:
            return None
        content = content[part]
    return content


_SESSION_METRICS = ("agent_tools_failures", "agent_tools_used", "agent_plan_changes", "agent_steps")


@evaluator
class AgentSanityCheck(Evaluator[AgentSanityParameters]):
    """The share of sound files, and numbers about the session where it left a `session.json`."""

    spec = EvaluatorSpec(
        id="agent_sanity_check",
        name="Agent sanity check",
        summary="Are the files the agent left sound, and how did its session go?",
        metrics=(
            MetricSpec("agent_sanity", threshold=0.75),
            MetricSpec("agent_tools_failures", LOWER, high=UNBOUNDED),
            MetricSpec("agent_tools_used", LOWER, high=UNBOUNDED),
            MetricSpec("agent_plan_changes", LOWER, high=UNBOUNDED),
            MetricSpec("agent_steps", LOWER, high=UNBOUNDED),
            MetricSpec("agent_cost", LOWER, high=UNBOUNDED),
            MetricSpec("agent_duration_s", LOWER, high=UNBOUNDED),
            MetricSpec("agent_data_size_mb", LOWER, high=UNBOUNDED),
            MetricSpec("agent_file_count", LOWER, high=UNBOUNDED),
        ),
        inputs=frozenset({"artifacts"}),
        run_class="D",
        h2o_id="h2o_sonar.evaluators.agent_sanity_check_evaluator.AgentSanityCheckEvaluator",
        original="D",
        problem="data quality",
        tags=("rule-based", "nist:accountable-transparent"),
    )
    parameters = AgentSanityParameters

    def judge(self, view: CaseView, parameters: AgentSanityParameters) -> Result:
        """Return the share and the numbers; a folder that is not there is an error."""
        if view.case.artifacts is None:
            raise Unavailable(State.NOT_APPLICABLE, "no_artifacts")
        folder = Path(view.case.artifacts)
        if not folder.is_dir():
            raise Unavailable(State.ERROR, "artifacts_not_found")
        found = check_folder(folder, parameters)
        sound = sum(not artifact.problem for artifact in found)
        present = [artifact for artifact in found if artifact.problem != "missing"]
        scores = {
            "agent_sanity": Score(sound / len(found)),
            **_session(folder / SESSION),
            "agent_cost": _or_missing(view.case.cost),
            "agent_duration_s": _or_missing(view.case.duration_s),
            "agent_data_size_mb": Score(sum(a.size for a in present) / _MB),
            "agent_file_count": Score(float(len(present))),
        }
        problems = {a.path: a.problem for a in found if a.problem}
        return Result(scores, details={"problems": problems} if problems else {})


def _or_missing(value: float | None) -> Score:
    return Score.missing(State.NOT_APPLICABLE, "not_recorded") if value is None else Score(value)


def _session(path: Path) -> dict[str, Score]:
    """Return the numbers of a session, or why there are none."""
    if not path.is_file():
        missing = Score.missing(State.NOT_APPLICABLE, "no_session")
        return dict.fromkeys(_SESSION_METRICS, missing)
    try:
        content = json.loads(path.read_text("utf-8"))
        steps = content["steps"]
        tools = [step for step in steps if step.get("tool")]
        counts = (
            sum(step.get("ok") is False for step in tools),
            len(tools),
            int(content.get("plan_changes", 0)),
            len(steps),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        broken = Score.missing(State.ERROR, "session_not_readable")
        return dict.fromkeys(_SESSION_METRICS, broken)
    return {key: Score(float(count)) for key, count in zip(_SESSION_METRICS, counts, strict=True)}
