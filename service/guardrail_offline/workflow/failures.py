"""Step 6: groups failed cases that fail alike, and says in words what is common to each group.

A random forest learns which metrics fail from what is known of the cases: facts, sizes, and what
the question is about. Two failed cases are alike as often as the trees put them into one leaf (L.
Breiman's proximity). People's words for some failures spread to the others along that likeness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from guardrail_offline.runs.paired import holm
from guardrail_offline.workflow.definition import FailureParameters, TopicParameters
from guardrail_offline.workflow.evaluation import RUN
from guardrail_offline.workflow.people_thresholds import failed_metrics
from guardrail_offline.workflow.score_table import Mask, ScoreTable, rate, read_table
from guardrail_offline.workflow.step_engine import StepContext, StepOutcome
from guardrail_offline.workflow.topics import EXTRA, embedded, reduced
from guardrail_service.errors import MissingExtra

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
AGREED, OVERRULED = "people fail it, too", "people pass it"
SPREAD = 0.2
"""How much of a labelled failure's word comes from its neighbours; scikit-learn's default."""
_CLEAR = 0.3
"""Mean silhouette below which failures are one group: in twelve forests on noise the best parting
reached 0.25, in six with two planted causes 0.73 and more."""
_CLEAR_OF_MADE_UP = 0.12
"""The same where no case passed: 0.08 on noise, 0.18 with two planted groups."""
_SHORT_OF = 0.05
"""The fewest groups are taken whose silhouette is as close to the best one."""
_SHARE = 0.5
"""Of the features that each split chooses from: of few, trees part by what does not matter."""
_ALPHA = 0.05
_MOST_WORDS = 3
_FACTS = ("topic", "generator", "category", "length", "language", "document", "passages")
_BANDS = ("low", "middle", "high")


@dataclass(frozen=True)
class Features:
    """The facts of cases as columns for the forest, and as words.

    Attributes:
        matrix: Shape (cases, columns).
        words: By feature, its value of each case in words; empty where it has none.
    """

    matrix: Array
    words: Mapping[str, Sequence[str]]


def cluster(context: StepContext) -> StepOutcome:
    """Return the failed cases in groups; skipped where there are too few."""
    parameters: FailureParameters = context.parameters
    table = read_table(context.folder.step_folder("evaluation") / RUN, parameters.seed)
    failed = failed_metrics(table, context.results("calibration")["thresholds"])
    mask = np.array([bool(names) for names in failed])
    places = np.flatnonzero(mask)
    inputs = {"cases": len(mask), "failures": len(places)}
    if len(places) < parameters.least:
        results: dict[str, Any] = {
            "failures": [
                _failure(table, int(place), failed[place], None, None) for place in places
            ],
            "clusters": [],
            "quality": {},
        }
        why = f"{len(places)} failures, {parameters.least} are needed"
        return StepOutcome(results, inputs, skipped=why)
    with context.bars("embedding") as (begin, advance):
        begin(len(mask))
        questions = [str(case.get("input") or "") for case in table.cases]
        vectors = embedded(questions, context.models, advance)
    meaning, _ = reduced(vectors, TopicParameters())
    features, names = features_of(table, failed, meaning), _metrics(failed)
    target = np.array([[name in one for name in names] for one in failed])
    with context.bars("growing trees"):
        near, accuracy = proximity(features.matrix, target, parameters.trees, parameters.seed)
    labels, silhouette = grouped(near, parameters.most_clusters, learnt=accuracy is not None)
    keys = [table.keys[place] for place in places]
    words = causes(parameters.causes, context.results("calibration")["verdicts"])
    spread = spread_words(near, [words.get(key) for key in keys])
    results = {
        "failures": [
            _failure(table, int(place), failed[place], int(labels[n]), spread[n])
            for n, place in enumerate(places)
        ],
        "clusters": _described(keys, places, labels, features, spread),
        "quality": {
            "clusters": len(np.unique(labels)),
            "silhouette": silhouette,
            "oob_accuracy": accuracy,
        },
    }
    lost = sorted(set(parameters.causes) - set(keys))
    notes = [f"{len(lost)} cases of failures.causes did not fail"] if lost else []
    return StepOutcome(results, inputs, notes=notes)


def causes(given: Mapping[str, str], passes: Mapping[str, bool]) -> Mapping[str, str]:
    """Return people's words for failures; where they gave none, whether they saw one, too.

    Args:
        given: Word by case key.
        passes: Whether people passed a case, of those that they labelled.
    """
    return given or {key: AGREED if not good else OVERRULED for key, good in passes.items()}


def features_of(table: ScoreTable, failed: Sequence[tuple[str, ...]], meaning: Array) -> Features:
    """Return what is known of each case: facts, sizes, meaning; in words the failed metrics, too.

    Args:
        table: The evaluation.
        failed: Of each case, the metrics that it failed.
        meaning: Coordinates of its question. Shape (cases, components).
    """
    columns: list[Array] = list(meaning.T)
    words: dict[str, list[str]] = {}
    for name in _FACTS:
        values = [facts.get(name, "") for facts in table.facts]
        kinds = sorted(set(values) - {""})
        if len(kinds) > 1:
            words[name] = values
            columns += [np.array([float(value == kind) for value in values]) for kind in kinds]
    for name in _metrics(failed):
        words[f"fails {name}"] = ["yes" if name in names else "no" for names in failed]
    for name, sizes in _sizes(table).items():
        words[name] = _bands(sizes)
        columns.append(sizes)
    return Features(np.stack(columns, axis=1), words)


def proximity(matrix: Array, target: Mask, trees: int, seed: int) -> tuple[Array, float | None]:
    """Return how often two failed cases are in one leaf, and the forest's accuracy out of bag.

    Where all cases fail alike, the forest tells them from made-up ones whose columns are shuffled.

    Args:
        matrix: Features. Shape (cases, columns).
        target: Which metrics each case fails. Shape (cases, metrics).
        trees: How many.
        seed: Of the forest.

    Returns:
        Shape (failed, failed), 1.0 on the diagonal. The accuracy is the share of verdicts foretold
        by trees that did not learn from the case; None for made-up cases.

    Raises:
        MissingExtra: If scikit-learn is not installed.

    Source:
        L. Breiman, "Random Forests" (2001); T. Shi and S. Horvath, "Unsupervised Learning With
        Random Forest Predictors" (2006).
    """
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError as error:
        raise MissingExtra(EXTRA) from error
    failed = target.any(axis=1)
    kinds = [column for column in target.T if column.any() and not column.all()]
    accuracy = None
    model = RandomForestClassifier(
        trees, min_samples_leaf=2, max_features=_SHARE, random_state=seed, oob_score=bool(kinds)
    )
    own = matrix[failed]
    if kinds:
        model.fit(matrix, np.stack(kinds, axis=1).astype(int).squeeze())
        accuracy = float(model.oob_score_)
    else:
        rng = np.random.default_rng(seed)
        made_up = np.stack([rng.permutation(column) for column in own.T], axis=1)
        model.fit(np.vstack([own, made_up]), np.repeat([1, 0], len(own)))
    leaves = model.apply(own)
    near: Array = (leaves[:, None, :] == leaves[None, :, :]).mean(axis=2)
    return near, accuracy


def grouped(near: Array, most: int, *, learnt: bool = True) -> tuple[Labels, float | None]:
    """Return groups of cases that are near each other, the largest first, and their silhouette.

    Average linkage, with the fewest groups whose mean silhouette is close to the best. Where no
    parting is clear there is one group, and no silhouette.

    Args:
        near: From `proximity`.
        most: Groups at most.
        learnt: Whether the forest learnt from cases that passed, too.
    """
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import silhouette_score

    far = 1.0 - near
    np.fill_diagonal(far, 0.0)
    partings: list[tuple[float, Labels]] = []
    for count in range(2, min(most, len(near) - 1) + 1):
        model = AgglomerativeClustering(count, metric="precomputed", linkage="average")
        labels = model.fit_predict(far)
        partings.append((float(silhouette_score(far, labels, metric="precomputed")), labels))
    best = max((value for value, _ in partings), default=-1.0)
    if best < (_CLEAR if learnt else _CLEAR_OF_MADE_UP):
        return np.zeros(len(near), dtype=np.int64), None
    value, found = next(one for one in partings if one[0] >= best - _SHORT_OF)
    order = np.argsort(-np.bincount(found), kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    ordered: Labels = places[found]
    return ordered, value


def spread_words(near: Array, words: Sequence[str | None]) -> list[tuple[str, float] | None]:
    """Return the likeliest word of each case and its probability, from the words of some.

    None where nobody gave a word, and for cases that are like no labelled one.

    Source:
        D. Zhou and others, "Learning with Local and Global Consistency" (2004), closed form;
        scikit-learn's LabelSpreading with `near` as kernel comes to the same.
    """
    kinds = sorted({word for word in words if word is not None})
    if not kinds:
        return [None] * len(words)
    links = near.copy()
    np.fill_diagonal(links, 0.0)
    degrees = links.sum(axis=1)
    scale = 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0))
    share = scale[:, None] * links * scale[None, :]
    start = np.array([[float(word == kind) for kind in kinds] for word in words])
    found = np.linalg.solve(np.eye(len(words)) - SPREAD * share, (1 - SPREAD) * start)
    total = found.sum(axis=1)
    return [
        (kinds[int(row.argmax())], float(row.max() / whole)) if whole > 1e-12 else None
        for row, whole in zip(found, total, strict=True)
    ]


def _metrics(failed: Sequence[tuple[str, ...]]) -> list[str]:
    return sorted({name for names in failed for name in names})


def _failure(
    table: ScoreTable,
    place: int,
    failed: Sequence[str],
    group: int | None,
    spread: tuple[str, float] | None,
) -> dict[str, Any]:
    facts = table.facts[place]
    return {
        "key": table.keys[place],
        "failed": list(failed),
        "topic": facts.get("topic"),
        "generator": facts.get("generator"),
        "cluster": group,
        "spread": None if spread is None else {"label": spread[0], "probability": spread[1]},
    }


def _described(
    keys: Sequence[str],
    places: npt.NDArray[np.intp],
    labels: Labels,
    features: Features,
    spread: Sequence[tuple[str, float] | None],
) -> list[dict[str, Any]]:
    """Return each group with the values that are more frequent in it than in all other cases."""
    rows = [_over_represented(places[labels == group], features) for group in np.unique(labels)]
    corrected = iter(holm([one["p"] for found in rows for one in found]))
    clusters = []
    for group, found in zip(np.unique(labels), rows, strict=True):
        kept = [{**one, "p_holm": next(corrected)} for one in found]
        sure = sorted(
            (one for one in kept if one["p_holm"] < _ALPHA),
            key=lambda one: (one["p_holm"], -one["inside"]["rate"]),
        )
        inside = np.flatnonzero(labels == group).tolist()
        words = [spread[n] for n in inside]
        clusters.append({
            "id": int(group),
            "size": len(inside),
            "keys": [keys[n] for n in inside],
            "features": sure,
            "words": _sentence(len(inside), sure),
            "label": _common_word([word for word in words if word is not None], len(inside)),
        })  # fmt: skip
    return clusters


def _over_represented(inside: npt.NDArray[np.intp], features: Features) -> list[dict[str, Any]]:
    from scipy.stats import fisher_exact

    found = []
    for name, values in features.words.items():
        has = np.array(values, dtype=object)
        side = np.zeros(len(has), dtype=bool)
        side[inside] = True
        for value in sorted(set(has[inside]) - {"", "no"}):
            table = [
                [int(((has == value) & part).sum()), int(((has != value) & part).sum())]
                for part in (side, ~side)
            ]
            (x, rest), (other_x, other_rest) = table
            found.append({
                "feature": name,
                "value": str(value),
                "inside": rate(x, x + rest),
                "outside": rate(other_x, other_x + other_rest),
                "p": float(fisher_exact(table, alternative="greater").pvalue),
            })  # fmt: skip
    return found


def _sentence(size: int, sure: Sequence[Mapping[str, Any]]) -> str:
    told = []
    for one in sure[:_MOST_WORDS]:
        inside, outside = one["inside"], one["outside"]
        rest = "no other case" if not outside["n"] else f"{outside['rate']:.0%} of the others"
        name = one["feature"] if one["value"] == "yes" else f"{one['feature']} {one['value']!r}"
        told.append(f"{name} ({inside['x']} of {inside['n']}, {rest})")
    common = "; ".join(told) or "nothing that sets them apart"
    return f"{size} failures: {common}"


def _common_word(words: Sequence[tuple[str, float]], size: int) -> str | None:
    """Return the word of most cases of a group; None where it is not most of them."""
    counts: dict[str, int] = {}
    for word, _ in words:
        counts[word] = counts.get(word, 0) + 1
    best = max(counts, key=lambda word: (counts[word], word), default=None)
    return best if best is not None and 2 * counts[best] > size else None


def _sizes(table: ScoreTable) -> dict[str, Array]:
    def sizes(name: str) -> Array:
        texts = (one.get(name) for one in table.cases)
        return np.array([float(len(text)) if isinstance(text, str) else 0.0 for text in texts])

    found = {"question length": sizes("input"), "answer length": sizes("actual_output")}
    return {name: values for name, values in found.items() if len(np.unique(values)) > 1}


def _bands(values: Array) -> list[str]:
    edges = np.quantile(values, [1 / 3, 2 / 3])
    return [_BANDS[int(np.searchsorted(edges, value, side="left"))] for value in values]
