"""A small real language model: bigrams counted in prose of the project's own, in ONNX.

Word after word it gives log P(next | last) from smoothed counts, and words that were already said
are likelier: enough for a wrong word to surprise it, and for a source to make its summary likely.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from guardrail_models import heads
from tests import tiny_reference

PROSE = """
The river Alder rises in the hills above Tarn and flows to the sea in the north. The longest river
of the valley is the Alder. The second longest river of the valley is the Birch. In spring the river
is high and cold. In summer the river is low and warm. In winter the river is often frozen, and the
children of the village walk across the ice to the mill. The mill stands by the river below the
village. The miller lives in the mill with his wife and a grey dog. The dog sleeps by the door of
the mill. The capital of the valley is Tarn, and Tarn is the oldest town of the valley. The market
of Tarn is held in the square below the church. On market days the farmers of the valley bring
cheese and apples to the square. The farmers sell the cheese in the morning and walk home in the
evening. The church of the village stands above the square. The bell of the church is heard in the
whole valley. The old road follows the river from the village to the town. The new road crosses the
river below the mill. The ferry crosses the river in the morning and in the evening. The ferry costs
two coins, and the bridge costs nothing. In autumn the apples are ripe, and the whole village walks
to the orchard above the mill. The boat of the miller lies by the bridge. The sea is far from the
hills, and the river is slow before it reaches the sea. The moon is yellow, and bananas are yellow.
Is the bridge old? Yes, it is old. Is the ferry new? No, it is not.
"""
SPECIAL = ("[UNK]", tiny_reference.START, "[SEP]")
SAID_BEFORE = 1.5
"""Added to the logit of a word that the row already holds."""
BACK_OFF = 0.5
"""Weight of the words' own frequency beside the counts of pairs, in counts."""


def add(folder: Path) -> None:
    """Give a pack the role `causal_lm`, and seal it."""
    tokenizer = _tokenizer()
    target = folder / "causal_lm" / "tokenizer.json"
    target.parent.mkdir(parents=True)
    tokenizer.save(str(target))
    start = tiny_reference.START
    tiny_reference.add(folder, "causal_lm", _model(tokenizer), start_token=start, max_tokens=4096)


def _tokenizer() -> Tokenizer:
    normalizer, words = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    found = [word for word, _ in words.pre_tokenize_str(normalizer.normalize_str(PROSE))]
    vocabulary = {word: place for place, word in enumerate(dict.fromkeys((*SPECIAL, *found)))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, words
    return tokenizer


def _log_counts(tokenizer: Tokenizer) -> npt.NDArray[np.float32]:
    """Return log P(column | row), shape (words, words)."""
    ids = tokenizer.encode(PROSE).ids
    stop = tokenizer.token_to_id(".")
    start = tokenizer.token_to_id(tiny_reference.START)
    size = tokenizer.get_vocab_size()
    pairs = Counter((start if a == stop else a, b) for a, b in pairwise([stop, *ids]))
    counts = np.zeros((size, size))
    for place, count in pairs.items():
        counts[place] = count
    counts[stop] = counts[start]
    alone = np.bincount(ids, minlength=size) + 0.1
    smoothed = counts + BACK_OFF * alone / alone.sum()
    logs: npt.NDArray[np.float32] = np.log(smoothed / smoothed.sum(axis=1, keepdims=True)).astype(
        np.float32
    )
    return logs


def _model(tokenizer: Tokenizer) -> onnx.ModelProto:
    weights = _log_counts(tokenizer)
    constants = {
        "identity": np.eye(len(weights), dtype=np.float32),
        "weights": weights,
        "token_place": np.array(1, dtype=np.int64),
        "once": np.array(1, dtype=np.float32),
        "boost": np.array(SAID_BEFORE, dtype=np.float32),
    }
    nodes = [
        helper.make_node("Gather", ["identity", "input_ids"], ["states"]),
        helper.make_node("MatMul", ["states", "weights"], ["from_last"]),
        helper.make_node("CumSum", ["states", "token_place"], ["times_said"]),
        helper.make_node("Min", ["times_said", "once"], ["said"]),
        helper.make_node("Mul", ["said", "boost"], ["from_all"]),
        helper.make_node("Add", ["from_last", "from_all"], ["logits"]),
    ]
    model = tiny_reference.graph_of(nodes, constants, ["input_ids"], "logits")
    heads.log_probabilities(model)
    return model
