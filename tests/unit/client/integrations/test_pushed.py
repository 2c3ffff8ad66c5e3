"""What a framework pushes comes out in order; an error and an early end reach the other side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from guardrail_client.integrations.pushed import AsyncPushed, NobodyReads, Pushed

Push = Callable[[str], None]
PIECES = ["Two ", "weeks."]


def said(push: Push) -> str:
    """Push two pieces."""
    for piece in PIECES:
        push(piece)
    return "done"


async def said_later(push: Push) -> str:
    """Push two pieces with time between them."""
    for piece in PIECES:
        await asyncio.sleep(0)
        push(piece)
    return "done"


def broken(push: Push) -> str:
    """Push one piece and fail."""
    push(PIECES[0])
    raise KeyError("the model")


async def broken_later(push: Push) -> str:
    """Push one piece and fail."""
    return broken(push)


def test_pieces_come_in_order_and_then_the_result() -> None:
    """While the call runs in its own thread."""
    with Pushed(said) as pushed:
        assert list(pushed) == PIECES
    assert pushed.result == "done"


def test_an_error_of_the_call_is_raised_where_it_is_read() -> None:
    """Behind what came before it."""
    found = []
    with Pushed(broken) as pushed, pytest.raises(KeyError, match="the model"):
        found.extend(pushed)
    assert pushed.result is None


def test_a_call_ends_when_nobody_reads() -> None:
    """At its next piece, by what no framework takes for an error of a model."""
    ended = []

    def endless(push: Push) -> None:
        try:
            while True:
                push("and ")
        except Exception:  # noqa: BLE001 - as a framework that asks the next model
            ended.append("asked again")
        except NobodyReads:
            ended.append("ended")
            raise

    with Pushed(endless) as pushed:
        assert next(iter(pushed)) == "and "
    assert ended == ["ended"]


def test_coroutines_push_in_the_same_way() -> None:
    """And are cancelled where nobody reads."""

    async def run(call: Callable[[Push], Any]) -> tuple[list[str], Any]:
        async with AsyncPushed(call) as pushed:
            return [piece async for piece in pushed], pushed.result

    async def left() -> str:
        async with AsyncPushed(waiting) as pushed:
            return await anext(aiter(pushed))

    async def waiting(push: Push) -> None:
        push("once")
        await asyncio.Event().wait()

    assert asyncio.run(run(said_later)) == (PIECES, "done")
    assert asyncio.run(left()) == "once"
    with pytest.raises(KeyError, match="the model"):
        asyncio.run(run(broken_later))
