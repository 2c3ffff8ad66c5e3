"""A judge for tests of evaluators: it says what it is told to, in the form of the task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator

from guardrail_offline.judge.judge_tasks import Task
from guardrail_offline.judge.results import JudgeResult, JudgeStatus

Says = Callable[[Task, Mapping[str, Any], int], Any]
"""Returns the value for a task, its inputs and the vote; or a `JudgeResult`."""


@dataclass
class FakeJudge:
    """Answers by a function, or by the value of each task's id.

    A value that the task's schema or check refuses is an error in the test.

    Attributes:
        says: A function, or values by task id.
        asked: Every question: task, inputs, vote.
    """

    says: Says | Mapping[str, Any]
    asked: list[tuple[str, Mapping[str, Any], int]] = field(default_factory=list)

    def ask(
        self,
        task: Task,
        inputs: Mapping[str, Any],
        schema: Mapping[str, Any] | None = None,
        vote: int = 0,
    ) -> JudgeResult:
        """Return what this was told to say.

        Raises:
            AssertionError: If that is no answer to the task.
        """
        self.asked.append((task.id, inputs, vote))
        told = self.says(task, inputs, vote) if callable(self.says) else self.says[task.id]
        if isinstance(told, JudgeResult):
            return told
        errors = list(Draft202012Validator(dict(schema or task.schema)).iter_errors(told))
        if errors:
            raise AssertionError(f"{task.id}: {errors[0].message}")
        wrong = task.check(inputs, told) if task.check else None
        if wrong is not None:
            raise AssertionError(f"{task.id}: {wrong}")
        return JudgeResult("ok", told, attempts=1, model="fake")

    @staticmethod
    def failing(status: JudgeStatus, detail: str = "scripted") -> JudgeResult:
        """Return a result without a value."""
        return JudgeResult(status, attempts=1, model="fake", detail=detail)
