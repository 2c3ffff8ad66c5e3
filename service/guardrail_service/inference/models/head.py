"""The grounding head: one claim against the passage sentences nearest to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from guardrail_service.errors import RowFailed
from guardrail_service.inference.memory import Remembered
from guardrail_service.inference.models.encoder import TOKENS, VECTOR, Branch, SharedEncoder
from guardrail_service.inference.models.lexical import Lexical, lexical, pair_features
from guardrail_service.inference.models.session import open_session
from guardrail_service.inference.pack import ModelFile, Pack
from guardrail_service.types import Role, Row, RowResult

Array = npt.NDArray[Any]
EVIDENCE_VERSION = "rag-guardrail-evidence/1"
EVIDENCE_SENTENCES = 6
"""The head was trained on the six nearest sentences; a union of passages fits into them."""
EVIDENCE_TOKENS = 176
"""Together they have at most this many tokens, unless the nearest alone has more."""


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


OUTPUTS = ("probabilities", "places", "cosines")
"""Of a grounding row: P(supported, contradicted, not mentioned), which of the row's evidence texts
were read, nearest first, and their cosines with the claim."""

STATES = ("states",)
"""Asked for by a row that warms the memory and has no claim."""
LEXICAL_TEXTS = 2_048
"""Texts whose lexical view is kept: about 6 MB. Claims of one answer share their evidence."""


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
        if row.outputs == STATES:
            return self._states.encode(row.text)._replace(outputs={})
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
        states = self._states.encode_all(read)
        encoded = texts.inference_ms + sum(done.inference_ms for done in (claim, *states))
        feeds = self._feeds(read, [done.outputs[self._output] for done in states], cosines[places])
        prepared = time.perf_counter()
        (probabilities,) = self._session.run(["probabilities"], feeds)
        done_ms = (time.perf_counter() - prepared) * 1e3
        outputs = {
            "probabilities": probabilities,
            "places": np.array(places),
            "cosines": cosines[places],
        }
        prepare_ms = (prepared - started) * 1e3 - encoded
        asked = {name: outputs[name] for name in row.outputs}
        return RowResult(asked, max(0.0, prepare_ms), encoded + done_ms)

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
