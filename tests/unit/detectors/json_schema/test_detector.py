"""JSON schema: strict parsing, where an error points, and schemas meant to hang the service."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from guardrail_service.detectors.json_schema.detector import JsonSchema, JsonSchemaParameters
from guardrail_service.errors import ScoringError
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Outcome, Sample, State

PERSONS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}},
        "required": ["name"],
        "additionalProperties": False,
    },
}
LIST = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "anyOf": [
                {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}},
                {"type": "null"},
            ]
        }
    },
}


def judge(schema: dict[str, Any] | None, answer: str) -> Outcome:
    """Run the detector on an answer."""
    parameters = JsonSchemaParameters(schema=schema)
    return JsonSchema().reduce(SegmentedSample(Sample(answer)), (), parameters)


def passes(schema: dict[str, Any], answer: str) -> bool:
    """Return whether the answer passes."""
    return judge(schema, answer).scores["model_passes"] == 1.0


def test_without_a_schema_there_is_nothing_to_judge() -> None:
    """None is not `{}`."""
    outcome = judge(None, "{}")
    assert (outcome.state, outcome.reason) == (State.NOT_APPLICABLE, "missing_input")


def test_the_empty_schema_asks_for_json_only() -> None:
    """H2O: `{}` = parse only. Four metrics, none for parse failures."""
    assert passes({}, ' {"a": [1, 2.5, null, true, "x"]}\n')
    assert judge({}, "not json").scores == {
        "model_passes": 0.0,
        "model_failures": 1.0,
        "model_retrieval_failures": 0.0,
        "model_generation_failures": 1.0,
    }


@pytest.mark.parametrize(
    ("answer", "label", "span"),
    [
        ('{"a": 1', "json_parse_error", (6, 7)),
        ("{'a': 1}", "json_parse_error", (1, 2)),
        ('```json\n{"a": 1}\n```', "json_parse_error", (0, 1)),
        ("[1, NaN]", "json_not_a_number", (0, 8)),
        ("[-Infinity]", "json_not_a_number", (0, 11)),
        ("1e999", "json_number_out_of_range", (0, 5)),
        ("9" * 5000, "json_number_out_of_range", (0, 5000)),
        ('{"a": 1, "a": 2}', "json_duplicate_name", (0, 16)),
        ("[" * 33 + "]" * 33, "json_too_deep", (0, 66)),
        ("[" * 100_000, "json_too_deep", (0, 100_000)),
        ('{"a":' * 50_000, "json_too_deep", (0, 250_000)),
    ],
)
@pytest.mark.timeout(20)
def test_what_is_not_strict_json_fails_with_a_reason(
    answer: str, label: str, span: tuple[int, int]
) -> None:
    """Two readers must not understand different things; the label never holds text."""
    outcome = judge({}, answer)
    (found,) = outcome.spans
    assert outcome.scores["model_passes"] == 0.0
    assert (found.label, (found.start, found.end)) == (label, span)


@pytest.mark.parametrize(
    ("answer", "path", "keyword"),
    [
        ("{}", "", "type"),
        ('[{"name": "bob"}, {}]', "/1", "required"),
        ('[{"name": "Bob!"}]', "/0/name", "pattern"),
        ('[{"name": "bob", "secret": 1}]', "/0", "additionalProperties"),
    ],
)
def test_a_violation_says_where_and_which_rule(answer: str, path: str, keyword: str) -> None:
    """A JSON pointer into the answer and the schema keyword; the first violation only."""
    (span,) = judge(PERSONS, answer).spans
    assert (span.start, span.end, span.label) == (0, len(answer), "schema_violation")
    assert span.attributes == {"path": path, "keyword": keyword}


def test_the_path_never_shows_a_name_that_the_schema_does_not_define() -> None:
    """Names of the answer may be personal data."""
    (span,) = judge({"additionalProperties": {"type": "string"}}, '{"alice@example.org": 1}').spans
    assert span.attributes["path"] == "/*"


def test_the_parameter_is_called_schema_on_the_wire() -> None:
    """The alias is what requests and configurations use, in both directions."""
    parameters = JsonSchemaParameters.model_validate({"schema": {"type": "object"}})
    assert parameters.model_dump() == {"schema": {"type": "object"}}
    with pytest.raises(ValidationError):
        JsonSchemaParameters.model_validate({"schema_": {}})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"pattern": "(a+)+$(?=b)"}, "/pattern: found invalid perl operator at position 7"),
        ({"patternProperties": {"a(": {}}}, "missing )"),
        ({"type": "nonsense"}, "/type: found a bad"),
        ({"$ref": "https://example.org/schema"}, "a reference to somewhere else"),
        ({"$ref": "file:///etc/passwd"}, "a reference to somewhere else"),
        ({"$ref": "#/$defs/none"}, "a reference to nothing"),
        ({"$ref": "#/required/0/x", "required": ["a"]}, "a reference to nothing"),
        ({"$ref": "#/required", "required": ["a"]}, "a reference to something else"),
        ({"$ref": "#"}, "lead back without end"),
        ({"$dynamicRef": "#x", "$dynamicAnchor": "x"}, "lead back without end"),
        (
            {
                "$defs": {
                    "a": {"allOf": [{"$ref": "#/$defs/b"}]},
                    "b": {"not": {"$ref": "#/$defs/a"}},
                }
            },
            "lead back without end",
        ),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "another dialect"),
        ({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}, "$schema"),
        ({"properties": {"a": {"$id": "other"}}}, "$id"),
        # A reference makes a schema of what was data: it is checked like one.
        ({"$ref": "#/const", "const": {"pattern": "(?=a)"}}, "invalid perl operator"),
        ({"$ref": "#/const", "const": {"type": "nonsense"}}, "found a bad"),
        (
            {"$ref": "#/const", "const": {"$schema": "http://json-schema.org/draft-07/schema#"}},
            "$schema",
        ),
        ({"unevaluatedProperties": False}, "unevaluated"),
        ({"dependencies": {"a": ["b"]}}, "older drafts"),
        ({"enum": list(range(3_000))}, "more than 2000 nodes"),
        ({"allOf": [{"pattern": f"a{i}"} for i in range(65)]}, "more than 64 patterns"),
        ({"const": float("nan")}, "not JSON"),
        ({"const": object()}, "not JSON"),
    ],
)
def test_an_unusable_schema_is_refused_before_any_answer(
    schema: dict[str, Any], message: str
) -> None:
    """At validation, naming the field, the place in the schema and what was expected."""
    with pytest.raises(ValidationError) as caught:
        JsonSchemaParameters(schema=schema)
    (error,) = caught.value.errors(include_input=False, include_url=False)
    assert error["loc"] == ("schema",)
    assert message in error["msg"]


def test_a_deep_schema_is_refused() -> None:
    """Checking it would recurse."""
    schema: dict[str, Any] = {}
    for _ in range(500):
        schema = {"not": schema}
    with pytest.raises(ValidationError, match="more than 32 levels"):
        JsonSchemaParameters(schema=schema)


@pytest.mark.parametrize(
    ("schema", "answer", "expected"),
    [
        (LIST, '{"next":' * 31 + "null" + "}" * 31, True),
        (LIST, '{"next":' * 31 + "3" + "}" * 31, False),
        (
            {"$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}, "type": "array"},
            "[[],[[]]]",
            True,
        ),
        (
            {"$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}, "type": "array"},
            "[[],[1]]",
            False,
        ),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x"}, "1", True),
        ({"properties": {"$schema": {"type": "string"}}}, '{"$schema": 1}', False),
        ({"patternProperties": {"^x": False}}, '{"x": 1}', False),
        ({"patternProperties": {"^x": True}, "additionalProperties": False}, '{"x": 1}', True),
        ({"pattern": r"^\p{L}+$"}, '"é"', True),
        ({"pattern": "^.$"}, '"\\ud800"', True),
        ({"uniqueItems": True}, "[1, 1.0]", False),
        ({"uniqueItems": True}, '[1, true, [1], [true], {"a": 1}, {"a": true}]', True),
        ({"uniqueItems": True}, '[{"a": 1, "b": 2}, {"b": 2, "a": 1}]', False),
        ({"multipleOf": 0.1}, str(10**300), True),
    ],
)
def test_the_bounded_keywords_mean_what_the_draft_says(
    schema: dict[str, Any], answer: str, expected: bool
) -> None:
    """Linear patterns, hashed items and local references give the usual verdicts."""
    assert passes(schema, answer) is expected


def nested(keyword: str, depth: int, leaf: dict[str, Any]) -> dict[str, Any]:
    """A schema that applies its leaf 2**depth times."""
    defs: dict[str, Any] = {
        f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": leaf}}


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        (nested("allOf", 60, {"type": "number"}), "1"),
        (nested("anyOf", 60, {"type": "string"}), "1"),
        (nested("anyOf", 25, {"maxItems": 0}), json.dumps(["x"] * 25_000)),
        (nested("allOf", 40, {"contains": {}}), json.dumps([1] * 30_000)),
        (nested("allOf", 40, {"pattern": "(a?){90}a{90}$"}), json.dumps("a" * 50_000)),
        ({"items": {"enum": list(range(1_900))}, "minItems": 1}, json.dumps([1] * 40_000)),
    ],
    ids=["allOf", "anyOf", "quoting", "contains", "pattern", "enum"],
)
@pytest.mark.timeout(30)
def test_a_validation_that_explodes_is_an_error_and_not_a_verdict(
    schema: dict[str, Any], answer: str
) -> None:
    """Steps are counted; running out raises."""
    with pytest.raises(ScoringError, match="steps"):
        judge(schema, answer)


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"pattern": "^(a+)+$"}, json.dumps("a" * 50_000 + "!")),
        (
            {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
            json.dumps({"a" * 9_000 + "!": 1}),
        ),
        ({"uniqueItems": True}, json.dumps([{"a": i} for i in range(10_000)] + [{"a": 1}])),
    ],
    ids=["pattern", "patternProperties", "uniqueItems"],
)
@pytest.mark.timeout(20)
def test_slow_cases_of_the_library_are_fast_here(schema: dict[str, Any], answer: str) -> None:
    """A backtracking engine, or comparing items pairwise, would take minutes."""
    assert not passes(schema, answer)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_json_value_passes_the_empty_schema_and_its_own_constant(value: Any) -> None:
    """What json.dumps writes is strict JSON, and equals itself."""
    answer = json.dumps(value)
    assert passes({}, answer)
    assert passes({"const": value, "uniqueItems": True}, answer) or isinstance(value, list)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "$ref",
                "allOf",
                "type",
                "pattern",
                "items",
                "not",
                "enum",
                "$defs",
                "properties",
                "$id",
                "$anchor",
                "if",
            ]
        ),
        JSON,
        max_size=4,
    ),
    st.text(),
)
def test_any_schema_is_refused_or_judges_any_text(schema: dict[str, Any], answer: str) -> None:
    """Never another exception."""
    try:
        parameters = JsonSchemaParameters(schema=schema)
    except ValidationError:
        return
    JsonSchema().reduce(SegmentedSample(Sample(answer)), (), parameters)
