"""What every adapter is tried with, and what a test must say about one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.adapters.conftest import Ground

QUESTION = "How many days of paid leave do new employees get?"
PASSAGES = [
    "Paid leave: every new employee receives 25 days of paid leave per year.",
    "The canteen opens at seven.",
]
TWIN = "New employees get 25 days of paid leave."
INVENTED = f"{TWIN} They also get a company car."
HIDDEN = "company car"
SAID = {"good": TWIN, "invented": INVENTED}


@dataclass(frozen=True)
class Seen:
    """What somebody made of a reply.

    Attributes:
        shown: The answer as it was shown, or what stands in its place.
        parsed: Everything that was received.
    """

    shown: str
    parsed: Any = None


@dataclass(frozen=True)
class Adapter:
    """One way in which somebody else's software meets the guard.

    Attributes:
        package: Whose version is written down.
        what: What of it is used.
        page: The page about it in docs/integrations.
        ask: Lets a model say `good` or `invented`, streamed or not; returns what was seen.
        streams: Whether it can be asked for a stream, a whole reply, or both.
        lost: What a reader should know.
    """

    package: str
    what: str
    page: str
    ask: Callable[[Ground, str, bool], Seen]
    streams: tuple[bool, ...] = (False,)
    lost: str = "-"
