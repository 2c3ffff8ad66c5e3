"""Measures a model on this CPU: tokens per millisecond and core, load time, memory, disk.

Each pack is measured in a process of its own on one thread, as the service runs it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from rich.table import Table

from guardrail_bench.output import drawing, markdown_table
from guardrail_bench.server import machine
from guardrail_service.errors import MissingExtra, PackError
from guardrail_service.inference.models.session import Encoded, TextModel
from guardrail_service.inference.pack import load_pack
from guardrail_service.types import Role

LENGTHS = (32, 128, 512)
ROUNDS = 7
LEAST_S = 0.3
"""A round runs at least this much processor time, or short rows would show the clock."""
FIRST_ID, LAST_ID = 5, 400
"""Ordinary tokens, which every vocabulary has: which they are makes no difference."""
RESULTS = "results.json"
PART = "bench models"
PLOT = "models-cost.png"
UNKNOWN = "a machine that an older version did not name"
PLOTTED = 128
"""Tokens of a row in the picture: a long sentence, or a claim with its evidence."""
Results = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ModelCost:
    """One file on this machine.

    Attributes:
        speeds: Tokens per millisecond and core, by tokens of a row; None where the model reads
            fewer. Processor time, fastest of several rounds: other work hardly counts.
        load_s: From a checked file to a session, seconds.
        memory_mb: Resident memory that session and longest row added, in 10^6 bytes.
        disk_mb: Model and tokenizer, in 10^6 bytes.
        machine: Processor, cores and runtime: numbers of two machines are not compared.
    """

    name: str
    role: str
    precision: str
    speeds: Mapping[str, float | None]
    load_s: float
    memory_mb: float
    disk_mb: float
    machine: str


def measure(folder: Path, role: Role, rounds: int = ROUNDS) -> ModelCost:
    """Return what the model behind a role costs, in this process.

    Raises:
        PackError: If the model reads no tokens but another model's states.
    """
    try:
        import psutil
    except ImportError as error:
        raise MissingExtra("psutil") from error
    pack = load_pack(folder)
    name = pack.manifest.roles[role]
    file = pack.model(role)
    if "input_ids" not in file.inputs:
        raise PackError(f"{file.path}: reads {file.encoder}; measure that one")
    process = psutil.Process()
    before, started = process.memory_info().rss, time.perf_counter()
    model = TextModel(pack, name)
    loaded = time.perf_counter() - started
    speeds = {str(length): _speed(model, length, rounds) for length in LENGTHS}
    memory = process.memory_info().rss - before
    disk = file.bytes + file.tokenizer.bytes
    found = machine()
    where = f"{found['cpu']}, {found['cores']} cores, onnxruntime {ort.__version__}"
    return ModelCost(name, role, file.precision, speeds, loaded, memory / 1e6, disk / 1e6, where)


def measured_apart(folder: Path, role: str, rounds: int = ROUNDS) -> dict[str, Any]:
    """Return `measure` of a new process, which has loaded nothing else.

    Raises:
        PackError: If the process fails.
    """
    asked = [sys.executable, "-m", "guardrail_bench.model_cost", str(folder), role, str(rounds)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise PackError(f"{folder}: measuring ended with {done.returncode}: {last[0]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def cost_of(
    pack: Path | PackError, name: str, role: str, how: str, rounds: int = ROUNDS
) -> dict[str, Any]:
    """Return what a pack costs, or under `refused` why that cannot be measured.

    Args:
        pack: A pack, or why there is none.
        name: Of the architecture.
        role: Of its model.
        how: Its quantisation.
        rounds: As for `measure`.
    """
    if isinstance(pack, PackError):
        return {"name": name, "role": role, "precision": how, "refused": str(pack)}
    try:
        return measured_apart(pack, role, rounds)
    except PackError as error:
        return {"name": name, "role": role, "precision": how, "refused": str(error)}


def read_results(folder: Path) -> dict[str, Any]:
    """Return what an earlier run measured, by model and precision."""
    path = folder / RESULTS
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return found


def keep(folder: Path, results: Mapping[str, Any]) -> None:
    """Write what was measured so far, so that a run that was ended goes on there."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{RESULTS}.part"
    part.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    part.replace(folder / RESULTS)


def headings() -> list[str]:
    """Return what the columns of a table of costs are."""
    lengths = (f"tokens/ms/core at {length}" for length in LENGTHS)
    return ["model", "role", "precision", *lengths, "load s", "memory MB", "disk MB"]


def cells(cost: Mapping[str, Any]) -> list[str]:
    """Return a cost as cells; of one that was refused, the reason stands in place of numbers."""
    about = [cost["name"], cost["role"], cost["precision"]]
    if "refused" in cost:
        return [*about, f"refused: {cost['refused']}"]
    speeds = (cost["speeds"][str(length)] for length in LENGTHS)
    return [
        *about,
        *("-" if speed is None else f"{speed:.2f}" for speed in speeds),
        f"{cost['load_s']:.1f}",
        f"{cost['memory_mb']:.0f}",
        f"{cost['disk_mb']:.0f}",
    ]


def render(results: Mapping[str, Any]) -> Table:
    """Return the costs as a table."""
    table = Table(*headings())
    for cost in results.values():
        table.add_row(*cells(cost))
    return table


def _speed(model: TextModel, length: int, rounds: int) -> float | None:
    if length > model.file.max_tokens:
        return None
    rng = np.random.default_rng(length)
    ids = rng.integers(FIRST_ID, LAST_ID, size=length).tolist()
    row, output = Encoded(ids, [0] * length), next(iter(model.file.outputs))
    started = time.process_time()
    model.run([row], output)
    once = max(time.process_time() - started, 1e-6)
    repeats = max(1, int(LEAST_S / once))
    fastest = min(_seconds(model, row, output, repeats) for _ in range(rounds))
    return length / (fastest * 1e3)


def _seconds(model: TextModel, row: Encoded, output: str, repeats: int) -> float:
    started = time.process_time()
    for _ in range(repeats):
        model.run([row], output)
    return (time.process_time() - started) / repeats


def markdown(results: Results, images: str) -> str:
    """Return the table for a page.

    Args:
        results: What was measured, by model and precision.
        images: Folder of the plot, as the page reaches it.
    """
    table = markdown_table(headings(), map(_row, results.values()))
    return "\n\n".join([_preface(results), table, f"![{PLOT}]({images}/{PLOT})"])


def plot(results: Results, path: Path) -> None:
    """Draw the speed of each architecture in each precision as bars.

    Raises:
        MissingExtra: If matplotlib is not installed.
    """
    speeds = {
        (cost["name"], cost["precision"]): cost["speeds"][str(PLOTTED)]
        for cost in results.values()
        if "refused" not in cost and cost["speeds"][str(PLOTTED)] is not None
    }
    names = list(dict.fromkeys(name for name, _ in speeds))
    precisions = list(dict.fromkeys(precision for _, precision in speeds))
    height = 0.8 / max(1, len(precisions))
    with drawing(path, figsize=(8, max(2.5, 0.75 * len(names) + 1.2))) as axis:
        for place, precision in enumerate(precisions):
            middle = (place - (len(precisions) - 1) / 2) * height
            shown = [(n, speeds[name, precision]) for n, name in enumerate(names)
                     if (name, precision) in speeds]  # fmt: skip
            axis.barh(
                [n + middle for n, _ in shown], [speed for _, speed in shown], height,
                label=precision,
            )  # fmt: skip
        axis.set_yticks(range(len(names)), names, fontsize=8)
        axis.invert_yaxis()
        axis.set(xlabel=f"tokens per millisecond and core, rows of {PLOTTED} tokens")
        axis.figure.legend(fontsize=7, ncols=2, loc="outside upper center")


def _preface(results: Results) -> str:
    """Return where the numbers come from; those of several machines must not be compared."""
    measured = (cost for cost in results.values() if "refused" not in cost)
    machines = list(dict.fromkeys(str(cost.get("machine", UNKNOWN)) for cost in measured))
    if len(machines) > 1:
        listed = "; ".join(machines)
        return f"**Caution.** Measured on several machines; do not compare the rows: {listed}."
    return f"Measured on {machines[0]}." if machines else "Nothing was measured."


def _row(cost: Mapping[str, Any]) -> list[str]:
    """Return as many cells as there are headings, names of what was measured as code."""
    name, *rest = cells(cost)
    row = [name if "refused" in cost else f"`{name}`", *rest]
    return row + [""] * (len(headings()) - len(row))


def main() -> None:
    """Measure one pack in this process and print it as JSON."""
    folder, role, rounds = sys.argv[1:]
    cost = measure(Path(folder), role, int(rounds))
    sys.stdout.write(json.dumps(asdict(cost)) + "\n")


if __name__ == "__main__":
    main()
