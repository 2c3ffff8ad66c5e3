"""Draws stored decisions for people to label, and brings their words back to the store.

A draw is a stratified sample of questions with known probabilities. Chance picks one decision of
each question, before anybody looks at what was decided; of these so many flagged and so many passed
ones are drawn, each stratum evenly. So no two labels depend on each other, and no question has two
weights. It becomes a folder that `guardrail calibrate` and the studio read:

    to_label.jsonl               what people label, without scores
    to_label.jsonl.sample.jsonl  the drawn cases and how many answers each stands for
    lab.jsonl                    their scores
    draw.json                    which draw it is
    labels.jsonl                 what people said; `exchange` writes and reads it

The folder holds texts in clear, whatever the store keeps encrypted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from guardrail_decisions.reading import Decisions, Filters
from guardrail_decisions.rows import StoredDecision, StoredFeedback, iso
from guardrail_offline.calibration.labels import Label, labels_jsonl, read_labels
from guardrail_offline.calibration.sampling import Drawn, sample_text, task_text
from guardrail_offline.calibration.scored_lab import LabCase, ScoredLab, facts_of, write_lab
from guardrail_offline.calibration.split import chance
from guardrail_offline.datasets.cases import question_group
from guardrail_offline.evaluators.result import Score
from guardrail_service.errors import ConfigurationError
from guardrail_service.server.decisions import Feedback
from guardrail_service.types import State

TASKS = "to_label.jsonl"
SAMPLE = "to_label.jsonl.sample.jsonl"
LAB = "lab.jsonl"
DRAW = "draw.json"
LABELS = "labels.jsonl"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A decision that may be drawn.

    Attributes:
        question: Same for decisions about one question; its own where the question is not known.
    """

    key: int
    record_id: str
    share: float
    stratum: str
    question: str


@dataclass(frozen=True, slots=True)
class DrawnStratum:
    """One part of a draw.

    Attributes:
        population: Questions it stands for: those in the store, each counted 1 / share times.
        stored: Questions in the store, by the decision that stands for each.
        drawn: Decisions drawn, one a question.
    """

    population: float
    stored: int
    drawn: int


@dataclass(frozen=True, slots=True)
class DecisionDraw:
    """A sample of decisions.

    Attributes:
        policy_hash: The policy that decided all of them.
        strata: `flagged` and `passed`.
        decisions: Stored decisions about these questions.
        unknown: Decisions without a question that can be read; each counts as a question.
    """

    id: str
    policy: str
    policy_hash: str
    strata: Mapping[str, DrawnStratum]
    decisions: int
    unknown: int


def draw_sample(
    store: Decisions,
    folder: Path,
    viewer: str,
    *,
    flagged: int = 50,
    random: int = 100,
    evenly: int = 0,
    seed: int = 7,
    filters: Filters | None = None,
) -> DecisionDraw:
    """Draw decisions of one policy into a new folder and note the draw in the store.

    Only complete decisions are drawn, of the policy that decided last, and one a question. A
    stratum that has fewer gives all it has.

    Args:
        store: Where they are; it must keep texts that can be read.
        folder: A new one.
        viewer: Who sees the texts; the store notes it.
        flagged: Flagged decisions to draw.
        random: Decisions to draw among those that passed.
        evenly: Draw so many among all instead, whatever was decided. Every answer then stands for
            as many questions.
        seed: Which draw.
        filters: Which decisions may be drawn.

    Raises:
        ConfigurationError: If there is none, texts are not kept, or the folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigurationError("--out", "a folder that is not empty", "a new one")
    policy, found_all = _candidates(store, filters or Filters())
    spoken_for = _one_per_question(found_all, seed)
    wanted = {"flagged": flagged, "passed": random}
    candidates = {name: [c for c in spoken_for if c.stratum == name] for name in wanted}
    chosen = {name: _chosen(candidates[name], count, seed) for name, count in wanted.items()}
    share = {name: len(chosen[name]) / (len(candidates[name]) or 1) for name in wanted}
    if evenly:
        everything = [c for name in wanted for c in candidates[name]]
        taken = {c.key for c in _chosen(everything, evenly, seed)}
        chosen = {name: [c for c in candidates[name] if c.key in taken] for name in wanted}
        share = dict.fromkeys(wanted, len(taken) / len(everything))
    strata = {
        name: DrawnStratum(
            sum(1 / c.share for c in candidates[name]), len(candidates[name]), len(chosen[name])
        )
        for name in wanted
    }
    draw = DecisionDraw(
        uuid4().hex,
        policy.record.policy,
        policy.record.policy_hash,
        strata,
        decisions=len(found_all),
        unknown=sum(c.question == c.record_id for c in found_all),
    )
    weights = {c.key: 1 / (share[name] * c.share) for name in wanted for c in chosen[name]}
    found = [_read(store, key, viewer) for key in sorted(weights)]
    names = _case_names(found)
    parameters = store.policies().get(draw.policy_hash, {}).get("parameters", {})
    cases = {one.key: _lab_case(one, names[one.key]) for one in found}
    lab = ScoredLab(DRAW, tuple(cases.values()), dict(policy.record.fingerprints), dict(parameters))
    drawn = [Drawn(cases[one.key], weights[one.key]) for one in found]
    body = _body(draw, seed, found, names, weights)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(folder / LAB, "\n".join(write_lab(lab)) + "\n")
    _write(folder / SAMPLE, sample_text(drawn))
    _write(folder / DRAW, json.dumps({"id": draw.id}) + "\n")
    store.writer.draw(draw.id, iso(datetime.now(UTC)), json.dumps(body))
    _write(folder / TASKS, task_text(drawn, ".jsonl"))
    return draw


def exchange(store: Decisions, folder: Path) -> tuple[int, int]:
    """Store the labels of a drawn folder as feedback, and add feedback on its cases to its labels.

    Returns:
        Labels that are new in the store, and words that are new in the folder.

    Raises:
        ConfigurationError: If the folder or the store does not know the draw.
    """
    draw = _draw_of(store, folder)
    members = {str(member["case"]): member for member in draw["members"]}
    path = folder / LABELS
    labels = read_labels(path) if path.exists() and path.stat().st_size else []
    stored = sum(
        _say(store, label, members[label.case], draw) for label in labels if label.case in members
    )
    said = {(label.case, label.annotator, label.metric) for label in labels}
    cases = {member["record_id"]: case for case, member in members.items()}
    latest = {
        (cases[record_id], word.caller, word.metric): word
        for record_id, word in store.feedback()
        if record_id in cases
    }
    new = [_label(key, word) for key, word in latest.items() if key not in said]
    if new:
        with path.open("a", encoding="utf-8") as file:
            file.write(labels_jsonl(new))
    return stored, len(new)


def _candidates(store: Decisions, filters: Filters) -> tuple[StoredDecision, list[_Candidate]]:
    """Return the latest decision, and all complete ones of its policy and models."""
    latest = next(store.decisions(filters, newest_first=True, limit=1), None)
    if latest is None:
        raise ConfigurationError("decisions", "none", "stored decisions to draw from")
    if latest.text_mode not in ("redacted", "full"):
        raise ConfigurationError(
            "GUARDRAIL_DECISIONS_TEXTS",
            f"{latest.text_mode}, so there is nothing to read",
            "redacted or full while the decisions are stored",
        )
    questions = dict(store.questions(filters))
    found = []
    for one in store.decisions(filters):
        record = one.record
        same = (
            record.policy_hash == latest.record.policy_hash
            and record.fingerprints == latest.record.fingerprints
            and record.options.keys() == record.detectors.keys()
        )
        if same and record.status == "complete" and one.text_mode == latest.text_mode:
            stratum = "flagged" if record.decision == "flag" else "passed"
            question = questions.get(one.key) or record.record_id
            found.append(_Candidate(one.key, record.record_id, record.share, stratum, question))
    if not found:
        raise ConfigurationError("decisions", "no complete one", "complete decisions to draw from")
    return latest, found


def _one_per_question(candidates: Sequence[_Candidate], seed: int) -> list[_Candidate]:
    """Return the decision that stands for each question: one of its decisions, drawn evenly.

    Where questions repeat and only a share of what passed is stored, as small a share of the
    flagged decisions takes part. Else a question would count by what was decided about it: flagged
    once it is surely in the store, passed it need not be.
    """
    least = min(c.share for c in candidates)
    if len({c.question for c in candidates}) < len(candidates):
        candidates = [
            replace(c, share=least)
            for c in candidates
            if chance(seed, "share", c.record_id) < least / c.share
        ]
    first: dict[str, _Candidate] = {}
    for one in sorted(candidates, key=lambda c: chance(seed, "unit", c.record_id)):
        first.setdefault(one.question, one)
    return sorted(first.values(), key=lambda c: c.key)


def _chosen(candidates: Sequence[_Candidate], count: int, seed: int) -> list[_Candidate]:
    return sorted(candidates, key=lambda c: chance(seed, "draw", c.record_id))[:count]


def _read(store: Decisions, key: int, viewer: str) -> StoredDecision:
    found = store.at(key, viewer=viewer)
    if found is None:
        raise ConfigurationError("decisions", "one that was deleted meanwhile", "another try")
    return found


def _case_names(found: Sequence[StoredDecision]) -> dict[int, str]:
    """Return what labels call each decision: its request id, with more where that is not unique."""
    names = {
        one.key: one.record.request_id + (f"#{one.record.item}" if one.record.item else "")
        for one in found
    }
    times = Counter(names.values())
    return {key: name if times[name] == 1 else f"{name}@{key}" for key, name in names.items()}


def _lab_case(found: StoredDecision, name: str) -> LabCase:
    record = found.record
    question = record.question or ""
    return LabCase(
        key=name,
        group=question_group(question) if question.strip() else name,
        scores={detector: _scores(r) for detector, r in record.detectors.items()},
        facts=facts_of(record.answer, len(record.contexts), ()),
        question=record.question,
        answer=record.answer,
        contexts=record.contexts,
    )


def _scores(result: Any) -> dict[str, Score]:
    """Return a detector's scores; one without any has its state under the key `*`."""
    if result.state is State.EVALUATED:
        return {key: Score(metric.score) for key, metric in result.metrics.items()}
    return {"*": Score.missing(result.state, result.reason or result.state.value)}


def _body(
    draw: DecisionDraw,
    seed: int,
    found: Iterable[StoredDecision],
    names: Mapping[int, str],
    weights: Mapping[int, float],
) -> dict[str, Any]:
    return {
        "policy": draw.policy,
        "policy_hash": draw.policy_hash,
        "seed": seed,
        "strata": {
            name: {"population": s.population, "stored": s.stored, "drawn": s.drawn}
            for name, s in draw.strata.items()
        },
        "members": [
            {
                "case": names[one.key],
                "record_id": one.record.record_id,
                "request_id": one.record.request_id,
                "item": one.record.item,
                "stratum": "flagged" if one.record.decision == "flag" else "passed",
                "probability": 1 / weights[one.key],
            }
            for one in found
        ],
    }


def _draw_of(store: Decisions, folder: Path) -> Mapping[str, Any]:
    try:
        name = json.loads((folder / DRAW).read_text("utf-8"))["id"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        expected = "a folder of guardrail decisions sample"
        raise ConfigurationError(str(folder / DRAW), type(error).__name__, expected) from error
    found = next((draw for draw in store.draws() if draw["id"] == name), None)
    if found is None:
        raise ConfigurationError(str(folder / DRAW), "a draw of another store", "one of this store")
    return found


def _say(
    store: Decisions, label: Label, member: Mapping[str, Any], draw: Mapping[str, Any]
) -> bool:
    at = datetime.fromisoformat(label.at) if label.at else datetime.now(UTC)
    word = Feedback(
        request_id=member["request_id"],
        item=member["item"],
        record_id=member["record_id"],
        label=label.label,
        caller=label.annotator,
        metric=label.metric,
        draw=draw["id"],
        time=at if at.tzinfo else at.replace(tzinfo=UTC),
    )
    return store.add_feedback(word) == "stored"


def _label(key: tuple[str, str, str | None], word: StoredFeedback) -> Label:
    case, annotator, metric = key
    return Label(case, word.label, metric, annotator, word.time.isoformat())


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, "utf-8")
