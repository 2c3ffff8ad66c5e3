"""A handbook as a corpus, and the models of the shipped pack."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail_offline.evaluators.pack_models import PackModels, load_models
from guardrail_offline.generation.chunks import DocumentChunk, chunks_of
from guardrail_offline.generation.source_documents import SourceDocument, read_documents

HANDBOOK = Path(__file__).parent / "handbook.md"


@pytest.fixture(scope="package")
def handbook() -> SourceDocument:
    """A document of one page, written for these tests."""
    (found,) = read_documents([HANDBOOK])
    return found


@pytest.fixture(scope="package")
def chunks(handbook: SourceDocument) -> list[DocumentChunk]:
    """Its chunks."""
    return chunks_of([handbook])


@pytest.fixture(scope="package")
def models() -> PackModels:
    """The shipped pack."""
    return load_models("embedded")
