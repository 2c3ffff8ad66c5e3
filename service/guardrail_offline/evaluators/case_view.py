"""One case as evaluators read it: cut into sentences and claims once, asked of models once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.pack_models import PackModels, sentences_of
from guardrail_offline.evaluators.shared.answer_match import match
from guardrail_offline.evaluators.shared.error_answers import is_error
from guardrail_offline.evaluators.shared.string_similarity import edit_similarity
from guardrail_service.detectors.hallucination.reading import claim_texts, claims_of
from guardrail_service.detectors.no_answer.detector import abstains
from guardrail_service.errors import ServiceError
from guardrail_service.text.cached import cached_property
from guardrail_service.text.sample import SegmentedSample, unverifiable
from guardrail_service.types import NoValue, Passage, Role, Sample, State

T = TypeVar("T")
NO_ANSWER, ERROR_ANSWER, WRONG_ABSTENTION = "no_answer", "error_answer", "wrong_abstention"
UNANSWERED = frozenset({NO_ANSWER, ERROR_ANSWER, WRONG_ABSTENTION})
"""Reasons for which a case has no value because its model did not answer."""


class Unavailable(ServiceError):
    """A metric has no value for a case. Carries the state and the reason; never text."""

    code = "unavailable"

    def __init__(self, state: State, reason: str) -> None:
        super().__init__(f"{state.value}: {reason}")
        self.missing = NoValue(state, reason)


class Claim(NamedTuple):
    """A part of a text that claims something.

    Attributes:
        start: Where it begins in its text.
        end: Where it ends.
        text: What a model reads: a short lone claim stands behind its question.
        own: The part itself.
    """

    start: int
    end: int
    text: str
    own: str


class CaseView:
    """Lazy views of one case, shared by all evaluators of a run.

    Args:
        case: The case.
        models: What can be asked.
        group: All cases of the question: reruns, other models, the turns of a conversation.
    """

    def __init__(self, case: Case, models: PackModels, group: Sequence[Case] = ()) -> None:
        self.case = case
        self.models = models
        self.group = tuple(group)
        self._known: dict[Hashable, Any] = {}

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what `compute` gave for this key the first time, if it did not raise."""
        if key not in self._known:
            self._known[key] = compute()
        known: T = self._known[key]
        return known

    @property
    def question(self) -> str:
        """Return the question; unavailable if it is blank."""
        return _needed(self.case.question)

    @property
    def answer(self) -> str:
        """Return the answer; unavailable if there is none, or an error stands in its place."""
        if self.unanswered == ERROR_ANSWER:
            raise Unavailable(State.UNVERIFIED, ERROR_ANSWER)
        return self.shown

    @property
    def shown(self) -> str:
        """Return what a reader saw, an error included; unavailable if that was nothing."""
        if self.unanswered == NO_ANSWER:
            raise Unavailable(State.UNVERIFIED, NO_ANSWER)
        return _needed(self.case.answer)

    @cached_property
    def unanswered(self) -> str | None:
        """Return why there is no answer, or None: a variant may not have been asked yet."""
        answer = self.case.answer
        if answer is None or not answer.strip():
            asked = answer is not None or self.case.source is None
            return NO_ANSWER if asked else None
        return ERROR_ANSWER if is_error(answer, self.case.expected) else None

    @cached_property
    def is_answerable(self) -> bool | None:
        """Return whether there is an answer to the question; None where nothing says so.

        The lab's own word comes first. An expected answer makes a question answerable, unless it is
        an abstention.
        """
        if self.case.answerable is not None or not (self.case.expected or "").strip():
            return self.case.answerable
        return not abstains(self.text(self.expected, self.case.question))

    @property
    def expected(self) -> str:
        """Return the expected answer; unavailable if there is none."""
        return _needed(self.case.expected)

    @property
    def right_answers(self) -> tuple[str, ...]:
        """Return the expected answer and further right ones; unavailable if there is none."""
        known = (self.case.expected, *self.case.references)
        found = tuple(text for text in known if text is not None and text.strip())
        return found or (self.expected,)

    @cached_property
    def closest(self) -> str:
        """Return the right answer that the answer is one with, else the one it is most like."""
        known = self.right_answers
        if len(known) == 1:
            return known[0]
        for expected in known:
            found = match(expected, self.answer, self.case.question)
            if found is not None and found.same:
                return expected
        return max(known, key=lambda expected: edit_similarity(expected, self.answer))

    @cached_property
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
            reason = WRONG_ABSTENTION if self.is_answerable else "abstention"
            raise Unavailable(State.NOT_APPLICABLE, reason)

    def segmented(self, sample: Sample) -> SegmentedSample:
        """Return any sample cut as this pack's models read it."""
        return self.models.segmented(sample)

    def text(self, text: str, question: str | None = None) -> SegmentedSample:
        """Return a lone text, cut; each text is cut once for all cases that have it."""
        return self.models.cut(text, question)

    def of_question(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what `compute` makes of question and passages: once for all answers to them."""
        read = (self.case.question, self.contexts)
        return self.models.once((key, read), compute)

    def pieces(self, text: str) -> tuple[str, ...]:
        """Return a text's sentences as pieces the embedding model reads whole.

        Raises:
            Unavailable: If the model does not read the language.
        """
        return self.once(("pieces", text), lambda: self._pieces(text))

    def _pieces(self, text: str) -> tuple[str, ...]:
        cut = self.text(text, self.case.question)
        self._readable(cut, "embedding")
        windows = cut.answer_windows("embedding")
        if not windows:
            raise Unavailable(State.UNVERIFIED, "missing_input")
        return tuple(window.text for window in windows)

    def claims(self, text: str, question: str | None = None) -> tuple[Claim, ...]:
        """Return what a text claims, as the detector of hallucination reads an answer.

        Raises:
            Unavailable: If it claims nothing.
        """
        if found := self._claims(text, question):
            return found
        raise Unavailable(State.NOT_APPLICABLE, "no_claim")

    def expected_claims(self, expected: str | None = None) -> tuple[Claim, ...]:
        """Return what an expected answer claims: each sentence, however short, by itself.

        Of an answer short sentences are read with a neighbour, so that an invented one does not
        hide; of a reference none is invented.
        """
        text = self.expected if expected is None else expected
        return self.once(("expected claims", text), lambda: self._expected_claims(text))

    def _expected_claims(self, text: str) -> tuple[Claim, ...]:
        return tuple(part for claim in self.claims_or_whole(text) for part in _sentences(claim))

    def claims_or_whole(self, text: str) -> tuple[Claim, ...]:
        """Return what a text claims with the case's question, or all of it as one claim.

        "Yes" or "565 °C" answers a question, whether or not it is a sentence.
        """
        question = self.case.question
        if found := self._claims(text, question):
            return found
        cut = self.text(text, question)
        windows = cut.windows_of("embedding", cut.answer_sentences)
        joined = f"{question} {text}"
        if len(windows) == 1 and question.strip() and self.models.fits(joined):
            return (Claim(0, len(text), joined, text),)
        return tuple(Claim(w.start, w.end, w.text, w.text) for w in windows)

    def _claims(self, text: str, question: str | None) -> tuple[Claim, ...]:
        return self.once(("claims", text, question), lambda: self._cut_claims(text, question))

    def _cut_claims(self, text: str, question: str | None) -> tuple[Claim, ...]:
        cut = self.text(text, question)
        claimed = claims_of(cut)
        windows = cut.windows_of("embedding", claimed.judged)
        texts = claim_texts(cut, claimed, windows)
        return tuple(
            Claim(w.start, w.end, read, w.text) for w, read in zip(windows, texts, strict=True)
        )

    def refuse_unreadable(self, text: str) -> None:
        """Raise if the model that compares meanings does not read a text's language."""
        self._readable(self.text(text, self.case.question), "embedding")

    def evidence(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return the distinct sentences of some texts, in order, as the model reads them."""
        return self.once(("evidence", *texts), lambda: self._evidence(texts))

    def _evidence(self, texts: Sequence[str]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for text in texts:
            cut = self.text(text, self.case.question)
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


def _sentences(claim: Claim) -> Iterator[Claim]:
    """Yield the sentences of a claim, or the claim itself where one has hardly a word."""
    parts = sentences_of(claim.own)
    if len(parts) < 2 or min(len(part.text.split()) for part in parts) < _LEAST_WORDS:
        yield claim
        return
    for part in parts:
        start = claim.start + part.start
        yield Claim(start, start + len(part.text), part.text, part.text)


_LEAST_WORDS = 3


def _needed(text: str | None) -> str:
    if text is None or not text.strip():
        raise Unavailable(State.UNVERIFIED, "missing_input")
    return text
