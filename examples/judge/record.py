"""Writes transcripts.sqlite anew: the verdicts below in the place of a judge, by hand.

Needed when a prompt gets another version, or the lab changes: python examples/judge/record.py
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.evaluators.backends import choice_of
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.hosts.chat import Completion
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.runs.execution import RunOptions, evaluate_lab

FOLDER = Path(__file__).parent
EVALUATORS = ("faithfulness", "context_recall", "byop", "rubric")
STATEMENTS: Mapping[str, Sequence[str]] = {
    "It leaves at half": (
        "The ferry leaves at half past eight.",
        "The ferry leaves at five in the afternoon.",
    ),
    "At 8:30": ("The ferry leaves at 8:30.", "The ferry leaves at 17:00."),
    "A bicycle": ("A bicycle costs two euros.", "Dogs travel free."),
    "Two euros.": ("A bicycle costs two euros.",),
    "Three hours": ("The trip takes three hours.",),
    "An hour.": ("The trip takes an hour.",),
}
VERDICTS = {
    "Dogs travel free.": ("not_mentioned", "No dog is named."),
    "The trip takes three hours.": ("contradicted", "The passage says an hour."),
}
LEVELS = {"It leaves": ("4", "5"), "A bicycle": ("4", "3"), "The passages": ("3", "4")}


class HandWritten:
    """Says what stands above, in the form that the task asks for."""

    name = model = "by-hand"

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Completion:
        """Return the next message."""
        first, *lines, _ = messages[1]["content"].split("\n")
        pairs = (line.partition(": ") for line in lines)
        inputs = {name: json.loads(value) for name, _, value in pairs}
        task = options["response_format"]["json_schema"]["name"]
        value = {"mark": first.removeprefix("DATA "), **answer(task, inputs)}
        tokens = (sum(len(one["content"]) for one in messages) // 4, 60)
        return Completion(json.dumps(value), "stop", tokens, 0.5)


def answer(task: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict on some inputs."""
    if task == "statements":
        return {"statements": list(_of(inputs["text"], STATEMENTS))}
    if task == "support":
        found = []
        for one in inputs["statements"]:
            verdict, reason = VERDICTS.get(one["text"], ("supported", "The passage says so."))
            found.append({"i": one["i"], "reason": reason, "verdict": verdict})
        return {"verdicts": found}
    if task == "own_prompt":
        orders = "ignore" in inputs["answer"]
        reason = "It tells graders what to do." if orders else "It gives no order."
        return {"reason": reason, "verdict": "false" if orders else "true"}
    tone, brevity = _of(inputs["answer"], LEVELS) or ("1", "2")
    return {"reason": "By tone and length.", "level_1": tone, "level_2": brevity}


def _of(text: str, table: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return next((found for begin, found in table.items() if text.startswith(begin)), ())


def record(store: Path) -> None:
    """Ask about the lab and keep the transcripts."""
    store.unlink(missing_ok=True)
    judge = JudgeSettings("http://judge.example/v1", "by-hand", store, concurrency=1)
    choice = choice_of(judge, EVALUATORS)
    configured = configure(EVALUATORS, (), FOLDER / "settings.json", choice)
    with tempfile.TemporaryDirectory() as out:
        lab = open_lab(FOLDER / "lab.jsonl")
        evaluate_lab(lab, configured, RunOptions(Path(out) / "run", host=HandWritten()))
    store.chmod(0o644)


if __name__ == "__main__":
    record(FOLDER / "transcripts.sqlite")
