"""WSGI gives paths as Latin-1; routes are written as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

import httpx
import pytest

from guardrail_client import GuardrailClient
from guardrail_client.middleware import GuardrailWSGI, Route


def application(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    """Answer everything."""
    start("200 OK", [("Content-Type", "application/json")])
    return [b'{"answer": "It is open."}']


def refused(request: httpx.Request) -> httpx.Response:
    """Be a guard that is never there."""
    return httpx.Response(503, json={"error": {"code": "draining", "message": "gone"}})


@pytest.mark.parametrize(("path", "guarded"), [("/größe", True), ("/grosse", False)])
def test_a_route_with_other_letters_is_guarded(path: str, guarded: bool) -> None:
    """An answer of a guarded route is not shown while the guard cannot be asked."""
    transport = httpx.MockTransport(refused)
    with GuardrailClient("http://guard.test", transport=transport) as client:
        app = GuardrailWSGI(application, client, [Route("/größe", fallback="Nothing.")])
        environ = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": path.encode().decode("latin-1"),
            "wsgi.input": BytesIO(),
        }
        body = b"".join(app(environ, lambda *_: lambda _: None))
    assert (json.loads(body)["answer"] == "Nothing.") is guarded
