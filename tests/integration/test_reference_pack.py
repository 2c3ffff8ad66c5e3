"""A pack whose models all read text themselves: the service starts on it and judges with it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from guardrail_service.inference.models.session import Tokenizer
from guardrail_service.inference.pack import load_pack
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.server.app import create_app
from guardrail_service.settings import Settings
from guardrail_service.types import Row
from tests import tiny_pack, tiny_reference
from tests.integration.conftest import here

MODEL_DETECTORS = [
    "hallucination",
    "groundedness",
    "answer_relevancy_sentence",
    "context_relevancy_soft",
    "toxicity",
    "bias",
]
BODY = {
    "question": "how many weeks may guests stay at most ?",
    "answer": "guests may stay for two weeks at most . the pool opens at seven in the morning .",
    "contexts": ["guests may stay for two weeks at most .", "breakfast is served until ten ."],
}
"""In the tiny pack's words."""


def golden(folder: Path, role: str) -> None:
    """Give a role golden rows that its model really gives."""
    texts = [" ".join(tiny_pack.WORDS[n % 20 : n % 20 + 4]) for n in range(50)]
    run = open_sessions(load_pack(folder))[role].run  # type: ignore[index]
    rows: list[dict[str, Any]] = []
    for place, text in enumerate(texts):
        other = tiny_pack.WORDS[place % len(tiny_pack.WORDS)]
        asked = Row(role, text, None, ("probabilities",))  # type: ignore[arg-type]
        if role == "grounding":
            asked = Row("grounding", text, None, ("probabilities",), evidence=(other,))
        elif role in ("nli", "causal_lm"):
            asked = Row(role, text, other)  # type: ignore[arg-type]
        found = run(asked).outputs
        if role == "grounding":
            values = [float(p) for p in found["probabilities"]]
            rows.append({"text": text, "evidence": [other], "probabilities": values})
        elif role == "nli":
            values = [float(p) for p in found["probabilities"]]
            rows.append({"text": text, "second": other, "values": values})
        elif role == "causal_lm":
            mean = float(found["log_probabilities"].mean())
            rows.append({"text": text, "second": other, "values": [mean]})
        else:
            rows.append({"text": text, "probabilities": [float(p) for p in found.values()]})
    content = {"schema_version": "1", "role": role, "tolerance": 0.001, "rows": rows}
    (folder / role / "golden.json").write_text(json.dumps(content))
    described = tiny_pack.describe(folder, f"{role}/golden.json")
    tiny_reference.change(folder, lambda m: m["models"][role].update(golden=described))


@pytest.fixture(scope="module")
def pack(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack with a model for every role, each reading text."""
    folder = Path(shutil.copytree(tiny, tmp_path_factory.mktemp("reference") / "reference"))
    toxic, one = tiny_reference.TOXICITY, tiny_reference.BIAS
    sigmoid: dict[str, Any] = {"activation": "sigmoid"}
    soft: dict[str, Any] = {"activation": "softmax", "labels": tiny_reference.THREE}
    made = tiny_reference
    made.add(folder, "toxicity", made.classifier(toxic), labels=toxic, **sigmoid)
    made.add(folder, "bias", made.classifier(one, seed=4), labels=one, **sigmoid)
    made.add(folder, "grounding", made.pair(("supported",)), labels=("supported",), **sigmoid)
    made.add(folder, "nli", made.pair(made.THREE), **soft)
    made.add(folder, "causal_lm", made.causal(), start_token=made.START)
    for role in ("toxicity", "bias", "grounding", "nli", "causal_lm"):
        golden(folder, role)
    return folder


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration over every detector that needs a model."""
    path = tmp_path_factory.mktemp("config") / "reference.json"
    metrics = {
        "hallucination": "hallucination",
        "groundedness": "groundedness",
        "answer_relevancy_sentence": "answer_relevancy",
        "context_relevancy_soft": "recall_relevancy",
        "toxicity": "toxicity",
        "bias": "fairness_bias",
    }
    thresholds = {name: {key: 0.5} for name, key in metrics.items()}
    thresholds["hallucination"] = {"hallucination": 1.0}  # so that every claim is shown
    path.write_text(
        json.dumps({"calibrated_thresholds": thresholds, "evaluator_ids": MODEL_DETECTORS})
    )
    return path


@pytest.fixture(scope="module")
def client(pack: Path, config: Path) -> Iterator[TestClient]:
    """The service on that pack, after its golden rows have run."""
    settings = Settings(model_pack=str(pack), config=(config,), workers=2)
    with TestClient(create_app(settings)) as client:
        yield client


def test_every_model_detector_judges(client: TestClient, pack: Path) -> None:
    """With the scores that the pack's own models give."""
    reply = client.post("/v1/check", json={**BODY, "include": ["spans"]})
    assert reply.status_code == 200, reply.text
    found = reply.json()["detectors"]
    assert {name: result["state"] for name, result in found.items()} == dict.fromkeys(
        MODEL_DETECTORS, "evaluated"
    )
    sessions = open_sessions(load_pack(pack))
    sentences = (
        "guests may stay for two weeks at most .",
        "the pool opens at seven in the morning .",
    )
    scores = [sessions["toxicity"].run(Row("toxicity", text)).outputs for text in sentences]
    for label in tiny_reference.TOXICITY:
        worst = max(float(outputs[label]) for outputs in scores)
        assert found["toxicity"]["metrics"][label]["score"] == pytest.approx(worst)
    assert set(found["bias"]["metrics"]) == {"fairness_bias"}
    spans = found["hallucination"]["spans"]
    # The first claim is copied from a passage; one logit knows no label but not_mentioned.
    assert [span["label"] for span in spans] == ["supported", "not_mentioned"]
    supported = [span["score"] for span in spans]
    assert found["hallucination"]["metrics"]["hallucination"]["score"] == min(supported)


def test_a_claim_and_its_evidence_that_do_not_fit_are_an_error(client: TestClient) -> None:
    """Never a verdict on a part of them."""
    long = "guests may stay for two weeks at most the pool opens at seven in the morning breakfast"
    body = {
        **BODY,
        "contexts": [f"{long} is served until ten dogs are not ."],
        "answer": f"{long} .",
    }
    found = client.post("/v1/check", json=body).json()
    assert found["detectors"]["hallucination"]["state"] == "error"
    assert found["detectors"]["toxicity"]["state"] == "evaluated"
    assert found["decision"] == "flag"


def test_info_names_each_roles_fingerprint(client: TestClient, pack: Path) -> None:
    """What configuration files refer to."""
    loaded = load_pack(pack)
    found = client.get("/v1/info").json()["fingerprints"]
    assert {role: found[role].split()[0] for role in loaded.roles} == {
        role: loaded.fingerprint(role) for role in loaded.roles
    }
    assert "rag-guardrail-disguise/" in found["toxicity"]
    assert "rag-guardrail-pair/" in found["evidence"]
    assert found["runtime"].startswith("onnxruntime ")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda m: m["models"]["toxicity"]["labels"].reverse(), "edited by hand"),
        (lambda m: m.pop("seal"), "seal: found none"),
    ],
)
def test_a_manifest_edited_by_hand_stops_start_up(
    damage: Callable[[dict[str, Any]], Any], message: str, pack: Path, config: Path, tmp_path: Path
) -> None:
    """With one line that says what to do."""
    folder = Path(shutil.copytree(pack, tmp_path / "edited"))
    tiny_reference.change(folder, damage, seal=False)
    shown = here("serve", "--pack", folder, "--config", config, "--port", "0")
    assert shown.exit_code == 2
    assert message in shown.output


def test_a_wrong_label_order_stops_start_up(pack: Path, config: Path, tmp_path: Path) -> None:
    """Even under a new seal, the graph knows better."""
    folder = Path(shutil.copytree(pack, tmp_path / "swapped"))
    tiny_reference.change(folder, lambda m: m["models"]["toxicity"]["labels"].reverse())
    shown = here("serve", "--pack", folder, "--config", config, "--port", "0")
    assert shown.exit_code == 2
    assert "manifest key labels: found" in shown.output
    assert "identity_attack" in shown.output


def test_a_pack_without_a_label_that_gates_is_reported_before(
    pack: Path, config: Path, tmp_path: Path
) -> None:
    """`config check` says so; start-up refuses it."""
    folder = Path(shutil.copytree(pack, tmp_path / "other"))
    model = tiny_reference.classifier(("insult",))
    tiny_reference.add(folder, "toxicity", model, labels=("insult",), activation="sigmoid")
    checked = here("config", "check", config, "--pack", folder)
    assert checked.exit_code == 1
    assert "lacks toxicity: its role toxicity gives insult" in checked.output
    started = here("serve", "--pack", folder, "--config", config, "--port", "0")
    assert started.exit_code == 2
    assert "lacks toxicity" in started.output


def test_a_pack_travels_as_one_file(pack: Path, tmp_path: Path) -> None:
    """Bundled, checked by its checksum, unbundled and run on the other side."""
    archive, there = tmp_path / "reference.tar", tmp_path / "there"
    made = here("models", "bundle", pack, archive)
    assert made.exit_code == 0, made.output
    digest = made.stdout.split()[0]
    assert here("models", "unbundle", archive, there, "--sha256", "0" * 64).exit_code == 2
    assert not there.exists()
    assert here("models", "unbundle", archive, there, "--sha256", digest).exit_code == 0
    verified = here("models", "verify", "--pack", there, "--json")
    assert verified.exit_code == 0, verified.output
    assert set(json.loads(verified.stdout)["golden"]) == set(load_pack(pack).roles)


@pytest.mark.parametrize("library", ["transformers", "onnx"])
def test_a_command_without_its_extra_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    """Whether or not this machine has it: here it cannot be imported."""
    monkeypatch.delitem(sys.modules, "guardrail_models.export", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / "original").mkdir()
    (tmp_path / "original" / "config.json").write_text("{}")
    shown = here("models", "export", "distilgpt2", "--from", tmp_path / "original")
    assert shown.exit_code == 2
    assert "rag-guardrail-models[export]" in shown.output


def test_the_tokenizer_knows_the_other_unknown_token(pack: Path, tmp_path: Path) -> None:
    """SentencePiece models call it <unk>; its words count as unread all the same."""
    path = tmp_path / "tokenizer.json"
    text = (pack / "nli" / "tokenizer.json").read_text().replace("[UNK]", "<unk>")
    path.write_text(text)
    spans = Tokenizer(path, 32).tokens("the \u2603")
    assert [span.known for span in spans] == [True, False]
