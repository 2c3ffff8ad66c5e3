"""kill -9, a full disk, a database that is away: nothing acknowledged is lost."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from guardrail_decisions.database import Database, lock_head
from tests.databases.servers import Postgres
from tests.integration.conftest import Served, until
from tests.unit.decisions.made_up import reader

Serve = Callable[..., Served]
SAMPLE = {"question": "How long?", "answer": "Two weeks.", "contexts": ["Guests stay two weeks."]}


def checked(client: httpx.Client, name: str) -> int:
    """Send a check with an id and return its status; 0 if the connection broke."""
    try:
        reply = client.post("/v1/check", json=SAMPLE, headers={"X-Request-Id": name})
    except httpx.HTTPError:
        return 0
    return reply.status_code


def store_of(url: str, **more: str) -> dict[str, str]:
    """Return the environment of a service that may answer only when a decision is durable."""
    changes = {"GUARDRAIL_DECISIONS_URL": url, "GUARDRAIL_DECISIONS_AUDIT": "required"}
    return {**changes, "GUARDRAIL_DECISIONS_WAIT_S": "2", **more}


def stored(url: str) -> set[str]:
    """Return the request ids of a store that is intact."""
    with reader(url) as opened:
        assert opened.verify().intact
        return {found.record.request_id for found in opened.decisions()}


def test_killing_the_service_loses_nothing_that_was_acknowledged(
    either: str, serve: Serve, on_tiny: tuple[Any, ...]
) -> None:
    """kill -9 between and during writes; the store is intact, and the next start goes on."""
    service = serve(*on_tiny, **store_of(either))
    acknowledged: list[str] = []
    with service.client() as client, ThreadPoolExecutor(4) as pool:

        def ask(number: int) -> None:
            if checked(client, f"r-{number}") == 200:
                acknowledged.append(f"r-{number}")

        for number in range(200):
            pool.submit(ask, number)
        until(lambda: len(acknowledged) > 20, "some are acknowledged")
        service.signal(signal.SIGKILL)
    assert service.process.wait(200) == -signal.SIGKILL
    assert 20 < len(acknowledged) < 200
    assert set(acknowledged) <= stored(either)
    again = serve(*on_tiny, **store_of(either))
    with again.client() as client:
        assert checked(client, "after") == 200
    assert "after" in stored(either)


@pytest.mark.parametrize("audit", ["required", "best_effort"])
def test_a_full_disk_refuses_or_counts_and_ends_when_there_is_room(
    audit: str, tmp_path: Path, serve: Serve, on_tiny: tuple[Any, ...]
) -> None:
    """No file of the service may grow further: the kernel says so to SQLite as a full disk does."""
    url = f"sqlite:///{tmp_path / 'decisions.db'}"
    few = {"GUARDRAIL_DECISIONS_AUDIT": audit, "GUARDRAIL_DECISIONS_QUEUE": "8"}
    service = serve(*on_tiny, **{**store_of(url), **few})
    pid, unlimited = service.process.pid, resource.RLIM_INFINITY
    with service.client() as client:
        assert checked(client, "before") == 200
        until(lambda: "before" in stored(url), "it is stored")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4_096, unlimited))
        statuses = [checked(client, f"full-{number}") for number in range(20)]
        assert set(statuses) == ({503} if audit == "required" else {200})
        shown = client.get("/readyz")
        assert "decisions" in shown.json()["detail"]
        assert shown.status_code == (503 if audit == "required" else 200)
        lost = client.get("/metrics").text
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
        until(lambda: client.get("/readyz").json()["detail"] == {}, "there is room again")
        assert checked(client, "after") == 200
        until(lambda: "after" in stored(url), "it is stored")
    if audit == "best_effort":
        counted = 'guardrail_decisions_lost_total{reason="queue"}'
        number = next(line.split()[-1] for line in lost.splitlines() if line.startswith(counted))
        assert len([name for name in stored(url) if name.startswith("full")]) == 20 - float(number)


def test_a_database_that_is_away_refuses_and_comes_back(
    postgres: Postgres, url: str, serve: Serve, on_tiny: tuple[Any, ...]
) -> None:
    """503 with a code of its own; the service goes on by itself when the server is back."""
    service = serve(*on_tiny, **store_of(url))
    with service.client() as client:
        assert checked(client, "before") == 200
        postgres.stop()
        try:
            reply = client.post("/v1/check", json=SAMPLE)
            assert (reply.status_code, reply.json()["error"]["code"]) == (503, "not_recorded")
            assert client.get("/readyz").status_code == 503
        finally:
            postgres.start()
        until(lambda: checked(client, "after") == 200, "the server is back")
    assert {"before", "after"} <= stored(url)


def test_a_spool_takes_what_the_database_does_not_and_survives_kill(
    tmp_path: Path, serve: Serve, on_tiny: tuple[Any, ...]
) -> None:
    """Another writer holds the database; what was acknowledged into the spool is stored later."""
    url, spool = f"sqlite:///{tmp_path / 'decisions.db'}", tmp_path / "spool"
    env = store_of(url, GUARDRAIL_DECISIONS_SPOOL=str(spool), GUARDRAIL_DECISIONS_WAIT_S="60")
    service = serve(*on_tiny, **env)
    database = Database(url)
    with service.client() as client, database.writing() as held:
        lock_head(held)
        assert checked(client, "spooled") == 200
        assert b"spooled" in spool.read_bytes()
        service.signal(signal.SIGKILL)
        service.process.wait(200)
    database.close()
    assert "spooled" not in stored(url)
    with serve(*on_tiny, **env).client() as client:
        until(lambda: "spooled" in stored(url), "the spool is emptied")
        assert spool.read_bytes() == b""


def test_a_drained_service_has_written_everything(
    either: str, serve: Serve, on_tiny: tuple[Any, ...]
) -> None:
    """SIGTERM while decisions wait: none of them is required, none is lost."""
    service = serve(*on_tiny, **{**store_of(either), "GUARDRAIL_DECISIONS_AUDIT": "best_effort"})

    with service.client() as client:
        for number in range(40):
            assert checked(client, f"r-{number}") == 200

    assert service.end() == 0
    assert len(stored(either)) == 40
