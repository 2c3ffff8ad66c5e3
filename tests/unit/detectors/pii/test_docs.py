"""`docs/pii.md` says what the code does: the type table and the parameters."""

from __future__ import annotations

from pathlib import Path

from guardrail_service.detectors.pii.data_types import TYPES, PiiType
from guardrail_service.detectors.pii.detector import PIIParameters

DOCS = (Path(__file__).parents[4] / "docs" / "pii.md").read_text("utf-8")
CONTEXT = {"no": "-", "bare": "for the bare number", "always": "needed"}


def row(type_: PiiType) -> str:
    """Return a type's line of the table."""
    cells = (
        f"`{type_.id}`",
        type_.name,
        ", ".join(f"`{alias}`" for alias in type_.aliases),
        type_.how,
        type_.check or "-",
        CONTEXT[type_.context],
        "" if type_.structured else "no",
    )
    return "| " + " | ".join(cells).rstrip() + " |"


def test_the_type_table_is_the_published_list() -> None:
    """Same types, same order, same words."""
    _, _, table = DOCS.partition("<!-- types -->\n")
    lines = table.partition("<!-- end of types -->")[0].splitlines()
    assert lines[2:] == [row(type_) for type_ in TYPES.values()]


def test_every_parameter_is_described() -> None:
    """A parameter without a line in the table cannot be found."""
    for name in PIIParameters.model_fields:
        assert f"| `{name}` |" in DOCS
