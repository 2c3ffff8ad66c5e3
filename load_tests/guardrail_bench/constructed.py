"""Grades evaluators on answers that are right or wrong by construction.

The answers are those of the systems of `examples/grammar`, faulty ones among them, to questions
that come from its database: whoever reads a number here can make every answer again.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from guardrail_offline.datasets.cases import Case, Lab
from guardrail_offline.datasets.labs import lab_source
from guardrail_offline.evaluators.catalogue import CATALOGUE, EvaluatorSpec
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.description import declines
from guardrail_offline.grammar.engine import open_engine
from guardrail_offline.grammar.enumeration import EnumerationOptions
from guardrail_offline.grammar.fill import FillOptions, FillStatistics, cases_of, fill
from guardrail_offline.grammar.schema import labelled, read_schema
from guardrail_offline.grammar.study import TRUTH, study
from guardrail_offline.grammar.templates import TemplateOptions, make_templates
from guardrail_offline.runs.execution import RunOptions, evaluate_lab
from guardrail_offline.runs.result_files import read_run
from guardrail_service.types import Passage

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "grammar"
SYSTEMS = ("ask", "ask_with_a_guessing_reader", "ask_with_wrong_chunks")
COMMAND = "guardrail bench grades --only-constructed"
_ABOUT_ANSWERS = frozenset({"accuracy"})


def graded(spec: EvaluatorSpec) -> bool:
    """Return whether an evaluator says something about whether an answer is right."""
    return (
        spec.id != TRUTH
        and spec.problem in _ABOUT_ANSWERS
        and "answer" in spec.inputs
        and bool(spec.surrogate or spec.roles or spec.needs_support)
        and declines(spec) is None
    )


def measure(
    pack: str, cases: int = 180, seed: int = 0, advance: Callable[[int], None] = lambda _: None
) -> dict[str, Any]:
    """Return precision, recall and area of every evaluator of answers, by evaluator and metric.

    Args:
        pack: Model pack.
        cases: Questions; each system answers all of them.
        seed: Of the company and of the sample.
        advance: Told of cases that are judged.
    """
    with TemporaryDirectory() as name, _example(Path(name)) as modules:
        folder = Path(name)
        modules["make_company"].write(folder, seed)
        asked = [
            _answered(case, system, getattr(modules["company_rag"], system))
            for system in SYSTEMS
            for case in _questions(folder, cases, seed)
        ]
        configured = configure([TRUTH, *(s.id for s in CATALOGUE.specs() if graded(s))])
        options = RunOptions(folder / "run", pack, advance=advance)
        evaluate_lab(lab_source(Lab(tuple(asked))), configured, options)
        found = study(read_run(folder / "run"))
    evaluators: dict[str, dict[str, Any]] = {}
    for one in found["predictors"]:
        evaluator, _, metric = one.pop("metric").partition(".")
        if metric and one.pop("primary"):
            evaluators.setdefault(evaluator, {})[metric] = _rounded(one)
    return {
        "measured": datetime.now(tz=UTC).date().isoformat(),
        "command": COMMAND,
        "systems": list(SYSTEMS),
        "seed": seed,
        **{key: found[key] for key in ("answers", "right", "groups")},
        "evaluators": evaluators,
    }


@contextmanager
def _example(folder: Path) -> Any:
    """Import the example's modules, which read where the company is from the environment."""
    os.environ["COMPANY"] = str(folder)
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield {name: importlib.import_module(name) for name in ("make_company", "company_rag")}
    finally:
        sys.path.remove(str(EXAMPLE))
        del os.environ["COMPANY"]


def _questions(folder: Path, cases: int, seed: int) -> list[Case]:
    with closing(open_engine(folder / "company.db")) as engine:
        schema = labelled(read_schema(engine), folder / "labels.json")
        templates = make_templates(engine, schema, TemplateOptions(EnumerationOptions(joins=0)))
        options = FillOptions(cases, seed=seed)
        filled = fill(engine, templates.templates, options, FillStatistics())
        return [case for one in filled for case in cases_of(one)]


def _answered(case: Case, system: str, ask: Callable[[str], Mapping[str, Any]]) -> Case:
    said = ask(case.question)
    passages = tuple(Passage(one["text"], one["id"]) for one in said["contexts"])
    key = f"{system}-{case.key}"
    return replace(case, key=key, model=system, answer=said["answer"], contexts=passages)


def _rounded(one: Mapping[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(one), parse_float=lambda text: round(float(text), 3)))
