"""Versions of policies through the application: switches, trials, reloads, and what stays."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from guardrail_service.commands.main import app as commands
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.versions import (
    add_version,
    promote,
    rollback,
    set_canary,
    set_shadow,
)
from guardrail_service.server.app import create_app
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings

ASKED = {"question": "When?", "answer": "It opens at seven.", "contexts": ["It opens at seven."]}
PATIENCE_S = 60.0


class Deployment(NamedTuple):
    """A service on a folder of versions."""

    folder: Path
    client: TestClient
    runtime: Runtime

    def version(self, policy: str = "support", **given: Any) -> str:
        """Return the version that a check is judged by."""
        reply = self.client.post("/v1/check", json={**ASKED, "policy": policy}, **given)
        assert reply.status_code == 200, reply.text
        return str(reply.json()["policy"]["version"])

    def reload(self) -> Any:
        """Ask for a reload."""
        return self.client.post("/v1/admin/reload")

    def metric(self, line: str) -> float:
        """Return a metric by its name and labels."""
        lines = self.client.get("/metrics").text.splitlines()
        return next(float(found.split()[-1]) for found in lines if found.startswith(f"{line} "))


def guardrail_json(folder: Path, threshold: float = 0.5, **policy: Any) -> Path:
    """Write a guardrail JSON over the tiny pack."""
    path = folder / "given.json"
    content = {
        "evaluator_ids": ["groundedness", "looping"],
        "calibrated_thresholds": {"groundedness": {"groundedness": threshold}},
        "policy": policy,
    }
    path.write_text(json.dumps(content))
    return path


def three_versions(folder: Path, name: str = "support") -> Path:
    """Add three versions of a policy and make the first live."""
    policies = folder / "policies"
    for threshold in (0.1, 0.2, 0.3):
        add_version(policies, guardrail_json(folder, threshold), name=name)
    promote(policies, name, "1")
    return policies


def deployed(pack: Path, policies: Path, **given: Any) -> tuple[TestClient, Runtime]:
    """Load a service on a folder; its looks are too rare to be seen unless it is told otherwise."""
    settings = Settings(
        model_pack=str(pack), policies=policies, workers=1, **{"watch_s": 3_600, **given}
    )
    runtime = Runtime(settings)
    near = ("127.0.0.1", 50_000)
    return TestClient(create_app(runtime=runtime), client=near), runtime


@pytest.fixture
def deployment(tiny: Path, tmp_path: Path) -> Iterator[Deployment]:
    """A service with one policy in three versions, the first live."""
    policies = three_versions(tmp_path)
    client, runtime = deployed(tiny, policies)
    with client:
        yield Deployment(policies, client, runtime)


def until(condition: Callable[[], Any], what: str) -> None:
    """Wait until something is true; fail if it never is."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        threading.Event().wait(0.02)


def test_a_promotion_is_in_force_after_a_reload_and_a_rollback_undoes_it(
    deployment: Deployment,
) -> None:
    """Name, version and hash stand in every verdict; a version can be named."""
    assert deployment.version() == "1"
    promote(deployment.folder, "support", "3")
    assert deployment.version() == "1"
    reply = deployment.reload()
    assert [(p["version"], p["part"]) for p in reply.json()["policies"]] == [("3", "live")]
    assert deployment.version() == "3"
    assert deployment.version("support@1") == "1"
    unknown = deployment.client.post("/v1/check", json={**ASKED, "policy": "support@9"})
    assert unknown.json()["error"]["code"] == "unknown_policy"
    rollback(deployment.folder, "support")
    assert deployment.reload().json()["policies"][0]["version"] == "1"
    assert deployment.metric('guardrail_policy_reloads_total{result="ok"}') == 2
    assert deployment.metric('guardrail_policy_live{policy="support",version="1"}') == 1


def test_a_bad_version_leaves_everything_as_it_was_and_says_so(
    deployment: Deployment, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In the reply, the log, the probe and a metric; the next good one takes over."""
    broken = guardrail_json(tmp_path)
    broken.write_text('{"evaluator_ids": ["toxicity"]}')  # the tiny pack cannot serve it
    add_version(deployment.folder, broken, name="support")
    promote(deployment.folder, "support", "4")
    refused = deployment.reload()
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "reload_failed"
    assert "toxicity" in refused.json()["error"]["message"]
    assert deployment.version() == "1"
    assert "keeping the last good one" in caplog.text
    assert "reload failed" in deployment.client.get("/readyz").json()["detail"]["configuration"]
    assert deployment.metric("guardrail_config_reload_failed") == 1
    assert deployment.metric('guardrail_policy_reloads_total{result="failed"}') == 1
    promote(deployment.folder, "support", "2")
    assert deployment.reload().status_code == 200
    assert deployment.version() == "2"
    assert deployment.client.get("/readyz").json()["detail"] == {}


def test_a_policy_under_which_a_detector_fails_never_serves(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is judged under beside the old one before anybody else is."""
    promote(deployment.folder, "support", "2")
    add_version(deployment.folder, guardrail_json(deployment.folder.parent, 0.9), name="support")
    promote(deployment.folder, "support", "4")
    looping = deployment.runtime.guard._registry["looping"]
    monkeypatch.setattr(looping, "reduce", lambda *_: 1 / 0)
    assert "a failure of looping (ZeroDivisionError)" in deployment.reload().text
    monkeypatch.undo()
    assert deployment.version() == "1"
    assert deployment.reload().status_code == 200
    assert deployment.version() == "4"


def test_a_batch_that_has_begun_is_judged_by_one_version(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch in its midst is for the next request."""
    guard, judged = deployment.runtime.guard, []
    whole = guard.judge

    def judge(rules: Any, *rest: Any) -> Any:
        if not judged:
            judged.append(rules.version)
            promote(deployment.folder, "support", "2")
            deployment.runtime.reload()
        return whole(rules, *rest)

    monkeypatch.setattr(guard, "judge", judge)
    reply = deployment.client.post("/v1/check/batch", json={"items": [ASKED] * 3})
    assert [one["policy"]["version"] for one in reply.json()["results"]] == ["1"] * 3
    assert deployment.version() == "2"


def test_a_storm_of_reloads_reads_a_few_times_and_loses_nothing(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks gets a reading that began after the question."""
    reloads, read = deployment.runtime.reloads, []
    whole, gate = reloads._load, threading.Event()

    def slow() -> Any:
        read.append(1)
        gate.wait(PATIENCE_S)
        return whole()

    monkeypatch.setattr(reloads, "_load", slow)
    with ThreadPoolExecutor(60) as pool:
        asked = [pool.submit(deployment.reload) for _ in range(60)]
        until(lambda: reloads._asked == 60, "everybody has asked")
        for _ in range(200):
            reloads.soon()
        assert deployment.client.get("/v1/info").status_code == 200
        assert deployment.version() == "1"
        promote(deployment.folder, "support", "3")
        gate.set()
        assert {one.result().status_code for one in asked} == {200}
        assert deployment.reload().json()["policies"][0]["version"] == "3"
    assert len(read) <= 5
    assert deployment.version() == "3"


def test_a_share_of_callers_is_judged_by_the_version_on_trial(tiny: Path, tmp_path: Path) -> None:
    """Each by the same one every time; the others by the live one."""
    policies, keys = three_versions(tmp_path), tmp_path / "keys.json"
    set_canary(policies, "support", "2", 0.5)
    made = [
        CliRunner().invoke(commands, ["keys", "add", f"caller-{n}", "--file", str(keys)])
        for n in range(12)
    ]
    client, runtime = deployed(tiny, policies, api_keys_file=keys)
    with client:
        here = Deployment(policies, client, runtime)
        tokens = [one.stdout.strip() for one in made]
        seen = [
            [here.version(headers={"Authorization": f"Bearer {token}"}) for token in tokens]
            for _ in range(2)
        ]
        assert seen[0] == seen[1]
        assert set(seen[0]) == {"1", "2"}
        refused = client.post("/v1/admin/reload", headers={"Authorization": f"Bearer {tokens[0]}"})
        assert refused.status_code == 403
        assert client.post("/v1/admin/reload").status_code == 401


def test_who_is_not_on_this_machine_needs_a_key_to_reload(deployment: Deployment) -> None:
    """Without keys, whoever is on it may."""
    far = TestClient(deployment.client.app, client=("10.0.0.7", 50_000))
    refused = far.post("/v1/admin/reload")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")


def test_a_volume_that_is_switched_by_a_link_is_seen(tiny: Path, tmp_path: Path) -> None:
    """As Kubernetes does it: a folder per state, a link to one, and links to what is in it."""
    policies = three_versions(tmp_path)
    mount = tmp_path / "mount"

    def state(name: str) -> None:
        """Lay a state of all files down and let the link point to it."""
        folder = mount / name / "support"
        folder.mkdir(parents=True)
        for path in (policies / "support").iterdir():
            if not path.name.startswith("."):
                (folder / path.name).write_bytes(path.read_bytes())
                os.utime(folder / path.name, (1e9, 1e9))  # same age and size: content differs
        (mount / "..data_tmp").symlink_to(name)
        (mount / "..data_tmp").replace(mount / "..data")

    state("..2026_1")
    (mount / "support").symlink_to("..data/support")
    client, runtime = deployed(tiny, mount, watch_s=0.02)
    with client:
        here = Deployment(mount, client, runtime)
        assert here.version() == "1"
        set_canary(policies, "support", "3", 1.0)
        promote(policies, "support", "2")
        state("..2026_2")
        until(lambda: here.version() == "3", "the trial is seen")
        (policies / "support" / "live").write_text('{"live": "9"}')
        state("..2026_3")
        until(lambda: runtime.reload_error, "the bad state is seen")
        assert here.version() == "3"
        (policies / "support" / "live").write_text('{"live": "2"}')
        state("..2026_4")
        until(lambda: here.version() == "2", "the repaired state is seen")


def test_files_are_watched_where_that_is_asked_for(tiny: Path, tmp_path: Path) -> None:
    """Without it they are read on a signal only."""
    path = guardrail_json(tmp_path, name="plain", version="1")
    runtime = Runtime(
        Settings(model_pack=str(tiny), config=(path,), workers=1, watch_config=True, watch_s=0.02)
    )
    with TestClient(create_app(runtime=runtime)) as client:
        here = Deployment(tmp_path, client, runtime)
        assert here.version("plain") == "1"
        guardrail_json(tmp_path, name="plain", version="2")
        until(lambda: here.version("plain") == "2", "the change is seen")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f / "support" / "live").unlink(), "no policy that is live"),
        (lambda f: (f / "support" / "live").write_text("[]"), "live"),
        (lambda f: (f / "support" / "1.json").unlink(), "1.json"),
        (lambda f: (f / "support" / "1.json").write_text("{}"), "other bytes"),
        (lambda f: (f / "support" / "versions.jsonl").write_text("zq\n"), "line 1"),
    ],
)
def test_a_folder_that_cannot_be_served_stops_the_start(
    tiny: Path, tmp_path: Path, change: Callable[[Path], object], message: str
) -> None:
    """With the file and what was expected."""
    policies = three_versions(tmp_path)
    change(policies)
    with pytest.raises(ConfigurationError, match=message):
        Runtime(Settings(model_pack=str(tiny), policies=policies, workers=1))


def test_the_commands_walk_a_policy_through_its_life(tiny: Path, tmp_path: Path) -> None:
    """Added, compared, in the shadow, on trial, live, and back."""
    folder = ["--folder", str(tmp_path / "policies")]
    pack = ["--pack", str(tiny)]

    def guardrail(*arguments: str, status: int = 0) -> str:
        env = {"COLUMNS": "250"}
        done = CliRunner().invoke(commands, ["policies", *arguments, *folder], env=env)
        assert done.exit_code == status, done.output
        return done.output

    for threshold in (0.1, 0.2):
        file = str(guardrail_json(tmp_path, threshold))
        guardrail("add", file, "--name", "support", "--why", "tried", *pack)
    guardrail("promote", "support@1", "--by", "ada", *pack)
    changed = json.loads(guardrail("diff", "support", "support@2", "--json", *pack, status=1))
    metric = "detectors.groundedness.metrics.groundedness.threshold"
    assert changed == {metric: {"old": 0.1, "new": 0.2}}
    assert "mean the same" in guardrail("diff", "support", "support@1", *pack)
    guardrail("shadow", "support", "2", *pack)
    assert "support: 2, 1 in" in guardrail("shadow", "support@2", "1", *pack)
    assert "support: 2 in" in guardrail("shadow", "support@2", *pack)
    guardrail("canary", "support@2", "--share", "0.25", *pack)
    (listed,) = json.loads(guardrail("list", "--json"))
    assert (listed["live"], listed["shadow"]) == ("1", ["2"])
    assert listed["canary"] == {"version": "2", "share": 0.25}
    guardrail("canary", "support", *pack)
    guardrail("promote", "support@2", *pack)
    assert "support@2" in guardrail("list")
    assert "support@1 is live (rollback" in guardrail("rollback", "support", *pack)
    shown = json.loads(guardrail("show", "support@2", *pack))
    assert shown["detectors"]["looping"]
    assert shown["policy sha256"] == shown["sha256"] != shown["file sha256"]
    table = guardrail("list")
    assert all(shown[f"{of} sha256"][:12] in table for of in ("file", "policy"))
    guardrail("promote", "support", *pack, status=2)
    unservable = tmp_path / "other.json"
    unservable.write_text('{"evaluator_ids": ["toxicity"]}')
    assert "toxicity" in guardrail("add", str(unservable), *pack, status=2)


def test_a_shadow_has_to_be_a_policy_that_is_loaded(tiny: Path, tmp_path: Path) -> None:
    """Found at the start."""
    with pytest.raises(ConfigurationError, match="GUARDRAIL_SHADOW_POLICIES"):
        Runtime(
            Settings(
                model_pack=str(tiny),
                config=(guardrail_json(tmp_path, name="plain"),),
                shadow_policies=("strict",),
                workers=1,
            )
        )


def test_a_shadow_must_be_servable_as_a_live_one(tiny: Path, tmp_path: Path) -> None:
    """What has a part to play is loaded or nothing is."""
    policies = three_versions(tmp_path)
    set_shadow(policies, "support", ("2",))
    (policies / "support" / "2.json").unlink()
    with pytest.raises(ConfigurationError, match=r"2\.json"):
        Runtime(Settings(model_pack=str(tiny), policies=policies, workers=1))
