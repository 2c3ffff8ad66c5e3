"""Measures a large deterministic run: rows per second, and memory while it goes.

    python examples/lab/many.py --rows 100000
    python examples/lab/many.py --rows 300000 --engine ray --kill --evaluators rouge,bleu

Writes a lab of made-up answers (about 600 characters each, a hundred rows with the same question),
runs `guardrail evaluate` on it in a process of its own and samples the resident memory of that
process and its workers. With `--kill` signal 9 ends a process in the middle: a worker of Ray's, or
the command itself, which is then given again. Needs psutil (extra `bench`).
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import psutil

TEXT = """the boat house opens in april and rents rowing boats for nine euros an hour while the
tool library lends drills ladders and sewing machines to members who signed the safety rules and the
mountain railway climbs to the upper station in nineteen minutes on summer days"""
WORDS = TEXT.split()
SENTENCES = 7


def sentence(rng: random.Random) -> str:
    """Return a sentence of seven to twenty words."""
    return " ".join(rng.choices(WORDS, k=rng.randint(7, 20))).capitalize() + "."


def write_lab(path: Path, rows: int) -> None:
    """Write the lab; the same rows every time."""
    rng = random.Random(20261122)  # noqa: S311 - made-up text, not secrets
    with path.open("w", encoding="utf-8") as stream:
        for number in range(rows):
            answer = " ".join(sentence(rng) for _ in range(SENTENCES))
            row = {
                "key": f"row-{number}",
                "question": f"Question number {number // 100}?",
                "answer": answer,
                "expected_output": answer[:120],
                "contexts": [sentence(rng), sentence(rng)],
                "condition": '"boat" OR word("railway")',
                "model_key": f"model-{number % 3}",
            }
            stream.write(json.dumps(row) + "\n")


def role_of(process: psutil.Process) -> str:
    """Return what a process does in the run."""
    words = " ".join(process.cmdline())
    if "ray::ShardWorker" in words:
        return "ray_worker"
    if "spawn_main" in words:
        return "resources" if "resource_tracker" in words else "scoring"
    return "ray" if "ray" in process.name() or "/ray/" in words else "command"


def memory_mb(process: psutil.Process) -> dict[str, float]:
    """Return the largest resident memory by role, in MB, of a process and its children."""
    found: dict[str, float] = {}
    for each in [process, *process.children(recursive=True)]:
        try:
            role = "command" if each == process else role_of(each)
            found[role] = max(found.get(role, 0.0), each.memory_info().rss / 2**20)
        except psutil.NoSuchProcess:
            continue
    return found


class Watch:
    """Runs a command and keeps the peaks of its memory, by role and by half of the shards."""

    def __init__(self, command: list[str], out: Path, *, kills: bool) -> None:
        self._command, self._out, self._kills = command, out, kills
        self.peaks: dict[str, Counter[str]] = {
            name: Counter() for name in ("first_half", "second_half", "put_together")
        }
        self.killed = ""

    def run(self) -> None:
        """Run to the end, through a kill in the middle where one is asked for."""
        while not self._once():
            pass

    def _once(self) -> bool:
        command = self._command
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - our own
            watched = psutil.Process(process.pid)
            while process.poll() is None:
                try:
                    self._look(watched)
                except psutil.NoSuchProcess:
                    break
                time.sleep(0.5)
        if process.returncode not in (0, 3, -9):
            raise SystemExit(f"the run ended with {process.returncode}")
        return process.returncode != -9

    def _look(self, watched: psutil.Process) -> None:
        done = len(list((self._out / "work").glob("scores-*.jsonl")))
        shards = len(list((self._out / "work").glob("cases-?????.jsonl")))
        if not shards or not done:
            return
        part = (
            "put_together" if done == shards
            else "first_half" if done < shards / 2
            else "second_half"
        )  # fmt: skip
        for role, size in memory_mb(watched).items():
            self.peaks[part][role] = max(self.peaks[part][role], round(size))
        if self._kills and not self.killed and part == "second_half":
            named = {role_of(one): one for one in watched.children(recursive=True)}
            victim = named.get("ray_worker", watched)
            name = "the command" if victim is watched else "a worker"
            self.killed = f"{name} at {done} of {shards} shards"
            victim.kill()


def main() -> None:
    """Run and print what was measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--workers", type=int, default=psutil.cpu_count() or 1)
    parser.add_argument("--shard-rows", type=int, default=500)
    parser.add_argument("--evaluators", default="deterministic")
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--folder", type=Path, help="where lab and results are kept")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        lab, out = folder / "many.jsonl", folder / "out"
        write_lab(lab, options.rows)
        command = [sys.executable, "-m", "guardrail_service.commands.main", "evaluate", str(lab)]
        command += ["-o", str(out), "-e", options.evaluators, "--no-texts", "--json"]
        command += ["--workers", str(options.workers), "--shard-rows", str(options.shard_rows)]
        command += ["--engine", options.engine]
        started = time.perf_counter()
        watch = Watch(command, out, kills=options.kill)
        watch.run()
        seconds = time.perf_counter() - started
        summary = json.loads((out / "summary.json").read_text("utf-8"))
    report = {
        "rows": options.rows,
        "judged": summary["cases"],
        "evaluators": len(summary["computed"]),
        "engine": options.engine,
        "workers": options.workers,
        "killed": watch.killed,
        "seconds": round(seconds, 1),
        "rows_per_second": round(options.rows / seconds, 1),
        "peak_mb": {part: dict(sizes) for part, sizes in watch.peaks.items()},
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
