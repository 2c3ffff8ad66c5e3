"""Other guards' wire formats in front of the same check. Loaded only where settings name them.

A dialect is one file with a function `dialect()`: it translates a body into checks and their
replies back, and decides nothing. Keys, limits, admission, policies and the log are the native
API's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastapi import FastAPI


def add_dialects(app: FastAPI, names: Iterable[str]) -> None:
    """Let an application answer in dialects.

    Args:
        app: To which routes are added, and outside of all other middleware what knows whose error
            shape a path has and where its key stands.
        names: Checked names, as settings have them.
    """
    from guardrail_service.server.dialects.base import Edge, add_routes

    found = [import_module(f"{__name__}.{name}").dialect() for name in names]
    for dialect in found:
        add_routes(app, dialect)
    app.add_middleware(Edge, dialects=found)
