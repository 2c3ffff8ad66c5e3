"""Whether an event of a stream only says again what its reader may be shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.sse import Lane


class Repeats:
    """What has been written and shown on each lane of a response.

    Attributes:
        written: What the application wrote, checked or not.
        shown: What its reader was sent.
    """

    def __init__(self) -> None:
        self.written: dict[Lane, str] = {}
        self.shown: dict[Lane, str] = {}

    def wrote(self, lane: Lane, text: str) -> None:
        """Note what the application wrote."""
        self.written[lane] = self.written.get(lane, "") + text

    def showed(self, lane: Lane, text: str) -> None:
        """Note what a reader is sent."""
        self.shown[lane] = self.shown.get(lane, "") + text

    def may_pass(self, others: Iterable[str]) -> bool:
        """Return whether strings say only what was shown; False: they say what was changed.

        Raises:
            UnreadableBody: If they say something that was never checked.
        """
        others = list(others)
        for other in others:
            if not any(other in text for text in self.written.values()):
                raise UnreadableBody("unknown_event")
        return all(any(other in text for text in self.shown.values()) for other in others)
