"""Parts of POSIX that Windows lacks: locks that end with their process, limits of open files."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

from guardrail_service.errors import ConfigurationError


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_FCNTL, _RESOURCE = _module("fcntl"), _module("resource")
CAN_FORK = _FCNTL is not None and hasattr(os, "fork")
"""Whether several processes can serve together."""


def file_locks(where: str) -> ModuleType:
    """Return the module `fcntl`.

    Raises:
        ConfigurationError: If this system lacks it; `where` is the file or setting that needs it.
    """
    if _FCNTL is None:
        raise ConfigurationError(where, "a system without file locks", "Linux or macOS")
    return _FCNTL


def lock(file: int, where: str, *, is_patient: bool = True) -> None:
    """Keep other processes out of a file until it is closed.

    Args:
        file: A descriptor.
        where: The file or setting that an error names.
        is_patient: Whether to wait while another process has it.

    Raises:
        BlockingIOError: If another process has it and nobody waits.
        ConfigurationError: If this system has no such locks.
        OSError: If the file cannot be locked.
    """
    fcntl = file_locks(where)
    fcntl.flock(file, fcntl.LOCK_EX if is_patient else fcntl.LOCK_EX | fcntl.LOCK_NB)


def raise_open_files(needed: int) -> int | None:
    """Let this process open so many files, as far as it may; return how many, None: no limit."""
    if _RESOURCE is None:
        return None
    soft, hard = _RESOURCE.getrlimit(_RESOURCE.RLIMIT_NOFILE)
    if soft == _RESOURCE.RLIM_INFINITY or soft >= needed:
        return None if soft == _RESOURCE.RLIM_INFINITY else int(soft)
    allowed = needed if hard == _RESOURCE.RLIM_INFINITY else min(needed, hard)
    _RESOURCE.setrlimit(_RESOURCE.RLIMIT_NOFILE, (allowed, hard))
    return int(allowed)
