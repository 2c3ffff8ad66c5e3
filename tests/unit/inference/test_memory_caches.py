"""All memories together, and the store behind them: what is stored, under which name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guardrail_service.inference import memory as module
from guardrail_service.inference.memory import Caches, CacheSizes, space
from guardrail_service.inference.models.session import ModelSession
from guardrail_service.inference.pack import load_pack
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.inference.store import Store
from guardrail_service.types import Role, Row
from tests import tiny_pack

ROWS: dict[Role, Row] = {
    "embedding": Row("embedding", "the pool opens at seven"),
    "toxicity": Row("toxicity", "the pool opens at seven", outputs=()),
}


@pytest.fixture
def pack(tiny: Path, tmp_path: Path) -> Path:
    """The tiny pack with a branch."""
    folder = Path(shutil.copytree(tiny, tmp_path / "tiny"))
    tiny_pack.add_branch(folder, roles=["toxicity"], labels=["toxicity", "insult"])
    return folder


def answers(folder: Path, store: Path) -> dict[Role, dict[str, bytes]]:
    """Return what freshly opened sessions over a store give, as a restarted process does."""
    sessions = open_sessions(load_pack(folder))
    caches = Caches(sessions.values())
    caches.attach(Store(store, 2**24))
    with closing(caches):
        return {
            role: {n: np.asarray(v).tobytes() for n, v in sessions[role].run(row).outputs.items()}
            for role, row in ROWS.items()
        }


def refuse(*_: object) -> None:
    """Fail where a model would run."""
    raise AssertionError("a model ran")


def test_a_restart_gives_the_same_bits_without_a_model_run(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Embedding and branch are both read from the store."""
    before = answers(pack, tmp_path / "store")
    monkeypatch.setattr(ModelSession, "run", refuse)
    assert answers(pack, tmp_path / "store") == before


@pytest.mark.parametrize("change", ["model", "runtime", "processor"])
def test_nothing_is_found_where_values_could_differ(
    change: str,
    pack: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another model, runtime version or processor computes for itself."""
    answers(pack, tmp_path / "store")
    if change == "model":
        pack = tiny_pack.build(tmp_path / "other", seed=8)
        tiny_pack.add_branch(pack, roles=["toxicity"], labels=["toxicity", "insult"])
    elif change == "runtime":
        monkeypatch.setattr(module.ort, "__version__", "0.0")
    else:
        monkeypatch.setattr(module, "_cpu", lambda: "another one")
    monkeypatch.setattr(ModelSession, "run", refuse)
    with pytest.raises(AssertionError, match="a model ran"):
        answers(pack, tmp_path / "store")


def test_memories_that_sessions_share_are_counted_once(pack: Path) -> None:
    """One encoder and one branch, whoever reads them; it gives few numbers and keeps a quarter."""
    sessions = open_sessions(load_pack(pack), CacheSizes(1_000_000, 2_000_000, 3_000_000))
    for role, row in ROWS.items():
        sessions[role].run(row)
        sessions[role].run(row)
    stats = Caches(sessions.values()).stats()
    assert {name: s.limit_bytes for name, s in stats.items()} == {
        "vectors": 1_000_000, "states": 2_000_000, "branch": 750_000,
    }  # fmt: skip
    assert {name: (s.hits, s.misses) for name, s in stats.items()} == {
        "vectors": (1, 1), "states": (1, 1), "branch": (1, 1),
    }  # fmt: skip


def test_what_is_kept_owns_its_memory(pack: Path) -> None:
    """A view would keep the runtime's memory for as long as its row is remembered."""
    sessions = open_sessions(load_pack(pack))
    for role, row in ROWS.items():
        sessions[role].run(row)
    kept = [
        value
        for session in sessions.values()
        for remembered in session.memories().values()
        for outputs in remembered.memory._kept.values()
        for value in outputs.values()
    ]
    assert len(kept) >= 3
    assert all(value.base is None for value in kept)


def test_the_name_of_the_space_depends_on_the_processor(tmp_path: Path) -> None:
    """As far as the system tells."""
    assert space("model") == space("model") != space("other model")


def test_a_system_that_tells_nothing_has_a_name_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No /proc: what Python knows of the processor."""
    monkeypatch.setattr(module, "_CPU_INFO", tmp_path / "missing")
    assert len(space("model")) == 32


def test_golden_rows_are_computed_not_remembered(
    tiny: Path, tmp_path: Path, write_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store must not hide that this machine computes other scores."""
    from guardrail_service.server import runtime as runtime_module
    from guardrail_service.server.runtime import Runtime
    from guardrail_service.settings import Settings

    config = write_config(evaluator_ids=["groundedness"], policy={"name": "p"})
    order: list[str] = []
    golden, attach = runtime_module.run_golden, Caches.attach

    def run_golden(*args: object, **options: object) -> object:
        order.append("golden")
        return golden(*args, **options)  # type: ignore[arg-type]

    def attached(self: Caches, store: Store) -> None:
        order.append("store")
        attach(self, store)

    monkeypatch.setattr(runtime_module, "run_golden", run_golden)
    monkeypatch.setattr(Caches, "attach", attached)
    settings = Settings(model_pack=str(tiny), config=(config,), workers=1, store=tmp_path / "store")
    with closing(Runtime(settings)) as runtime:
        assert runtime.caches.store is not None
    assert order == ["golden", "store"]


def test_golden_rows_that_passed_run_whole_once(
    tiny: Path, tmp_path: Path, write_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second start on the same machine runs some of them; other files or libraries all."""
    from guardrail_service.server import runtime as runtime_module
    from guardrail_service.server.runtime import Runtime
    from guardrail_service.settings import Settings

    config = write_config(evaluator_ids=["groundedness"], policy={"name": "p"})
    ran: list[int] = []
    check = runtime_module.check_golden

    def counted(*args: Any, **options: Any) -> Any:
        report = check(*args, **options)
        ran.append(report.rows)
        return report

    monkeypatch.setattr(runtime_module, "check_golden", counted)
    settings = Settings(
        model_pack=str(tiny), config=(config,), workers=1, start_cache=tmp_path / "kept"
    )

    def start() -> dict[str, Any]:
        with closing(Runtime(settings)) as runtime:
            return runtime.golden

    first = start()
    second = start()
    monkeypatch.setattr(module.platform, "machine", lambda: "another")
    start()
    assert ran == [50, runtime_module.SOME_ROWS, 50]
    assert second == first
