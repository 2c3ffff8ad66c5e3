"""One exported graph that reads tokens, for one row or for rows padded to one length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from guardrail_service.inference.models.feeds import feeds
from guardrail_service.inference.models.session import open_session
from guardrail_service.inference.pack import ModelFile, Pack
from guardrail_service.inference.tokenizer import Encoded, Tokenizer


class TextModel:
    """A graph with its tokenizer. Thread-safe.

    Args:
        pack: Where the model lies.
        model: Its name in the manifest.
    """

    def __init__(self, pack: Pack, model: str) -> None:
        self.file: ModelFile = pack.manifest.models[model]
        self.tokenizer = Tokenizer(pack.path(self.file.tokenizer), self.file.max_tokens)
        self._session = open_session(str(pack.path(self.file)), self.file)

    def run(self, rows: Sequence[Encoded], output: str) -> npt.NDArray[np.float32]:
        """Return one output of the graph for rows of tokens; shape (rows, ...).

        One row runs as it is. Serving passes more only if the manifest allows it; measurements
        always do, to see whether a row moves beside others.
        """
        found: npt.NDArray[np.float32] = self._session.run([output], feeds(rows, self.file))[0]
        return found
