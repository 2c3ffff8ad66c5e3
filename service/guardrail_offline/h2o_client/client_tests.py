"""Tests: questions with expected answers that nobody has answered yet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from guardrail_offline.datasets.cases import Case, case_from_json, case_json
from guardrail_offline.datasets.columns import RowPlace, case_of
from guardrail_offline.datasets.labs import lab_of_text
from guardrail_offline.datasets.suite_files import h2o_suite
from guardrail_offline.h2o_client.client_documents import TestDocument, _Documents
from guardrail_offline.h2o_client.client_folder import KeptObject, KeptObjects, moment
from guardrail_offline.h2o_client.client_generation import (
    TestCaseGenerator,
    generated_cases,
    generator_ids,
    sources_of,
)
from guardrail_offline.h2o_client.client_work import OPEN, ClientWork
from guardrail_offline.perturbation.variants import Intensity, parse, perturb
from guardrail_service.errors import ConfigurationError


@dataclass(frozen=True)
class TestCase:
    """A question with its expected answer.

    Attributes:
        key: Of the case in its test.
        prompt: The question.
        answer: The expected answer.
        constraints: Texts that have to be in the answer, as they were given.
        condition: The same in the language of text matching.
        case: As evaluators read it, with no answer of a model.
        create_time: When it was made.
        update_time: When it was changed.
    """

    __test__ = False

    key: str
    prompt: str
    answer: str
    constraints: tuple[Any, ...]
    condition: str
    case: Case = field(repr=False)
    create_time: datetime | None = field(default=None, compare=False)
    update_time: datetime | None = field(default=None, compare=False)

    @property
    def categories(self) -> tuple[str, ...]:
        """Return free words about the case."""
        return self.case.categories

    @property
    def generator(self) -> str:
        """Return the generator that made it; empty if a person did."""
        return next(iter(self._named("generator:")), "")

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the topics of the corpus that it is about."""
        return self._named("topic:")

    @property
    def perturbed_by(self) -> tuple[str, ...]:
        """Return by what a variant was perturbed; empty if it is none."""
        return self._named("perturbed_by:")

    def _named(self, prefix: str) -> tuple[str, ...]:
        return tuple(w.removeprefix(prefix) for w in self.categories if w.startswith(prefix))


@dataclass(frozen=True)
class Test(KeptObject):
    """Test cases that nobody has answered yet. Made by `Client().tests`.

    Each attribute is read from the client's folder, so another process sees changes.
    """

    __test__ = False

    @property
    def create_time(self) -> datetime:
        """Return when it was made."""
        return moment(self._record, "create_time")

    @property
    def update_time(self) -> datetime:
        """Return when it was last changed."""
        return moment(self._record, "update_time")

    @property
    def documents(self) -> list[TestDocument]:
        """Return the documents it is linked to."""
        found, known = [], _Documents(self._folder)
        for key in self._record["documents"]:
            with suppress(KeyError):  # deleted in the meantime
                found.append(known.get(key))
        return found

    @property
    def test_cases(self) -> list[TestCase]:
        """Return the cases, with the test's documents as their corpus."""
        corpus = tuple(document.url for document in self.documents)
        return [_test_case(one, corpus, self.key) for one in self._record["cases"]]

    @property
    def cases(self) -> list[Case]:
        """Return the cases as evaluators and `guardrail ask` read them."""
        return [one.case for one in self.test_cases]

    def create_test_case(
        self,
        prompt: str,
        answer: str,
        constraints: Sequence[str | Sequence[str]] | None = None,
        condition: str = "",
        categories: Sequence[str] = (),
    ) -> TestCase:
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
        given = [one if isinstance(one, str) else list(one) for one in constraints or ()]
        record = {
            "prompt": prompt,
            "expected_output": answer,
            "constraints": given,
            "condition": condition,
            "categories": list(categories),
        }
        place = RowPlace("create_test_case", 1)
        return self.add_cases([case_of({**record, "key": "new"}, place)], given)[0]

    def add_cases(self, cases: Iterable[Case], constraints: Sequence[Any] = ()) -> list[TestCase]:
        """Add cases without answers and return them; each gets a key of this test."""
        with self._folder.change(self.key) as record:
            kept = _append(record, cases, constraints)
        return [_test_case(one, (), self.key) for one in kept]

    def remove_test_case(self, key: str) -> None:
        """Take a case out; KeyError if there is none with this key."""
        with self._folder.change(self.key) as record:
            left = [one for one in record["cases"] if one["case"]["key"] != key]
            if len(left) == len(record["cases"]):
                raise KeyError(key)
            record["cases"] = left

    def create_document(self, name: str, url: str, description: str = "") -> TestDocument:
        """Make a document, link it and return it."""
        made = _Documents(self._folder).create(name, url, description)
        self.link_document(made)
        return made

    def link_document(self, document: TestDocument) -> None:
        """Let the test's questions be about a document, too."""
        with self._folder.change(self.key) as record:
            if document.key not in record["documents"]:
                record["documents"].append(document.key)

    def unlink_document(self, document: TestDocument | str) -> None:
        """Take a document, or the one with this key, away; ValueError if it is not linked."""
        key = document if isinstance(document, str) else document.key
        with self._folder.change(self.key) as record:
            record["documents"].remove(key)

    def generate_test_cases(
        self,
        count: int,
        model: str | None = None,
        base_llm_model: str | None = None,
        generators: Sequence[TestCaseGenerator | str] | None = None,
        existing_collection: str | None = None,
    ) -> None:
        """Start to make test cases from the documents; `wait_for_test_case_generation` waits.

        Args:
            count: At most so many; checks refuse some.
            model: Has no effect: rules make the cases.
            base_llm_model: Has no effect.
            generators: Kinds of questions; those that suit any document if none are named.
            existing_collection: A collection of the client's folder, beside the linked files.

        Raises:
            ConfigurationError: If a generator is not known, or there is no file to read.
        """
        if count < 1:
            raise ConfigurationError("count", str(count), "1 or more")
        options = {
            "generators": generator_ids(generators),
            "count": count,
            "sources": sources_of(self._folder, self.documents, existing_collection),
        }
        with self._folder.change(self.key) as record:
            if (record.get("generation") or {}).get("state") in OPEN:
                raise ConfigurationError("generate_test_cases", "one that runs", "one at a time")
            record["generation"] = {"state": "waiting", "error": None, "options": options}
        self._generation.start()

    def wait_for_test_case_generation(
        self, timeout: float | None = None, verbose: bool = False
    ) -> None:
        """Wait until the test cases are there.

        Raises:
            TimeoutError: If they are not after so many seconds; the work goes on.
            EvaluationFailed: If something stopped it.
            ConfigurationError: If nothing was started.
        """
        if self._record.get("generation") is None:
            expected = "generate_test_cases before it"
            raise ConfigurationError(
                "wait_for_test_case_generation", "nothing to wait for", expected
            )
        self._generation.wait(timeout, verbose)

    def perturb(
        self,
        new_test_name: str,
        perturbators: str | Sequence[str],
        new_test_description: str = "",
        intensity: Intensity = "medium",
        seed: int = 0,
    ) -> Test:
        """Return a new test with these cases and a variant of each per perturbation."""
        chains = [perturbators] if isinstance(perturbators, str) else perturbators
        made = perturb(self.cases, [parse(name) for name in chains], [intensity], seed)
        copy = _Tests(self._folder, self.pack).create(
            new_test_name, new_test_description, self.documents
        )
        copy.add_cases(made.cases)
        return copy

    def delete(self) -> None:
        """Take the test away for good."""
        self._folder.delete(self.key)

    def json(self) -> str:
        """Return the test as a suite, as H2O's import reads it."""
        return suite_text([self], self.name, self.description)

    @property
    def _generation(self) -> ClientWork:
        return ClientWork(
            self._folder,
            self.key,
            lambda: self._record["generation"],
            self._say_of_generation,
            self._generate,
        )

    def _say_of_generation(self, **changed: Any) -> None:
        with self._folder.change(self.key) as record:
            record["generation"].update(changed)

    def _generate(self) -> None:
        cases = generated_cases(self._record["generation"]["options"], self.pack)
        with self._folder.change(self.key) as record:
            _append(record, cases)
            record["generation"]["state"] = "finished"


def suite_text(tests: Iterable[Test], name: str = "", description: str = "") -> str:
    """Return tests as one of H2O's test suites, which `import_test_suite` reads."""
    return h2o_suite([case for test in tests for case in test.cases], name, description)


def _append(
    test: dict[str, Any], cases: Iterable[Case], constraints: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """Add cases to a test's record and return theirs; each gets a key of this test."""
    keys, added = dict[str, str](), [*cases]
    for case in added:
        test["made"] += 1
        keys[case.key] = f"{test['key']}-{test['made']}"
    now = test["update_time"]
    more = {"constraints": list(constraints), "create_time": now, "update_time": now}
    kept = [{"case": case_json(_owned(case, keys)), **more} for case in added]
    test["cases"] += kept
    return kept


def _owned(case: Case, keys: dict[str, str]) -> Case:
    """Return a case under its new key, with its links to cases that were added with it."""
    links = tuple(
        replace(link, target=keys.get(link.target, link.target)) for link in case.relationships
    )
    key = keys[case.key]
    group = key if case.group == case.key else case.group
    return replace(
        case, key=key, group=group, relationships=links, corpus=(), test_key=None, answer=None
    )


def _test_case(record: dict[str, Any], corpus: tuple[str, ...], test: str) -> TestCase:
    case = replace(case_from_json(record["case"]), corpus=corpus, test_key=test)
    return TestCase(
        case.key,
        case.question,
        case.expected or "",
        tuple(record["constraints"]),
        case.condition or "",
        case,
        moment(record, "create_time"),
        moment(record, "update_time"),
    )


@dataclass(frozen=True)
class _Tests(KeptObjects[Test]):
    """The tests of a client."""

    _kind = "test"

    def create(
        self,
        name: str,
        description: str | None = "",
        documents: Sequence[TestDocument] | None = None,
    ) -> Test:
        """Return a new test without cases."""
        record = {
            "name": name,
            "description": description or "",
            "documents": [one.key for one in documents or ()],
            "cases": [],
            "made": 0,
        }
        return Test(self._folder.add("test", record)["key"], self._pack, self._folder)

    def clone(self, key: str, name: str | None = "", description: str | None = "") -> Test:
        """Return a new test with the documents and cases of another one."""
        known = self.get(key)
        made = self.create(name or known.name, description or known.description, known.documents)
        made.add_cases(known.cases)
        return made

    def perturb(
        self,
        key: str,
        new_test_name: str,
        perturbators: str | Sequence[str],
        intensity: Intensity = "medium",
        seed: int = 0,
    ) -> Test:
        """Return a new test with the cases of another one and a variant per perturbation."""
        return self.get(key).perturb(new_test_name, perturbators, "", intensity, seed)

    def import_test_suite(self, test_suite: str, name_prefix: str | None = None) -> list[Test]:
        """Return the tests of a suite in H2O's JSON, each a new one.

        Args:
            test_suite: The JSON.
            name_prefix: Of the tests' names, which are the suite's with a number.

        Raises:
            ConfigurationError: If it is no suite; messages name the place.
        """
        where = "test suite"
        lab = lab_of_text(where, test_suite)
        content = json.loads(test_suite)
        parts = content.get("tests", ()) if isinstance(content, dict) else ()
        made = []
        for number, part in enumerate(parts, start=1):
            cases = lab_of_text(where, json.dumps({**content, "tests": [part]})).cases
            name = f"{name_prefix or ''}{lab.name} {number}".strip()
            test = self.create(name, lab.description)
            test.add_cases(cases)
            for url in dict.fromkeys(url for case in cases for url in case.corpus):
                named = url.rsplit("/", 1)[-1]
                test.link_document(_Documents(self._folder).create(named, url, received=True))
            made.append(test)
        return made

    def _opened(self, record: Mapping[str, Any]) -> Test:
        return Test(record["key"], self._pack, self._folder)
