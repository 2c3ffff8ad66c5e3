"""Draws the cases that people should label, and writes the files they label in."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.labels import FIELDS, as_typed, inert, tasks
from guardrail_offline.calibration.scored_lab import LabCase, read_records
from guardrail_offline.calibration.split import chance
from guardrail_offline.calibration.statistics import (
    guaranteed_rank,
    labels_needed,
    labels_needed_anytime,
    labels_needed_on_average,
)
from guardrail_service.errors import ConfigurationError

ALPHAS = (0.20, 0.10, 0.05, 0.02, 0.01)
COMFORT = 3
"""Rank worth planning for: at rank one a single odd answer decides every threshold."""


@dataclass(frozen=True, slots=True)
class LabelsNeeded:
    """Good questions one promise takes.

    Attributes:
        surely: With confidence 0.90 and 0.95.
        on_average: Without a confidence.
    """

    alpha: float
    surely: tuple[int, int]
    on_average: int


def table() -> tuple[LabelsNeeded, ...]:
    """Return the smallest samples for usual promises."""
    return tuple(
        LabelsNeeded(
            alpha,
            (labels_needed(alpha, 0.10), labels_needed(alpha, 0.05)),
            labels_needed_on_average(alpha),
        )
        for alpha in ALPHAS
    )


@dataclass(frozen=True, slots=True)
class LabellingPlan:
    """The numbers of questions that one promise takes.

    Attributes:
        least: Good questions at which a cut exists at all.
        comfortable: Good questions at which it rests on the third-worst answer.
        anytime: Good questions if the data are to be looked at more than once; None if they cannot
            be under these options.
        labels: Questions to label for the comfortable number, with the design part and with those
            that turn out bad.
        least_labels: The same for the least number.
    """

    options: FitOptions
    good_share: float
    least: int
    comfortable: int
    anytime: int
    labels: int
    least_labels: int

    def as_json(self) -> dict[str, Any]:
        """Return the plan for `--json`."""
        return {
            "alpha": self.options.alpha,
            "delta": self.options.delta,
            "split": self.options.split,
            "good_share": self.good_share,
            "good_questions_at_least": self.least,
            "good_questions_comfortable": self.comfortable,
            "good_questions_anytime": self.anytime,
            "questions_to_label_at_least": self.least_labels,
            "questions_to_label": self.labels,
        }


def plan(options: FitOptions, good_share: float) -> LabellingPlan:
    """Return how many labels the options' promise takes.

    Args:
        options: The promise and the design part.
        good_share: Expected share of answers that a human will pass, in (0, 1].
    """
    least = labels_needed(options.alpha, options.delta)
    comfortable = labels_needed(options.alpha, options.delta, COMFORT)
    whole = good_share * (1 - options.split)
    return LabellingPlan(
        options=options,
        good_share=good_share,
        least=least,
        comfortable=comfortable,
        anytime=labels_needed_anytime(options.alpha, options.delta),
        labels=math.ceil(comfortable / whole),
        # The by-ranks rule proves with every label and needs no design part.
        least_labels=math.ceil(least / good_share),
    )


def best_promise(n: int, delta: float) -> float:
    """Return the smallest alpha that n good questions can promise with confidence 1 - delta."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if guaranteed_rank(n, middle, delta):
            high = middle
        else:
            low = middle
    return high


@dataclass(frozen=True, slots=True)
class Drawn:
    """A case to label and how many questions of the lab its question stands for."""

    case: LabCase
    weight: float


def draw(
    cases: Sequence[LabCase], count: int, seed: int, fact: str | None = None, *, whole: bool = False
) -> list[Drawn]:
    """Return what people should label.

    Args:
        cases: The lab.
        count: Questions to draw.
        seed: Which draw.
        fact: Draw as many questions of each of its values; None draws them evenly.
        whole: Take every answer to a drawn question. It costs a person little, who has read the
            passages by then, and gives more bad answers; the bound still counts questions.
    """
    drawn = stratified(cases, count, seed, fact) if fact else simple_random(cases, count, seed)
    if not whole:
        return drawn
    weights = {item.case.group: item.weight for item in drawn}
    return [Drawn(case, weights[case.group]) for case in cases if case.group in weights]


def simple_random(cases: Sequence[LabCase], count: int, seed: int) -> list[Drawn]:
    """Return `count` groups' cases, one a group, every group with the same chance.

    One case a question: a second answer to it would cost a label and prove almost nothing.
    """
    groups = _by_group(cases, seed)
    order = sorted(groups, key=lambda name: chance(seed, "sample", name))
    _refuse_more(count, len(order), "questions")
    weight = len(order) / count
    return [Drawn(groups[name], weight) for name in order[:count]]


def stratified(cases: Sequence[LabCase], count: int, seed: int, fact: str) -> list[Drawn]:
    """Return as many cases of every value of a fact, with the weights that undo it.

    Strata that have fewer groups than their share give all they have. Fit with the weights: an
    uneven sample without them voids the bound.
    """
    groups = _by_group(cases, seed)
    strata: dict[str, list[LabCase]] = {}
    for name in sorted(groups, key=lambda name: chance(seed, "sample", name)):
        strata.setdefault(groups[name].facts.get(fact, "(none)"), []).append(groups[name])
    if set(strata) == {"(none)"}:
        known = sorted({name for case in cases for name in case.facts})
        raise ConfigurationError("--by", f"no case with the fact {fact!r}", ", ".join(known))
    _refuse_more(count, len(groups), "questions")
    shares = _shares({name: len(members) for name, members in strata.items()}, count)
    return [
        Drawn(case, len(members) / shares[name])
        for name, members in sorted(strata.items())
        for case in members[: shares[name]]
    ]


def _by_group(cases: Sequence[LabCase], seed: int) -> dict[str, LabCase]:
    """Return one case per group, drawn evenly."""
    drawn: dict[str, LabCase] = {}
    for case in sorted(cases, key=lambda case: chance(seed, "unit", case.key)):
        drawn.setdefault(case.group, case)
    return drawn


def _shares(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Return how many each stratum gives: even shares, what small ones lack spread over others."""
    shares = dict.fromkeys(sizes, 0)
    for _ in range(count):
        open_ = [name for name, size in sizes.items() if shares[name] < size]
        least = min(open_, key=lambda name: (shares[name], name))
        shares[least] += 1
    return shares


def _refuse_more(count: int, there: int, what: str) -> None:
    if count > there:
        raise ConfigurationError("--n", f"{count}", f"at most {there}: the lab has {there} {what}")


def task_text(drawn: Sequence[Drawn], suffix: str) -> str:
    """Return the cases to label: `.json` for Label Studio, `.csv` for a spreadsheet, else JSONL.

    Scores are left out: a label given in sight of a score is not independent of it. In CSV and
    JSON lines the label's own fields are there, empty, so that the file comes back as labels.
    """
    if suffix == ".json":
        return json.dumps(tasks(d.case for d in drawn), indent=1, ensure_ascii=False) + "\n"
    if suffix == ".csv":
        return _csv(drawn)
    return "".join(json.dumps(_record(d), ensure_ascii=False) + "\n" for d in drawn)


def read_tasks(path: Path) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Return case, question, answer and passages of each task that `task_text` wrote.

    Raises:
        ConfigurationError: If the file is not one of them, is empty, or has a case twice.
    """
    expected = "the file that calibrate sample wrote"
    try:
        found = [_task(record) for record in _task_records(path)]
    except (KeyError, TypeError, ValueError, AttributeError, csv.Error, OSError) as error:
        raise ConfigurationError(str(path), type(error).__name__, expected) from error
    if not found:
        raise ConfigurationError(str(path), "no case", expected)
    twice = next((case for case, n in Counter(task[0] for task in found).items() if n > 1), None)
    if twice is not None:
        raise ConfigurationError(str(path), f"the case {twice!r} twice", "each case once")
    return found


def _task_records(path: Path) -> Sequence[Mapping[str, Any]]:
    if path.suffix == ".csv":
        text = io.StringIO(path.read_text("utf-8-sig"))
        rows = list(csv.DictReader(text, strict=True))
        return [{key: as_typed(value) for key, value in row.items()} for row in rows]
    if path.suffix == ".json":
        return [task["data"] for task in json.loads(path.read_text("utf-8-sig"))]
    return read_records(path)


def _task(record: Mapping[str, Any]) -> tuple[str, str, str, tuple[str, ...]]:
    contexts = record.get("contexts") or ()
    if isinstance(contexts, str):
        contexts = contexts.split("\n\n")
    texts = [record["case"], record.get("question") or "", record.get("answer") or "", *contexts]
    if not all(isinstance(text, str) for text in texts) or not texts[0]:
        raise TypeError
    return texts[0], texts[1], texts[2], tuple(texts[3:])


def sample_text(drawn: Sequence[Drawn]) -> str:
    """Return the drawn cases with their weights, as JSON lines."""
    return "".join(json.dumps({"case": d.case.key, "weight": d.weight}) + "\n" for d in drawn)


def _record(drawn: Drawn) -> dict[str, object]:
    case = drawn.case
    return {
        **dict.fromkeys(FIELDS),
        "case": case.key,
        "question": case.question,
        "answer": case.answer,
        "contexts": list(case.contexts),
    }


def _csv(drawn: Sequence[Drawn]) -> str:
    text = io.StringIO()
    names = (*FIELDS, "question", "answer", "contexts")
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for item in drawn:
        record = _record(item)
        record["contexts"] = "\n\n".join(item.case.contexts)
        writer.writerow({key: inert(value) for key, value in record.items()})
    return text.getvalue()
