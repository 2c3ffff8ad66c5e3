"""Applications that know nothing of a guard, on real ports of this machine."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import uvicorn
from flask import Flask
from flask import Response as FlaskResponse
from flask import request as asked
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route

from tests.integration.conftest import PATIENCE_S, until

ADDRESS = "anna.berg@harbour-hotel.example"
PASSAGES = ["Guests may stay for two weeks at most.", {"id": "p#2", "text": "The pool opens."}]
CLEAN = "Guests may stay for two weeks at most. The pool opens at seven in the morning."
LEAK = f"Guests may stay for two weeks. Write to {ADDRESS} for more. The pool opens at noon."
SECRET = "Guests may stay for two weeks. The key is AKIA3FY2HCUKSR6LZQKV here. The pool opens."
SAYS = {"clean": CLEAN, "leak": LEAK, "secret": SECRET, "long": (CLEAN + " ") * 30, "blank": " "}

ODD_TYPE = "text/plain; charset=utf8mb4"


async def answer(request: Request) -> Response:
    """A JSON answer with its passages."""
    body = await request.json()
    document = {"id": 7, "answer": SAYS[body["say"]], "contexts": PASSAGES, "note": "unchanged"}
    return JSONResponse(document, headers={"ETag": '"abc"', "X-App": "1"})


async def nested(request: Request) -> Response:
    """An answer where chat completions have it."""
    body = await request.json()
    content = SAYS[body["messages"][-1]["content"]]
    return JSONResponse({"choices": [{"index": 0, "message": {"content": content}}]})


async def compressed(request: Request) -> Response:
    """An answer that is compressed whether or not the client asked for it."""
    data = json.dumps({"answer": SAYS[request.query_params["say"]]}).encode()
    return Response(
        gzip.compress(data), media_type="application/json", headers={"Content-Encoding": "gzip"}
    )


async def unknown_encoding(request: Request) -> Response:
    """An answer that nobody can read."""
    return Response(b"xx", media_type="application/json", headers={"Content-Encoding": "zz"})


async def huge(request: Request) -> Response:
    """A document of 300 KB, in pieces."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"answer": "'
        for _ in range(300):
            yield b"a " * 512
        yield b'"}'

    return StreamingResponse(pieces(), media_type="application/json")


async def page(request: Request) -> Response:
    """A page, which is no answer."""
    return Response(f"<p>{ADDRESS}</p>", media_type="text/html", headers={"ETag": '"page"'})


async def broken(request: Request) -> Response:
    """An error with a body of its own."""
    return JSONResponse({"answer": ADDRESS}, 500)


async def elsewhere(request: Request) -> Response:
    """A redirect."""
    return RedirectResponse("/page")


def pieces_of(text: str, size: int = 5) -> Iterator[str]:
    """Yield a text as a model writes it."""
    for at in range(0, len(text), size):
        yield text[at : at + size]


def chunk(index: int = 0, reason: str | None = None, **delta: Any) -> str:
    """Return one event of a chat completion."""
    document = {
        "id": "c-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": index, "delta": delta, "finish_reason": reason}],
    }
    return f"data: {json.dumps(document)}\n\n"


async def chat(request: Request) -> Response:
    """A chat completion, streamed as OpenAI does."""
    body = await request.json()
    request.scope["guardrail"]["contexts"] = PASSAGES
    says = [SAYS[name] for name in body["messages"][-1]["content"].split()]

    async def events() -> AsyncIterator[str]:
        yield ": hello\n\n"
        for index in range(len(says)):
            yield chunk(index, role="assistant", content="")
        for index, text in enumerate(says):
            for piece in pieces_of(text):
                yield chunk(index, content=piece)
                await asyncio.sleep(0)
        for index in range(len(says)):
            yield chunk(index, "stop")
        yield 'data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m",'
        yield '"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}\n\n'
        yield "data: [DONE]\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


async def events(request: Request) -> Response:
    """Plain events, one piece of text each."""
    text = SAYS[request.query_params["say"]]

    async def lines() -> AsyncIterator[str]:
        for piece in pieces_of(text):
            yield f"data: {piece}\r\n\r\n"
        yield "event: done\r\ndata: [DONE]\r\n\r\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


async def text(request: Request) -> Response:
    """Chunked plain text, cut inside of characters."""
    data = f"Grüße! {SAYS[request.query_params['say']]}".encode()

    async def parts() -> AsyncIterator[bytes]:
        for at in range(0, len(data), 3):
            yield data[at : at + 3]
            await asyncio.sleep(0)

    return StreamingResponse(parts(), media_type="text/plain; charset=utf-8")


async def odd(request: Request) -> Response:
    """Plain text in a charset that its header calls by the name of a database."""
    return Response(SAYS[request.query_params["say"]], media_type=ODD_TYPE)


async def western(request: Request) -> Response:
    """Plain text in another charset than UTF-8."""
    data = f"Grüße! {SAYS[request.query_params['say']]}".encode("latin-1")
    return Response(data, headers={"Content-Type": "text/plain; charset=latin-1"})


async def wide(request: Request) -> Response:
    """Plain text in a charset that begins with a byte-order mark, cut inside of characters."""
    data = f"Grüße! {SAYS[request.query_params['say']]}".encode("utf-16")

    async def parts() -> AsyncIterator[bytes]:
        for at in range(0, len(data), 5):
            yield data[at : at + 5]
            await asyncio.sleep(0)

    return StreamingResponse(parts(), headers={"Content-Type": "text/plain; charset=utf-16"})


async def shifted(request: Request) -> Response:
    """Plain text in a charset that must say when it is over; its last letter may go on."""
    data = f"{SAYS[request.query_params['say']]} か".encode(request.query_params["charset"])

    async def parts() -> AsyncIterator[bytes]:
        for at in range(0, len(data), 5):
            yield data[at : at + 5]

    kind = f"text/plain; charset={request.query_params['charset']}"
    return StreamingResponse(parts(), headers={"Content-Type": kind})


async def file(request: Request) -> Response:
    """Plain text from a file."""
    return FileResponse(request.query_params["path"], media_type="text/plain")


async def insistent(request: Request) -> Response:
    """A file for the server to send, whether or not it can."""

    class Insistent(Response):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            headers = [(b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.pathsend", "path": request.query_params["path"]})

    return Insistent()


SEEN = threading.Event()
"""Set by the reader of `/paced` when the first part has arrived."""


async def paced(request: Request) -> Response:
    """Plain text whose second half is written when somebody has seen something of the first."""

    async def parts() -> AsyncIterator[str]:
        yield CLEAN + " "
        assert await asyncio.to_thread(SEEN.wait, PATIENCE_S)
        yield CLEAN

    return StreamingResponse(parts(), media_type="text/plain")


async def crash(request: Request) -> Response:
    """Plain text of a model that dies in the middle of an address."""

    async def parts() -> AsyncIterator[str]:
        yield CLEAN + " "
        yield LEAK[: LEAK.index("@") + 3]
        await asyncio.sleep(0.05)
        raise RuntimeError("out of memory")

    return StreamingResponse(parts(), media_type="text/plain")


ROUTES = [
    Route("/answer", answer, methods=["POST"]),
    Route("/nested", nested, methods=["POST"]),
    Route("/compressed", compressed),
    Route("/unknown", unknown_encoding),
    Route("/huge", huge),
    Route("/page", page),
    Route("/broken", broken),
    Route("/elsewhere", elsewhere),
    Route("/v1/chat/completions", chat, methods=["POST"]),
    Route("/events", events),
    Route("/text", text),
    Route("/odd", odd),
    Route("/western", western),
    Route("/wide", wide),
    Route("/shifted", shifted),
    Route("/file", file),
    Route("/insistent", insistent),
    Route("/crash", crash),
    Route("/paced", paced),
]


def application(close: Callable[[], Awaitable[None]] | None = None) -> Starlette:
    """Return the application, unguarded.

    Args:
        close: Called on its own loop when it shuts down.
    """

    return Starlette(routes=ROUTES, lifespan=closing(close))


def mounted(path: str, app: Any, close: Callable[[], Awaitable[None]]) -> Starlette:
    """Return an application with another one under a path."""
    return Starlette(routes=[Mount(path, app)], lifespan=closing(close))


def closing(close: Callable[[], Awaitable[None]] | None) -> Any:
    """Return a lifespan that ends with a call."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        if close is not None:
            await close()

    return lifespan


@contextmanager
def serving(app: Any, **settings: Any) -> Iterator[str]:
    """Serve an ASGI application on a free port, from a thread, and yield its address."""
    config = uvicorn.Config(  # logging is not ours
        app, port=0, log_config=None, loop="asyncio", **settings
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started, "the host listens")
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


def sending_files(app: Any) -> Any:
    """Return an application behind what a server does that sends files itself."""

    async def call(scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            if message["type"] == "http.response.pathsend":
                data = await asyncio.to_thread(Path(message["path"]).read_bytes)
                message = {"type": "http.response.body", "body": data}
            await send(message)

        extensions = {"http.response.pathsend": {}, "http.response.zerocopysend": {}}
        await app({**scope, "extensions": extensions}, receive, sent)

    return call


def flask_application() -> Flask:
    """Return an application of another kind."""
    app = Flask(__name__)

    @app.post("/answer")
    def flask_answer() -> Any:
        body = asked.get_json()
        return {"answer": SAYS[body["say"]], "contexts": PASSAGES}

    @app.get("/page")
    def flask_page() -> Any:
        return f"<p>{ADDRESS}</p>"

    @app.get("/broken")
    def flask_broken() -> Any:
        return {"answer": ADDRESS}, 500

    @app.post("/chat")
    def flask_chat() -> Any:
        says = SAYS[asked.get_json()["messages"][-1]["content"]]

        def written() -> Iterator[str]:
            yield chunk(role="assistant", content="")
            yield from (chunk(content=piece) for piece in pieces_of(says))
            yield chunk(0, "stop")
            yield "data: [DONE]\n\n"

        return FlaskResponse(written(), mimetype="text/event-stream")

    @app.get("/text")
    def flask_text() -> Any:
        return FlaskResponse(pieces_of(SAYS[asked.args["say"]]), mimetype="text/plain")

    @app.get("/odd")
    def flask_odd() -> Any:
        return FlaskResponse(pieces_of(SAYS[asked.args["say"]]), content_type=ODD_TYPE)

    @app.get("/wide")
    def flask_wide() -> Any:
        data = SAYS[asked.args["say"]].encode("utf-16")
        pieces = (data[at : at + 5] for at in range(0, len(data), 5))
        return FlaskResponse(pieces, content_type="text/plain; charset=utf-16")

    @app.get("/shifted")
    def flask_shifted() -> Any:
        data = f"{SAYS[asked.args['say']]} か".encode(asked.args["charset"])
        pieces = (data[at : at + 5] for at in range(0, len(data), 5))
        return FlaskResponse(pieces, content_type=f"text/plain; charset={asked.args['charset']}")

    return app


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test output quiet."""


@contextmanager
def serving_wsgi(app: Callable[..., Any]) -> Iterator[str]:
    """Serve a WSGI application on a free port and yield its address."""
    with make_server("127.0.0.1", 0, app, handler_class=_Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
