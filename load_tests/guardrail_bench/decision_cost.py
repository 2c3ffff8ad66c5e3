"""Measures the processor time that a store of decisions adds to a check.

Services without and with a store run side by side and take turns: each turn asks all of them the
same samples, one after the other, so whatever else the machine does strikes all of them alike.
Processor time counts everything the store does, the writer's thread too; where cores are the limit,
throughput falls by as much.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx
from rich.table import Table

from guardrail_bench.samples import SCENARIOS, SampleSource, default_texts_file, read_texts
from guardrail_bench.server import Server, serving
from guardrail_service.errors import ServiceError

OFF = "off"
WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class StoreCost:
    """A service's processor time per check.

    Attributes:
        texts: What its store keeps of texts; `off`: it has none.
        cpu_ms: Median over turns, per check.
        added: Median over turns of its time divided by that of the service without a store, less
            one.
        spread: The quartiles of the same.
    """

    texts: str
    cpu_ms: float
    added: float
    spread: tuple[float, float]


def measure(
    modes: Sequence[str], scenario: str, turns: int, checks: int, note: Callable[[], None]
) -> list[StoreCost]:
    """Return what each mode costs.

    Args:
        modes: What stores keep of texts: `none`, `redacted` or `full`.
        scenario: How long the samples are; their passages are warm, so the checks are cheap.
        turns: How often each service has its turn.
        checks: Samples of a turn.
        note: Called after each turn.
    """
    source = SampleSource(read_texts(default_texts_file()), SCENARIOS[scenario], "warm", 17)
    spent: dict[str, list[float]] = {mode: [] for mode in (OFF, *modes)}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="guardrail-store-")))
        servers = {
            mode: stack.enter_context(serving(["--workers", "1"], None, _settings(mode, folder)))
            for mode in spent
        }
        client = stack.enter_context(httpx.Client(timeout=WAIT_S))
        for server in servers.values():
            for body in source.shelf():
                _ask(client, server, body)
        for turn in range(turns):
            bodies = [source.sample(turn * checks + number) for number in range(checks)]
            order = list(servers) if turn % 2 == 0 else list(reversed(servers))
            for mode in order:
                before = servers[mode].cpu_s()
                for body in bodies:
                    _ask(client, servers[mode], body)
                spent[mode].append((servers[mode].cpu_s() - before) / checks)
            note()
    return [_cost(mode, spent) for mode in spent]


def _cost(mode: str, spent: dict[str, list[float]]) -> StoreCost:
    ratios = sorted(w / o - 1 for w, o in zip(spent[mode], spent[OFF], strict=True))
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    return StoreCost(mode, median(spent[mode]) * 1e3, median(ratios), (low, high))


def _settings(mode: str, folder: Path) -> dict[str, str]:
    if mode == OFF:
        return {}
    from guardrail_decisions.keys import new_key

    keys = folder / f"{mode}.keys"
    keys.write_text(new_key())
    return {
        "GUARDRAIL_DECISIONS_URL": f"sqlite:///{folder / mode}.db",
        "GUARDRAIL_DECISIONS_TEXTS": mode,
        "GUARDRAIL_DECISIONS_KEYS_FILE": str(keys),
    }


def _ask(client: httpx.Client, server: Server, body: object) -> None:
    reply = client.post(f"{server.address}/v1/check", json=body)
    if reply.status_code != httpx.codes.OK:
        raise ServiceError(f"a check was answered with {reply.status_code}")


def render(costs: Sequence[StoreCost]) -> Table:
    """Return the costs as a table."""
    table = Table("texts kept", "ms of processor per check", "added", "quartiles of turns")
    for cost in costs:
        low, high = cost.spread
        shown = ("", "") if cost.texts == OFF else (f"{cost.added:+.1%}", f"{low:+.1%} {high:+.1%}")
        table.add_row(cost.texts, f"{cost.cpu_ms:.1f}", *shown)
    return table
