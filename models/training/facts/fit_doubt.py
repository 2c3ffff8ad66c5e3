"""Fits the doubt of `facts`: `fit_doubt.py [--out FILE] [--keep SHARE]`.

Answers of the guarding corpora that rules flag, good ones (0) and bad ones (1), with the counts of
`facts/doubt.py`. Each corpus is scored by weights fitted on the others; the least log odds are
those that keep a share of the flagged bad ones so. Prints what is left of each corpus, and writes
the weights fitted on all of them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from fit_suspicion import CORPORA as SPARSE
from fit_suspicion import ROOT
from numpy.typing import NDArray
from rich.progress import track
from sklearn.linear_model import LogisticRegression

from guardrail_bench.guarding import CorpusCase, read
from guardrail_service.detectors.facts import detector, doubt
from guardrail_service.detectors.hallucination.reading import claims_of
from guardrail_service.text.sample import SegmentedSample

CORPORA: Final = (*SPARSE, "eighth", "ninth", "tenth", "eleventh")
"""All but the twelfth, which says what the doubt does on answers that it has not seen."""
FLAGGED: Final = 0.5
STRENGTH: Final = 0.3
"""Inverse of the penalty on the weights of scaled counts."""
Counts = NDArray[np.float64]


class Row(NamedTuple):
    """A flagged answer; `counts` is None where the doubt leaves it alone."""

    corpus: str
    is_bad: bool
    counts: list[float] | None


def flagged(case: CorpusCase) -> tuple[bool, list[float] | None]:
    """Return whether rules flag an answer, and its counts."""
    sample = SegmentedSample(case.sample)
    found = detector.verdicts(sample, claims_of(sample).stated)
    if all(one.score >= FLAGGED for one in found):
        return False, None
    asked, in_english = case.sample.question or "", not detector._language(sample)
    return True, doubt.columns(found, case.sample.answer, asked, in_english)


def rows(corpora: Sequence[str]) -> Iterator[Row]:
    """Yield the flagged answers of some corpora."""
    cases = [
        (corpus, case)
        for corpus in corpora
        for half in ("ordinary", "attacks")
        for file in sorted((ROOT / "tests" / "golden" / corpus / half).glob("*.jsonl"))
        for case in read(file)
    ]
    for corpus, case in track(cases, "answers"):
        is_flagged, counts = flagged(case)
        if is_flagged:
            yield Row(corpus, not case.good, counts)


def fitted(counts: Counts, is_bad: NDArray[np.bool_]) -> tuple[Counts, float]:
    """Return weights of the counts and the intercept, both kinds weighing as much."""
    mean, spread = counts.mean(axis=0), counts.std(axis=0) + 1e-9
    model = LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=2000)
    model.fit((counts - mean) / spread, is_bad)
    weights = model.coef_[0] / spread
    return weights, float(model.intercept_[0] - weights @ mean)


def main() -> None:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    shipped = Path(doubt.__file__).with_name(doubt.WEIGHTS_FILE)
    parser.add_argument("--out", type=Path, default=shipped, help="default: what the service reads")
    parser.add_argument(
        "--keep", type=float, default=0.95, help="share of flagged bad ones, 0 to 1"
    )
    parser.add_argument("--corpora", nargs="+", default=CORPORA, help="default: all but the last")
    options = parser.parse_args()
    every = list(rows(options.corpora))
    weighed = [one for one in every if one.counts is not None]
    counts = np.array([one.counts for one in weighed])
    is_bad = np.array([one.is_bad for one in weighed])
    odds = np.zeros(len(weighed))
    for corpus in options.corpora:
        own = np.array([one.corpus == corpus for one in weighed])
        weights, intercept = fitted(counts[~own], is_bad[~own])
        odds[own] = counts[own] @ weights + intercept
    left_alone = sum(one.is_bad and one.counts is None for one in every)
    bad = sum(one.is_bad for one in every)
    share = min(1.0, max(0.0, 1 - (options.keep * bad - left_alone) / is_bad.sum()))
    least = float(np.quantile(odds[is_bad], share))
    for corpus in options.corpora:
        for kind, wanted in (("good", False), ("bad", True)):
            own = [one for one in every if one.corpus == corpus and one.is_bad is wanted]
            doubted = sum(
                one.corpus == corpus and one.is_bad is wanted and value < least
                for one, value in zip(weighed, odds, strict=True)
            )
            print(f"{corpus}: {kind}, {len(own)} flagged, {len(own) - doubted} left")
    weights, intercept = fitted(counts, is_bad)
    told = {
        "columns": doubt.COLUMNS,
        "weights": [float(f"{one:.6g}") for one in weights],
        "intercept": float(f"{intercept:.6g}"),
        "least": float(f"{least:.6g}"),
    }
    options.out.write_text(json.dumps(told, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
