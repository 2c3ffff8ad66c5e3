"""`guardrail serve --processes`: several processes that callers take for one service."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from guardrail_service import posix
from guardrail_service.errors import ConfigurationError
from guardrail_service.server import serve as serving
from guardrail_service.server.process_place import AcceptTurns, ProcessPlace, part_of
from guardrail_service.server.shared_counters import SharedCounters
from guardrail_service.settings import DecisionSettings, Settings
from tests.integration.conftest import (
    PATIENCE_S,
    Served,
    environment,
    guardrail,
    here,
    running,
    until,
)
from tests.integration.test_serve import SAMPLE, metric

Options = tuple[str | Path, ...]


@pytest.fixture
def together(on_tiny: Options, tmp_path: Path) -> Callable[..., Any]:
    """Run two processes behind one port; their folder lies in `tmp_path`."""

    @contextmanager
    def run(*options: str | Path, **env: str) -> Iterator[Served]:
        with running(*on_tiny, "--processes", "2", *options, TMPDIR=str(tmp_path), **env) as served:
            yield served

    return run


def children(pid: int) -> list[int]:
    """Return the processes that serve, in the order of their start."""
    try:
        return sorted(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []


def alone(service: Served) -> httpx.Client:
    """Return a client that opens a connection for each request, so that all processes get some."""
    return httpx.Client(
        base_url=service.address, timeout=60, limits=httpx.Limits(max_keepalive_connections=0)
    )


def checks(client: httpx.Client, number: int) -> list[int]:
    """Check some answers, several at a time, and return the statuses."""
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda _: client.post("/v1/check", json=SAMPLE), range(number))
        return [reply.status_code for reply in found]


def counted(client: httpx.Client) -> float:
    """Return how many checks all processes have counted."""
    lines = client.get("/metrics").text.splitlines()
    return sum(
        float(line.split()[-1])
        for line in lines
        if line.startswith("guardrail_requests_total") and 'route="/v1/check"' in line
    )


def test_processes_count_together_and_survive_a_kill_and_a_roll(
    together: Callable[..., Any], tmp_path: Path
) -> None:
    """No count is lost, nobody is refused while all are replaced, and nothing is left behind."""
    with together() as service, alone(service) as client:
        first = children(service.process.pid)
        assert len(first) == 2
        assert checks(client, 20) == [200] * 20
        assert counted(client) == 20
        assert metric(client, "guardrail_processes") == 2

        os.kill(first[0], signal.SIGKILL)
        until(lambda: metric(client, "guardrail_process_restarts_total") == 1, "one began anew")
        until(lambda: metric(client, "guardrail_processes") == 2, "both serve")
        second = children(service.process.pid)
        assert first[1] in second
        assert first[0] not in second
        assert counted(client) == 20  # also those of the killed one, which was asked before

        rolling = threading.Event()
        statuses: list[int] = []

        def ask() -> None:
            while not rolling.is_set():
                statuses.extend(checks(client, 4))

        asking = threading.Thread(target=ask)
        asking.start()
        service.signal(signal.SIGUSR1)
        until(lambda: not set(children(service.process.pid)) & set(second), "both are replaced")
        rolling.set()
        asking.join()
        assert set(statuses) == {200}
        assert metric(client, "guardrail_process_restarts_total") == 1
        assert counted(client) == 20 + len(statuses)
        last = children(service.process.pid)
        assert service.end() == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in last)
    assert not list(tmp_path.glob("rag-guardrail-*"))
    lines = [line.get("message", "") for line in service.lines]
    assert any("ended with -9 and is started anew" in line for line in lines)


def test_a_process_that_dies_while_it_is_replaced_is_not_started_anew_besides(
    together: Callable[..., Any],
) -> None:
    """The one that starts takes its place; otherwise one too many would stay."""
    with together() as service, alone(service) as client:
        first = children(service.process.pid)
        service.signal(signal.SIGUSR1)
        until(lambda: len(children(service.process.pid)) == 3, "another one starts")
        os.kill(first[0], signal.SIGKILL)
        until(lambda: not set(children(service.process.pid)) & set(first), "both are replaced")
        until(lambda: metric(client, "guardrail_processes") == 2, "both serve")
        assert metric(client, "guardrail_process_restarts_total") == 0
        assert checks(client, 8) == [200] * 8
        assert service.end() == 0


def test_processes_share_outputs_and_read_a_new_configuration(
    together: Callable[..., Any], tiny_config: Callable[..., Path], tmp_path: Path
) -> None:
    """By SIGHUP, or by HTTP to whichever answers; those that start later begin with it.

    They also share what models computed, in a file that goes with them, and their store: a word
    on a decision that another one has just made waits for that.
    """
    url = f"sqlite:///{tmp_path / 'decisions.db'}"
    store = {"GUARDRAIL_DECISIONS_URL": url, "GUARDRAIL_DECISIONS_SPOOL": str(tmp_path / "spool")}
    with together(**store) as service, alone(service) as client:

        def versions() -> set[str]:
            found = [client.post("/v1/check", json=SAMPLE) for _ in range(8)]
            return {reply.json()["policy"]["version"] for reply in found}

        numbers = count()

        def restored() -> float:
            text = {**SAMPLE, "answer": f"Guests may stay for {next(numbers)} weeks."}
            assert client.post("/v1/check", json=text).status_code == 200
            threading.Event().wait(0.5)  # until it is in the file
            for _ in range(6):
                client.post("/v1/check", json=text)
            lines = client.get("/metrics").text.splitlines()
            kept = [line for line in lines if line.startswith("guardrail_cache_restored_total")]
            return sum(float(line.split()[-1]) for line in kept)

        until(restored, "one process finds the outputs that the other one wrote")
        tiny_config("2")
        service.signal(signal.SIGHUP)
        until(lambda: versions() == {"2"}, "both have read it")
        os.kill(children(service.process.pid)[0], signal.SIGKILL)
        until(lambda: metric(client, "guardrail_processes") == 2, "both serve again")
        assert versions() == {"2"}
        tiny_config("3")
        assert client.post("/v1/admin/reload").status_code == 200
        until(lambda: versions() == {"3"}, "both have read it")

        tiny_config("4").write_text("{")
        service.signal(signal.SIGHUP)
        until(lambda: metric(client, "guardrail_config_reload_failed"), "it is refused")
        os.kill(children(service.process.pid)[0], signal.SIGKILL)
        until(lambda: metric(client, "guardrail_processes") == 2, "both serve again")
        assert versions() == {"3"}
        assert all(client.get("/readyz").json()["detail"] for _ in range(8))
        tiny_config("4")
        service.signal(signal.SIGUSR1)
        until(lambda: versions() == {"4"}, "being replaced they read it, too")
        for name in map("word-{}".format, range(6)):
            client.post("/v1/check", json=SAMPLE, headers={"X-Request-Id": name})
            word = {"request_id": name, "label": "pass"}
            assert client.post("/v1/feedback", json=word).status_code == 200


def test_a_key_has_one_rate_in_all_processes(together: Callable[..., Any], tmp_path: Path) -> None:
    """Five requests an hour are five, whoever answers them."""
    keys = tmp_path / "keys.json"
    made = guardrail("keys", "add", "app", "--rate", "5/hour", "--file", keys)
    assert made.returncode == 0, made.stderr
    key = made.stdout.decode().split()[-1]
    with together(GUARDRAIL_API_KEYS_FILE=str(keys)) as service, alone(service) as client:
        client.headers["Authorization"] = f"Bearer {key}"
        assert sorted(checks(client, 9)) == [200] * 5 + [429] * 4


def test_a_start_that_fails_is_one_line_and_leaves_nothing(
    on_tiny: Options, tmp_path: Path
) -> None:
    """Each process opens the store for itself; what is wrong with it stops them all."""
    store = tmp_path / "store"
    store.write_bytes(b"not ours" * 1_000)
    ended = guardrail(
        "serve", *on_tiny, "--processes", "2", TMPDIR=str(tmp_path), GUARDRAIL_STORE=str(store)
    )
    assert ended.returncode == 2
    assert ended.stderr.decode().count("error:") == 1
    assert str(store) in ended.stderr.decode()
    assert b"listening" not in ended.stdout
    assert not list(tmp_path.glob("rag-guardrail-*"))


def test_they_end_when_the_first_process_is_killed(together: Callable[..., Any]) -> None:
    """Nobody would look after them."""
    with together() as service:
        serving = children(service.process.pid)
        service.process.kill()
        until(lambda: not any(map(is_running, serving)), "all have ended")


def is_running(pid: int) -> bool:
    """Return whether a process runs; one that nobody waited for has ended, too."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def test_one_process_serves_on_a_system_without_fork_and_file_locks(
    on_tiny: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What needs them says so; Windows itself was not tried."""
    command = [sys.executable, str(Path(__file__).with_name("without_posix.py"))]
    with running(*on_tiny, command=command) as service, service.client() as client:
        assert client.post("/v1/check", json=SAMPLE).status_code == 200
        assert service.end() == 0
    monkeypatch.setattr(posix, "_FCNTL", None)
    monkeypatch.setattr(serving, "CAN_FORK", False)
    refused = {
        ("serve", *on_tiny, "--processes", "2"): "GUARDRAIL_PROCESSES",
        ("keys", "add", "app", "--file", tmp_path / "keys.json"): "a system without file locks",
    }
    for options, found in refused.items():
        ended = here(*options)
        assert (ended.exit_code, found in ended.stderr) == (2, True)


def test_a_process_has_its_part_of_workers_memory_and_limits(tmp_path: Path) -> None:
    """Together they have what one would have; nothing becomes none."""
    settings = Settings(processes=4, workers=6, counters="memory")
    part = part_of(settings, tmp_path)
    assert part.workers == 1
    assert part.limits.connections == settings.limits.connections // 4
    assert part.limits.requests_per_address == 0
    assert part.cache.vectors_mb == 6
    assert part.store == tmp_path / "store.db"
    assert part.counters == f"file:{tmp_path / 'counters'}"
    spooled = DecisionSettings(spool=tmp_path / "spool")
    settings = settings.model_copy(update={"decisions": spooled})
    spools = [part_of(settings, tmp_path, place).decisions.spool for place in (0, 1)]
    assert spools == [tmp_path / "spool", tmp_path / "spool.1"]
    named = settings.model_copy(update={"store": tmp_path / "own", "counters": "redis://host"})
    assert part_of(named, tmp_path).store == tmp_path / "own"
    assert part_of(named, tmp_path).counters == "redis://host"


def test_the_process_with_most_connections_lets_others_accept() -> None:
    """An absent one is waited for by nobody."""
    turns = AcceptTurns(3)
    turns.enter(2)
    turns.note(7)
    turns.enter(0)
    assert not turns.is_anothers()
    turns.note(5)
    assert not turns.is_anothers()
    turns.note(8)
    assert turns.is_anothers()
    turns.leave(2)
    assert not turns.is_anothers()


class Supervised:
    """The first process of two that serve nothing (`supervised.py`), and what they say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._said = folder / "said"
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("supervised.py")), str(folder)],
                stdout=said,
                stderr=said,
                env=environment(TMPDIR=str(folder)),
            )
        until(lambda: self.said("listening"), "both are ready")

    def said(self, word: str) -> int:
        """Return how often something was said."""
        return self._said.read_text().count(word)

    def serving(self) -> list[int]:
        """Return the processes that serve."""
        return children(self.process.pid)

    def send(self, *numbers: signal.Signals) -> None:
        """Send signals to the first process."""
        for number in numbers:
            self.process.send_signal(number)

    @contextmanager
    def with_file(self, name: str) -> Iterator[None]:
        """Let the processes fail as a file says."""
        (self.folder / name).touch()
        yield
        (self.folder / name).unlink()


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    """Run two processes that serve nothing."""
    service = Supervised(tmp_path)
    try:
        yield service
    finally:
        service.process.kill()
        service.process.wait()
        until(lambda: not any(map(is_running, service.serving())), "all have ended")


def test_a_process_that_never_gets_ready_or_never_ends_holds_no_roll_up(
    supervised: Supervised,
) -> None:
    """It is killed at its last moment, which nothing else wakes the first process for."""
    first = supervised.serving()
    with supervised.with_file("hang"):
        supervised.send(signal.SIGUSR1)
        until(lambda: supervised.said("those it should replace go on"), "the roll is given up")
        assert supervised.serving() == first
    assert supervised.said("was not ready in 2 s and is killed") == 1
    with supervised.with_file("stuck"):
        supervised.send(signal.SIGUSR1)
        until(lambda: supervised.said("serves") == 4, "both are replaced")
        until(lambda: len(supervised.serving()) == 2, "the first ones were killed")
        assert not set(supervised.serving()) & set(first)
        supervised.send(signal.SIGTERM, signal.SIGUSR1)
        assert supervised.process.wait(PATIENCE_S) == 0
    assert supervised.said("began") == 5, "none is started once the service ends"


def test_many_signals_of_a_kind_are_one_and_a_failed_fork_ends_nothing(
    supervised: Supervised,
) -> None:
    """Reading the configurations once is enough; those that serve go on without the one lost."""
    with supervised.with_file("slow"):
        supervised.send(signal.SIGHUP)
        until(lambda: supervised.said("reload"), "the configurations are read")
        supervised.send(*[signal.SIGHUP] * 50)
    until(lambda: supervised.said("reload") == 2, "they are read once more")
    pid, first = supervised.process.pid, supervised.serving()
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    os.kill(first[0], signal.SIGKILL)
    until(lambda: supervised.said("a process cannot be started"), "there are no files")
    assert supervised.serving() == first[1:]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    until(lambda: len(supervised.serving()) == 2, "it is tried again")
    supervised.send(signal.SIGTERM)
    assert supervised.process.wait(PATIENCE_S) == 0
    assert supervised.said("reload") == 2


def test_metrics_cut_off_by_a_full_disk_are_not_read(tmp_path: Path) -> None:
    """They are there whole or not at all; the file of counters has all of its room at once."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    alive, _ = os.pipe()
    place = ProcessPlace(tmp_path, AcceptTurns(1), 0, -1, alive)
    place.say_metrics(lambda: b"guardrail_rows_total 12345\n" * 1_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, limit[1]))
    try:
        place.close()
        with pytest.raises(ConfigurationError, match="GUARDRAIL_COUNTERS"):
            SharedCounters(str(tmp_path / "counters"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert not list(tmp_path.glob("*.last"))
    assert (tmp_path / "counters").stat().st_size == 0
    SharedCounters(str(tmp_path / "counters")).close()
