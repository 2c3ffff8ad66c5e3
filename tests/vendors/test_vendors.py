"""Real senders behind the middleware and a real guard; vendors' own clients read the replies."""

from __future__ import annotations

import json

import pytest

from tests.vendors.hosts import Hosts
from tests.vendors.judges import JUDGES
from tests.vendors.saying import SAYINGS

CASES = [
    pytest.param(name, streamed, saying, id=f"{name}, {'stream' if streamed else 'json'}, {saying}")
    for name, judge in JUDGES.items()
    for streamed in judge.streams
    for saying in SAYINGS
]


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
        assert hidden not in parsed
        assert hidden not in sent
    if saying == "good" and not streamed:
        assert host.sent == host.original
    if judge.stopped is not ...:
        assert (seen.reason == judge.stopped) == (saying == "stopped")
    if saying == "marked":
        marks = host.headers.get("x-guardrail-action"), "x-guardrail-action=mark" in sent
        assert marks == ((None, True) if streamed else ("mark", False))
