"""The things a studio was given at its start: labellings, scored labs, a store, policy versions.

Pages name them by what stands here, so no path ever comes from a browser.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from guardrail_decisions.monitor.watch import PolicyFindings, Watch
from guardrail_decisions.reading import Decisions, open_decisions
from guardrail_offline.calibration.labels import read_looks
from guardrail_offline.calibration.sampling import draw, sample_text, task_text
from guardrail_offline.calibration.scored_lab import HEADER, read_lab
from guardrail_offline.runs.run_folder import MANIFEST
from guardrail_offline.runs.shards import whole_file, write_json
from guardrail_offline.studio.label_files import LAB, TASKS, Labelling, Progress
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.versions import checked_path, read_folder

LABELLINGS = "labellings"
ABOUT = "labelling.json"


@dataclass(frozen=True, slots=True)
class LabellingSummary:
    """One labelling on the overview."""

    name: str
    progress: Progress
    looks: int
    lab: Path | None


@dataclass
class Workspace:
    """The things a studio works on.

    Attributes:
        work: Folder of the studio's own files.
        labellings: By name.
        labs: Runs and scored labs by name.
        store: The decision store, None without one.
        policies: Folder of policy versions, None without one.
    """

    work: Path
    labellings: dict[str, Labelling] = field(default_factory=dict)
    labs: dict[str, Path] = field(default_factory=dict)
    store: Decisions | None = None
    policies: Path | None = None
    _watch: Watch = field(default_factory=Watch)
    _looking: Lock = field(default_factory=Lock)

    def findings(self) -> tuple[PolicyFindings, ...]:
        """Return promises and drift of the store's policies; later looks read what is new."""
        if self.store is None:
            return ()
        with self._looking:
            self._watch.refresh(self.store)
            return self._watch.findings

    def overview(self) -> list[LabellingSummary]:
        """Return all labellings with their state."""
        return [self.summary(name) for name in self.labellings]

    def summary(self, name: str) -> LabellingSummary:
        """Return one labelling with its state."""
        labelling = self.labellings[name]
        looks = len(read_looks(labelling.ledger))
        return LabellingSummary(name, labelling.progress(), looks, self.lab_of(name))

    def lab_of(self, name: str) -> Path | None:
        """Return the scored lab that a labelling was drawn from, None if it is not at hand."""
        folder = self.labellings[name].folder
        if (folder / LAB).is_file():
            return folder / LAB
        own = folder.resolve().parent == (self.work / LABELLINGS).resolve()
        try:
            about = json.loads((folder / ABOUT).read_text("utf-8"))
            lab = Path(folder / str(about["lab"]))
        except (OSError, ValueError, KeyError, TypeError):
            lab = None
        if lab is not None and not own and not lab.resolve().is_relative_to(folder.resolve()):
            lab = None  # somebody else's folder names a file elsewhere
        if lab is not None and lab.exists():
            return lab
        return next(iter(self.labs.values())) if len(self.labs) == 1 else None

    def all_labs(self) -> dict[str, Path]:
        """Return the scored labs by name, those of labellings among them."""
        found = dict(self.labs)
        for name in self.labellings:
            lab = self.lab_of(name)
            if lab is not None and lab not in found.values():
                found[name] = lab
        return found

    def version_files(self) -> dict[str, Path]:
        """Return the versions of policies by `name@version`, live ones first.

        Raises:
            ConfigurationError: If the folder cannot be read, or a file is not as it was added.
        """
        policies = [] if self.policies is None else read_folder(self.policies)
        found = sorted(
            (version.version != policy.alias.live, policy.name, -int(version.version), version)
            for policy in policies
            for version in policy.versions.values()
        )
        return {version.address: checked_path(version) for *_, version in found}

    def draw(self, lab_name: str, count: int, seed: int = 7) -> Labelling:
        """Draw a simple random sample of a lab and open it for labelling.

        Raises:
            KeyError: If there is no such lab.
            ConfigurationError: If the lab has fewer questions.
        """
        lab = self.labs[lab_name]
        drawn = draw(read_lab(lab).cases, count, seed)
        folder = self.new_folder(f"{lab_name}-{count}")
        with whole_file(folder / f"{TASKS[0]}.sample.jsonl") as stream:
            stream.write(sample_text(drawn))
        write_json(folder / ABOUT, {"lab": str(lab.resolve())})
        with whole_file(folder / TASKS[0]) as stream:
            stream.write(task_text(drawn, ".jsonl"))
        return self.open_labelling(folder)

    def new_folder(self, wanted: str) -> Path:
        """Return a new, empty folder for a labelling, its name close to the wanted one."""
        base = plain_name(wanted) or "labelling"
        root = self.work / LABELLINGS
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = 1
        while True:
            name = base if number == 1 else f"{base}-{number}"
            try:
                (root / name).mkdir(mode=0o700)
            except FileExistsError:
                number += 1
                continue
            return root / name

    def open_labelling(self, folder: Path) -> Labelling:
        """Open a labelling folder under its own name, or one close to it."""
        labelling = Labelling(folder)
        base = plain_name(folder.resolve().name) or "labelling"
        name, number = base, 2
        while name in self.labellings:
            name, number = f"{base}-{number}", number + 1
        labelling.name = name
        self.labellings[name] = labelling
        return labelling

    def close(self) -> None:
        """Let other processes open what is open here."""
        for labelling in self.labellings.values():
            labelling.close()
        if self.store is not None:
            self.store.close()


def open_workspace(
    work: Path,
    sources: Iterable[str],
    policies: Path | None = None,
    decision_keys: Path | None = None,
) -> Workspace:
    """Return the workspace of a studio.

    Args:
        work: Folder of the studio's own files; made if it is not there.
        sources: Run folders, scored labs, labelling folders, and at most one store's address.
        policies: Folder of policy versions.
        decision_keys: Keys with which the store's texts are read.

    Raises:
        ConfigurationError: Naming the source that is none of them.
    """
    workspace = Workspace(work, policies=policies)
    try:
        for folder in (work, work / LABELLINGS):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            str(work), error.strerror or type(error).__name__, "a folder to write into"
        ) from error
    for folder in sorted((work / LABELLINGS).iterdir()):
        if any((folder / name).is_file() for name in TASKS):
            workspace.open_labelling(folder)
    for source in sources:
        _open_source(workspace, source, decision_keys)
    return workspace


def _open_source(workspace: Workspace, source: str, decision_keys: Path | None) -> None:
    if "://" in source:
        if workspace.store is not None:
            raise ConfigurationError("studio", "two stores", "at most one")
        workspace.store = open_decisions(source, decision_keys, named_by="studio")
        return
    path = Path(source)
    if path.is_dir() and any((path / name).is_file() for name in TASKS):
        workspace.open_labelling(path)
    elif (path / MANIFEST).is_file() or (path.is_file() and _is_lab(path)):
        _add_lab(workspace, path)
    else:
        raise ConfigurationError(
            source,
            "none of the studio's sources",
            "a run folder, a scored lab, a folder with to_label.jsonl, or a store's address",
        )


def _add_lab(workspace: Workspace, path: Path) -> None:
    base = plain_name(path.resolve().stem) or "lab"
    name, number = base, 2
    while name in workspace.labs:
        name, number = f"{base}-{number}", number + 1
    workspace.labs[name] = path


def plain_name(text: str) -> str:
    """Return a name that is safe in an address and as a folder: letters, digits, single dashes."""
    kept = "".join(c if c.isascii() and c.isalnum() else " " for c in text.lower())
    return "-".join(kept.split())[:40].strip("-")


def _is_lab(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as stream:
            header = json.loads(stream.readline(1_000_000))
    except (OSError, ValueError):
        return False
    return isinstance(header, dict) and HEADER in header
