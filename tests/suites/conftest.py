"""Run by `.ci/suites` only: needs the suites' own packages, which `make test` must not."""

from __future__ import annotations

import os

PYTHON = os.environ.get("GUARDRAIL_SUITES", "")
"""The interpreter of the environment that has them."""
collect_ignore_glob = [] if PYTHON else ["test_*.py"]
