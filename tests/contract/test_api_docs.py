"""The examples of docs/api.md really run, against the application."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from guardrail_service.server.error_replies import STATUS
from guardrail_service.server.schemas import CheckReply, CheckRequest, DetectorOut
from guardrail_service.types import State

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n# tested\n(.*?)```", TEXT, re.DOTALL)
ANSWER = "Guests may stay for two weeks at most, and breakfast is served until ten."
LONG_PASSAGES = [
    " ".join(f"The pool {n} opens at {m} in the morning." for m in range(40)) for n in range(2)
]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_an_example_runs(block: str, http: TestClient) -> None:
    """As it stands, asserts included."""

    def post(path: str, body: Any) -> Any:
        reply = http.post(path, json=body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    names = {"post": post, "ANSWER": ANSWER, "LONG_PASSAGES": LONG_PASSAGES}
    exec(compile(block, "docs/api.md", "exec"), names)  # noqa: S102 - our own documentation


def test_there_are_examples() -> None:
    """Of a deadline, a batch, overrides and shadow mode."""
    assert len(BLOCKS) >= 4


def section(title: str) -> str:
    """Return a chapter's text."""
    return TEXT.split(f"# {title}\n")[1].split("\n## ")[0]


def first_cells(text: str) -> set[str]:
    """Return the names in the first column of every table."""
    return {name for cell in re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
            for name in re.findall(r"`([^`]+)`", cell)}  # fmt: skip


def test_every_field_is_described() -> None:
    """Of the request, the reply and a detector; none that is gone."""
    fields = {*CheckRequest.model_fields, *CheckReply.model_fields, *DetectorOut.model_fields}
    described = first_cells(section("One answer").split("### States")[0])
    assert described == fields


def test_every_state_is_described() -> None:
    """With what it means for the decision."""
    states = section("One answer").split("### States")[1].split("### Offsets")[0]
    assert first_cells(states) == {state.value for state in State}


def test_every_status_of_an_error_is_described() -> None:
    """499 is seen by nobody: its caller has left."""
    rows = section("Errors").split("<!-- bad input -->")[0]
    found = {int(n) for cell in re.findall(r"^\| ([\d, ]+) \|", rows, re.MULTILINE)
             for n in cell.split(", ")}  # fmt: skip
    assert found == {*STATUS.values(), 404, 405, 431} - {499}


def test_every_path_is_described(http: TestClient) -> None:
    """The table at the top is what the application serves."""
    documented = set(re.findall(r"^\| `(GET|POST) (\S+)` \|", TEXT, re.MULTILINE))
    served = {
        (method.upper(), path)
        for path, methods in http.get("/openapi.json").json()["paths"].items()
        for method in methods
    }
    assert documented == served
