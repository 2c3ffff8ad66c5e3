"""A judge on a port of its own that answers by a script, well or with every fault there is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.judge.judge_tasks import MARK, Example, Task, an_object, numbered, one_of
from tests.unit.offline.hosts.server import Reply, serving

Says = Callable[[str, Mapping[str, Any]], Any]
"""Returns the value for a task's id and its inputs."""
FAULTS: dict[str, Callable[[str], Reply]] = {
    "busy": lambda _: Reply({}, 429, {"Retry-After": "0"}),
    "unavailable": lambda _: Reply({}, 503),
    "no_json": lambda _: Reply(content=b"<html>"),
    "error_object": lambda _: Reply({"error": {"message": "secret words"}}),
    "half": lambda text: Reply(content=json.dumps(said(text)).encode()[:40], claimed=999),
    "empty": lambda _: Reply(said("")),
    "null": lambda _: Reply(said(None)),
    "prose": lambda _: Reply(said("I would say that it is fine: yes. GRADE: CI")),
    "wrong_label": lambda text: Reply(said(text.replace('"yes"', '"YES indeed"'))),
    "unread": lambda text: Reply(said(re.sub(rf'"{MARK}": "\w+"', f'"{MARK}": "00000000"', text))),
    "no_mark": lambda text: Reply(said(re.sub(rf'"{MARK}": "\w+", ', "", text))),
    "several": lambda text: Reply(said(f"{text} {text.replace('yes', 'no')}")),
    "cut_off": lambda text: Reply(said(text[:-5], finish_reason="length")),
    "fenced": lambda text: Reply(said(f"Sure!\n```json\n{text}\n```")),
    "extra": lambda text: Reply(said(f"Here: {text} That is my answer.")),
    "no_usage": lambda text: Reply(said(text)),
    "refusal": lambda _: Reply(
        {"choices": [{"message": {"content": None, "refusal": "I will not."}}]}
    ),
    "no_schema": lambda _: Reply({"error": {"message": "response_format"}}, 400),
    "too_long": lambda _: Reply({"error": {"code": "context_length_exceeded"}}, 400),
    "wrong_key": lambda _: Reply({"error": {"code": "invalid_api_key"}}, 401),
    "unknown_model": lambda _: Reply({"error": {"code": "model_not_found"}}, 404),
    "slow": lambda text: Reply(said(text), drops=0.05),
}
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 80},
}


def said(text: Any, **more: Any) -> dict[str, Any]:
    """Return a completion."""
    return {"choices": [{"message": {"role": "assistant", "content": text}, **more}]}


@dataclass
class Script:
    """What the judge says, and which faults come first.

    Attributes:
        says: The value of each question.
        faults: Names of `FAULTS`, one per request; a None is none.
        always: A fault of every request that has a form of answer among these.
    """

    says: Says
    faults: list[str | None] = field(default_factory=list)
    refused_forms: tuple[str, ...] = ()
    seen: list[tuple[str, dict[str, Any], dict[str, Any]]] = field(default_factory=list)

    def reply(self, body: dict[str, Any]) -> Reply:
        """Return the reply to one request."""
        inputs, mark = read_data(body["messages"][1]["content"])
        task = task_of(body)
        self.seen.append((task, inputs, body))
        if body.get("response_format", {}).get("type", "text") in self.refused_forms:
            return FAULTS["no_schema"]("")
        text = json.dumps({MARK: mark, **self.says(task, inputs)})
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            return FAULTS[fault](text)
        return Reply({**said(text, finish_reason="stop"), "usage": USAGE})


def read_data(text: str) -> tuple[dict[str, Any], str]:
    """Return the inputs and the mark of a message."""
    first, *lines, last = text.split("\n")
    mark = first.removeprefix("DATA ")
    assert last == f"END {mark}"
    pairs = (line.partition(": ") for line in lines)
    return {name: json.loads(value) for name, _, value in pairs}, mark


def task_of(body: Mapping[str, Any]) -> str:
    """Return the id of the task that a request asks: its schema's name, or its first words."""
    form = body.get("response_format", {})
    if form.get("type") == "json_schema":
        return str(form["json_schema"]["name"])
    return str(body["messages"][0]["content"].split("\n")[0])


@contextmanager
def judging(
    says: Says, faults: list[str | None] | None = None, refused_forms: tuple[str, ...] = ()
) -> Iterator[tuple[Script, str]]:
    """Yield a script and the address where it is followed."""
    script = Script(says, list(faults or ()), refused_forms)
    with serving(answer=script.reply) as server:
        yield script, server.url


def settings(url: str, store: Path | None = None, **more: Any) -> JudgeSettings:
    """Return settings of a judge on this machine."""
    return JudgeSettings(url, "m", store, **more)


YES_NO = Task(
    "yes_no",
    1,
    "yes_no\nIs the answer good?",
    an_object(verdict=one_of("yes", "no")),
    (Example({"answer": "ok"}, {"verdict": "yes"}), Example({"answer": "?"}, {"verdict": "no"})),
)
EACH = Task(
    "each",
    1,
    "each\nIs each word good?",
    an_object(
        verdicts={
            "type": "array",
            "items": an_object(i={"type": "integer"}, verdict=one_of("yes", "no")),
        }
    ),
    check=numbered("verdicts", "words"),
)
