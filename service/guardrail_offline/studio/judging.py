"""A service without HTTP, for trying answers and fitting policies; loaded when first asked."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

from guardrail_service.commands.sample_file import unqueued
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.file import Serving, load_file
from guardrail_service.server.runtime import Runtime
from guardrail_service.server.schemas import CheckReply
from guardrail_service.server.translate import parse_check, to_reply, to_sample
from guardrail_service.settings import Settings


class StudioJudge:
    """Judges answers under guardrail JSONs; safe to use from several threads.

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

    @property
    def models(self) -> dict[str, Any]:
        """Return the models by role, as a fitted file names them."""
        pack = self.runtime.pack
        return {"pack": pack.name, **{r: {"name": pack.model_name(r)} for r in pack.roles}}

    def policy(self, file: Path) -> Policy:
        """Return the policy of a guardrail JSON.

        Raises:
            ConfigurationError: If it cannot be served with the models at hand.
        """
        return load_file(file, self.serving).policy

    def check(self, body: object, file: Path) -> CheckReply:
        """Return the reply to a body of `/v1/check` under a guardrail JSON; no deadline applies.

        Raises:
            ServiceError: If the body cannot be judged, or the file not be served.
        """
        runtime = self.runtime
        request = parse_check(body)
        sample = to_sample(request, runtime.settings.limits)
        verdict = runtime.guard.judge(self.policy(file), sample, deadline_ms=math.inf)
        return to_reply(verdict, request, "studio")

    def close(self) -> None:
        """Stop the models."""
        with self._lock:
            if self._runtime is not None:
                self._runtime.end()
                self._runtime = None
