"""The grounding head: one claim against the passage sentences nearest to it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from guardrail_service.errors import RowFailed
from guardrail_service.inference.encoder import SharedEncoder
from guardrail_service.inference.evidence import nearest
from guardrail_service.inference.lexical import Lexical, lexical, pair_features
from guardrail_service.inference.pack import ModelFile, Pack
from guardrail_service.inference.session import open_session
from guardrail_service.types import Role, Row, RowOutput, RowResult

OUTPUTS = ("probabilities", "places", "cosines")
"""Of a grounding row: P(supported, contradicted, not mentioned), which of the row's evidence texts
were read, nearest first, and their cosines with the claim."""


class HeadSession:
    """Runs `grounding` rows on the shared encoder's token embeddings. Thread-safe.

    Args:
        pack: A pack that serves the role `grounding`.
        encoder: The encoder the head was trained on.
    """

    def __init__(self, pack: Pack, encoder: SharedEncoder) -> None:
        self.role: Role = "grounding"
        self.file: ModelFile = pack.model(self.role)
        self.tokenizer = encoder.session.tokenizer
        self._encoder = encoder
        self._session = open_session(str(pack.path(self.file)), self.file)

    def run(self, row: Row) -> RowResult:
        """Return what the head says about `row.text` given `row.evidence`.

        Raises:
            RowFailed: If a text is longer than the encoder reads, or claim or evidence is blank.
        """
        started = time.perf_counter()
        claim = self._encoder.encode(row.text)
        texts = [self._encoder.encode(text) for text in row.evidence]
        encoded = sum(done.inference_ms for done in (claim, *texts))
        if not texts or not _tokens(claim.outputs):
            raise RowFailed("a grounding row needs a claim and at least one text of evidence")
        vectors = np.stack([done.outputs["sentence_embedding"] for done in texts])
        # Pair by pair, not by matrix product: a pair's cosine must not depend on its neighbours.
        cosines = np.einsum("ij,j->i", vectors, claim.outputs["sentence_embedding"], optimize=False)
        places = nearest(cosines, [_tokens(done.outputs) for done in texts])
        if not places:
            raise RowFailed("no evidence has a token")
        chosen = [(row.evidence[i], texts[i].outputs) for i in places]
        feeds = self._feeds(row.text, claim.outputs, chosen, cosines[places])
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

    def _feeds(
        self,
        claim: str,
        encoded: RowOutput,
        chosen: list[tuple[str, RowOutput]],
        cosines: npt.NDArray[Any],
    ) -> Mapping[str, npt.NDArray[np.float32]]:
        features = pair_features(
            self._lexical(claim), [self._lexical(text) for text, _ in chosen], cosines.tolist()
        )
        return {
            "claim": encoded["token_embeddings"][1:-1],
            "passage": np.concatenate([out["token_embeddings"][1:-1] for _, out in chosen]),
            "claim_features": features.claim,
            "passage_features": features.passage,
            "match": features.match,
            "pair": features.pair,
        }

    def _lexical(self, text: str) -> Lexical:
        return lexical(text, self.tokenizer.tokens(text), self.tokenizer.ids(text)[1:-1])


def _tokens(outputs: RowOutput) -> int:
    """Return how many tokens a text has without [CLS] and [SEP]."""
    return max(0, len(outputs["token_embeddings"]) - 2)
