"""Evaluations: evaluators over answered cases, in a thread, kept in the client's folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guardrail_offline.datasets.cases import Case, Lab
from guardrail_offline.datasets.h2o_labs import lab_json, read_json
from guardrail_offline.evaluators.catalogue import CATALOGUE, EvaluatorSpec
from guardrail_offline.evaluators.configured import Configured, configure
from guardrail_offline.h2o_client.client_folder import ClientFolder, KeptObject, KeptObjects
from guardrail_offline.h2o_client.client_work import OPEN, ClientWork, EvaluationFailed
from guardrail_offline.hosts.asking import Journal, ask_cases
from guardrail_offline.hosts.opening import HostChoice
from guardrail_offline.hosts.targets import open_target
from guardrail_offline.runs.leaderboards import leaderboard
from guardrail_offline.runs.shards import whole_file
from guardrail_offline.runs.totals import EvaluatorTally
from guardrail_offline.runs.worker import models_for, score


@dataclass(frozen=True)
class EvaluatorInfo:
    """One entry in a list of evaluators; `key` is our id."""

    key: str
    name: str
    description: str
    keywords: tuple[str, ...]
    spec: EvaluatorSpec = field(repr=False, compare=False)


class _Evaluators:
    """The evaluators a client can run."""

    def list(self) -> list[EvaluatorInfo]:
        """Return all of them."""
        return [self._info(spec) for spec in CATALOGUE.specs()]

    def get(self, key: str) -> EvaluatorInfo:
        """Return one by any of its names."""
        return self._info(CATALOGUE.find(key, "evaluators.get").spec)

    def _info(self, spec: EvaluatorSpec) -> EvaluatorInfo:
        return EvaluatorInfo(spec.id, spec.name, spec.summary, spec.tags, spec)


EvaluatorsGiven = EvaluatorInfo | str | Sequence[EvaluatorInfo | str]


@dataclass(frozen=True)
class AskedHost:
    """A host to ask before anything is judged, without any key.

    Attributes:
        address: As `guardrail ask --target` takes it.
        models: Key of a lab's model, and its name on the host.
        key_variable: Environment variable with the key.
        settings: Fields of every request.
        gives_passages: Whether the host is given the cases' passages.
    """

    address: str
    models: Mapping[str, str]
    key_variable: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    gives_passages: bool = True


@dataclass(frozen=True)
class Evaluation(KeptObject):
    """A run of evaluators over a lab, which fills by itself: H2O's leaderboard or dashboard.

    It is kept in the client's folder. When the process that runs it is gone, whoever waits for it
    goes on; answers that a host has given already are not asked again.
    """

    @property
    def finished(self) -> bool:
        """Return whether it is over, for good or ill."""
        return self._record["state"] not in OPEN

    @property
    def successful(self) -> bool:
        """Return whether it is over without an error."""
        return bool(self._record["state"] == "finished")

    @property
    def not_answered(self) -> Mapping[str, int]:
        """Return how many cases a host gave no answer to, by the error; they are not judged."""
        return dict(self._record["not_answered"])

    def wait_to_finish(self, timeout: float | None = None, verbose: bool = False) -> None:
        """Wait until the run is over.

        Args:
            timeout: In seconds; None for as long as it takes.
            verbose: Whether its states are logged.

        Raises:
            TimeoutError: If it is not over by then; it goes on.
            EvaluationFailed: If something stopped it.
        """
        self.work.wait(timeout, verbose)

    def get_table(self) -> list[dict[str, Any]]:
        """Return a row per evaluator and model, the best first: the mean of each metric."""
        self.wait_to_finish()
        return [row for board in self._record["boards"] for row in _rows(board)]

    def get_result_json(self) -> str:
        """Return the leaderboards with everything they say, as JSON."""
        self.wait_to_finish()
        return json.dumps(self._record["boards"], indent=1)

    def lab(self) -> Lab:
        """Return the cases with the answers that are judged."""
        answered = self._place / "answered.json"
        return read_json(answered if answered.exists() else self._place / "lab.json")

    def delete(self) -> None:
        """Take the evaluation away with its answers and results."""
        self._folder.delete(self.key)

    @property
    def work(self) -> ClientWork:
        """Return what has to be done, for whoever starts it or waits for it."""
        return ClientWork(self._folder, self.key, lambda: self._record, self._say, self._work)

    @property
    def _place(self) -> Path:
        return self._folder.place(self.key)

    def _work(self) -> None:
        record = self._record
        chosen = [one for name, options in record["runs"] for one in configure([name], options)]
        lab = self._asked(record["host"])
        self._say(state="finished", boards=_boards(lab, chosen, self.pack))

    def _asked(self, host: Mapping[str, Any] | None) -> Lab:
        lab = read_json(self._place / "lab.json")
        if host is None:
            return lab
        cases, failed = lab.cases, dict[str, int]()
        for key, name in host["models"].items():
            choice = HostChoice(
                host["address"], None, name, host["key_variable"], host["settings"], option="model"
            )
            journal = Journal(self._place / f"answers-{key}.jsonl")
            asked = ask_cases(
                cases, open_target(choice), journal, contexts=host["gives_passages"], model=key
            )
            if asked.stopped is not None:
                raise EvaluationFailed(asked.stopped)
            cases = asked.cases
            for code, count in asked.failed.items():
                failed[code] = failed.get(code, 0) + count
        had = tuple(case for case in cases if case.answer is not None)
        answered = Lab(had, lab.models, lab.name, lab.description)
        _write_lab(self._place / "answered.json", answered)
        self._say(not_answered=failed)
        return answered

    def _say(self, **changed: Any) -> None:
        with self._folder.change(self.key) as record:
            record.update(changed)


def begin(
    folder: ClientFolder,
    pack: str,
    name: str,
    lab: Lab,
    evaluators: EvaluatorsGiven,
    parameters: Mapping[str, Any] | None = None,
    host: AskedHost | None = None,
    description: str = "",
) -> Evaluation:
    """Keep an evaluation and start it.

    Raises:
        ConfigurationError: If there is no such evaluator, or it has no such parameter.
    """
    given = [evaluators] if isinstance(evaluators, EvaluatorInfo | str) else list(evaluators)
    names = [one if isinstance(one, str) else one.key for one in given]
    runs = [
        (name, [f"{name}.{key}={json.dumps(value)}" for key, value in (parameters or {}).items()])
        for name in names
    ]
    for one, options in runs:
        configure([one], options)
    record = {
        "name": name,
        "description": description,
        "runs": runs,
        "host": None if host is None else vars(host),
        "state": "waiting",
        "boards": [],
        "not_answered": {},
        "error": None,
    }
    key = folder.add("evaluation", record)["key"]
    _write_lab(folder.place(key) / "lab.json", lab)
    evaluation = Evaluation(key, pack, folder)
    evaluation.work.start()
    return evaluation


@dataclass(frozen=True)
class _Evaluations(KeptObjects[Evaluation]):
    """The evaluations of a client."""

    _kind = "evaluation"

    def _opened(self, record: Mapping[str, Any]) -> Evaluation:
        return Evaluation(record["key"], self._pack, self._folder)


def _boards(lab: Lab, chosen: Sequence[Configured], pack: str) -> list[dict[str, Any]]:
    found = score(list(enumerate(lab.cases)), chosen, models_for(chosen, pack))
    return [
        leaderboard(_tallied(one, lab.cases, [found[i] for i in range(len(found))]), lab.models)
        for one in chosen
    ]


def _tallied(
    one: Configured, cases: Sequence[Case], results: Iterable[Mapping[str, Any]]
) -> EvaluatorTally:
    tally = EvaluatorTally(one)
    for case, result in zip(cases, results, strict=True):
        tally.add(case.model, result[one.id])
    return tally


def _rows(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"evaluator": board["evaluator"], "model": row["name"]}
        | {key: cell["value"] for key, cell in row["metrics"].items()}
        for row in board["rows"]
    ]


def _write_lab(path: Path, lab: Lab) -> None:
    with whole_file(path) as stream:
        json.dump(lab_json(lab), stream)
