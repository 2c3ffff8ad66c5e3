"""What version 0.1.0 wrote is opened by this one: a store, an unfinished run, fitted thresholds.

`written_by_0_1_0/` was made with the commands of that version. Where scores change on purpose, the
fingerprints here change with them, and CHANGELOG.md says what has to be fitted again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pyarrow import parquet

from guardrail_offline.datasets.cases import question_group
from guardrail_offline.runs.result_files import read_run
from guardrail_service.detectors.groundedness import CLAIMS_VERSION
from guardrail_service.detectors.hallucination.reading import READING_VERSION
from guardrail_service.detectors.safety import ALONE_VERSION
from guardrail_service.detectors.safety_denials import DENIALS_VERSION
from guardrail_service.detectors.safety_wordings import WORDINGS_VERSION
from guardrail_service.inference import memory
from guardrail_service.inference.models.session import runtime_version
from guardrail_service.inference.pack import load_pack
from guardrail_service.resources import packs_dir
from guardrail_service.server.app import create_app
from guardrail_service.server.runtime import Runtime, serving_for
from guardrail_service.settings import Settings
from guardrail_service.text.decoding.disguise import DISGUISE_VERSION
from guardrail_service.text.quotations import QUOTATIONS_VERSION
from tests.integration.conftest import here

WRITTEN = Path(__file__).with_name("written_by_0_1_0")
EVALUATE = ("--evaluators", "looping,pii,secrets,no_answer", "--shard-rows", "4", "--workers", "1")


def written(name: str) -> Any:
    """Return the content of a JSON file that version 0.1.0 wrote."""
    return json.loads((WRITTEN / name).read_text("utf-8"))


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Return the content of every file under a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(("timings", "times"))
    }


def content_of(folder: Path) -> dict[str, Any]:
    """Return what a run's files say; the order of evaluators within them may be another.

    The page is left out: it names its folder.
    """
    content: dict[str, Any] = dict(bytes_of(folder))
    content.pop("report.html", None)
    for name, data in content.items():
        if name.endswith(".json"):
            content[name] = json.loads(data)
        elif name.endswith((".jsonl", ".parquet")):
            path = folder / name
            rows = (
                parquet.read_table(path).to_pylist()
                if name.endswith(".parquet")
                else [json.loads(line) for line in data.splitlines()]
            )
            content[name] = sorted(json.dumps(row, sort_keys=True) for row in rows)
    return content


def test_a_store_is_kept_and_starts_warm_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of another model's outputs is served or lost; what was stored once is known."""
    environment = written("store_environment.json")
    monkeypatch.setattr(memory.ort, "__version__", environment["onnxruntime"])
    monkeypatch.setattr(memory.platform, "machine", lambda: environment["machine"])
    monkeypatch.setattr(memory, "_cpu", lambda: environment["cpu"])
    store = shutil.copy(WRITTEN / "store.sqlite", tmp_path)
    before = stored(store)
    found = []
    for _ in range(2):
        done = here("warm", WRITTEN / "corpus.txt", "--store", store, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout) == {"passages": 2, "sentences": 2, "failed": 0}
        found.append(stored(store))
    assert before < found[0] == found[1]
    assert {row[0] for row in before}.isdisjoint(row[0] for row in found[0] - before)


def stored(path: Path) -> set[tuple[bytes, bytes, bytes]]:
    """Return every output of a store, with its model's space and its key."""
    with closing(sqlite3.connect(path)) as store:
        return set(store.execute("SELECT space, key, value FROM outputs"))


def test_an_unfinished_run_is_gone_on_with(tmp_path: Path) -> None:
    """What was scored stays, the rest is scored as 0.1.0 would have, and the result is the same."""
    lab = WRITTEN / "small.jsonl"
    begun = Path(shutil.copytree(WRITTEN / "run", tmp_path / "begun"))
    kept = bytes_of(begun)
    for out in (begun, tmp_path / "unbroken"):
        done = here("evaluate", lab, "--out", out, *EVALUATE)
        assert done.exit_code == 0, done.output
    assert kept.items() <= bytes_of(begun).items()
    unbroken = content_of(tmp_path / "unbroken")
    for shard in ("00000", "00001"):  # of what 0.1.0 scored nothing is counted beside the scores
        assert unbroken.pop(f"work/tallies-{shard}.json")
    assert content_of(begun) == unbroken
    found, expected = content_of(begun), content_of(WRITTEN / "expected")
    assert found["work/scores-00002.jsonl"] == expected["scores-00002.jsonl"]
    counted = {k: v for k, v in expected["summary.json"].items() if k != "problems"}
    assert counted.items() <= found["summary.json"].items()


def test_a_finished_run_is_opened(tmp_path: Path) -> None:
    """By what reads results, with the whole case in every row; it has no file of cases."""
    run = WRITTEN / "finished"
    results = read_run(run)["looping"]
    first = results.rows[0]
    assert len(results.rows) == written("finished/summary.json")["cases"] == 6
    assert (first.key, first.group, first.record["context"][0][:6]) == (
        "q0", question_group(first.record["input"]), "Guests",
    )  # fmt: skip
    lab = tmp_path / "lab.jsonl"
    lab.write_text("\n".join((WRITTEN / "small.jsonl").read_text("utf-8").splitlines()[:6]))
    now = tmp_path / "now"
    assert here("evaluate", lab, "--out", now, "-e", "looping", "--workers", "1").exit_code == 0
    compared = here("compare", run, now, "--json")
    content = json.loads(compared.stdout)
    assert (compared.exit_code, content["matched_by"]) == (0, "key")
    assert {d["questions"] for d in content["differences"]} == {6}
    drawn = here("calibrate", "sample", run, "--out", tmp_path / "cases.jsonl", "--n", "2")
    assert drawn.exit_code == 0, drawn.output


def test_fitted_thresholds_are_served_and_checked(tmp_path: Path) -> None:
    """As calibrated, with the cuts of the file."""
    file = WRITTEN / "thresholds.json"
    seen = here("config", "check", file, "--json")
    assert seen.exit_code == 0, seen.output
    (report,) = json.loads(seen.stdout)
    metrics = report["policy"]["detectors"]["looping"]["metrics"]
    (cuts,) = written("thresholds.json")["calibrated_thresholds"].values()
    assert {key: metrics[key]["threshold"] for key in cuts} == cuts
    assert {metrics[key]["status"] for key in cuts} == {"calibrated"}

    lab, labels = WRITTEN / "other_lab.jsonl", ("--labels", WRITTEN / "other_labels.jsonl")
    scored = here("evaluate", lab, "--out", tmp_path, "-e", "looping", "--workers", "1")
    assert scored.exit_code == 0, scored.output
    checked = here("calibrate", "check", file, "--lab", tmp_path, *labels, "--json")
    assert checked.exit_code == 0, checked.output


def test_fingerprints_are_those_of_0_1_0() -> None:
    """They depend on models and code that scores, not on where it lies.

    The rules that say which sentences claim something, and how tables and code are read, are newer,
    and so are the graphs of all models: thresholds of detectors that read one are fitted again
    (`guardrail calibrate fit --again`), all others stay valid.
    """
    pack = load_pack(packs_dir() / "embedded")
    found = dict(serving_for(pack).fingerprints)
    expected = written("fingerprints.json")
    newer = expected["evidence"].replace("rag-guardrail-claims/2", CLAIMS_VERSION)
    newer = newer.replace("rag-guardrail-reading/2", READING_VERSION)
    read = f"{DISGUISE_VERSION} {QUOTATIONS_VERSION} {DENIALS_VERSION} {ALONE_VERSION}"
    disguise = "rag-guardrail-disguise/1"
    model, _, rules = expected["toxicity"].partition(" ")
    assert (model, rules) == (expected["bias"].split(" ")[0], disguise)
    assert pack.fingerprint("toxicity") != model
    safety = {
        "toxicity": f"{pack.fingerprint('toxicity')} {read} {WORDINGS_VERSION}",
        "bias": f"{pack.fingerprint('bias')} {read}",
    }
    graphs = {role: pack.fingerprint(role) for role in ("embedding", "grounding")}
    assert all(graphs[role] != expected[role] for role in graphs)
    runtime = {"runtime": runtime_version()}
    assert found == {**expected, "evidence": newer, **safety, **graphs, **runtime}


def test_detectors_keep_the_ids_of_h2o(tiny_runtime: Runtime) -> None:
    """Under the name `h2o_id` of `/v1/detectors`."""
    with TestClient(create_app(Settings(), runtime=tiny_runtime)) as client:
        detectors = client.get("/v1/detectors").json()["detectors"]
    found = {detector["id"]: detector["h2o_id"] for detector in detectors}
    assert written("h2o_ids.json").items() <= found.items()
