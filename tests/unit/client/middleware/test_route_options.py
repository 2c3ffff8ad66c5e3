"""Which route a request belongs to, wherever the application is mounted."""

from __future__ import annotations

import pytest

from guardrail_client.middleware import Route
from guardrail_client.middleware.route_options import matching, paths


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/ask", "", ["/ask"]),
        ("/api/ask", "", ["/api/ask"]),
        ("/api/ask", "/api", ["/api/ask", "/ask"]),
        ("/ask", "/api", ["/ask"]),
        ("/apiask", "/api", ["/apiask"]),
        ("/api", "/api", ["/api", "/"]),
        ("/api//ask", "/api/", ["/api//ask", "/ask", "//ask"]),
        ("/api/ask", "/api/", ["/api/ask", "/ask"]),
        ("/api/api/ask", "/api", ["/api/api/ask", "/api/ask"]),
        ("/ask", "/", ["/ask"]),
    ],
)
def test_a_root_path_is_taken_off_once(path: str, root: str, expected: list[str]) -> None:
    """Only where it is one, at the border of a part."""
    assert paths(path, root) == expected


def test_the_first_route_counts_under_whichever_path() -> None:
    """Not the first path."""
    mounted, inner = Route("/api/ask"), Route("/ask")
    assert matching([inner, mounted], "/api/ask", "/ask") is inner
    assert matching([mounted, inner], "/api/ask", "/ask") is mounted
    assert matching([Route("/v2/*")], "/api/ask", "/ask") is None
