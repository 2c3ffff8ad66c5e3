"""Draws whole questions from a lab, so that a mean over few of them says something about all.

A question comes with the answers of all its models, so whatever compares models on the same
questions can still do so. Questions that the same models answered are one stratum.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import weakref
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from guardrail_offline.datasets.cases import Case, case_from_json, case_json
from guardrail_offline.datasets.labs import LabSource, RootGroups
from guardrail_service.errors import ConfigurationError

LEAST_DRAWN = 2
"""Questions of a stratum; one alone would say nothing about how they differ."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_Hashes = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class SampleSize:
    """The sample that is asked for: about so many cases, by a seed."""

    cases: int
    seed: int = 0


@dataclass(frozen=True, slots=True)
class QuestionStratum:
    """Questions that one set of models answered; without models, all sets that are too rare."""

    models: tuple[str, ...]
    questions: int
    drawn: int


@dataclass(frozen=True, slots=True)
class QuestionSample:
    """The draw of a lab.

    Attributes:
        size: What was asked for.
        cases: Of the whole lab.
        strata: Every question of the lab is in one.
    """

    size: SampleSize
    cases: int
    strata: tuple[QuestionStratum, ...]

    @property
    def questions(self) -> int:
        """Return how many questions the whole lab has."""
        return sum(one.questions for one in self.strata)

    @property
    def drawn(self) -> int:
        """Return how many questions were drawn."""
        return sum(one.drawn for one in self.strata)

    def place(self, models: frozenset[str]) -> int:
        """Return which stratum a question is in, by the models that answered it."""
        sets = [frozenset(one.models) for one in self.strata]
        return sets.index(models) if models in sets else sets.index(frozenset())


def sampled(lab: LabSource, size: SampleSize) -> LabSource:
    """Return a lab with some of its questions, drawn when it is first read.

    Questions are drawn without replacement, and by their words and the seed alone: the same ones
    from a lab in another order, and a larger sample holds the smaller one of the same seed.
    """
    draw = _Draw(lab, size)
    return replace(lab, cases=draw.cases, size=size, drawn=lambda: draw.drawn)


def sample_from_json(content: Mapping[str, Any]) -> QuestionSample:
    """Return the draw that a manifest describes."""
    strata = tuple(
        QuestionStratum(tuple(map(str, one["models"])), int(one["questions"]), int(one["drawn"]))
        for one in content["strata"]
    )
    size = SampleSize(int(content["size"]["cases"]), int(content["size"]["seed"]))
    return QuestionSample(size, int(content["cases"]), strata)


class _Draw:
    """Reads a lab once to choose questions and once more to keep their cases on disk."""

    def __init__(self, lab: LabSource, size: SampleSize) -> None:
        self._lab, self._size = lab, size
        self._path: Path | None = None
        self.drawn: QuestionSample | None = None

    def cases(self) -> Iterator[Case]:
        """Yield the cases of the questions that were drawn, in the order of the lab."""
        if self._path is None:
            folder = Path(tempfile.mkdtemp(prefix="guardrail-sample-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._keep(folder / "cases.jsonl")
            self._path = folder / "cases.jsonl"
        with self._path.open(encoding="utf-8") as lines:
            for line in lines:
                yield case_from_json(json.loads(line))

    def _keep(self, path: Path) -> None:
        sources: dict[str, str] = {}
        groups = RootGroups(self._lab, sources)
        survey = self._survey(groups, sources)
        if sources:
            groups = RootGroups(self._lab, sources)
            survey = self._survey(groups, sources)
        self.drawn, chosen = _chosen(*survey, self._size)
        with path.open("w", -1, "utf-8", "backslashreplace", "\n") as stream:
            for case in self._lab.cases():
                if _rank(groups.of(case), self._size.seed) in chosen:
                    stream.write(json.dumps(case_json(case)) + "\n")

    def _survey(
        self, groups: RootGroups, sources: dict[str, str]
    ) -> tuple[_Hashes, _Hashes, list[str]]:
        """Return of each case its question's rank and the place of its model; and the models.

        Sources of variants are noted on the way.
        """
        ranks, answered, names = array("Q"), array("Q"), dict[str, int]()
        for case in self._lab.cases():
            ranks.append(_rank(groups.of(case), self._size.seed))
            answered.append(names.setdefault(case.model, len(names)))
            if case.source is not None:
                sources[case.key] = case.source
        if not ranks:
            raise ConfigurationError(self._lab.name, "no case", "a lab with cases")
        ours, theirs = (np.frombuffer(one, dtype=np.uint64) for one in (ranks, answered))
        return ours, theirs, list(names)


def _chosen(
    ranks: _Hashes, answered: _Hashes, names: list[str], size: SampleSize
) -> tuple[QuestionSample, frozenset[int]]:
    """Return the strata and the ranks of the questions that are drawn."""
    pairs = np.unique(np.stack([ranks, answered], axis=1), axis=0)
    questions, first = np.unique(pairs[:, 0], return_index=True)
    with np.errstate(over="ignore"):
        signs = np.add.reduceat(_mixed(pairs[:, 1]), first)
    kinds, kind_of, counts = np.unique(signs, return_inverse=True, return_counts=True)
    share = min(1.0, size.cases / len(ranks))
    members = [np.flatnonzero(kind_of == kind) for kind in range(len(kinds))]
    ends = np.append(first[1:], len(pairs))
    strata, rest, drawn = [], [], []
    for places in sorted(members, key=lambda one: int(first[one[0]])):
        if share < 1 and share * len(places) < LEAST_DRAWN and len(counts) > 1:
            rest.append(places)
            continue
        models = pairs[first[places[0]] : ends[places[0]], 1]
        strata.append((tuple(sorted(names[int(one)] for one in models)), places))
    if rest:
        strata.append(((), np.concatenate(rest)))
    described = []
    for known, places in sorted(strata, key=lambda one: (not one[0], one[0])):
        most = min(len(places), max(LEAST_DRAWN, round(share * len(places))))
        drawn.append(np.sort(questions[places])[:most])
        described.append(QuestionStratum(known, len(places), most))
    chosen = frozenset(np.concatenate(drawn).tolist())
    return QuestionSample(size, len(ranks), tuple(described)), chosen


def _mixed(numbers: _Hashes) -> _Hashes:
    """Return numbers of which sums tell sets apart."""
    mixed = (numbers + np.uint64(1)) * _ODD
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray(mixed ^ (mixed >> np.uint64(32)), dtype=np.uint64)


def _rank(group: str, seed: int) -> int:
    """Return a question's place in the order in which a seed draws."""
    text = group.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8, key=str(seed).encode()[:64])
    return int.from_bytes(digest.digest())
