"""A scored lab: cases with a number or a state per metric, and what the numbers depend on.

A lab is read from a run folder of `guardrail evaluate`, or made of served requests and their
replies and kept as JSON lines. Nothing here scores.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guardrail_offline.datasets.cases import PERTURBATION_SOURCE, question_group
from guardrail_offline.evaluators.result import Score
from guardrail_offline.runs.result_files import EvaluatorResults, read_run
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.provenance import sha256_of
from guardrail_service.text.language import identify
from guardrail_service.types import MetricSpec, State

HEADER = "scored_lab"
_LENGTHS = ((300, "under 300 characters"), (1000, "300 to 999 characters"))
"""Upper ends of the length slices, in code points of the answer."""


@dataclass(frozen=True, slots=True)
class LabCase:
    """One answer with its scores.

    Attributes:
        key: Unique in the lab; labels name it.
        group: The question: cases of one group are never independent.
        scores: By detector id and metric key.
        facts: What slices are made of: length, language, passages, and every category that reads
            `name:value`, such as `topic:leave` or `fault:contradiction`.
        source: Key of the case this one is a perturbed variant of.
        question: None where the lab keeps no texts; so are answer and contexts.
    """

    key: str
    group: str
    scores: Mapping[str, Mapping[str, Score]]
    facts: Mapping[str, str] = field(default_factory=dict)
    source: str | None = None
    question: str | None = None
    answer: str | None = None
    contexts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeScores:
    """An evaluator whose scores a judge gave.

    Attributes:
        metrics: The primary one first.
        h2o_id: Its id in H2O Eval Studio, if it has one.
        told: What the scores depend on: the judge's model and options, versions of prompts.
    """

    metrics: tuple[MetricSpec, ...]
    h2o_id: str | None
    told: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScoredLab:
    """Scored cases of one configuration of detectors.

    Attributes:
        where: The file or folder, for messages.
        cases: In the order of the lab.
        fingerprints: What the scores depend on: per model role, `segmenter`, `evidence`.
        parameters: Of each detector whose scores these are.
        judged: The evaluators that a judge scored, by id.
    """

    where: str
    cases: tuple[LabCase, ...]
    fingerprints: Mapping[str, str]
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    judged: Mapping[str, JudgeScores] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Return the hash of keys, groups and scores, whatever file they lie in."""
        return sha256_of([[c.key, c.group, _plain(c.scores)] for c in self.cases])

    @property
    def detectors(self) -> frozenset[str]:
        """Return the ids of every detector that scored some case."""
        return frozenset(name for case in self.cases for name in case.scores)

    def by_key(self) -> dict[str, LabCase]:
        """Return the cases by key."""
        return {case.key: case for case in self.cases}


def read_lab(path: Path) -> ScoredLab:
    """Return a scored lab from a run folder or from JSON lines.

    Raises:
        ConfigurationError: If it is neither, holds a case twice, or is empty.
    """
    lab = _from_run(path) if path.is_dir() else _from_lines(path)
    if not lab.cases:
        raise ConfigurationError(str(path), "no case", "scored cases")
    seen: set[str] = set()
    for case in lab.cases:
        if case.key in seen:
            raise ConfigurationError(str(path), f"the case {case.key!r} twice", "each key once")
        seen.add(case.key)
    return lab


def write_lab(lab: ScoredLab) -> Iterator[str]:
    """Yield the lines of a lab as JSON lines, a header first."""
    header = {
        HEADER: "1",
        "fingerprints": dict(lab.fingerprints),
        "parameters": {name: dict(values) for name, values in lab.parameters.items()},
    }
    yield json.dumps(header, sort_keys=True)
    for case in lab.cases:
        record = {
            "key": case.key,
            "group": case.group,
            "question": case.question,
            "answer": case.answer,
            "contexts": list(case.contexts),
            "source": case.source,
            "facts": dict(case.facts),
            "scores": _plain(case.scores),
        }
        yield json.dumps(record, sort_keys=True, ensure_ascii=False)


def facts_of(answer: str | None, passages: int | None, categories: Iterable[str]) -> dict[str, str]:
    """Return a case's slices from its texts and from categories that read `name:value`."""
    facts: dict[str, str] = {}
    if answer is not None:
        ends = (name for end, name in _LENGTHS if len(answer) < end)
        facts["length"] = next(ends, "1000 characters and more")
        language = identify(answer)
        facts["language"] = language.code if language else "undetermined"
    if passages is not None:
        facts["passages"] = str(passages)
    for category in categories:
        name, colon, value = category.partition(":")
        if colon and name and value:
            facts[name] = value
    return facts


def _plain(scores: Mapping[str, Mapping[str, Score]]) -> dict[str, Any]:
    return {
        name: {key: _score_json(score) for key, score in metrics.items()}
        for name, metrics in scores.items()
    }


def _score_json(score: Score) -> Any:
    return (
        {"state": score.state.value, "reason": score.reason} if score.value is None else score.value
    )


def _from_run(folder: Path) -> ScoredLab:
    run = read_run(folder)
    fingerprints: dict[str, str] = {}
    for results in run.values():
        for key, value in results.fingerprints.items():
            if fingerprints.setdefault(key, value) != value:
                raise ConfigurationError(
                    f"{folder}: {results.evaluator}",
                    f"another fingerprint of {key} than the evaluators before it",
                    "evaluators scored with the same models",
                )
    rows: dict[str, dict[str, Mapping[str, Score]]] = {}
    records: dict[str, Mapping[str, Any]] = {}
    for results in run.values():
        for row in _once(folder, results):
            rows.setdefault(row.key, {})[results.evaluator] = row.scores
            records.setdefault(row.key, row.record)
    cases = tuple(_from_record(key, records[key], scores) for key, scores in rows.items())
    parameters = {name: results.about.get("parameters", {}) for name, results in run.items()}
    judged = {name: _judge_scores(found) for name, found in run.items() if _by_judge(found)}
    return ScoredLab(str(folder), cases, fingerprints, parameters, judged)


def _by_judge(results: EvaluatorResults) -> bool:
    return results.about.get("backend") == "judge" and bool(results.about.get("judge"))


def _judge_scores(results: EvaluatorResults) -> JudgeScores:
    """Return what a judge's scores are of; its address may change and says nothing about them."""
    judge = {key: value for key, value in results.about["judge"].items() if key != "url"}
    told = {**judge, "prompts": results.about.get("prompts", {})}
    return JudgeScores(tuple(results.metrics.values()), results.h2o_id, told)


def _once(folder: Path, results: EvaluatorResults) -> Iterator[Any]:
    seen: set[str] = set()
    for row in results.rows:
        if row.key in seen:
            where = f"{folder}: {results.evaluator}"
            raise ConfigurationError(where, f"the case {row.key!r} twice", "each key once")
        seen.add(row.key)
        yield row


def _from_record(
    key: str, record: Mapping[str, Any], scores: Mapping[str, Mapping[str, Score]]
) -> LabCase:
    contexts = record.get("context")
    answer = record.get("actual_output")
    links = record.get("relationships", ())
    passages = None if contexts is None else len(contexts)
    return LabCase(
        key=key,
        group=record["group"] or key,
        scores=scores,
        facts=facts_of(answer, passages, record.get("categories", ())),
        source=next((x["target"] for x in links if x["type"] == PERTURBATION_SOURCE), None),
        question=record.get("input"),
        answer=answer,
        contexts=tuple(c if isinstance(c, str) else c["text"] for c in contexts or ()),
    )


def _from_lines(path: Path) -> ScoredLab:
    records = read_records(path)
    header = records[0] if records else {}
    if HEADER not in header:
        expected = "a scored lab: a run folder, or the output of guardrail calibrate lab"
        raise ConfigurationError(f"{path}: line 1", "no header", expected)
    try:
        cases = tuple(_from_line(record) for record in records[1:])
        return ScoredLab(str(path), cases, header["fingerprints"], header["parameters"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(
            str(path),
            f"another shape ({type(error).__name__})",
            "the file that calibrate lab wrote",
        ) from error


def _from_line(record: Mapping[str, Any]) -> LabCase:
    scores = {
        name: {key: _score(value) for key, value in metrics.items()}
        for name, metrics in record["scores"].items()
    }
    return LabCase(
        key=str(record["key"]),
        group=str(record["group"]),
        scores=scores,
        facts=dict(record["facts"]),
        source=record["source"],
        question=record["question"],
        answer=record["answer"],
        contexts=tuple(record["contexts"]),
    )


def _score(value: float | Mapping[str, str]) -> Score:
    if isinstance(value, Mapping):
        return Score.missing(State(value["state"]), value["reason"] or "unknown")
    return Score(float(value))


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines; blank lines are passed over.

    Raises:
        ConfigurationError: Naming file and line.
    """
    try:
        # Not splitlines: it also divides at U+2028 and U+0085, which JSON leaves as they are.
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), type(error).__name__, "JSON lines in UTF-8") from error
    records = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(where, "no JSON", "one JSON object per line") from error
        if not isinstance(record, dict):
            raise ConfigurationError(where, type(record).__name__, "one JSON object per line")
        records.append(record)
    return records


@dataclass(frozen=True, slots=True)
class Joined:
    """A lab made of served requests.

    Attributes:
        lab: The scored cases.
        errors: Requests whose reply is an error; they have no scores and are left out.
    """

    lab: ScoredLab
    errors: int


def join(requests: Path, replies: Path, policy: Policy, fingerprints: Mapping[str, str]) -> Joined:
    """Return the lab that a file of requests and a file of their replies make.

    Args:
        requests: Bodies of `/v1/check`, one a line. `group` and `categories` may be added to a
            body in this file; without a group, the same question is the same group.
        replies: What `guardrail check` or the service answered, in the same order.
        policy: The configuration they were served under; its parameters go with the scores.
        fingerprints: Of the models they were served with.

    Raises:
        ConfigurationError: If counts or ids differ, replies are of another configuration, or none
            of them has scores.
    """
    asked, answered = read_records(requests), read_records(replies)
    if len(asked) != len(answered):
        found = f"{len(answered)} replies to {len(asked)} requests"
        raise ConfigurationError(str(replies), found, "one reply per request, in the same order")
    cases = []
    for number, (request, reply) in enumerate(zip(asked, answered, strict=True), start=1):
        if "error" not in reply:
            where = f"{replies}: line {number}"
            _check(where, request, reply, policy)
            cases.append(_case(where, number, request, reply))
    if not cases:
        found = f"{len(answered)} replies, all of them errors" if answered else "no reply"
        raise ConfigurationError(str(replies), found, "at least one reply with scores")
    parameters = {
        name: rule.parameters.model_dump(mode="json", by_alias=True)
        for name, rule in policy.rules.items()
    }
    lab = ScoredLab(str(replies), tuple(cases), dict(fingerprints), parameters)
    return Joined(lab, len(asked) - len(cases))


def fingerprints_of(info: Path) -> dict[str, str]:
    """Return the fingerprints in a saved `GET /v1/info`."""
    try:
        found = json.loads(info.read_text("utf-8"))["fingerprints"]
        return {str(key): str(value) for key, value in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            str(info), type(error).__name__, "the reply of GET /v1/info"
        ) from error


def _check(
    where: str, request: Mapping[str, Any], reply: Mapping[str, Any], policy: Policy
) -> None:
    if request.get("id") != reply.get("id"):
        raise ConfigurationError(where, "a reply to another id", "replies in order of requests")
    served = reply.get("policy", {}).get("sha256")
    if served != policy.sha256:
        found = f"a reply under configuration {str(served)[:12]}"
        raise ConfigurationError(where, found, f"{policy.sha256[:12]} ({policy.name})")
    if request.get("detectors"):
        raise ConfigurationError(
            where, "a request that changes detectors", "scores of the configuration as it is"
        )


def _case(where: str, number: int, request: Mapping[str, Any], reply: Mapping[str, Any]) -> LabCase:
    contexts = tuple(c if isinstance(c, str) else c["text"] for c in request.get("contexts", ()))
    question = request.get("question") or ""
    try:
        scores = {name: _scores(result) for name, result in reply["detectors"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(where, "no detectors", "a reply of /v1/check") from error
    group = request.get("group") or (question_group(question) if question else f"line-{number}")
    return LabCase(
        key=request.get("id") or f"line-{number}",
        group=group,
        scores=scores,
        facts=facts_of(request["answer"], len(contexts), request.get("categories", ())),
        question=question or None,
        answer=request["answer"],
        contexts=contexts,
    )


def _scores(result: Mapping[str, Any]) -> dict[str, Score]:
    """Return a detector's scores; one without any has its state under the key `*`."""
    state = State(result["state"])
    if state is State.EVALUATED:
        return {key: Score(float(metric["score"])) for key, metric in result["metrics"].items()}
    return {"*": Score.missing(state, result["reason"] or state.value)}
