"""The table of docs/what-users-see.md, row by row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrail_client.middleware import FALLBACK, OUTAGE, Route
from tests.unit.client.middleware.conftest import (
    ACTIONS,
    BAD,
    GOOD,
    LEAK,
    MARKED,
    REDACTED,
    Host,
    Reply,
)
from tests.unit.client.middleware.test_event_streams import completion, data, read, stream

PAGE = Path(__file__).resolve().parents[4] / "docs" / "what-users-see.md"


def part(title: str) -> str:
    """Return a part of the page."""
    parts = PAGE.read_text("utf-8").split("\n## ")
    return next(part for part in parts if part.startswith(title))


def rows(part: str) -> list[list[str]]:
    """Return the table of a part of the page, without its head."""
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


ROWS, STREAMED = rows(part("JSON replies")), rows(part("Streams"))
FLAGGED = "A flagged sentence."
ANSWERS = {"mark": MARKED, "flag": FLAGGED, "redact": LEAK, "block": BAD}
HEADERS = ("decision", "action", "shown", "error")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_users_see_what_the_page_says(
    row: list[str], host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text, status and headers."""
    monkeypatch.setitem(ACTIONS, "flagged sentence", "flag")
    case, shown, status, *headers = row
    answer = ANSWERS.get(case, GOOD)
    reply = Reply.of({"answer": "" if case.startswith("no answer") else answer})
    if case.startswith("guard down"):
        host.guard.failing = 503
    if case.startswith("a body that cannot"):
        reply = Reply.of(b"{")
    route = Route("/ask", on_error="open" if '"open"' in case else "closed")
    found = host.get(reply, route)
    assert found.status_code == int(status)
    sent = [found.headers.get(f"x-guardrail-{name}", "-") for name in HEADERS]
    assert sent == headers
    if shown == "the body":
        assert found.content == reply.body
    elif shown == "an error document":
        assert found.json()["error"]["message"] == OUTAGE
    else:
        texts = {"the answer": answer, "the answer, redacted": REDACTED}
        expected = texts.get(shown, shown.strip('"'))
        assert found.json()["answer"] == expected
        assert expected in (answer, REDACTED, FALLBACK, OUTAGE)


def test_the_page_has_a_row_for_every_action() -> None:
    """None is left to be guessed."""
    assert {"allow", "mark", "flag", "redact", "block"} <= {row[0] for row in ROWS}


@pytest.mark.parametrize("row", STREAMED, ids=lambda row: row[0])
def test_readers_of_a_stream_see_what_the_page_says(
    row: list[str], host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text, and what its last chunk says."""
    monkeypatch.setitem(ACTIONS, "flagged sentence", "flag")
    case, shown, *last = row
    answer = ANSWERS.get(case.partition(",")[0], GOOD)
    if "as a whole" in case:
        monkeypatch.setattr("tests.unit.client.middleware.conftest.SEEN_BEFORE_THE_END", True)
    if case.startswith("guard down"):
        host.guard.failing = 503
    unread = [data({"type": "new"}), data({"type": "new", "note": BAD})]
    more = unread if case.startswith("an event") else []
    route = Route(
        "/ask",
        on_error="open" if '"open"' in case else "closed",
        hold="all" if '"all"' in case else None,
    )
    found = host.get(stream(completion(answer, *more)), route)
    chunks = [json.loads(line[6:]) for line in found.text.split("\n") if line[:7] == "data: {"]
    ended = next(c for c in chunks if c.get("choices") and c["choices"][0]["finish_reason"])
    told = ended.get("guardrail", {})
    said = [ended["choices"][0]["finish_reason"], told.get("reason"), told.get("retract_from")]
    assert ["-" if one is None else str(one) for one in said] == last
    beginning, _, end = shown.rpartition(", then ")
    texts = {"the answer": answer, "the answer, redacted": REDACTED, "its beginning": "The "}
    assert read(found.text) == texts.get(beginning, "") + texts.get(end, end.strip('"'))
