"""Old scores under a new configuration, without scoring again, and what the RAG system can learn.

Decisions, problems and flips come from the code that serves. Two artefacts are for the RAG system
itself: questions and answers to add to its corpus, and rules to add to its system prompt. Both come
from what people and perturbations found, never from scores alone.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guardrail_offline.calibration.scored_lab import LabCase, ScoredLab
from guardrail_service.detectors.registry import REGISTRY, Remedy
from guardrail_service.detectors.shared.remedies import SHARED
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Decided, Policy, decide
from guardrail_service.types import NoValue, Outcome, State


@dataclass(frozen=True, slots=True)
class DecisionFlip:
    """A decision that changed: between configurations, or between a case and its variant."""

    case: str
    before: str
    after: str
    source: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the flip for a report."""
        return {
            "case": self.case,
            "before": self.before,
            "after": self.after,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Derived:
    """One lab under one configuration.

    Attributes:
        decisions: By case key.
        problems: Cases flagged, by `detector.metric`, or `detector: state` where a missing score
            flags.
        variant_flips: Variants decided otherwise than the case they were made from.
    """

    decisions: dict[str, Decided]
    problems: dict[str, tuple[str, ...]]
    variant_flips: tuple[DecisionFlip, ...]

    def changes(self, before: Derived) -> tuple[DecisionFlip, ...]:
        """Return the cases that another configuration decides otherwise."""
        return tuple(
            DecisionFlip(key, before.decisions[key].decision, now.decision)
            for key, now in self.decisions.items()
            if before.decisions[key].decision != now.decision
        )

    def as_json(self) -> dict[str, Any]:
        """Return the derived results for a report."""
        return {
            "cases": len(self.decisions),
            "flagged": [key for key, d in self.decisions.items() if d.decision == "flag"],
            "actions": dict(
                sorted(Counter(d.action.label for d in self.decisions.values()).items())
            ),
            "problems": {name: list(keys) for name, keys in self.problems.items()},
            "variant_flips": [flip.as_json() for flip in self.variant_flips],
        }


def derive(lab: ScoredLab, policy: Policy) -> Derived:
    """Return what a configuration makes of a lab's scores, by the code that serves.

    Raises:
        ConfigurationError: If the lab has no scores of a detector the configuration runs.
    """
    lacking = sorted(set(policy.rules) - lab.detectors)
    if lacking:
        raise ConfigurationError(
            f"{lab.where}: {policy.name}", f"no scores of {', '.join(lacking)}", "a lab with them"
        )
    decisions = {case.key: decide(policy, _outcomes(case, policy)) for case in lab.cases}
    problems: dict[str, list[str]] = {}
    for key, decided in decisions.items():
        for name in _reasons(decided):
            problems.setdefault(name, []).append(key)
    flips = [
        DecisionFlip(
            case.key, decisions[case.source].decision, decisions[case.key].decision, case.source
        )
        for case in lab.cases
        if case.source in decisions
        and decisions[case.source].decision != decisions[case.key].decision
    ]
    ordered = sorted(problems, key=lambda name: (-len(problems[name]), name))
    return Derived(decisions, {name: tuple(problems[name]) for name in ordered}, tuple(flips))


def _outcomes(case: LabCase, policy: Policy) -> dict[str, Outcome]:
    return {name: _outcome(case, name) for name in policy.rules}


def _outcome(case: LabCase, detector: str) -> Outcome:
    scores = case.scores.get(detector, {})
    numbers = {key: score.value for key, score in scores.items() if score.value is not None}
    if numbers:
        return Outcome.evaluated(numbers)
    for score in scores.values():
        return Outcome(missing=score.why_missing)
    return Outcome(missing=NoValue(State.NOT_EVALUATED, "not_in_lab"))


def _reasons(decided: Decided) -> list[str]:
    found = []
    for name, result in decided.results.items():
        if not result.flagged:
            continue
        crossed = [f"{name}.{key}" for key, metric in result.metrics.items() if metric.flagged]
        found += crossed or [f"{name}: {result.state.value}"]
    return found


@dataclass(frozen=True, slots=True)
class CorpusEntry:
    """One question with the answer to add, and why."""

    question: str
    answer: str
    case: str
    why: str

    def as_json(self) -> dict[str, str]:
        """Return the entry for JSON."""
        return {
            "question": self.question,
            "answer": self.answer,
            "case": self.case,
            "why": self.why,
        }


PASSED_BY_A_PERSON = "flagged by the checks, passed by a person"
FLIPPED = "flagged for a variant of a question whose own answer passes"


def corpus_patch(lab: ScoredLab, derived: Derived, passes: Mapping[str, bool]) -> list[CorpusEntry]:
    """Return what to add to the corpus, each question once.

    Answers that the checks flag and a person passed; and, for a variant of a question that is
    flagged while the original passes, the variant with the original's answer, unless a person
    failed that answer.
    """
    cases = lab.by_key()
    entries: dict[str, CorpusEntry] = {}
    for key, decided in derived.decisions.items():
        if decided.decision == "flag" and passes.get(key):
            _add(entries, cases[key].question, cases[key].answer, key, PASSED_BY_A_PERSON)
    for flip in derived.variant_flips:
        source = cases.get(flip.source or "")
        if source and flip.after == "flag" and passes.get(source.key, True):
            _add(entries, cases[flip.case].question, source.answer, flip.case, FLIPPED)
    return list(entries.values())


def _add(
    entries: dict[str, CorpusEntry], question: str | None, answer: str | None, case: str, why: str
) -> None:
    if question and answer:
        entries.setdefault(" ".join(question.split()), CorpusEntry(question, answer, case, why))


def patch_html(entries: Sequence[CorpusEntry]) -> str:
    """Return the corpus patch as one page of questions and answers; every text is escaped."""
    items = "\n".join(
        f"<section><h2>{html.escape(e.question)}</h2><p>{html.escape(e.answer)}</p></section>"
        for e in entries
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<title>Questions and answers</title></head><body>\n"
        f"<h1>Questions and answers</h1>\n{items}\n</body></html>\n"
    )


REWORDING = Remedy(
    "Spelling and wording of questions",
    (
        "Read a misspelt word as the word that was most likely meant, and search for that.",
        "The same question comes in many wordings. Answer what is meant, not the words.",
        "Search for the documents' own terms when a question uses a synonym or an alias.",
        "If two wordings of a question find different passages, give the answer both support.",
    ),
)


def prompt_extension(derived: Derived) -> str:
    """Return rules for the problems that were found, as text; empty if none of them helps.

    Test it like any change: evaluate again with the rules in place.
    """
    problems = {name.replace(":", ".").split(".")[0] for name in derived.problems}
    called_for = {spec.remedy for spec in REGISTRY.specs() if spec.id in problems}
    wanted = [remedy for remedy in SHARED if remedy in called_for]
    wanted += sorted((r for r in called_for if r and r not in SHARED), key=lambda r: r.title)
    if any(flip.after == "flag" for flip in derived.variant_flips):
        wanted.insert(0, REWORDING)
    parts = []
    for remedy in wanted:
        rules = "\n".join(f"{n}. {rule}" for n, rule in enumerate(remedy.rules, start=1))
        parts.append(f"### {remedy.title}\n{rules}\n")
    return "\n".join(parts)


def artefacts(
    lab: ScoredLab, derived: Derived, passes: Mapping[str, bool]
) -> dict[str, str | list[dict[str, Any]]]:
    """Return the artefacts by file name: text as it is, lists to be written as JSON."""
    entries = corpus_patch(lab, derived, passes)
    return {
        "corpus_patch.html": patch_html(entries),
        "corpus_patch.json": [entry.as_json() for entry in entries],
        "system_prompt_extension.md": prompt_extension(derived),
    }
