"""The shipped pack and packs of our own on OpenVINO: near enough, the same alone and under load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from guardrail_service.errors import ConfigurationError, PackError
from guardrail_service.inference.pack import load_pack
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.resources import packs_dir
from guardrail_service.server.app import create_app
from guardrail_service.server.runtime import Runtime, batches, run_golden
from guardrail_service.settings import Settings
from guardrail_service.types import EVERY, Row
from tests import tiny_pack, tiny_reference

CHECK = {
    "question": "How long may guests stay?",
    "contexts": ["Guests may stay for two weeks at most."],
}
GOOD, BAD = "Guests may stay for two weeks.", "Guests may stay for two months."
TEXTS = [
    f"Guests may stay for {n} weeks at most." + " The pool opens." * (n % 5) for n in range(40)
]


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """Return the shipped pack, loaded with every model on OpenVINO."""
    with closing(Runtime(Settings(providers="openvino", workers=2, start_cache=None))) as loaded:
        yield loaded


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a pack with an encoder and a classifier that pads."""
    folder = tiny_pack.build(tmp_path / "pack")
    labels = tiny_reference.TOXICITY
    declared: dict[str, Any] = {"labels": labels, "activation": "sigmoid"}
    tiny_reference.add(folder, "toxicity", tiny_reference.classifier(labels), **declared)
    stating(folder, padding={"side": "right", "id": 0}, batch_rule="one_row")
    return folder


def stating(folder: Path, **changes: Any) -> None:
    """Change what the manifest says about the classifier."""
    tiny_reference.change(folder, lambda m: m["models"]["toxicity"].update(changes))


def test_the_shipped_models_are_near_their_golden_rows(runtime: Runtime) -> None:
    """Not equal: another library computes them. The allowed difference is stated."""
    reports = runtime.golden
    assert set(reports) == {"embedding", "grounding", "toxicity", "bias"}
    assert reports["embedding"].tolerance == 0.02
    assert all(0.001 < report.worst <= report.tolerance for report in reports.values()), reports


def test_the_service_says_what_computes(runtime: Runtime) -> None:
    """By role, by detector and in the fingerprint of the runtime; and it judges."""
    with TestClient(create_app(runtime.settings, runtime)) as client:
        info = client.get("/v1/info").json()
        found = {one["id"]: one for one in client.get("/v1/detectors").json()["detectors"]}
        decisions = [
            client.post("/v1/check", json={**CHECK, "answer": answer}).json()["decision"]
            for answer in (GOOD, BAD)
        ]
    assert found["groundedness"]["providers"]["embedding"] == "openvino"
    assert found["toxicity"]["providers"] == {"toxicity": "openvino"}
    assert "grounding=openvino" in info["fingerprints"]["runtime"]
    assert decisions == ["pass", "flag"]


@pytest.mark.parametrize("role", ["embedding", "toxicity", "grounding"])
def test_rows_under_load_are_what_they_are_alone(role: str, runtime: Runtime) -> None:
    """Eight threads in one session, bit for bit."""
    pack = runtime.pack
    alone, loaded = open_sessions(pack)[role], open_sessions(pack)[role]
    evidence = tuple(TEXTS[:8]) if role == "grounding" else ()
    outputs = {"embedding": ("sentence_embedding",), "grounding": ("probabilities",)}.get(role, ())
    rows = [Row(role, text, outputs=outputs, evidence=evidence) for text in TEXTS]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(loaded.run, rows))
    for row, one in zip(rows, found, strict=True):
        expected = alone.run(row).outputs
        assert all(np.array_equal(one.outputs[name], expected[name]) for name in expected)


def test_a_role_runs_elsewhere_alone(folder: Path) -> None:
    """The encoder stays on the processor, bit for bit."""
    plain = load_pack(folder)
    pack = plain.on({EVERY: "cpu", "toxicity": "openvino"})
    before, after = open_sessions(plain), open_sessions(pack)
    assert (pack.provider("embedding"), pack.provider("toxicity")) == ("cpu", "openvino")
    for text in TEXTS:
        vector = Row("embedding", text)
        (one,), (other,) = (s["embedding"].run(vector).outputs.values() for s in (before, after))
        assert np.array_equal(one, other)
        label = Row("toxicity", text, outputs=())
        scores = [list(s["toxicity"].run(label).outputs.values()) for s in (before, after)]
        assert np.allclose(*scores, atol=1e-4)


def test_rows_share_calls_where_the_manifest_says_so(folder: Path) -> None:
    """Only on that provider, and near what each is alone."""
    stating(folder, providers={"openvino": {"batch_rule": "token_budget", "tolerance": 0.01}})
    plain = load_pack(folder)
    sessions = open_sessions(plain.on({EVERY: "openvino"}))
    assert set(batches(open_sessions(plain), 512)) == set()
    together = batches(sessions, 512)["toxicity"]
    rows = [Row("toxicity", text, outputs=()) for text in TEXTS]
    for row, found in zip(rows, together.run(rows), strict=True):
        alone = sessions["toxicity"].run(row).outputs
        assert all(abs(found.outputs[name] - alone[name]) < 1e-4 for name in alone)


def test_scores_that_are_off_are_refused(tmp_path: Path) -> None:
    """The shipped encoder with golden rows further away than the tolerance."""
    folder = tiny_pack.build(tmp_path / "pack")
    path = folder / "golden.json"
    golden = json.loads(path.read_text())
    golden["rows"][7]["score"] += 0.03
    path.write_text(json.dumps(golden))
    described = tiny_pack.describe(folder, "golden.json")
    tiny_reference.change(folder, lambda m: m["models"]["tiny"].update(golden=described))
    pack = load_pack(folder).on({EVERY: "openvino"})
    with pytest.raises(PackError, match=r"differ by 0\.03.* at most 0\.02\. openvino, which"):
        run_golden(pack, open_sessions(pack), 1)


def test_this_builds_own_processor_is_held_to_the_files_tolerance() -> None:
    """onnxruntime 1.24 computes other states than the one that made the shipped golden rows."""
    pack = load_pack(packs_dir() / "embedded")
    with pytest.raises(PackError, match=r"at most 0\.05\. This CPU or runtime computes other"):
        run_golden(pack, open_sessions(pack), 1)


def test_what_this_build_lacks_is_refused_with_what_it_has(folder: Path) -> None:
    """So that a reader sees which package is installed."""
    with pytest.raises(ConfigurationError, match=r"\(it has cpu, openvino\).*onnxruntime-gpu"):
        open_sessions(load_pack(folder).on({EVERY: "cuda"}))
