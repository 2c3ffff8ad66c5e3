"""Topics: planted groups of points come back, and c-TF-IDF is that of a small sum by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, silhouette_score

from guardrail_offline.workflow.definition import TopicParameters
from guardrail_offline.workflow.topics import clustered, reduced, topic_words


def blobs(centres: int, each: int) -> tuple[Any, Any]:
    """Return points around far centres on a sphere, and the centre of each."""
    rng = np.random.default_rng(11)
    middle = rng.normal(size=(centres, 16))
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    own = np.repeat(np.arange(centres), each)
    points = middle[own] + 0.05 * rng.normal(size=(len(own), 16))
    return points / np.linalg.norm(points, axis=1, keepdims=True), own


@pytest.mark.parametrize("method", ["auto", "hdbscan", "kmeans"])
def test_planted_topics_are_recovered(method: str) -> None:
    """Four groups of twelve passages; the silhouette is scikit-learn's."""
    vectors, own = blobs(4, 12)
    parameters = TopicParameters(method=method)  # type: ignore[arg-type]
    points, explained = reduced(vectors, parameters)
    best, tried = clustered(points, parameters)
    assert adjusted_rand_score(own, best.labels) == pytest.approx(1.0)
    assert best.silhouette == pytest.approx(silhouette_score(points, best.labels))
    assert explained is not None
    assert explained > 0.8
    assert max(one.silhouette or -1.0 for one in tried) == best.silhouette


def test_the_reduction_is_principal_components() -> None:
    """But for signs, which are fixed so that a run repeats."""
    vectors, _ = blobs(3, 8)
    points, _ = reduced(vectors, TopicParameters(umap_components=3))
    expected = PCA(3, svd_solver="full").fit_transform(vectors)
    assert np.abs(points) == pytest.approx(np.abs(expected))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_very_few_passages_are_one_topic(count: int) -> None:
    """Nothing is clustered that cannot be."""
    vectors, _ = blobs(1, count)
    points, _ = reduced(vectors, TopicParameters())
    best, tried = clustered(points, TopicParameters())
    assert best.labels.tolist() == [0] * count
    assert tried == []


def test_equal_passages_are_one_topic() -> None:
    """A document that repeats itself has no second topic."""
    points, _ = reduced(np.ones((12, 4)) / 2, TopicParameters())
    best, _ = clustered(points, TopicParameters())
    assert set(best.labels) == {0}


def test_words_are_weighed_by_class_based_tf_idf() -> None:
    """By hand: three words in each topic; `ferry` comes twice in one and nowhere else."""
    texts = ["the ferry ferry", "the museum closed"]
    found = topic_words(texts, np.array([0, 1]), 5)
    assert found[0] == [("ferry", pytest.approx(2 / 3 * math.log(1 + 3 / 2)))]
    assert [word for word, _ in found[1]] == ["closed", "museum"]
    assert found[1][0][1] == pytest.approx(1 / 3 * math.log(1 + 3 / 1))


def test_english_stop_words_name_no_topic() -> None:
    """Also where there is a single topic; words with a subject stay."""
    found = topic_words(["the fire and the ferry and the fire"], np.array([0]), 5)
    assert [word for word, _ in found[0]] == ["fire", "ferry"]


def test_words_that_are_everywhere_name_no_topic() -> None:
    """Whatever language they are of: they stand in most topics."""
    texts = ["und der Hafen Hafen", "und der Garten Garten", "und der Bahnhof Bahnhof"]
    found = topic_words(texts, np.array([0, 1, 2]), 3)
    assert [[word for word, _ in words] for words in found.values()] == [
        ["hafen"], ["garten"], ["bahnhof"],
    ]  # fmt: skip


def test_few_passages_need_no_umap() -> None:
    """It has no neighbourhoods to look at there; they are one topic anyway."""
    points, _ = reduced(np.eye(3), TopicParameters(reduction="umap"))
    assert points.shape == (3, 2)
    assert np.isfinite(points).all()
