"""Tokenizers of the stand-ins: each architecture's own kind, with the same vocabulary every time.

The trainers of the tokenizers library order ties at random, so a test would meet another
vocabulary in every run. These are made from counted words instead.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from math import log
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from guardrail_models.recipes import Architecture, Recipe
from guardrail_models.verify import load_texts

SIZE = 650
"""Tokens of a vocabulary: most words of the shipped texts are one, the others are pieces."""
CHARACTER = -20.0
"""Logarithm of a character's share in a unigram vocabulary: a word that is there stays whole."""


class TokenizerKind(NamedTuple):
    """The parts of a tokenizer of one architecture.

    Attributes:
        make: Builds it from special tokens and texts.
        special: Its special tokens, in the order of their ids.
        single: Template of one text; None: the text alone.
        pair: Template of two.
        config: Of `tokenizer_config.json`.
    """

    make: Callable[[Sequence[str], Sequence[str]], Tokenizer]
    special: tuple[str, ...]
    single: str | None
    pair: str | None
    config: dict[str, Any]


def write_tokenizer(recipe: Recipe, folder: Path) -> dict[str, int]:
    """Write the tokenizer files of the recipe's repository; return its special tokens' ids."""
    kind = KINDS[recipe.architecture]
    texts = [part for row in load_texts(None) for part in row if part]
    fast = kind.make(kind.special, texts)
    if kind.single is not None:
        places = [(name, place) for place, name in enumerate(kind.special)]
        fast.post_processor = processors.TemplateProcessing(
            single=kind.single, pair=kind.pair, special_tokens=places
        )
    is_old = recipe.loader == "tensorflow"  # that repository has the vocabulary and no more
    if not is_old:
        fast.save(str(folder / "tokenizer.json"))
    if kind.make is not _unigram:  # whose second file is SentencePiece's own format
        fast.model.save(str(folder))
    tokens = {key: value for key, value in kind.config.items() if key.endswith("_token")}
    written = {} if is_old else kind.config
    (folder / "tokenizer_config.json").write_text(json.dumps(written, indent=1))
    (folder / "special_tokens_map.json").write_text(json.dumps(tokens, indent=1))
    ids = {key.removesuffix("_token"): fast.token_to_id(value) for key, value in tokens.items()}
    return {key: value for key, value in ids.items() if value is not None}


def _counted(fast: Tokenizer, texts: Sequence[str]) -> list[tuple[str, int]]:
    """Return the words that a tokenizer's first steps find, the most frequent first."""
    found: Counter[str] = Counter()
    for text in texts:
        read = fast.normalizer.normalize_str(text) if fast.normalizer else text
        found.update(word for word, _ in fast.pre_tokenizer.pre_tokenize_str(read))
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


def _wordpiece(special: Sequence[str], texts: Sequence[str]) -> Tokenizer:
    fast = Tokenizer(models.WordPiece())
    fast.normalizer = normalizers.BertNormalizer(lowercase=True)
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words = [word for word, _ in _counted(fast, texts)]
    characters = sorted({character for word in words for character in word})
    pieces = [*special, *characters, *(f"##{character}" for character in characters), *words]
    fast.model = models.WordPiece(_numbered(pieces), unk_token="[UNK]")  # noqa: S106
    fast.decoder = decoders.WordPiece()
    return fast


def _byte_pairs(special: Sequence[str], texts: Sequence[str]) -> Tokenizer:
    """Merge the characters of the most frequent words from the left, one after the other."""
    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    pieces = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges: dict[str, tuple[str, str]] = {}
    for word, _ in _counted(fast, texts):
        for end in range(1, len(word)):
            merges.setdefault(word[: end + 1], (word[:end], word[end]))
    kept = list(merges)[: SIZE - len(pieces)]
    fast.model = models.BPE(_numbered([*pieces, *kept]), [merges[piece] for piece in kept])
    return fast


def _unigram(special: Sequence[str], texts: Sequence[str]) -> Tokenizer:
    fast = Tokenizer(models.Unigram())
    fast.normalizer = normalizers.NFKC()
    fast.pre_tokenizer = pre_tokenizers.Metaspace()
    fast.decoder = decoders.Metaspace()
    words = _counted(fast, texts)
    total = sum(count for _, count in words)
    shares = {word: log(count / total) for word, count in words}
    characters = sorted({character for word in shares for character in word})
    pieces = list(dict.fromkeys([*special, *characters, *shares]))[:SIZE]
    scores = [0.0] * len(special)
    scores += [shares.get(piece, CHARACTER) for piece in pieces[len(special) :]]
    unknown = next(place for place, name in enumerate(special) if "unk" in name.lower())
    fast.model = models.Unigram(list(zip(pieces, scores, strict=True)), unknown)
    return fast


def _numbered(pieces: Sequence[str]) -> dict[str, int]:
    """Return the first distinct pieces with their ids."""
    return {piece: place for place, piece in enumerate(list(dict.fromkeys(pieces))[:SIZE])}


def _config(name: str, longest: int, **tokens: str) -> dict[str, Any]:
    named = {f"{key}_token": value for key, value in tokens.items()}
    return {"tokenizer_class": name, **named, "model_max_length": longest}


_BERT: dict[str, str] = {
    "pad": "[PAD]",
    "unk": "[UNK]",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "mask": "[MASK]",
}
_ROBERTA: dict[str, str] = {
    "bos": "<s>",
    "pad": "<pad>",
    "eos": "</s>",
    "unk": "<unk>",
    "mask": "<mask>",
}
_END = "<|endoftext|>"
_BERT_PAIR = ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")
_LOWER = {"do_lower_case": True}
KINDS: dict[Architecture, TokenizerKind] = {
    "bert": TokenizerKind(
        _wordpiece,
        tuple(_BERT.values()),
        *_BERT_PAIR,
        _config("BertTokenizer", 512, **_BERT) | _LOWER,
    ),
    "distilbert": TokenizerKind(
        _wordpiece,
        tuple(_BERT.values()),
        *_BERT_PAIR,
        _config("DistilBertTokenizer", 512, **_BERT) | _LOWER,
    ),
    "deberta-v2": TokenizerKind(
        _unigram,
        ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"),
        *_BERT_PAIR,
        _config("DebertaV2Tokenizer", 512, **_BERT, bos="[CLS]", eos="[SEP]"),
    ),
    "roberta": TokenizerKind(
        _byte_pairs,
        tuple(_ROBERTA.values()),
        "<s> $A </s>",
        "<s> $A </s> </s> $B </s>",
        _config("RobertaTokenizer", 512, **_ROBERTA, cls="<s>", sep="</s>"),
    ),
    "t5": TokenizerKind(
        _unigram,
        ("<pad>", "</s>", "<unk>"),
        "$A </s>",
        "$A </s> $B </s>",
        _config("T5Tokenizer", 512, eos="</s>", unk="<unk>", pad="<pad>") | {"extra_ids": 0},
    ),
    "gpt2": TokenizerKind(
        _byte_pairs,
        (_END,),
        None,
        None,
        _config("GPT2Tokenizer", 1024, bos=_END, eos=_END, unk=_END),
    ),
}
