"""Takes a judge's message for an answer, or says why it is none. Nothing is guessed from prose.

A message counts if it holds exactly one answer that follows the schema and repeats the mark that
ends the data. A judge that answers without having read to the end, or repeats an "answer" that
stood in the data, does not know the mark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator

from guardrail_offline.judge.judge_tasks import MARK, Task

LONGEST = 200_000
"""A longer message is no answer."""
_MOST_OBJECTS = 50


class Parsed(NamedTuple):
    """A value, or what is wrong in a word and for the judge."""

    value: Any = None
    why: str | None = None
    told: str = ""


def parse(text: str, task: Task, inputs: Mapping[str, Any], mark: str | None) -> Parsed:
    """Return the answer in a judge's message.

    Args:
        text: The message.
        task: What was asked.
        inputs: With which data.
        mark: What the answer has to repeat; None if it need not.
    """
    if not text.strip():
        return Parsed(None, "empty", "the answer was empty")
    if len(text) > LONGEST:
        return Parsed(None, "too_long", "the answer was too long")
    found = list(_objects(text))
    if not found:
        return Parsed(None, "no_json", "the answer was no JSON object")
    validator = task.plain_validator if mark is None else task.marked_validator
    tried = [_checked(value, validator, task, inputs, mark) for value in found]
    good = [one for one in tried if one.why is None]
    if not good:
        return tried[-1]
    if any(one.value != good[0].value for one in good):
        return Parsed(None, "several_answers", "there were several answers")
    return good[0]


def _checked(
    value: Any,
    validator: Draft202012Validator,
    task: Task,
    inputs: Mapping[str, Any],
    mark: str | None,
) -> Parsed:
    error = next(iter(validator.iter_errors(value)), None)
    if error is not None:
        place = "/".join(map(str, error.absolute_path)) or "the object"
        return Parsed(None, "other_shape", f"{place} does not follow the schema")
    own = {key: item for key, item in value.items() if mark is None or key != MARK}
    if mark is not None and value[MARK].strip() != mark:
        return Parsed(None, "unread", f"{MARK!r} was not the mark that stands behind END")
    wrong = task.check(inputs, own) if task.check else None
    if wrong is not None:
        return Parsed(None, "other_length", wrong)
    return Parsed(own)


def _objects(text: str) -> Iterator[Any]:
    """Yield the outermost JSON objects of a text, in order."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    place = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if place < 0:
            return
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place = text.find("{", place + 1)
            continue
        yield value
        place = text.find("{", end)


def _refuse(name: str) -> Any:
    raise ValueError(name)


def label_weights(text: str, logprobs: Any, value: Any, task: Task) -> dict[str, dict[str, float]]:
    """Return the probabilities of the labels at each labelled place of an answer.

    Only for places directly under the object whose labels begin with different tokens; empty where
    the server gave no log probabilities that fit the message.
    """
    import math

    tokens = [one for one in logprobs if isinstance(one, Mapping)]
    if not tokens or "".join(str(one.get("token", "")) for one in tokens) != text:
        return {}
    found: dict[str, dict[str, float]] = {}
    for key, schema in task.schema.get("properties", {}).items():
        labels = schema.get("enum")
        if not labels or value.get(key) not in labels:
            continue
        at = _place_of(text, key, value[key])
        weights = {} if at is None else _weights_at(tokens, at, labels)
        total = math.fsum(weights.values())
        if total > 0:
            found[f"/{key}"] = {label: weight / total for label, weight in weights.items()}
    return found


def _place_of(text: str, key: str, value: str) -> int | None:
    """Return where a label begins in the message, if that is beyond doubt."""
    wanted = f'"{value}"'
    after = text.find(f'"{key}"')
    if after < 0 or text.find(f'"{key}"', after + 1) >= 0:
        return None
    at = text.find(wanted, after + len(key) + 2)
    between = text[after + len(key) + 2 : at] if at >= 0 else "?"
    return at + 1 if between.strip() == ":" else None


def _weights_at(tokens: list[Mapping[str, Any]], at: int, labels: list[str]) -> dict[str, float]:
    import math

    start = 0
    for one in tokens:
        token = str(one["token"])
        if start <= at < start + len(token):
            before = token[: at - start]
            weights = dict.fromkeys(labels, 0.0)
            for other in one.get("top_logprobs") or ():
                text, logprob = str(other.get("token", "")), other.get("logprob")
                if not text.startswith(before) or not isinstance(logprob, int | float):
                    continue
                part = text[len(before) :].rstrip('"')
                fits = [label for label in labels if part and label.startswith(part)]
                if len(fits) == 1:
                    weights[fits[0]] += math.exp(min(0.0, logprob))
            return weights
        start += len(token)
    return {}
