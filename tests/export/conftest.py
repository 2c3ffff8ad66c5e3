"""Stand-ins of the reference models and their exports. Needs torch, which `.venv` does not have.

`.ci/export` runs these from `.venv-export` and fails if it finds none; `make test` has no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]
Build = Callable[[str], Path]
HERE = Path(__file__).parent
PATIENCE_S = 1800


def pytest_configure(config: pytest.Config) -> None:
    """Leave out the warnings that the training libraries give about each other."""
    for module in ("torch", "transformers", "sentence_transformers", "optimum"):
        for kind in ("DeprecationWarning", "FutureWarning", "UserWarning"):
            config.addinivalue_line("filterwarnings", f"ignore::{kind}:{module}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give these tests time: a busy machine takes many times what an idle one does."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(PATIENCE_S))


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Tiny models on many threads only wait for each other."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Build a reference model's stand-in once and return its folder."""
    from guardrail_models import stand_ins
    from guardrail_models.recipes import shipped_recipes

    root = tmp_path_factory.mktemp("originals")
    made: dict[str, Path] = {}

    def build(name: str) -> Path:
        if name not in made:
            made[name] = stand_ins.build(shipped_recipes()[name], root / name)
        return made[name]

    return build
