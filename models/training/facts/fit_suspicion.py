"""Fits the second look of `facts`: `fit_suspicion.py [--out FILE] [--every N]`.

True sentences and good answers of this repository are read as they are (0) and with one number
changed that a passage has too (1): a little, much, or to another number of the passages. Of each
fact that the rules let pass while passages have another value of its kind, `facts/suspicion.py`
takes its features, and trees are fitted on them. Prints what a threshold finds and flags, out of
fold (a record's facts stay together), and writes the trees fitted on all of it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from rich.progress import track
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GroupKFold

from guardrail_bench.guarding import read
from guardrail_service.detectors.facts import detector, suspicion
from guardrail_service.detectors.hallucination.reading import claims_of
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Passage, Sample

ROOT: Final = Path(__file__).resolve().parents[3]
STATEMENTS: Final = ("statements", "short_statements")
CORPORA: Final = (".", "second", "third", "fourth", "fifth", "sixth")
MOST_CHANGED: Final = 10
"""Changed numbers of one answer at most."""
FOLDS: Final = 5
THRESHOLDS: Final = (2.0, 2.3, 2.5, 2.6, 2.75, 3.0)
_NUMBER: Final = re.compile(
    r"(?<![\w.,:/-])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w:/])"
    r"|(?<![\w.,:/-])\d+(?:\.\d+)?(?![\w:/]|[.,]\d|-\d)"
)
_WORDS: Final = tuple("two three four five six seven eight nine ten eleven twelve".split())
_WORD: Final = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.IGNORECASE)


class Case(NamedTuple):
    """An answer; `at` is where its changed number begins, None: nothing is changed."""

    group: int
    corpus: str
    sample: Sample
    at: int | None = None
    kind: str = ""


class Row(NamedTuple):
    """A fact that the rules let pass, or (no features) a changed number that they found."""

    group: int
    corpus: str
    kind: str
    features: list[float] | None
    has_no_rival: bool = False


def changes(text: str, passages: str, chance: random.Random) -> Iterator[tuple[str, int, str]]:
    """Yield the kind of each change, where it is, and the changed text."""
    held = set(_NUMBER.findall(passages))
    for match in (*_NUMBER.finditer(text), *_WORD.finditer(text)):
        own = match.group()
        for kind, new in _others(own, held, passages, chance).items():
            if new != own:
                yield kind, match.start(), text[: match.start()] + new + text[match.end() :]


def _others(own: str, held: set[str], passages: str, chance: random.Random) -> dict[str, str]:
    if own.isalpha():
        if not re.search(rf"\b{own}\b", passages, re.IGNORECASE):
            return {}
        place = _WORDS.index(own.lower()) + chance.choice((1, 2, 3, -1))
        return {"word": _WORDS[place % len(_WORDS)]}
    if own not in held:
        return {}
    value = float(own.replace(",", ""))
    is_whole = "." not in own
    found: dict[str, str] = {}
    if is_whole and "," not in own and 1900 <= value <= 2100:
        found["year"] = str(int(value) + chance.choice((-10, -2, -1, 1, 2, 10)))
    elif chance.random() < 0.5:
        found["near"] = _like(value + max(1.0, value * 0.1) if is_whole else value * 1.1 + 0.1, own)
    else:
        found["far"] = _like(value * chance.uniform(1.3, 3) + 1, own)
    alike = sorted(
        one for one in held if one != own and len(one) == len(own) and ("." in one) != is_whole
    )
    if alike:
        found["other"] = chance.choice(alike)
    return found


def _like(value: float, own: str) -> str:
    if "." in own:
        return f"{value:.{len(own.split('.')[1])}f}"
    return f"{round(value):,}" if "," in own else str(round(value))


def cases(every: int) -> Iterator[Case]:
    """Yield good answers, each with its changed ones behind it.

    Args:
        every: Only every so manieth record is read.
    """
    group = 0
    for name in STATEMENTS:
        file = ROOT / "models" / "training" / "grounding" / f"{name}.jsonl.gz"
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in islice(lines, 0, None, every):
                group += 1
                yield from _of_record(group, json.loads(line))
    for name in CORPORA:
        for file in sorted((ROOT / "tests" / "golden" / name / "ordinary").glob("*.jsonl")):
            for case in read(file)[::every]:
                group += 1
                chance = random.Random(group)
                yield Case(group, "answers", case.sample)
                passages = " ".join(one.text for one in case.sample.contexts)
                found = list(changes(case.sample.answer, passages, chance))
                chance.shuffle(found)
                for kind, at, text in found[:MOST_CHANGED]:
                    yield Case(group, "answers", replace(case.sample, answer=text), at, kind)


def _of_record(group: int, record: dict[str, Any]) -> Iterator[Case]:
    """Yield the true claims of a record, every second one between two others."""
    chance = random.Random(group)
    passages = tuple(map(Passage, record["passages"]))
    true = [
        claim["text"] for claim in record["claims"]
        if claim["label"] == "supported" and claim.get("change") is None
    ]  # fmt: skip
    for place, text in enumerate(true):
        others = [one for one in true if one is not text]
        chance.shuffle(others)
        before, behind = (*others, "", "")[:2] if place % 2 else ("", "")
        shift = len(before) + 1 if before else 0
        joined = " ".join(filter(None, (before, text, behind)))
        sample = Sample(joined, record["question"], passages)
        yield Case(group, "statements", sample)
        for kind, at, changed in changes(text, " ".join(record["passages"]), chance):
            joined = " ".join(filter(None, (before, changed, behind)))
            yield Case(group, "statements", replace(sample, answer=joined), at + shift, kind)


class Looks:
    """Takes down what the second look sees, and lets every fact pass."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, suspicion.Suspicion]] = []

    def __call__(self, claim: Any, fact: Any, *others: Any) -> suspicion.Suspicion:
        """Return a look without a value in the fact's place."""
        found = suspicion.second_look(claim, fact, *others)
        self.seen.append((claim.start + fact.start, claim.start + fact.end, found))
        return found._replace(other=None)


def rows(every: int) -> Iterator[Row]:
    """Yield the facts to fit on."""
    looks = Looks()
    detector.second_look = looks  # type: ignore[assignment]
    for case in track(list(cases(every)), "answers"):
        looks.seen.clear()
        sample = SegmentedSample(case.sample)
        flagged = min(
            (one.score for one in detector.verdicts(sample, claims_of(sample).stated)), default=1.0
        ) < 0.5  # fmt: skip
        if case.at is not None and flagged:
            yield Row(case.group, case.corpus, case.kind, None)
            continue
        for start, end, look in looks.seen:
            if case.at is None or start <= case.at < end:
                if look.other is not None and look.features[0] > 0:
                    yield Row(case.group, case.corpus, case.kind, look.features)
                elif case.at is not None:
                    yield Row(case.group, case.corpus, case.kind, None, has_no_rival=True)


def fitted(features: np.ndarray, changed: np.ndarray) -> HistGradientBoostingClassifier:
    """Return trees, as many changed facts weighing as much as all true ones."""
    weights = np.where(changed, (~changed).sum() / max(1, changed.sum()), 1.0)
    trees = HistGradientBoostingClassifier(
        max_depth=4, learning_rate=0.08, max_iter=100, l2_regularization=5, min_samples_leaf=15,
        random_state=0,
    )  # fmt: skip
    return trees.fit(features, changed, sample_weight=weights)


def written(trees: HistGradientBoostingClassifier) -> list[suspicion.Tree]:
    """Return trees as `suspicion.py` reads them."""
    base = float(np.ravel(trees._baseline_prediction)[0]) / len(trees._predictors)
    return [
        [
            round(float(node["value"]) + base, 4)
            if node["is_leaf"]
            else [
                int(node["feature_idx"]),
                float(f"{node['num_threshold']:.9g}"),
                int(node["left"]),
                int(node["right"]),
            ]
            for node in of_class[0].nodes
        ]
        for of_class in trees._predictors
    ]


def main() -> None:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    shipped = Path(suspicion.__file__).with_name(suspicion.TREES_FILE)
    parser.add_argument("--out", type=Path, default=shipped, help="default: what the service reads")
    parser.add_argument("--every", type=int, default=1, help="read every so manieth record only")
    options = parser.parse_args()
    every = list(rows(options.every))
    kept = [one for one in every if one.features is not None]
    features = np.array([one.features for one in kept])
    changed = np.array([bool(one.kind) for one in kept])
    values = np.zeros(len(kept))
    folds = GroupKFold(FOLDS).split(features, changed, [one.group for one in kept])
    for train, left_out in folds:
        trees = fitted(features[train], changed[train])
        values[left_out] = trees.decision_function(features[left_out])
    for corpus in ("statements", "answers"):
        own = np.array([one.corpus == corpus for one in kept])
        of = [one for one in every if one.corpus == corpus and one.kind]
        found = sum(one.features is None and not one.has_no_rival for one in of)
        for most in THRESHOLDS:
            over = own & (values > most)
            true = f"{(over & ~changed).sum()} of {(own & ~changed).sum()} true facts"
            new = f"{(over & changed).sum()} changed ones beside {found} of {len(of)} by rules"
            print(f"{corpus}, above {most}: {true}, {new}")
    lines = ",\n".join(json.dumps(tree) for tree in written(fitted(features, changed)))
    options.out.write_text(
        f'{{"columns": {json.dumps(suspicion.COLUMNS)},\n"trees": [\n{lines}\n]}}\n', "utf-8"
    )


if __name__ == "__main__":
    main()
