"""The store of decisions: what was judged, what people said of it, and proof that none is missing.

Serving loads it by entry point when `GUARDRAIL_DECISIONS_URL` is set, and never imports it. The
names are imported when they are asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guardrail_decisions.reading import Decisions, Filters, open_decisions, records
    from guardrail_decisions.rows import StoredDecision, StoredFeedback

__all__ = [
    "Decisions",
    "Filters",
    "StoredDecision",
    "StoredFeedback",
    "open_decisions",
    "records",
]
_ROWS = ("StoredDecision", "StoredFeedback")


def __getattr__(name: str) -> Any:
    """Return a public name from the file it stands in."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "rows" if name in _ROWS else "reading"
    return getattr(import_module(f"guardrail_decisions.{home}"), name)
