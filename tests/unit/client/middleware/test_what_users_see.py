"""The table of docs/what-users-see.md, row by row."""

from __future__ import annotations

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

PAGE = Path(__file__).resolve().parents[4] / "docs" / "what-users-see.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text("utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| verdict")
]
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
