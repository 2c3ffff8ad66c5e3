"""The page /docs, Swagger UI on this service's own schema; it loads nothing from another host."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse, HTMLResponse, Response

router = APIRouter(include_in_schema=False)

# Addresses are relative, so that the page works behind a proxy that adds a prefix. The script that
# starts it is a file of its own because the policy below allows no script inside the page.
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rag-guardrail: HTTP API</title>
<link rel="icon" href="docs/favicon.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
START = """SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
});
"""
HEADERS = {
    # Swagger UI sets style attributes and draws its icons from data: addresses.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
ASSETS = frozenset({"favicon.png", "swagger-ui.css", "swagger-ui-bundle.js"})
"""The files of the distribution fastapi-offline that the page needs."""


@router.get("/docs")
def page() -> HTMLResponse:
    """Return the page."""
    return HTMLResponse(PAGE, headers=HEADERS)


@router.get("/docs/{name}")
def asset(name: str) -> Response:
    """Return a file that the page loads."""
    if name == "start.js":
        return Response(START, media_type="text/javascript", headers=HEADERS)
    if name not in ASSETS:
        raise HTTPException(404, "Not Found")
    folder = Path(str(files("fastapi_offline"))) / "static"
    return FileResponse(folder / name, headers=HEADERS)
