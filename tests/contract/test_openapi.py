"""The committed OpenAPI and JSON Schemas are what the code produces, and their examples run."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

ROOT = Path(__file__).resolve().parents[2]


def generator() -> ModuleType:
    """Return docs/generate.py as a module."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = generator()
GENERATED: dict[str, dict[str, Any]] = GENERATE.generated()
OPENAPI = GENERATED["docs/openapi.json"]


@pytest.mark.parametrize(("name", "text"), GENERATE.texts().items())
def test_a_generated_file_is_current(name: str, text: str) -> None:
    """`make docs` writes it; a change of the contract shows in the diff."""
    assert (ROOT / name).read_text("utf-8") == text


def test_there_is_no_schema_that_nothing_generates() -> None:
    """A left-over would be believed."""
    found = {str(path.relative_to(ROOT)) for path in (ROOT / "configs" / "schema").iterdir()}
    assert found == {name for name in GENERATED if name.startswith("configs/schema/")}


@pytest.mark.parametrize("name", [name for name in GENERATED if name.endswith("schema.json")])
def test_a_schema_is_a_schema(name: str) -> None:
    """Of the draft it says."""
    Draft202012Validator.check_schema(GENERATED[name])


@pytest.mark.parametrize("name", ["default", "strict", "observe", "h2o_example"])
def test_the_shipped_configurations_fit_their_schema(name: str) -> None:
    """An editor that uses it shows no error."""
    schema = Draft202012Validator(GENERATED["configs/schema/guardrail.schema.json"])
    content = json.loads((ROOT / "configs" / f"{name}.json").read_text("utf-8"))
    assert list(schema.iter_errors(content)) == []


def test_the_shipped_pack_fits_its_schema() -> None:
    """Whoever builds a pack can check it before the service does."""
    schema = Draft202012Validator(GENERATED["configs/schema/pack-manifest.schema.json"])
    content = json.loads((ROOT / "models" / "embedded" / "manifest.json").read_text("utf-8"))
    assert list(schema.iter_errors(content)) == []


def resolved(name: str) -> Draft202012Validator:
    """Return a component's validator."""
    reference = {"$ref": f"#/components/schemas/{name}"}
    return Draft202012Validator({**reference, "components": OPENAPI["components"]})


EXAMPLES = [
    (path, example)
    for path, methods in OPENAPI["paths"].items()
    for operation in methods.values()
    for media in operation.get("requestBody", {}).get("content", {}).values()
    for example in OPENAPI["components"]["schemas"][media["schema"]["$ref"].split("/")[-1]].get(
        "examples", []
    )
]


REQUESTS = {
    "/v1/check": "CheckRequest",
    "/v1/check/batch": "BatchRequest",
    "/v1/contexts": "ContextsRequest",
    "/v1/feedback": "FeedbackRequest",
}


def test_every_request_body_has_an_example() -> None:
    """A reader copies one before reading a schema."""
    assert {path for path, _ in EXAMPLES} == REQUESTS.keys()


@pytest.mark.parametrize(("path", "example"), EXAMPLES)
def test_an_example_runs_and_its_reply_fits_the_schema(
    path: str, example: Any, http: TestClient
) -> None:
    """Both sides of the contract, with one real request."""
    name = REQUESTS[path]
    assert list(resolved(name).iter_errors(example)) == []
    reply = http.post(path, json=example)
    if path == "/v1/feedback":  # tests/integration/test_decision_routes.py has a store
        assert reply.status_code == 404
        return
    assert reply.status_code == 200
    assert list(resolved(name.replace("Request", "Reply")).iter_errors(reply.json())) == []


@pytest.mark.parametrize("path", [p for p, m in OPENAPI["paths"].items() if "get" in m])
def test_every_get_replies_as_its_schema_says(path: str, http: TestClient) -> None:
    """Nothing is described that is not there."""
    reply = http.get(path)
    assert reply.status_code == 200
    described = OPENAPI["paths"][path]["get"]["responses"]["200"].get("content", {})
    schema = described.get("application/json", {}).get("schema", {})
    if reply.headers["content-type"] == "application/json":
        validator = Draft202012Validator({**schema, "components": OPENAPI["components"]})
        assert list(validator.iter_errors(reply.json())) == []
    else:
        assert path == "/metrics"


def test_errors_have_one_shape_everywhere() -> None:
    """Every documented status beside 200 and 503 of `/readyz` is an ErrorReply."""
    for path, methods in OPENAPI["paths"].items():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if status == "200" or (path, status) == ("/readyz", "503"):
                    continue
                schema = response["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/ErrorReply"}


def test_every_operation_says_what_it_does() -> None:
    """Summary or description, and one for every status."""
    for methods in OPENAPI["paths"].values():
        for operation in methods.values():
            assert operation["description"]
            assert all(response["description"] for response in operation["responses"].values())
