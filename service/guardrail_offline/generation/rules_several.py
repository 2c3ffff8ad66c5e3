"""Rules that need several statements: comparisons, hops, turns, open references."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

from guardrail_offline.generation import english_words as words
from guardrail_offline.generation.clauses import Clause
from guardrail_offline.generation.generated import GeneratedCase, SourceSpan
from guardrail_offline.generation.plain_statements import Statement
from guardrail_offline.generation.questions import WhQuestion, head_of
from guardrail_offline.generation.rule_corpus import Corpus, condition_of, made, sentence
from guardrail_service.detectors.facts.vocabulary import listed

ABSENT = (
    "Brelvian Holdings", "Quorvexa", "the Tamberlane Institute", "Ostrivane", "Meldrathe Systems",
    "the Kessandry Foundation", "Vorlick and Pym", "Zantherel", "the Ulmsbury Charter",
    "Perriwane Logistics", "Dorvale 7", "the Hask Mandate",
)  # fmt: skip
"""Names that nothing has; a corpus that holds one of them is not asked about it."""
UNRELATED = (
    "What is the boiling point of mercury?",
    "Who composed the opera The Magic Flute?",
    "How many strings does a standard violin have?",
    "Which planet of the solar system has the most moons?",
    "In which year did the first crewed moon landing take place?",
    "What is the chemical symbol of tungsten?",
    "How tall is Mount Kilimanjaro?",
    "Who painted the Girl with a Pearl Earring?",
    "What is the longest river of South America?",
    "How many bones does an adult human body have?",
    "Which language is spoken by most people in Suriname?",
    "What is the national flower of Japan?",
    "How does one prepare a classic Hollandaise sauce?",
    "Which instrument did Niccolò Paganini play?",
    "What causes the northern lights?",
    "How many players does a water polo team have in the pool?",
    "Which sea separates Saudi Arabia from Egypt?",
    "What is the usual gestation period of an African elephant?",
    "Who wrote the novel Middlemarch?",
    "What is the tallest breed of dog?",
    "Which vitamin does the human skin make in sunlight?",
    "What does a sommelier do?",
    "How many keys does a modern piano have?",
    "Which mountain range divides Europe from Asia?",
)
_LONGER = {"last": "longer", "take": "longer", "wait": "longer", "live": "longer", "stay": "longer"}


def comparison(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield which of two is more, or was first, and how many more, for statements of one form."""
    for left, right in _pairs(corpus):
        found = _compared(left, right)
        if found is None:
            continue
        text, answer, difference = found
        spans = [left.statement.span, right.statement.span]
        truth = f"{left.statement.line} {right.statement.line}"
        yield made("comparison", text, answer, spans, truth=truth)
        if difference is not None:
            yield made("comparison", difference[0], difference[1], spans, truth=truth,
                       condition=condition_of(difference[1]))  # fmt: skip


def _pairs(corpus: Corpus) -> Iterator[tuple[WhQuestion, WhQuestion]]:
    """Yield questions of one form about two subjects, of which both are names or neither is."""
    groups: dict[tuple[str, str], list[WhQuestion]] = {}
    for question in corpus.questions:
        if question.fact is not None:
            key = (question.kind, question.skeleton)
            groups.setdefault(key, []).append(question)
    for _, same in sorted(groups.items()):
        for left, right in combinations(same, 2):
            a, b = left.statement.clause, right.statement.clause
            if a is None or b is None or left.fact is None or right.fact is None:
                continue
            alike = left.fact.unit == right.fact.unit and a.is_plural == b.is_plural
            bare = not (left.fact.bound or right.fact.bound)
            scopes = left.statement.scope == right.statement.scope
            differ = a.subject != b.subject and left.fact.values[0] != right.fact.values[0]
            if alike and bare and scopes and differ:
                yield left, right


def _compared(
    left: WhQuestion, right: WhQuestion
) -> tuple[str, str, tuple[str, str] | None] | None:
    """Return question and answer, and the question for the difference where there is one."""
    a, b = left.statement.clause, right.statement.clause
    if a is None or b is None or left.fact is None or right.fact is None:
        return None
    scope = left.statement.scope
    more = a if left.fact.values[0] > right.fact.values[0] else b
    less = b if more is a else a
    pair = f"{a.subject} or {b.subject}"
    if left.kind == "temporal":
        return _first_of(left, a, scope, pair, less.subject)
    phrase, _, _ = left.direct.partition(f" {a.question('').split()[0]} ")
    noun = phrase.removeprefix("how many ") if phrase.startswith("how many ") else ""
    if not a.base or phrase.split()[0] != "how":
        return None
    tail = left.skeleton.removeprefix(f"{phrase} {a.verb}").strip()
    verb = a.verb if a.tense == "past" else words.third(a.base)
    what = _LONGER.get(a.base, "") if noun and left.fact.unit == "duration" else ""
    what = what or (f"more {noun}" if noun else "more")
    text = " ".join(filter(None, (f"which {verb}", what, tail)))
    asked = f"{scope}{text}, {pair}?"
    difference = None
    exact = left.fact.raw == int(left.fact.raw) and right.fact.raw == int(right.fact.raw)
    if noun and not tail and exact and left.fact.factor == right.fact.factor:
        count = abs(int(left.fact.raw) - int(right.fact.raw))
        do = a.question("").split()[0]
        question = f"{scope}how many more {noun} {do} {more.subject} {a.base} than {less.subject}?"
        difference = (question[:1].upper() + question[1:], f"{count} {noun}")
    return asked[:1].upper() + asked[1:], sentence(more.subject).rstrip("."), difference


def _first_of(
    question: WhQuestion, clause: Clause, scope: str, pair: str, first: str
) -> tuple[str, str, None] | None:
    left = question.direct.partition(f" {clause.subject}")[2].strip()
    if clause.base and clause.tense != "past":
        return None
    verb = words.past_of(clause.base) if clause.base else clause.verb
    rest = left.removeprefix(clause.base).strip() if clause.base else left
    if not question.direct.startswith(("in which year", "when")) or clause.verb in words.MODALS:
        return None
    text = " ".join(filter(None, (f"{scope}which {verb}", rest, "first")))
    asked = f"{text}, {pair}?"
    return asked[:1].upper() + asked[1:], sentence(first).rstrip("."), None


def multi_hop(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield questions that name a thing by what is said of it elsewhere, or ask for two facts."""
    by_name: dict[str, list[WhQuestion]] = {}
    for question in corpus.questions:
        clause = question.statement.clause
        if clause is not None and clause.named and question.kind != "what":
            by_name.setdefault(clause.subject, []).append(question)
    for statement in corpus.clauses:
        description = _unique(statement)
        if description is None or statement.clause is None:
            continue
        name = statement.clause.subject
        for question in by_name.get(name, ()):
            if question.statement.line == statement.line or name not in question.direct:
                continue
            text = question.direct.replace(name, description, 1)
            if name in text:
                continue
            yield made(
                "multi_hop", f"{text[:1].upper()}{text[1:]}?", question.answer,
                [statement.span, question.statement.span], condition=condition_of(question.answer),
                truth=f"{statement.line} {question.statement.line}",
                references=(question.statement.line,),
            )  # fmt: skip
    yield from _two_facts(by_name)


def _unique(statement: Statement) -> str | None:
    """Return "the capital of Norland" of "Veltra is the capital of Norland."."""
    clause = statement.clause
    if clause is None or not clause.named or clause.verb not in ("is", "was"):
        return None
    parts = clause.rest.split()
    if parts[:1] != ["the"] or not 3 <= len(parts) <= 9 or clause.facts:
        return None
    unsure = {"first", "same", "only", "number", "result", "one", "case", "part"}
    return None if unsure.intersection(parts) or "and" in parts else clause.rest


def _two_facts(by_name: dict[str, list[WhQuestion]]) -> Iterator[GeneratedCase]:
    for _, questions in sorted(by_name.items()):
        for first, second in pairwise(questions):
            if first.statement.line == second.statement.line or first.kind == second.kind == "who":
                continue
            text = f"{first.direct[:1].upper()}{first.direct[1:]}, and {second.direct}?"
            yield made(
                "multi_hop", text, f"{first.answer}; {second.answer}",
                [first.statement.span, second.statement.span],
                condition=_both(condition_of(first.answer), condition_of(second.answer)),
                truth=f"{first.statement.line} {second.statement.line}",
            )  # fmt: skip


def _both(left: str | None, right: str | None) -> str | None:
    return f"({left}) AND ({right})" if left and right else left or right


def multi_turn(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield two turns about one thing; the second one calls it "it" or "they"."""
    by_subject: dict[tuple[str, str], list[WhQuestion]] = {}
    things = _things(corpus)
    for question in corpus.questions:
        clause = question.statement.clause
        if clause is not None and question.kind != "what" and _is_thing(clause, things):
            key = (question.statement.chunk.document, clause.subject)
            by_subject.setdefault(key, []).append(question)
    for (_, subject), questions in by_subject.items():
        for first, second in pairwise(questions):
            clause = second.statement.clause
            same = first.statement.line == second.statement.line
            if clause is None or same or subject not in second.direct:
                continue
            pronoun = "they" if clause.is_plural else "it"
            if second.kind == "who" and clause.is_plural:
                pronoun = "them"
            later = second.direct.replace(subject, pronoun, 1)
            yield from _turns(first, second, f"And {later}?")


def _turns(first: WhQuestion, second: WhQuestion, later: str) -> Iterator[GeneratedCase]:
    one = made("multi_turn", first.text, first.answer, [first.statement.span],
               condition=condition_of(first.answer), truth=first.statement.line,
               turn=1)  # fmt: skip
    two = made("multi_turn", later, second.answer, [second.statement.span, first.statement.span],
               condition=condition_of(second.answer), truth=second.statement.line,
               turn=2)  # fmt: skip
    name = f"{one.key}-{two.key[-12:]}"
    for turn in (one, two):
        yield replace(turn, key=f"{name}@{turn.turn}", conversation=name, group=name)


def _things(corpus: Corpus) -> frozenset[str]:
    """Return the names of which a sentence says that they are no persons."""
    found = set()
    for statement in corpus.clauses:
        clause = statement.clause
        if clause is None or not clause.named:
            continue
        first = clause.rest.split()[:1]
        said = clause.verb in words.BE and first in (["a"], ["an"], ["the"])
        if said and head_of(clause.rest) not in words.PERSON_NOUNS:
            found.add(clause.subject)
        if clause.verb in words.BE and first and first[0] in _DONE_TO_THINGS:
            found.add(clause.subject)
    return frozenset(found)


_DONE_TO_THINGS = listed(
    "founded developed built established opened introduced published released launched replaced "
    "constructed designed installed invented written located based renewed closed sold"
)


def _is_thing(clause: Clause, things: frozenset[str]) -> bool:
    """Return whether "it" or "they" is right for a subject."""
    if clause.named:
        return clause.is_plural or clause.subject in things
    return clause.is_plural or clause.head.lower() not in words.PERSON_NOUNS


def ambiguity(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield questions that leave open which of several things is meant."""
    groups: dict[tuple[str, str, str], list[WhQuestion]] = {}
    for question in corpus.questions:
        clause = question.statement.clause
        if clause is None or question.fact is None:
            continue
        head = clause.subject.split()[-1]
        if clause.head == head and len(clause.subject.split()) in (2, 3, 4) and head.islower():
            groups.setdefault((question.statement.title, question.skeleton, head), []).append(
                question
            )
    for (title, _, head), same in sorted(groups.items()):
        subjects = {q.statement.clause.subject for q in same if q.statement.clause}
        if len(same) < 2 or len(subjects) != len(same) or f"the {head}" in subjects:
            continue
        clause = same[0].statement.clause
        if clause is None:
            continue
        direct = same[0].direct.replace(clause.subject, f"the {head}", 1)
        expected = " ".join(question.statement.line for question in same)
        text = f'According to "{title}", {direct}?'
        yield made("ambiguity_handling", text, f"That depends. {expected}",
                   _spans(same), truth=expected)  # fmt: skip


def _spans(questions: Sequence[WhQuestion]) -> list[SourceSpan]:
    return [question.statement.span for question in questions]


def out_of_scope(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield questions that the corpus cannot answer: from outside, of absent names, unrelated."""
    for question in corpus.outside_questions:
        clause = question.statement.clause
        if clause is not None and clause.named and clause.subject.lower() not in corpus.text:
            yield _unanswerable(question.text)
    things = _things(corpus)
    absent = [name for name in ABSENT if name.removeprefix("the ").lower() not in corpus.text]
    for question in corpus.questions:
        clause = question.statement.clause
        if clause is None or not clause.named or clause.is_plural or question.kind == "what":
            continue
        if not absent or clause.subject not in question.direct or clause.subject not in things:
            continue
        name = corpus.rng("absent", question.text).choice(absent)
        text = question.direct.replace(clause.subject, name, 1)
        if clause.subject not in text:
            yield _unanswerable(f"{text[:1].upper()}{text[1:]}?")
    for text in UNRELATED:
        telling = [
            w for w in _plain(text) if len(w) > 5 and w not in ("standard", "modern", "usual")
        ]
        if not any(word in corpus.text for word in telling):
            yield _unanswerable(text)


def _plain(text: str) -> list[str]:
    return [word.strip("?,.").lower() for word in text.split()[1:]]


def _unanswerable(text: str) -> GeneratedCase:
    return made("out_of_scope", text, None, [], answerable=False)
