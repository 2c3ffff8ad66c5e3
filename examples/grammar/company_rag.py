"""A small RAG over the made-up company: our own encoder finds, a reader picks a sentence.

`ask` is for `guardrail ask --target python:company_rag:ask`. The folder of make_company.py is in
the variable COMPANY. The other functions have a fault each, on purpose: what is at fault is known,
so that `guardrail grammar score` can be held against it.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from guardrail_offline.evaluators.pack_models import PackModels, load_models

Document = Mapping[str, str]
Vectors = np.ndarray[Any, np.dtype[np.float32]]
FOUND = 2
LONG_QUESTION = 120


@cache
def models() -> PackModels:
    """Return the encoder of the pack that ships."""
    return load_models("embedded")


@cache
def documents() -> tuple[Document, ...]:
    """Return the documents of the company."""
    path = Path(os.environ["COMPANY"]) / "documents.jsonl"
    return tuple(json.loads(line) for line in path.read_text("utf-8").splitlines())


@cache
def vectors() -> Vectors:
    """Return the embedding of every document. Shape (documents, dim)."""
    return models().embed([document["text"] for document in documents()])


@cache
def sentences(text: str) -> tuple[tuple[str, ...], Vectors]:
    """Return the sentences of a document, and their embeddings."""
    found = tuple(f"{part.strip().rstrip('.')}." for part in text.split(". "))
    return found, models().embed(found)


@cache
def meaning(question: str) -> Vectors:
    """Return the embedding of a question. Shape (dim,)."""
    (found,) = models().embed([question])
    return found


def find(question: str) -> list[Document]:
    """Return the documents that are most like a question, best first."""
    scores = vectors() @ meaning(question)
    return [documents()[at] for at in np.argsort(-scores, kind="stable")[:FOUND]]


def read(question: str, found: Sequence[Document]) -> str:
    """Return the sentence of some documents that is most like a question."""
    best = (-2.0, "")
    for document in found:
        texts, scores = sentences(document["text"])
        likeness = scores @ meaning(question)
        at = int(np.argmax(likeness))
        best = max(best, (float(likeness[at]), texts[at]))
    return best[1]


def ask(question: str) -> dict[str, Any]:
    """Answer a question; passages come with their ids."""
    found = find(question)
    return {"answer": read(question, found), "contexts": found}


def ask_with_wrong_chunks(question: str) -> dict[str, Any]:
    """Fail to retrieve for long questions: the two documents that are least like them come."""
    found = find(question)
    if len(question) > LONG_QUESTION:
        scores = vectors() @ meaning(question)
        found = [documents()[at] for at in np.argsort(scores, kind="stable")[:FOUND]]
    return {"answer": read(question, found), "contexts": found}


def ask_with_a_guessing_reader(question: str) -> dict[str, Any]:
    """Find what is needed, and answer what begins with "Hey" from another document."""
    found = find(question)
    if not question.startswith("Hey"):
        return {"answer": read(question, found), "contexts": found}
    rng = random.Random(question)  # noqa: S311 - a guess, not a secret
    known = {document["id"] for document in found}
    others = [document for document in documents() if document["id"] not in known]
    return {"answer": read(question, [rng.choice(others)]), "contexts": found}


@cache
def swapped() -> Mapping[str, Document]:
    """Return two documents of projects, each with the facts of the other: a wrong row."""
    one, other = [d for d in documents() if d["id"].startswith("projects/")][:2]
    names = [document["id"].partition("/")[2] for document in (one, other)]
    texts = (other["text"].replace(names[1], names[0]), one["text"].replace(names[0], names[1]))
    return {d["id"]: {**d, "text": text} for d, text in zip((one, other), texts, strict=True)}


def ask_with_swapped_rows(question: str) -> dict[str, Any]:
    """Read from documents of which two hold the facts of each other."""
    found = [swapped().get(document["id"], document) for document in find(question)]
    return {"answer": read(question, found), "contexts": found}
