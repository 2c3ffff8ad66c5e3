"""Counts requests for all processes of one machine, in a file that they map into memory.

The file has a table of callers. A lock of the system guards each change for some microseconds; it
ends with its process, and so does another one by which a process says that it lives: what a killed
one had in work is forgotten as soon as somebody else needs the place.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from guardrail_service.errors import ConfigurationError
from guardrail_service.posix import file_locks
from guardrail_service.server.counters import CountersAway, RequestWindow, slid
from guardrail_service.types import Rate

_MAGIC = b"guardrail counters 1\n".ljust(32, b"\0")
SLOTS = 4_096
"""Callers that there is room for."""
MEMBERS = 64
"""Processes that there is room for at the same time."""
_SLOT = struct.Struct("<16sqII")
_HELD = struct.Struct(f"<{MEMBERS}H")
_SLOT_BYTES = _SLOT.size + _HELD.size
_SIZE = len(_MAGIC) + SLOTS * _SLOT_BYTES
_FIRST_MEMBER = _SIZE + 1
"""Bytes behind the table that are locked and never written: one guards it, one for each process."""
LOCK_S = 0.05
"""Seconds to wait for the lock: a process that was stopped while it held it must stop nobody."""
_PAUSE_S = 0.0005


class SharedCounters:
    """Counts in a file.

    Args:
        path: The file; made if there is none.

    Raises:
        ConfigurationError: If it cannot be used, or is no file of counters.
    """

    is_remote = False

    def __init__(self, path: str) -> None:
        self._fcntl = file_locks("GUARDRAIL_COUNTERS")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            found = error.strerror or type(error).__name__
            raise ConfigurationError("GUARDRAIL_COUNTERS", found, "a file to count in") from error
        self._within = threading.Lock()
        try:
            self._map = self._mapped()
            self._member = self._joined()
        except BaseException:
            os.close(self._file)
            raise

    def take(self, caller: str, rate: Rate) -> float:
        """Count one request; return 0, or the seconds until one fits."""
        with self._locked():
            at, window, name = self._find(caller)
            window, wait_s = slid(window, time.monotonic(), rate)
            _SLOT.pack_into(self._map, at, name, *window)
        return wait_s

    def enter(self, caller: str, most: int) -> bool:
        """Return whether one more request is in work now, in all processes together."""
        with self._locked():
            at, window, name = self._find(caller)
            held = self._held(at)
            if sum(held) >= most:
                held = [n if n and self._lives(member) else 0 for member, n in enumerate(held)]
            fits = sum(held) < most
            held[self._member] += fits
            _SLOT.pack_into(self._map, at, name, *window)
            _HELD.pack_into(self._map, at + _SLOT.size, *held)
        return fits

    def leave(self, caller: str) -> None:
        """End what `enter` began."""
        with self._locked():
            at, _, _ = self._find(caller)
            held = self._held(at)
            held[self._member] = max(0, held[self._member] - 1)
            _HELD.pack_into(self._map, at + _SLOT.size, *held)

    def close(self) -> None:
        """Leave: what this process has in work is forgotten with its lock."""
        self._map.close()
        os.close(self._file)

    def _mapped(self) -> mmap.mmap:
        with self._locked():
            size = os.fstat(self._file).st_size
            if size == 0:
                self._fill()
            elif size != _SIZE or os.pread(self._file, len(_MAGIC), 0) != _MAGIC:
                found, expected = "a file of something else", "a file of counters, or none"
                raise ConfigurationError("GUARDRAIL_COUNTERS", found, expected)
            return mmap.mmap(self._file, _SIZE)

    def _fill(self) -> None:
        """Write the whole table: a disk that fills up later would kill who writes into a hole."""
        try:
            written = os.pwrite(self._file, _MAGIC.ljust(_SIZE, b"\0"), 0)
            found = "a full disk" if written < _SIZE else None
        except OSError as error:
            found = error.strerror or type(error).__name__
        if found is not None:
            os.ftruncate(self._file, 0)
            raise ConfigurationError("GUARDRAIL_COUNTERS", found, f"room for {_SIZE} bytes")

    def _joined(self) -> int:
        """Return a free place among the processes, and forget what its last owner had in work."""
        with self._locked():
            for member in range(MEMBERS):
                if not self._try_lock(_FIRST_MEMBER + member):
                    continue
                for slot in range(SLOTS):
                    at = len(_MAGIC) + slot * _SLOT_BYTES + _SLOT.size + 2 * member
                    self._map[at : at + 2] = b"\0\0"
                return member
        found = f"{MEMBERS} processes"
        raise ConfigurationError("GUARDRAIL_COUNTERS", found, "fewer processes that share a file")

    def _lives(self, member: int) -> bool:
        """Return whether the process of a place is there: its lock cannot be had then."""
        if member == self._member:
            return True
        if not self._try_lock(_FIRST_MEMBER + member):
            return True
        self._fcntl.lockf(self._file, self._fcntl.LOCK_UN, 1, _FIRST_MEMBER + member)
        return False

    def _find(self, caller: str) -> tuple[int, RequestWindow, bytes]:
        """Return where a caller's slot is, what it has counted, and its name there."""
        name = hashlib.sha256(caller.encode()).digest()[:16]
        first = int.from_bytes(name[:4], "little")
        for step in range(SLOTS):
            at = len(_MAGIC) + (first + step) % SLOTS * _SLOT_BYTES
            found, place, present, before = _SLOT.unpack_from(self._map, at)
            if found == name:
                return at, RequestWindow(place, present, before), name
            if not any(found):
                return at, RequestWindow(), name
        raise CountersAway(f"found {SLOTS} callers in the file; expected fewer: begin a new one")

    def _held(self, at: int) -> list[int]:
        return list(_HELD.unpack_from(self._map, at + _SLOT.size))

    def _try_lock(self, byte: int) -> bool:
        try:
            self._fcntl.lockf(self._file, self._fcntl.LOCK_EX | self._fcntl.LOCK_NB, 1, byte)
        except OSError:
            return False
        return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other threads and processes out.

        Raises:
            CountersAway: If one of them keeps the lock for too long.
        """
        end = time.monotonic() + LOCK_S
        with self._within:
            while not self._try_lock(_SIZE):
                if time.monotonic() >= end:
                    raise CountersAway("the file of counters stays locked")
                time.sleep(_PAUSE_S)
            try:
                yield
            finally:
                self._fcntl.lockf(self._file, self._fcntl.LOCK_UN, 1, _SIZE)
