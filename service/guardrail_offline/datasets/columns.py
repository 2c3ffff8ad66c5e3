"""Turns a record of any known suite into a case: maps its columns and checks their values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from guardrail_offline.datasets.cases import Case, Relationship, group_of, row_key
from guardrail_offline.datasets.literals import is_json, parsed
from guardrail_service.detectors.text_matching.condition import from_constraints, parse_condition
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Passage

NAMES: Mapping[str, tuple[str, ...]] = {
    "key": ("key", "id", "query_id", "example_id"),
    "question": ("input", "question", "user_input", "query", "prompt"),
    "answer": ("actual_output", "answer", "response", "generated_answer", "actual_answer"),
    "expected": (
        "expected_output", "expected_answer", "ground_truth", "ground_truths", "reference",
        "references", "gold_answer", "golden_answer", "gt_answer", "reference_answer",
        "referenceResponse",
    ),
    "references": ("references",),
    "contexts": (
        "retrieval_context", "context", "contexts", "retrieved_contexts", "retrieved_context",
        "retrieved_passages", "passages",
    ),
    "context_ids": ("retrieved_context_ids", "context_ids"),
    "reference_contexts": ("reference_contexts",),
    "reference_ids": ("reference_context_ids", "relevant_ids", "reference_ids"),
    "condition": ("output_condition", "condition"),
    "constraints": ("output_constraints", "constraints"),
    "schema": ("output_schema", "json_schema"),
    "categories": ("categories", "category"),
    "relationships": ("relationships",),
    "corpus": ("corpus", "documents"),
    "artifacts": ("actual_output_artifacts", "artifacts"),
    "duration_s": (
        "actual_duration", "duration_s", "duration", "completion_time", "execution_time",
    ),
    "cost": ("cost", "token_cost"),
    "model": ("model_key", "model", "llm_model_name"),
    "test_key": ("test_key",),
    "test_case_key": ("test_case_key",),
    "group": ("group", "group_key"),
    "relevance": ("relevance", "relevant", "relevance_labels"),
    "answerable": ("answerable", "is_answerable"),
    "images": ("images", "image", "image_urls"),
}  # fmt: skip
"""Names of a case's fields in H2O Eval Studio, Ragas, Open RAG Eval, DeepEval, RAGChecker,
LlamaIndex and LangSmith; `suites.py` takes apart what is nested. The first that is there counts."""


_PLURAL = ("ground_truths", "references")
_TEXTS = ("text", "page_content", "content")


_TRUTHS = {
    "true": True, "1": True, "1.0": True, "yes": True,
    "false": False, "0": False, "0.0": False, "no": False,
}  # fmt: skip


def _own_grade(item: Any) -> Any:
    """Return the grade that an object for a passage has itself."""
    if not isinstance(item, Mapping):
        return None
    return next((item[n] for n in NAMES["relevance"][:2] if item.get(n) is not None), None)


class RowPlace(NamedTuple):
    """The place of a record, for messages."""

    file: str
    row: int

    def refuse(self, column: str, found: object, expected: str) -> ConfigurationError:
        """Return an error that names the file, the row and the column, and no text of the row."""
        return ConfigurationError(
            f"{self.file}: row {self.row}: {column}", type(found).__name__, expected
        )


def case_of(record: Mapping[str, Any], place: RowPlace) -> Case:
    """Return the case of one record. Columns of no known name are left out.

    A cell of a table may hold JSON, or what Python's `str` writes, where a list or an object is
    expected. A case without a key is called after its row, and one without a question or a group
    is a group of its own.

    Raises:
        ConfigurationError: If a column holds another type than its name promises, or there is
            neither a question nor an answer; the message names file, row and column.
    """
    cells = _Cells(record, place)
    question, answer = cells.text("question"), cells.text("answer")
    if question is None and answer is None:
        raise ConfigurationError(
            f"{place.file}: row {place.row}",
            f"columns {', '.join(map(repr, list(record)[:12])) or 'none'}",
            "a question (input, question, user_input, query) or an answer",
        )
    key = cells.text("key") or row_key(place.row)
    expected = cells.answers()
    return Case(
        key=key,
        question=question or "",
        answer=answer,
        expected=expected[0] if expected else None,
        references=cells.further(expected),
        contexts=cells.passages(),
        reference_contexts=cells.texts("reference_contexts"),
        reference_ids=cells.ids("reference_ids"),
        condition=cells.condition(),
        schema=cells.object("schema"),
        categories=cells.texts("categories"),
        relationships=cells.relationships(),
        corpus=cells.texts("corpus"),
        artifacts=cells.text("artifacts"),
        duration_s=cells.number("duration_s"),
        cost=cells.number("cost"),
        model=cells.text("model") or "",
        test_key=cells.text("test_key"),
        test_case_key=cells.text("test_case_key"),
        group=cells.text("group") or group_of(question, key),
        relevance=cells.grades(),
        answerable=cells.truth("answerable"),
        images=cells.texts("images"),
    )


class _Cells:
    """One record's values by our names."""

    def __init__(self, record: Mapping[str, Any], place: RowPlace) -> None:
        self._record = record
        self._place = place

    def _find(self, field: str) -> tuple[str, Any]:
        for name in NAMES[field]:
            value = self._record.get(name)
            if value is not None and not (isinstance(value, float) and math.isnan(value)):
                return name, value
        return NAMES[field][0], None

    def text(self, field: str) -> str | None:
        """Return a text; a list of one text counts as its text."""
        name, value = self._find(field)
        if isinstance(value, list | tuple) and len(value) == 1:
            (value,) = value
        if value is None or value == []:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str):
            raise self._place.refuse(name, value, "text")
        return value

    def answers(self) -> tuple[str, ...]:
        """Return every right answer; a text is one, and names in the plural hold a list."""
        name, value = self._find("expected")
        if name in _PLURAL and isinstance(value, str):
            value = self._list_or_object(name, value)
        if isinstance(value, Sequence) and not isinstance(value, str):
            if not all(isinstance(v, str | int | float) and v is not True for v in value):
                raise self._place.refuse(name, value, "text, or a list of texts")
            return tuple(dict.fromkeys(map(str, value)))
        text = self.text("expected") if not isinstance(value, str) else value
        return () if text is None else (text,)

    def further(self, answers: tuple[str, ...]) -> tuple[str, ...]:
        """Return right answers beside the first: of a list, or as a lab of ours writes them."""
        name, _ = self._find("expected")
        own = () if name == "references" else self.texts("references")
        return tuple(dict.fromkeys((*answers[1:], *own)))

    def ids(self, field: str) -> tuple[str, ...]:
        """Return a list of ids, which may be written as numbers."""
        name, value = self._parsed(field)
        items = [] if value in (None, "") else value if isinstance(value, list) else [value]
        if not all(isinstance(item, str | int) for item in items):
            raise self._place.refuse(name, value, "a list of ids")
        return tuple(map(str, items))

    def number(self, field: str) -> float | None:
        """Return a finite number that is not negative."""
        name, value = self._find(field)
        if value is None or value == "":
            return None
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._place.refuse(name, value, "a number") from error
        if isinstance(value, bool) or not math.isfinite(number) or number < 0:
            raise self._place.refuse(name, value, "a number of at least 0")
        return number

    def grades(self) -> tuple[float | None, ...]:
        """Return the relevance of each passage: its own, or from a column of the same length."""
        name, value = self._parsed("relevance")
        passages = self._parsed("contexts")[1]
        if value is None or value == "":
            own = passages if isinstance(passages, list | tuple) else ()
            value = [_own_grade(item) for item in own]
            if not any(grade is not None for grade in value):
                return ()
        count = len(passages) if isinstance(passages, Sequence | Mapping) else 0
        count = 1 if isinstance(passages, str) else count
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != count:
            raise self._place.refuse(name, value, f"{count} grades, one per passage")
        return tuple(self._grade(name, item) for item in value)

    def _grade(self, name: str, item: Any) -> float | None:
        if item is None or (isinstance(item, float) and math.isnan(item)):
            return None
        if not isinstance(item, int | float) or not math.isfinite(item):
            raise self._place.refuse(name, item, "numbers, true, false or null")
        return float(item)

    def truth(self, field: str) -> bool | None:
        """Return a truth value: true or false, 1 or 0, yes or no, in any case."""
        name, value = self._find(field)
        if value is None or value == "":
            return None
        found = _TRUTHS.get(str(value).strip().casefold())
        if found is None:
            raise self._place.refuse(name, value, "true or false")
        return found

    def _parsed(self, field: str) -> tuple[str, Any]:
        name, value = self._find(field)
        if isinstance(value, str):
            return name, self._list_or_object(name, value)
        return name, value.tolist() if hasattr(value, "tolist") else value

    def _list_or_object(self, name: str, text: str) -> Any:
        """Return what a cell holds if it looks like a list or an object, else its text."""
        if text.strip()[:1] not in ("[", "{"):
            return text
        try:
            return parsed(text)
        except ValueError as error:
            expected = (
                "a list or an object, in JSON or as Python writes it; "
                "a lone text that begins so, as a list of one"
            )
            raise self._place.refuse(name, text, expected) from error

    def texts(self, field: str) -> tuple[str, ...]:
        """Return a list of texts; a lone text is a list of one."""
        name, value = self._parsed(field)
        if value is None or value == "":
            return ()
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, Sequence) or not all(isinstance(item, str) for item in items):
            raise self._place.refuse(name, value, "a list of texts")
        return tuple(items)

    def object(self, field: str) -> Mapping[str, Any] | None:
        """Return a JSON object."""
        name, value = self._parsed(field)
        if value is None or value == "":
            return None
        if not isinstance(value, Mapping):
            raise self._place.refuse(name, value, "a JSON object")
        if not is_json(value):
            raise self._place.refuse(name, value, "a JSON object without NaN and Infinity")
        return value

    def passages(self) -> tuple[Passage, ...] | None:
        """Return the passages, or None where the record says nothing about them."""
        name, value = self._parsed("contexts")
        ids = self.ids("context_ids")
        if value is None or value == "":
            return tuple(Passage("", id) for id in ids) if ids else None
        if isinstance(value, Mapping):  # Open RAG Eval: passages by id
            value = [{"id": str(key), "text": text} for key, text in value.items()]
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, Sequence):
            raise self._place.refuse(name, value, "a list of passages")
        found = tuple(self._passage(name, item) for item in items)
        if not ids:
            return found
        if len(ids) != len(found):
            expected = f"{len(found)} ids, one per passage"
            raise self._place.refuse(NAMES["context_ids"][0], list(ids), expected)
        return tuple(Passage(p.text, id) for p, id in zip(found, ids, strict=True))

    def _passage(self, name: str, item: Any) -> Passage:
        if isinstance(item, str):
            return Passage(item)
        if isinstance(item, Mapping):
            text = next((item[n] for n in _TEXTS if isinstance(item.get(n), str)), None)
            key = next((item[n] for n in ("id", "doc_id") if item.get(n) is not None), None)
            if text is not None:
                return Passage(text, None if key is None else str(key))
        raise self._place.refuse(name, item, "texts, or objects with text and id")

    def relationships(self) -> tuple[Relationship, ...]:
        """Return links to other cases."""
        name, value = self._parsed("relationships")
        if value is None or value == "":
            return ()
        try:
            return tuple(
                Relationship(str(v["type"]), str(v["target"]), str(v.get("target_type") or ""))
                for v in value
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise self._place.refuse(name, value, "a list of {type, target}") from error

    def condition(self) -> str | None:
        """Return the condition; an older lab's constraints are turned into one.

        An empty condition beside constraints, as H2O writes it, leaves the constraints to decide.
        """
        condition = self.text("condition")
        name, constraints = self._parsed("constraints")
        if not condition and constraints:
            condition = self._from_constraints(name, constraints)
        if condition is None or not condition.strip():
            return None
        try:
            parse_condition(condition)
        except ValueError as error:
            where = f"{self._place.file}: row {self._place.row}: {NAMES['condition'][0]}"
            raise ConfigurationError(where, "no condition", str(error)) from error
        return condition

    def _from_constraints(self, name: str, constraints: Any) -> str:
        try:
            _check_constraints(constraints)
            return from_constraints(constraints)
        except (TypeError, ValueError) as error:
            raise self._place.refuse(name, constraints, "texts, or lists of texts") from error


def _check_constraints(constraints: Iterable[Any]) -> None:
    for item in [constraints] if isinstance(constraints, str) else constraints:
        if not isinstance(item, str) and not all(isinstance(part, str) for part in item):
            raise TypeError
