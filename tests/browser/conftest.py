"""Run by `.ci/browser` only: needs a browser, which `make test` must not."""

from __future__ import annotations

import os

BROWSER = os.environ.get("GUARDRAIL_BROWSER")
collect_ignore_glob = [] if BROWSER else ["test_*.py"]
