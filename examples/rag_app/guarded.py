"""The same application behind the middleware: not a line of its answers is different.

GUARDRAIL_URL=http://127.0.0.1:8080 uvicorn --app-dir examples/rag_app guarded:app
"""

from __future__ import annotations

from app import TIMEOUT_S, create_app, show_page

from guardrail_client import AsyncGuardrailClient
from guardrail_client.middleware import GuardrailMiddleware, Route

app = create_app()
show_page(app, "reader.html")
app.add_middleware(
    GuardrailMiddleware,
    client=AsyncGuardrailClient(),  # GUARDRAIL_URL, or http://127.0.0.1:8080
    routes=[Route("/ask", timeout=TIMEOUT_S), Route("/ask/stream", timeout=TIMEOUT_S)],
)
