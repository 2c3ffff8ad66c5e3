"""Step 1: clusters the passages of the documents into topics and names them by their words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from guardrail_offline.evaluators.pack_models import PackModels, sentences_of
from guardrail_offline.generation.chunks import DocumentChunk
from guardrail_offline.workflow.definition import TopicParameters
from guardrail_offline.workflow.generated_tests import passages
from guardrail_offline.workflow.step_engine import StepContext, StepOutcome
from guardrail_service.errors import MissingExtra

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
NOISE = -1
EXTRA = "rag-guardrail-offline[workflow]"
_LEAST_CHUNKS = 4
_MOST_LETTERS = 40
_SHORTEST_WORD = 3
_SEEDS = 4
_OWN = 4


@dataclass(frozen=True)
class Clustering:
    """One way to part the passages.

    Attributes:
        labels: Topic by passage, from 0, the largest first; none is left out. Shape (n,).
        silhouette: Mean over passages, -1 to 1; None for a single topic.
        noise: Passages that the method left out; they are with the nearest topic.
    """

    method: str
    labels: Labels
    silhouette: float | None
    noise: int


def model_topics(context: StepContext) -> StepOutcome:
    """Return the topics of the documents' passages."""
    parameters: TopicParameters = context.parameters
    documents, chunks = passages(context)
    unread = [f"{one.id}: {one.state} ({one.reason})" for one in documents if one.state != "read"]
    inputs = {"documents": len(documents), "unread": len(unread), "chunks": len(chunks)}
    if not chunks:
        empty: dict[str, Any] = {"chunks": [], "topics": [], "quality": {}, "map": []}
        why = "no document" if not documents else "no text in the documents"
        return StepOutcome(empty, inputs, notes=unread, skipped=why)
    with context.bars("embedding") as (begin, advance):
        begin(len(chunks))
        vectors = embedded([chunk.text for chunk in chunks], context.models, advance)
    points, explained = reduced(vectors, parameters)
    best, tried = clustered(points, parameters)
    return StepOutcome(
        results=_results(chunks, best, tried, points, explained, parameters),
        inputs=inputs,
        notes=[*unread, *_notes(parameters)],
    )


def embedded(
    texts: Sequence[str], models: PackModels, advance: Callable[[int], None] = lambda _n: None
) -> Array:
    """Return one unit vector per text: the direction of the mean of its sentences' embeddings.

    A sentence that the model does not read whole is cut at words. Shape (n, dim).
    """
    rows = []
    for text in texts:
        parts = [part for one in sentences_of(text) for part in _windows(one.text, models)]
        total = models.embed(parts or [text[:_MOST_LETTERS]]).mean(axis=0)
        rows.append(total / (np.linalg.norm(total) or 1.0))
        advance(1)
    return np.array(rows, dtype=np.float64)


def reduced(vectors: Array, parameters: TopicParameters) -> tuple[Array, float | None]:
    """Return vectors with fewer dimensions, and the share of variance that PCA keeps.

    Raises:
        MissingExtra: If scikit-learn, or umap-learn where it is asked for, is not installed.
    """
    most = min(parameters.umap_components, len(vectors) - 1, vectors.shape[1])
    if most < 1 or not np.ptp(vectors, axis=0).any():
        return np.zeros((len(vectors), 1)), None
    if parameters.reduction == "umap" and len(vectors) >= _LEAST_CHUNKS:
        return _umap(vectors, most, parameters), None
    try:
        from sklearn.decomposition import PCA
    except ImportError as error:
        raise MissingExtra(EXTRA) from error
    model = PCA(most, svd_solver="full")
    points: Array = model.fit_transform(vectors)
    signs = np.sign(points[np.abs(points).argmax(axis=0), np.arange(most)])
    return points * np.where(signs == 0, 1.0, signs), float(model.explained_variance_ratio_.sum())


def clustered(points: Array, parameters: TopicParameters) -> tuple[Clustering, list[Clustering]]:
    """Return the parting with the best silhouette, and all that were tried.

    Passages that HDBSCAN leaves out, and those of topics below the least size, count with the
    nearest topic, so that all partings are compared over all passages. Where nothing gives two
    topics there is one.
    """
    tried: list[Clustering] = []
    if len(points) >= _LEAST_CHUNKS:
        if parameters.method in ("auto", "hdbscan"):
            tried += _hdbscan(points, parameters)
        if parameters.method in ("auto", "kmeans"):
            tried += _kmeans(points, parameters)
    found = [one for one in tried if one.silhouette is not None]
    if not found:
        return Clustering("one", np.zeros(len(points), dtype=np.int64), None, 0), tried
    return max(found, key=lambda one: one.silhouette or -1.0), tried


def topic_words(
    texts: Sequence[str], labels: Labels, top: int
) -> dict[int, list[tuple[str, float]]]:
    """Return the words that distinguish each topic, with their weights, the first the strongest.

    c-TF-IDF: the share of a word in its topic times log(1 + A / f), A the mean number of words of a
    topic and f how often the word comes in all. English stop words and very short words are left
    out, and words of more
    than half of the topics unless their share here is four times that elsewhere: they are of any
    text.

    Source:
        M. Grootendorst, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure"
        (2022), equation 2.
    """
    stop_words = _stop_words()
    counts: dict[int, Counter[str]] = {int(topic): Counter() for topic in np.unique(labels)}
    for text, topic in zip(texts, labels, strict=True):
        counts[int(topic)].update(_words(text))
    everywhere = Counter(word for words in counts.values() for word in words)
    total: Counter[str] = sum(counts.values(), Counter())
    whole = sum(total.values())
    average = whole / len(counts)
    usual = {word for word, topics in everywhere.items() if 2 * topics > len(counts) > 1}
    found = {}
    for topic, words in counts.items():
        size = sum(words.values()) or 1
        weights = {
            word: count / size * math.log(1 + average / total[word])
            for word, count in words.items()
            if word not in stop_words
            and (word not in usual or count * (whole - size) >= _OWN * size * (total[word] - count))
        }
        ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
        found[topic] = ordered[:top]
    return found


def _hdbscan(points: Array, parameters: TopicParameters) -> list[Clustering]:
    from sklearn.cluster import HDBSCAN

    least = min(parameters.hdbscan_min_cluster_size, len(points))
    samples = parameters.hdbscan_min_samples
    model = HDBSCAN(
        min_cluster_size=max(2, least),
        min_samples=None if samples is None else min(samples, len(points)),
        cluster_selection_epsilon=parameters.hdbscan_cluster_selection_epsilon,
        copy=True,
    )
    return [_judged("hdbscan", model.fit_predict(points), points, parameters.min_topic_size)]


def _kmeans(points: Array, parameters: TopicParameters) -> list[Clustering]:
    from sklearn.cluster import KMeans

    most = min(parameters.most_topics, len(points) - 1, len(np.unique(points, axis=0)))
    found = []
    for count in range(2, most + 1):
        model = KMeans(count, n_init=_SEEDS, random_state=parameters.seed)
        labels = model.fit_predict(points)
        found.append(_judged(f"kmeans {count}", labels, points, parameters.min_topic_size))
    return found


def _judged(method: str, labels: Labels, points: Array, least: int) -> Clustering:
    """Return a parting with every passage in a topic of at least the least size."""
    from sklearn.metrics import silhouette_score

    sizes = Counter(int(label) for label in labels if label != NOISE)
    large = sorted(label for label, size in sizes.items() if size >= least)
    noise = int((labels == NOISE).sum())
    if len(large) < 2:
        return Clustering(method, np.zeros(len(points), dtype=np.int64), None, noise)
    centres = np.stack([points[labels == label].mean(axis=0) for label in large])
    nearest = np.linalg.norm(points[:, None] - centres[None], axis=2).argmin(axis=1)
    kept = np.array([large.index(label) if label in large else NOISE for label in labels])
    full = np.where(kept == NOISE, nearest, kept)
    order = np.argsort(-np.bincount(full, minlength=len(large)), kind="stable")
    places = np.empty(len(large), dtype=np.int64)
    places[order] = np.arange(len(large))
    ordered: Labels = places[full]
    return Clustering(method, ordered, float(silhouette_score(points, ordered)), noise)


def _umap(vectors: Array, components: int, parameters: TopicParameters) -> Array:
    try:
        from umap import UMAP
    except ImportError as error:
        raise MissingExtra("umap-learn") from error
    model = UMAP(
        n_neighbors=min(parameters.umap_neighbors, len(vectors) - 1),
        n_components=components,
        min_dist=parameters.umap_min_distance,
        init="spectral" if components + 1 < len(vectors) else "random",  # which few points lack
        random_state=parameters.seed,
        n_jobs=1,
    )
    return np.asarray(model.fit_transform(vectors), dtype=np.float64)


def _results(
    chunks: Sequence[DocumentChunk],
    best: Clustering,
    tried: Sequence[Clustering],
    points: Array,
    explained: float | None,
    parameters: TopicParameters,
) -> dict[str, Any]:
    words = topic_words([chunk.text for chunk in chunks], best.labels, parameters.top_n_words)
    own = _own_silhouettes(points, best)
    titles = _titles(words)
    flat = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))[:, :2]
    return {
        "chunks": [
            {
                "id": chunk.id,
                "document": chunk.document,
                "start": chunk.start,
                "end": chunk.end,
                "topic": int(topic),
                "text": chunk.text,
            }
            for chunk, topic in zip(chunks, best.labels, strict=True)
        ],
        "topics": [
            {
                "id": topic,
                "title": titles[topic],
                "words": [{"word": word, "weight": round(w, 6)} for word, w in words[topic]],
                "size": int((best.labels == topic).sum()),
                "documents": dict(Counter(
                    chunk.document for chunk, own_topic in zip(chunks, best.labels, strict=True)
                    if own_topic == topic
                )),
                "silhouette": own.get(topic),
                "chunks": [
                    chunk.id for chunk, own_topic in zip(chunks, best.labels, strict=True)
                    if own_topic == topic
                ],
            }
            for topic in sorted(words)
        ],
        "quality": {
            "method": best.method,
            "silhouette": best.silhouette,
            "noise": best.noise,
            "explained_variance": explained,
            "tried": [
                {
                    "method": one.method,
                    "topics": len(np.unique(one.labels)),
                    "silhouette": one.silhouette,
                    "noise": one.noise,
                }
                for one in tried
            ],
        },
        "map": [
            [chunk.id, round(float(x), 4), round(float(y), 4)]
            for chunk, (x, y) in zip(chunks, flat, strict=True)
        ],
    }  # fmt: skip


def _titles(words: Mapping[int, Sequence[tuple[str, float]]]) -> dict[int, str]:
    """Return a title per topic, no two alike."""
    found: dict[int, str] = {}
    for topic, own in words.items():
        title = ", ".join(word for word, _ in own[:3]) or f"topic {topic + 1}"
        found[topic] = title if title not in found.values() else f"{title} ({topic + 1})"
    return found


def _own_silhouettes(points: Array, best: Clustering) -> dict[int, float]:
    if best.silhouette is None:
        return {}
    from sklearn.metrics import silhouette_samples

    values = silhouette_samples(points, best.labels)
    return {int(t): float(values[best.labels == t].mean()) for t in np.unique(best.labels)}


def _notes(parameters: TopicParameters) -> list[str]:
    if parameters.reduction == "umap":
        return []
    return ["umap_neighbors and umap_min_distance are of UMAP; the reduction is PCA, without them"]


def _words(text: str) -> list[str]:
    """Return the words of a text that can name a topic; those of letters only."""
    spaced = "".join(char if char.isalpha() else " " for char in text)
    found = (word.casefold() for word in spaced.split())
    return [word for word in found if _SHORTEST_WORD <= len(word) <= _MOST_LETTERS]


def _stop_words() -> frozenset[str]:
    """Return English words that name no topic: scikit-learn's, but for those with a subject."""
    try:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
    except ImportError as error:
        raise MissingExtra(EXTRA) from error
    return frozenset(ENGLISH_STOP_WORDS) - {"bill", "cry", "fire", "mill", "system"}


def _windows(text: str, models: PackModels) -> list[str]:
    """Return a sentence in parts that the embedding model reads whole."""
    if not text.strip():
        return []
    if models.fits(text):
        return [text]
    words = text.split()
    half = max(1, len(words) // 2)
    halves = (" ".join(words[:half]), " ".join(words[half:]))
    if len(words) < 2:
        halves = (text[: len(text) // 2], text[len(text) // 2 :])
    return [part for one in halves for part in _windows(one, models)]
