"""The report of decisions as one HTML page that fetches nothing, runs nothing, and escapes all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guardrail_offline.report.page import environment, frame

WORDS = {
    "kept_so_far": "Kept so far",
    "broken": "Broken",
    "not_enough_labels": "Not enough labels",
    "as_before": "as before",
    "drifted": "have moved",
    "no_reference": "nothing to compare with",
}
LIGHTS = {"kept_so_far": "passes", "broken": "fails", "not_enough_labels": "unknown"}


def page(content: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        content: What `decisions_report.content` made.
    """
    shares = [content["flagged"], *(week["flagged"] for week in content["weeks"])]
    scale = max((one["share"] or 0.0 for one in shares), default=0.0)
    return environment().get_template("decisions.html.j2").render(
        **frame(),
        content=content,
        words=WORDS,
        lights=LIGHTS,
        percent=percent,
        scale=min(1.0, 1.25 * scale) or 1.0,
    )  # fmt: skip


def percent(share: float) -> str:
    """Return a share for reading."""
    return f"{share:.1%}"
