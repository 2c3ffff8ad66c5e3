"""What the embedding detectors share: unit vectors, cosines and honest coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from guardrail_service.errors import NotScorable
from guardrail_service.text.sample import Part, SegmentedSample
from guardrail_service.text.segmentation.windows import Window
from guardrail_service.types import Role, Row, RowOutput

Array = npt.NDArray[np.float64]
ROLE: Final = "embedding"


def rows(windows: Iterable[Window]) -> list[Row]:
    """Return one embedding row per window."""
    return [Row(ROLE, window.text) for window in windows]


def vectors(outputs: Sequence[RowOutput]) -> Array:
    """Return the sentence embeddings of some rows, unit length in double precision.

    Args:
        outputs: Model outputs with a `sentence_embedding` of shape (dim,).

    Returns:
        Shape (n, dim).

    Raises:
        NotScorable: If there is no row, or an embedding has no length.
    """
    if not outputs:
        raise NotScorable("no sentence to embed")
    stacked = np.stack([out["sentence_embedding"] for out in outputs]).astype(np.float64)
    lengths = np.linalg.norm(stacked, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise NotScorable("a sentence embedding has no length")
    unit: Array = stacked / lengths
    return unit


def cosines(left: Array, right: Array) -> Array:
    """Return all pairwise cosines of unit vectors, in [-1, 1].

    Summed pair by pair, not by matrix product: a pair's cosine must not depend on how many other
    pairs there are. The clip only takes off what rounding adds beyond 1.

    Args:
        left: Shape (n, dim).
        right: Shape (m, dim).

    Returns:
        Shape (n, m).
    """
    products: Array = np.einsum("ik,jk->ij", left, right, optimize=False)
    return np.clip(products, -1.0, 1.0)


def read_chars(total: int, windows: Iterable[Window]) -> tuple[int, int]:
    """Return how many of a text's code points the model could read, and how many there are."""
    return total - sum(window.unread for window in windows), total


class Place(NamedTuple):
    """One passage window and the index of its passage."""

    context: int
    window: Window


def places(sample: SegmentedSample) -> list[Place]:
    """Return the windows of all passages, in order."""
    return [
        Place(index, window)
        for index, passage in enumerate(sample.context_windows(ROLE))
        for window in passage
    ]


def unverifiable(sample: SegmentedSample, role: Role, *parts: Part) -> str | None:
    """Return why parts of a sample cannot be compared, or None.

    Args:
        sample: The answer with its question and passages.
        role: Whose model reads them.
        parts: What is compared; passages are missed if none of them has a sentence.
    """
    if "contexts" in parts and not any(sample.context_sentences):
        return "missing_input"
    if not all(sample.readable_by(role, part) for part in parts):
        return "unsupported_language"
    return None


def unreadable(windows: Sequence[Any]) -> bool:
    """Return whether the model can read nothing at all of these windows."""
    return all(w.unread >= len(w.text.strip()) for w in windows)
