"""Causal language models: how likely each token of a text is, for the offline evaluators."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.models.session import Encoded, TextModel, shared
from guardrail_service.inference.pack import Pack
from guardrail_service.types import Role, Row, RowResult

OUTPUT = "log_probabilities"
"""Shape (rows, tokens - 1): natural logarithm of each token's probability given those before."""


class CausalLmSession:
    """Runs `causal_lm` rows: the prompt is the row's text, what is judged its second. Thread-safe.

    Args:
        pack: A pack that serves the role.
        role: Which role.
    """

    def __init__(self, pack: Pack, role: Role = "causal_lm") -> None:
        self._model = TextModel(pack, pack.manifest.roles[role])
        self.file = self._model.file
        self.tokenizer = self._model.tokenizer
        start = self.tokenizer.token_id(self.file.start_token or "")
        if start is None:
            raise PackError(
                f"{self.file.path}: start_token: found {self.file.start_token!r}; expected a token "
                "of the vocabulary, or the first token would have no probability"
            )
        self._start = start

    def log_probabilities(self, prompt: str, text: str) -> npt.NDArray[np.float32]:
        """Return the natural logarithm of the probability of each token of `text`.

        Prompt and text become tokens apart, so a text has the same tokens after every prompt.

        Args:
            prompt: What comes before; may be empty.
            text: What is judged.

        Returns:
            Shape (tokens of the text,), each at most 0.

        Raises:
            RowFailed: If the text has no token, or both together are longer than the model reads.
        """
        (found,) = self._judged([self.encoded(prompt, text)])
        return found

    def encoded(self, prompt: str, text: str) -> tuple[Encoded, int]:
        """Return the row's tokens, and how many of them, at its end, are the text's."""
        judged = self.tokenizer.raw_ids(text)
        ids = [self._start, *self.tokenizer.raw_ids(prompt), *judged]
        if not judged:
            raise RowFailed("the text has no token")
        if len(ids) > self.file.max_tokens:
            raise RowFailed(
                f"a row has {len(ids)} tokens; the model reads at most {self.file.max_tokens}"
            )
        return Encoded(ids, [0] * len(ids)), len(judged)

    def run(self, row: Row) -> RowResult:
        """Return `log_probabilities` of `row.second` given `row.text`.

        Raises:
            RowFailed: As `log_probabilities`.
        """
        return self.run_many([row])[0]

    def run_many(self, rows: Sequence[Row]) -> list[RowResult]:
        """Return each row's `log_probabilities` from one call.

        Raises:
            RowFailed: As `log_probabilities`, for any of the rows.
        """
        started = time.perf_counter()
        encoded = [self.encoded(row.text, row.second or "") for row in rows]
        tokenized = time.perf_counter()
        found = self._judged(encoded)
        done = time.perf_counter()
        outputs = [{OUTPUT: values} for values in found]
        return shared(outputs, tokenized - started, done - tokenized)

    def _judged(self, rows: Sequence[tuple[Encoded, int]]) -> list[npt.NDArray[np.float32]]:
        """Return the last values of each row, as many as tokens are judged."""
        values = self._model.run([row for row, _ in rows], OUTPUT)
        is_left = self.file.padding is not None and self.file.padding.side == "left"
        ends = [values.shape[1] if is_left else len(row.ids) - 1 for row, _ in rows]
        return [
            line[end - judged : end]
            for line, end, (_, judged) in zip(values, ends, rows, strict=True)
        ]
