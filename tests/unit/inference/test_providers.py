"""Where models run: chosen by role, refused where it is missing or computes something else.

What another provider really computes is in tests/providers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_service.errors import ConfigurationError, PackError
from guardrail_service.inference.pack import Pack, load_pack
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.plugins import SESSIONS
from guardrail_service.policy.fingerprints import fingerprints
from guardrail_service.resources import StartCache
from guardrail_service.server.runtime import batches, run_golden
from guardrail_service.types import EVERY, Provider, Row
from tests import tiny_pack, tiny_reference
from tests.plugged import unpack

MODULE = "acme_of_the_provider_tests"
SOURCE = """
from guardrail_service.inference.models.classifier import ClassifierSession
from guardrail_service.inference.session_kinds import SessionKind

class Chip:
    runs = []
    def __init__(self, opening):
        file = opening.pack.manifest.models[opening.model]
        self.on, self.file = file.provider, file
        plain = opening.pack.on({"*": "cpu"})
        self.inner = ClassifierSession(plain, opening.role)
        self.tokenizer = self.inner.tokenizer

    def run(self, row):
        return self.run_many([row])[0]

    def run_many(self, rows):
        self.runs.append(len(rows))
        off = {"cpu": 0.0, "coreml": 0.03, "cuda": 0.01}[self.on]
        return [one._replace(outputs={k: v + off for k, v in one.outputs.items()})
                for one in self.inner.run_many(rows)]

NEAR = SessionKind("acme_chip", Chip, "texts", providers=("cpu", "cuda", "coreml"))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a pack: an encoder, a branch of it for two roles, and a classifier that pads."""
    folder = tiny_pack.build(tmp_path / "pack")
    tiny_pack.add_branch(folder, roles=["bias", "acme_frame"], labels=["fairness_bias"])
    labels = tiny_reference.TOXICITY
    declared: dict[str, Any] = {"labels": labels, "activation": "sigmoid"}
    tiny_reference.add(folder, "toxicity", tiny_reference.classifier(labels), **declared)

    def pads(manifest: dict[str, Any]) -> None:
        manifest["models"]["toxicity"]["padding"] = {"side": "right", "id": 0}
        manifest["models"]["toxicity"]["batch_rule"] = "one_row"

    tiny_reference.change(folder, pads)
    return folder


@pytest.fixture
def chip(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pack:
    """Return the pack with a classifier that a plug-in runs on a chip, and golden rows for it."""
    unpack(tmp_path, "acme-chip", {SESSIONS: {"acme_chip": f"{MODULE}:NEAR"}}, {MODULE: SOURCE})
    monkeypatch.syspath_prepend(tmp_path)
    tiny_reference.change(
        folder, lambda manifest: manifest["models"]["toxicity"].update(kind="acme_chip")
    )
    session = open_sessions(load_pack(folder))["toxicity"]
    rows = []
    for index in range(50):
        text = " ".join(tiny_pack.WORDS[index % 20 : index % 20 + 1 + index % 7])
        found = session.run(Row("toxicity", text, outputs=())).outputs
        rows.append({"text": text, "probabilities": [float(value) for value in found.values()]})
    golden = {"schema_version": "1", "role": "toxicity", "tolerance": 0.001, "rows": rows}
    path = folder / "toxicity" / "golden.json"
    path.write_text(json.dumps(golden))
    described = tiny_pack.describe(folder, "toxicity/golden.json")
    tiny_reference.change(
        folder, lambda manifest: manifest["models"]["toxicity"].update(golden=described)
    )
    return load_pack(folder)


def checked(pack: Pack, passed: StartCache | None = None) -> Any:
    """Return the golden report of the classifier."""
    session = open_sessions(pack)["toxicity"]
    return run_golden(pack, {"toxicity": session}, 1, passed=passed)["toxicity"]


@pytest.mark.parametrize(
    ("provider", "remedy"),
    [
        ("cuda", "onnxruntime-gpu in place of onnxruntime"),
        ("openvino", "onnxruntime-openvino in place of onnxruntime"),
        ("dnnl", "a build of onnxruntime with --use_dnnl"),
        ("coreml", "onnxruntime on macOS"),
    ],
)
def test_a_provider_that_is_missing_is_refused_with_what_to_install(
    provider: Provider, remedy: str, folder: Path
) -> None:
    """What was asked for, what is there, and what brings it."""
    message = rf"GUARDRAIL_PROVIDERS: found {provider}, .*\(it has cpu\).* or {remedy}"
    with pytest.raises(ConfigurationError, match=message):
        open_sessions(load_pack(folder).on({EVERY: "cpu", "toxicity": provider}))


def test_each_model_runs_where_the_roles_that_read_it_do(folder: Path) -> None:
    """The encoder of all others on its own role's, a branch on that of both its roles."""
    pack = load_pack(folder).on(
        {EVERY: "cpu", "bias": "openvino", "acme_frame": "openvino", "toxicity": "cuda"}
    )
    assert {name: file.provider for name, file in pack.manifest.models.items()} == {
        "tiny": "cpu",
        "branch": "openvino",
        "toxicity": "cuda",
    }
    assert pack.provider("embedding") == "cpu"
    assert load_pack(folder).on({EVERY: "dnnl"}).provider("embedding") == "dnnl"


def test_two_roles_of_one_model_have_one_provider(folder: Path) -> None:
    """The message names both, and the model."""
    message = "found bias=cuda and acme_frame=cpu; expected one .* the model branch serves them"
    with pytest.raises(ConfigurationError, match=message):
        load_pack(folder).on({EVERY: "cpu", "bias": "cuda"})


def test_a_provider_for_a_role_that_nothing_serves_is_refused(folder: Path) -> None:
    """A misspelt one, most likely."""
    with pytest.raises(ConfigurationError, match=r"role 'toxicty'.*did you mean 'toxicity'"):
        load_pack(folder).on({EVERY: "cpu", "toxicty": "cuda"}).refuse_unserved()


def test_joined_roles_run_where_they_are_sent_too(folder: Path, tmp_path: Path) -> None:
    """In whichever order a pack is joined and sent elsewhere."""
    other = tiny_pack.build(tmp_path / "other", seed=9)
    tiny_reference.change(other, lambda m: m.update(roles={"acme_near": "tiny"}))
    providers: dict[str, Provider] = {EVERY: "cpu", "acme_near": "cuda"}
    brought = {"acme_near": load_pack(other)}
    sent = load_pack(folder).on(providers).joined(brought)
    joined = load_pack(folder).joined(brought).on(providers)
    for pack in (sent, joined):
        assert (pack.provider("acme_near"), pack.provider("toxicity")) == ("cuda", "cpu")


def test_a_provider_moves_no_fingerprint_but_the_runtimes(chip: Pack) -> None:
    """Golden rows say whether thresholds hold there; kept outputs are kept apart."""
    before, after = fingerprints(chip), fingerprints(chip.on({EVERY: "cpu", "toxicity": "cuda"}))
    runtime = after.pop("runtime")
    assert " toxicity=cuda," in runtime
    assert before.pop("runtime") == runtime.replace(" toxicity=cuda", "")
    assert after == before
    file = chip.manifest.models["tiny"]
    assert file.on("cuda").computed_as() != file.computed_as() == file.fingerprint()


@pytest.mark.parametrize(
    ("provider", "changes", "together"),
    [
        ("cpu", {}, False),
        ("openvino", {}, False),
        ("cuda", {}, True),
        ("coreml", {}, True),
        ("cuda", {"precision": "int8-dynamic-7bit"}, False),
        ("cuda", {"padding": None}, False),
        ("cuda", {"batch_rule": "token_budget"}, True),
        ("cuda", {"providers": {"cuda": {"batch_rule": "one_row", "tolerance": 0.1}}}, False),
        ("dnnl", {"providers": {"dnnl": {"batch_rule": "token_budget", "tolerance": 0.1}}}, True),
    ],
)
def test_rows_share_calls_as_the_manifest_says_else_on_gpus(
    provider: Provider, changes: dict[str, Any], together: bool, folder: Path
) -> None:
    """Not where a row's scores would move beside others, and never without padding."""
    tiny_reference.change(folder, lambda manifest: manifest["models"]["toxicity"].update(changes))
    assert load_pack(folder).on({EVERY: provider}).model("toxicity").may_batch is together


def test_golden_rows_run_together_where_rows_will(chip: Pack) -> None:
    """A score that moves beside others would show at the start."""
    pack = chip.on({EVERY: "cpu", "toxicity": "cuda"})
    sessions = open_sessions(pack)
    runs: list[int] = sessions["toxicity"].runs  # type: ignore[attr-defined]
    runs.clear()
    report = run_golden(pack, {"toxicity": sessions["toxicity"]}, 1)["toxicity"]
    assert runs == [8] * 6 + [2]
    assert report.worst == pytest.approx(0.01, abs=1e-5)
    assert report.tolerance == 0.02
    assert set(batches(sessions, 512)) == {"toxicity"}


def test_scores_that_are_off_are_refused_and_the_provider_named(chip: Pack) -> None:
    """The same model, the same rows: only what computes them is another."""
    assert checked(chip).tolerance == 0.001
    message = r"differ by 0\.03.* at most 0\.02\. coreml, which GUARDRAIL_PROVIDERS names, computes"
    with pytest.raises(PackError, match=message):
        checked(chip.on({EVERY: "cpu", "toxicity": "coreml"}))


def test_the_manifest_says_how_far_scores_may_be_off(chip: Pack) -> None:
    """For each provider, sealed like everything else that it says."""
    rule = {"coreml": {"batch_rule": "one_row", "tolerance": 0.05}}
    tiny_reference.change(
        chip.folder, lambda manifest: manifest["models"]["toxicity"].update(providers=rule)
    )
    pack = load_pack(chip.folder)
    assert checked(pack.on({EVERY: "cpu", "toxicity": "coreml"})).tolerance == 0.05
    tiny_reference.change(
        chip.folder,
        lambda manifest: manifest["models"]["toxicity"].update(providers={}),
        seal=False,
    )
    with pytest.raises(PackError, match="edited by hand"):
        load_pack(chip.folder)


def test_rows_that_passed_on_the_processor_run_again_elsewhere(chip: Pack, tmp_path: Path) -> None:
    """What one provider computed says nothing about another."""
    kept = StartCache(tmp_path / "kept")
    checked(chip, kept)
    with pytest.raises(PackError):
        checked(chip.on({EVERY: "cpu", "toxicity": "coreml"}), kept)


def test_a_kind_runs_only_where_it_says(chip: Pack) -> None:
    """Before anything is opened; a plug-in that states nothing runs on the processor."""
    message = "found dnnl for toxicity; expected toxicity=cpu or toxicity=cuda or toxicity=coreml"
    with pytest.raises(ConfigurationError, match=rf"{message}.*'acme_chip'"):
        open_sessions(chip.on({EVERY: "cpu", "toxicity": "dnnl"}))
