"""Runs the `guardrail` command with a model that is slow, waits for a file, or stalls on a word.

Started as a process of its own by tests; the code that runs is the shipped one.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from guardrail_service.commands.main import main
from guardrail_service.inference.models.session import ModelSession
from guardrail_service.types import Row, RowResult

STALL_WORD = "parking"
STALL_S = 600.0
ROW_S = float(os.environ.get("FAULTY_ROW_S", "0"))
GATE = os.environ.get("FAULTY_GATE")
"""Rows wait until there is a file of this name."""


def slowed(self: ModelSession, row: Row) -> RowResult:
    """Run a row after a while; golden rows have other outputs and run at once."""
    if row.outputs == ("sentence_embedding",):
        while GATE is not None and not Path(GATE).exists():
            threading.Event().wait(0.005)
        threading.Event().wait(STALL_S if STALL_WORD in row.text.lower() else ROW_S)
    return run(self, row)


run = ModelSession.run
ModelSession.run = slowed  # type: ignore[method-assign]
sys.argv[0] = "guardrail"
main()
