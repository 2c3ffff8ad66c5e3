"""The synchronous client. Only sends; `_protocol` says what, and what the answer means."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any, Literal, Self

import anyio.to_thread
import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from guardrail_client import _protocol
from guardrail_client._options import DEFAULT_RETRIES, DEFAULT_TIMEOUT, make_options
from guardrail_client._protocol import Call, RawReply, ReplyBody, T, TryOutcome
from guardrail_client._stream_connection import dial
from guardrail_client._stream_session import StreamSession
from guardrail_client.errors import GuardrailError
from guardrail_client.stream import CheckStream, OnError, Tokens
from guardrail_client.types import CheckError, CheckItem, CheckResult, Mode, Passage, StopOn


class GuardrailClient:
    """Asks a rag-guardrail service whether an answer may be shown. Threads may share one.

    Args:
        base_url: Address of the service; a path is kept. None reads GUARDRAIL_URL, and without it
            takes http://127.0.0.1:8080.
        api_key: Sent as a bearer token. None reads GUARDRAIL_API_KEY.
        timeout: Seconds for a whole call: connecting, every try and every wait in between. The
            budget is looked at whenever bytes of the reply's body arrive and bounds every single
            read; only a server that trickles *headers* could outlast it.
        max_retries: Tries after the first. Only refused connections, 429, 502 and 503 are retried.
        policy: Policy of calls that name none. None leaves the choice to the service.
        transport: Replaces the network, in tests for instance.
        uds: Path of a unix socket to connect to; `base_url` then only names the host.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        policy: str | None = None,
        transport: httpx.BaseTransport | None = None,
        uds: str | None = None,
    ) -> None:
        if uds is not None and transport is not None:
            raise ValueError("uds and transport: found both, expected at most one")
        self._uds = uds
        self._injected = transport is not None
        self._loop = ExitStack()
        self._portal: BlockingPortal | None = None
        self._starting = threading.Lock()
        if uds is not None:
            transport = httpx.HTTPTransport(uds=uds)
        self._options = make_options(base_url, api_key, timeout, max_retries, policy)
        self._http = httpx.Client(base_url=self._options.url, transport=transport)
        # Tests replace these three, so that none of them waits.
        self._clock: Callable[[], float] = time.monotonic
        self._sleep: Callable[[float], None] = time.sleep
        self._jitter: Callable[[], float] = random.random

    @classmethod
    def in_process(cls, **settings: Any) -> Self:
        """Return a client that runs the service inside this process, without a port.

        Blocks while the models load. `close()` shuts the service down.

        Args:
            **settings: Fields of `guardrail_service.settings.Settings`; those not given come from
                the environment, as they do for the server.

        Raises:
            ServiceNotInstalled: If the distribution `rag-guardrail` is not installed.
        """
        from guardrail_client import inprocess

        return cls(inprocess.URL, transport=inprocess.InProcessTransport(inprocess.host(settings)))

    def check(
        self,
        answer: str,
        *,
        question: str | None = None,
        contexts: Sequence[Passage] = (),
        policy: str | None = None,
        detectors: Mapping[str, Any] | None = None,
        deadline_ms: int | None = None,
        mode: Mode | None = None,
        include: Sequence[str] = (),
        id: str | None = None,
        timeout: float | None = None,
    ) -> CheckResult:
        """Return the verdict on one answer.

        Args:
            answer: What the user is about to see.
            question: What the user asked.
            contexts: The retrieved passages, each a str or `{"id": ..., "text": ...}`.
            policy: Name of a loaded policy; None takes the client's.
            detectors: Overrides by detector: `{"toxicity": {"thresholds": {"toxicity": 0.3}}}`.
            deadline_ms: The service stops here and names what it did not evaluate. None sends
                nothing; the policy may have a deadline of its own.
            mode: `shadow` reports the decision and always allows; None enforces.
            include: Any of `spans`, `evidence`, `redacted_answer`; empty leaves it to the service.
            id: Your name for this answer in the service's logs.
            timeout: Seconds for this call instead of the client's.

        Raises:
            GuardrailError: If there is no verdict; the classes are in `guardrail_client.errors`.
        """
        body = _protocol.check_body(
            answer,
            question=question,
            contexts=contexts,
            policy=policy or self._options.policy,
            detectors=detectors,
            deadline_ms=deadline_ms,
            mode=mode,
            include=include,
            id=id,
        )
        return self._call("POST", "/v1/check", CheckResult.from_json, body, timeout)

    def check_many(
        self, items: Sequence[CheckItem], *, timeout: float | None = None
    ) -> list[CheckResult | CheckError]:
        """Return one verdict or error per item, in the same order, from a single request.

        Args:
            items: Mappings with the arguments of `check`, without `timeout`.
            timeout: Seconds for the whole batch instead of the client's.

        Raises:
            GuardrailError: If the request as a whole failed. An item that fails alone is a
                `CheckError` in the list.
        """
        if not items:
            return []
        body = _protocol.batch_body(items, self._options.policy)
        parse = partial(_protocol.parse_batch, count=len(items))
        return self._call("POST", "/v1/check/batch", parse, body, timeout)

    def check_stream(
        self,
        tokens: Tokens,
        *,
        question: str | None = None,
        contexts: Sequence[Passage] = (),
        policy: str | None = None,
        detectors: Mapping[str, Any] | None = None,
        deadline_ms: int | None = None,
        sentence_deadline_ms: int | None = None,
        stop_on: StopOn | None = None,
        mode: Mode | None = None,
        include: Sequence[str] = (),
        id: str | None = None,
        on_error: OnError = "closed",
        fallback: str | None = None,
        timeout: float | None = None,
    ) -> CheckStream:
        """Return an iterator over what may be shown of an answer that is still being written.

        Nothing is sent before the first step. After the last one, `final` has the verdict.

        Args:
            tokens: What the model writes, in pieces of any size; run in your thread.
            question: What the user asked.
            contexts: The retrieved passages, each a str or `{"id": ..., "text": ...}`.
            policy: Name of a loaded policy; None takes the client's.
            detectors: Overrides by detector.
            deadline_ms: For the verdict on the whole answer, as in `check`.
            sentence_deadline_ms: For judging one part; what is not judged by then counts as the
                policy's `on_timeout` says.
            stop_on: The mildest action that ends the stream, `block` or `flag`; None is `block`.
            mode: `shadow` lets everything pass as it is and reports.
            include: As in `check`.
            id: Your name for this answer.
            on_error: `closed` raises when the guard cannot be asked; `open` shows the rest of the
                answer unchecked and keeps the `error`.
            fallback: Shown last if the stream is stopped.
            timeout: Seconds to wait for the guard in all, instead of the client's; the model's
                own time does not count.

        Raises:
            GuardrailError: From a step, if there is no verdict.
        """
        about = _protocol.stream_body(
            _protocol.about_answer(
                question,
                contexts,
                policy or self._options.policy,
                detectors,
                deadline_ms,
                mode,
                include,
                id,
            ),
            sentence_deadline_ms,
            stop_on,
        )
        post = self._post if self._injected else None

        def session() -> StreamSession:
            return dial(self._options, self._http, about, timeout, self._uds, post)

        return CheckStream(session, self._on_loop, tokens, on_error, fallback)

    def warm(self, contexts: Sequence[Passage], *, timeout: float | None = None) -> dict[str, Any]:
        """Let the service compute passages now, so that answers from them are judged faster.

        Args:
            contexts: Passages as for `check`; at least one.
            timeout: Seconds for this call instead of the client's.

        Returns:
            How many sentences were `new`, `known` already and `failed`.
        """
        body = _protocol.contexts_body(contexts)
        return self._call("POST", "/v1/contexts", _protocol.parse_object, body, timeout)

    def policies(self) -> list[dict[str, Any]]:
        """Return the loaded policies with their thresholds."""
        parse = partial(_protocol.parse_list, key="policies")
        return self._call("GET", "/v1/policies", parse)

    def detectors(self) -> list[dict[str, Any]]:
        """Return the detectors the service knows, with their metrics."""
        parse = partial(_protocol.parse_list, key="detectors")
        return self._call("GET", "/v1/detectors", parse)

    def info(self) -> dict[str, Any]:
        """Return what the service says about itself: version, model pack, limits."""
        return self._call("GET", "/v1/info", _protocol.parse_object)

    def ready(self) -> bool:
        """Return whether the service would judge answers now; one try, no waiting.

        Not reachable, too slow and still loading are all False. What waiting cannot cure, such as
        an address where no such service lives, raises.
        """
        try:
            self._call("GET", "/readyz", _protocol.parse_object, max_retries=0)
        except GuardrailError as error:
            if _protocol.means_not_ready(error):
                return False
            raise
        return True

    def close(self) -> None:
        """Close connections; in-process, shut the service down."""
        self._loop.close()
        self._http.close()

    def _on_loop(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Return what work gives on an event loop of our own, which streams need."""
        with self._starting:
            if self._portal is None:
                self._portal = self._loop.enter_context(start_blocking_portal())
        return self._portal.call(work)

    async def _post(self, request: httpx.Request) -> httpx.Response:
        return await anyio.to_thread.run_sync(self._http.send, request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _call(
        self,
        method: Literal["GET", "POST"],
        path: str,
        parse: Callable[[Any], T],
        body: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
    ) -> T:
        """Return what a 200 reply says, after as many tries as it takes and is allowed."""
        call = Call(
            self._options,
            method,
            path,
            body,
            timeout=timeout,
            max_retries=max_retries,
            clock=self._clock,
            jitter=self._jitter,
        )
        while True:
            outcome = self._attempt(call)
            wait = call.wait(outcome)
            if wait is None:
                return call.result(outcome, parse)
            self._sleep(wait)

    def _attempt(self, call: Call) -> TryOutcome:
        request = self._http.build_request(
            call.method, call.path, content=call.content, headers=call.headers, timeout=call.left()
        )
        body = ReplyBody(call)
        try:
            response = self._http.send(request, stream=True)
            with closing(response):
                # Reads of the body get what the headers left over.
                request.extensions["timeout"]["read"] = call.left()
                for chunk in response.iter_bytes():
                    body.add(chunk)
        except httpx.HTTPError as error:
            return error
        return RawReply(response.status_code, response.headers, body.joined())
