"""One case as evaluators read it: cut into sentences and claims once, asked of models once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_service.detectors.hallucination.reading import claim_texts, claims_of
from guardrail_service.detectors.no_answer.detector import abstains
from guardrail_service.errors import ServiceError
from guardrail_service.text.sample import SegmentedSample, unverifiable
from guardrail_service.types import NoValue, Passage, Role, Sample, State


class Unavailable(ServiceError):
    """A metric has no value for a case. Carries the state and the reason; never text."""

    code = "unavailable"

    def __init__(self, state: State, reason: str) -> None:
        super().__init__(f"{state.value}: {reason}")
        self.missing = NoValue(state, reason)


class Claim(NamedTuple):
    """A part of a text that claims something, and how it is read by a model."""

    start: int
    end: int
    text: str


class CaseView:
    """Lazy views of one case, shared by all evaluators of a run.

    Args:
        case: The case.
        models: What can be asked.
    """

    def __init__(self, case: Case, models: PackModels) -> None:
        self.case = case
        self.models = models

    @property
    def question(self) -> str:
        """Return the question; unavailable if it is blank."""
        return _needed(self.case.question)

    @property
    def answer(self) -> str:
        """Return the answer; unavailable if there is none."""
        return _needed(self.case.answer)

    @property
    def expected(self) -> str:
        """Return the expected answer; unavailable if there is none."""
        return _needed(self.case.expected)

    @property
    def contexts(self) -> tuple[Passage, ...]:
        """Return the passages that are not blank; unavailable if there is none."""
        found = tuple(p for p in self.case.contexts or () if p.text.strip())
        if not found:
            raise Unavailable(State.UNVERIFIED, "missing_input")
        return found

    @cached_property
    def sample(self) -> SegmentedSample:
        """Return the case as detectors read it."""
        return self.segmented(self.case.sample())

    @cached_property
    def abstained(self) -> bool:
        """Return whether the whole answer says that it cannot answer."""
        return abstains(self.sample)

    def refuse_abstention(self) -> None:
        """Raise if the answer claims nothing because it abstains."""
        if self.case.answer and self.abstained:
            raise Unavailable(State.NOT_APPLICABLE, "abstention")

    def segmented(self, sample: Sample) -> SegmentedSample:
        """Return any sample cut as this pack's models read it."""
        return SegmentedSample(sample, self.models.windowers, self.models.languages)

    def text(self, text: str, question: str | None = None) -> SegmentedSample:
        """Return a lone text, cut; each text is cut once per case."""
        return self.sample.once(
            ("text", text, question), lambda: self.segmented(Sample(text, question))
        )

    def pieces(self, text: str) -> tuple[str, ...]:
        """Return a text's sentences as pieces the embedding model reads whole.

        Raises:
            Unavailable: If the model does not read the language.
        """
        cut = self.text(text)
        self._readable(cut, "embedding")
        windows = cut.answer_windows("embedding")
        if not windows:
            raise Unavailable(State.UNVERIFIED, "missing_input")
        return tuple(window.text for window in windows)

    def claims(self, text: str, question: str | None = None) -> tuple[Claim, ...]:
        """Return what a text claims, as the detector of hallucination reads an answer.

        Raises:
            Unavailable: If it claims nothing, or the model does not read the language.
        """
        cut = self.text(text, question)
        self._readable(cut, "embedding")
        windows = cut.windows_of("embedding", claims_of(cut).judged)
        if not windows:
            raise Unavailable(State.NOT_APPLICABLE, "no_claim")
        texts = claim_texts(cut)
        return tuple(Claim(w.start, w.end, t) for w, t in zip(windows, texts, strict=True))

    def evidence(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return the distinct sentences of some texts, in order, as the model reads them."""
        found: dict[str, None] = {}
        for text in texts:
            cut = self.text(text)
            self._readable(cut, "embedding")
            windows = cut.windows_of("embedding", cut.answer_sentences)
            found.update(dict.fromkeys(window.text for window in windows))
        if not found:
            raise Unavailable(State.UNVERIFIED, "missing_input")
        return tuple(found)

    def _readable(self, cut: SegmentedSample, role: Role) -> None:
        reason = unverifiable(cut, role, "answer")
        if reason is not None:
            raise Unavailable(State.UNVERIFIED, reason)


def _needed(text: str | None) -> str:
    if text is None or not text.strip():
        raise Unavailable(State.UNVERIFIED, "missing_input")
    return text
