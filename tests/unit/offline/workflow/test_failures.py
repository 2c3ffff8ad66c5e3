"""Groups of failures: planted ones are recovered, noise is one group, and words spread."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.semi_supervised import LabelSpreading

from guardrail_offline.workflow.failures import (
    AGREED,
    OVERRULED,
    SPREAD,
    causes,
    features_of,
    grouped,
    proximity,
    spread_words,
)
from tests.unit.offline.workflow.made_up import column, table


def planted() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, which metric each of 160 cases fails, and the cause of each failure.

    Cases of one topic fail the first metric, those of one generator the second.
    """
    rng = np.random.default_rng(8)
    topic, generator = rng.integers(0, 4, 160), rng.integers(0, 4, 160)
    cause = np.where(topic == 0, 1, np.where(generator == 0, 2, 0))
    matrix = np.column_stack([topic[:, None] == range(4), generator[:, None] == range(4),
                              rng.random((160, 2))]).astype(float)  # fmt: skip
    return matrix, np.column_stack([cause == 1, cause == 2]), cause


def test_planted_causes_are_recovered_as_groups() -> None:
    """Nearly every failure is with those of its own cause."""
    matrix, target, cause = planted()
    near, accuracy = proximity(matrix, target, 100, 7)
    labels, silhouette = grouped(near, 6)
    assert adjusted_rand_score(cause[cause > 0], labels) > 0.9
    assert silhouette is not None
    assert silhouette > 0.4
    assert accuracy is not None
    assert accuracy > 0.8


def test_failures_without_any_cause_are_one_group() -> None:
    """Features that have nothing to do with failing part nothing clearly."""
    rng = np.random.default_rng(9)
    matrix = rng.random((80, 6))
    near, _ = proximity(matrix, rng.random((80, 1)) < 0.5, 100, 7)
    labels, silhouette = grouped(near, 6)
    assert set(labels) == {0}
    assert silhouette is None


def test_cases_that_all_fail_are_told_from_made_up_ones() -> None:
    """Two far groups of features are two groups of failures, though no case passed."""
    rng = np.random.default_rng(10)
    half = np.repeat([0, 1], 30)
    matrix = half[:, None] * 5.0 + rng.random((60, 4))
    near, accuracy = proximity(matrix, np.ones((60, 1), dtype=bool), 100, 7)
    labels, _ = grouped(near, 4, learnt=False)
    assert accuracy is None
    assert adjusted_rand_score(half, labels) == pytest.approx(1.0)


def test_proximity_is_the_share_of_trees_with_both_in_one_leaf() -> None:
    """Symmetric, 1 on the diagonal, between 0 and 1, and the same for the same seed."""
    matrix, target, _ = planted()
    near, _ = proximity(matrix, target, 60, 7)
    assert (np.diag(near) == 1.0).all()
    assert (near == near.T).all()
    assert near.min() >= 0.0
    assert (near == proximity(matrix, target, 60, 7)[0]).all()


def test_words_spread_as_with_scikit_learn() -> None:
    """Two labelled failures of each cause: the others get the words sklearn gives them."""
    matrix, target, cause = planted()
    near, _ = proximity(matrix, target, 100, 7)
    own = cause[cause > 0]
    words: list[str | None] = [None] * len(own)
    for kind, word in ((1, "retrieval"), (2, "format")):
        for place in np.flatnonzero(own == kind)[:2]:
            words[place] = word
    found = spread_words(near, words)
    names = ["format", "retrieval"]
    given = np.array([-1 if word is None else names.index(word) for word in words])
    # scikit-learn takes the diagonal out by itself
    model = LabelSpreading(kernel=lambda *_: near, alpha=SPREAD, max_iter=500, tol=1e-12)
    expected = model.fit(matrix[cause > 0], given).label_distributions_
    for row, one in zip(expected, found, strict=True):
        assert one is not None
        assert one[0] == names[int(row.argmax())]
        assert one[1] == pytest.approx(row.max(), abs=1e-6)
    right = [one is not None and one[0] == names[0 if kind == 2 else 1]
             for one, kind in zip(found, own, strict=True)]  # fmt: skip
    assert np.mean(right) > 0.95


def test_rare_failures_have_an_honest_accuracy_too() -> None:
    """Every case is out of some trees' bags: a warning of scikit-learn would be an error here."""
    rng = np.random.default_rng(13)
    rare = np.arange(120) < 5
    _, accuracy = proximity(rng.random((120, 4)), rare[:, None], 60, 7)
    assert accuracy is not None
    assert accuracy <= 1.0


def test_verdicts_stand_for_words_where_people_gave_none() -> None:
    """A word comes before them."""
    assert causes({}, {"a": True, "b": False}) == {"a": OVERRULED, "b": AGREED}
    assert causes({"a": "retrieval"}, {"a": True}) == {"a": "retrieval"}


def test_without_words_nothing_spreads() -> None:
    """Nobody said anything: every failure has None."""
    assert spread_words(np.eye(3), [None] * 3) == [None] * 3


def test_features_are_facts_sizes_and_meaning_but_no_score() -> None:
    """A score would tell failures from others by definition; a failed metric is a word only."""
    known = [{"topic": "a"}, {"topic": "b"}, {"topic": "a"}]
    made = table(known, [column(np.array([0.1, 0.9, 0.9]))])
    found = features_of(made, [("made.up",), (), ()], np.zeros((3, 2)))
    assert found.matrix.shape == (3, 4)
    assert found.words["fails made.up"] == ["yes", "no", "no"]
