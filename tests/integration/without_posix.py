"""Runs the `guardrail` command as on a system that lacks what Windows lacks.

Started by tests as a process of its own; the code that runs is the shipped one.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "uvloop", "hyperscan")
NAMES: tuple[tuple[object, tuple[str, ...]], ...] = (
    (os, ("fork", "getuid", "register_at_fork", "O_DIRECTORY", "O_CLOEXEC", "O_NOFOLLOW")),
    (signal, ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGKILL", "SIGCHLD", "pthread_sigmask")),
    (socket, ("AF_UNIX",)),
)
pair, unix = socket.socketpair, socket.AF_UNIX
socket.socketpair = lambda *_: pair(unix)  # type: ignore[assignment]
for module in MODULES:
    sys.modules[module] = None  # type: ignore[assignment]
for holder, names in NAMES:
    for name in names:
        if hasattr(holder, name):
            delattr(holder, name)

from guardrail_service.commands.main import main  # noqa: E402 - nothing may be imported before

sys.argv[0] = "guardrail"
main()
