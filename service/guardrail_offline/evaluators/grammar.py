"""Judges answers to questions that were made from a database: right, robust, and who is at fault.

Right answers are known by construction. Whether an answer is one is decided by the ladder: equal
words, numbers, dates, aliases, sets, the words in a row, overlap, and entailment only where all of
them pass on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import Field

from guardrail_offline.datasets.cases import GENERATED, Case
from guardrail_offline.evaluators.answer_strings import contains, token_f1
from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import LOWER, Evaluator, EvaluatorSpec, evaluator
from guardrail_offline.evaluators.result import Details, Result, Score
from guardrail_offline.evaluators.shared.answer_match import (
    best_match,
    denies,
    has_values,
    holds,
    items_of,
    polarity,
)
from guardrail_offline.evaluators.shared.answer_words import words
from guardrail_offline.evaluators.shared.grammar_scores import (
    Blame,
    compare_contexts,
    group_scores,
)
from guardrail_offline.evaluators.shared.support import SupportParameters, compared
from guardrail_service.detectors.facts.read import read
from guardrail_service.detectors.registry import Parameters
from guardrail_service.errors import NotScorable
from guardrail_service.text.patterns.search import encodable
from guardrail_service.types import MetricSpec, State

UNKNOWN, SET = f"{GENERATED}:unknown", f"{GENERATED}:set"
PER_MODEL = ("robustness", "gap_share", "knowledge_accuracy", "retrieval_robustness")


class GrammarParameters(Parameters):
    """The cuts of the ladder's last rungs.

    Attributes:
        least_overlap: Least F1 of the words from which an answer is the expected one.
        least_support: Least P(supported) both ways, asked only where no rule decides.
    """

    least_overlap: float = Field(0.8, ge=0.0, le=1.0)
    least_support: float = Field(0.5, ge=0.0, le=1.0)


class Correctness(NamedTuple):
    """The verdict about an answer, and the rung that said so."""

    right: bool
    level: str


def correctness(view: CaseView, parameters: GrammarParameters) -> Correctness:
    """Return whether an answer is the expected one, and by which rung of the ladder.

    Raises:
        Unavailable: If there is no answer, an error stands in its place, or only a model could
            tell and it does not read the language.
    """
    found = ruled(view, parameters)
    if found is not None:
        return found
    if not any(token_f1(one, view.answer) for one in view.right_answers):
        return Correctness(False, "token_overlap")
    return _by_model(view, parameters)


def ruled(view: CaseView, parameters: GrammarParameters) -> Correctness | None:
    """Return what rules say of an answer, or None where they pass on.

    Raises:
        Unavailable: If there is no answer, or an error stands in its place.
    """
    answer, wanted = view.answer, view.right_answers
    found = best_match(wanted, answer, view.case.question)
    if found is not None and found.same:
        return Correctness(True, found.by)
    if view.abstained:
        return Correctness(False, "abstained")
    if SET in view.case.categories:
        return _of_set(view, wanted[0].split("\n"))
    if (level := _held(view, answer, wanted)) is not None:
        return Correctness(True, level)
    if found is not None:
        return Correctness(False, found.by)
    if all(_is_value(one) for one in wanted):
        return Correctness(False, "value")
    if max(token_f1(one, answer) for one in wanted) >= parameters.least_overlap:
        return Correctness(True, "token_overlap")
    return None


def _held(view: CaseView, answer: str, wanted: Sequence[str]) -> str | None:
    """Return the rung by which an answer holds a right one among other words, or None."""
    sentences = [part.text for part in view.text(answer).answer_sentences]
    for one in wanted:
        if _is_value(one):
            if any(has_values(one, text) and not denies(text) for text in sentences):
                return "value"
        elif any(holds(text, one) for text in sentences):
            return "contained"
    return None


def _is_value(text: str) -> bool:
    """Return whether a text is numbers, dates and amounts only."""
    found = read(encodable(text))
    inside = {place for fact in found.facts for place in range(fact.token, max(fact.last, 1))}
    beside = [t for place, t in enumerate(found.tokens) if place not in inside and t.kind == "w"]
    return bool(found.facts) and not beside


def _of_set(view: CaseView, items: Sequence[str]) -> Correctness:
    """Return whether an answer has every item of a set, and lists no other beside them."""
    answer = view.answer
    listed = set(items_of(answer))
    wanted = {one for item in items for one in items_of(item)}
    lists_more = wanted < listed
    return Correctness(all(_has(answer, item) for item in items) and not lists_more, "set")


def _has(text: str, item: str) -> bool:
    return bool(has_values(item, text)) if _is_value(item) else contains(item, text)


def _by_model(view: CaseView, parameters: GrammarParameters) -> Correctness:
    found = compared(view, SupportParameters(support_threshold=parameters.least_support))
    return Correctness(bool(found.claimed.all() and found.answered.all()), "nli")


def retrieved(case: Case) -> tuple[bool, str] | None:
    """Return whether what an answer needs was retrieved, and by what that is known, or None.

    By ids where the lab names the documents, else by whether the passages say the answer.
    """
    if case.contexts is None or not case.expected:
        return None
    ids = {passage.id for passage in case.contexts if passage.id is not None}
    if case.reference_ids and (ids or not case.contexts):
        return set(case.reference_ids) <= ids, "ids"
    if polarity(case.expected) is not None:
        return None  # passages do not say "yes"
    return says_answer(case), "text"


def says_answer(case: Case) -> bool:
    """Return whether the passages say an expected answer in its own words or values.

    Of passages with ids only those count that the lab names: another row may have the same value.
    """
    known = [one for one in (case.expected, *case.references) if one]
    found = case.contexts or ()
    named = [passage for passage in found if passage.id in case.reference_ids]
    text = "\n".join(passage.text for passage in named or found)
    if SET in case.categories:
        return all(_has(text, item) for item in (case.expected or "").split("\n"))
    return any(words(one) and _has(text, one) for one in known)


class Answered(NamedTuple):
    """One generated case of a model, judged."""

    case: Case
    right: bool


def blame_of(wrong: Case, group: Sequence[Answered]) -> Blame:
    """Return which part is to blame for a wrong answer.

    Args:
        wrong: The case.
        group: All judged cases of its question, of the same model.
    """
    right = [one.case for one in group if one.right]
    found = retrieved(wrong)
    if found is None:
        return "undecidable"
    if found[1] == "ids":
        if not found[0]:
            return "retrieval"
        if says_answer(wrong):
            return "language_model"
        return "undecidable" if right else "knowledge"
    if right and all(_ids(one) for one in (wrong, *right)):
        return compare_contexts(_ids(wrong), [_ids(one) for one in right])
    return "language_model" if found[0] else "undecidable"


def _ids(case: Case) -> frozenset[str]:
    return frozenset(passage.id for passage in case.contexts or () if passage.id is not None)


def result_of(view: CaseView, decide: Callable[[], Correctness]) -> Result:
    """Return the metrics of one case.

    Args:
        view: The case.
        decide: Says whether the answer is right; asked only where something is.

    Raises:
        Unavailable: If the case was not generated, or has no answer.
    """
    case = view.case
    refuse_others(case)
    later = {key: Score.missing(State.NOT_APPLICABLE, "per_model") for key in PER_MODEL}
    if UNKNOWN in case.categories:
        _ = view.answer
        none = Score.missing(State.NOT_APPLICABLE, "answer_unknown")
        admits = Score(float(view.abstained))
        scores = {"correct": none, "answer_retrieved": none, "admits_unknown": admits}
        return Result(scores | later, (), _place(case) | {"unknown": True})
    found, there = decide(), retrieved(case)
    scores = {
        "correct": Score(float(found.right)),
        "answer_retrieved": _retrieval(case),
        "admits_unknown": Score.missing(State.NOT_APPLICABLE, "answer_known"),
    }
    details = _place(case) | {"level": found.level, "right": found.right}
    if there is not None:
        details |= {"retrieved": there[0], "retrieved_by": there[1]}
    return Result(scores | later, (), details)


def refuse_others(case: Case) -> None:
    """Raise Unavailable for a case that was not made from a database."""
    if GENERATED not in case.categories:
        raise Unavailable(State.NOT_APPLICABLE, "not_generated")


@evaluator
class Grammar(Evaluator[GrammarParameters]):
    """Correct answers outside gaps over answers outside gaps; a gap is right in no wording.

    Reads cases that `guardrail grammar generate` made. The details of a case name the rung that
    decided and, for a wrong answer, the part that is to blame.
    """

    spec = EvaluatorSpec(
        id="grammar",
        name="Tests from a database",
        summary="Is the answer right in every wording of the question, and which part fails?",
        metrics=(
            MetricSpec("correct", threshold=0.5, boolean=True),
            MetricSpec("answer_retrieved", boolean=True),
            MetricSpec("admits_unknown", boolean=True),
            MetricSpec("robustness"),
            MetricSpec("gap_share", LOWER),
            MetricSpec("knowledge_accuracy"),
            MetricSpec("retrieval_robustness"),
        ),
        inputs=frozenset({"question", "expected", "answer"}),
        run_class="N",
        also=("grammar:robustness",),
        original="J",
        surrogate="rules, then the pack's grounding model, in place of a judge of equal meaning",
        needs_support=True,
        problem="stability",
        tags=("rule-based", "nli", "nist:valid-reliable", "sr11-7:outcomes-analysis"),
        per_model=frozenset(PER_MODEL),
        scores="0.2.0",
    )
    parameters = GrammarParameters
    has_classes = False

    def judge(self, view: CaseView, parameters: GrammarParameters) -> Result:
        """Return whether an answer is right, or admits that nothing is known where nothing is."""
        return result_of(view, lambda: correctness(view, parameters))

    def finish(self, views: Sequence[CaseView], results: Sequence[Result]) -> list[Result]:
        """Return the results of one question's cases; wrong ones name the part that is to blame."""
        groups: dict[str, list[Answered]] = {}
        for view, result in zip(views, results, strict=True):
            if "right" in result.details:
                one = Answered(view.case, bool(result.details["right"]))
                groups.setdefault(view.case.model, []).append(one)
        return [
            _blamed(view.case, result, groups.get(view.case.model, ()))
            for view, result in zip(views, results, strict=True)
        ]

    def tally(self, result: Result) -> tuple[str, ...] | None:
        """Return group, whether the answer is right, and whether it had what it needs."""
        details = result.details
        if "right" not in details:
            return None
        had = details["right"] or details.get("blame") == "language_model"
        there = details.get("retrieved", had) if details.get("retrieved_by") == "ids" else had
        return str(details["group"]), str(int(details["right"])), str(int(there))

    def per_model(self, tallies: Counter[tuple[str, ...]]) -> Mapping[str, float]:
        """Return what exists only for groups; a metric without a value is left out."""
        found: dict[str, float] = {}
        try:
            scores = group_scores(_grouped(tallies, 1))
            retrieval = group_scores(_grouped(tallies, 2))
        except NotScorable:
            return {}
        found = {"gap_share": scores.gap_share, "knowledge_accuracy": scores.knowledge_accuracy}
        if scores.robustness is not None:
            found["robustness"] = scores.robustness
        if retrieval.robustness is not None:
            found["retrieval_robustness"] = retrieval.robustness
        return found


def _retrieval(case: Case) -> Score:
    found = retrieved(case)
    if found is not None:
        return Score(float(found[0]))
    if case.contexts is None:
        return Score.missing(State.UNVERIFIED, "missing_input")
    return Score.missing(State.NOT_APPLICABLE, "no_value")


def _grouped(tallies: Counter[tuple[str, ...]], which: int) -> list[tuple[int, int]]:
    """Return (right, answers) by group; `which` says what counts as right."""
    found: dict[str, list[int]] = {}
    for label, count in tallies.items():
        counts = found.setdefault(label[0], [0, 0])
        counts[0] += count * (label[which] == "1")
        counts[1] += count
    return [(right, total) for right, total in found.values()]


def _place(case: Case) -> dict[str, object]:
    return {"group": case.group, **dict(_named(case))}


def _named(case: Case) -> Iterator[tuple[str, str]]:
    for name in ("style", "sql"):
        prefix = f"{name}:"
        found = (c.removeprefix(prefix) for c in case.categories if c.startswith(prefix))
        yield ("template" if name == "sql" else name), next(found, "")


def _blamed(case: Case, result: Result, group: Sequence[Answered]) -> Result:
    if result.details.get("right", True):
        return result
    has_right = any(one.right for one in group)
    more: Details = {
        "blame": blame_of(case, group),
        "group_is": "non_robust" if has_right else "gap",
    }
    return Result(result.scores, result.spans, {**result.details, **more})
