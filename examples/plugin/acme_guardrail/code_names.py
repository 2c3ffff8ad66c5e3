"""Does the answer name a project that is still secret? Found and replaced, in a stream, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from guardrail_service import (
    Coverage,
    Detector,
    DetectorSpec,
    Direction,
    Listing,
    MetricSpec,
    Outcome,
    Parameters,
    RowOutput,
    SegmentedSample,
    Span,
)

LONGEST = 64
"""Code points of the longest name: a stream holds back as much behind every part that leaves."""
Name = Annotated[str, Field(min_length=3, max_length=LONGEST)]


class CodeNamesParameters(Parameters):
    """The secret names.

    Attributes:
        names: As they are written. One of ours has the end of a sentence inside.
    """

    names: tuple[Name, ...] = ("Blue Heron", "Why Not? Lantern")


class CodeNames(Detector[CodeNamesParameters]):
    """1.0 for an answer that names no secret project, and where the names stand."""

    spec = DetectorSpec(
        id="acme_code_names",
        summary="Does the answer name a project that is still secret?",
        metrics=(MetricSpec("model_passes", Direction.HIGHER, gating=True, boolean=True),),
        inputs=frozenset({"answer"}),
        cost="pattern",
        in_flight="search",
        reach=LONGEST,
        default_thresholds={"model_passes": 0.5},
        replaces=True,
        version="acme-code-names/1",
        listing=Listing(title="Code names", tags=("rule-based",), problem="security"),
    )
    parameters = CodeNamesParameters

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: CodeNamesParameters,
    ) -> Outcome:
        """Return whether no name stands in the answer."""
        spans = tuple(
            Span(start, start + len(name), "code_name", replacement="[CODE_NAME]")
            for name in parameters.names
            for start in _starts(sample.answer, name)
        )
        size = len(sample.answer)
        return Outcome.evaluated({"model_passes": float(not spans)}, spans, Coverage((size, size)))


def _starts(text: str, name: str) -> list[int]:
    found, at = [], text.find(name)
    while at >= 0:
        found.append(at)
        at = text.find(name, at + len(name))
    return found
