"""Builds rag-guardrail; see release.py."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from release import distribution  # noqa: E402 - the checkout is on the path only now

distribution(HERE)
