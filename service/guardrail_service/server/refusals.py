"""Reasons for which connections are refused or ended before anybody has said who it is."""

from __future__ import annotations

from prometheus_client import Counter

REFUSALS = {
    "connections": "connections: too many in all, health only for the next",
    "connections_per_caller": "connections: too many of one address, health only for its next",
    "health_connections": "connections: too many that may ask for health only, the oldest ended",
    "open_files": "connections: the last open file is taken, further ones are closed at once",
    "header_bytes": "connections: a request's head is too long",
    "malformed": "connections: what came is not HTTP",
    "header_time": "connections: a request's head took too long",
    "idle": "connections: nothing came for too long",
    "unread": "connections: a reply was not read for too long",
    "tls_ended": "connections: a client over TLS left or ended its half before its reply; "
    "none follows",
}
"""Why a connection is refused, and what the log says of it."""


def refusals() -> Counter:
    """Return the count of refused connections by reason, in no registry yet."""
    counter = Counter(
        "guardrail_connections_refused",
        "Connections refused or ended by a limit, by reason.",
        ["reason"],
        registry=None,
    )
    for reason in REFUSALS:
        counter.labels(reason)
    return counter
