"""Checks that the answer is JSON and satisfies a schema."""

from collections.abc import Sequence
from typing import Any

from pydantic import ConfigDict, Field, field_validator

from guardrail_service.detectors.json_schema.schema_check import CheckedSchema, check_schema
from guardrail_service.detectors.json_schema.strict_json import StrictJsonError, parse_json
from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    Parameters,
    boolean_metrics,
    detector,
)
from guardrail_service.detectors.shared.remedies import KEEP_THE_FORM
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Coverage, Outcome, RowOutput, Span


class JsonSchemaParameters(Parameters):
    """The schema an answer has to satisfy.

    Attributes:
        schema_: `schema` on the wire: JSON Schema, Draft 2020-12; `{}` asks for JSON only, None
            for nothing. `format` is an annotation, as the draft has it. See `schema_check.py` for
            what is refused.
    """

    model_config = ConfigDict(hide_input_in_errors=True, serialize_by_alias=True)

    schema_: dict[str, Any] | None = Field(default=None, alias="schema")

    @field_validator("schema_")
    @classmethod
    def _usable(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        if schema is not None:
            check_schema(schema)
        return schema

    @property
    def checked(self) -> CheckedSchema | None:
        """Return the schema ready to run; a repeated one is checked once per process."""
        return None if self.schema_ is None else check_schema(self.schema_)


@detector
class JsonSchema(Detector[JsonSchemaParameters]):
    """Parses the answer as strict JSON and validates it; passages are not looked at."""

    spec = DetectorSpec(
        id="json_schema",
        version="rules/1",
        aliases=("h2o_sonar.evaluators.json_schema_evaluator.JSONSchemaEvaluator",),
        summary="Is the answer JSON that satisfies the schema?",
        metrics=boolean_metrics(parse_failures=False),
        inputs=frozenset({"schema", "answer"}),
        needs="schema_",
        request_parameters=frozenset({"schema"}),
        default_thresholds={"model_passes": 0.5},
        remedy=KEEP_THE_FORM,
        listing=Listing(
            title="JSON schema",
            tags=("rule-based", "nist:valid-reliable", "sr11-7:conceptual-soundness"),
            problem="data quality",
        ),
    )
    parameters = JsonSchemaParameters

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: JsonSchemaParameters,
    ) -> Outcome:
        """Return whether the answer satisfies the schema; not applicable without one.

        Raises:
            ScoringError: If validation takes too many steps; see `schema_steps.py`.
        """
        schema = parameters.checked
        if schema is None:
            return Outcome.not_applicable("missing_input")
        finding = _finding(sample.answer, schema)
        return Outcome.boolean(
            finding is None,
            spans=() if finding is None else (finding,),
            coverage=Coverage.whole(sample.sample),
        )


def _finding(answer: str, schema: CheckedSchema) -> Span | None:
    """Return the first thing that is wrong, or None."""
    try:
        value = parse_json(answer)
    except StrictJsonError as problem:
        if problem.position is None:
            return Span(0, len(answer), problem.label)
        start = max(0, min(problem.position, len(answer) - 1))
        return Span(start, min(start + 1, len(answer)), problem.label)
    violation = schema.violation(value)
    if violation is None:
        return None
    attributes = {"path": violation.path, "keyword": violation.keyword}
    return Span(0, len(answer), "schema_violation", attributes=attributes)
