"""An evaluator's form with a judge: which tasks it asks, and what it makes of the answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Generic, Literal, TypeVar

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import (
    CATALOGUE,
    AnyEvaluator,
    Evaluator,
    EvaluatorSpec,
)
from guardrail_offline.evaluators.result import Result, Score
from guardrail_offline.judge.judge_tasks import Task
from guardrail_offline.judge.results import Asks, JudgeResult, JudgeStatus, TokenUsage
from guardrail_service.detectors.registry import Parameters
from guardrail_service.errors import NotScorable
from guardrail_service.types import MetricSpec, Role, State

P = TypeVar("P", bound=Parameters)
T = TypeVar("T")
JUDGE: Literal["judge"] = "judge"
PARSE_FAILURES = "model_parse_failures"
_STATES: Mapping[JudgeStatus, State] = {
    "parse_failure": State.UNVERIFIED,
    "refused": State.UNVERIFIED,
    "budget": State.NOT_EVALUATED,
    "timeout": State.ERROR,
    "rate_limited": State.ERROR,
    "error": State.ERROR,
}


class NoVerdict(Unavailable):
    """The judge gave no verdict. Carries the status.

    Attributes:
        status: Of the question that has no answer.
    """

    code = "no_verdict"

    def __init__(self, status: JudgeStatus) -> None:
        super().__init__(_STATES[status], f"judge_{status}")
        self.status = status


class Asking:
    """Asks for one case and counts what it took.

    Args:
        judge: Who is asked.
    """

    def __init__(self, judge: Asks) -> None:
        self._judge = judge
        self._results: list[JudgeResult] = []

    def __call__(self, task: Task, inputs: Mapping[str, Any], vote: int = 0) -> Any:
        """Return the judge's answer.

        Raises:
            NoVerdict: If there is none.
        """
        found = self.result(task, inputs, vote)
        if found.status != "ok":
            raise NoVerdict(found.status)
        return found.value

    def result(self, task: Task, inputs: Mapping[str, Any], vote: int = 0) -> JudgeResult:
        """Return what became of a question, for evaluators that go on without an answer."""
        found = self._judge.ask(task, inputs, vote=vote)
        self._results.append(found)
        return found

    def votes(self, task: Task, inputs: Mapping[str, Any], count: int) -> list[Any]:
        """Return several answers to one question, each asked for by itself.

        Raises:
            NoVerdict: If one is missing: a majority of fewer is another majority.
        """
        return [self(task, inputs, vote) for vote in range(count)]

    def told(self) -> dict[str, Any]:
        """Return calls, statuses, tokens and seconds, as details of a result."""
        statuses = Counter(found.status for found in self._results)
        usage = sum((found.usage for found in self._results), TokenUsage())
        why = Counter(found.detail for found in self._results if found.detail)
        return {
            "calls": len(self._results),
            "statuses": dict(sorted(statuses.items())),
            **({"why": dict(sorted(why.items()))} if why else {}),
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "cached_tokens": usage.cached,
            "seconds": sum(found.latency for found in self._results),
        }


class JudgeForm(ABC, Generic[P, T]):
    """The way of an evaluator with a judge. Instances hold no state.

    Attributes:
        evaluator: Its id.
        tasks: Everything it may ask, for people who read prompts and for the run's digest.
        parameters: Of the form; those of the evaluator where it is None.
        metrics: In the place of the evaluator's; None keeps them.
        roles: Roles of the pack that the formula needs.
    """

    evaluator: ClassVar[str]
    tasks: ClassVar[tuple[Task, ...]]
    parameters: ClassVar[type[Parameters] | None] = None
    metrics: ClassVar[tuple[MetricSpec, ...] | None] = None
    roles: ClassVar[frozenset[Role]] = frozenset()

    @abstractmethod
    def ask(self, view: CaseView, asking: Asking, parameters: P) -> T:
        """Return the answers to everything that is asked about a case. No model is used here.

        Raises:
            Unavailable: If the case lacks what is needed, or the judge gave no verdict.
        """

    @abstractmethod
    def score(self, view: CaseView, found: T, parameters: P) -> Result:
        """Return what the answers amount to."""

    def failed(self, spec: EvaluatorSpec, why: NoVerdict) -> Result:
        """Return the result without a verdict: a parse failure is one in its own metric."""
        result = Result.without(spec.keys, why.missing)
        if PARSE_FAILURES not in spec.keys or why.status != "parse_failure":
            return result
        return Result({**result.scores, PARSE_FAILURES: Score(1.0)})


AnyForm = JudgeForm[Any, Any]
_FORMS: dict[str, AnyForm] = {}


def judge_form(cls: type[AnyForm]) -> type[AnyForm]:
    """Class decorator: register a form under its evaluator's id."""
    _FORMS[cls.evaluator] = cls()
    return cls


def forms() -> Mapping[str, AnyForm]:
    """Return every form by its evaluator's id."""
    import_module("guardrail_offline.evaluators.judged")
    return _FORMS


def form_of(evaluator_id: str) -> AnyForm | None:
    """Return an evaluator's form; None if it has none."""
    return forms().get(evaluator_id)


class JudgeBacked(Evaluator[Any]):
    """An evaluator by a judge: same id, same metrics, another way to its numbers.

    Args:
        evaluator: Its form without a judge.
        form: With one.
    """

    def __init__(self, evaluator: AnyEvaluator, form: AnyForm) -> None:
        self.form = form
        self.without_judge = evaluator
        self.has_classes = evaluator.has_classes
        self.parameters = form.parameters or evaluator.parameters
        self.spec = _spec(evaluator.spec, form)

    def metrics_with(self, parameters: Parameters) -> tuple[MetricSpec, ...]:
        """Return the form's own, else those of the evaluator without a judge."""
        return self.form.metrics or self.without_judge.metrics_with(parameters)

    def judge(self, view: CaseView, parameters: Parameters) -> Result:
        """Return the metrics with what the judge was asked, or why there are none."""
        if view.models.judge is None:
            raise Unavailable(State.NOT_EVALUATED, "needs_judge")
        asking = Asking(view.models.judge)
        try:
            result = self.form.score(view, self.form.ask(view, asking, parameters), parameters)
        except NoVerdict as why:
            result = self.form.failed(self.spec, why)
        except Unavailable as why:
            result = Result.without(self.spec.keys, why.missing)
        except NotScorable:
            result = Result.missing(self.spec.keys, State.NOT_APPLICABLE, "not_scorable")
        told = {"judge": asking.told()}
        return Result(result.scores, result.spans, {**result.details, **told})

    def ask_ahead(self, view: CaseView, parameters: Parameters) -> None:
        """Ask everything about a case, so that its answers are known when it is scored."""
        if view.models.judge is None:
            return
        try:
            self.form.ask(view, Asking(view.models.judge), parameters)
        except (Unavailable, NotScorable):
            return

    def finish(self, views: Sequence[CaseView], results: Sequence[Result]) -> list[Result]:
        """Return what the form without a judge makes of one question's results together."""
        return self.without_judge.finish(views, results)

    def tally(self, result: Result) -> tuple[str, ...] | None:
        """Return what the form without a judge counts."""
        return self.without_judge.tally(result)

    def per_model(self, tallies: Counter[tuple[str, ...]]) -> Mapping[str, float]:
        """Return what the form without a judge makes of its counts."""
        return self.without_judge.per_model(tallies)


def _spec(spec: EvaluatorSpec, form: AnyForm) -> EvaluatorSpec:
    principles = (tag for tag in spec.tags if ":" in tag)
    return replace(
        spec,
        metrics=form.metrics or spec.metrics,
        run_class="J",
        surrogate="",
        needs_judge=False,
        roles=form.roles,
        needs_support=False,
        deterministic=False,
        same_as={},
        tags=(JUDGE, *principles),
        backend=JUDGE,
    )


@cache
def judge_backed(evaluator_id: str) -> JudgeBacked:
    """Return an evaluator by a judge; KeyError if it has no such form."""
    return JudgeBacked(CATALOGUE[evaluator_id], forms()[evaluator_id])


def every(texts: Iterable[str]) -> list[str]:
    """Return texts that are not blank, without blanks around them, each once."""
    return list(dict.fromkeys(text.strip() for text in texts if text.strip()))
