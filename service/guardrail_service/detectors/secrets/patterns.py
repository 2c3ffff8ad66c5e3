"""Every kind of secret and the patterns that lead to it; nothing is decided here."""

from __future__ import annotations

from guardrail_service.detectors.secrets.context import ASSIGNMENTS, GENERIC, OWNERS, PASSWORD
from guardrail_service.detectors.secrets.kinds import SecretKind, Severity
from guardrail_service.detectors.secrets.patterns_cloud import CLOUD
from guardrail_service.detectors.secrets.patterns_dev import DEVELOPMENT
from guardrail_service.detectors.secrets.patterns_services import (
    AI,
    CONTEXTUAL,
    KEY_FILES,
    SERVICES,
)
from guardrail_service.text.patterns.search import Pattern

ROWS: tuple[SecretKind, ...] = (
    *CLOUD,
    *DEVELOPMENT,
    *AI,
    *SERVICES,
    *KEY_FILES,
    *CONTEXTUAL,
    *ASSIGNMENTS,
)
PATTERNS: tuple[Pattern, ...] = tuple(row.pattern for row in ROWS)
"""What the engine looks for; also what `guardrail bench patterns` measures."""


def _kinds() -> dict[str, tuple[str, Severity]]:
    known: dict[str, tuple[str, Severity]] = {}
    for row in (*CLOUD, *DEVELOPMENT, *AI, *SERVICES, *KEY_FILES, *CONTEXTUAL):
        known.setdefault(row.id, (row.what, row.severity))
    for owner in (*OWNERS, PASSWORD, GENERIC):
        known.setdefault(owner.kind, (owner.what, owner.severity))
    return known


KINDS: dict[str, tuple[str, Severity]] = _kinds()
"""Kind -> (what it is, severity): the published table."""
