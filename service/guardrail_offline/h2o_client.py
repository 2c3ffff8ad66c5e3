"""H2O Eval Studio's client, where it needs no server: tests, suites, labs, leaderboards."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from guardrail_offline.datasets.cases import Case, Lab, Model, group_of
from guardrail_offline.datasets.columns import RowPlace, case_of
from guardrail_offline.datasets.h2o_labs import lab_of_json
from guardrail_offline.datasets.suite_files import h2o_suite
from guardrail_offline.evaluators.catalogue import CATALOGUE, EvaluatorSpec
from guardrail_offline.evaluators.configured import Configured, configure
from guardrail_offline.perturbation.variants import Intensity, parse, perturb
from guardrail_offline.runs.leaderboards import leaderboard
from guardrail_offline.runs.totals import EvaluatorTally
from guardrail_offline.runs.worker import models_for, score
from guardrail_service.types import Passage


@dataclass
class LabModel:
    """A system under test and what it answered."""

    lab: TestLab
    model: Model

    def add_input(
        self,
        prompt: str,
        actual_output: str,
        context: Sequence[str] | None = None,
        expected_output: str | None = None,
        corpus: Sequence[str] = (),
        condition: str | None = None,
        categories: Sequence[str] = (),
        actual_duration: float | None = None,
        cost: float | None = None,
    ) -> Case:
        """Add one answered case and return it."""
        key = f"{self.model.key}-{len(self.lab.cases) + 1}"
        case = Case(
            key=key,
            question=prompt,
            answer=actual_output,
            expected=expected_output,
            contexts=None if context is None else tuple(map(Passage, context)),
            condition=condition,
            categories=tuple(categories),
            corpus=tuple(corpus),
            duration_s=actual_duration,
            cost=cost,
            model=self.model.key,
            group=group_of(prompt, key),
        )
        self.lab.cases.append(case)
        return case


@dataclass
class TestLab:
    """Cases with answers that were computed elsewhere. Made by `Client().test_labs.create`."""

    __test__ = False  # the name is H2O's; it is no test of pytest's

    name: str
    description: str = ""
    pack: str = "embedded"
    models: list[LabModel] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)

    def add_model(
        self,
        name: str,
        llm_model_name: str = "",
        model_type: str = "rag",
        documents: Sequence[str] = (),
    ) -> LabModel:
        """Add a system under test and return it."""
        key = f"model-{len(self.models) + 1}"
        details = {"documents": list(documents)} if documents else {}
        added = LabModel(self, Model(key, name, llm_model_name, model_type, details))
        self.models.append(added)
        return added

    def as_lab(self) -> Lab:
        """Return the lab's cases and models as values."""
        models = tuple(added.model for added in self.models)
        return Lab(tuple(self.cases), models, self.name, self.description)

    def evaluate(self, evaluator: EvaluatorInfo | str, **parameters: Any) -> Leaderboard:
        """Start an evaluator over the cases and return its leaderboard, which fills by itself."""
        name = evaluator if isinstance(evaluator, str) else evaluator.key
        options = [f"{name}.{key}={json.dumps(value)}" for key, value in parameters.items()]
        return Leaderboard(self.as_lab(), configure([name], options)[0], self.pack)


class Leaderboard:
    """One evaluator's run over a lab, in a thread of its own."""

    def __init__(self, lab: Lab, configured: Configured, pack: str) -> None:
        self._lab = lab
        self._configured = configured
        self._pack = pack
        self._tally = EvaluatorTally(configured)
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait_to_finish(self, timeout: float | None = None) -> None:
        """Wait until the run is over.

        Raises:
            TimeoutError: If it is not after so many seconds; it goes on.
            Exception: What stopped the run, if something did.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"not finished after {timeout} s")
        if self._error is not None:
            raise self._error

    def get_table(self) -> list[dict[str, Any]]:
        """Return a row per model, the best first: its name and the mean of each metric."""
        self.wait_to_finish()
        board = leaderboard(self._tally, self._lab.models)
        return [
            {"model": row["name"], **{key: cell["value"] for key, cell in row["metrics"].items()}}
            for row in board["rows"]
        ]

    def _run(self) -> None:
        try:
            models = models_for([self._configured], self._pack)
            found = score(list(enumerate(self._lab.cases)), [self._configured], models)
            for index, case in enumerate(self._lab.cases):
                self._tally.add(case.model, found[index][self._configured.id])
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            self._error = error


@dataclass(frozen=True)
class EvaluatorInfo:
    """One entry in a list of evaluators; `key` is our id."""

    key: str
    name: str
    description: str
    spec: EvaluatorSpec = field(repr=False)


class _Evaluators:
    """The evaluators a client can run."""

    def list(self) -> list[EvaluatorInfo]:
        """Return all of them."""
        return [self._info(spec) for spec in CATALOGUE.specs()]

    def get(self, key: str) -> EvaluatorInfo:
        """Return one by any of its names."""
        return self._info(CATALOGUE.find(key, "evaluators.get").spec)

    def _info(self, spec: EvaluatorSpec) -> EvaluatorInfo:
        return EvaluatorInfo(spec.id, spec.name, spec.summary, spec)


@dataclass(frozen=True)
class _TestLabs:
    """Makes test labs."""

    pack: str

    def create(self, name: str, description: str = "") -> TestLab:
        """Return an empty lab."""
        return TestLab(name, description, self.pack)


@dataclass(frozen=True)
class TestDocument:
    """A document that questions are about; `url` is how test cases name it."""

    __test__ = False

    name: str
    url: str
    description: str = ""


@dataclass
class Test:
    """Test cases that nobody has answered yet. Made by `Client().tests`."""

    __test__ = False

    key: str
    name: str
    description: str = ""
    documents: list[TestDocument] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)

    @property
    def test_cases(self) -> list[Case]:
        """Return the cases, with the test's documents as their corpus."""
        corpus = tuple(document.url for document in self.documents)
        return [replace(case, corpus=corpus, test_key=self.key) for case in self.cases]

    def create_test_case(
        self,
        prompt: str,
        answer: str,
        constraints: Sequence[str | Sequence[str]] = (),
        condition: str = "",
        categories: Sequence[str] = (),
    ) -> Case:
        """Add a case and return it.

        Args:
            prompt: The question.
            answer: The expected answer.
            constraints: Texts that all have to be in the answer; of an inner list one has to be.
            condition: In the language of text matching, in place of constraints.
            categories: Free words about the case.

        Raises:
            ConfigurationError: If the condition is none.
        """
        key = f"{self.key}-{len(self.cases) + 1}"
        record = {
            "key": key,
            "prompt": prompt,
            "expected_output": answer,
            "constraints": list(constraints),
            "condition": condition,
            "categories": list(categories),
        }
        self.cases.append(case_of(record, RowPlace(self.name, len(self.cases) + 1)))
        return self.cases[-1]

    def remove_test_case(self, key: str) -> None:
        """Take a case out; KeyError if there is none with this key."""
        left = [case for case in self.cases if case.key != key]
        if len(left) == len(self.cases):
            raise KeyError(key)
        self.cases = left

    def create_document(self, name: str, url: str, description: str = "") -> TestDocument:
        """Make a document, link it and return it."""
        made = TestDocument(name, url, description)
        self.link_document(made)
        return made

    def link_document(self, document: TestDocument) -> None:
        """Let the test's questions be about a document, too."""
        if document not in self.documents:
            self.documents.append(document)

    def unlink_document(self, document: TestDocument) -> None:
        """Take a document away; ValueError if it is not linked."""
        self.documents.remove(document)

    def json(self) -> str:
        """Return the test as a suite, as H2O's import reads it."""
        return suite_text([self], self.name, self.description)


def suite_text(tests: Iterable[Test], name: str = "", description: str = "") -> str:
    """Return tests as one of H2O's test suites, which `import_test_suite` reads."""
    return h2o_suite([case for test in tests for case in test.test_cases], name, description)


class _Tests:
    """Keeps tests while the client lives."""

    def __init__(self) -> None:
        self._kept: dict[str, Test] = {}
        self._made = 0

    def create(
        self, name: str, description: str = "", documents: Sequence[TestDocument] = ()
    ) -> Test:
        """Return a new test without cases."""
        self._made += 1
        made = Test(f"test-{self._made}", name, description, [*documents])
        self._kept[made.key] = made
        return made

    def get(self, key: str) -> Test:
        """Return a test; KeyError if there is none with this key."""
        return self._kept[key]

    def delete(self, key: str) -> None:
        """Take a test away; KeyError if there is none with this key."""
        del self._kept[key]

    def clone(self, key: str, name: str = "", description: str = "") -> Test:
        """Return a new test with the documents and cases of another one."""
        known = self.get(key)
        made = self.create(name or known.name, description or known.description, known.documents)
        made.cases = [*known.cases]
        return made

    def perturb(
        self,
        key: str,
        new_test_name: str,
        perturbators: Sequence[str],
        intensity: Intensity = "medium",
        seed: int = 0,
    ) -> Test:
        """Return a new test with the cases of another one and a variant per perturbation."""
        made = self.clone(key, new_test_name)
        chains = [parse(name) for name in perturbators]
        made.cases = [*perturb(made.cases, chains, [intensity], seed).cases]
        return made

    def import_test_suite(self, test_suite: str, name_prefix: str = "") -> list[Test]:
        """Return the tests of a suite in H2O's JSON, each a new one.

        Args:
            test_suite: The JSON.
            name_prefix: Of the tests' names, which are the suite's with a number.

        Raises:
            ConfigurationError: If it is no suite; messages name the place.
        """
        where = Path("test suite")
        lab = lab_of_json(where, test_suite)
        content = json.loads(test_suite)
        made = []
        for number, part in enumerate(content.get("tests", ()), start=1):
            cases = lab_of_json(where, json.dumps({**content, "tests": [part]})).cases
            test = self.create(f"{name_prefix}{lab.name} {number}".strip(), lab.description)
            test.cases = [replace(case, corpus=(), test_key=None) for case in cases]
            for url in dict.fromkeys(url for case in cases for url in case.corpus):
                test.create_document(url.rsplit("/", 1)[-1], url)
            made.append(test)
        return made

    def list(self) -> list[Test]:
        """Return all tests, in the order they were made."""
        return [*self._kept.values()]


class Client:
    """Tests and test labs of H2O Eval Studio's client, kept here instead of on a server.

    `guardrail ask` asks a system the questions of a suite; nothing is generated from
    documents.

    Args:
        pack: Model pack.
    """

    def __init__(self, pack: str = "embedded") -> None:
        self.evaluators = _Evaluators()
        self.tests = _Tests()
        self.test_labs = _TestLabs(pack)
