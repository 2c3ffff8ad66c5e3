"""A run on two nodes is the run of one process, byte for byte, whoever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from guardrail_offline.datasets.cases import Case, Lab, question_group
from guardrail_offline.datasets.labs import lab_source
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.runs.execution import RunOptions, evaluate_lab
from guardrail_offline.runs.pool import WorkerLost
from guardrail_offline.runs.ray_engine import Cluster
from guardrail_offline.runs.result_files import read_run
from guardrail_service.errors import ConfigurationError
from tests.ray.conftest import started
from tests.waiting import until

Contents = Callable[[Path], dict[str, bytes]]
EVALUATORS = ["rouge", "bleu", "answer_strings", "text_matching", "looping", "slow"]
CASES = tuple(
    Case(
        f"{model}{n}", f"q{n}", f"The answer {'a' * (n % 7)} {said}.", "The answer a.",
        condition='"answer"', model=model, group=question_group(f"q{n}"),
    )
    for n in range(60)
    for model, said in (("m", "is short"), ("l", "is a little longer than the other one"))
)  # fmt: skip
LIMIT_S = 20.0


def run(
    out: Path, cluster: Cluster | None, cases: tuple[Case, ...] = CASES, **more: Any
) -> dict[str, Any]:
    """Evaluate the cases in shards of about six."""
    evaluators = more.pop("evaluators", EVALUATORS)
    settings = {"shard_rows": 6, "step_limit_s": LIMIT_S} | more
    options = RunOptions(out, cluster=cluster, **settings)
    summary = evaluate_lab(lab_source(Lab(cases)), configure(evaluators), options)
    return {"cases": summary.cases, "errors": dict(summary.errors)}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the same run in processes of this machine."""
    out = tmp_path_factory.mktemp("alone") / "out"
    run(out, None)
    return out


def workers() -> list[psutil.Process]:
    """Return the actors' processes of this machine."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any("ray::ShardWorker" in word for word in process.info["cmdline"] or ()):
            found.append(process)
    return found


def test_two_nodes_give_the_bytes_of_one_process(
    cluster: Any, alone: Path, contents: Contents, tmp_path: Path
) -> None:
    """And progress tells of every case."""
    finished: list[int] = []
    assert run(tmp_path, Cluster(workers=3), advance=finished.append)["cases"] == 120
    assert sum(finished) == 120
    assert contents(tmp_path) == contents(alone)
    until(lambda: not workers())  # a killed actor's process ends a moment later


def test_a_worker_that_is_killed_costs_nothing_but_time(
    cluster: Any, alone: Path, contents: Contents, tmp_path: Path
) -> None:
    """Twice, with signal 9, in the middle of a shard."""
    finished: list[int] = []

    def kill(cases: int) -> None:
        finished.append(cases)
        if len(finished) in (3, 7):
            workers()[0].kill()

    run(tmp_path, Cluster(workers=2), advance=kill)
    assert sum(finished) == 120
    assert contents(tmp_path) == contents(alone)


def test_a_node_that_is_killed_costs_nothing_but_time(
    cluster: Any, alone: Path, contents: Contents, tmp_path: Path
) -> None:
    """Its raylet ends by signal 9, and with it every worker of the node."""
    finished: list[int] = []

    def kill(cases: int) -> None:
        finished.append(cases)
        if len(finished) == 4:
            (raylet,) = (
                info.process
                for kind, infos in cluster.second.all_processes.items()
                if kind == "raylet"
                for info in infos
            )
            os.kill(raylet.pid, signal.SIGKILL)

    try:
        run(tmp_path, Cluster(workers=3), advance=kill)
    finally:
        cluster.remove_node(cluster.second, allow_graceful=False)
        cluster.second = started(lambda: cluster.add_node(num_cpus=2))
    assert sum(finished) == 120
    assert contents(tmp_path) == contents(alone)


def test_an_evaluator_that_hangs_is_an_error_as_on_one_machine(
    cluster: Any, contents: Contents, tmp_path: Path
) -> None:
    """Its cases of the shard; everything else has its numbers."""
    cases = (*CASES[:12], Case("h", "hangs", "One.", "One.", model="m", group="hangs"))
    more = {"evaluators": ["rouge", "hangs"], "step_limit_s": 5.0, "shard_rows": 4}
    run(tmp_path / "far", Cluster(workers=2), cases, **more)
    run(tmp_path / "here", None, cases, **more)
    assert contents(tmp_path / "far") == contents(tmp_path / "here")
    rows = read_run(tmp_path / "far")["hangs"].rows
    assert {row.scores["hangs"].reason for row in rows} >= {"timed_out"}


def test_a_worker_that_does_not_answer_in_time_is_replaced(
    cluster: Any, alone: Path, contents: Contents, tmp_path: Path
) -> None:
    """As one whose machine stands still."""
    stopped: list[psutil.Process] = []

    def stop(_cases: int) -> None:
        if not stopped:
            stopped.append(workers()[0])
            stopped[0].suspend()

    run(tmp_path, Cluster(workers=2, shard_timeout_s=LIMIT_S), advance=stop)
    assert contents(tmp_path) == contents(alone)


def test_a_shard_that_costs_every_worker_ends_the_run_with_its_number(
    cluster: Any, tmp_path: Path
) -> None:
    """Instead of taking worker after worker; what was finished is kept."""
    cases = (*CASES[:12], Case("d", "dies", "One.", "One.", model="m", group="dies"))
    with pytest.raises(WorkerLost, match=r"shard \d has cost 5 workers \(worker_lost\)"):
        run(tmp_path, Cluster(workers=2), cases, evaluators=["rouge", "dies"], shard_rows=4)
    assert list((tmp_path / "work").glob("scores-*.jsonl"))


def test_a_run_that_was_killed_goes_on_with_either_engine(
    cluster: Any, alone: Path, contents: Contents, tmp_path: Path
) -> None:
    """The process that gives out shards ends by signal 9 as well."""
    script = (
        "import sys; from pathlib import Path; import tests.ray.slow, tests.hanging;"
        "from tests.ray.test_ray_engine import run, Cluster;"
        f"run(Path({str(tmp_path)!r}), Cluster({cluster.address!r}, 2))"
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and len(list(tmp_path.glob("work/scores-*"))) < 3:
            time.sleep(0.01)
        process.kill()
    done = len(list(tmp_path.glob("work/scores-*")))
    assert 3 <= done < 20
    finished: list[int] = []

    class Stopped(Exception):
        pass

    def stop(cases: int) -> None:
        finished.append(cases)
        if len(finished) > done + 2:
            raise Stopped

    with pytest.raises(Stopped):
        run(tmp_path, Cluster(workers=2), advance=stop)
    assert not (tmp_path / "summary.json").exists()
    run(tmp_path, None)
    assert contents(tmp_path) == contents(alone)


def test_a_worker_with_something_else_installed_is_refused(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its numbers would be other ones."""
    from guardrail_offline.runs import ray_engine

    monkeypatch.setattr(ray_engine, "__version__", "0.0.1")
    with pytest.raises(ConfigurationError, match="found another version; expected what this"):
        run(tmp_path, Cluster(workers=1))
