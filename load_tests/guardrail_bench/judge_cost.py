"""Measures the judge's client alone: processor time of our own code per question.

The host is in this process and answers at once, so nothing but our code is measured: messages,
digest, parsing, limits and transcripts.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from guardrail_offline.evaluators.judged.claim_tasks import SUPPORT, SUPPORTED
from guardrail_offline.hosts.chat import Completion
from guardrail_offline.judge.judge_client import Judge, open_store
from guardrail_offline.judge.judge_settings import JudgeSettings

STATEMENTS, PASSAGES, WORDS = 5, 5, 180
"""A typical question: five statements against five passages of 180 words."""


@dataclass(frozen=True)
class JudgeCost:
    """Processor time of one way to an answer."""

    way: str
    us_per_question: float


class InstantHost:
    """Supports every statement at once."""

    name = model = "instant"

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Completion:
        """Return an answer of the usual length."""
        mark = messages[1]["content"].partition("\n")[0].removeprefix("DATA ")
        verdicts = [
            {"i": i, "reason": "The second passage says so.", "verdict": SUPPORTED}
            for i in range(1, STATEMENTS + 1)
        ]
        text = json.dumps({"mark": mark, "verdicts": verdicts})
        return Completion(text, "stop", (2000, 150), 0.0)


def questions(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return the inputs of some questions, all different."""
    rng = random.Random(seed)  # noqa: S311 - texts of a benchmark
    words = [f"word{n}" for n in range(2000)]

    def text(length: int) -> str:
        return " ".join(rng.choices(words, k=length))

    return [
        {
            "passages": [text(WORDS) for _ in range(PASSAGES)],
            "statements": [{"i": i, "text": text(15)} for i in range(1, STATEMENTS + 1)],
        }
        for _ in range(count)
    ]


def run(count: int) -> list[JudgeCost]:
    """Return the processor time of each way: asked, asked and kept, remembered."""
    asked = questions(count)
    with tempfile.TemporaryDirectory() as folder:
        settings = JudgeSettings("http://judge.invalid/v1", "instant", Path(folder) / "t.sqlite")
        store = open_store(settings)
        alone, kept = Judge(InstantHost(), settings), Judge(InstantHost(), settings, store)
        rows = [
            _measured("the answer is not kept", alone, asked),
            _measured("the answer is kept", kept, asked),
            _measured("the answer is remembered", kept, asked),
        ]
        if store is not None:
            store.close()
    return rows


def _measured(
    way: str,
    judge: Judge,
    asked: Sequence[Mapping[str, Any]],
    clock: Callable[[], float] = time.process_time,
) -> JudgeCost:
    began = clock()
    for inputs in asked:
        found = judge.ask(SUPPORT, inputs)
        if found.status != "ok":
            raise RuntimeError(f"found {found.status}; expected an answer")
    return JudgeCost(way, (clock() - began) / len(asked) * 1e6)


def render(rows: Sequence[JudgeCost], console: Console) -> None:
    """Print the rows as a table."""
    table = Table("way", "processor time, us per question")
    for row in rows:
        table.add_row(row.way, f"{row.us_per_question:.0f}")
    console.print(table)
