"""Test cases from documents, as H2O's client asks for them; rules make them, no host is asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.shared.answer_words import squad_words
from guardrail_offline.h2o_client.client_collections import _Collections
from guardrail_offline.h2o_client.client_documents import TestDocument
from guardrail_offline.h2o_client.client_folder import ClientFolder
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Passage

if TYPE_CHECKING:
    from guardrail_offline.generation import DocumentChunk

GIVEN_PASSAGES = 4
"""Passages of a collection that a question is given."""


class TestCaseGenerator(Enum):
    """H2O's generators by the names of its client."""

    __test__ = False

    unspecified = "default"
    simple_factual_questions = "simple_factual_questions"
    multi_hop_questions = "multi_hop_questions"
    inference_questions = "inference_questions"
    numerical_reasoning_questions = "numerical_reasoning_questions"
    ambiguity_handling_questions = "ambiguity_handling_questions"
    negation_and_contradiction_questions = "negation_and_contradiction_questions"
    temporal_reasoning_questions = "temporal_reasoning_questions"
    out_of_scope_questions = "out_of_scope_questions"
    yes_or_no_questions = "yes_or_no_questions"
    multiple_choice_questions = "multiple_choice_questions"
    demographic_representation_questions = "demographic_representation_questions"
    sentiment_variation_questions = "sentiment_variation_questions"
    irrelevant_information_questions = "irrelevant_information_questions"
    deliberately_misleading_questions = "deliberately_misleading_questions"


def generator_ids(given: Sequence[TestCaseGenerator | str] | None) -> list[str]:
    """Return the generators that are asked for, by our ids.

    Raises:
        ConfigurationError: If one is not known.
    """
    from guardrail_offline.generation import named_generators

    names = [one.value if isinstance(one, TestCaseGenerator) else str(one) for one in given or ()]
    return [*named_generators(names or "default")]


def sources_of(
    folder: ClientFolder, documents: Sequence[TestDocument], collection: str | None
) -> list[str]:
    """Return the files that a test is generated from.

    Raises:
        ConfigurationError: If there is no file here: addresses are not fetched.
    """
    found = [] if collection is None else [*_Collections(folder).files(collection)]
    for document in documents:
        path = _path_of(document.url)
        if path is None or not path.is_file():
            continue
        if document.received:
            expected = "unlink_document, then create_document with its path if it may be read"
            raise ConfigurationError("documents", "a file that an imported suite names", expected)
        found.append(path)
    if not found:
        expected = "a linked document that is a file here, or existing_collection"
        raise ConfigurationError("generate_test_cases", "nothing to read", expected)
    return [str(path) for path in found]


def generated_cases(options: dict[str, Any], pack: str) -> list[Case]:
    """Return checked cases from documents, at most as many as were asked for.

    Args:
        options: `sources`, `generators` and `count`.
        pack: Model pack of the checks.

    Raises:
        ConfigurationError: If no document could be read, or nothing came of them.
    """
    from guardrail_offline.evaluators.pack_models import load_models
    from guardrail_offline.generation import GenerationOptions, generate_lab

    asked = GenerationOptions(tuple(options["generators"]), options["count"])
    made = generate_lab(list(map(Path, options["sources"])), asked, models=load_models(pack))
    if not made.cases:
        raise ConfigurationError("generate_test_cases", "no case that holds", "longer documents")
    return [*made.cases[: options["count"]]]


def with_passages(cases: Sequence[Case], files: Sequence[Path]) -> list[Case]:
    """Return cases with the passages of files that share most rare words with the question.

    Raises:
        ConfigurationError: If no document could be read.
    """
    from guardrail_offline.generation import chunks_of, read_documents

    chunks = chunks_of(read_documents(list(files)))
    if not chunks:
        raise ConfigurationError("existing_collection", "no text", "documents with text")
    ranked = _Ranking(chunks)
    return [replace(case, contexts=ranked.best(case.question)) for case in cases]


class _Ranking:
    """Ranks passages for a question by their shared words, rare ones first."""

    def __init__(self, chunks: Sequence[DocumentChunk]) -> None:
        self._chunks = chunks
        self._words = [set(squad_words(one.text)) for one in chunks]
        counts = Counter(word for words in self._words for word in words)
        self._weights = {word: math.log(1 + len(chunks) / n) for word, n in counts.items()}

    def best(self, question: str) -> tuple[Passage, ...]:
        """Return the passages of a question, the nearest first."""
        asked = set(squad_words(question))
        scores = [sum(self._weights[word] for word in asked & words) for words in self._words]
        order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        return tuple(
            Passage(self._chunks[n].text, self._chunks[n].id) for n in order[:GIVEN_PASSAGES]
        )


def _path_of(url: str) -> Path | None:
    """Return the file here that a document's address names; None for an address elsewhere."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme and "://" in url else Path(url)
