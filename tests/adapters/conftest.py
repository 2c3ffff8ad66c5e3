"""Run by `.ci/adapters` only: needs others' gateways, clients and frameworks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

LITELLM = os.environ.get("GUARDRAIL_LITELLM")
"""The command of the LiteLLM proxy, which is in an environment of its own."""
collect_ignore_glob = [] if LITELLM else ["test_*.py"]
KEY = "a-made-up-key"


class Ground:
    """What adapters are tried on: a real service in every dialect, others' gateways before it.

    Attributes:
        guard: Address of the service, which wants `key`.
    """

    def __init__(self, guard: str, stack: ExitStack, folder: Path) -> None:
        self.guard, self.key = guard, KEY
        self._stack, self._folder = stack, folder

    @cached_property
    def litellm(self) -> str:
        """The address of LiteLLM's proxy, which asks the service; its models say what they say."""
        from tests.adapters.gateways import litellm_settings
        from tests.vendors.senders import litellm_proxy

        settings = litellm_settings(self.guard, self.key)
        return self._stack.enter_context(litellm_proxy(str(LITELLM), settings, self._folder))


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The shipped default policy on the embedded pack."""
    from tests.integration.conftest import running

    dialects = {"GUARDRAIL_DIALECTS": "all", "GUARDRAIL_API_KEYS": KEY}
    with (
        ExitStack() as stack,
        running("--port", "0", **dialects) as served,
        served.client(),
    ):
        yield Ground(served.address, stack, tmp_path_factory.mktemp("litellm"))
