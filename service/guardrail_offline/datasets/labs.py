"""A lab on disk, read as often as needed without being held in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from guardrail_offline.datasets.cases import Case, Lab, Model
from guardrail_offline.datasets.columns import RowPlace
from guardrail_offline.datasets.h2o_labs import lab_of_json, read_json
from guardrail_offline.datasets.images import located_image, read_image
from guardrail_offline.datasets.suites import RecordReader
from guardrail_offline.datasets.tables import read_records
from guardrail_service.errors import ConfigurationError

if TYPE_CHECKING:
    from guardrail_offline.datasets.sampled_labs import QuestionSample, SampleSize

_BLOCK = 2**20


@dataclass(frozen=True)
class LabSource:
    """A source of cases: a lab file or a folder.

    Attributes:
        name: For people.
        cases: Starts from the first case on every call. H2O's JSON is held in memory; tables are
            read row by row.
        models: What the lab says about the systems under test; those it does not mention are
            known only by the cases.
        sha256: Of the file, or of the names and contents of a folder's files.
        reader: Knows which columns nothing read, once all cases were read.
        size: The sample that was asked for; None for all questions.
        drawn: Returns which sample it is, once all cases were read; None for all questions.
    """

    name: str
    cases: Callable[[], Iterator[Case]]
    models: tuple[Model, ...]
    sha256: str
    reader: RecordReader = field(default_factory=RecordReader)
    size: SampleSize | None = None
    drawn: Callable[[], QuestionSample | None] = lambda: None

    @property
    def ignored(self) -> list[str]:
        """Return the columns that were met and that nothing reads."""
        return sorted(self.reader.ignored)


class RootGroups:
    """Knows what question each case belongs to; variants belong to that of their source.

    Args:
        lab: Where the cases are from; read once more if there are variants.
        sources: Of each variant the key of the case it was made from.
    """

    def __init__(self, lab: LabSource, sources: Mapping[str, str]) -> None:
        self._sources = sources
        keys = set(sources) | set(sources.values())
        cases = lab.cases() if keys else iter(())
        self._groups = {case.key: case.group for case in cases if case.key in keys}

    def of(self, case: Case) -> str:
        """Return the group of the case a variant was made from, through any number of steps."""
        key, passed = case.key, {case.key}
        sources, groups = self._sources, self._groups
        while (at := sources.get(key)) is not None and at in groups and at not in passed:
            passed.add(at)
            key = at
        return groups.get(key, case.group) if key != case.key else case.group


def open_lab(path: Path, reader: RecordReader | None = None) -> LabSource:
    """Return the lab of a file or folder.

    Args:
        path: Where it lies.
        reader: Knows the columns of a lab with names of its own.

    Raises:
        ConfigurationError: If there is none, or it is not readable. Tables are checked row by row
            as they are read.
    """
    if not path.exists():
        raise ConfigurationError(str(path), "no such file", "a test lab or test suite")
    digest = file_sha256(path)
    reader = reader or RecordReader()
    if path.suffix.lower() == ".json":
        lab = read_json(path, reader)
        located = [_located(case, path, row) for row, case in enumerate(lab.cases, start=1)]
        name = lab.name or path.stem
        return LabSource(name, lambda: iter(located), lab.models, digest, reader)
    return LabSource(path.stem, lambda: _rows(path, reader), (), digest, reader)


def lab_of_text(name: str, text: str) -> Lab:
    """Return a lab, suite or list of records in JSON that lies in no folder.

    Args:
        name: For messages.
        text: Of somebody else, perhaps: it names no file of this machine.

    Raises:
        ConfigurationError: If it is none, or names artifacts or images that are files.
    """
    lab = lab_of_json(Path(name), text)
    for row, case in enumerate(lab.cases, start=1):
        for one in case.images:
            read_image(one, None, f"{name}: row {row}: images")
        if case.artifacts is not None:
            where, expected = f"{name}: row {row}: artifacts", "none, or a lab on disk beside them"
            raise ConfigurationError(where, "a folder", expected)
    return lab


def lab_source(lab: Lab) -> LabSource:
    """Return a lab that is in memory already."""
    digest = hashlib.sha256(repr(lab).encode("utf-8", "surrogatepass")).hexdigest()
    return LabSource(lab.name or "lab", lambda: iter(lab.cases), lab.models, digest)


def file_sha256(path: Path) -> str:
    """Return the hash of a file, or of a folder's files with their names."""
    digest = hashlib.sha256()
    paths = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for part in paths:
        if path.is_dir():
            digest.update(f"{part.relative_to(path)}\0".encode())
        with part.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()


def _rows(path: Path, reader: RecordReader) -> Iterator[Case]:
    for number, record in enumerate(read_records(path), start=1):
        for case in reader.cases(record, RowPlace(str(path), number)):
            yield _located(case, path, number)
    reader.finish(str(path))


def _located(case: Case, lab: Path, row: int) -> Case:
    """Return the case with artifacts' folder and images made absolute; they must be the lab's."""
    root = lab.resolve().parent
    if case.images:
        where = f"{lab}: row {row}: images"
        located = tuple(located_image(one, root, where) for one in case.images)
        case = replace(case, images=located)
    if case.artifacts is None:
        return case
    where, expected = f"{lab}: row {row}: artifacts", "a folder beside the lab"
    try:
        folder = (root / case.artifacts).resolve()
    except (ValueError, OSError, RuntimeError) as error:  # a NUL, too long, links in a circle
        raise ConfigurationError(where, "a value that is no folder's name", expected) from error
    if not folder.is_relative_to(root):
        raise ConfigurationError(where, "a folder elsewhere", expected)
    return replace(case, artifacts=str(folder))


def beside(case: Case, lab: Path) -> Case:
    """Return a case as it is written into a lab: artifacts and images relative to its folder.

    Raises:
        ConfigurationError: If they lie elsewhere: whoever reads the lab would refuse it.
    """
    root = lab.parent.resolve()
    if case.images:
        images = tuple(_relative(one, root, case.key, "images") for one in case.images)
        case = replace(case, images=images)
    if case.artifacts is None:
        return case
    return replace(case, artifacts=_relative(case.artifacts, root, case.key, "artifacts"))


def _relative(place: str, root: Path, key: str, what: str) -> str:
    path = Path(place)
    if not path.is_absolute():  # an address, a data URI
        return place
    if not path.is_relative_to(root):
        found = f"a folder without the {what} of case {key!r}"
        raise ConfigurationError("--out", found, "a file in the folder of the lab that is read")
    return path.relative_to(root).as_posix()
