"""Traces one real request: which files of the service it enters, and how often it moves on."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import httpx

import guardrail_service
from guardrail_service.server.app import create_app
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings

PACKAGE = str(Path(guardrail_service.__file__).parent) + "/"
PASSAGE = (
    "Every device comes with a warranty of two years from the day of purchase. "
    "Within this time repairs are free of charge."
)
QUESTION = "How long does the warranty last?"
WARM = "The warranty lasts two years. Repairs are free within that time."
TRACED = "The guarantee covers two years. Fixing it costs nothing within that period."


GIVING_WAY = (
    "Turn.give_way", "Turns.is_passed", "Shares.ahead_s", "Shares.charge", "Budget._ahead",
)  # fmt: skip
"""Functions that run every few milliseconds."""


class Call(NamedTuple):
    """One call of a function of the service."""

    thread: int
    file: str
    function: str


class Walk(NamedTuple):
    """What one request called, in order, all threads together."""

    calls: list[Call]

    @property
    def files(self) -> set[str]:
        """Return the files that were entered, relative to the package."""
        return {call.file for call in self.calls}

    @property
    def moves(self) -> int:
        """Return how often the next call of a thread was in another file.

        Calls in which rules let others go first do not count: a slow machine has more of them.
        """
        threads = defaultdict[int, list[str]](list)
        for call in self.calls:
            if not call.function.startswith(GIVING_WAY):
                threads[call.thread].append(call.file)
        return sum(a != b for files in threads.values() for a, b in pairwise(files))

    def first(self, file: str, function: str) -> int:
        """Return the place of a function's first call; ValueError if it was not called."""
        return [(call.file, call.function) for call in self.calls].index((file, function))


def traced() -> Walk:
    """Return the walk of a two-sentence answer through a warm service on the embedded pack."""
    calls: list[Call] = []
    is_on = threading.Event()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and is_on.is_set() and path.startswith(PACKAGE):
            name = frame.f_code.co_qualname
            calls.append(Call(threading.get_ident(), path.removeprefix(PACKAGE), name))

    before = sys.getprofile()
    threading.setprofile(note)  # the workers and the threads of checks start below
    sys.setprofile(note)
    try:
        asyncio.run(_serve(is_on))
    finally:
        sys.setprofile(before)
        threading.setprofile(before)
    return Walk(calls)


async def _serve(is_on: threading.Event) -> None:
    app = create_app(runtime=Runtime(Settings()))
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://service") as client,
    ):
        for answer in (WARM, WARM, TRACED):
            if answer == TRACED:
                is_on.set()
            body = {"question": QUESTION, "answer": answer, "contexts": [PASSAGE]}
            reply = await client.post("/v1/check", json=body)
            reply.raise_for_status()
        is_on.clear()
