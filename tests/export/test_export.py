"""Each reference model's stand-in, by the documented command, into a pack that starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from guardrail_models import stand_ins
from guardrail_models.export import ExportOptions, export_model
from guardrail_models.original import Original, Text, load
from guardrail_models.quantise import QUANTISATIONS, Quantisation
from guardrail_models.recipes import Recipe, shipped_recipes
from guardrail_models.verify import load_texts
from guardrail_service.commands.main import app
from guardrail_service.inference.golden import check_golden
from guardrail_service.inference.models.pair import NliSession, PairModel
from guardrail_service.inference.pack import load_pack
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.types import Row

Build = Callable[[str], Path]
NAMES = list(shipped_recipes())
PAIRS = [row for row in load_texts(None)[5:25] if row.second]


def tiny(name: str) -> Recipe:
    """Return a recipe for its stand-in."""
    return stand_ins.tiny_recipe(shipped_recipes()[name])


def original(name: str, stand_in: Build) -> Original:
    """Return the stand-in in PyTorch."""
    return load(tiny(name), stand_in(name), stand_in(name))


@pytest.mark.parametrize("name", NAMES)
def test_one_command_exports_a_reference_model(name: str, stand_in: Build, tmp_path: Path) -> None:
    """Into a pack whose files check and whose golden rows run; scores are the original's."""
    pack = tmp_path / "reference"
    given = ["--quantise", "none", "--from", stand_in(name), "--out", pack, "--json"]
    commit = ["--revision", "0" * 40] if shipped_recipes()[name].hub else []
    asked = ["models", "export", name, *map(str, given), *commit]
    shown = CliRunner().invoke(app, asked, env={"COLUMNS": "300"})
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)["verification"]
    assert found["largest"] < 1e-4
    assert found["batch"] < 1e-4
    assert found["longest"] > 0.75 * shipped_recipes()[name].max_tokens
    loaded = load_pack(pack)
    role = shipped_recipes()[name].role
    assert list(loaded.model(role).labels or ()) == list(shipped_recipes()[name].labels or ())
    card = (pack / role / "MODEL_CARD.md").read_text()
    assert shipped_recipes()[name].license in card
    if role != "grounding":  # which needs an encoder beside it
        report = check_golden(
            loaded.path(loaded.model(role).golden), open_sessions(loaded)[role].run
        )
        assert report.rows >= 50


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *(("detoxify-unbiased", how) for how in QUANTISATIONS),
        ("bge-small-en-v1.5", "int8-dynamic"),
        ("hhem-1.0-open", "int8-dynamic"),
        ("hhem-2.1-open", "int8-dynamic"),
        ("distilgpt2", "weight-only"),
    ],
)
def test_every_quantisation_is_verified(
    name: str, how: Quantisation, stand_in: Build, tmp_path: Path
) -> None:
    """Within its own limits; with one activation scale per call, rows run alone."""
    options = ExportOptions(out=tmp_path / "pack", quantisation=how, local=stand_in(name))
    made = export_model(tiny(name), options)
    assert made.file.batch_rule == ("one_row" if how == "int8-dynamic" else "token_budget")
    assert (made.verification.largest > 1e-5) == (how != "none")
    assert load_pack(tmp_path / "pack").manifest.seal


def test_an_embedding_is_what_sentence_transformers_gives(stand_in: Build, tmp_path: Path) -> None:
    """Mean and first-token pooling, by the library the originals are published for."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    texts = [row.first for row in PAIRS]
    for name, pooling in (("all-minilm-l6-v2", "mean"), ("bge-small-en-v1.5", "cls")):
        folder = stand_in(name)
        out = tmp_path / name
        export_model(tiny(name), ExportOptions(out=out, quantisation="none", local=folder))
        words = modules.Transformer(str(folder))
        width = words.model.config.hidden_size
        parts = [words, modules.Pooling(width, pooling), modules.Normalize()]
        library = SentenceTransformer(modules=parts, device="cpu")
        session = open_sessions(load_pack(out))["embedding"]
        found = [session.run(Row("embedding", t)).outputs["sentence_embedding"] for t in texts]
        np.testing.assert_allclose(np.stack(found), library.encode(texts), atol=1e-5)


@pytest.mark.parametrize("name", ["hhem-1.0-open", "nli-distilroberta-base"])
def test_a_cross_encoder_is_what_sentence_transformers_gives(
    name: str, stand_in: Build, tmp_path: Path
) -> None:
    """One logit and three, by the library's own activation for each."""
    import torch
    from sentence_transformers import CrossEncoder

    recipe = tiny(name)
    export_model(recipe, ExportOptions(out=tmp_path, quantisation="none", local=stand_in(name)))
    pair = PairModel(load_pack(tmp_path), f"{name}-fp32")
    rows = [(row.first, row.second or "") for row in PAIRS]
    found = np.stack([pair.probabilities([pair.encoded(*row)])[0] for row in rows])
    library = CrossEncoder(str(stand_in(name)), device="cpu")
    if recipe.activation == "sigmoid":
        expected = library.predict(rows)
        np.testing.assert_allclose(found[:, 0], expected, atol=1e-5)
        np.testing.assert_allclose(found[:, 2], 1 - expected, atol=1e-5)
    else:
        logits = library.predict(rows, activation_fn=torch.nn.Softmax(dim=-1))
        np.testing.assert_allclose(found, logits[:, recipe.order()], atol=1e-5)


def test_an_nli_session_serves_what_was_exported(stand_in: Build, tmp_path: Path) -> None:
    """Labels in our order, whatever the original's order was."""
    name = "nli-deberta-v3-base"
    export_model(tiny(name), ExportOptions(out=tmp_path, quantisation="none", local=stand_in(name)))
    session = NliSession(load_pack(tmp_path))
    expected = original(name, stand_in).scores(PAIRS)
    found = [session.run(Row("nli", r.first, r.second)).outputs["probabilities"] for r in PAIRS]
    np.testing.assert_allclose(np.stack(found), expected, atol=1e-5)
    assert session.file.labels == ("supported", "contradicted", "not_mentioned")


@pytest.mark.parametrize("name", ["detoxify-original", "detoxify-unbiased"])
def test_detoxify_labels_come_in_our_order(name: str, stand_in: Build, tmp_path: Path) -> None:
    """Two checkpoints with other class names and other orders, by name."""
    import torch

    export_model(tiny(name), ExportOptions(out=tmp_path, quantisation="none", local=stand_in(name)))
    session = open_sessions(load_pack(tmp_path))["toxicity"]
    loaded = original(name, stand_in)
    for row in PAIRS[:5]:
        with torch.no_grad():
            logits = loaded.model(**loaded.tokenizer(row.first, return_tensors="pt")).logits[0]
        by_name = dict(zip(loaded.recipe.original_labels or (), logits.sigmoid(), strict=True))
        for label, value in session.run(Row("toxicity", row.first)).outputs.items():
            assert float(value) == pytest.approx(float(by_name[label]), abs=1e-5)


def test_tensorflow_weights_are_those_of_the_pytorch_model(stand_in: Build) -> None:
    """Every weight of the HDF5 file lands where it belongs, turned where Keras has it turned."""
    import torch

    from guardrail_models.checkpoint_formats import read_h5

    loaded = original("bias-detection-model", stand_in)
    fresh = type(loaded.model)(loaded.model.config)
    missing, left = fresh.load_state_dict(
        read_h5(stand_in("bias-detection-model") / "tf_model.h5", fresh), strict=False
    )
    assert not missing
    assert not left
    for name, value in loaded.model.state_dict().items():
        assert torch.equal(fresh.state_dict()[name], value), name


def test_a_language_model_gives_each_tokens_log_probability(
    stand_in: Build, tmp_path: Path
) -> None:
    """Against transformers' own loss, which is the mean over all tokens after the first."""
    import torch

    name = "distilgpt2"
    export_model(tiny(name), ExportOptions(out=tmp_path, quantisation="none", local=stand_in(name)))
    session: Any = open_sessions(load_pack(tmp_path))["causal_lm"]
    loaded = original(name, stand_in)
    for row in PAIRS[:5]:
        ids = [0, *loaded.tokenizer(row.first)["input_ids"]]
        with torch.no_grad():
            inputs = torch.tensor([ids])
            loss = loaded.model(input_ids=inputs, labels=inputs).loss
        found = session.log_probabilities("", row.first)
        assert len(found) == len(ids) - 1
        assert -found.mean() == pytest.approx(float(loss), abs=1e-4)


def test_an_unnamed_model_needs_everything_declared(stand_in: Build, tmp_path: Path) -> None:
    """A folder of one's own: labels, their order and the activation are given, not guessed."""
    folder, pack = stand_in("nli-distilroberta-base"), tmp_path / "own"
    said = ["--role", "nli", "--activation", "softmax", "--max-tokens", "128"]
    order = ("contradiction", "entailment", "neutral")
    said += [part for label in order for part in ("--original-label", label)]
    asked = ["models", "export", str(folder), "--out", str(pack), "--quantise", "fp16", *said]
    missing = CliRunner().invoke(app, asked)
    assert missing.exit_code == 2
    assert "labels" in missing.output
    ours = ("supported=entailment", "contradicted=contradiction", "not_mentioned=neutral")
    shown = CliRunner().invoke(app, [*asked, *(p for o in ours for p in ("--label", o))])
    assert shown.exit_code == 0, shown.output
    assert load_pack(pack).model("nli").precision == "fp32 arithmetic, fp16 weights"
    assert len(load_pack(pack).model("nli").source.revision.rsplit(" ", 1)[1]) == 64


def test_two_models_share_a_pack(stand_in: Build, tmp_path: Path) -> None:
    """And one role's second export replaces its first."""
    pack = tmp_path / "pack"
    for name, how in (
        ("bge-small-en", "none"),
        ("bias-detection-model", "none"),
        ("all-minilm-l6-v2", "fp16"),
    ):
        options = ExportOptions(out=pack, quantisation=how, local=stand_in(name))  # type: ignore[arg-type]
        export_model(tiny(name), options)
    loaded = load_pack(pack)
    assert loaded.manifest.roles == {
        "embedding": "all-minilm-l6-v2-fp16",
        "bias": "bias-detection-model-fp32",
    }
    assert set(loaded.manifest.models) == set(loaded.manifest.roles.values())


def test_texts_of_ones_own_are_verified_on(stand_in: Build, tmp_path: Path) -> None:
    """JSON lines; too few of them, or too long ones, are refused."""
    name = "all-minilm-l6-v2"
    lines = [json.dumps({"text": f"Fee {n} is due in week {n + 2}."}) for n in range(60)]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    out = tmp_path / "pack"
    options = ExportOptions(
        out=out, quantisation="none", local=stand_in(name), texts=tmp_path / "texts.jsonl"
    )
    assert export_model(tiny(name), options).verification.rows >= 50
    golden = json.loads((out / "embedding" / "golden.json").read_text())
    assert "Fee 1 is due" in golden["rows"][1]["text"]


def test_original_scores_are_spread(stand_in: Build) -> None:
    """Or a wrong export could hide: most of [0, 1] is covered by every stand-in's first label."""
    for name in NAMES:
        recipe = tiny(name)
        if recipe.role in ("embedding", "causal_lm"):
            continue
        rows = PAIRS if recipe.role in ("grounding", "nli") else [Text(r.first) for r in PAIRS]
        scores = original(name, stand_in).scores(rows)[:, 0]
        assert scores.min() < 0.35, name
        assert scores.max() > 0.65, name
