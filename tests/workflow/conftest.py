"""Run by `.ci/workflow` only: it needs LibreOffice, and a whole workflow takes minutes."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("GUARDRAIL_WORKFLOW") else ["test_*.py"]
