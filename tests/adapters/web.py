"""Web frameworks on real ports, their endpoints saying what a test wants, guarded."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import django
import flask
import httpx
from django.conf import settings as django_settings
from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.test import override_settings
from django.urls import path as django_path
from django.views.decorators.csrf import csrf_exempt
from fastapi import Depends, FastAPI
from fastapi.responses import StreamingResponse

from guardrail_client import GuardrailClient
from guardrail_client.integrations.answers import AnswerGuard
from guardrail_client.integrations.django import guarded_asgi_application, guarded_wsgi_application
from guardrail_client.integrations.flask import GuardrailExtension
from guardrail_client.middleware import Route
from tests.adapters.adapter import PASSAGES, QUESTION, SAID, Adapter, Seen
from tests.adapters.conftest import Ground
from tests.adapters.frameworks import BOTH, patient
from tests.integration.conftest import PATIENCE_S
from tests.integration.hosts import serving, serving_wsgi
from tests.vendors.saying import pieces

TOLD: dict[str, tuple[str, list[str]]] = {name: (text, PASSAGES) for name, text in SAID.items()}
"""What the views of Django say, and their passages."""


def fastapi(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask an endpoint that has the guard as a dependency."""
    app = FastAPI()
    guard = AnswerGuard(**patient(ground))

    @app.post("/ask")
    async def ask(body: dict[str, str], guard: AnswerGuard = Depends(guard)) -> dict[str, str]:  # noqa: B008
        return {"answer": await guard.ashown(SAID[body["said"]], QUESTION, PASSAGES)}

    @app.post("/stream")
    async def stream(
        body: dict[str, str],
        guard: AnswerGuard = Depends(guard),  # noqa: B008
    ) -> StreamingResponse:
        shown = guard.apieces(later(SAID[body["said"]]), QUESTION, PASSAGES)
        return StreamingResponse("data: " + piece + "\n\n" async for piece in shown)

    with serving(app) as url:
        return _asked(url, said, streamed)


def flask_app(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask a Flask application with the extension."""
    app = flask.Flask("shop")
    client = GuardrailClient(ground.guard, api_key=ground.key, max_retries=0)
    GuardrailExtension(app, [*map(_patiently, ["/ask", "/stream"])], client=client)

    @app.post("/ask")
    def ask() -> Any:
        flask.request.environ["guardrail"]["contexts"] = PASSAGES
        return {"answer": SAID[flask.request.json["said"]]}  # type: ignore[index]

    @app.post("/stream")
    def stream() -> Any:
        flask.request.environ["guardrail"]["contexts"] = PASSAGES
        said = pieces(SAID[flask.request.json["said"]])  # type: ignore[index]
        return flask.Response(map("data: {}\n\n".format, said), mimetype="text/event-stream")

    with serving_wsgi(app) as url:
        return _asked(url, said, streamed)


def django_app(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask a Django project whose application is guarded."""
    with project(ground), serving_wsgi(guarded_wsgi_application()) as url:
        return _asked(url, said, streamed)


def django_async(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask a Django project whose asynchronous application is guarded."""
    with project(ground), serving(guarded_asgi_application(), lifespan="off") as url:
        return _asked(url, said, streamed)


def set_up() -> None:
    """Set up the one project that a process can have; its guard is told by each test."""
    if not django_settings.configured:
        django_settings.configure(ROOT_URLCONF=__name__, SECRET_KEY="x", ALLOWED_HOSTS=["*"])
        django.setup()


@contextmanager
def project(ground: Ground) -> Iterator[None]:
    """Guard the project; the key is in the environment."""
    set_up()
    guardrail = {"url": ground.guard, "routes": [*map(_patiently, ["/ask", "/stream"])]}
    key = {"GUARDRAIL_API_KEY": ground.key}
    with patch.dict(os.environ, key), override_settings(GUARDRAIL=guardrail):
        yield


@csrf_exempt
def _ask(request: HttpRequest) -> JsonResponse:
    answer, _own(request)["contexts"] = TOLD[_said(request)]
    return JsonResponse({"answer": answer})


@csrf_exempt
def _stream(request: HttpRequest) -> StreamingHttpResponse:
    text, _own(request)["contexts"] = TOLD[_said(request)]
    parts: Any = map("data: {}\n\n".format, pieces(text))
    if "guardrail" not in request.META:
        parts = (f"data: {piece}\n\n" async for piece in later(text))
    return StreamingHttpResponse(parts, content_type="text/event-stream")


def _own(request: Any) -> Any:
    """Return the guard's place in a request; ASGI has it in the scope."""
    return request.META["guardrail"] if "guardrail" in request.META else request.scope["guardrail"]


def _said(request: HttpRequest) -> str:
    return str(json.loads(request.body)["said"])


urlpatterns = [django_path("ask", _ask), django_path("stream", _stream)]


async def later(text: str) -> AsyncIterator[str]:
    """Yield a text in pieces."""
    for piece in pieces(text):
        yield piece


def _patiently(path: str) -> Route:
    return Route(path, timeout=PATIENCE_S, sse="text")


def _asked(url: str, said: str, streamed: bool) -> Seen:
    body = {"said": said, "question": QUESTION}
    if not streamed:
        reply = httpx.post(f"{url}/ask", json=body, timeout=PATIENCE_S).json()
        return Seen(reply["answer"], reply)
    text = httpx.post(f"{url}/stream", json=body, timeout=PATIENCE_S).text
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return Seen("".join(line for line in lines if not line.startswith("{")), text)


WEB = [
    Adapter("fastapi", "`Depends(AnswerGuard())`", "web.md", fastapi, BOTH,
            "`shown` or `apieces` must be called where an answer is sent"),
    Adapter("flask", "`GuardrailExtension`", "web.md", flask_app, BOTH),
    Adapter("django", "`guarded_wsgi_application`", "web.md", django_app, BOTH),
    Adapter("django", "`guarded_asgi_application`", "web.md", django_async, BOTH),
]  # fmt: skip
