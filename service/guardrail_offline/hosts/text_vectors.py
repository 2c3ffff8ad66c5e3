"""Unit vectors of texts, by an embedding model that somebody serves.

Texts go in batches, and one that was answered is not asked about again while it is remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from guardrail_offline.hosts.chat import EmbeddingHost
from guardrail_offline.hosts.errors import BadReply, UntilSilent
from guardrail_offline.hosts.opening import HostChoice, open_embedding
from guardrail_service.errors import NotScorable

BATCH = 64
"""Texts of one call."""
MEMORY_TEXTS = 16_384
"""Texts whose vectors a process keeps: about 200 MB with 1,536 dimensions."""
Vectors = npt.NDArray[np.float64]


@dataclass
class TextVectors:
    """Unit vectors of texts. One thread asks it.

    Like a served language model it is not asked any more when all would be refused, or after some
    calls in a row without a reply.

    Attributes:
        host: Who embeds.
        place: What messages call it.
    """

    host: EmbeddingHost
    place: str = "the embedding host"
    _known: OrderedDict[str, npt.NDArray[np.float64]] = field(
        default_factory=OrderedDict, repr=False
    )
    _dimensions: int | None = None
    _asking: UntilSilent = field(default_factory=UntilSilent, repr=False)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit-length vectors, shape (n, dim), in order.

        Raises:
            NotScorable: If there is no text, or a vector has no length.
            HostError: If the host does not give them, or vectors of another length than before.
        """
        if not texts:
            raise NotScorable("no text to embed")
        found = {text: self._known[text] for text in texts if text in self._known}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        for start in range(0, len(missing), BATCH):
            found |= self._ask(missing[start : start + BATCH])
        for text in found:
            self._known.move_to_end(text)
        while len(self._known) > MEMORY_TEXTS:
            self._known.popitem(last=False)
        rows = np.stack([found[text] for text in texts])
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and (lengths > 0).all()):
            raise NotScorable("an embedding has no length")
        unit: Vectors = rows / lengths
        return unit

    def _ask(self, texts: Sequence[str]) -> dict[str, npt.NDArray[np.float64]]:
        rows = self._asking.call(lambda: self.host.embed(texts))
        lengths = {len(row) for row in rows} | ({self._dimensions} if self._dimensions else set())
        if len(lengths) != 1 or 0 in lengths:
            raise BadReply(self.place, "vectors of another length", "one length for all texts")
        (self._dimensions,) = lengths
        found = {
            text: np.array(row, dtype=np.float64) for text, row in zip(texts, rows, strict=True)
        }
        self._known |= found
        return found


def open_text_vectors(choice: HostChoice) -> TextVectors:
    """Return the embedding model that was chosen.

    Raises:
        ConfigurationError: If it cannot be, or hosts of its kind do not embed.
    """
    return TextVectors(open_embedding(choice))
