"""Pieces that a framework pushes into a callback, as iterators that the guard can pull from."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

_END: Any = object()


class NobodyReads(BaseException):
    """Ends a call whose pieces nobody wants any more.

    No `Exception`: a framework that tries its next model after an error should not.
    """


class Pushed:
    """Pieces of a call that runs in a thread of its own, while its caller reads them.

    Args:
        call: Runs to its end with a function to which it gives each piece.

    Attributes:
        result: What the call returned; None before its end.
    """

    def __init__(self, call: Callable[[Callable[[str], None]], Any]) -> None:
        self._call = call
        self._pieces: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._is_read = True
        self.result: Any = None
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), daemon=True)

    def __enter__(self) -> Pushed:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_read = False
        self._thread.join()

    def _run(self) -> None:
        try:
            self.result = self._call(self._push)
        except NobodyReads:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where the pieces are read
            self._error = error
        finally:
            self._pieces.put(_END)

    def _push(self, piece: str) -> None:
        if not self._is_read:
            raise NobodyReads
        self._pieces.put(piece)

    def __iter__(self) -> Iterator[str]:
        """Yield the pieces; raise what the call raised."""
        while (piece := self._pieces.get()) is not _END:
            yield piece
        if self._error is not None:
            raise self._error


class AsyncPushed:
    """The same for a coroutine, on the same event loop.

    Args:
        call: Runs to its end with a function to which it gives each piece.

    Attributes:
        result: What the call returned; None before its end.
    """

    def __init__(self, call: Callable[[Callable[[str], None]], Awaitable[Any]]) -> None:
        self._call = call
        self._pieces: asyncio.Queue[Any] = asyncio.Queue()
        self.result: Any = None

    async def __aenter__(self) -> AsyncPushed:
        self._task = asyncio.ensure_future(self._run())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await self._task

    async def _run(self) -> None:
        try:
            self.result = await self._call(self._pieces.put_nowait)
        finally:
            self._pieces.put_nowait(_END)

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the pieces; raise what the call raised."""
        while (piece := await self._pieces.get()) is not _END:
            yield piece
        await self._task
