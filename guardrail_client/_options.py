"""What a client is constructed with: address, key, budget, checked once."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

_PLACES = [Path(__file__).with_name("VERSION"), Path(__file__).parents[1] / "VERSION"]
"""In the wheel, and in a checkout."""
__version__ = next(path for path in _PLACES if path.exists()).read_text("utf-8").strip()
DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_TIMEOUT = 5.0
DEFAULT_RETRIES = 2


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Checked options. `headers` holds the key, so it is not in the repr."""

    url: str = field(default=DEFAULT_URL, repr=False)
    timeout: float = DEFAULT_TIMEOUT
    max_retries: int = DEFAULT_RETRIES
    policy: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def place(self) -> str:
        """Scheme, host and port, for messages: never the user:password part of an address."""
        url = httpx.URL(self.url)
        return f"{url.scheme}://{url.netloc.decode('ascii')}"


def make_options(
    base_url: str | None,
    api_key: str | None,
    timeout: float,
    max_retries: int,
    policy: str | None,
) -> ClientOptions:
    """Return checked options; address and key that are None come from the environment.

    Raises:
        ValueError: If an option cannot work. The message never holds the key.
    """
    if max_retries < 0:
        raise ValueError(f"max_retries: found {max_retries}, expected 0 or more")
    return ClientOptions(
        url=_checked_url(base_url or os.environ.get("GUARDRAIL_URL") or DEFAULT_URL),
        timeout=checked_timeout(timeout),
        max_retries=max_retries,
        policy=policy,
        headers=_headers(api_key or os.environ.get("GUARDRAIL_API_KEY") or ""),
    )


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


def _headers(api_key: str) -> dict[str, str]:
    headers = {"Accept": "application/json", "User-Agent": f"rag-guardrail-client/{__version__}"}
    key = api_key.strip()  # keys read from a file end in a newline
    if not (key.isascii() and key.isprintable()):
        raise ValueError("api_key: found characters that a header cannot carry")
    return headers | {"Authorization": f"Bearer {key}"} if key else headers
