"""Checks a file of samples: a line in, a line out, same count and order."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Literal

from guardrail_service.errors import BodyTooLarge, ServiceError
from guardrail_service.server.error_replies import error_reply
from guardrail_service.server.runtime import Runtime
from guardrail_service.server.schemas import CheckReply, CheckRequest, ErrorReply
from guardrail_service.server.translate import (
    decode,
    parse_check,
    to_overrides,
    to_reply,
    to_sample,
)
from guardrail_service.settings import Settings


@dataclass(frozen=True, slots=True)
class LineResult:
    """The result of one input line."""

    reply: CheckReply | ErrorReply

    @property
    def kind(self) -> Literal["pass", "flag", "error"]:
        """Return the decision, or that there is none."""
        return "error" if isinstance(self.reply, ErrorReply) else self.reply.decision

    @property
    def json(self) -> str:
        """Return the reply as a line of JSON."""
        return self.reply.model_dump_json()

    def row(self) -> tuple[str, str, str]:
        """Return decision, action and summary; of an error its code and message."""
        if isinstance(self.reply, ErrorReply):
            return self.kind, "-", f"{self.reply.error.code}: {self.reply.error.message}"
        return self.kind, self.reply.action, self.reply.summary


def unqueued(settings: Settings) -> Settings:
    """Return settings under which no line is refused because of the lines before it."""
    limits = settings.limits.model_copy(update={"queued_rows": sys.maxsize, "cpu_s": math.inf})
    return settings.model_copy(update={"limits": limits})


def check_lines(
    runtime: Runtime, lines: Iterable[bytes], policy: str | None = None
) -> Iterator[LineResult]:
    """Yield a result per line, in order. No deadline applies.

    Args:
        runtime: The loaded service.
        lines: Bodies of `/v1/check`, one JSON object per line.
        policy: Policy of lines that name none.
    """
    ahead = 4 * runtime.settings.workers
    numbered = enumerate(lines, start=1)
    with ThreadPoolExecutor(2 * runtime.settings.workers, "line") as pool:
        waiting: deque[Future[LineResult]] = deque()
        for number, line in islice(numbered, ahead):
            waiting.append(pool.submit(_check_line, runtime, number, line, policy))
        while waiting:
            yield waiting.popleft().result()
            for number, line in islice(numbered, 1):
                waiting.append(pool.submit(_check_line, runtime, number, line, policy))


def _check_line(runtime: Runtime, number: int, line: bytes, policy: str | None) -> LineResult:
    request_id = f"line-{number}"
    try:
        reply = _judge(runtime, _parse(runtime, line), request_id, policy)
    except ServiceError as error:
        return LineResult(error_reply(error, request_id))
    return LineResult(reply)


def _parse(runtime: Runtime, line: bytes) -> CheckRequest:
    limit = runtime.settings.limits.body_bytes
    if len(line) > limit:
        raise BodyTooLarge(f"found {len(line)} bytes; expected at most {limit}", "line")
    return parse_check(decode(line, "line"))


def _judge(
    runtime: Runtime, request: CheckRequest, request_id: str, policy: str | None
) -> CheckReply:
    verdict = runtime.guard.check(
        to_sample(request, runtime.settings.limits),
        policy if request.policy is None else request.policy,
        to_overrides(request),
        deadline_ms=inf,
        mode=request.mode,
    )
    return to_reply(verdict, request, request_id)
