"""What `guardrail bench stages` found: processor time by part of a check, and the page's table."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from guardrail_bench.document import markdown_table
from guardrail_bench.samples import SCENARIOS, Passages
from guardrail_bench.targets import busy_warning

Part = Literal[
    "parse",
    "sentences",
    "language",
    "rows",
    "tokens",
    "inference",
    "memory",
    "patterns",
    "rules",
    "reduce",
    "decide",
    "reply",
]
TITLES: Mapping[Part, str] = {
    "parse": "parse and validate the body",
    "sentences": "sentences and windows",
    "language": "language identification",
    "rows": "claims, evidence and rows of the model detectors",
    "tokens": "tokens, of windows and of rows",
    "inference": "model inference",
    "memory": "memory of outputs, choice of evidence",
    "patterns": "patterns: personal data, secrets, encoded text",
    "rules": "rules without model or patterns",
    "reduce": "scores and spans of the model detectors",
    "decide": "thresholds, decision, redaction",
    "reply": "reply and its JSON",
}
HEADINGS = ("part", "cold ms", "of the whole", "warm ms", "of the whole")


class StageTimes(BaseModel):
    """One check: processor milliseconds of its parts, without those that did not occur."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    passages: Passages
    parts_ms: dict[Part, float] = Field(description="Time in a part, without that in others.")
    total_ms: float

    @property
    def sum_ms(self) -> float:
        """Return the time of all parts."""
        return sum(self.parts_ms.values())


class StagesReport(BaseModel):
    """The parts of some checks, in one process without HTTP and queue."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal["1"] = "1"
    started: str
    machine: dict[str, Any]
    busy_before: float
    pack: str
    policy: str
    scenario: str
    seed: int
    judged: tuple[StageTimes, ...] = Field(min_length=2)

    def medians(self, passages: Passages) -> dict[str, float]:
        """Return median milliseconds of each part by title, of their sum, rest and whole."""
        chosen = [one for one in self.judged if one.passages == passages]
        return {
            **{TITLES[p]: median(one.parts_ms.get(p, 0.0) for one in chosen) for p in TITLES},
            "sum of the parts": median(one.sum_ms for one in chosen),
            "not accounted for": median(one.total_ms - one.sum_ms for one in chosen),
            "the whole check": median(one.total_ms for one in chosen),
        }


def stages_rows(report: StagesReport) -> list[tuple[str, ...]]:
    """Return a row per part: its median, cold and warm, and its share of the whole."""
    found = [report.medians(passages) for passages in get_args(Passages)]
    whole = [medians["the whole check"] for medians in found]
    return [
        (
            title,
            *(
                cell
                for medians, total in zip(found, whole, strict=True)
                for cell in (f"{medians[title]:.2f}", f"{medians[title] / total:.1%}")
            ),
        )
        for title in found[0]
    ]


def stages_markdown(report: StagesReport) -> str:
    """Return the report for a page."""
    machine, scenario = report.machine, SCENARIOS[report.scenario]
    parts = [
        f"Measured {report.started} on {machine['cpu']}, {machine['cores']} cores: "
        f"{len(report.judged) // 2} samples ({scenario.title}), policy {report.policy}, pack "
        f"{report.pack}. Medians of processor time; they need not add up to the median of the sum.",
        markdown_table(HEADINGS, stages_rows(report)),
    ]
    if (busy := busy_warning(report.busy_before)) is not None:
        parts.append(f"**Caution.** {busy}")
    return "\n\n".join(parts)
