"""Opens a store for the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail_service.errors import ConfigurationError

if TYPE_CHECKING:
    from guardrail_service.server.decisions import DecisionStore
    from guardrail_service.settings import DecisionSettings


def open_store(settings: DecisionSettings) -> DecisionStore:
    """Return the store that the settings name.

    Raises:
        ConfigurationError: If it cannot be opened.
    """
    raise ConfigurationError("GUARDRAIL_DECISIONS_URL", "a store", "none yet")
