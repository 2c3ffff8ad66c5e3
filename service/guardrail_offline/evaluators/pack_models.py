"""The pack's models as the evaluators ask them: embed, support, log probabilities.

Loaded once per process. Rows are those the detectors send, so a score is the same online and here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from guardrail_offline.hosts.log_probabilities import LanguageModelHost
from guardrail_offline.hosts.text_vectors import TextVectors
from guardrail_offline.judge.results import Asks
from guardrail_service.detectors.groundedness import vectors
from guardrail_service.detectors.hallucination.detector import OUTPUTS
from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.models.encoder import TOKENS, VECTOR
from guardrail_service.inference.queue.batch import Batches
from guardrail_service.text.cached import cached_property
from guardrail_service.text.sample import SegmentedSample, Windower
from guardrail_service.text.segmentation.sentences import Sentence, split_sentences
from guardrail_service.types import Role, Row, RowOutput, RowResult, Sample

T = TypeVar("T")
Array = npt.NDArray[np.float64]
MEMORY_ROWS = 4096
"""Rows kept per process: several evaluators ask the same of one question's cases."""
MEMORY_TEXTS = 512
"""Texts kept as they were cut: all answers to a question are read against the same passages."""
MEMORY_VALUES = 2048
"""Values kept that evaluators work out of texts and outputs: about 10 MB."""
SIMILARITY = "similarity"
"""A role, and the one label of its model: a cross-encoder on two texts."""
_WHOLE = (VECTOR, TOKENS)
_NLI_NAMES = {"supported": "entail", "contradicted": "contradict", "not_mentioned": "neutral"}


class Runs(Protocol):
    """Runs the rows of one role: a session of the pack, or a test's stand-in."""

    @property
    def file(self) -> Any:
        """Return the manifest's entry of the model."""
        ...

    @property
    def tokenizer(self) -> Any:
        """Return how the model counts tokens."""
        ...

    def run(self, row: Row) -> Any:
        """Return a row result."""
        ...


class Support(NamedTuple):
    """The probabilities of one claim given some texts; the three add up to about 1."""

    supported: float
    contradicted: float
    not_mentioned: float
    evidence: int
    """Index of the text that speaks to the claim most."""


class PackModels:
    """The sessions of a pack by role.

    Args:
        sessions: What runs each role's rows.
        fingerprints: What scores depend on, by role, and `segmenter` and `evidence`.
        judge: Answers what evaluators with that backend ask; None for nobody.
    """

    def __init__(
        self,
        sessions: Mapping[Role, Runs],
        fingerprints: Mapping[str, str] | None = None,
        judge: Asks | None = None,
    ) -> None:
        self.judge = judge
        self.language_model: LanguageModelHost | None = None
        self.text_vectors: TextVectors | None = None
        self._sessions = dict(sessions)
        self.fingerprints = dict(fingerprints or {})
        self._memory: OrderedDict[Row, RowOutput] = OrderedDict()
        self._texts: OrderedDict[tuple[str, str | None], SegmentedSample] = OrderedDict()
        self._values: OrderedDict[Hashable, Any] = OrderedDict()

    @property
    def roles(self) -> frozenset[Role]:
        """Return the roles the pack serves."""
        served = frozenset(self._sessions)
        return served | {"causal_lm"} if self.language_model is not None else served

    @cached_property
    def windowers(self) -> dict[Role, Windower]:
        """Return how each role's model counts tokens."""
        return {role: session.tokenizer for role, session in self._sessions.items()}

    @cached_property
    def languages(self) -> dict[Role, frozenset[str]]:
        """Return the languages each role's model reads, where it says."""
        listed = {role: session.file.languages for role, session in self._sessions.items()}
        return {role: frozenset(codes) for role, codes in listed.items() if codes is not None}

    @cached_property
    def _sharing(self) -> dict[Role, Callable[[Sequence[Row]], list[RowResult]]]:
        """Return what runs several rows, for the roles whose rows keep their bits then."""
        return {
            role: session.run_many
            for role, session in self._sessions.items()
            if isinstance(session, Batches) and session.file.one_length
        }

    @property
    def judges_support(self) -> bool:
        """Return whether the pack can say if a text supports a claim."""
        return bool({"nli", "grounding"} & self.roles)

    def fits(self, text: str) -> bool:
        """Return whether the embedding model reads a text whole."""
        windower = self.windowers["embedding"]
        return self.once(("fits", text), lambda: len(windower.tokens(text)) <= windower.max_tokens)

    def segmented(self, sample: Sample) -> SegmentedSample:
        """Return a sample cut as the pack's models read it."""
        return _KnownSample(sample, self.windowers, self.languages)

    def cut(self, text: str, question: str | None = None) -> SegmentedSample:
        """Return a lone text as the pack's models read it; cut once while it is remembered."""
        key = (text, question or None)
        known = self._texts.get(key)
        if known is None:
            known = self.segmented(Sample(text, question))
            self._texts[key] = known
            if len(self._texts) > MEMORY_TEXTS:
                self._texts.popitem(last=False)
        else:
            self._texts.move_to_end(key)
        return known

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what `compute` gave for this key, worked out once while it is remembered.

        For pure functions of texts that several evaluators, or several answers to one question,
        need. An exception is not remembered.
        """
        if key in self._values:
            self._values.move_to_end(key)
        else:
            self._values[key] = compute()
            if len(self._values) > MEMORY_VALUES:
                self._values.popitem(last=False)
        known: T = self._values[key]
        return known

    def run(self, rows: Iterable[Row]) -> list[RowOutput]:
        """Return each row's outputs; equal rows run once while they are remembered.

        Rows that keep their bits beside others share calls.
        """
        asked = list(rows)
        together: dict[tuple[Role, tuple[str, ...]], dict[Row, None]] = {}
        for row in asked:
            if row.role in self._sharing and row not in self._memory:
                together.setdefault((row.role, row.outputs), {})[row] = None
        found: dict[Row, RowOutput] = {}
        for alike in together.values():
            found |= self._run_many(list(alike))
        return [found[row] if row in found else self._run(row) for row in asked]

    def _run_many(self, rows: Sequence[Row]) -> dict[Row, RowOutput]:
        """Return what rows give, or nothing if one fails: then each runs by itself."""
        found: dict[Row, RowOutput] = {}
        with suppress(RowFailed):
            results = self._sharing[rows[0].role](rows)
            found = {row: done.outputs for row, done in zip(rows, results, strict=True)}
        for row, outputs in found.items():
            self._remember(row, outputs)
        return found

    def embed(self, texts: Sequence[str]) -> Array:
        """Return unit-length sentence embeddings, shape (n, dim), read-only.

        Raises:
            NotScorable: If there is no text.
            RowFailed: If a text is longer than the model reads.
        """
        return self.once(
            ("vectors", *texts),
            lambda: _fixed(vectors(self.run(Row("embedding", text) for text in texts))),
        )

    def embed_ahead(self, texts: Sequence[str]) -> None:
        """Embed texts together that are asked for one by one; a pack runs each by itself."""

    def embed_whole(self, texts: Sequence[str]) -> Array:
        """Return what `embed` does, from one run with the token embeddings of the same texts."""
        outputs = self._sessions["embedding"].file.outputs
        if TOKENS not in outputs:
            return self.embed(texts)
        return vectors(self.run(Row("embedding", text, outputs=_WHOLE) for text in texts))

    def token_vectors(self, text: str) -> Array:
        """Return unit-length token embeddings without the special tokens, shape (n, dim)."""
        return self.once(("token vectors", text), lambda: _fixed(self._token_vectors(text)))

    def _token_vectors(self, text: str) -> Array:
        row = Row("embedding", text, outputs=_WHOLE)
        tokens = np.asarray(self._run(row)[TOKENS], dtype=np.float64)[1:-1]
        lengths = np.linalg.norm(tokens, axis=1, keepdims=True)
        unit: Array = tokens / np.where(lengths > 0, lengths, 1.0)
        return unit

    def support(self, claim: str, evidence: tuple[str, ...]) -> Support:
        """Return whether some texts support a claim.

        The role `nli` reads the claim against each text and the best text counts; the role
        `grounding` reads it against the nearest texts together.
        """
        return self.once(("support", claim, evidence), lambda: self._support(claim, evidence))

    def _support(self, claim: str, evidence: tuple[str, ...]) -> Support:
        if "nli" in self._sessions:
            return self._entailment(claim, evidence)
        (out,) = self.run([Row("grounding", claim, outputs=OUTPUTS, evidence=evidence)])
        supported, contradicted, not_mentioned = (float(p) for p in out["probabilities"])
        return Support(supported, contradicted, not_mentioned, int(out["places"][0]))

    @property
    def reads_pairs(self) -> bool:
        """Return whether the pack has a cross-encoder that says how alike two texts are."""
        return SIMILARITY in self.roles

    def similarity(self, left: str, right: str) -> float:
        """Return how alike the role `similarity` finds two whole texts, in [0, 1].

        Raises:
            RowFailed: If they are together longer than the model reads.
        """
        return float(self._run(Row(SIMILARITY, left, right, (SIMILARITY,)))[SIMILARITY])

    def log_probabilities(self, prompt: str, text: str) -> npt.NDArray[np.floating[Any]]:
        """Return the log probability of every token of a text that follows a prompt.

        Raises:
            HostError: If a served model is asked and does not say.
        """
        if self.language_model is not None:
            return self.language_model.log_probabilities(prompt, text)
        session: Any = self._sessions["causal_lm"]
        found: npt.NDArray[np.float32] = session.log_probabilities(prompt, text)
        return found

    def _entailment(self, claim: str, evidence: tuple[str, ...]) -> Support:
        order = self._nli_order()
        rows = [Row("nli", text, claim, ("probabilities",)) for text in evidence]
        table = np.stack([out["probabilities"] for out in self.run(rows)])[:, order]
        best = int(table[:, 0].argmax())
        loudest = int(table[:, :2].max(axis=1).argmax())
        place = best if table[best, 0] >= table[loudest, 1] else loudest
        entailed, contradicted, neutral = (float(p) for p in table[place])
        return Support(entailed, contradicted, neutral, place)

    def _nli_order(self) -> list[int]:
        labels = [label.lower() for label in self._sessions["nli"].file.labels or ()]
        places = [
            [i for i, label in enumerate(labels) if label.startswith((ours, theirs))]
            for ours, theirs in _NLI_NAMES.items()
        ]
        if any(len(found) != 1 for found in places):
            raise PackError("role nli: expected labels entailment, contradiction and neutral")
        return [found[0] for found in places]

    def _run(self, row: Row) -> RowOutput:
        known = self._memory.get(row)
        if known is not None:
            self._memory.move_to_end(row)
            return known
        outputs: RowOutput = self._sessions[row.role].run(row).outputs
        self._remember(row, outputs)
        return outputs

    def _remember(self, row: Row, outputs: RowOutput) -> None:
        self._memory[row] = outputs
        if len(self._memory) > MEMORY_ROWS:
            self._memory.popitem(last=False)


class ModelsWithVectors(PackModels):
    """The pack's models with the vectors of a served one in the place of its own.

    Texts are cut into sentences as before. A text that is compared whole goes to the host whole, in
    any language, and the host refuses one that is too long for it.

    Args:
        models: Of the pack.
        host: Who embeds.
    """

    def __init__(self, models: PackModels, host: TextVectors) -> None:
        super().__init__(models._sessions, models.fingerprints, models.judge)
        self.language_model = models.language_model
        self._host = host

    @cached_property
    def languages(self) -> dict[Role, frozenset[str]]:
        """Return the languages of the pack's other roles."""
        pack = {role: session.file.languages for role, session in self._sessions.items()}
        return {r: frozenset(c) for r, c in pack.items() if c is not None and r != "embedding"}

    @property
    def reads_pairs(self) -> bool:
        """Return False: the host's vectors are compared, and no cross-encoder is asked."""
        return False

    def fits(self, text: str) -> bool:
        """Return True: the host says by itself if a text is too long."""
        return True

    def embed(self, texts: Sequence[str]) -> Array:
        """Return the host's vectors, as `TextVectors.embed` does and with its errors."""
        return self._host.embed(texts)

    def embed_ahead(self, texts: Sequence[str]) -> None:
        """Ask for texts in one call; they are remembered."""
        self._host.embed(texts)

    def embed_whole(self, texts: Sequence[str]) -> Array:
        """Return what `embed` does."""
        return self.embed(texts)


@lru_cache(MEMORY_TEXTS)
def sentences_of(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of a text, very short ones included as they are."""
    return split_sentences(text)


class _KnownSample(SegmentedSample):
    """A sample whose answer may have been cut before: with a question, alone or with passages."""

    @cached_property
    def raw_answer_sentences(self) -> tuple[Sentence, ...]:
        """Return the answer's sentences, very short ones included as they are."""
        return sentences_of(self.sample.answer)


def _fixed(values: Array) -> Array:
    values.flags.writeable = False
    return values


def load_models(pack: str) -> PackModels:
    """Return the models of a shipped pack or of a folder with a manifest, and of loaded plug-ins.

    Raises:
        PackError: If a file of the pack is missing or changed.
    """
    from guardrail_service.inference.session_kinds import open_sessions
    from guardrail_service.server.runtime import pack_at_hand, serving_for

    loaded = pack_at_hand(pack)
    return PackModels(open_sessions(loaded), serving_for(loaded).fingerprints)
