"""Whether an event of a stream only says again what its reader may be shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.event_writer import said_otherwise
from guardrail_client.middleware.stream_documents import WHOLE, Lane


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

    def changes(self, others: Iterable[str]) -> dict[str, str] | None:
        """Return what to say in place of strings that repeat a changed text as a whole.

        None: they say a part of one, so that nothing can stand in their place.

        Raises:
            UnreadableBody: If they say something that was never checked.
        """
        others = list(others)
        for other in others:
            if not any(other in text for text in self.written.values()):
                raise UnreadableBody("unknown_event")
        changed = [o for o in others if not any(o in text for text in self.shown.values())]
        whole = {t: lane for lane, t in self.written.items() if not lane[1].startswith(WHOLE)}
        if not all(other in whole for other in changed):
            return None
        return {other: self.shown.get(whole[other], "") for other in changed}

    def passed(self, event: bytes, others: Iterable[str]) -> bytes:
        """Return an event as it may be sent; nothing of one that cannot say it otherwise.

        Raises:
            UnreadableBody: If it says something that was never checked.
        """
        changes = self.changes(others)
        if changes is None:
            return b""
        return said_otherwise(event, changes) or b"" if changes else event
