"""Run by `.ci/ray` only: a Ray cluster of two nodes and a server that speaks S3."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.evaluators.catalogue import CATALOGUE

collect_ignore_glob = [] if find_spec("ray") and find_spec("moto") else ["test_*.py"]
SLOW = "tests.ray.slow"
"""Evaluators that take their time; workers import them to read their parameters."""


@pytest.fixture(scope="session", autouse=True)
def misbehaving() -> Iterator[None]:
    """Evaluators that are slow, hang or end their process, for this folder only."""
    modules = [importlib.import_module(name) for name in (SLOW, "tests.hanging")]
    yield
    for name in (modules[0].SLOW, modules[1].HANGS, modules[1].DIES):
        CATALOGUE._evaluators.pop(name)


def started(start: Callable[[], Any]) -> Any:
    """Start a part of a cluster; Ray gives each 30 seconds, which a busy machine may not have."""
    for _ in range(3):
        try:
            return start()
        except Exception as error:  # Ray raises nothing narrower
            if "timed out during startup" not in str(error):
                raise
    return start()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Yield a cluster of two nodes, one processor on the first and two on the second."""
    import ray
    from ray.cluster_utils import Cluster

    root = str(Path(__file__).parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    found = started(lambda: Cluster(initialize_head=True, head_node_args={"num_cpus": 1}))
    found.second = started(lambda: found.add_node(num_cpus=2))
    ray.init(address=found.address, log_to_driver=False)
    yield found
    ray.shutdown()
    found.shutdown()


@pytest.fixture
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Return what reads every file of a run by its name, but for those that hold times."""

    def read(folder: Path) -> dict[str, bytes]:
        paths = [path for path in folder.rglob("*") if path.is_file()]
        skipped = ("timings", "times", "report.html", "transcripts.sqlite")
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in paths
            if not path.name.startswith(skipped)
        }

    return read
