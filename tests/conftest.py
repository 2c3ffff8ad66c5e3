"""Shared fixtures: a tiny real model pack and services loaded on it."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from guardrail_service.server.runtime import Runtime

if find_spec("hypothesis"):  # the environment that exports models has none
    from hypothesis import HealthCheck, settings

    # A red run is a change, never a busy machine or the luck of the draw: examples have no time
    # limit, and every run tries the same ones. `--hypothesis-profile search` draws new ones.
    patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("search", patient)
    settings.register_profile("steady", patient, derandomize=True)
    settings.load_profile("steady")

# What one start computed serves all others of this run, and nothing of anybody's own cache does.
if "GUARDRAIL_START_CACHE" not in os.environ:
    _kept = tempfile.mkdtemp(prefix="rag-guardrail-start-")
    os.environ["GUARDRAIL_START_CACHE"] = _kept
    atexit.register(shutil.rmtree, _kept, ignore_errors=True)

# Fixtures import what they build: a unit test must not pay for onnx and onnxruntime.


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny pack that serves the role `embedding`."""
    from tests import tiny_pack

    return tiny_pack.build(tmp_path_factory.mktemp("pack") / "tiny")


@pytest.fixture
def write_config(tmp_path: Path) -> Callable[..., Path]:
    """Write a guardrail JSON and return its path."""

    def write(name: str = "policy.json", **content: Any) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(content))
        return path

    return write


@pytest.fixture(scope="session")
def tiny_runtime(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    """A service on the tiny pack with one policy over every embedding detector."""
    from guardrail_service.server.runtime import Runtime
    from guardrail_service.settings import Settings

    path = tmp_path_factory.mktemp("config") / "tiny.json"
    path.write_text(
        json.dumps(
            {
                "calibrated_thresholds": {
                    "groundedness": {"groundedness": 0.5},
                    "answer_relevancy_sentence": {"answer_relevancy": -1.0},
                },
                "evaluator_ids": [
                    "groundedness",
                    "answer_relevancy_sentence",
                    "looping",
                    "json_schema",
                    "text_matching",
                ],
                "policy": {"name": "tiny", "version": "1"},
            }
        )
    )
    runtime = Runtime(Settings(model_pack=str(tiny), config=(path,), workers=2))
    closing = runtime.close
    # An application that ends closes its runtime; the tests of one process share this one.
    runtime.close = lambda: None  # type: ignore[method-assign]
    yield runtime
    closing()
