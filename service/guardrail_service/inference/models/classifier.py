"""Text classifiers that read text themselves: a probability for each of the manifest's labels."""

from __future__ import annotations

import time
from collections.abc import Sequence

from guardrail_service.errors import PackError
from guardrail_service.inference.models.session import TextModel, shared
from guardrail_service.inference.pack import Pack
from guardrail_service.types import Role, Row, RowResult

OUTPUT = "probabilities"
"""Shape (rows, labels); the graph applied the activation and put the labels in order."""


class ClassifierSession:
    """Runs the rows of `toxicity`, `bias` or, in pairs, `similarity`. Thread-safe.

    Args:
        pack: A pack that serves the role by a model that reads text.
        role: Which role.
    """

    def __init__(self, pack: Pack, role: Role) -> None:
        self._model = TextModel(pack, pack.manifest.roles[role])
        self.file = self._model.file
        self.tokenizer = self._model.tokenizer
        width = self.file.outputs.get(OUTPUT, ())[-1:]
        if self.file.labels is None or width != (len(self.file.labels),):
            found = "no `labels`" if self.file.labels is None else f"{len(self.file.labels)} labels"
            raise PackError(f"{self.file.path}: found {found}; expected one name per output")
        self._labels = self.file.labels

    def run(self, row: Row) -> RowResult:
        """Return each label's probability in [0, 1], whatever outputs the row names.

        Raises:
            RowFailed: If the text is longer than the model reads.
        """
        return self.run_many([row])[0]

    def run_many(self, rows: Sequence[Row]) -> list[RowResult]:
        """Return each row's probabilities from one call.

        Raises:
            RowFailed: If a text is longer than the model reads.
        """
        started = time.perf_counter()
        encoded = [self.tokenizer.encoded(row.text, row.second) for row in rows]
        tokenized = time.perf_counter()
        found = self._model.run(encoded, OUTPUT)
        done = time.perf_counter()
        outputs = [dict(zip(self._labels, values, strict=True)) for values in found]
        return shared(outputs, tokenized - started, done - tokenized)
