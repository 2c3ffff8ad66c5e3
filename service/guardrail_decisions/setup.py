"""Builds rag-guardrail-decisions; see release.py at the top of the checkout."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from release import distribution  # noqa: E402 - the checkout is on the path only now

distribution(HERE)
