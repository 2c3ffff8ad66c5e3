"""Test labs: cases with answers that were computed elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from guardrail_offline.datasets.cases import (
    Case,
    Lab,
    Model,
    case_from_json,
    case_json,
    group_of,
    model_from_json,
    model_json,
)
from guardrail_offline.datasets.columns import RowPlace, case_of
from guardrail_offline.datasets.h2o_labs import lab_json
from guardrail_offline.datasets.labs import lab_of_text
from guardrail_offline.h2o_client.client_evaluations import Evaluation, EvaluatorsGiven, begin
from guardrail_offline.h2o_client.client_folder import KeptObject, KeptObjects
from guardrail_service.types import Passage


class ModelType(Enum):
    """The kinds of systems under test, in H2O's words."""

    h2ogpte = "h2ogpte"
    h2ogpte_llm = "h2ogpte_llm"
    h2ogpt = "h2ogpt"
    h2ollmops = "h2ollmops"
    openai_rag = "openai_rag"
    openai_llm = "openai_llm"
    azure_openai_llm = "azure_openai_llm"
    amazon_bedrock = "amazon_bedrock"


@dataclass(frozen=True)
class LabModel:
    """A system under test and what it answered."""

    lab: TestLab
    model: Model

    @property
    def key(self) -> str:
        """Return its key in the lab."""
        return self.model.key

    @property
    def name(self) -> str:
        """Return what it is called."""
        return self.model.name

    def add_input(
        self,
        prompt: str,
        actual_output: str,
        corpus: Sequence[str] | None = None,
        context: Sequence[str] | None = None,
        categories: str | Sequence[str] = (),
        expected_output: str | None = None,
        output_constraints: Sequence[str | Sequence[str]] | None = None,
        actual_duration: float | None = None,
        cost: float | None = None,
        output_condition: str | None = None,
        condition: str | None = None,
    ) -> Case:
        """Add one answered case and return it.

        Args:
            prompt: The question.
            actual_output: The model's answer.
            corpus: Names of the documents that were searched.
            context: Retrieved passages, best first; None where they are unknown.
            categories: Free words about the case.
            expected_output: The reference answer.
            output_constraints: Texts that have to be in the answer; of an inner list one has to be.
            actual_duration: Seconds the answer took.
            cost: What the answer cost.
            output_condition: In the language of text matching, in place of constraints.
            condition: The same, under our name.

        Raises:
            ConfigurationError: If the condition is none.
        """
        words = [categories] if isinstance(categories, str) and categories else [*categories]
        wanted = condition if condition is not None else output_condition
        if output_constraints:
            given = {"key": "new", "prompt": prompt, "constraints": list(output_constraints)}
            wanted = case_of(given, RowPlace("add_input", 1)).condition
        return self.lab.add(
            Case(
                key="",
                question=prompt,
                answer=actual_output,
                expected=expected_output,
                contexts=None if context is None else tuple(map(Passage, context)),
                condition=wanted,
                categories=tuple(words),
                corpus=tuple(corpus or ()),
                duration_s=actual_duration,
                cost=cost,
                model=self.model.key,
            )
        )

    def delete(self) -> None:
        """Take the model out of its lab, with its answers."""
        self.lab.remove_model(self.model.key)


@dataclass(frozen=True)
class TestLab(KeptObject):
    """Cases with answers that were computed elsewhere. Made by `Client().test_labs`."""

    __test__ = False  # the name is H2O's; it is no test of pytest's

    @property
    def models(self) -> list[LabModel]:
        """Return the systems under test."""
        return [LabModel(self, model_from_json(one)) for one in self._record["models"]]

    @property
    def cases(self) -> tuple[Case, ...]:
        """Return the cases of all models, in the order they were added."""
        kept = {model["key"] for model in self._record["models"]}
        found = (
            _keyed(case_from_json(line), number)
            for number, line in enumerate(self._folder.lines(self.key), start=1)
        )
        return tuple(case for case in found if case.model in kept)

    def add_model(
        self,
        name: str,
        model_type: ModelType | str = "rag",
        llm_model_name: str = "",
        collection_id: str = "",
        collection_name: str = "",
        documents: Sequence[str] | None = None,
    ) -> LabModel:
        """Add a system under test and return it."""
        kind = model_type.value if isinstance(model_type, ModelType) else model_type
        said = {"collection_id": collection_id, "collection_name": collection_name}
        details: dict[str, Any] = {name: value for name, value in said.items() if value}
        if documents:
            details["documents"] = list(documents)
        with self._folder.change(self.key) as record:
            known = {one["key"] for one in record["models"]}
            record["made"] += 1
            while (key := f"model-{record['made']}") in known:
                record["made"] += 1
            model = Model(key, name, llm_model_name, kind, details)
            record["models"].append(model_json(model))
        return LabModel(self, model)

    def add(self, case: Case) -> Case:
        """Add an answered case of one of the models and return it under its key."""
        return _keyed(case, self._folder.append(self.key, case_json(case)))

    def remove_model(self, key: str) -> None:
        """Take a model out with its answers; KeyError if there is none with this key."""
        with self._folder.change(self.key) as record:
            left = [one for one in record["models"] if one["key"] != key]
            if len(left) == len(record["models"]):
                raise KeyError(key)
            record["models"] = left

    def as_lab(self) -> Lab:
        """Return the lab's cases and models as values."""
        models = tuple(one.model for one in self.models)
        return Lab(self.cases, models, self.name, self.description)

    def evaluate(
        self,
        evaluators: EvaluatorsGiven,
        name: str | None = None,
        description: str | None = None,
        **parameters: Any,
    ) -> Evaluation:
        """Start evaluators over the cases and return what becomes their leaderboard.

        Args:
            evaluators: One or several.
            name: Of the evaluation; the lab's if none is given.
            description: Of the evaluation.
            parameters: Of the evaluators.

        Raises:
            ConfigurationError: If there is no such evaluator, or it has no such parameter.
        """
        lab, said = self.as_lab(), description or ""
        called = name or self.name
        return begin(self._folder, self.pack, called, lab, evaluators, parameters, description=said)

    def json(self) -> str:
        """Return the lab as H2O's JSON, which `import_test_lab` and `guardrail evaluate` read."""
        return json.dumps(lab_json(self.as_lab()), indent=1) + "\n"

    def delete(self) -> None:
        """Take the lab away with its cases."""
        self._folder.delete(self.key)


def _keyed(case: Case, number: int) -> Case:
    """Return the case of a line under its key: an imported one has its own."""
    key = case.key or f"{case.model}-{number}"
    return replace(case, key=key, group=case.group or group_of(case.question, key))


@dataclass(frozen=True)
class _TestLabs(KeptObjects[TestLab]):
    """The test labs of a client."""

    _kind = "lab"

    def create(self, name: str, description: str = "") -> TestLab:
        """Return an empty lab."""
        record = {"name": name, "description": description or "", "models": [], "made": 0}
        return TestLab(self._folder.add("lab", record)["key"], self._pack, self._folder)

    def _opened(self, record: Mapping[str, Any]) -> TestLab:
        return TestLab(record["key"], self._pack, self._folder)

    def import_test_lab(self, test_lab: str) -> TestLab:
        """Return a new lab with the models and cases of one in H2O's JSON.

        Raises:
            ConfigurationError: If it is none; messages name the place.
        """
        found = lab_of_text("test lab", test_lab)
        made = self.create(found.name, found.description)
        with self._folder.change(made.key) as record:
            record["models"] = [model_json(model) for model in found.models]
            record["made"] = len(found.models)
        for case in found.cases:
            made.add(case)
        return made
