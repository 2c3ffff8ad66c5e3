"""Answers of writers who saw no rule: a second set, good ones of a third, a fourth and so on.

Corpora of `guardrail bench guarding`, too; here the detectors of rules judge alone. Rules were
mended with all of the second, fourth, sixth, eighth and ninth set in sight, so their counts say
what works, not how well it does elsewhere; of the third every other good answer was read, and no
bad one.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from guardrail_bench.guarding import CorpusCase, read
from guardrail_service.detectors.facts.detector import Facts, FactsParameters
from guardrail_service.detectors.injection.detector import Injection, InjectionParameters
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Passage, Sample

SECOND = Path(__file__).parent / "second"
THIRD = Path(__file__).parent / "third"
FOURTH = Path(__file__).parent / "fourth"
MOST_FLAGGED = 1
"""Of 120 good answers of the third set."""
CUT = 0.5
LEAST_FOUND = 108
"""Of 150 bad answers; the count is measured, and only goes up."""
FOURTH_FLAGGED, FOURTH_FOUND = 2, 52
"""Of 288 good answers, half of which compute something, and of 168 bad ones."""

SIXTH = Path(__file__).parent / "sixth"
SIXTH_FLAGGED, SIXTH_FOUND = 19, 19
"""Of 270 good answers, half of which compute or convert much, and of 110 bad ones, half of them in
languages that no model reads."""

DENSE = {
    "eighth": (7, 57),
    "ninth": (17, 56),
    "tenth": (11, 50),
    "eleventh": (12, 56),
    "twelfth": (17, 55),
}
"""Good answers flagged and bad ones found, of 240, 200, 160, 200 and 160 each, to passages full of
facts; each bad answer has one plausible mistake. Of the tenth and eleventh every other good answer
was read. Nobody read the twelfth, and nothing was fitted on it."""

GROUNDING = Path(__file__).parents[2] / "models" / "training" / "grounding"
TWINS_FROM = 81
"""Writers as of this one wrote passages in two versions from the start; their claims came later."""


def flagged(case: CorpusCase) -> bool:
    """Return whether a rule flags an answer."""
    sample = SegmentedSample(case.sample)
    facts = Facts().reduce(sample, (), FactsParameters()).scores
    orders = Injection().reduce(sample, (), InjectionParameters()).scores
    return facts.get("facts", 1.0) < CUT or orders["model_passes"] < CUT


def test_rules_on_answers_of_other_writers() -> None:
    """As many bad answers are found as measured, and no good one is flagged."""
    bad = read(SECOND / "attacks" / "open.jsonl")
    good = read(SECOND / "ordinary" / "open.jsonl")
    assert sum(map(flagged, bad)) >= LEAST_FOUND
    assert [case.id for case in good if flagged(case)] == []


def test_rules_on_good_answers_of_the_third_set() -> None:
    """Hardly any is flagged."""
    good = read(THIRD / "ordinary" / "open.jsonl")
    assert sum(map(flagged, good)) <= MOST_FLAGGED


def test_rules_on_answers_that_compute() -> None:
    """Good answers with calculations of several steps pass."""
    bad, good = (read(FOURTH / half / "open.jsonl") for half in ("attacks", "ordinary"))
    assert sum(map(flagged, good)) <= FOURTH_FLAGGED
    assert sum(map(flagged, bad)) >= FOURTH_FOUND


def test_rules_on_answers_that_convert_and_speak_other_languages() -> None:
    """Counts of the sixth set."""
    bad, good = (read(SIXTH / half / "open.jsonl") for half in ("attacks", "ordinary"))
    assert sum(map(flagged, good)) <= SIXTH_FLAGGED
    assert sum(map(flagged, bad)) >= SIXTH_FOUND


@pytest.mark.parametrize("name", DENSE)
def test_rules_on_answers_to_dense_passages(name: str) -> None:
    """Counts of the eighth set and those after it."""
    most_flagged, least_found = DENSE[name]
    folder = Path(__file__).parent / name
    bad, good = (read(folder / half / "open.jsonl") for half in ("attacks", "ordinary"))
    assert sum(map(flagged, good)) <= most_flagged
    assert sum(map(flagged, bad)) >= least_found


@pytest.mark.parametrize(
    ("file", "claims", "most_flagged", "least_found"),
    [("statements", 7944, 171, 477), ("short_statements", 2200, 65, 223)],
)
def test_rules_on_statements(file: str, claims: int, most_flagged: int, least_found: int) -> None:
    """Facts alone on single sentences that say the same in other words, or nearly the same.

    So many true and as many false ones are of the writers with odd numbers below `TWINS_FROM`.
    Nobody read those of the longer ones.
    """
    found: Counter[bool] = Counter()
    with gzip.open(GROUNDING / f"{file}.jsonl.gz", "rt", encoding="utf-8") as stream:
        records = [row for line in stream if (row := json.loads(line))["writer"] % 2]
    records = [row for row in records if row["writer"] < TWINS_FROM]
    for row in records:
        contexts = tuple(map(Passage, row["passages"]))
        for claim in row["claims"]:
            sample = SegmentedSample(Sample(claim["text"], row["question"], contexts))
            score = Facts().reduce(sample, (), FactsParameters()).scores.get("facts", 1.0)
            found[claim["label"] == "supported"] += score < CUT
    assert sum(len(row["claims"]) for row in records) == 2 * claims
    assert found[True] <= most_flagged
    assert found[False] >= least_found
