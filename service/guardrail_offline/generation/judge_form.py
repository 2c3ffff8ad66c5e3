"""The form of the generators with a judge; it is checked against the source like a rule's.

A case of a judge has to quote the sentences that its answer rests on, letter by letter: a quotation
that does not stand in the chunk is no place, and the case is dropped and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from guardrail_offline.generation.chunks import DocumentChunk
from guardrail_offline.generation.generated import GeneratedCase, SourceSpan
from guardrail_offline.generation.rule_corpus import Corpus, condition_of, made
from guardrail_offline.judge.judge_tasks import TEXT, Example, Task, an_object, list_of
from guardrail_offline.judge.results import Asks

if TYPE_CHECKING:
    from guardrail_offline.generation.generators import GeneratorSpec

PER_CALL = 3
MOST_CALLS = 200

QUESTIONS = Task(
    "generate_questions",
    1,
    """\
You write test questions for a system that answers from documents. You are given a text, the kind \
of question that is wanted, and how many. Each question stands by itself: it has no "this" or \
"it" that points at the text, and one right answer, which the text gives. `answer` is that answer, \
as short as possible. `statement` is the answer as a full sentence that is true according to the \
text. `quotes` are the sentences of the text that it rests on, letter by letter. Give fewer \
questions, or none, where the text does not allow more.""",
    an_object(
        questions=list_of(
            an_object(question=TEXT, answer=TEXT, statement=TEXT, quotes=list_of(TEXT))
        )
    ),
    (
        Example(
            {
                "kind": "how many, how much, how long",
                "count": 2,
                "document": "Pool rules",
                "text": "The pool opens at seven. A day ticket costs 4 euros and is valid for "
                "both basins.",
            },
            {
                "questions": [
                    {
                        "question": "How much does a day ticket for the pool cost?",
                        "answer": "4 euros",
                        "statement": "A day ticket costs 4 euros.",
                        "quotes": ["A day ticket costs 4 euros and is valid for both basins."],
                    }
                ]
            },
        ),
        Example(
            {
                "kind": "a question whose answer is yes or no",
                "count": 1,
                "document": "Pool rules",
                "text": "Dogs must stay outside.",
            },
            {
                "questions": [
                    {
                        "question": "May guests bring a dog into the pool?",
                        "answer": "No",
                        "statement": "Dogs must stay outside the pool.",
                        "quotes": ["Dogs must stay outside."],
                    }
                ]
            },
        ),
    ),
    max_tokens=1200,
)
OUTSIDE = Task(
    "generate_unanswerable",
    1,
    """\
You write test questions for a system that answers from documents. You are given a text and how \
many questions are wanted. Each question is about the subject of the text, sounds as if the text \
answered it, and is not answered by it, not even in part. It stands by itself.""",
    an_object(questions=list_of(an_object(question=TEXT))),
    (
        Example(
            {"count": 1, "document": "Pool rules", "text": "The pool opens at seven."},
            {"questions": [{"question": "How deep is the diving basin of the pool?"}]},
        ),
        Example(
            {"count": 1, "document": "Menu", "text": "The soup of the day is pea soup."},
            {"questions": [{"question": "Which chef wrote the menu?"}]},
        ),
    ),
    max_tokens=600,
)


def judge_cases(
    judge: Asks, spec: GeneratorSpec, corpus: Corpus, share: int | None, failed: Counter[str]
) -> list[GeneratedCase]:
    """Return cases that a judge makes, chunk after chunk in an order that the seed draws.

    Args:
        judge: Who is asked.
        spec: The generator.
        corpus: What it is asked about.
        share: So many cases are enough; None asks about every chunk once.
        failed: Counts questions without an answer by status, and cases without a place.
    """
    order = [c for c in corpus.chunks if any(b.kind in ("paragraph", "item") for b in c.blocks)]
    corpus.rng("judge", spec.id).shuffle(order)
    found: list[GeneratedCase] = []
    task = OUTSIDE if spec.id == "out_of_scope" else QUESTIONS
    for chunk in order[:MOST_CALLS]:
        if share is not None and len(found) >= share:
            break
        inputs = {"count": PER_CALL, "document": corpus.titles[chunk.document], "text": chunk.text}
        if task is QUESTIONS:
            inputs = {"kind": spec.judge, **inputs}
        result = judge.ask(task, inputs)
        if result.status != "ok":
            failed[result.status] += 1
            continue
        for said in result.value["questions"][:PER_CALL]:
            one = _case(spec.id, chunk, said)
            if one is None:
                failed["no such place in the source"] += 1
            else:
                found.append(one)
    return found


def _case(generator: str, chunk: DocumentChunk, said: Mapping[str, Any]) -> GeneratedCase | None:
    """Return what a judge said as a case; None if it quotes what is not there."""
    question = said["question"].strip()
    if "quotes" not in said:
        return made(generator, question, None, [], answerable=False, form="judge")
    spans = [_place(chunk, quote) for quote in said["quotes"]]
    places = [span for span in spans if span is not None]
    if not places or len(places) < len(spans):
        return None
    return made(
        generator, question, said["answer"].strip(), places, form="judge",
        truth=said["statement"].strip(), condition=condition_of(said["answer"].strip()),
        references=(said["statement"].strip(),),
    )  # fmt: skip


def _place(chunk: DocumentChunk, quote: str) -> SourceSpan | None:
    """Return where a quotation stands; other blanks than the chunk's are no difference."""
    words = quote.split()
    if not words:
        return None
    at = chunk.text.find(words[0])
    while at >= 0:
        end = at
        for word in words:
            while end < len(chunk.text) and chunk.text[end].isspace():
                end += 1
            if not chunk.text.startswith(word, end):
                break
            end += len(word)
        else:
            start, stop = chunk.start + at, chunk.start + end
            return SourceSpan(chunk.document, start, stop, chunk.text[at:end], chunk.id)
        at = chunk.text.find(words[0], at + 1)
    return None
