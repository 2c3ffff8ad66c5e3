"""Tells if an event of a stream only repeats text that its reader may be shown. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import takewhile
from math import isfinite
from typing import Any, TypeVar

from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.codes import NO_CODES, Codes, without
from guardrail_client.middleware.encodings import readings, views_of_name
from guardrail_client.middleware.event_reader import Found
from guardrail_client.middleware.event_writer import said_otherwise
from guardrail_client.middleware.outcome import gone
from guardrail_client.middleware.stream_documents import WHOLE, Lane
from guardrail_client.middleware.withheld import (
    EXACT,
    SHORTEST,
    Withheld,
    bare,
    digit_runs,
    digits_of,
)

K = TypeVar("K")
V = TypeVar("V")
MAX_KEPT = 256
"""Strings of a response whose readings are kept."""
MAX_ANEW = 16
"""Snapshots of a response that do not go on where the one before ended."""
MAX_ALONE = 3
"""Of these in a row, those in whose place one came before they went on, as pieces do."""


def texts_of(events: Iterable[Found]) -> list[str]:
    """Return what the events of a stream say in all, text by text."""
    repeats, replaced = Repeats(), []
    for found in events:
        for lane, text in found.texts.items():
            news = repeats.news(lane, text) if found.is_snapshot else text
            if news is None:
                replaced.append(repeats.written[lane])
                repeats.forget(lane)
            repeats.wrote(lane, text if news is None else news)
    return [*replaced, *repeats.written.values()]


class Repeats:
    """The text written and shown on each lane of a response.

    Args:
        is_text: Whether the data of events is text, not JSON.

    Attributes:
        written: What the application wrote, checked or not.
        shown: What its reader was sent.
        withheld: Values that its reader was not shown of texts that were redacted.
    """

    def __init__(self, *, is_text: bool = False) -> None:
        self._is_text = is_text
        self._went_on: set[Lane] = set()
        self._anew = self._alone = 0
        self.written: dict[Lane, str] = {}
        self.shown: dict[Lane, str] = {}
        self._borders: dict[Lane, list[tuple[int, int]]] = {}
        """Code points written and shown at the end of each part that was shown."""
        self._bare_written: dict[Lane, str] = {}
        self._bare_shown: dict[Lane, str] = {}
        self.withheld = Withheld()
        self._readings: dict[str, tuple[str, ...]] = {}
        self._candidates: dict[str, tuple[str, ...]] = {}
        self._says: dict[Any, bool] = {}
        """Costly for long strings, which events that wait are asked for again and again."""

    def wrote(self, lane: Lane, text: str) -> None:
        """Note what the application wrote."""
        self.written[lane] = self.written.get(lane, "") + text
        self._bare_written[lane] = self._bare_written.get(lane, "") + bare(text)

    def news(self, lane: Lane, snapshot: str) -> str | None:
        """Return what a snapshot adds to what was written; None if it says something else."""
        written = self.written.get(lane, "")
        if written.startswith(snapshot):
            return ""
        if not snapshot.startswith(written):
            return None
        if written.strip():
            self._went_on.add(lane)
        return snapshot[len(written) :]

    def begins_anew(self, lane: Lane) -> None:
        """Note that a snapshot says something else than the one before.

        Raises:
            UnreadableBody: If that happens too often, or these are rather pieces of one text.
        """
        self._anew += 1
        self._alone = 0 if lane in self._went_on else self._alone + 1
        self._went_on.discard(lane)
        if self._anew > MAX_ANEW or self._alone > MAX_ALONE:
            raise UnreadableBody("not_snapshots")

    def forget(self, lane: Lane) -> None:
        """Begin a text anew, in the place of the one before."""
        texts = (self.written, self.shown, self._bare_written, self._bare_shown)
        for kept in (*texts, self._borders):
            kept.pop(lane, None)

    def standing(self, lane: Lane, retract_from: int | None) -> str:
        """Return what stays of what was shown, if it is taken back from a code point on."""
        if retract_from is None:
            return self.shown.get(lane, "")
        return self._beginning(lane, retract_from) if lane in self._borders else ""

    def showed(self, lane: Lane, text: str, upto: int | None = None) -> None:
        """Note what a reader is sent.

        Args:
            lane: Where.
            text: What.
            upto: The code point of what was written up to which it stands; None: it is as written.
        """
        self.shown[lane] = self.shown.get(lane, "") + text
        self._bare_shown[lane] = self._bare_shown.get(lane, "") + bare(text)
        before = self._decided(lane)
        decided = before + len(text) if upto is None else max(before, upto)
        said = self.written.get(lane, "")[before:decided]
        if said != text:
            self.withheld = self.withheld.with_values(v for v in gone(said, text) if v not in text)
            self._says.clear()
        self._borders.setdefault(lane, []).append((decided, len(self.shown[lane])))

    @property
    def is_pending(self) -> bool:
        """Return whether something was written that has not been shown in any way."""
        return any(self._decided(lane) < len(text) for lane, text in self.written.items())

    def can_say(self, others: Iterable[str]) -> bool:
        """Return whether all that these strings repeat has been shown in some way."""
        return all(self._is_shown(o) or self._said(o) is not None for o in others)

    def _decided(self, lane: Lane) -> int:
        borders = self._borders.get(lane)
        return borders[-1][0] if borders else 0

    def is_hidden(self, said: str | float, *, pending: bool = True) -> bool:
        """Return whether a name or a number says what its reader has not been shown.

        Args:
            said: The name or the number.
            pending: Whether it counts if a part of a text that is not decided yet says it.
        """
        if isinstance(said, str) and any(said in text for text in self.shown.values()):
            return False
        if self.withheld and _kept(self._says, said, self.withheld.says):
            return True
        if isinstance(said, str):
            found = [*_kept(self._candidates, said, _candidates)] if pending else []
        elif isinstance(said, float) and isfinite(said):
            found = [digits_of(part)[:EXACT] for part in (said, int(said))]
        else:
            found = [digits_of(said)]
        return any(len(one) >= SHORTEST and self._is_unshown(one) for one in found)

    def _is_unshown(self, found: str) -> bool:
        is_written = any(found in text for text in self._bare_written.values())
        return is_written and not any(found in text for text in self._bare_shown.values())

    def hidden(self, codes: Codes, others: Collection[str] = ()) -> set[str | float]:
        """Return which of an event's names and numbers do, but for strings that are no names."""
        found = {said for said in codes.names if said not in others and self.is_hidden(said)}
        return found | {number for number in codes.numbers if self.is_hidden(number)}

    def template(self, template: bytes, codes: Codes) -> bytes:
        """Return an event for more text without numbers that say what is held, or was redacted."""
        hidden = {
            said
            for said in self.hidden(codes)
            if not isinstance(said, str) or self.is_hidden(said, pending=False)
        }
        if not hidden:
            return template
        return without(template, hidden.__contains__, is_text=self._is_text)

    def _is_shown(self, other: str) -> bool:
        """Return whether a text, or what it says if it is decoded, has been shown."""
        return self._is_in(self.shown, other)

    def _is_in(self, texts: Mapping[Lane, str], other: str) -> bool:
        """Return whether texts say a string, as it is or decoded."""
        found = _kept(self._readings, other, _readings)
        return any(view in text for view in found for text in texts.values())

    def _said(self, other: str) -> str | None:
        """Return what was shown of the beginning of a text, or of all of it."""
        for lane, text in self.written.items():
            if lane[1].startswith(WHOLE) or not text.startswith(other):
                continue
            if self._decided(lane) >= len(other):
                return self._beginning(lane, len(other))
        return None

    def _beginning(self, lane: Lane, size: int) -> str:
        """Return what was shown of the first code points written, without a part of a redaction."""
        written, shown = self.written[lane], self.shown[lane]
        begin = start = 0
        for end, until in self._borders[lane]:
            if end > size:
                pairs = zip(written[begin:size], shown[start:until], strict=False)
                same = takewhile(lambda pair: pair[0] == pair[1], pairs)
                return shown[:start] + "".join(letter for letter, _ in same)
            begin, start = end, until
        return shown[:start]

    def passed(self, event: bytes, others: Iterable[str], codes: Codes = NO_CODES) -> bytes:
        """Return an event as it may be sent; nothing of one that cannot say it otherwise.

        Names and numbers in it that say what was redacted are removed.

        Raises:
            UnreadableBody: If it says something that was never checked.
        """
        others = list(others)
        for other in others:
            if not self._is_in(self.written, other):
                raise UnreadableBody("unknown_event")
        changes = {other: self._said(other) for other in others if not self._is_shown(other)}
        said = {other: text for other, text in changes.items() if text is not None}
        if len(said) < len(changes):  # a part of a changed text: nothing can stand in its place
            return b""
        if self._is_spelled([other for other in others if other not in changes]):
            return b""
        if said:
            event = said_otherwise(event, said, is_text=self._is_text) or b""
        hidden = self.hidden(codes, others)
        return without(event, hidden.__contains__, is_text=self._is_text) if hidden else event

    def _is_spelled(self, others: list[str]) -> bool:
        """Return whether strings say a withheld value only together, such as letter by letter."""
        if not self.withheld or len(others) < 2 or any(map(self.withheld.is_in, others)):
            return False
        return self.withheld.is_in("".join(others))


def _readings(other: str) -> tuple[str, ...]:
    return tuple(view for view in readings(other) if view.strip())


def _candidates(name: str) -> tuple[str, ...]:
    """Return what a name may say of a text: letters and digits alone, and digits in a row."""
    found = (one for view in views_of_name(name) for one in (bare(view), *digit_runs(view)))
    return tuple(dict.fromkeys(one for one in found if len(one) >= SHORTEST))


def _kept(memory: dict[K, V], key: K, made: Callable[[K], V]) -> V:
    """Return what a function makes of a key, kept for the next time."""
    if key not in memory:
        if len(memory) >= MAX_KEPT:
            memory.clear()
        memory[key] = made(key)
    return memory[key]
