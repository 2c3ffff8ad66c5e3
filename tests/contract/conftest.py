"""The application on the tiny pack, with one closed and one open policy and default limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from guardrail_service.server.app import create_app
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings

DETECTORS = ["groundedness", "answer_relevancy_sentence", "looping", "json_schema", "text_matching"]


def guardrail_file(folder: Path, name: str, *, allow_overrides: bool) -> Path:
    """Write a configuration over the tiny pack's detectors and return its path."""
    path = folder / f"{name}.json"
    content = {
        "evaluator_ids": DETECTORS,
        "policy": {"name": name, "version": "1", "allow_overrides": allow_overrides},
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture(scope="session")
def configs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two configurations: `default` refuses overrides, `open` takes them."""
    folder = tmp_path_factory.mktemp("configs")
    return (
        guardrail_file(folder, "default", allow_overrides=False),
        guardrail_file(folder, "open", allow_overrides=True),
    )


@pytest.fixture(scope="module")
def runtime(tiny: Path, configs: tuple[Path, Path]) -> Iterator[Runtime]:
    """The loaded service of one module; an application that ends closes it."""
    loaded = Runtime(Settings(model_pack=str(tiny), config=configs, workers=2))
    yield loaded
    loaded.close()


@pytest.fixture
def http(tiny: Path, configs: tuple[Path, Path]) -> Iterator[TestClient]:
    """HTTP in process; a bug is a 500 here as it is behind a server."""
    own = Runtime(Settings(model_pack=str(tiny), config=configs, workers=2))
    with TestClient(create_app(runtime=own), raise_server_exceptions=False) as client:
        yield client
