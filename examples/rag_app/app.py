"""A RAG application that knows nothing of a guard: JSON and OpenAI-style server-sent events."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from pydantic import BaseModel
from rag import Habit, Rag

PACE_S = float(os.environ.get("RAG_APP_PACE", "0.03"))
"""Seconds per word: about what a hosted language model takes."""
TIMEOUT_S = float(os.environ.get("RAG_APP_TIMEOUT", "5"))
"""Seconds that the guard may add to an answer."""


class Question(BaseModel):
    """A user's question."""

    question: str
    habit: Habit = "honest"


def create_app() -> FastAPI:
    """Return the application."""
    app = FastAPI(title="Harbour House")
    rag = Rag()

    @app.post("/ask")
    async def ask(body: Question) -> dict[str, Any]:
        """Answer in one piece, with the passages."""
        passages = rag.retrieve(body.question)
        answer = "".join(rag.write(body.question, passages, body.habit))
        return {"answer": answer, "contexts": passages}

    @app.post("/ask/stream")
    async def ask_stream(body: Question, request: Request) -> StreamingResponse:
        """Answer while writing, as a chat completion does."""
        passages = rag.retrieve(body.question)
        # The one line that helps a guard: a stream has no place for its passages.
        request.scope.setdefault("guardrail", {})["contexts"] = passages

        async def events() -> AsyncIterator[str]:
            for word in rag.write(body.question, passages, body.habit):
                yield event(word)
                await asyncio.sleep(PACE_S)
            yield event("", "stop")
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    return app


def show_page(app: FastAPI, name: str) -> None:
    """Let an application show a page of this folder, and what it looks like."""
    folder = Path(__file__).parent

    @app.get("/", response_class=HTMLResponse)
    async def page() -> str:
        return (folder / name).read_text("utf-8")

    @app.get("/style.css")
    async def style() -> Response:
        return Response((folder / "style.css").read_bytes(), media_type="text/css")


def event(text: str, reason: str | None = None) -> str:
    """Return one chunk of a chat completion as an event."""
    delta = {} if reason else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    chunk = {
        "id": "harbour",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "extractive",
        "choices": [choice],
    }
    return f"data: {json.dumps(chunk)}\n\n"


app = create_app()
