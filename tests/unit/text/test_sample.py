"""A sample's lazy views: computed once, passages shared with the samples before."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from guardrail_service.text.sample import KEPT_CHARS, SegmentedSample, TokenSpan
from guardrail_service.types import Passage, Sample

SENTENCE = "Guests may stay at the house for up to two weeks each year. "


class Words:
    """Reads one word as one token, and counts its calls."""

    max_tokens = 100

    def __init__(self) -> None:
        self.calls = 0

    def tokens(self, text: str) -> Sequence[TokenSpan]:
        """Return one token for the whole text."""
        self.calls += 1
        return [TokenSpan(0, len(text), known=True)]


def segmented(text: str, words: Words) -> SegmentedSample:
    """Return a sample with one passage."""
    return SegmentedSample(Sample("Yes.", contexts=(Passage(text),)), {"embedding": words})


def test_a_passage_met_before_is_not_cut_again() -> None:
    """Requests repeat their passages, and answers sentences: each is cut once."""
    words = Words()
    first, again = (segmented(SENTENCE * 3, words) for _ in range(2))
    assert again.context_sentences[0] is first.context_sentences[0]
    assert again.context_windows("embedding")[0] is not None
    calls = words.calls
    assert first.context_windows("embedding") == again.context_windows("embedding")
    assert words.calls == calls == 1


def test_another_model_cuts_its_own_windows() -> None:
    """What is kept belongs to one tokenizer."""
    one, other = Words(), Words()
    segmented(SENTENCE * 2, one).context_windows("embedding")
    segmented(SENTENCE * 2, other).context_windows("embedding")
    assert (one.calls, other.calls) == (1, 1)


def test_very_long_passages_are_not_kept() -> None:
    """What is kept is bounded in number and in length."""
    text = SENTENCE * (KEPT_CHARS // len(SENTENCE) + 1)
    words = Words()
    first, again = (segmented(text, words) for _ in range(2))
    assert again.context_sentences[0] is not first.context_sentences[0]
    assert again.context_windows("embedding") == first.context_windows("embedding")


@pytest.mark.parametrize("part", ["answer", "contexts"])
def test_a_language_is_looked_up_once_per_sample(part: str) -> None:
    """Several detectors ask."""
    sample = segmented(SENTENCE, Words())
    assert sample.language(part) is sample.language(part)  # type: ignore[arg-type]
