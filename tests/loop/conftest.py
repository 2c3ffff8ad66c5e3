"""Run by `.ci/loop` only: the embedded pack judges hundreds of answers several times."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("GUARDRAIL_LOOP") else ["test_*.py"]
