"""Limits of keys counted in a Redis: shared by services, and what callers see when it is away."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from guardrail_service.commands.main import app as commands
from guardrail_service.errors import ConfigurationError
from guardrail_service.server import limiter, redis_counters
from guardrail_service.server.app import create_app
from guardrail_service.server.counters import CountersAway
from guardrail_service.server.limiter import open_counters
from guardrail_service.server.redis_counters import RedisCounters
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings
from guardrail_service.types import Rate
from tests.databases.conftest import RedisServer

ASKED = {"question": "When?", "answer": "It opens at seven.", "contexts": ["It opens at seven."]}


def test_services_count_together_and_callers_apart(redis_server: RedisServer) -> None:
    """Rates and requests in work; a refused request is not counted."""
    one, two = RedisCounters(redis_server.url), open_counters(redis_server.url)
    assert one.is_remote
    rate = Rate(3, 3_600)
    assert [one.take("a", rate), two.take("a", rate), one.take("a", rate)] == [0, 0, 0]
    assert 0 < two.take("a", rate) <= 7_200
    assert two.take("b", rate) == 0
    assert [one.enter("a", 2), two.enter("a", 2), one.enter("a", 2)] == [True, True, False]
    two.leave("a")
    assert one.enter("a", 2)
    one.close()
    two.close()


def test_a_window_of_a_second_lets_the_next_pass(redis_server: RedisServer) -> None:
    """After the time that it says."""
    counters, rate = RedisCounters(redis_server.url), Rate(1, 1)
    assert counters.take("a", rate) == 0
    end = time.monotonic() + 60
    while wait_s := counters.take("a", rate):
        assert wait_s <= 2.1
        assert time.monotonic() < end
        time.sleep(wait_s)
    counters.close()


def test_a_place_of_a_killed_process_is_free_again(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody gives it back; it ends by itself."""
    monkeypatch.setattr(redis_counters, "LEASE_S", 1)
    killed, other = RedisCounters(redis_server.url), RedisCounters(redis_server.url)
    assert killed.enter("a", 1)
    end = time.monotonic() + 60
    while not other.enter("a", 1):
        assert time.monotonic() < end
        time.sleep(0.1)
    killed.leave("a")  # late: what is gone is not given back a second time
    assert not killed.enter("a", 1)
    killed.close()
    other.close()


def test_a_redis_that_is_away_says_so(redis_server: RedisServer) -> None:
    """Soon: a caller waits for the answer."""
    counters = RedisCounters(redis_server.url)
    assert counters.enter("a", 9)
    redis_server.kill()
    for ask in (
        lambda: counters.take("a", Rate(1, 1)),
        lambda: counters.enter("a", 1),
        lambda: counters.leave("a"),
    ):
        with pytest.raises(CountersAway):
            ask()
    redis_server.start()
    assert counters.take("a", Rate(1, 3_600)) == 0
    counters.close()


def test_a_wrong_url_stops_the_start() -> None:
    """Its password is in no message."""
    with pytest.raises(ConfigurationError, match="GUARDRAIL_COUNTERS") as refused:
        RedisCounters("redis://:zq9@127.0.0.1:port/0")
    assert "zq9" not in str(refused.value)


@pytest.mark.parametrize(("away", "status"), [("serve", 200), ("refuse", 503)])
def test_callers_of_two_services_share_a_rate_and_see_a_redis_go_and_come(
    redis_server: RedisServer,
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    away: str,
    status: int,
) -> None:
    """Away, every request passes or none, as the setting says; back, all are counted anew."""
    monkeypatch.setattr(limiter, "PAUSE_S", 0.05)
    keys = tmp_path / "keys.json"
    given = ["keys", "add", "bot", "--file", str(keys), "--rate", "2/hour", "--concurrency", "9"]
    key = CliRunner().invoke(commands, given).stdout.strip()
    config = tmp_path / "tiny.json"
    config.write_text(json.dumps({"evaluator_ids": ["groundedness"]}))
    settings = Settings(
        model_pack=str(tiny),
        config=(config,),
        workers=1,
        api_keys_file=keys,
        counters=redis_server.url,
        counters_away=away,  # type: ignore[arg-type]
    )
    with ExitStack() as stack:
        apps = [create_app(runtime=Runtime(settings)) for _ in range(2)]
        one, two = (stack.enter_context(TestClient(app)) for app in apps)
        sent = {"json": ASKED, "headers": {"Authorization": f"Bearer {key}"}}
        answers = [client.post("/v1/check", **sent) for client in (one, two, one, two)]  # type: ignore[arg-type]
        assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
        assert int(answers[2].headers["Retry-After"]) >= 1
        redis_server.kill()
        for _ in range(4):
            assert one.post("/v1/check", **sent).status_code == status  # type: ignore[arg-type]
        result = "served" if status == 200 else "refused"
        assert (
            f'guardrail_uncounted_requests_total{{result="{result}"}}' in one.get("/metrics").text
        )
        redis_server.start()
        time.sleep(0.1)
        counted = [two.post("/v1/check", **sent).status_code for _ in range(3)]  # type: ignore[arg-type]
        assert counted == [200, 200, 429]
