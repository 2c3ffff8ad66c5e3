"""Runs the `guardrail` command whose workers finish the first shard and never the others.

Started as a process of its own by `test_evaluate.py`; a pool's processes import this file, too.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Sequence

from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.runs import worker
from guardrail_offline.runs.shards import Layout
from guardrail_service.commands.main import main


def first_only(
    layout: Layout,
    shard: int,
    configured: Sequence[Configured],
    models: PackModels,
    without: Collection[str],
    begin: worker.Begin,
) -> int:
    """Score the first shard; wait for ever in any other."""
    if shard:
        threading.Event().wait()
    return write(layout, shard, configured, models, without, begin)


write = worker.write_scores
worker.write_scores = first_only
if __name__ == "__main__":
    sys.argv[0] = "guardrail"
    main()
