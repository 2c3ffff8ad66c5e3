"""A sample cut into sentences and model windows once, and shared by all detectors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from guardrail_service.text.language import Language, identify
from guardrail_service.text.segmentation.sentences import Sentence, merge_short, split_sentences
from guardrail_service.text.segmentation.windows import Window, Windower, windows

if TYPE_CHECKING:
    from guardrail_service.types import Role, Sample

T = TypeVar("T")
Part = Literal["question", "answer", "contexts"]
KEPT_PASSAGES = 1_024
KEPT_CHARS = 4_000
"""Passages repeat across requests, and cutting one costs more than its share of the rest of a
check. A thousand of 180 words take about 10 MB with their sentences and windows."""
LANGUAGE_SAMPLE_CHARS = 400
"""A few sentences tell a passage's language; identification reads every character it is given."""


class SegmentedSample:
    """Lazy views of one sample; every offset is a code point of the submitted text.

    Args:
        sample: The answer with its question and passages.
        windowers: How each model role counts tokens; a role without one cannot be windowed.
        languages: ISO 639-1 codes each role's model can read; a role not listed reads any.
    """

    def __init__(
        self,
        sample: Sample,
        windowers: Mapping[Role, Windower] | None = None,
        languages: Mapping[Role, frozenset[str]] | None = None,
    ) -> None:
        self.sample = sample
        self._windowers = dict(windowers or {})
        self._languages = dict(languages or {})
        self._known: dict[Hashable, Any] = {}

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what `compute` gave for this key the first time.

        For pure functions of the sample that a detector's two halves, or several detectors, need.
        """
        if key not in self._known:
            self._known[key] = compute()
        known: T = self._known[key]
        return known

    @property
    def answer(self) -> str:
        """Return the answer as submitted."""
        return self.sample.answer

    @cached_property
    def raw_answer_sentences(self) -> tuple[Sentence, ...]:
        """Return the answer's sentences, very short ones included as they are."""
        return split_sentences(self.sample.answer)

    @cached_property
    def answer_sentences(self) -> tuple[Sentence, ...]:
        """Return the answer's sentences, very short ones merged into a neighbour."""
        return merge_short(self.raw_answer_sentences, self.sample.answer)

    @cached_property
    def context_sentences(self) -> tuple[tuple[Sentence, ...], ...]:
        """Return each passage's sentences, very short ones merged into a neighbour."""
        return tuple(_passage_sentences(passage.text) for passage in self.sample.contexts)

    def answer_windows(self, role: Role) -> tuple[Window, ...]:
        """Return the answer's sentences as windows the role's model can read whole."""
        return self.windows_of(role, self.answer_sentences)

    def context_windows(self, role: Role) -> tuple[tuple[Window, ...], ...]:
        """Return each passage's sentences as windows the role's model can read whole."""
        return self.once(
            ("context windows", role),
            lambda: tuple(
                _passage_windows(self._windowers[role], passage.text)
                for passage in self.sample.contexts
            ),
        )

    def question_windows(self, role: Role) -> tuple[Window, ...]:
        """Return the question, whole, as windows the role's model can read."""
        text = self.sample.question or ""
        if not text.strip():
            return ()
        return self.windows_of(role, (Sentence(0, len(text), text),))

    def windows_of(self, role: Role, sentences: tuple[Sentence, ...]) -> tuple[Window, ...]:
        """Return any sentences as windows the role's model can read whole."""
        windower = self._windowers[role]
        return self.once(
            ("windows", role, sentences),
            lambda: tuple(w for sentence in sentences for w in windows(sentence, windower)),
        )

    def is_word(self, role: Role, word: str) -> bool:
        """Return whether the role's model has the whole word in its vocabulary."""
        found = self._windowers[role].tokens(word)
        return len(found) == 1 and found[0].known

    def language(self, part: Part) -> Language | None:
        """Return the language of one part, or None where the text does not tell."""
        return self.once(("language", part), lambda: identify(self._part(part)))

    def readable_by(self, role: Role, part: Part) -> bool:
        """Return whether the role's model was trained on the language of one part.

        A text whose language cannot be told (short, numbers only) counts as readable.
        """
        known = self._languages.get(role)
        language = self.language(part)
        return known is None or language is None or language.code in known

    def _part(self, part: Part) -> str:
        match part:
            case "answer":
                return self.sample.answer
            case "question":
                return self.sample.question or ""
            case "contexts":
                return " ".join(p.text[:LANGUAGE_SAMPLE_CHARS] for p in self.sample.contexts)

    def sentence_count(self) -> int:
        """Return how many sentences the answer and all passages have together."""
        return len(self.answer_sentences) + sum(map(len, self.context_sentences))


def _passage_sentences(text: str) -> tuple[Sentence, ...]:
    """Return a passage's sentences, very short ones merged into a neighbour."""
    return _known_sentences(text) if len(text) <= KEPT_CHARS else _cut(text)


def _passage_windows(windower: Windower, text: str) -> tuple[Window, ...]:
    """Return a passage's sentences as windows a model can read whole."""
    found = _known_windows if len(text) <= KEPT_CHARS else _windows
    return found(windower, text)


def _cut(text: str) -> tuple[Sentence, ...]:
    return merge_short(split_sentences(text), text)


def _windows(windower: Windower, text: str) -> tuple[Window, ...]:
    return tuple(w for sentence in _passage_sentences(text) for w in windows(sentence, windower))


_known_sentences = lru_cache(KEPT_PASSAGES)(_cut)
_known_windows = lru_cache(KEPT_PASSAGES)(_windows)
