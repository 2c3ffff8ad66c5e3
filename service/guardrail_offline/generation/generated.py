"""A generated test case with the places it came from, and how it stands in a lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from guardrail_offline.datasets.cases import CONVERSATION, Case, Relationship, question_group
from guardrail_offline.generation.chunks import DocumentChunk
from guardrail_service.types import Passage

SOURCE_SPAN = "source_span"
"""The type of relationship that names the place in a document that a case came from."""
VARIANT_OF = "generated_from"
"""The type of relationship that links a reworded case to the plain one; its target is a key."""


@dataclass(frozen=True)
class SourceSpan:
    """A place in a document: `text` is the document's text from `start` to `end`."""

    document: str
    start: int
    end: int
    text: str
    chunk: str


@dataclass(frozen=True)
class GeneratedCase:
    """One question with its expected answer and where both came from.

    Attributes:
        key: Unique in its lab; depends on generator, question and source only.
        generator: Id in `GENERATORS`.
        form: `rule` or `judge`.
        question: For the system under test.
        expected: The right answer; None where there is none to compare with.
        condition: In the language of text matching; None asks nothing.
        answerable: Whether the documents have an answer.
        spans: The sentences that decide it; none where the documents say nothing about it.
        truth: What the documents say, as a sentence: the claim that the spans must support.
        false: The statement that the question or passages wrongly make; empty in others.
        topic: Label of the topic of its first chunk.
        references: Further right answers.
        contexts: Passages to answer from, where the case brings them; None in others.
        conversation: Key of the conversation that it is a turn of; empty in others.
        turn: Its place in the conversation, from 1.
        source: Key of the plain case that it words otherwise; empty in others.
        group: What is one question; empty for the question's own.
    """

    key: str
    generator: str
    form: str
    question: str
    expected: str | None
    condition: str | None = None
    answerable: bool = True
    spans: tuple[SourceSpan, ...] = ()
    truth: str = ""
    false: str = ""
    topic: str = ""
    references: tuple[str, ...] = ()
    contexts: tuple[str, ...] | None = None
    conversation: str = ""
    turn: int = 0
    source: str = ""
    group: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return its values by name, without those that say nothing."""
        empty = GeneratedCase("", "", "", "", None)
        always = ("key", "generator", "form", "question", "expected", "answerable")
        said = asdict(self)
        return {k: v for k, v in said.items() if k in always or v != getattr(empty, k)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> GeneratedCase:
        """Return the case that `as_json` gave."""
        values = dict(record)
        values["spans"] = tuple(SourceSpan(**span) for span in record.get("spans", ()))
        values["references"] = tuple(record.get("references", ()))
        contexts = record.get("contexts")
        values["contexts"] = None if contexts is None else tuple(contexts)
        return cls(**values)

    def with_topic(self, topics: Mapping[str, str]) -> GeneratedCase:
        """Return it with the topic of its first chunk."""
        chunks = (span.chunk for span in self.spans)
        return replace(self, topic=next((topics[c] for c in chunks if c in topics), ""))


def to_case(one: GeneratedCase, chunks: Mapping[str, DocumentChunk]) -> Case:
    """Return a generated case as labs hold it, without an answer.

    Its chunks are the passages that should be retrieved. Categories say `generated`,
    `generator:ID`, `form:rule` or `form:judge`, and `topic:LABEL`.

    Args:
        one: The case.
        chunks: By id.
    """
    ids = tuple(dict.fromkeys(span.chunk for span in one.spans))
    links = [
        Relationship(SOURCE_SPAN, f"{span.document}[{span.start}:{span.end}]", "text_span")
        for span in one.spans
    ]
    if one.conversation:
        links.append(Relationship(CONVERSATION, one.conversation, CONVERSATION))
    if one.source:
        links.append(Relationship(VARIANT_OF, one.source))
    topic = (f"topic:{one.topic}",) if one.topic else ()
    passages = None if one.contexts is None else tuple(map(Passage, one.contexts))
    return Case(
        key=one.key,
        question=one.question,
        expected=one.expected,
        contexts=passages,
        condition=one.condition,
        categories=("generated", f"generator:{one.generator}", f"form:{one.form}", *topic),
        relationships=tuple(links),
        corpus=tuple(dict.fromkeys(span.document for span in one.spans)),
        group=one.group or question_group(one.question),
        references=one.references,
        reference_contexts=tuple(chunks[id].text for id in ids if id in chunks),
        reference_ids=tuple(id for id in ids if id in chunks),
        answerable=one.answerable,
    )
