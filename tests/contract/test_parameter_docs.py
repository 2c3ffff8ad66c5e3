"""Every parameter of every detector is documented where users look for it."""

from __future__ import annotations

from pathlib import Path

import pytest

import guardrail_service.detectors  # noqa: F401 - registers the built-in detectors
from guardrail_service.detectors.registry import REGISTRY

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {
    "toxicity": "safety.md",
    "bias": "safety.md",
    "pii": "pii.md",
    "secrets": "secrets.md",
    "encoding": "secrets.md",
    "injection": "injection.md",
    "links": "links.md",
}


@pytest.mark.parametrize("detector", [d.spec.id for d in REGISTRY])
def test_every_parameter_is_on_the_detectors_page(detector: str) -> None:
    """By the name that goes into the JSON."""
    text = (DOCS / PAGES.get(detector, "configuration.md")).read_text("utf-8")
    assert f"`{detector}`" in text or not REGISTRY[detector].parameters.model_fields
    for name, field in REGISTRY[detector].parameters.model_fields.items():
        assert f"`{field.alias or name}`" in text, f"{detector}.{name}"
