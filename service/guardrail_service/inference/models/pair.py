"""Cross-encoders: premise and hypothesis in one row, for the roles `grounding` and `nli`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.models.encoder import (
    EVIDENCE_SENTENCES,
    VECTOR,
    SharedEncoder,
    nearest,
)
from guardrail_service.inference.models.session import Encoded, TextModel, shared
from guardrail_service.inference.pack import Pack
from guardrail_service.types import Role, Row, RowResult

PAIR_VERSION = "rag-guardrail-pair/1"
"""Part of the fingerprint: whoever changes how a premise is composed changes scores."""
OUTPUT = "probabilities"
THREE = ("supported", "contradicted", "not_mentioned")
ONE = ("supported",)
"""The two label schemes. A model with one logit, such as HHEM, cannot tell a contradiction from
what is not mentioned: the rest of its probability counts as `not_mentioned`."""
Floats = npt.NDArray[np.float32]


class PairModel:
    """A cross-encoder as a function from premise and hypothesis to three probabilities."""

    def __init__(self, pack: Pack, model: str) -> None:
        self._model = TextModel(pack, model)
        self.file = self._model.file
        self.tokenizer = self._model.tokenizer
        if self.file.labels not in (ONE, THREE):
            raise PackError(
                f"{self.file.path}: labels: found {list(self.file.labels or ())}; expected "
                f"{list(THREE)} or, for a model with one logit, {list(ONE)}"
            )
        self._parts = template_parts(self.file.template)

    def encoded(self, premise: str, hypothesis: str) -> Encoded:
        """Return the row's tokens.

        Raises:
            RowFailed: If the row is longer than the model reads. Nothing is ever cut.
        """
        if self._parts is None:
            return self.tokenizer.encoded(premise, hypothesis)
        before, between, after = self._parts
        return self.tokenizer.encoded(f"{before}{premise}{between}{hypothesis}{after}")

    def room(self, hypothesis: str) -> int:
        """Return how many tokens of premise fit beside a hypothesis."""
        taken = len(self.tokenizer.raw_ids("".join((*(self._parts or ()), hypothesis))))
        special = self.tokenizer.special_tokens(is_pair=self._parts is None)
        return self.file.max_tokens - taken - special

    def probabilities(self, rows: Sequence[Encoded]) -> Floats:
        """Return P(supported), P(contradicted), P(not mentioned); shape (rows, 3)."""
        found = self._model.run(rows, OUTPUT)
        if self.file.labels == THREE:
            return found
        supported = found[:, 0]
        return np.stack([supported, np.zeros_like(supported), 1 - supported], axis=1)


class NliSession:
    """Runs `nli` rows: the premise is the row's text, the hypothesis its second. Thread-safe."""

    def __init__(self, pack: Pack, role: Role = "nli") -> None:
        self._pair = PairModel(pack, pack.manifest.roles[role])
        self.file = self._pair.file
        self.tokenizer = self._pair.tokenizer

    def run(self, row: Row) -> RowResult:
        """Return `probabilities`, whatever outputs the row names.

        Raises:
            RowFailed: If there is no hypothesis, or the row is longer than the model reads.
        """
        return self.run_many([row])[0]

    def run_many(self, rows: Sequence[Row]) -> list[RowResult]:
        """Return each row's `probabilities` from one call.

        Raises:
            RowFailed: As `run`, for any of the rows.
        """
        started = time.perf_counter()
        encoded = [self._encoded(row) for row in rows]
        tokenized = time.perf_counter()
        found = self._pair.probabilities(encoded)
        done = time.perf_counter()
        outputs = [{OUTPUT: values} for values in found]
        return shared(outputs, tokenized - started, done - tokenized)

    def _encoded(self, row: Row) -> Encoded:
        if row.second is None:
            raise RowFailed("an nli row needs a premise and a hypothesis")
        return self._pair.encoded(row.text, row.second)


class PairGroundingSession:
    """Runs `grounding` rows: the claim is the hypothesis, its evidence the premise. Thread-safe.

    Gives what `HeadSession` gives, so the detector does not know which of them runs.

    Args:
        pack: A pack that serves `grounding` by a model that reads text.
        encoder: Runs `embedding` rows, by which the evidence is chosen.
    """

    def __init__(self, pack: Pack, encoder: SharedEncoder) -> None:
        self._pair = PairModel(pack, pack.manifest.roles["grounding"])
        self.file = self._pair.file
        self.tokenizer = self._pair.tokenizer
        self._encoder = encoder

    def run(self, row: Row) -> RowResult:
        """Return what the model says about `row.text` given `row.evidence`.

        Returns:
            `probabilities` (3), `places` of the evidence that was read, nearest first, and their
            `cosines` with the claim.

        Raises:
            RowFailed: If claim or evidence is blank, or claim and nearest evidence together are
                longer than the model reads.
        """
        return self.run_many([row])[0]

    def run_many(self, rows: Sequence[Row]) -> list[RowResult]:
        """Return what `run` would of each row; the model is called once.

        Raises:
            RowFailed: As `run`, for any of the rows.
        """
        started = time.perf_counter()
        read = [self._read(row) for row in rows]
        prepared = time.perf_counter()
        found = self._pair.probabilities([one.encoded for one in read])
        running_ms = (time.perf_counter() - prepared) * 1e3 / len(rows)
        encoding_ms = sum(one.encoding_ms for one in read)
        prepare_ms = max(0.0, (prepared - started) * 1e3 - encoding_ms) / len(rows)
        results = []
        for row, one, probabilities in zip(rows, read, found, strict=True):
            outputs = {
                "probabilities": probabilities,
                "places": np.array(one.places),
                "cosines": one.cosines,
            }
            asked = {name: outputs[name] for name in row.outputs}
            results.append(RowResult(asked, prepare_ms, one.encoding_ms + running_ms))
        return results

    def _read(self, row: Row) -> _Read:
        """Return what the model reads of a row's evidence."""
        if not row.evidence or not row.text.strip():
            raise RowFailed("a grounding row needs a claim and at least one text of evidence")
        claim = self._encoder.summary(row.text)
        texts = self._encoder.stack(row.evidence)
        # Pair by pair, not by matrix product: a pair's cosine must not depend on its neighbours.
        cosines = np.einsum("ij,j->i", texts.vectors, claim.outputs[VECTOR], optimize=False)
        places, encoded = self._composed(row, cosines)
        return _Read(places, cosines[places], encoded, claim.inference_ms + texts.inference_ms)

    def _composed(self, row: Row, cosines: npt.NDArray[Any]) -> tuple[list[int], Encoded]:
        """Return which texts are read, and the row: the nearest that fit, in the passages' order.

        Their tokens are counted one by one; together they may have a few more, so the farthest is
        left out until the row fits.
        """
        lengths = [len(self.tokenizer.raw_ids(text)) for text in row.evidence]
        places = nearest(cosines, lengths, EVIDENCE_SENTENCES, self._pair.room(row.text))
        if not places:
            raise RowFailed("no evidence has a token")
        while True:
            premise = " ".join(row.evidence[place] for place in sorted(places))
            try:
                return places, self._pair.encoded(premise, row.text)
            except RowFailed:
                if len(places) == 1:
                    raise
                places = places[:-1]


class _Read(NamedTuple):
    """The evidence to read, its cosines with the claim, the row, and the time of encoding."""

    places: list[int]
    cosines: npt.NDArray[Any]
    encoded: Encoded
    encoding_ms: float


def template_parts(template: str | None) -> tuple[str, str, str] | None:
    """Return the text before the premise, between the two and after the hypothesis.

    Raises:
        PackError: If the template does not name each of them once, premise first.
    """
    if template is None:
        return None
    before, _, rest = template.partition("{premise}")
    between, _, after = rest.partition("{hypothesis}")
    if f"{before}{{premise}}{between}{{hypothesis}}{after}" != template or any(
        "{premise}" in part or "{hypothesis}" in part for part in (before, between, after)
    ):
        raise PackError("template: expected {premise} and then {hypothesis}, each once")
    return before, between, after
