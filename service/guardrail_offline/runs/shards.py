"""Cuts a lab into shards that are scored on their own; files are whole or absent.

All cases of a question are in one shard: reruns, other models' answers and perturbed variants. So
whatever compares them never has to look elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heapreplace
from pathlib import Path
from textwrap import indent
from typing import IO, Any, NamedTuple, Self

import numpy as np

from guardrail_offline.datasets.cases import Case, Model, case_from_json, case_json, models_of
from guardrail_offline.datasets.labs import LabSource, RootGroups
from guardrail_offline.datasets.sampled_labs import QuestionSample
from guardrail_offline.evaluators.result import Result, dumps, result_from_json
from guardrail_service.errors import ConfigurationError

MAX_SHARDS = 90_000
"""A lab of more than 18,000,000 rows has larger shards: names of shards have five digits."""
MOST_OPEN = 200
"""Files that are open at once while a lab is cut or put together; the usual limit is 1,024."""


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """The cut of a lab into shards, the columns that nothing read, and which part it is of all."""

    cases: int
    shards: int
    models: tuple[Model, ...]
    ignored_columns: tuple[str, ...] = ()
    sample: QuestionSample | None = None


@dataclass(frozen=True, slots=True)
class ScoredCase:
    """One case with its place in the lab and its results by evaluator."""

    index: int
    case: Case
    results: Mapping[str, Result]


class Layout(NamedTuple):
    """The paths of a run's files."""

    out: Path

    @property
    def work(self) -> Path:
        """Return the folder of shards."""
        return self.out / "work"

    def cases(self, shard: int) -> Path:
        """Return the file with a shard's cases."""
        return self.work / f"cases-{shard:05d}.jsonl"

    def part(self, number: int) -> Path:
        """Return the file with the cases of some shards of a large lab, while it is cut."""
        return self.work / f"cases-part-{number:05d}.jsonl"

    def scores(self, shard: int) -> Path:
        """Return the file with a shard's scores; it exists once the shard is finished."""
        return self.work / f"scores-{shard:05d}.jsonl"

    def times(self, shard: int) -> Path:
        """Return the file that says how long each evaluator took on a shard."""
        return self.work / f"times-{shard:05d}.json"

    def tallies(self, shard: int) -> Path:
        """Return the file with what a shard adds to the boards."""
        return self.work / f"tallies-{shard:05d}.json"

    def is_cases(self, name: str) -> bool:
        """Return whether a file of the folder of shards holds cases, by its name."""
        return name.startswith("cases-") and name.endswith(".jsonl")


def cut(lab: LabSource, layout: Layout, shard_rows: int, shards: int | None = None) -> ShardPlan:
    """Write a lab's cases as shards and return how many there are.

    The lab is read two or three times and never held in memory: once to count it and to find what
    the variants were made from, once more to write.

    Args:
        lab: What is cut.
        layout: Where the shards lie.
        shard_rows: Cases a shard has at least about.
        shards: How many, if that was said before.

    Raises:
        ConfigurationError: If the lab is empty or a key occurs twice.
    """
    count, sources = _survey(lab)
    groups = RootGroups(lab, sources)
    shards = shards or shards_for(count, shard_rows)
    models: dict[str, Case] = {}
    parts = min(shards, MOST_OPEN)
    with ExitStack() as stack:
        paths = [layout.cases(n) if parts == shards else layout.part(n) for n in range(parts)]
        files = [stack.enter_context(whole_file(path)) for path in paths]
        for index, case in enumerate(lab.cases()):
            grouped = replace(case, group=groups.of(case))
            models.setdefault(case.model, grouped)
            line = dumps({"index": index, "case": case_json(grouped)}) + "\n"
            files[_shard_of(grouped.group, shards) % parts].write(line)
    if parts < shards:
        for part in range(parts):
            _cut_part(layout, part, shards)
    known = models_of(models.values(), lab.models)
    return ShardPlan(count, shards, known, tuple(lab.ignored), lab.drawn())


def shards_for(cases: int, rows: int) -> int:
    """Return how many shards there are; beyond `MOST_OPEN` a multiple of it."""
    wanted = max(1, -(-cases // rows))
    if wanted <= MOST_OPEN:
        return wanted
    return min(MAX_SHARDS, -(-wanted // MOST_OPEN) * MOST_OPEN)


def _cut_part(layout: Layout, part: int, shards: int) -> None:
    """Cut one part of a large lab into its shards, every `MOST_OPEN`th, and remove it."""
    own = range(part, shards, MOST_OPEN)
    for first in range(0, len(own), MOST_OPEN):
        with ExitStack() as stack:
            files = {
                shard: stack.enter_context(whole_file(layout.cases(shard)))
                for shard in own[first : first + MOST_OPEN]
            }
            with layout.part(part).open(encoding="utf-8") as lines:
                for line in lines:
                    group = json.loads(line)["case"]["group"]
                    if (stream := files.get(_shard_of(group, shards))) is not None:
                        stream.write(line)
    layout.part(part).unlink()


def read_cases(path: Path) -> Iterator[tuple[int, Case]]:
    """Yield a shard's cases with their places in the lab, in order."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield record["index"], case_from_json(record["case"])


def read_scored(layout: Layout, shard: int) -> Iterator[ScoredCase]:
    """Yield a finished shard's cases with their results, in the order of the lab."""
    with layout.scores(shard).open(encoding="utf-8") as lines:
        for (index, case), line in zip(read_cases(layout.cases(shard)), lines, strict=True):
            results = json.loads(line)["results"]
            yield ScoredCase(index, case, {k: result_from_json(v) for k, v in results.items()})


def in_order(layout: Layout, shards: int) -> Iterator[ScoredCase]:
    """Yield all cases in the order of the lab, however many shards there are.

    In memory is a number per shard and one case; few files are open at once.
    """
    readers = OrderedDict[int, _ShardReader]()
    ends = [(0, 0)] * shards
    heads = [
        (found, shard)
        for shard in range(shards)
        if (found := _first_index(layout.cases(shard))) is not None
    ]
    heapify(heads)
    try:
        while heads:
            _, shard = heads[0]
            reader = readers.pop(shard, None) or _ShardReader(layout, shard, *ends[shard])
            readers[shard] = reader
            yield reader.case()
            following = reader.following()
            if following is None:
                heappop(heads)
            else:
                heapreplace(heads, (following, shard))
            if len(readers) > MOST_OPEN // 2:
                oldest, closed = readers.popitem(last=False)
                ends[oldest] = closed.close()
    finally:
        for reader in readers.values():
            reader.close()


class _ShardReader:
    """Reads a finished shard's cases and scores side by side, and goes on where another ended."""

    def __init__(self, layout: Layout, shard: int, cases: int, scores: int) -> None:
        self._cases = layout.cases(shard).open("rb")
        self._scores = layout.scores(shard).open("rb")
        self._cases.seek(cases)
        self._scores.seek(scores)

    def case(self) -> ScoredCase:
        """Return the next case with its results."""
        record, scored = (json.loads(one.readline()) for one in (self._cases, self._scores))
        results = {k: result_from_json(v) for k, v in scored["results"].items()}
        return ScoredCase(record["index"], case_from_json(record["case"]), results)

    def following(self) -> int | None:
        """Return the place in the lab of the case after; None at the end."""
        place = self._cases.tell()
        found = _index_in(self._cases.readline())
        self._cases.seek(place)
        return found

    def close(self) -> tuple[int, int]:
        """Close the files and return how far they were read."""
        ends = self._cases.tell(), self._scores.tell()
        self._cases.close()
        self._scores.close()
        return ends


def _first_index(path: Path) -> int | None:
    with path.open("rb") as lines:
        return _index_in(lines.readline())


def _index_in(line: bytes) -> int | None:
    """Return the place in the lab of a line of a shard; None of an empty one."""
    head, mark, _ = line.partition(b",")
    if mark and head.startswith(_INDEX):
        return int(head[len(_INDEX) :])
    return int(json.loads(line)["index"]) if line.strip() else None


_INDEX = b'{"index":'


@contextmanager
def whole_file(path: Path) -> Iterator[IO[str]]:
    """Open a file that appears under its name only when it is complete and on disk.

    A lone surrogate, for which UTF-8 has no form, is written escaped.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", -1, "utf-8", "backslashreplace", "\n") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def written_name(path: Path) -> str | None:
    """Return the name of the file that a temporary one was to become; None for any other file."""
    name = path.name
    if not name.startswith(".") or not name.endswith(".tmp"):
        return None
    stem = name[1 : -len(".tmp")]
    name, _, process = stem.rpartition(".")
    return name if process.isdecimal() else stem


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people and programs, whole or not at all."""
    with whole_file(path) as stream:
        stream.write(json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False) + "\n")


class JsonList:
    """Writes a list to a JSON file as `write_json` does, but keeps none of it in memory.

    The file appears when the block of this ends without an error. Without a record there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stack = ExitStack()
        self._stream: IO[str] | None = None

    def add(self, record: Any) -> None:
        """Write one record."""
        opening = ",\n"
        if self._stream is None:
            self._stream, opening = self._stack.enter_context(whole_file(self._path)), "[\n"
        text = json.dumps(record, indent=1, ensure_ascii=True, allow_nan=False)
        self._stream.write(opening + indent(text, " "))

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *error: Any) -> None:
        """Close the list and put the file in its place, unless the block failed."""
        if self._stream is not None and error[0] is None:
            self._stream.write("\n]\n")
        self._stack.__exit__(*error)


def _survey(lab: LabSource) -> tuple[int, dict[str, str]]:
    """Return how many cases there are, and of each variant the key of its source."""
    hashes = array("Q")
    sources: dict[str, str] = {}
    for case in lab.cases():
        hashes.append(_hash(case.key))
        if case.source is not None:
            sources[case.key] = case.source
    if not hashes:
        raise ConfigurationError(lab.name, "no case", "a lab with cases")
    _refuse_twins(lab, np.frombuffer(hashes, dtype=np.uint64))
    return len(hashes), sources


def _refuse_twins(lab: LabSource, hashes: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
    values, counts = np.unique(hashes, return_counts=True)
    twins = set(values[counts > 1].tolist())
    if not twins:
        return
    seen: dict[str, int] = {}
    for row, case in enumerate(lab.cases(), start=1):
        if _hash(case.key) not in twins:
            continue
        if case.key in seen:
            found = f"the key {case.key!r} in rows {seen[case.key]} and {row}"
            raise ConfigurationError(lab.name, found, "each key once")
        seen[case.key] = row


def _shard_of(group: str, shards: int) -> int:
    return _hash(group) % shards


def _hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest())


def by_group(cases: Iterable[tuple[int, Case]]) -> list[list[tuple[int, Case]]]:
    """Return cases by question, in the order in which the questions first come."""
    groups: dict[str, list[tuple[int, Case]]] = {}
    for index, case in cases:
        groups.setdefault(case.group, []).append((index, case))
    return list(groups.values())
