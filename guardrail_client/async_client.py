"""The asynchronous client. Only sends; `_protocol` says what, and what the answer means."""

# ruff: noqa: ASYNC109 - the same signatures as the synchronous client.
from __future__ import annotations

import random
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Literal, Self, Unpack

import anyio
import httpx

from guardrail_client import _protocol
from guardrail_client._options import (
    DEFAULT_RETRIES,
    DEFAULT_TIMEOUT,
    LENT,
    make_options,
    network_arguments,
)
from guardrail_client._protocol import Call, RawReply, ReplyBody, T, TryOutcome
from guardrail_client._stream_connection import connector, stream_session
from guardrail_client.circuit import Circuit, asking
from guardrail_client.errors import GuardrailError
from guardrail_client.passages import Passage
from guardrail_client.stream import AsyncCheckStream, OnError, Tokens
from guardrail_client.types import (
    CheckError,
    CheckItem,
    CheckOptions,
    CheckResult,
    FeedbackLabel,
    StreamOptions,
)


class AsyncGuardrailClient:
    """`GuardrailClient` for asyncio and trio: the same methods, awaited. Tasks may share one.

    Args:
        base_url: Address of the service; a path is kept. None reads GUARDRAIL_URL, and without it
            takes http://127.0.0.1:8080.
        api_key: Sent as a bearer token. None reads GUARDRAIL_API_KEY.
        timeout: Seconds for a whole call: connecting, every try and every wait in between. Whatever
            the server does, the call ends by then.
        max_retries: Tries after the first. Only refused connections, 429, 502 and 503 are retried.
        policy: Policy of calls that name none. None leaves the choice to the service.
        headers: Sent with every request, instead of ours of the same name.
        verify: False trusts any certificate; a path names a file with the authorities to trust; an
            `ssl.SSLContext` may hold a certificate of your own, too.
        proxy: Address of a proxy, or an `httpx.Proxy`. None follows the environment, as httpx does.
        uds: Path of a unix socket to connect to; `base_url` then only names the host.
        transport: Replaces the network, in tests for instance.
        http_client: Sends everything, streams included. The caller closes it. Its `base_url`
            counts if none is given here.
        buffer_streams: Lets `check_stream` work over a `transport` or an `http_client` that answers
            only whole requests: the answer is sent when the model is done, and nothing is shown
            before. For tests. False raises `StreamingNotSupported` there.
        circuit: Asked before every check and stream; while it is open they raise `CircuitOpen`.
            None asks the guard always. The middleware brings one to a client without.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        policy: str | None = None,
        headers: Mapping[str, str] | None = None,
        verify: bool | str | ssl.SSLContext = True,
        proxy: str | httpx.Proxy | None = None,
        uds: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        http_client: httpx.AsyncClient | None = None,
        buffer_streams: bool = False,
        circuit: Circuit | None = None,
    ) -> None:
        network = network_arguments(
            httpx.AsyncHTTPTransport,
            verify=verify,
            proxy=proxy,
            uds=uds,
            transport=transport,
            http_client=http_client,
        )
        if base_url is None and http_client is not None:
            base_url = str(http_client.base_url) or None
        self._options = make_options(base_url, api_key, timeout, max_retries, policy, headers)
        self._http = http_client or httpx.AsyncClient(**network)
        self._owns_http = http_client is None
        own_network = "verify" in network and http_client is None
        self._lender = httpx.AsyncClient(**network, limits=LENT) if own_network else self._http
        self._connect = connector(self._lender, transport, self._post if buffer_streams else None)
        self.circuit = circuit
        # Tests replace these three, so that none of them waits.
        self._clock: Callable[[], float] = time.monotonic
        self._sleep: Callable[[float], Awaitable[None]] = anyio.sleep
        self._jitter: Callable[[], float] = random.random

    @classmethod
    def in_process(cls, **settings: Any) -> Self:
        """Return a client that runs the service inside this process, without a port.

        Blocks the loop while the models load, so call it before serving. `close()` shuts the
        service down. asyncio only.

        Args:
            **settings: Fields of `guardrail_service.settings.Settings`; those not given come from
                the environment, as they do for the server.

        Raises:
            ServiceNotInstalled: If the distribution `rag-guardrail` is not installed.
        """
        from guardrail_client import inprocess

        return cls(
            inprocess.URL, transport=inprocess.AsyncInProcessTransport(inprocess.host(settings))
        )

    async def check(
        self, answer: str, *, timeout: float | None = None, **options: Unpack[CheckOptions]
    ) -> CheckResult:
        """Return the verdict on one answer.

        Args:
            answer: What the user is about to see.
            timeout: Seconds for this call instead of the client's.
            **options: `question`, `contexts`, `policy` and the other keys of `CheckOptions`.

        Raises:
            GuardrailError: If there is no verdict; the classes are in `guardrail_client.errors`.
        """
        body = _protocol.check_body(answer, options, self._options.policy)
        with asking(self.circuit):
            return await self._call("POST", "/v1/check", CheckResult.from_json, body, timeout)

    async def check_many(
        self, items: Sequence[CheckItem], *, timeout: float | None = None
    ) -> list[CheckResult | CheckError]:
        """Return one verdict or error per item, in the same order, from a single request.

        Args:
            items: Mappings with an `answer` and its `CheckOptions`.
            timeout: Seconds for the whole batch instead of the client's.

        Raises:
            GuardrailError: If the request as a whole failed. An item that fails alone is a
                `CheckError` in the list.
        """
        if not items:
            return []
        body = _protocol.batch_body(items, self._options.policy)
        parse = partial(_protocol.parse_batch, sent=body["items"])
        with asking(self.circuit):
            return await self._call("POST", "/v1/check/batch", parse, body, timeout)

    def check_stream(
        self,
        tokens: Tokens,
        *,
        on_error: OnError = "closed",
        fallback: str | None = None,
        timeout: float | None = None,
        **options: Unpack[StreamOptions],
    ) -> AsyncCheckStream:
        """Return an iterator over what may be shown of an answer that is still being written.

        Nothing is sent before the first step. After the last one, `final` has the verdict.

        Args:
            tokens: What the model writes, in pieces of any size; an iterator of either kind.
            on_error: `closed` raises when the guard cannot be asked; `open` shows the rest of the
                answer unchecked and keeps the `error`.
            fallback: Shown last if the stream is stopped.
            timeout: Seconds to wait for the guard in all, instead of the client's; the model's
                own time does not count.
            **options: The keys of `StreamOptions`: those of `check`, `stop_on` and
                `sentence_deadline_ms`.

        Raises:
            GuardrailError: From a step, if there is no verdict; `StreamingNotSupported` if the
                client's transport cannot send and receive at the same time.
        """
        about = _protocol.stream_body(options, self._options.policy)
        session = stream_session(self._options, self._connect, about, timeout)
        return AsyncCheckStream(session, tokens, on_error, fallback, self.circuit)

    async def warm(
        self, contexts: Sequence[Passage], *, timeout: float | None = None
    ) -> dict[str, Any]:
        """Let the service compute passages now, so that answers from them are judged faster.

        Args:
            contexts: Passages as for `check`; at least one.
            timeout: Seconds for this call instead of the client's.

        Returns:
            How many distinct `sentences` the passages have, and how many of them `failed`.
        """
        body = _protocol.contexts_body(contexts)
        return await self._call("POST", "/v1/contexts", _protocol.parse_object, body, timeout)

    async def feedback(
        self,
        request_id: str,
        label: FeedbackLabel,
        comment: str | None = None,
        item: int | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Store a person's word on an answer that was checked; it is durable on return.

        Args:
            request_id: That of the `CheckResult`.
            label: `pass` if the answer may be shown, `fail` if not, `abstain` if nobody can tell.
            comment: Why; the service keeps it as it keeps texts, so by default it does not.
            item: Place in the batch, from 0; needed where a batch had several items.
            timeout: Seconds for this call instead of the client's.

        Returns:
            `request_id`, and as `state` `stored`, or `known` if the same was said before.

        Raises:
            GuardrailError: If it was not stored. An `APIError` with status 404 if the service keeps
                no decisions, or none with this request id.
        """
        body = _protocol.feedback_body(request_id, label, comment, item)
        return await self._call("POST", "/v1/feedback", _protocol.parse_object, body, timeout)

    async def policies(self) -> list[dict[str, Any]]:
        """Return the loaded policies with their thresholds."""
        parse = partial(_protocol.parse_list, key="policies")
        return await self._call("GET", "/v1/policies", parse)

    async def detectors(self) -> list[dict[str, Any]]:
        """Return the detectors the service knows, with their metrics."""
        parse = partial(_protocol.parse_list, key="detectors")
        return await self._call("GET", "/v1/detectors", parse)

    async def info(self) -> dict[str, Any]:
        """Return what the service says about itself: version, model pack, limits."""
        return await self._call("GET", "/v1/info", _protocol.parse_object)

    async def ready(self) -> bool:
        """Return whether the service would judge answers now; one try, no waiting.

        Not reachable, too slow and still loading are all False. An error that waiting cannot cure,
        such as an address where no such service lives, raises.
        """
        try:
            await self._call("GET", "/readyz", _protocol.parse_object, max_retries=0)
        except GuardrailError as error:
            if _protocol.means_not_ready(error):
                return False
            raise
        return True

    async def close(self) -> None:
        """Close connections; in-process, shut the service down."""
        if self._owns_http:
            await self._http.aclose()
            await self._lender.aclose()

    async def _post(self, request: httpx.Request) -> httpx.Response:
        return await self._http.send(request)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def _call(
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
            try:
                with anyio.fail_after(call.left()):
                    outcome = await self._attempt(call)
            except TimeoutError:
                raise call.expired() from None
            wait = call.wait(outcome)
            if wait is None:
                return call.result(outcome, parse)
            await self._sleep(wait)

    async def _attempt(self, call: Call) -> TryOutcome:
        request = self._http.build_request(
            call.method,
            self._options.address(call.path),
            content=call.content,
            headers=call.headers,
            timeout=call.left(),
        )
        body = ReplyBody(call)
        try:
            response = await self._http.send(request, stream=True)
            async with aclosing(response):
                # Reads of the body get what the headers left over.
                request.extensions["timeout"]["read"] = call.left()
                async for chunk in response.aiter_bytes():
                    body.add(chunk)
        except httpx.HTTPError as error:
            return error
        return RawReply(response.status_code, response.headers, body.joined())
