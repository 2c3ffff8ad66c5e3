"""The door of the studio: who may come in, and which requests are his own.

Every request passes `Door`, which holds four rules that no page has to remember.

- The Host header names this studio. A page of somebody else's that has pointed its own name at
  this machine (DNS rebinding) sends its own name.
- Without a session there is nothing but signing in. A session begins with a one-time token from
  the terminal on loopback, with a key elsewhere. The browser holds it in a cookie that no script
  reads and that no other site's page sends.
- A request that changes something carries the session's CSRF token, and comes from this origin.
- Every reply says what a browser may do with it: no script but the studio's own files, no frame,
  no other host.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
LARGEST_BODY = 4_000_000
"""Bytes: a question, an answer and passages at the service's limits, written as JSON."""
OPEN_PATHS = ("/static/", "/enter", "/sign-in")
TOKEN_S = 3_600.0
"""Seconds in which an invitation may be used; the token of the start has no end."""
SESSION_S = 12 * 3_600.0
"""Seconds without a request after which a session ends."""
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer a form says "Origin: null"
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
ALL_RIGHTS = frozenset({"decisions", "feedback", "admin"})


@dataclass
class StudioSession:
    """One browser that has come in.

    Attributes:
        rights: As a caller's; on loopback all of them.
        csrf: What a request that changes something must carry.
        person: The name that labels carry; empty until it is given.
        key_digest: Of the key that opened it, None on loopback.
        last_s: Monotonic second of the latest request.
    """

    rights: frozenset[str]
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    person: str = ""
    key_digest: str | None = None
    last_s: float = field(default_factory=time.monotonic)


FindRights = Callable[[str], tuple[str, frozenset[str]] | None]
"""Given a key, its id and rights; None for a key that is unknown, revoked or expired."""


class Access:
    """One-time tokens and sessions; in memory only, so that a restart ends them all.

    Args:
        port: Part of the cookie's name: browsers do not tell ports apart.
        find: How a key is looked up; None on loopback, where tokens open.
    """

    def __init__(self, port: int, find: FindRights | None = None) -> None:
        self.cookie = f"guardrail_studio_{port}"
        self.by_key = find is not None
        self._find = find
        self._tokens: dict[str, float | None] = {}
        self._sessions: dict[str, tuple[StudioSession, str | None]] = {}

    def new_token(self, *, lasting: bool = False) -> str:
        """Return a token that opens one session; without `lasting` it ends after an hour."""
        token = secrets.token_urlsafe(32)
        self._tokens[_digest(token)] = None if lasting else time.monotonic() + TOKEN_S
        return token

    def enter(self, token: str) -> str | None:
        """Use a token up; return the new session's secret, None if the token opens nothing."""
        end = self._tokens.pop(_digest(token), 0.0)
        if end is not None and end < time.monotonic():
            return None
        return self._begin(StudioSession(ALL_RIGHTS), None)

    def enter_with_key(self, key: str) -> str | None:
        """Return a new session's secret for a key with the right `decisions`, else None."""
        found = self._find(key) if self._find else None
        if found is None or "decisions" not in found[1]:
            return None
        return self._begin(StudioSession(found[1], person=found[0]), key)

    def session(self, secret: str) -> StudioSession | None:
        """Return a session by its secret; None once it has ended or its key was revoked."""
        place = _digest(secret)
        session, key = self._sessions.get(place, (None, None))
        if session is None:
            return None
        now = time.monotonic()
        if now - session.last_s > SESSION_S:
            del self._sessions[place]
            return None
        if key is not None:
            found = self._find(key) if self._find else None
            if found is None or "decisions" not in found[1]:
                del self._sessions[place]
                return None
            session.rights = found[1]
        session.last_s = now
        return session

    def leave(self, secret: str) -> None:
        """End a session."""
        self._sessions.pop(_digest(secret), None)

    def _begin(self, session: StudioSession, key: str | None) -> str:
        secret = secrets.token_urlsafe(32)
        self._sessions[_digest(secret)] = (session, key)
        return secret


class Door:
    """The ASGI middleware around every page.

    Args:
        app: The pages.
        access: Tokens and sessions.
        hosts: Values of the Host header that mean this studio, in lower case.
        secure: The browser reaches it by https only.
    """

    def __init__(
        self, app: ASGIApp, access: Access, hosts: frozenset[str], *, secure: bool = False
    ) -> None:
        self.app = app
        self.access = access
        self.hosts = hosts
        self.secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through to the pages, or answer it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # a WebSocket: the studio has none
            await send({"type": "websocket.close", "code": 1008})
            return
        send = _with_headers(send, scope["path"])
        headers = Headers(scope=scope)
        body = b"" if scope["method"] in ("GET", "HEAD") else await _body(receive)
        refusal = self._refusal(scope, headers, body)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self.app(scope, _again(body or b""), send)

    def _refusal(self, scope: Scope, headers: Headers, body: bytes | None) -> Response | None:
        """Return the reply to a request that may not pass, None for one that may."""
        scope.setdefault("state", {})
        if headers.get("host", "").lower() not in self.hosts:
            return PlainTextResponse("another Host than this studio's", 421)
        secret = _cookie(headers, self.access.cookie)
        session = self.access.session(secret) if secret else None
        scope["state"].update(session=session, secret=secret)
        writes = scope["method"] not in ("GET", "HEAD")
        if writes and (body is None or not self._same_origin(headers)):
            why = "more bytes than a page sends" if body is None else "a request of another site"
            return PlainTextResponse(why, 413 if body is None else 403)
        if scope["path"].startswith(OPEN_PATHS):
            return None
        if session is None:
            wants_page = "text/html" in headers.get("accept", "") and not writes
            return RedirectResponse("/sign-in", 303) if wants_page else PlainTextResponse(
                "sign in first", 401
            )  # fmt: skip
        if writes and not _carries(session.csrf, headers, body or b""):
            return PlainTextResponse("no token of this sign-in", 403)
        return None

    def _same_origin(self, headers: Headers) -> bool:
        site = headers.get("sec-fetch-site")
        if site is not None and site not in ("same-origin", "none"):
            return False
        origin = headers.get("origin")
        return origin is None or origin.partition("://")[2].lower() in self.hosts


def set_session(reply: Response, access: Access, secret: str, *, secure: bool) -> None:
    """Give a browser its session."""
    reply.set_cookie(
        access.cookie, secret, httponly=True, samesite="strict", path="/", secure=secure
    )


def form_fields(body: bytes) -> dict[str, str]:
    """Return the fields of a form as browsers send it; of several of one name the last."""
    text = body.decode("utf-8", "replace")
    return {k: v[-1] for k, v in parse_qs(text, keep_blank_values=True, max_num_fields=200).items()}


def _carries(csrf: str, headers: Headers, body: bytes) -> bool:
    given = headers.get("x-csrf-token")
    if given is None and headers.get("content-type", "").startswith(
        "application/x-www-form-urlencoded"
    ):
        try:
            given = form_fields(body).get("csrf")
        except ValueError:
            given = None
    return given is not None and hmac.compare_digest(given.encode(), csrf.encode())


def _cookie(headers: Headers, name: str) -> str | None:
    return cookie_parser(headers.get("cookie", "")).get(name)


async def _body(receive: Receive) -> bytes | None:
    """Return a request's body, None if it is too large or its sender has left."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > LARGEST_BODY:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _again(body: bytes) -> Receive:
    """Return what gives a body that was read already, then waits for the end as a server does."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive


def _with_headers(send: Send, path: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            if path.startswith("/static/"):
                headers["Cache-Control"] = "no-cache"
        await send(message)

    return sending


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest()
