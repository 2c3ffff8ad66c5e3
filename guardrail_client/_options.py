"""The options of a client: address, key, time budget and network, checked once."""

from __future__ import annotations

import math
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

_PLACES = [Path(__file__).with_name("VERSION"), Path(__file__).parents[1] / "VERSION"]
"""In the wheel, and in a checkout."""
__version__ = next(path for path in _PLACES if path.exists()).read_text("utf-8").strip()
DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_TIMEOUT = 5.0
DEFAULT_RETRIES = 2
LENT = httpx.Limits(max_connections=None, max_keepalive_connections=0)
"""Of connections for streams: each has its own, and none is left behind."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Checked options. `headers` holds the key, so it is not in the repr."""

    url: str = field(default=DEFAULT_URL, repr=False)
    timeout: float = DEFAULT_TIMEOUT
    max_retries: int = DEFAULT_RETRIES
    policy: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def address(self, path: str) -> str:
        """Return the address of an endpoint."""
        return self.url.rstrip("/") + path

    @property
    def place(self) -> str:
        """Scheme, host and port, for messages: never the user:password part of an address."""
        url = httpx.URL(self.url)
        return f"{url.scheme}://{url.netloc.decode('ascii')}"


def make_options(
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    max_retries: int = DEFAULT_RETRIES,
    policy: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> ClientOptions:
    """Return checked options; address and key that are None come from the environment.

    Raises:
        ValueError: If an option cannot work. The message never holds the key or a header's value.
    """
    if max_retries < 0:
        raise ValueError(f"max_retries: found {max_retries}, expected 0 or more")
    key = api_key or os.environ.get("GUARDRAIL_API_KEY") or ""
    return ClientOptions(
        url=_checked_url(base_url or os.environ.get("GUARDRAIL_URL") or DEFAULT_URL),
        timeout=checked_timeout(timeout),
        max_retries=max_retries,
        policy=policy,
        headers=_headers(key, headers or {}),
    )


def network_arguments(
    transports: type[httpx.HTTPTransport] | type[httpx.AsyncHTTPTransport],
    *,
    verify: bool | str | ssl.SSLContext,
    proxy: str | httpx.Proxy | None,
    uds: str | None,
    transport: object | None,
    http_client: object | None,
) -> dict[str, Any]:
    """Return the arguments with which httpx clients reach the service.

    Args:
        transports: httpx's, of the client's kind.
        verify: As httpx takes it, or the path of a file with the authorities to trust.
        proxy: As httpx takes it.
        uds: Path of a unix socket.
        transport: Replaces all of these.
        http_client: Replaces all of these.

    Raises:
        ValueError: If two of them exclude each other.
    """
    given = {
        "http_client": http_client is not None,
        "transport": transport is not None,
        "uds": uds is not None,
        "proxy": proxy is not None,
        "verify": verify is not True,
    }
    names = [name for name, found in given.items() if found]
    if len(names) > 1 and names != ["uds", "verify"] and names != ["proxy", "verify"]:
        raise ValueError(f"{names[0]} and {names[1]}: found both, expected at most one of them")
    if transport is not None:
        return {"transport": transport}
    trusted: Any = verify
    if isinstance(verify, str):
        trusted = ssl.create_default_context(cafile=verify)
    elif verify is True:
        trusted = httpx.create_ssl_context()  # slow, so made once for calls and streams
    if uds is not None:
        return {"transport": transports(uds=uds, verify=trusted)}
    return {"verify": trusted, "proxy": proxy}


def checked_timeout(timeout: float) -> float:
    """Return a number of seconds that a call can be given."""
    if not (math.isfinite(timeout) and timeout > 0):
        raise ValueError(f"timeout: found {timeout}, expected seconds above 0")
    return timeout


def _checked_url(url: str) -> str:
    parsed = httpx.URL(url)
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError("base_url: expected http:// or https:// and a host, found something else")
    return url


def _headers(api_key: str, more: Mapping[str, str]) -> dict[str, str]:
    headers = {"Accept": "application/json", "User-Agent": f"rag-guardrail-client/{__version__}"}
    key = api_key.strip()  # keys read from a file end in a newline
    if not (key.isascii() and key.isprintable()):
        raise ValueError("api_key: found characters that a header cannot carry")
    if key:
        headers["Authorization"] = f"Bearer {key}"
    for name, value in more.items():
        if not (name.isascii() and name.isprintable() and value.isascii() and value.isprintable()):
            raise ValueError("headers: found characters that a header cannot carry")
        headers = {k: v for k, v in headers.items() if k.lower() != name.lower()} | {name: value}
    return headers
