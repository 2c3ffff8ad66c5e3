"""What the quality bench knows about a pattern detector: how to run it and name its types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from guardrail_service.detectors.pii import types as pii_types
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Sample

Found = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class SpanTask:
    """One detector under measurement.

    Attributes:
        id: Detector id.
        canonical: Our type for any tool's name; None where the published list has none.
        structured: Whether a type is held to the targets.
    """

    id: str
    canonical: Callable[[str], str | None]
    structured: Callable[[str], bool]

    def find(self, text: str) -> list[Found]:
        """Return what the detector serves for this answer, with its default parameters."""
        detector = REGISTRY[self.id]
        outcome = detector.reduce(SegmentedSample(Sample(text)), (), detector.parameters())
        return [(span.label, span.start, span.end) for span in outcome.spans]


def _secret(name: str) -> str | None:
    """Return the secrets detector's type for a name; it publishes its own list."""
    return import_module("guardrail_service.detectors.secrets.detector").canonical(name)  # type: ignore[no-any-return]


TASKS = {
    "pii": SpanTask("pii", pii_types.canonical, lambda t: pii_types.TYPES[t].structured),
    "secrets": SpanTask("secrets", _secret, lambda _: True),
}
