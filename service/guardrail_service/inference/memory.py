"""Recent model outputs by content, one pass per text; every memory of a process in one place."""

from __future__ import annotations

import hashlib
import json
import platform
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import onnxruntime as ort

from guardrail_service.inference.models.session import NOT_FUSED
from guardrail_service.inference.store import Store
from guardrail_service.types import TENANT, RowOutput, RowResult

MEMORY_BYTES = 64 * 2**20
"""About 1,300 sentences of 32 tokens; passages repeat across requests and across claims."""
VECTOR_BYTES = 24 * 2**20
"""About 11,000 sentences: embeddings are thirty times smaller than states and must outlive them,
because every claim is compared with every passage sentence but reads the states of six."""
BRANCH_BYTES = 32 * 2**20
"""About 2,000 sentences of 32 tokens, 128 values each."""
AT_ONCE = 16
"""Texts that one thread takes at a time of those that it needs: two that work on one answer need
nearly the same, and share them out."""
OVERHEAD_BYTES = 600
"""Of a kept text beside its values: key, dictionaries, array headers (550 on CPython 3.11)."""


class Shelf(Protocol):
    """A store in which outputs outlive the process; see `store.py`."""

    def get(self, key: bytes) -> RowOutput | None:
        """Return what was put there, bit for bit, or None."""
        ...

    def put(self, key: bytes, outputs: RowOutput) -> None:
        """Keep outputs if there is room; never waits for a disk."""
        ...


class MemoryStats(NamedTuple):
    """The counts of a memory since the start, and its content now."""

    hits: int
    misses: int
    restored: int
    texts: int
    bytes: int
    limit_bytes: int


class Memory:
    """Keeps the latest texts' outputs by content hash, per process. Thread-safe.

    Outputs are kept as they were computed, so a text's outputs are the same bit for bit whether it
    was met before or not. Nobody ever waits here: the scheduler runs equal rows once, and where two
    workers still meet at one text, each computes it and both get the same bits. A failure is not
    kept.

    Args:
        limit_bytes: How much to keep; the text used longest ago goes first.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.shelf: Shelf | None = None
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, RowOutput] = OrderedDict()
        self._kept_bytes = 0
        self._running: dict[bytes, int] = {}
        self._hits = self._misses = self._restored = 0

    def peek(self, texts: Sequence[str]) -> list[RowOutput | None]:
        """Return the outputs of texts that are at hand, in order; a miss is not counted."""
        keys = [_key(text) for text in texts]
        with self._lock:
            return [self._find(key) for key in keys]

    def get(self, text: str, compute: Callable[[], RowResult]) -> RowResult:
        """Return a text's outputs; times are zero where this caller had nothing to compute.

        Raises:
            RowFailed: What `compute` raised.
        """
        key = _key(text)
        kept = self._at_hand(key)
        if kept is not None:
            return RowResult(kept, 0.0, 0.0)
        return self._compute([key], lambda: [compute()])[0]

    def get_many(
        self, texts: Sequence[str], compute: Callable[[list[str]], list[RowResult]]
    ) -> list[RowResult]:
        """Return the outputs of several texts, in order; `compute` is called for those not kept.

        Args:
            texts: One that comes twice is computed once.
            compute: Returns the outputs of some texts, in order.

        Raises:
            RowFailed: What `compute` raised. Nothing is kept then.
        """
        keys = {text: _key(text) for text in texts}
        kept = {text: self._at_hand(key) for text, key in keys.items()}
        found = {
            text: RowResult(known, 0.0, 0.0) for text, known in kept.items() if known is not None
        }
        if missing := [text for text in keys if text not in found]:
            made = self._compute([keys[text] for text in missing], lambda: compute(missing))
            found.update(zip(missing, made, strict=True))
        return [found[text] for text in texts]

    def get_all(
        self, texts: Sequence[str], compute: Callable[[list[str]], list[RowResult]]
    ) -> list[RowResult]:
        """Return the outputs of several texts, in their order.

        Texts that another thread is computing come last: by then they are most likely there, and
        where one is not, computing it twice is shorter than waiting.

        Args:
            texts: One that comes twice is computed once.
            compute: Returns the outputs of some texts, in order; may be called several times.

        Raises:
            RowFailed: What `compute` raised.
        """
        if (known := self._all_kept(texts)) is not None:
            return known
        found: dict[str, RowResult] = {}
        left = list(dict.fromkeys(texts))
        while left:
            some = self._free(left)[:AT_ONCE]
            found |= zip(some, self.get_many(some, compute), strict=True)
            left = [text for text in left if text not in found]
        return [found[text] for text in texts]

    def _all_kept(self, texts: Sequence[str]) -> list[RowResult] | None:
        """Return the outputs of several texts if all of them are here, else None."""
        keys = list(map(_key, texts))
        with self._lock:
            if not all(key in self._kept for key in keys):
                return None
            for key in dict.fromkeys(keys):
                self._find(key)
            return [RowResult(self._kept[key], 0.0, 0.0) for key in keys]

    def stats(self) -> MemoryStats:
        """Return counts since the start and what is kept now."""
        with self._lock:
            return MemoryStats(
                self._hits,
                self._misses,
                self._restored,
                len(self._kept),
                self._kept_bytes,
                self._limit_bytes,
            )

    def _find(self, key: bytes) -> RowOutput | None:
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            self._hits += 1
        return kept

    def _free(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the texts that nobody is computing, or else the first."""
        with self._lock:
            if not self._running:
                return texts
            return [text for text in texts if _key(text) not in self._running] or texts[:1]

    def _at_hand(self, key: bytes) -> RowOutput | None:
        with self._lock:
            kept = self._find(key)
        if kept is None and self.shelf is not None:
            return self._restore(key, self.shelf)
        return kept

    def _restore(self, key: bytes, shelf: Shelf) -> RowOutput | None:
        outputs = shelf.get(key)
        if outputs is None:
            return None
        with self._lock:
            self._restored += 1
            return self._keep(key, outputs)

    def _compute(
        self, keys: Sequence[bytes], compute: Callable[[], list[RowResult]]
    ) -> list[RowResult]:
        with self._lock:
            self._misses += len(keys)
            for key in keys:
                self._running[key] = self._running.get(key, 0) + 1
        try:
            results = compute()
        finally:
            with self._lock:
                self._end(keys)
        with self._lock:
            kept = [self._keep(key, r.outputs) for key, r in zip(keys, results, strict=True)]
        if self.shelf is not None:
            for key, outputs in zip(keys, kept, strict=True):
                self.shelf.put(key, outputs)
        return [r._replace(outputs=outputs) for r, outputs in zip(results, kept, strict=True)]

    def _end(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            if (left := self._running.pop(key) - 1) > 0:
                self._running[key] = left

    def _keep(self, key: bytes, outputs: RowOutput) -> RowOutput:
        """Keep outputs unless some are kept already; return those that are."""
        if (kept := self._kept.get(key)) is not None:
            return kept
        for values in outputs.values():
            values.flags.writeable = False
        self._kept[key] = outputs
        self._kept_bytes += _size(outputs)
        while self._kept_bytes > self._limit_bytes and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= _size(oldest)
        return outputs


class Remembered(NamedTuple):
    """A memory and a name of everything its values depend on, or None if it is not stored."""

    memory: Memory
    content: str | None


def _key(text: str) -> bytes:
    """Return what a text is kept under: one key for everybody, or one for each tenant."""
    read = text.encode("utf-8", "surrogatepass")
    if tenant := TENANT.get():
        read = hashlib.sha256(tenant.encode()).digest() + read
    return hashlib.sha256(read).digest()


def _size(outputs: RowOutput) -> int:
    return OVERHEAD_BYTES + sum(values.nbytes for values in outputs.values())


_CPU_INFO = Path("/proc/cpuinfo")


class CacheSizes(NamedTuple):
    """Bytes of each memory: sentence embeddings, the encoder's states, each branch's outputs."""

    vectors: int = VECTOR_BYTES
    states: int = MEMORY_BYTES
    branch: int = BRANCH_BYTES


@runtime_checkable
class Remembers(Protocol):
    """A session that keeps outputs."""

    def memories(self) -> Mapping[str, Remembered]:
        """Return what is kept, by name."""
        ...


class Caches:
    """The memories of all loaded sessions. Those that several sessions share are counted once.

    Args:
        sessions: Loaded sessions; those without a memory are passed over.
    """

    def __init__(self, sessions: Iterable[object]) -> None:
        self._kept: dict[str, Remembered] = {}
        self.store: Store | None = None
        for session in sessions:
            if isinstance(session, Remembers):
                self._kept |= session.memories()

    def attach(self, store: Store) -> None:
        """Let every memory read from and write to a store from now on.

        Not before the golden rows have run: they must be computed here, not remembered.
        """
        self.store = store
        for kept in self._kept.values():
            if kept.content is not None:
                kept.memory.shelf = store.shelf(space(kept.content))

    def stats(self) -> dict[str, MemoryStats]:
        """Return what each memory did and holds."""
        return {name: kept.memory.stats() for name, kept in self._kept.items()}

    def close(self) -> None:
        """Write what waits for the store, and close it."""
        if self.store is not None:
            self.store.close()


def space(content: str) -> bytes:
    """Return a hash of everything stored values depend on beside their text.

    INT8 arithmetic differs between CPUs and runtime versions, so a store that moved to another
    machine starts empty there.
    """
    parts = [content, ort.__version__, *NOT_FUSED, platform.machine(), _cpu()]
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def _cpu() -> str:
    """Return the first processor's model and instruction sets, as far as the system tells."""
    if not _CPU_INFO.is_file():
        return platform.processor()
    first = _CPU_INFO.read_text("utf-8", "replace").split("\n\n", 1)[0]
    told = ("model name", "flags", "Features", "CPU part")
    return "\n".join(line for line in first.splitlines() if line.startswith(told))
