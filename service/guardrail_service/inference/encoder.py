"""The sentence encoder with a memory: one pass per text serves every detector that reads it."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from concurrent.futures import Future

from guardrail_service.inference.session import ModelSession
from guardrail_service.types import Row, RowOutput, RowResult

OUTPUTS = ("sentence_embedding", "token_embeddings")
MEMORY_BYTES = 64 * 2**20
"""About 1,300 sentences of 32 tokens; passages repeat across requests and across claims."""


class SharedEncoder:
    """Runs `embedding` rows and keeps the latest texts' outputs, by content hash, per process.

    Thread-safe. What is kept is what was computed, so a row's outputs are the same bit for bit
    whether it was met before or not. A text that is being encoded is waited for, not run again.

    Args:
        session: The encoder.
        memory_bytes: How much to keep; the text used longest ago goes first.
    """

    def __init__(self, session: ModelSession, memory_bytes: int = MEMORY_BYTES) -> None:
        self.session = session
        self.file = session.file
        self.tokenizer = session.tokenizer
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, RowOutput] = OrderedDict()
        self._kept_bytes = 0
        self._running: dict[bytes, Future[RowResult]] = {}

    def run(self, row: Row) -> RowResult:
        """Return the outputs a row asks for; times are zero where nothing had to be computed."""
        if row.second is not None:
            return self.session.run(row)
        result = self.encode(row.text)
        asked = {name: result.outputs[name] for name in row.outputs}
        return result._replace(outputs=asked)

    def encode(self, text: str) -> RowResult:
        """Return a text's sentence and token embeddings.

        Raises:
            RowFailed: If the text is longer than the model reads.
        """
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return RowResult(kept, 0.0, 0.0)
            future = self._running.get(key)
            if future is None:
                mine = self._running[key] = Future()
        if future is not None:
            return RowResult(future.result().outputs, 0.0, 0.0)
        return self._compute(key, text, mine)

    def _compute(self, key: bytes, text: str, future: Future[RowResult]) -> RowResult:
        try:
            result = self.session.run(Row(self.session.role, text, outputs=OUTPUTS))
        except BaseException as error:
            with self._lock:
                del self._running[key]
            future.set_exception(error)
            raise
        for values in result.outputs.values():
            values.flags.writeable = False
        with self._lock:
            self._keep(key, result.outputs)
            del self._running[key]
        future.set_result(result)
        return result

    def _keep(self, key: bytes, outputs: RowOutput) -> None:
        self._kept[key] = outputs
        self._kept_bytes += _size(outputs)
        while self._kept_bytes > self._memory_bytes and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= _size(oldest)


def _size(outputs: RowOutput) -> int:
    return sum(values.nbytes for values in outputs.values())
