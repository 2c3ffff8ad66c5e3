"""Keys with rights and limits through the application: what each caller sees, and what is counted.

One application, and one file of keys that `guardrail keys` writes; each test has keys of its own.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from guardrail_service.commands.main import app as commands
from guardrail_service.server.app import create_app
from guardrail_service.server.counters import MemoryCounters
from guardrail_service.server.keys import Keys
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings

ASKED = {"question": "When?", "answer": "It opens at seven.", "contexts": ["It opens at seven."]}
CHANGED = {**ASKED, "policy": "open", "detectors": {"looping": {"thresholds": {"looping": 0.1}}}}


class Served(NamedTuple):
    """An application with keys, and what makes and revokes them."""

    client: TestClient
    file: Path
    renew: Callable[[], None]

    def key(self, key_id: str, *options: str) -> str:
        """Make a key and let the service know it."""
        made = CliRunner().invoke(
            commands, ["keys", "add", key_id, "--file", str(self.file), *options]
        )
        assert made.exit_code == 0, made.output
        self.renew()
        return made.stdout.strip().splitlines()[-1]

    def revoke(self, key_id: str) -> None:
        """Take a key back and let the service know it."""
        done = CliRunner().invoke(commands, ["keys", "revoke", key_id, "--file", str(self.file)])
        assert done.exit_code == 0
        self.renew()

    def post(self, key: str, path: str = "/v1/check", **body: Any) -> httpx.Response:
        """Send a body, by default a whole check."""
        return self.client.post(path, json={**ASKED, **body}, headers=bearer(key))


def bearer(key: str) -> dict[str, str]:
    """Return the header that carries a key."""
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture(scope="module")
def served(
    tiny: Path, configs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """The application; a key of the file that is made later is known at once."""
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    first = CliRunner().invoke(commands, ["keys", "add", "first", "--file", str(file)])
    assert first.exit_code == 0, first.output
    assert (file.stat().st_mode & 0o777) == 0o600
    settings = Settings(model_pack=str(tiny), config=configs, workers=1, api_keys_file=file)
    made: list[Keys] = []
    with pytest.MonkeyPatch.context() as patch:
        whole = Keys.of

        def of(settings: Settings) -> Keys | None:
            keys = whole(settings)
            made.append(keys) if keys else None
            return keys

        patch.setattr(Keys, "of", of)
        application = create_app(runtime=Runtime(settings))

    def renew() -> None:
        made[0].renew()  # two looks, since what was written a moment ago may be half of it
        made[0].renew()

    with TestClient(application) as client:
        yield Served(client, file, renew)


def error(response: httpx.Response) -> tuple[int, str]:
    """Return status and code of a refusal."""
    return response.status_code, response.json()["error"]["code"]


def test_unknown_revoked_and_expired_keys_are_told_apart(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the id, never the key."""
    caplog.set_level(logging.INFO, "guardrail.access")
    gone, old = served.key("gone"), served.key("old", "--expires", "2020-01-01")
    assert served.post(gone).status_code == 200
    served.revoke("gone")
    assert error(served.post(gone)) == (401, "key_revoked")
    assert error(served.post(old)) == (401, "key_expired")
    assert error(served.post("rgk_nobody")) == (401, "unauthorized")
    lines = [r.getMessage() for r in caplog.records if r.name == "guardrail.access"]
    keys = [json.loads(line).get("key") for line in lines]
    assert keys == ["gone", "gone", "old", None]
    assert {json.loads(line)["route"] for line in lines} == {"/v1/check"}
    assert not {gone, old} & set(caplog.text.split('"'))
    again = CliRunner().invoke(commands, ["keys", "add", "gone", "--file", str(served.file)])
    assert again.exit_code == 2
    metrics = served.client.get("/metrics").text
    assert 'guardrail_key_requests_total{key="gone",status="401"} 1.0' in metrics


def test_a_key_uses_the_policies_it_names_and_knows_of_no_others(served: Served) -> None:
    """The first of them stands for the default one, where that is not among them."""
    key = served.key("narrow", "--policy", "open", "--overrides")
    assert served.post(key).json()["policy"]["name"] == "open"
    assert served.post(key, policy="open").status_code == 200
    for other in ("default", "open@7", "nonsense"):
        assert error(served.post(key, policy=other)) == (403, "policy_refused")
    shown = served.client.get("/v1/policies", headers=bearer(key)).json()["policies"]
    assert [policy["name"] for policy in shown] == ["open"]
    batch = served.post(key, "/v1/check/batch", items=[ASKED, {**ASKED, "policy": "default"}])
    assert batch.status_code == 422  # a batch has items only
    body = {"items": [ASKED, {**ASKED, "policy": "default"}]}
    batch = served.client.post("/v1/check/batch", json=body, headers=bearer(key))
    good, refused = batch.json()["results"]
    assert good["policy"]["name"] == "open"
    assert refused["error"]["code"] == "policy_refused"
    stream = served.client.post(
        "/v1/check/stream", content=b'{"policy": "default"}\n', headers=bearer(key)
    )
    assert error(stream) == (403, "policy_refused")


@pytest.mark.parametrize(("options", "status"), [((), 422), (("--overrides",), 200)])
def test_a_key_changes_thresholds_only_where_it_may(
    served: Served, options: tuple[str, ...], status: int
) -> None:
    """What belongs to the sample every request may set."""
    key = served.key(f"changing-{status}", *options)
    metric = {"looping": {"thresholds": {"compression_ratio": 0.1}}}
    found = served.post(key, policy="open", detectors=metric)
    assert found.status_code == status, found.text
    if status == 422:
        assert error(found) == (422, "override_refused")
        assert "this key" in found.json()["error"]["message"]
    schema = {"json_schema": {"parameters": {"schema": {}}}}
    assert served.post(key, policy="open", detectors=schema).status_code == 200


def test_a_right_is_asked_for_before_anything_is_read(served: Served) -> None:
    """A key that reads decisions judges nothing, and may see what is loaded."""
    key = served.key("reader", "--right", "decisions")
    assert error(served.post(key)) == (403, "forbidden")
    assert error(served.post(key, "/v1/contexts")) == (403, "forbidden")
    assert served.client.get("/v1/info", headers=bearer(key)).status_code == 200


def test_a_rate_is_kept_and_says_when_to_come_again(served: Served) -> None:
    """Another key is not held up by it."""
    key, other = served.key("slow", "--rate", "2/hour"), served.key("other", "--rate", "2/hour")
    assert [served.post(key).status_code for _ in range(2)] == [200, 200]
    refused = served.post(key)
    assert error(refused) == (429, "rate_exceeded")
    assert 1 <= int(refused.headers["Retry-After"]) <= 2 * 3_600
    assert served.post(other).status_code == 200


def test_requests_in_work_are_limited_and_a_revoked_one_ends(served: Served) -> None:
    """A stream is one request from its first line to its last record, and ends as it began."""
    key = served.key("streaming", "--concurrency", "1", "--policy", "open")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def lines() -> Any:
        yield b'{"contexts": ["It opens at seven."]}\n'
        begun.set()
        await go_on.wait()
        yield b'{"text": "It opens at seven."}\n{"end": true}\n'

    async def meet() -> tuple[httpx.Response, httpx.Response, httpx.Response, httpx.Response]:
        transport = httpx.ASGITransport(app=served.client.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            headers = bearer(key)
            stream = asyncio.ensure_future(
                client.post("/v1/check/stream", content=lines(), headers=headers)
            )
            await begun.wait()
            beside = await client.post("/v1/check", json=ASKED, headers=headers)
            served.revoke("streaming")
            after = await client.post("/v1/check", json=ASKED, headers=headers)
            go_on.set()
            ended = await stream
            late = await client.post("/v1/check", json=ASKED, headers=headers)
            return beside, after, ended, late

    beside, after, ended, late = served.client.portal.call(meet)  # type: ignore[union-attr]
    assert error(beside) == (429, "rate_exceeded")
    assert beside.headers["Retry-After"] == "1"
    assert error(after) == error(late) == (401, "key_revoked")
    records = [json.loads(line) for line in ended.text.splitlines()]
    assert [record["type"] for record in records][-1] == "final"
    assert "".join(r["text"] for r in records if r["type"] == "release") == "It opens at seven."


def test_a_key_without_limits_is_counted_nowhere(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits cost what they are used for."""
    asked: list[str] = []
    monkeypatch.setattr(MemoryCounters, "enter", lambda *a: asked.append("enter"))
    monkeypatch.setattr(MemoryCounters, "take", lambda *a: asked.append("take"))
    assert served.post(served.key("free")).status_code == 200
    assert not asked


def test_keys_are_listed_without_digests(served: Served) -> None:
    """As a table and as JSON."""
    served.key("listed", "--rate", "9/second", "--policy", "open")
    table = CliRunner().invoke(commands, ["keys", "list", "--file", str(served.file)])
    assert "listed" in table.output
    assert "9/second" in table.output
    found = CliRunner().invoke(commands, ["keys", "list", "--json", "--file", str(served.file)])
    listed = {key["id"]: key for key in json.loads(found.output)}
    assert listed["listed"]["rate"] == "9/second"
    assert "digest" not in found.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "a", "--rate", "many"], "rate"),
        (["add", "a", "--right", "chek"], "did you mean 'check'"),
        (["add", "a b"], "id"),
        (["revoke", "nobody"], "keys"),
    ],
)
def test_a_wrong_command_changes_nothing(
    served: Served, arguments: list[str], message: str
) -> None:
    """And says what is wrong in one line."""
    before = served.file.read_bytes()
    done = CliRunner().invoke(commands, ["keys", *arguments, "--file", str(served.file)])
    assert done.exit_code == 2
    assert message in done.output
    assert served.file.read_bytes() == before
    assert [path.name for path in served.file.parent.iterdir()] == [served.file.name]
