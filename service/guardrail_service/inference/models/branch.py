"""Branches: small models on the encoder's middle states; a text's lower half runs once for all."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from guardrail_service.errors import PackError
from guardrail_service.inference.memory.memory import Memory, Remembered
from guardrail_service.inference.models.encoder import MIDDLE, SharedEncoder
from guardrail_service.inference.models.session import open_session
from guardrail_service.inference.pack import ModelFile, Pack
from guardrail_service.types import Row, RowResult

MEMORY_BYTES = 32 * 2**20
"""About 2,000 sentences of 32 tokens, 128 values each."""


class Branch:
    """Upper layers over the encoder's middle states, with a memory by text. Thread-safe.

    One text per call: the branch is dynamic INT8 like the encoder (docs/decisions/0002).

    Args:
        pack: Where the model lies.
        model: Its name in the manifest; its only input is `middle_states`.
        encoder: The encoder it was trained on.
        memory_bytes: How much of its outputs to keep.
    """

    def __init__(
        self, pack: Pack, model: str, encoder: SharedEncoder, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self.file: ModelFile = pack.manifest.models[model]
        self.tokenizer = encoder.tokenizer
        self._name = model
        self._outputs = list(self.file.outputs)
        self._encoder = encoder
        self._session = open_session(str(pack.path(self.file)), self.file)
        self.memory = Memory(memory_bytes)

    def encode(self, text: str) -> RowResult:
        """Return the branch's outputs for a text, without the batch axis.

        Raises:
            RowFailed: If the text is longer than the encoder reads.
        """
        return self.memory.get(text, lambda: self._compute(text))

    def encode_all(self, texts: Sequence[str]) -> list[RowResult]:
        """Return the branch's outputs for several texts, in order.

        Raises:
            RowFailed: If a text is longer than the encoder reads.
        """
        return self.memory.get_all(texts, self._compute)

    def peek(self, text: str) -> RowResult | None:
        """Return the branch's outputs for a text if they are at hand."""
        kept = self.memory.peek(text)
        return None if kept is None else RowResult(kept, 0.0, 0.0)

    def memories(self) -> dict[str, Remembered]:
        """Return what is kept of the branch's outputs, and of the encoder's."""
        content = f"{self._encoder.file.fingerprint()} {self.file.fingerprint()}"
        return self._encoder.memories() | {self._name: Remembered(self.memory, content)}

    def _compute(self, text: str) -> RowResult:
        below = self._encoder.encode(text)
        started = time.perf_counter()
        values = self._session.run(self._outputs, {MIDDLE: below.outputs[MIDDLE][np.newaxis]})
        spent = (time.perf_counter() - started) * 1e3
        outputs = {name: value[0] for name, value in zip(self._outputs, values, strict=True)}
        return RowResult(outputs, below.tokenize_ms, below.inference_ms + spent)


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

    def peek(self, row: Row) -> RowResult | None:
        """Return what `run` would, if nothing had to be computed for it."""
        result = self._branch.peek(row.text)
        return None if result is None else self._named(result)

    def memories(self) -> dict[str, Remembered]:
        """Return what is kept."""
        return self._branch.memories()

    def _named(self, result: RowResult) -> RowResult:
        found = result.outputs[self._output]
        return result._replace(outputs=dict(zip(self._labels, found, strict=True)))
