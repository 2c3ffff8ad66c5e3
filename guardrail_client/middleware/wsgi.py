"""WSGI middleware, for Flask and its like: the same rules, in the request's own thread."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any

from guardrail_client.circuit import with_circuit
from guardrail_client.client import GuardrailClient
from guardrail_client.errors import GuardrailError
from guardrail_client.middleware import bodies, documents, replies
from guardrail_client.middleware.bodies import Header, UnreadableBody
from guardrail_client.middleware.documents import Document, FoundText
from guardrail_client.middleware.exchange import Exchange, queried
from guardrail_client.middleware.metrics import StreamTimes
from guardrail_client.middleware.outcome import NO_ANSWER, AnswerOutcome, unchecked
from guardrail_client.middleware.replies import LOG, Verdict
from guardrail_client.middleware.route_options import Route, counted, matching
from guardrail_client.middleware.shapes import Framing
from guardrail_client.middleware.wsgi_texts import StreamedTexts
from guardrail_client.stream import CheckStream

_UNASKED = ("HTTP_ACCEPT_ENCODING", "HTTP_RANGE", "HTTP_IF_RANGE")
_SOCKETS = ("werkzeug.socket", "gunicorn.socket", "eventlet.input", "wsgi.websocket")
"""Ways of servers by which something could leave unseen."""
Environ = dict[str, Any]
Start = Callable[..., Any]
App = Callable[[Environ, Start], Iterable[bytes]]


class GuardrailWSGI:
    """Checks the answers of some endpoints before they are sent.

    Texts of a streamed response are judged one after the other: one that goes on after another has
    begun stops it.
    Shadow mode judges after the last byte, before the thread is free again.

    Args:
        app: The application.
        client: Asks the guard. The caller closes it.
        routes: Which endpoints, and how; the first that matches counts.
        metrics: A registry of prometheus_client, or a function of name, labels and value, that
            counts what happens on routes without metrics of their own.
    """

    def __init__(
        self, app: App, client: GuardrailClient, routes: Sequence[Route], *, metrics: Any = None
    ) -> None:
        self._app = app
        self._client = with_circuit(client)
        self.routes = counted(routes, metrics)

    def __call__(self, environ: Environ, start_response: Start) -> Iterable[bytes]:
        """Serve one request."""
        path = _text(environ, "PATH_INFO")
        route = matching(self.routes, path, _text(environ, "SCRIPT_NAME") + path)
        if route is None:
            return self._app(environ, start_response)
        if str(environ.get("HTTP_UPGRADE", "")).lower() == "websocket":
            return self._connected(route, path, environ, start_response)
        return _Guarded(self._client, route, environ, start_response).serve(self._app)

    def _connected(
        self, route: Route, path: str, environ: Environ, start_response: Start
    ) -> Iterable[bytes]:
        """Let a WebSocket pass unread where the route says so; else refuse it.

        Its frames leave through the server's socket, beside WSGI.
        """
        if route.websocket == "unchecked":
            outcome = AnswerOutcome(path, "as_is", None, "unchecked_websocket")
            LOG.warning("answer not checked, as_is: %s", outcome.error)
            route.report(outcome)
            return self._app(environ, start_response)
        outcome = AnswerOutcome(path, "replaced", None, "websocket")
        LOG.warning("answer not checked, replaced: %s", outcome.error)
        route.report(outcome)
        start_response("403 Forbidden", [("Content-Length", "0")])
        return []


def _text(environ: Environ, name: str) -> str:
    """Return a path: WSGI gives its UTF-8 as if it were Latin-1."""
    return str(environ.get(name, "")).encode("latin-1", "replace").decode("utf-8", "replace")


class _Guarded:
    """One request on its way."""

    def __init__(
        self, client: GuardrailClient, route: Route, environ: Environ, start_response: Start
    ) -> None:
        self._client = client
        self._environ = environ
        self._start_response = start_response
        self._status = "500 "
        self._headers: list[Header] = []
        for name in (*_UNASKED, *_SOCKETS):
            environ.pop(name, None)
        self.exchange = Exchange(
            _text(environ, "PATH_INFO"),
            queried(environ.get("QUERY_STRING", "")),
            own=environ.setdefault("guardrail", {}),
            accepted=str(environ.get("HTTP_ACCEPT_LANGUAGE", "")),
        )
        self._route = route.for_reader(self.exchange)
        with suppress(UnreadableBody):
            self.exchange.request = documents.strict_json(self._asked())

    def _asked(self) -> bytes:
        """Return the request's body and put it back for the application."""
        length = str(self._environ.get("CONTENT_LENGTH") or "0")
        size = int(length) if length.isdecimal() else 0
        if not size or size > self._route.max_bytes:
            return b""
        data: bytes = self._environ["wsgi.input"].read(size)
        self._environ["wsgi.input"] = io.BytesIO(data)
        return data

    def serve(self, app: App) -> Iterator[bytes]:
        """Yield the response."""
        chunks = app(self._environ, self._on_start)
        try:
            yield from self._sent(iter(chunks))
        finally:
            if hasattr(chunks, "close"):
                chunks.close()

    def _on_start(self, status: str, headers: list[tuple[str, str]], exc: Any = None) -> Any:
        if exc is not None and self._headers:
            raise exc[1].with_traceback(exc[2])
        self._status = status
        self._headers = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers]
        return _no_write

    def _sent(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        first = next(chunks, b"")  # applications may say the status as late as here
        everything = _chained(first, chunks)
        if replies.bodiless(self._environ["REQUEST_METHOD"], self._code):
            yield from self._begun(bodies.own(self._headers), (b"" for _ in everything))
        elif self._code >= 400:
            is_own = bodies.own(self._headers) == self._headers
            check = self._error if is_own else _unread(bodies.ELSEWHERE)
            yield from self._collected(everything, check)
        elif self._code >= 300:
            yield from self._begun(bodies.rewritten(self._headers, 0), [])
        else:
            yield from self._readable(everything)

    @property
    def _code(self) -> int:
        return int(self._status.split(" ")[0])

    def _readable(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        try:
            framing = bodies.framing(self._headers, self._route.types)
        except UnreadableBody as error:
            yield from self._collected(chunks, _unread(error.code))
            return
        if bodies.is_encoded_stream(framing, self._headers):
            yield from self._collected(chunks, _unread("encoded_stream"))
        elif framing == "json":
            yield from self._collected(chunks, self._json)
        elif framing == "unchecked":
            outcome = AnswerOutcome(self.exchange.path, "as_is", None, "unchecked_type")
            LOG.warning("answer not checked, as_is: %s", outcome.error)
            self._route.report(outcome)
            yield from self._begun(bodies.added(self._headers, outcome.headers()), chunks)
        else:
            yield from self._stream(chunks, framing)

    def _begun(self, headers: Iterable[Header], chunks: Iterable[bytes]) -> Iterator[bytes]:
        shown = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in headers]
        self._start_response(self._status, shown)
        yield from chunks

    def _collected(
        self, chunks: Iterator[bytes], check: Callable[[bytes], tuple[AnswerOutcome, bytes | None]]
    ) -> Iterator[bytes]:
        """Yield a body that is sent when it is whole, or another in its place."""
        data = b""
        try:
            for chunk in chunks:
                data += chunk
                if len(data) > self._route.max_bytes:
                    raise UnreadableBody("too_large")
            outcome, changed = check(data)
        except UnreadableBody as error:
            yield from self._without_verdict(error.code, data, chunks)
            return
        headers = self._headers
        if changed is not None:
            headers = bodies.rewritten(headers, len(changed))
        self._route.report(outcome)
        yield from self._begun(
            bodies.added(headers, outcome.headers()), [data if changed is None else changed]
        )

    def _json(self, data: bytes) -> tuple[AnswerOutcome, bytes | None]:
        document = replies.read_reply(self._route, self._headers, data, self.exchange)
        said = self._verdicts(document) if document.texts else []
        return replies.answered(self._route, self.exchange.path, document, said)

    def _error(self, data: bytes) -> tuple[AnswerOutcome, bytes | None]:
        return replies.failed(self._route, self.exchange.path, self._code, self._headers, data)

    def _verdicts(self, document: Document) -> list[Verdict]:
        timeout = self._route.timeout
        try:
            asked = replies.items(self._route, self.exchange, document)
            with self._route.timed():
                if len(asked) == 1:
                    options: Any = dict(asked[0])
                    return [self._client.check(options.pop("answer"), timeout=timeout, **options)]
                return [*self._client.check_many(asked, timeout=timeout)]
        except (GuardrailError, TypeError, ValueError) as error:
            return [error] * len(document.texts)

    def _without_verdict(self, code: str, data: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
        outcome, error = replies.without_verdict(self._route, self.exchange.path, code)
        self._route.report(outcome)
        if outcome.shown == "as_is":
            headers = bodies.added(self._headers, outcome.headers())
            yield from self._begun(headers, _chained(data, iter(rest)))
            return
        if self._code < 400:
            self._status = "502 Bad Gateway"
        headers = replies.refusing(self._headers, error)
        yield from self._begun(bodies.added(headers, outcome.headers()), [error])

    def _stream(self, chunks: Iterator[bytes], framing: Framing) -> Iterator[bytes]:
        texts = StreamedTexts(chunks, framing, bodies.charset(self._headers), self._route)
        headers = bodies.rewritten(self._headers, None)
        headers = bodies.added(headers, [("X-Guardrail-Decision", "streaming")])
        shadow = self._route.mode == "shadow"
        yield from self._begun(headers, texts.copied() if shadow else self._guarded(texts))
        if shadow and texts.seen.strip():
            document = Document(None, [FoundText(texts.seen, ())])
            said = self._verdicts(document)
            outcome, _ = replies.answered(self._route, self.exchange.path, document, said)
            self._route.report(outcome)

    def _guarded(self, texts: StreamedTexts) -> Iterator[bytes]:
        route, path = self._route, self.exchange.path
        outcome = None
        try:
            while texts.begins():
                yield from texts.passed()
                with closing(texts.tokens()) as tokens:
                    outcome = yield from self._shown(texts, tokens)
                if outcome is None:
                    continue
                if outcome.shown == "replaced":
                    break
                route.report(outcome)
            else:
                yield from texts.passed(decided=True)
                yield from texts.left()
                return
        except (GuardrailError, UnreadableBody, TypeError) as error:
            outcome = AnswerOutcome(path, "replaced", None, unchecked(route, path, error).error)
            LOG.warning("stream not checked to its end, replaced: %s", outcome.error)
        route.report(outcome)
        yield texts.stopped(route.fallback_for(outcome), outcome) + texts.tail()

    def _shown(
        self, texts: StreamedTexts, tokens: Iterator[str]
    ) -> Generator[bytes, None, AnswerOutcome | None]:
        """Yield a text as far as it may be shown, and what waited for it."""
        first = next(tokens, "")
        if not first.strip():
            yield texts.shown(first)
            return None
        if self._route.hold == "all":
            outcome, text = self._verdict(first + "".join(tokens))
            if outcome.shown != "replaced":
                yield texts.shown(text, texts.size)
        else:
            with self._checked(_chained(first, tokens)) as stream:
                for text in _timed(stream, self._route.begun()):
                    yield texts.shown(text, None if stream.error else stream.processed)
                    yield from texts.repeated()
                outcome = replies.ended(self.exchange.path, stream)
        if outcome.shown != "replaced":
            yield texts.done(outcome)
            yield from texts.passed(decided=True)
        return outcome

    def _verdict(self, text: str) -> tuple[AnswerOutcome, str]:
        verdict = self._verdicts(Document(None, [FoundText(text, ())]))[0]
        return replies.treated(self._route, self.exchange.path, text, verdict)

    def _checked(self, tokens: Iterator[str]) -> CheckStream:
        route = self._route
        return self._client.check_stream(
            tokens,
            **route.about(self.exchange),
            sentence_deadline_ms=route.sentence_deadline_ms,
            stop_on=route.stop_on,
            on_error=route.on_error,
            timeout=route.timeout,
        )


def _unread(code: str) -> Callable[[bytes], tuple[AnswerOutcome, bytes | None]]:
    """Return the check of a body that cannot be checked, unless it is empty."""

    def check(data: bytes) -> tuple[AnswerOutcome, bytes | None]:
        if data or code == bodies.ELSEWHERE:
            raise UnreadableBody(code)
        return AnswerOutcome("", "as_is", None, NO_ANSWER), None

    return check


def _timed(stream: CheckStream, times: StreamTimes) -> Iterator[str]:
    """Yield the texts of a stream and take its times."""
    try:
        for text in stream:
            times.shown()
            yield text
    finally:
        times.ended(stream.waited)


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _no_write(_data: bytes) -> None:
    raise TypeError("the write callable of WSGI's start_response is not supported here")
