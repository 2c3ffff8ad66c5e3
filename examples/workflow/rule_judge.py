"""A judge of a few rules, in the place of a language model: for the example with a judge.

It supports a statement whose words the passages have, and writes questions about sentences with a
number. Its answers are kept as transcripts, and replayed by `--judge-mode replay`: then nobody is
asked, which `SILENT=1` makes sure of.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

_ENOUGH = 0.7


def chat(messages: Sequence[Mapping[str, Any]], response_format: Any = None) -> str:
    """Return the next message, in the form that the task asks for."""
    if os.environ.get("SILENT"):
        raise RuntimeError("nobody is to be asked")
    first, *lines, _ = messages[1]["content"].split("\n")
    pairs = (line.partition(": ") for line in lines)
    inputs = {name: json.loads(value) for name, _, value in pairs}
    task = response_format["json_schema"]["name"]
    return json.dumps({"mark": first.removeprefix("DATA "), **_answer(task, inputs)})


def _answer(task: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    if task == "statements":
        return {"statements": _sentences(inputs["text"])}
    if task == "support":
        passages = _words(json.dumps(inputs["passages"]))
        return {"verdicts": [_verdict(one, passages) for one in inputs["statements"]]}
    if task == "generate_questions":
        return {"questions": _questions(inputs["text"])[: inputs["count"]]}
    return {}


def _verdict(statement: Mapping[str, Any], passages: set[str]) -> dict[str, Any]:
    words = _words(statement["text"])
    supported = len(words & passages) >= _ENOUGH * len(words)
    verdict = "supported" if supported else "not_mentioned"
    return {"i": statement["i"], "reason": "By its words.", "verdict": verdict}


def _questions(text: str) -> list[dict[str, Any]]:
    found = []
    for sentence in _sentences(text):
        numbers = [word for word in sentence.split() if word.strip(".,").isdecimal()]
        head, verb, _ = sentence.partition(" costs ")
        if verb and numbers:
            asked = f"How much does {head[0].lower()}{head[1:]} cost?"
            answer = f"{numbers[0].strip('.,')} euros"
            found.append(
                {"question": asked, "answer": answer, "statement": sentence, "quotes": [sentence]}
            )
    return found


def _sentences(text: str) -> list[str]:
    flat = " ".join(text.split())
    return [f"{one.strip().rstrip('.')}." for one in flat.split(". ") if one.strip()]


def _words(text: str) -> set[str]:
    return set("".join(char.lower() if char.isalnum() else " " for char in text).split())
