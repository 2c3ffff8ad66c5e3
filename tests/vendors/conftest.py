"""Run by `.ci/vendors` only: needs clients and servers of vendors, which `make test` must not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

LITELLM = os.environ.get("GUARDRAIL_LITELLM")
"""The command of the LiteLLM proxy, which is in an environment of its own."""
collect_ignore_glob = [] if LITELLM else ["test_*.py"]


@pytest.fixture(scope="session")
def guard() -> Iterator[str]:
    """A service on the embedded pack, with the shipped default policy."""
    from tests.integration.conftest import running

    with running("--port", "0") as served, served.client():
        yield served.address


@pytest.fixture(scope="session")
def hosts(guard: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Every sender behind the middleware, by its name."""
    from tests.vendors.hosts import Hosts

    hosts = Hosts(guard, str(LITELLM), tmp_path_factory.mktemp("litellm"))
    with hosts.stack:
        yield hosts
