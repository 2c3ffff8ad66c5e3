"""Real senders behind the middleware and a real guard; vendors' own clients read the replies."""

from __future__ import annotations

import json
import os
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.vendors.hosts import Hosts, hosted
from tests.vendors.judges import JUDGES, Judge, converse
from tests.vendors.saying import GOOD, SAYINGS
from tests.vendors.written import application, with_passages

PAGE = Path(__file__).resolve().parents[2] / "docs" / "middleware.md"
BEGIN, END = "<!-- written by .ci/vendors -->", "<!-- until here -->"
PASSED: dict[str, set[tuple[bool, str]]] = {}

CASES = [
    pytest.param(name, streamed, saying, id=f"{name}, {'stream' if streamed else 'json'}, {saying}")
    for name, judge in JUDGES.items()
    for streamed in judge.streams
    for saying in SAYINGS
]


def stands_in(text: str, hidden: str) -> bool:
    """Return whether a text has a word or number by itself, not digits of a time or of an id."""
    return re.search(rf"(?<![\w.-]){re.escape(hidden)}(?![\w-]|\.\d)", text) is not None


@pytest.mark.parametrize(("name", "streamed", "saying"), CASES)
def test_a_vendors_client_reads_what_is_sent(
    name: str, streamed: bool, saying: str, hosts: Hosts
) -> None:
    """Good answers letter by letter, redacted ones without the value, nothing of stopped ones."""
    judge, said = JUDGES[name], SAYINGS[saying]
    host = hosts[judge.sender]
    seen = judge.ask(host.url, judge.prefix + saying, streamed)
    assert seen.texts == [said.shown] * len(seen.texts)
    parsed = json.dumps(seen.parsed, default=str, ensure_ascii=False)
    sent = host.sent.decode()
    for hidden in said.hidden:
        assert not stands_in(parsed, hidden)
        assert not stands_in(sent, hidden)
    if saying == "good" and not streamed:
        assert host.sent == host.original
    if judge.stopped is not ...:
        assert (seen.reason == judge.stopped) == (saying == "stopped")
    if saying == "marked":
        last = "x-guardrail-action=mark" in sent or '"guardrail":{"action":"mark"}' in sent
        marks = host.headers.get("x-guardrail-action"), last
        assert marks == ((None, True) if streamed else ("mark", False))
    PASSED.setdefault(name, set()).add((streamed, saying))


def test_binary_framing_cannot_be_checked(hosts: Hosts) -> None:
    """Bedrock's ConverseStream is refused, or sent as it is where the route fails open."""
    host = hosts["written"]
    closed = converse(host.url, "stopped", True)
    assert closed.reason == 502
    assert "Duke" not in host.sent.decode()
    assert "Duke" not in str(closed.parsed)
    app = with_passages(application())
    with hosted(app, hosts.guard, on_error="open") as opened:
        parts = [part["contentBlockDelta"]["delta"]["text"]
                 for part in converse(opened.url, "good", True).parsed
                 if "contentBlockDelta" in part]  # fmt: skip
        assert "".join(parts) == GOOD
        assert opened.headers["x-guardrail-decision"] == "unchecked"


def row(judge: Judge, passed: set[tuple[bool, str]]) -> str:
    """Return a line of the table."""
    cells = [
        ", ".join(s for s in SAYINGS if (streamed, s) in passed)
        if streamed in judge.streams
        else "-"
        for streamed in (False, True)
    ]
    every = ", ".join(SAYINGS)
    said = ["all" if cell == every else cell for cell in cells]
    pinned = json.loads(Path(__file__).with_name("package.json").read_text())["dependencies"]
    if alias := pinned.get(f"ai{judge.api}"):
        client = f"`{judge.client}` {alias.rpartition('@')[2]}"
    else:
        number = pinned.get(judge.client) or version(judge.client)
        client = f"`{judge.client}` {number}, {judge.api}"
    return f"| {' | '.join([client, judge.sender, *said, judge.lost or '-'])} |"


def test_the_documentation_says_what_passes() -> None:
    """Runs behind all others; GUARDRAIL_WRITE_VENDORS writes the table anew."""
    if sum(map(len, PASSED.values())) < len(CASES):
        return  # some were not asked for, or failed
    rows = [row(judge, PASSED[name]) for name, judge in JUDGES.items()]
    head = "| client | sender | JSON | stream | lost |\n|---|---|---|---|---|\n"
    table = f"{BEGIN}\n{head}" + "\n".join(rows) + f"\n{END}"
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    changed = before + table + rest.partition(END)[2]
    if os.environ.get("GUARDRAIL_WRITE_VENDORS"):
        PAGE.write_text(changed)
    assert changed == PAGE.read_text()
