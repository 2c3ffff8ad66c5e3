"""A language model in llama.cpp's single file becomes the role `causal_lm`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from guardrail_models.original import load
from guardrail_models.recipes import DeclaredModel, recipe_for
from guardrail_service.commands.main import app
from guardrail_service.inference.pack import load_pack
from guardrail_service.inference.session_kinds import open_sessions

START = "<|start|>"
WIDTH, HEADS, INNER, LAYERS = 32, 4, 64, 2


def letters() -> list[str]:
    """Return GPT-2's names of the 256 bytes."""
    from transformers.models.gpt2.tokenization_gpt2 import bytes_to_unicode

    return list(bytes_to_unicode().values())


def tensors(words: int) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of the weights of a small Llama."""
    found: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (words, WIDTH),
        "output_norm.weight": (WIDTH,),
    }
    for layer in range(LAYERS):
        named = {
            "attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH),
            "attn_k": (WIDTH, WIDTH), "attn_v": (WIDTH, WIDTH), "attn_output": (WIDTH, WIDTH),
            "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER),
        }  # fmt: skip
        found |= {f"blk.{layer}.{name}.weight": shape for name, shape in named.items()}
    return found


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Llama with random weights, as llama.cpp's converter writes one."""
    from gguf import GGUFWriter

    path = tmp_path_factory.mktemp("gguf") / "tiny-llama.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(256)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    words = [START, *letters(), "th", "he"]
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(words)
    writer.add_token_types([3, *[1] * (len(words) - 1)])
    writer.add_token_merges(["t h", "h e"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    drawn = np.random.default_rng(7)
    for name, shape in tensors(len(words)).items():
        values = np.ones(shape) if len(shape) == 1 else drawn.normal(0, 0.3, shape)
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def export(path: Path, *options: str) -> Any:
    """Run the command."""
    asked = ["models", "export", str(path), "--max-tokens", "128", *options]
    return CliRunner().invoke(app, asked, env={"COLUMNS": "300"})


def test_one_file_becomes_the_role_of_perplexity(gguf: Path, tmp_path: Path) -> None:
    """With the original's log probabilities, the tokenizer that the file brings, and its digest."""
    import torch

    done = export(gguf, "--start-token", START, "--quantise", "none", "--out", str(tmp_path / "p"))
    assert done.exit_code == 0, done.output
    pack = load_pack(tmp_path / "p")
    session: Any = open_sessions(pack)["causal_lm"]
    found = session.log_probabilities("The boat ", "opens at nine.")
    declared = DeclaredModel(max_tokens=128, start_token=START)
    recipe, folder = recipe_for(str(gguf), declared)
    assert folder == gguf.parent
    original = load(recipe, folder, folder)
    tokenizer, model = original.tokenizer, original.model
    parts = [
        tokenizer(one, add_special_tokens=False)["input_ids"]
        for one in ("The boat ", "opens at nine.")
    ]
    ids = torch.tensor([[0, *parts[0], *parts[1]]])
    with torch.no_grad():
        logs = model(input_ids=ids).logits[0, :-1].log_softmax(-1)
    expected = logs.gather(-1, ids[0, 1:, None])[-len(parts[1]) :, 0]
    assert found == pytest.approx(expected.numpy(), abs=1e-4)
    assert "tiny-llama.gguf sha256" in pack.model("causal_lm").source.revision


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--role", "nli", "--start-token", START], "--role.*causal_lm"),
        ([], "start_token"),
        (["--start-token", START, "--architecture", "gpt2"], "model_type: found 'llama'"),
    ],
    ids=["role", "start", "architecture"],
)
def test_a_file_that_is_said_to_be_something_else_is_refused(
    options: list[str], message: str, gguf: Path, tmp_path: Path
) -> None:
    """Before anything is written."""
    done = export(gguf, *options, "--out", str(tmp_path / "p"))
    assert done.exit_code == 2
    assert re.search(message, done.output), done.output
    assert not (tmp_path / "p").exists()
