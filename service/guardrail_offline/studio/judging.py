"""A service without HTTP, for trying answers and fitting policies; loaded when first asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from guardrail_service.commands.sample_file import check_lines, unqueued
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.file import Serving
from guardrail_service.server.runtime import Runtime
from guardrail_service.server.schemas import CheckReply, ErrorReply
from guardrail_service.settings import Settings


class StudioJudge:
    """Judges answers under the policies of the settings; safe to use from several threads.

    Args:
        settings: As those of a service.
        service: Address of a running service, for the commands that the page offers to copy.
    """

    def __init__(self, settings: Settings, service: str = "http://127.0.0.1:8080") -> None:
        self.settings = unqueued(settings)
        self.service = service
        self._lock = threading.Lock()
        self._runtime: Runtime | None = None

    @property
    def runtime(self) -> Runtime:
        """Return the loaded service; the first call takes seconds.

        Raises:
            ServiceError: If models or policies cannot be loaded; the next call tries again.
        """
        with self._lock:
            if self._runtime is None:
                self._runtime = Runtime(self.settings)
            return self._runtime

    @property
    def serving(self) -> Serving:
        """Return what configurations are checked against."""
        return self.runtime.serving

    def policies(self) -> Mapping[str, Policy]:
        """Return the loaded policies by name, the default one first."""
        guard = self.runtime.guard
        names = sorted(guard.policies, key=lambda name: name != guard.default_policy)
        return {name: guard.policies[name] for name in names}

    def check(self, body: Mapping[str, Any]) -> CheckReply | ErrorReply:
        """Return the reply to a body of `/v1/check`; no deadline applies."""
        line = json.dumps(body).encode()
        (result,) = check_lines(self.runtime, [line])
        return result.reply

    def close(self) -> None:
        """Stop the models."""
        with self._lock:
            if self._runtime is not None:
                self._runtime.end()
                self._runtime = None
