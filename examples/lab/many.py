"""Measures a large deterministic run: rows per second, and memory while it goes.

    python examples/lab/many.py --rows 100000

Writes a lab of made-up answers (about 600 characters each, a hundred rows with the same question),
runs `guardrail evaluate --evaluators deterministic` on it in a process of its own and samples the
resident memory of that process and its workers. Needs psutil (extra `bench`).
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
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


def memory_mb(process: psutil.Process) -> list[float]:
    """Return the resident memory of a process and of each of its children, in MB."""
    found = []
    for each in [process, *process.children(recursive=True)]:
        try:
            found.append(each.memory_info().rss / 2**20)
        except psutil.NoSuchProcess:
            continue
    return found


def watch(command: list[str], out: Path) -> list[tuple[float, int, list[float]]]:
    """Run a command; return samples of seconds, finished shards and memory of each process."""
    started = time.perf_counter()
    samples = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - our own
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            done = len(list((out / "work").glob("scores-*.jsonl")))
            try:
                samples.append((time.perf_counter() - started, done, memory_mb(watched)))
            except psutil.NoSuchProcess:
                break
            time.sleep(0.2)
    if process.returncode not in (0, 3):
        raise SystemExit(f"the run ended with {process.returncode}")
    samples.append((time.perf_counter() - started, samples[-1][1], []))
    return samples


def largest(sizes: Iterable[float]) -> int:
    """Return the largest of some sizes in whole MB; 0 if none was sampled."""
    return round(max(sizes, default=0.0))


def main() -> None:
    """Run and print what was measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--workers", type=int, default=psutil.cpu_count() or 1)
    parser.add_argument("--shard-rows", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lab, out = Path(folder) / "many.jsonl", Path(folder) / "out"
        write_lab(lab, options.rows)
        command = [sys.executable, "-m", "guardrail_service.commands.main", "evaluate", str(lab)]
        command += ["-o", str(out), "-e", "deterministic", "--no-texts", "--json"]
        command += ["--workers", str(options.workers), "--shard-rows", str(options.shard_rows)]
        samples = watch(command, out)
        evaluators = len(json.loads((out / "summary.json").read_text("utf-8"))["computed"])
    shards = max(done for _, done, _ in samples)
    scoring = [(done, max(sizes)) for _, done, sizes in samples if sizes and 0 < done < shards]
    middle = shards / 2
    report = {
        "rows": options.rows,
        "evaluators": evaluators,
        "workers": options.workers,
        "seconds": round(samples[-1][0], 1),
        "rows_per_second": round(options.rows / samples[-1][0], 1),
        "largest_process_mb_first_half": largest(size for d, size in scoring if d < middle),
        "largest_process_mb_second_half": largest(size for d, size in scoring if d >= middle),
        "largest_process_mb_overall": largest(max(sizes) for _, _, sizes in samples if sizes),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
