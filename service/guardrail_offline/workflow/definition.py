"""The definition of a workflow: documents, target, judge and the parameters of each step."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guardrail_offline.datasets.labs import file_sha256
from guardrail_offline.generation.source_documents import files_in, leads_out
from guardrail_offline.runs.shards import write_json
from guardrail_offline.workflow.folder import (
    DEFINITION,
    DOCUMENTS,
    SCHEMA_VERSION,
    STEPS,
    StepName,
    WorkflowFolder,
)
from guardrail_service.errors import ConfigurationError, choices

Share = Annotated[float, Field(gt=0, lt=1)]
CASES = "cases"
LABELS = "labels"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TopicParameters(_Strict):
    """Step 1; eight parameters are the manual's under its names."""

    top_n_words: Annotated[int, Field(ge=1, le=50)] = 6
    min_topic_size: Annotated[int, Field(ge=1)] = 3
    umap_neighbors: Annotated[int, Field(ge=2)] = 15
    umap_components: Annotated[int, Field(ge=1, le=100)] = 5
    umap_min_distance: Annotated[float, Field(ge=0, le=1)] = 0.1
    hdbscan_min_cluster_size: Annotated[int, Field(ge=2)] = 3
    hdbscan_min_samples: Annotated[int, Field(ge=1)] | None = None
    hdbscan_cluster_selection_epsilon: Annotated[float, Field(ge=0)] = 0.0
    reduction: Literal["pca", "umap"] = "pca"
    method: Literal["auto", "hdbscan", "kmeans"] = "auto"
    most_topics: Annotated[int, Field(ge=2, le=100)] = 12
    chunk_characters: Annotated[int, Field(ge=100, le=20_000)] = 1200
    seed: int = 7


class GenerationParameters(_Strict):
    """Step 2. No generator named: those that suit any document."""

    count: Annotated[int, Field(ge=1, le=100_000)] = 60
    generators: tuple[str, ...] = ()
    exclude_topics: tuple[str, ...] = ()
    exclude_chunks: tuple[str, ...] = ()
    seed: int = 7


class ValidationParameters(_Strict):
    """Step 3: keys that a person rejects or keeps whatever the checks say."""

    thresholds: Mapping[str, float] = {}
    reject: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()


class EvaluationParameters(_Strict):
    """Step 4."""

    evaluators: Annotated[tuple[str, ...], Field(min_length=1)] = (
        "answer_correctness", "faithfulness", "groundedness", "answer_relevancy_sentence",
        "no_answer",
    )  # fmt: skip
    judge_for: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


class CalibrationParameters(_Strict):
    """Step 5. `gates` names the metrics that decide; every primary metric if empty.

    `thresholds` are set by a person, by `evaluator.metric`; labels do not move them.
    """

    sample: Annotated[int, Field(ge=1)] = 60
    rule: Literal["false_flag", "youden", "max_f1"] = "false_flag"
    alpha: Share = 0.1
    delta: Share = 0.1
    gates: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = {}
    adjudicator: str = "adjudicator"
    seed: int = 7


class FailureParameters(_Strict):
    """Step 6. `causes` are people's words for single failures, by case key."""

    least: Annotated[int, Field(ge=4)] = 10
    trees: Annotated[int, Field(ge=50, le=5000)] = 300
    most_clusters: Annotated[int, Field(ge=2, le=50)] = 8
    causes: Mapping[str, str] = {}
    seed: int = 7


class WeaknessParameters(_Strict):
    """Step 7."""

    dimensions: tuple[str, ...] = (
        "topic", "generator", "category", "length", "language", "document", "passages",
    )  # fmt: skip
    pairs: tuple[tuple[str, str], ...] = (("topic", "generator"),)
    alpha: Share = 0.05
    least: Annotated[int, Field(ge=2)] = 5
    seed: int = 7


class VariationParameters(_Strict):
    """Step 8."""

    by: str = "random_keyboard_typos,comma,word_swap,synonym"
    intensity: str = "medium"
    cases: Annotated[int, Field(ge=1)] = 20
    lexicon: Literal["shipped", "wordnet", "auto"] = "shipped"
    seed: int = 7


class AdversarialParameters(_Strict):
    """Step 9. No generator named: all adversarial ones."""

    count: Annotated[int, Field(ge=1, le=100_000)] = 30
    generators: tuple[str, ...] = ()
    resamples: Annotated[int, Field(ge=200, le=100_000)] = 2000
    alpha: Share = 0.05
    seed: int = 7


PARAMETERS: Mapping[StepName, type[_Strict]] = {
    "topics": TopicParameters,
    "generation": GenerationParameters,
    "validation": ValidationParameters,
    "evaluation": EvaluationParameters,
    "calibration": CalibrationParameters,
    "failures": FailureParameters,
    "weaknesses": WeaknessParameters,
    "variations": VariationParameters,
    "adversarial": AdversarialParameters,
}


class StoredFile(_Strict):
    """A file in the folder, with its hash when it was put there."""

    path: str
    sha256: str


class TargetChoice(_Strict):
    """The system under test: an address, or a file with the answers that it gave.

    Attributes:
        target: As `guardrail ask` has it.
        answers: File in the folder, whose cases have answers.
        contexts: Whether the target is given the passages that a case was made from; a system that
            searches by itself is not.
    """

    target: str | None = None
    model: str | None = None
    kind: str | None = None
    key_env: str | None = None
    contexts: bool = False
    answers: str | None = None
    template: str | None = None

    @property
    def asks(self) -> bool:
        """Return whether a system is asked; else answers are given."""
        return self.target is not None or self.template is not None


class JudgeChoice(_Strict):
    """A judge; its key comes from the environment. `store` is a file in the folder."""

    url: str
    model: str
    kind: str | None = None
    mode: Literal["read-write", "replay", "off"] = "read-write"
    store: str = "judge.sqlite"
    options: Mapping[str, Any] = {}
    concurrency: Annotated[int, Field(ge=1, le=64)] = 8
    timeout_s: Annotated[float, Field(gt=0)] = 60.0


class Definition(_Strict):
    """The content of `workflow.json`."""

    schema_version: Literal["1"] = "1"
    name: str = "workflow"
    description: str = ""
    documents: tuple[StoredFile, ...] = ()
    cases: str | None = None
    labels: str | None = None
    target: TargetChoice | None = None
    judge: JudgeChoice | None = None
    received: bool = False
    """Whether target and judge were chosen by whoever shared it, and nobody here has agreed."""
    pack: str = "embedded"
    steps: Mapping[StepName, Mapping[str, Any]] = {}

    def parameters(self, step: StepName) -> Any:
        """Return a step's parameters, checked.

        Raises:
            ConfigurationError: Naming the parameter, what was found and what was expected.
        """
        return checked(PARAMETERS[step], self.steps.get(step, {}), step)


def checked(kind: type[_Strict], values: Any, where: str) -> Any:
    """Return values as a model.

    Raises:
        ConfigurationError: Naming the first key that does not fit.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, (where, *first["loc"])))
        if first["type"] == "extra_forbidden":
            known = kind.model_fields
            hint = choices(str(first["loc"][-1]), known, "parameter")
            raise ConfigurationError(place, "an unknown name", hint) from error
        raise ConfigurationError(place, repr(first["input"])[:60], first["msg"]) from error


def refuse_received(definition: Definition, part: str) -> None:
    """Ask nobody whom somebody else chose.

    Raises:
        ConfigurationError: If the workflow was received and not trusted since.
    """
    if definition.received:
        raise ConfigurationError(
            f"{DEFINITION}: {part}",
            "chosen by whoever shared this workflow",
            "a look at that file, then guardrail workflow edit FOLDER --trust",
        )


def read_definition(folder: WorkflowFolder) -> Definition:
    """Return what people chose.

    Raises:
        ConfigurationError: If the file is no such one.
    """
    found = checked(Definition, folder.content(DEFINITION), DEFINITION)
    assert isinstance(found, Definition)  # noqa: S101 - `checked` gives what it is asked for
    for step in STEPS:
        found.parameters(step)
    return found


def write_definition(folder: WorkflowFolder, definition: Definition) -> None:
    """Write what people chose, every parameter with its value."""
    content = definition.model_dump(mode="json")
    content["schema_version"] = SCHEMA_VERSION
    content["steps"] = {step: definition.parameters(step).model_dump(mode="json") for step in STEPS}
    write_json(folder.definition, content)


def create(
    root: Path,
    documents: Sequence[Path] = (),
    *,
    name: str | None = None,
    description: str = "",
    target: TargetChoice | None = None,
    judge: JudgeChoice | None = None,
    cases: Path | None = None,
    labels: Path | None = None,
    pack: str = "embedded",
    assignments: Iterable[str] = (),
    files: Mapping[str, Path] | None = None,
) -> WorkflowFolder:
    """Make the folder of a workflow with copies of everything it reads.

    Args:
        root: A folder that is not there, or empty.
        documents: Files, or folders of them.
        name: For people; the folder's name if None.
        description: For people.
        target: Who is tested; None until `edit` names one.
        judge: None for judge-free forms.
        cases: Lab of cases that people made.
        labels: Human labels, as `guardrail calibrate` reads them.
        pack: Model pack.
        assignments: Parameters, each `STEP.name=value`.
        files: Further files to copy, by their name in the folder: answers, a template, a judge's
            transcripts.

    Raises:
        ConfigurationError: If the folder has content, a file is not there or a value is wrong.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise ConfigurationError(str(root), "a folder with content", "an empty or new folder")
    folder = WorkflowFolder(root)
    root.mkdir(parents=True, exist_ok=True)
    definition = Definition(
        name=name or root.resolve().name,
        description=description,
        documents=copied_documents(folder, documents),
        cases=copied(folder, cases, CASES),
        labels=copied(folder, labels, LABELS),
        target=target,
        judge=judge,
        pack=pack,
    )
    place_files(folder, files or {})
    write_definition(folder, assigned(definition, assignments))
    return folder


def assigned(definition: Definition, assignments: Iterable[str]) -> Definition:
    """Return the definition with other parameters, each `STEP.name=value`; all are checked.

    Raises:
        ConfigurationError: Naming the step or parameter.
    """
    steps: dict[StepName, dict[str, Any]] = {
        step: dict(definition.steps.get(step, {})) for step in STEPS
    }
    for text in assignments:
        place, equals, value = text.partition("=")
        name, dot, key = place.strip().partition(".")
        step = next((one for one in STEPS if one == name), None)
        if not (equals and dot and key):
            raise ConfigurationError("--set", repr(text)[:60], "STEP.parameter=value")
        if step is None:
            raise ConfigurationError("--set", repr(name)[:40], choices(name, STEPS, "step"))
        try:
            steps[step][key] = json.loads(value)
        except ValueError:
            steps[step][key] = value
    found = definition.model_copy(update={"steps": steps})
    for step in STEPS:
        found.parameters(step)
    return found


def place_files(folder: WorkflowFolder, files: Mapping[str, Path]) -> None:
    """Copy files into the folder, each under the name it is given.

    Raises:
        ConfigurationError: If one is not there.
    """
    for name, path in files.items():
        if not path.is_file():
            raise ConfigurationError(str(path), "no such file", f"the file that becomes {name}")
        _copy(path, folder.root / name)


def with_documents(
    folder: WorkflowFolder,
    definition: Definition,
    add: Sequence[Path] | None,
    remove: Sequence[str] | None,
) -> Definition:
    """Return the definition with documents put in and taken out; one of the same name is replaced.

    Raises:
        ConfigurationError: If a document to take out is not there.
    """
    found = {one.path: one for one in definition.documents}
    for name in remove or ():
        place = name if name in found else f"{DOCUMENTS}/{name}"
        if place not in found:
            raise ConfigurationError("--remove", repr(name)[:60], choices(name, found, "document"))
        del found[place]
        (folder.root / place).unlink(missing_ok=True)
    found |= {one.path: one for one in copied_documents(folder, add or ())}
    documents = tuple(found[place] for place in sorted(found))
    return definition.model_copy(update={"documents": documents})


def copied_documents(folder: WorkflowFolder, paths: Iterable[Path]) -> tuple[StoredFile, ...]:
    """Copy documents into the folder, and return them in the order of their names.

    Raises:
        ConfigurationError: If one is not there, or two would have one name.
    """
    found: dict[str, StoredFile] = {}
    for path in paths:
        if not path.exists():
            raise ConfigurationError(str(path), "no such file", "a document")
        root = path if path.is_dir() else path.parent
        for part in files_in(path) if path.is_dir() else [path]:
            place = f"{DOCUMENTS}/{part.relative_to(root).as_posix()}"
            _refuse_unsafe(part, path, place)
            if not part.is_file():
                continue
            if place in found:
                raise ConfigurationError(str(part), f"a second {place}", "each name once")
            _copy(part, folder.root / place)
            found[place] = StoredFile(path=place, sha256=file_sha256(folder.root / place))
    return tuple(found[place] for place in sorted(found))


def _refuse_unsafe(part: Path, given: Path, place: str) -> None:
    """Raise if a document is none that can lie in the folder, which may be shared."""
    if given.is_dir() and leads_out(part, given):
        found, expected = "a link that leads out of its folder", "files; copy it there to use it"
        raise ConfigurationError(str(part), found, expected)
    if part.is_dir():
        raise ConfigurationError(str(part), "a folder that cannot be listed", "documents")
    if not place.isprintable():
        expected = "a name of printable signs in UTF-8"
        raise ConfigurationError(ascii(place)[:80], "other signs in a file's name", expected)


def copied(folder: WorkflowFolder, path: Path | None, name: str) -> str | None:
    """Copy a file into the folder under a name of its own, and return that; None for none."""
    if path is None:
        return None
    if not path.is_file():
        raise ConfigurationError(str(path), "no such file", f"a file with {name}")
    place = f"{name}{path.suffix.lower()}"
    _copy(path, folder.root / place)
    return place


def _copy(source: Path, target: Path) -> None:
    """Copy a file, whole or not at all; one that lies there already stays."""
    if target.exists() and source.resolve() == target.resolve():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.tmp")
    try:
        shutil.copyfile(source, temporary)
        temporary.replace(target)
    except OSError as error:
        raise ConfigurationError(str(source), type(error).__name__, "a file to copy") from error
    finally:
        temporary.unlink(missing_ok=True)
