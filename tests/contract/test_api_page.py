"""The page /docs works where there is no network."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from starlette.testclient import TestClient

from guardrail_service.server.api_page import ASSETS, START


class _Addresses(HTMLParser):
    """Collects what a page loads, and scripts that stand in it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inline = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        named = dict(attrs)
        self.found += [value for key in ("src", "href") if (value := named.get(key))]
        self.inline += tag == "style" or (tag == "script" and "src" not in named)


def test_the_page_loads_only_what_the_service_has(http: TestClient) -> None:
    """Relative addresses without a host, and each is answered."""
    reply = http.get("/docs")
    assert reply.status_code == 200
    addresses = _Addresses()
    addresses.feed(reply.text)
    assert addresses.inline == 0
    assert len(addresses.found) == 4
    for address in addresses.found:
        assert "//" not in address
        asset = http.get(f"/{address}")
        assert asset.status_code == 200, address
        assert len(asset.content) > 80
        assert asset.headers["X-Content-Type-Options"] == "nosniff"


def test_its_scripts_and_styles_have_types_a_browser_runs(http: TestClient) -> None:
    """With nosniff, a script of another type is not run."""
    assert {name: http.get(f"/docs/{name}").headers["Content-Type"] for name in ASSETS} == {
        "favicon.png": "image/png",
        "swagger-ui.css": "text/css; charset=utf-8",
        "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    }


def test_the_schema_it_shows_is_the_service_s_own(http: TestClient) -> None:
    """Named in the script that starts the page, and no checker elsewhere is asked."""
    assert 'url: "openapi.json"' in http.get("/docs/start.js").text
    assert "validatorUrl: null" in START
    assert http.get("/openapi.json").status_code == 200


@pytest.mark.parametrize("path", ["/docs", "/docs/start.js", "/docs/swagger-ui-bundle.js"])
def test_the_browser_is_told_to_load_nothing_from_elsewhere(path: str, http: TestClient) -> None:
    """Every source is this host, or data: for pictures; no script may stand in the page."""
    policy = http.get(path).headers["Content-Security-Policy"]
    sources = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert sources["default-src"] == "'none'"
    assert sources["script-src"] == sources["connect-src"] == "'self'"
    assert "http" not in policy


@pytest.mark.parametrize("name", ["redoc.standalone.js", "..%2f__init__.py", "unknown.js"])
def test_nothing_else_of_the_library_is_served(name: str, http: TestClient) -> None:
    """Only the files that the page names."""
    assert http.get(f"/docs/{name}").status_code == 404
