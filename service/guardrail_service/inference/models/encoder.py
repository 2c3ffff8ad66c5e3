"""The sentence encoder with a memory: one pass per text serves every model that reads it.

A branch is a small model on the encoder's states half way up: a text's lower half runs once for all
of them. The grounding head reads a claim's states against the passage sentences nearest to it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.memory import (
    BRANCH_BYTES,
    MEMORY_BYTES,
    VECTOR_BYTES,
    Memory,
    Remembered,
)
from guardrail_service.inference.models.lexical import Lexical, lexical, pair_features
from guardrail_service.inference.models.session import (
    MASK,
    ModelSession,
    open_session,
    run_filled_up,
)
from guardrail_service.inference.pack import ModelFile, Pack
from guardrail_service.types import Role, Row, RowOutput, RowResult

Array = npt.NDArray[Any]
VECTOR = "sentence_embedding"
TOKENS = "token_embeddings"
MIDDLE = "middle_states"
"""The tokens' states half way up, shape (tokens, dim): what branches read."""
LENGTH = "length"
"""How many tokens a text has without [CLS] and [SEP], kept beside its embedding."""
STACKS = 4
"""Requests whose evidence is kept stacked, so that it is gathered once and not for every claim."""
EVIDENCE_VERSION = "rag-guardrail-evidence/1"
EVIDENCE_SENTENCES = 6
"""The head was trained on the six nearest sentences; a union of passages fits into them."""
EVIDENCE_TOKENS = 176
"""Together they have at most this many tokens, unless the nearest alone has more."""
GROUNDING_OUTPUTS = ("probabilities", "places", "cosines")
"""Of a grounding row: P(supported, contradicted, not mentioned), which of the row's evidence texts
were read, nearest first, and their cosines with the claim."""
CLAIMS = 3
"""Claims that are judged in one call of the queue: together as long as the longest row. Most of
what they read is the same, and is computed together."""
STATES = ("states",)
"""Asked for by a row that warms the memory and has no claim."""
LEXICAL_TEXTS = 2_048
"""Texts whose lexical view is kept: about 6 MB. Claims of one answer share their evidence."""


class Stack(NamedTuple):
    """The embeddings and lengths of several texts, enough to choose among them.

    Attributes:
        vectors: Sentence embeddings, shape (n, dim).
        lengths: Tokens of each.
        inference_ms: What computing them took this caller.
    """

    vectors: npt.NDArray[Any]
    lengths: list[int]
    inference_ms: float


class SharedEncoder:
    """Runs `embedding` rows and keeps the latest texts' outputs. Thread-safe.

    Args:
        session: The encoder.
        kept: Outputs to keep for each text: the embedding, then, where models read them, states of
            each token. A row that asks for another one runs whatever is kept.
        memory_bytes: How much of the states to keep.
        vector_bytes: How much of the embeddings to keep.
    """

    def __init__(
        self,
        session: ModelSession,
        kept: tuple[str, ...],
        memory_bytes: int = MEMORY_BYTES,
        vector_bytes: int = VECTOR_BYTES,
    ) -> None:
        self.session = session
        self.file = session.file
        self.tokenizer = session.tokenizer
        self._one_length = session.file.one_length
        self._outputs = kept
        self.memory = Memory(memory_bytes if len(kept) > 1 else vector_bytes)
        self.vectors = Memory(vector_bytes) if len(kept) > 1 else self.memory
        self._stacks: OrderedDict[tuple[str, ...], Stack] = OrderedDict()
        self._lock = threading.Lock()

    def run(self, row: Row) -> RowResult:
        """Return the outputs a row asks for; times are zero where nothing had to be computed."""
        if not self._is_kept(row):
            return self._beyond(row) if row.second is None else self.session.run(row)
        result = self.summary(row.text) if _is_vector(row) else self.encode(row.text)
        return _asked(row, result)

    def run_many(self, rows: Sequence[Row]) -> list[RowResult]:
        """Return what `run` would of rows that ask for the same outputs, from few calls.

        Texts whose outputs are at hand are not computed, and one that comes twice is once.

        Raises:
            RowFailed: If a text that is computed is longer than the model reads.
        """
        if not all(map(self._is_kept, rows)):
            return self.session.run_many(rows)
        texts = [row.text for row in rows]
        if all(map(_is_vector, rows)) and self.vectors is not self.memory:
            found = self.vectors.get_many(texts, self._summaries)
        else:
            found = self.memory.get_many(texts, self._run_many)
        return [_asked(row, result) for row, result in zip(rows, found, strict=True)]

    @property
    def row_lengths(self) -> Callable[[Sequence[Row]], list[int]]:
        """Return what tells how many tokens each row has in a call."""
        return self.session.row_lengths

    def warming(self, text: str) -> Row:
        """Return the row that computes and keeps a text's embedding."""
        return Row(self.session.role, text)

    def peek(self, rows: Sequence[Row]) -> list[RowResult | None]:
        """Return the outputs of rows that are at hand, in order."""
        asked = [row for row in rows if row.second is None and _is_vector(row)]
        kept = self.vectors.peek([row.text for row in asked])
        known = {
            row: RowResult({VECTOR: found[VECTOR]}, 0.0, 0.0)
            for row, found in zip(asked, kept, strict=True)
            if found is not None
        }
        return [known.get(row) for row in rows]

    def encode(self, text: str) -> RowResult:
        """Return the kept outputs of a text.

        Raises:
            RowFailed: If the text is longer than the model reads.
        """
        return self.memory.get(text, lambda: self._run(text))

    def encode_all(self, texts: Sequence[str]) -> list[RowResult]:
        """Return the kept outputs of several texts, in order.

        Raises:
            RowFailed: If a text is longer than the model reads.
        """
        return self.memory.get_all(texts, self._run_all)

    def summary(self, text: str) -> RowResult:
        """Return a text's embedding and its length; they are kept longer than its states.

        Raises:
            RowFailed: If the text is longer than the model reads.
        """
        if self.vectors is self.memory:
            return self.encode(text)
        return self.vectors.get(text, lambda: self._summarised(self.encode(text)))

    def stack(self, texts: tuple[str, ...]) -> Stack:
        """Return the embeddings and lengths of several texts, in order.

        Raises:
            RowFailed: If a text is longer than the model reads.
        """
        with self._lock:
            if (known := self._stacks.get(texts)) is not None:
                self._stacks.move_to_end(texts)
                return known._replace(inference_ms=0.0)
        found = self.vectors.get_all(texts, self._summarise_all)
        made = Stack(
            np.stack([done.outputs[VECTOR] for done in found]),
            [self.length(done.outputs) for done in found],
            sum(done.inference_ms for done in found),
        )
        made.vectors.flags.writeable = False
        with self._lock:
            self._stacks[texts] = made
            while len(self._stacks) > STACKS:
                self._stacks.popitem(last=False)
        return made

    def memories(self) -> dict[str, Remembered]:
        """Return what is kept. States that only branches read are not worth a disk."""
        model = self.file.computed_as()
        if self.vectors is self.memory:
            return {"vectors": Remembered(self.vectors, f"{model} {VECTOR}")}
        stored = f"{model} {TOKENS}" if self._outputs == (VECTOR, TOKENS) else None
        return {
            "vectors": Remembered(self.vectors, f"{model} {VECTOR} {LENGTH}"),
            "states": Remembered(self.memory, stored),
        }

    def length(self, outputs: RowOutput) -> int:
        """Return how many tokens a text has without [CLS] and [SEP]."""
        if LENGTH in outputs:
            return int(outputs[LENGTH])
        return max(0, len(outputs[self._outputs[-1]]) - 2)

    def _beyond(self, row: Row) -> RowResult:
        """Run a row that asks for more than is kept, and keep of it what is kept of others."""
        if self.memory.peek([row.text])[0] is not None:
            return self.session.run(row)
        outputs = tuple(dict.fromkeys((*row.outputs, *self._outputs)))
        done = self.session.run(replace(row, outputs=outputs))
        kept = {name: done.outputs[name] for name in self._outputs}
        self.memory.get(row.text, lambda: done._replace(outputs=kept))
        return _asked(row, done)

    def _run(self, text: str) -> RowResult:
        return self.session.run(Row(self.session.role, text, outputs=self._outputs))

    def _run_many(self, texts: Sequence[str]) -> list[RowResult]:
        role = self.session.role
        return self.session.run_many([Row(role, text, outputs=self._outputs) for text in texts])

    def _run_all(self, texts: Sequence[str]) -> list[RowResult]:
        """Run texts that are not of one call of the queue: by themselves, if they would move."""
        return self._run_many(texts) if self._one_length else list(map(self._run, texts))

    def _is_kept(self, row: Row) -> bool:
        return row.second is None and set(row.outputs) <= set(self._outputs)

    def _summaries(self, texts: Sequence[str]) -> list[RowResult]:
        return [self._summarised(r) for r in self.memory.get_many(texts, self._run_many)]

    def _summarise_all(self, texts: Sequence[str]) -> list[RowResult]:
        return list(map(self._summarised, self.encode_all(texts)))

    def _summarised(self, result: RowResult) -> RowResult:
        length = np.array(self.length(result.outputs), dtype=np.int64)
        return result._replace(outputs={VECTOR: result.outputs[VECTOR], LENGTH: length})


def _asked(row: Row, result: RowResult) -> RowResult:
    return result._replace(outputs={name: result.outputs[name] for name in row.outputs})


def _is_vector(row: Row) -> bool:
    return set(row.outputs) <= {VECTOR}


class Branch:
    """Upper layers over the encoder's middle states, with a memory by text. Thread-safe.

    Args:
        pack: Where the model lies.
        model: Its name in the manifest; its inputs are `middle_states` and, if texts may be filled
            up, `attention_mask`.
        encoder: The encoder it was trained on.
        memory_bytes: How much of its outputs to keep.
    """

    def __init__(
        self, pack: Pack, model: str, encoder: SharedEncoder, memory_bytes: int = BRANCH_BYTES
    ) -> None:
        self.file: ModelFile = pack.manifest.models[model]
        self.tokenizer = encoder.tokenizer
        self._name = model
        self._outputs = list(self.file.outputs)
        self._encoder = encoder
        self._session = open_session(str(pack.path(self.file)), self.file)
        self._one_length = self.file.one_length
        padding = self.file.padding
        if padding is not None and (MASK not in self.file.inputs or padding.side != "right"):
            found = f"found one on the {padding.side} for inputs {', '.join(self.file.inputs)}"
            expected = f"expected it on the right, and an input {MASK}"
            raise PackError(f"{self.file.path}: padding: {found}; {expected}")
        self.memory = Memory(memory_bytes)

    def encode(self, text: str) -> RowResult:
        """Return the branch's outputs for a text, without the batch axis.

        Raises:
            RowFailed: If the text is longer than the encoder reads.
        """
        return self.memory.get(text, lambda: self._compute([text])[0])

    def encode_all(self, texts: Sequence[str]) -> list[RowResult]:
        """Return the branch's outputs for several texts, in order.

        Raises:
            RowFailed: If a text is longer than the encoder reads.
        """
        return self.memory.get_all(texts, self._compute)

    def memories(self) -> dict[str, Remembered]:
        """Return what is kept of the branch's outputs, and of the encoder's."""
        content = f"{self._encoder.file.computed_as()} {self.file.computed_as()}"
        return self._encoder.memories() | {self._name: Remembered(self.memory, content)}

    def _compute(self, texts: Sequence[str]) -> list[RowResult]:
        if not self._one_length:
            return [self._alone(text) for text in texts]
        below = self._encoder.encode_all(texts)
        states = [result.outputs[MIDDLE] for result in below]
        found = run_filled_up(self._session, self._outputs, MIDDLE, states, self.file)
        return [
            RowResult(outputs, before.tokenize_ms, before.inference_ms + spent_ms)
            for before, (outputs, spent_ms) in zip(below, found, strict=True)
        ]

    def _alone(self, text: str) -> RowResult:
        below = self._encoder.encode(text)
        middle = below.outputs[MIDDLE]
        if MASK in self.file.inputs:
            found = run_filled_up(self._session, self._outputs, MIDDLE, [middle], self.file)
            ((outputs, spent_ms),) = found
        else:
            started = time.perf_counter()
            values = self._session.run(self._outputs, {MIDDLE: middle[np.newaxis]})
            spent_ms = (time.perf_counter() - started) * 1e3
            # Copies, as `own_outputs` makes them.
            outputs = {n: value[0].copy() for n, value in zip(self._outputs, values, strict=True)}
        return RowResult(outputs, below.tokenize_ms, below.inference_ms + spent_ms)


class BranchClassifier:
    """A branch whose output is a probability for each of the manifest's labels. Thread-safe.

    Args:
        branch: A branch with one output of shape (1, labels).
    """

    def __init__(self, branch: Branch) -> None:
        self.file = branch.file
        self.tokenizer = branch.tokenizer
        self._branch = branch
        if branch.file.labels is None or len(branch.file.outputs) != 1:
            raise PackError(f"{branch.file.path}: found no `labels`; expected one name per output")
        self._labels = branch.file.labels
        (self._output,) = branch.file.outputs

    def run(self, row: Row) -> RowResult:
        """Return each label's probability in [0, 1], whatever outputs the row names.

        Raises:
            RowFailed: If the text is longer than the encoder reads.
        """
        return self._named(self._branch.encode(row.text))

    def peek(self, rows: Sequence[Row]) -> list[RowResult | None]:
        """Return what `run` would of each row for which nothing had to be computed."""
        kept = self._branch.memory.peek([row.text for row in rows])
        return [
            None if found is None else self._named(RowResult(found, 0.0, 0.0)) for found in kept
        ]

    def memories(self) -> dict[str, Remembered]:
        """Return what is kept."""
        return self._branch.memories()

    def _named(self, result: RowResult) -> RowResult:
        found = result.outputs[self._output]
        return result._replace(outputs=dict(zip(self._labels, found, strict=True)))


def nearest(
    cosines: npt.NDArray[Any],
    lengths: Sequence[int],
    sentences: int = EVIDENCE_SENTENCES,
    tokens: int = EVIDENCE_TOKENS,
) -> list[int]:
    """Return the places of the sentences to read, nearest first; ties go to the earlier one.

    Args:
        cosines: Of each sentence with the claim.
        lengths: Tokens of each sentence; a sentence without tokens is never chosen.
        sentences: How many at most.
        tokens: How many tokens at most; the nearest sentence is kept whatever its length.
    """
    kept: list[int] = []
    used = 0
    for place in np.argsort(-cosines, kind="stable")[:sentences].tolist():
        if not lengths[place]:
            continue
        used += lengths[place]
        if kept and used > tokens:
            break
        kept.append(place)
    return kept


class _Chosen(NamedTuple):
    """The texts that a grounding row reads.

    Attributes:
        read: The claim and its evidence, nearest first.
        places: Of the evidence among the row's.
        cosines: Of the evidence with the claim.
        prepare_ms: What choosing took.
        inference_ms: What the embeddings took.
    """

    read: list[str]
    places: list[int]
    cosines: Array
    prepare_ms: float
    inference_ms: float


class HeadSession:
    """Runs `grounding` rows on token states of claim and evidence. Thread-safe.

    Args:
        pack: A pack that serves the role `grounding`.
        encoder: Gives the cosines that choose the evidence.
        states: The branch whose states the head was trained on; None: the encoder's own tokens.
        choose: Which evidence is read, by cosines and lengths. Another rule than the default is
            for measuring: fingerprints name the default.
    """

    def __init__(
        self,
        pack: Pack,
        encoder: SharedEncoder,
        states: Branch | None,
        choose: Callable[[Array, Sequence[int]], list[int]] = nearest,
    ) -> None:
        self.role: Role = "grounding"
        self.file: ModelFile = pack.model(self.role)
        self.tokenizer = encoder.tokenizer
        self._encoder = encoder
        self._choose = choose
        self._states: SharedEncoder | Branch = encoder if states is None else states
        self._output = TOKENS if states is None else next(iter(states.file.outputs))
        self._session = open_session(str(pack.path(self.file)), self.file)
        self._known = lru_cache(LEXICAL_TEXTS)(self._lexical)

    @property
    def row_lengths(self) -> int:
        """Return how many tokens of a call each row is worth."""
        return self.file.max_tokens // CLAIMS

    def warming(self, text: str) -> Row:
        """Return the row that only computes and keeps what evidence is read by."""
        return Row(self.role, text, outputs=STATES)

    def peek(self, rows: Sequence[Row]) -> list[RowResult | None]:
        """Return the outputs of warming rows that are at hand; claims always need a run."""
        texts = [row.text for row in rows if row.outputs == STATES]
        kept = dict(zip(texts, self._states.memory.peek(texts), strict=True)) if texts else {}
        return [
            None if row.outputs != STATES or kept[row.text] is None else RowResult({}, 0.0, 0.0)
            for row in rows
        ]

    def run(self, row: Row) -> RowResult:
        """Return what the head says about `row.text` given `row.evidence`.

        Raises:
            RowFailed: If a text is longer than the encoder reads, or claim or evidence is blank.
        """
        return self.run_many([row])[0]

    def run_many(self, rows: Sequence[Row]) -> list[RowResult]:
        """Return what `run` would of each row; texts that several of them read are computed once.

        Raises:
            RowFailed: If a text is longer than the encoder reads, or claim or evidence is blank.
        """
        chosen = [self._chosen(row) for row in rows]
        read = dict.fromkeys(text for one in chosen for text in one.read)
        states = dict(zip(read, self._states.encode_all(list(read)), strict=True))
        results = []
        for row, one in zip(rows, chosen, strict=True):
            encoded = one.inference_ms + sum(states[text].inference_ms for text in one.read)
            for text in one.read:  # what was computed for this row costs the next one nothing
                states[text] = states[text]._replace(inference_ms=0.0)
            results.append(self._result(row, one, [states[t].outputs for t in one.read], encoded))
        return results

    def _chosen(self, row: Row) -> _Chosen:
        if row.outputs == STATES:
            return _Chosen([row.text], [], np.empty(0, dtype=np.float32), 0.0, 0.0)
        started = time.perf_counter()
        claim = self._encoder.summary(row.text)
        if not row.evidence or not self._encoder.length(claim.outputs):
            raise RowFailed("a grounding row needs a claim and at least one text of evidence")
        texts = self._encoder.stack(row.evidence)
        # Pair by pair, not by matrix product: a pair's cosine must not depend on its neighbours.
        cosines = np.einsum("ij,j->i", texts.vectors, claim.outputs[VECTOR], optimize=False)
        places = self._choose(cosines, texts.lengths)
        if not places:
            raise RowFailed("no evidence has a token")
        read = [row.text, *(row.evidence[place] for place in places)]
        encoded = texts.inference_ms + claim.inference_ms
        prepare_ms = (time.perf_counter() - started) * 1e3 - encoded
        return _Chosen(read, places, cosines[places], max(0.0, prepare_ms), encoded)

    def _result(
        self, row: Row, chosen: _Chosen, states: Sequence[RowOutput], encoded_ms: float
    ) -> RowResult:
        """Return the outputs a row asks for from the states of what it reads."""
        if row.outputs == STATES:
            return RowResult({}, 0.0, encoded_ms)
        started = time.perf_counter()
        values = [outputs[self._output] for outputs in states]
        feeds = self._feeds(chosen.read, values, chosen.cosines)
        prepared = time.perf_counter()
        (probabilities,) = self._session.run(["probabilities"], feeds)
        done = time.perf_counter()
        outputs = {
            "probabilities": probabilities,
            "places": np.array(chosen.places),
            "cosines": chosen.cosines,
        }
        prepare_ms = chosen.prepare_ms + (prepared - started) * 1e3
        asked = {name: outputs[name] for name in row.outputs}
        return RowResult(asked, prepare_ms, encoded_ms + (done - prepared) * 1e3)

    def memories(self) -> dict[str, Remembered]:
        """Return what is kept of the texts read."""
        return self._states.memories()

    def _feeds(
        self, read: Sequence[str], states: Sequence[Array], cosines: Array
    ) -> Mapping[str, Array]:
        """Return the head's inputs; texts and states begin with the claim's."""
        claim, *evidence = [self._known(text) for text in read]
        features = pair_features(claim, evidence, cosines.tolist())
        return {
            "claim": states[0][1:-1],
            "passage": np.concatenate([values[1:-1] for values in states[1:]]),
            "claim_features": features.claim,
            "passage_features": features.passage,
            "match": features.match,
            "pair": features.pair,
        }

    def _lexical(self, text: str) -> Lexical:
        return lexical(text, self.tokenizer.tokens(text), self.tokenizer.raw_ids(text))
