"""Runs the first of several processes over a service that does nothing; files say how it fails.

Started by tests as a process of its own: `supervised.py FOLDER`. What is there in FOLDER counts:
`hang` (a process never gets ready), `stuck` (it does not end when it is told to), `slow` (reading
the configurations lasts until this file is gone). Nothing is due by a look at metrics.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from guardrail_service.server import processes
from guardrail_service.server.process_place import ProcessPlace
from guardrail_service.settings import Settings

FOLDER = Path(sys.argv[1])
processes.LOOK_S = 1e6
processes.START_S = 2.0
processes.GRACE_S = 0.2
processes.PAUSES_S = (0.2,)


def say(word: str) -> None:
    """Tell the test; one line is written at once."""
    os.write(1, f"{word}\n".encode())


def serve(settings: Settings, place: ProcessPlace) -> None:
    """Say that it serves, and wait until it is told to end."""
    say("began")
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, lambda *_: told.set())
    if not (FOLDER / "hang").exists():
        place.ready()
        say("serves")
    while not told.wait(0.01) or (FOLDER / "stuck").exists():
        pass


def reload() -> None:
    """Take as long as the test wants."""
    say("reload")
    while (FOLDER / "slow").exists():
        threading.Event().wait(0.01)


processes.Supervisor(
    Settings(processes=2, drain_s=0.1),
    serve,
    on_ready=lambda: say("listening"),
    reload=reload,
    renew=lambda: None,
).run()
