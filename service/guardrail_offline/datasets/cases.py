"""A test case, its model and the lab that holds them: what every evaluator reads.

The JSON names are those of H2O Eval Studio's test labs; `formats/` reads everything else into
these values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from guardrail_service.types import Passage, Sample

PERTURBATION_SOURCE = "perturbation_source"
"""The type of relationship that links a perturbed case to the one it was made from."""
PERTURBED_BY = "perturbed_by:"
"""A category that starts so says what a variant was perturbed by; a chain is joined by +."""
PERTURBATION_INTENSITY = "perturbation_intensity:"
"""A category that starts so says how much of a variant was perturbed."""
SHOULD_FLIP = "perturbation_expects:flip"
"""The category of a variant whose question has another answer than the expected one."""
GENERATED = "grammar"
"""The category of a case that was made from a database. `grammar:set` says that its answer is a
set, `grammar:unknown` that the database does not know it."""
CONVERSATION = "conversation"
"""The type of relationship that links a turn to its conversation."""
_ROW = "row-"


@dataclass(frozen=True, slots=True)
class Relationship:
    """A link to another case; `target` is its key."""

    type: str
    target: str
    target_type: str = "test_case"


@dataclass(frozen=True, slots=True)
class Case:
    """One answer of one model to one question, with what it may be judged against.

    Attributes:
        key: Unique in its lab.
        question: What was asked; the source text for a summary.
        answer: What the model said; None where no model has answered yet.
        expected: The reference answer or label.
        contexts: Retrieved passages, best first. None where the retriever's result is unknown,
            which is not the same as a retriever that found nothing.
        condition: In the language of text matching; empty holds always, None asks nothing.
        schema: JSON Schema of this case's answer, before the evaluator's own parameter.
        categories: Free words about the case; `perturbed` marks a variant.
        relationships: Links to other cases.
        corpus: Names of the documents that were searched.
        artifacts: Folder with the files an agent left, relative to the lab's file.
        duration_s: Seconds the answer took.
        cost: What the answer cost, in whatever unit the lab uses.
        model: Key of the model that answered; empty where the lab names none.
        test_key: Key of the test the case came from.
        test_case_key: Key of the case before it was asked of a model.
        group: What is one question: reruns, models and variants of a case share it.
        references: Further right answers, beside `expected`.
        reference_contexts: Passages that should have been retrieved.
        reference_ids: Ids of passages that should have been retrieved.
        relevance: A grade per retrieved passage: above 0 relevant, None where nobody judged it.
        images: That belong to the question or to the passages: files under the lab's folder, data
            URIs or addresses.
        answerable: Whether the question has an answer; None where the lab does not say.
    """

    key: str
    question: str
    answer: str | None = None
    expected: str | None = None
    contexts: tuple[Passage, ...] | None = None
    condition: str | None = None
    schema: Mapping[str, Any] | None = None
    categories: tuple[str, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    corpus: tuple[str, ...] = ()
    artifacts: str | None = None
    duration_s: float | None = None
    cost: float | None = None
    model: str = ""
    test_key: str | None = None
    test_case_key: str | None = None
    group: str = ""
    references: tuple[str, ...] = ()
    reference_contexts: tuple[str, ...] = ()
    reference_ids: tuple[str, ...] = ()
    relevance: tuple[float | None, ...] = ()
    answerable: bool | None = None
    images: tuple[str, ...] = ()

    @property
    def conversation(self) -> str | None:
        """Return the key of the conversation this case is a turn of, if it is one."""
        links = (link.target for link in self.relationships if link.type == CONVERSATION)
        return next(links, None)

    @property
    def source(self) -> str | None:
        """Return the key of the case this one is a perturbed variant of, if it is one."""
        links = (link.target for link in self.relationships if link.type == PERTURBATION_SOURCE)
        return next(links, None)

    @property
    def has_other_answer(self) -> bool:
        """Return whether it was perturbed so that its expected answer is no longer right."""
        return SHOULD_FLIP in self.categories

    def sample(self) -> Sample:
        """Return the case as detectors read it; an answer that is missing is empty."""
        return Sample(self.answer or "", self.question, self.contexts or (), self.key)


@dataclass(frozen=True, slots=True)
class Model:
    """One system under test. `details` keeps what else the lab says about it."""

    key: str
    name: str = ""
    llm: str = ""
    type: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Return what to call it in tables."""
        return self.name or self.llm or self.key or "(no model)"


@dataclass(frozen=True, slots=True)
class Lab:
    """Cases in memory, with the models that answered them."""

    cases: tuple[Case, ...]
    models: tuple[Model, ...] = ()
    name: str = ""
    description: str = ""


def question_group(question: str) -> str:
    """Return the group of a question: the same words are the same group."""
    words = " ".join(question.split())
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def group_of(question: str | None, key: str) -> str:
    """Return the group of a case that names none: without a question it is one of its own."""
    return question_group(question) if question and question.strip() else key


def row_key(number: int) -> str:
    """Return the key of a case that names none; rows count from 1."""
    return f"{_ROW}{number}"


def is_nameless(key: str, group: str) -> bool:
    """Return whether a case has neither a key nor a question: only its row tells it apart."""
    return key == group and key.startswith(_ROW) and key.removeprefix(_ROW).isdecimal()


def case_json(case: Case) -> dict[str, Any]:
    """Return a case under the names of H2O's test labs; ours are schema, artifacts and group.

    The keys of `OPTIONAL` are there only where they say something.
    """
    contexts = case.contexts
    optional: dict[str, Any] = {
        name: list(getattr(case, name)) for name in OPTIONAL if getattr(case, name)
    }
    if case.answerable is not None:
        optional["answerable"] = case.answerable
    return {
        "key": case.key,
        "input": case.question,
        "corpus": list(case.corpus),
        "context": None if contexts is None else [_passage_json(p) for p in contexts],
        "categories": list(case.categories),
        "relationships": [
            {"type": link.type, "target": link.target, "target_type": link.target_type}
            for link in case.relationships
        ],
        "expected_output": case.expected,
        "output_condition": case.condition,
        "output_schema": None if case.schema is None else dict(case.schema),
        "actual_output": case.answer,
        "actual_output_artifacts": case.artifacts,
        "actual_duration": case.duration_s,
        "cost": case.cost,
        "model_key": case.model,
        "test_key": case.test_key,
        "test_case_key": case.test_case_key,
        "group": case.group,
        **optional,
    }


OPTIONAL = ("references", "reference_contexts", "reference_ids", "relevance", "images")


def case_from_json(record: Mapping[str, Any]) -> Case:
    """Return the case that `case_json` wrote. For what people write, see `formats/`."""
    contexts = record["context"]
    return Case(
        key=record["key"],
        question=record["input"],
        answer=record["actual_output"],
        expected=record["expected_output"],
        contexts=None if contexts is None else tuple(map(_passage, contexts)),
        condition=record["output_condition"],
        schema=record["output_schema"],
        categories=tuple(record["categories"]),
        relationships=tuple(Relationship(**link) for link in record["relationships"]),
        corpus=tuple(record["corpus"]),
        artifacts=record["actual_output_artifacts"],
        duration_s=record["actual_duration"],
        cost=record["cost"],
        model=record["model_key"],
        test_key=record["test_key"],
        test_case_key=record["test_case_key"],
        group=record["group"],
        references=tuple(record.get("references", ())),
        reference_contexts=tuple(record.get("reference_contexts", ())),
        reference_ids=tuple(record.get("reference_ids", ())),
        relevance=tuple(record.get("relevance", ())),
        answerable=record.get("answerable"),
        images=tuple(record.get("images", ())),
    )


def model_json(model: Model) -> dict[str, Any]:
    """Return a model under the names of H2O's test labs."""
    return {
        **model.details,
        "key": model.key,
        "name": model.name,
        "llm_model_name": model.llm,
        "model_type": model.type,
    }


def model_from_json(record: Mapping[str, Any]) -> Model:
    """Return the model a record describes; what has no field of its own stays in `details`."""
    known = {"key", "name", "llm_model_name", "model_type"}
    return Model(
        key=str(record.get("key") or ""),
        name=str(record.get("name") or ""),
        llm=str(record.get("llm_model_name") or ""),
        type=str(record.get("model_type") or ""),
        details={name: value for name, value in record.items() if name not in known},
    )


def models_of(cases: Iterable[Case], known: Iterable[Model] = ()) -> tuple[Model, ...]:
    """Return the known models, then one for every other key the cases name, in order."""
    models = {model.key: model for model in known}
    for case in cases:
        models.setdefault(case.model, Model(case.model, name=case.model))
    return tuple(models.values())


def _passage_json(passage: Passage) -> str | dict[str, str]:
    return passage.text if passage.id is None else {"id": passage.id, "text": passage.text}


def _passage(value: str | Mapping[str, str]) -> Passage:
    return Passage(value) if isinstance(value, str) else Passage(value["text"], value["id"])
