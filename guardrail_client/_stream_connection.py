"""How a stream reaches the service: a connection, this process, or a test's transport."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx

from guardrail_client._options import ClientOptions, checked_timeout
from guardrail_client._stream_session import PATH, StreamSession
from guardrail_client._two_way_request import BufferedRequest, HTTPTwoWayRequest, TwoWayRequest

Post = Callable[[httpx.Request], Awaitable[httpx.Response]]


def dial(
    options: ClientOptions,
    http: httpx.Client | httpx.AsyncClient,
    about: Mapping[str, Any],
    timeout: float | None,
    uds: str | None,
    post: Post | None,
) -> StreamSession:
    """Return a session that is not open yet.

    Args:
        options: The client's.
        http: The client's; knows the address and, in process, the service.
        about: The first line.
        timeout: Seconds to wait for the guard in all; None takes the client's.
        uds: Path of a unix socket.
        post: Sends a whole request through an injected transport.
    """
    request_id = uuid.uuid4().hex
    headers = {
        **options.headers,
        "Content-Type": "application/x-ndjson",
        "X-Request-Id": request_id,
    }
    host = getattr(http._transport, "host", None)

    async def connect(seconds: float) -> TwoWayRequest:
        request = http.build_request("POST", PATH, headers=headers)
        if host is not None:
            channel: TwoWayRequest = await host.open(request).open()
            return channel
        if post is not None:
            return BufferedRequest(
                lambda body: post(http.build_request("POST", PATH, content=body, headers=headers))
            )
        return await HTTPTwoWayRequest.open(request.url, headers, uds, seconds)

    budget = options.timeout if timeout is None else checked_timeout(timeout)
    return StreamSession(connect, about, options.place, request_id, budget)
