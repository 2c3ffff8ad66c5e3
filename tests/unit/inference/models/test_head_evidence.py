"""Which sentences a claim is read against."""

import numpy as np

from guardrail_service.inference.models.encoder import nearest


def test_the_nearest_come_first_and_ties_keep_their_order() -> None:
    """The choice does not depend on the sort's whims."""
    assert nearest(np.array([0.1, 0.9, 0.5, 0.9]), [5, 5, 5, 5]) == [1, 3, 2, 0]


def test_at_most_so_many_sentences_and_tokens() -> None:
    """Both limits hold."""
    assert nearest(np.array([0.9, 0.8, 0.7]), [5, 5, 5], sentences=2) == [0, 1]
    assert nearest(np.array([0.9, 0.8, 0.7]), [60, 60, 60], tokens=130) == [0, 1]


def test_the_nearest_is_kept_however_long() -> None:
    """A long sentence is never dropped for its length alone."""
    assert nearest(np.array([0.9, 0.8]), [250, 5], tokens=176) == [0]


def test_a_text_without_tokens_is_never_chosen() -> None:
    """There would be nothing to read."""
    assert nearest(np.array([0.9, 0.8]), [0, 5]) == [1]
    assert nearest(np.array([0.9]), [0]) == []
