"""Every memory of a process in one place: sizes, what their contents depend on, the store."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import onnxruntime as ort

from guardrail_service.inference.memory.memory import MemoryStats, Remembered
from guardrail_service.inference.memory.store import Store
from guardrail_service.inference.models.encoder import BRANCH_BYTES, MEMORY_BYTES, VECTOR_BYTES

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
    parts = [content, ort.__version__, platform.machine(), _cpu()]
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def _cpu() -> str:
    """Return the first processor's model and instruction sets, as far as the system tells."""
    if not _CPU_INFO.is_file():
        return platform.processor()
    first = _CPU_INFO.read_text("utf-8", "replace").split("\n\n", 1)[0]
    told = ("model name", "flags", "Features", "CPU part")
    return "\n".join(line for line in first.splitlines() if line.startswith(told))
