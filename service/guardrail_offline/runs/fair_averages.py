"""Values that count in no average: by an answer that is not right, and for having said nothing.

Tables of scores, result files and flips have them all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.result import Result
from guardrail_offline.runs.shards import ScoredCase
from guardrail_offline.runs.totals import fails, is_unanswered
from guardrail_service.types import State

OTHER_ANSWER = "other_answer"
"""The reason of a variant whose question has another answer than the expected one."""


def in_averages(scored: ScoredCase, configured: Sequence[Configured]) -> ScoredCase:
    """Return a case with the results that boards, problems and insights count.

    Without what compares a variant with an expected answer that is no longer right. And where a
    case was left unanswered, without what its answer could only pass by saying nothing: it insults
    nobody. A failure counts all the same.
    """
    reason = why_unanswered(scored)
    if reason is None and not scored.case.has_other_answer:
        return scored
    results = dict(scored.results)
    for one in configured:
        spec = one.evaluator.spec
        if scored.case.has_other_answer and spec.compares:
            results[one.id] = Result.missing(spec.keys, State.NOT_APPLICABLE, OTHER_ANSWER)
        elif reason and _passes_by_silence(one, results[one.id]):
            results[one.id] = Result.missing(spec.keys, State.NOT_APPLICABLE, reason)
    return replace(scored, results=results)


def why_unanswered(scored: ScoredCase) -> str | None:
    """Return why a case has no answer to judge, as some evaluator said; None if it has one."""
    reasons = (score.reason for one in scored.results.values() for score in one.scores.values())
    return next((reason for reason in reasons if reason and is_unanswered(reason)), None)


def _passes_by_silence(one: Configured, result: Result) -> bool:
    spec, cuts = one.evaluator.spec, one.thresholds()
    if "answer" not in spec.inputs or spec.silence_fails:
        return False
    return not any(
        fails(score.value, spec.metric(key).direction, cut)
        for key, score in result.scores.items()
        if score.value is not None and (cut := cuts[key]) is not None
    )
