"""The same application calling the client itself, with a page that shows what was flagged.

GUARDRAIL_URL=http://127.0.0.1:8080 uvicorn --app-dir examples/rag_app by_hand:app
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from app import PACE_S, TIMEOUT_S, Question, event, show_page
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from rag import Rag

from guardrail_client import AsyncGuardrailClient, CheckResult, GuardrailError

SORRY = "Sorry, I cannot show an answer to this question."
rag = Rag()
guard = AsyncGuardrailClient(timeout=TIMEOUT_S)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Close the client's connections at the end."""
    yield
    await guard.close()


app = FastAPI(title="Harbour House", lifespan=lifespan)


show_page(app, "page.html")


@app.post("/ask")
async def ask(body: Question) -> dict[str, Any]:
    """Answer, checked; say what was flagged and where.

    The page is for people who review answers, so it asks under the policy that stops nothing and
    shows what was found. Readers get `/ask/stream`, under the default policy.
    """
    passages = rag.retrieve(body.question)
    answer = "".join(rag.write(body.question, passages, body.habit))
    try:
        result = await guard.check(
            answer,
            question=body.question,
            contexts=passages,
            policy="observe",
            include=["spans", "evidence"],
        )
    except GuardrailError as error:  # fail closed: no verdict, no answer
        return {"answer": SORRY, "decision": "unchecked", "error": error.code, "marks": []}
    if result.action == "block":
        return {"answer": SORRY, **verdict(result), "marks": []}
    shown = masked(answer, result)
    return {"answer": shown, **verdict(result), "marks": marks(result), "contexts": passages}


def verdict(result: CheckResult) -> dict[str, Any]:
    """Return what the page says about an answer."""
    return {
        "decision": result.decision,
        "action": result.action,
        "flagged": list(result.flagged_detectors),
        "took_ms": result.timings.total,
    }


def masked(answer: str, result: CheckResult) -> str:
    """Return the answer with what must not be shown dotted out: the offsets of the marks hold."""
    letters = list(answer)
    for name in ("pii", "secrets", "encoding"):
        for span in result.detectors[name].spans if name in result.detectors else ():
            letters[span.start : span.end] = "•" * (span.end - span.start)
    return "".join(letters)


def marks(result: CheckResult) -> list[dict[str, Any]]:
    """Return the flagged parts of the answer, code points, in order, none overlapping another."""
    found = sorted(
        (span.start, span.end, name, span.label, [e.context for e in span.evidence])
        for name, detector in result.detectors.items()
        for span in detector.spans
        if detector.flagged
    )
    kept: list[dict[str, Any]] = []
    for start, end, detector, label, evidence in found:
        if kept and start < kept[-1]["end"]:  # part of a longer mark: name both reasons
            kept[-1]["end"] = max(end, kept[-1]["end"])
            kept[-1]["why"].append(f"{detector}: {label}")
        else:
            why = [f"{detector}: {label}"]
            kept.append({"start": start, "end": end, "why": why, "contexts": evidence})
    return kept


@app.post("/ask/stream")
async def ask_stream(body: Question) -> StreamingResponse:
    """Answer while writing; what leaves has been checked."""
    passages = rag.retrieve(body.question)

    async def tokens() -> AsyncIterator[str]:
        for word in rag.write(body.question, passages, body.habit):
            yield word
            await asyncio.sleep(PACE_S)

    async def events() -> AsyncIterator[str]:
        stream = guard.check_stream(
            tokens(), question=body.question, contexts=passages, fallback=SORRY
        )
        async with stream:
            try:
                async for text in stream:
                    yield event(text)
            except GuardrailError:
                yield event(SORRY)
        yield event("", "content_filter" if stream.blocked or not stream.final else "stop")
        yield "data: [DONE]\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")
