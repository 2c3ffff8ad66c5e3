"""Rules that ask about one place of a document: gaps, facts, tables, lists, yes or no."""

from __future__ import annotations

from collections.abc import Iterator

from guardrail_offline.generation import english_words as words
from guardrail_offline.generation.clauses import Clause, list_items
from guardrail_offline.generation.generated import GeneratedCase
from guardrail_offline.generation.plain_statements import names_in
from guardrail_offline.generation.questions import WhQuestion, is_year
from guardrail_offline.generation.rule_corpus import (
    Corpus,
    condition_of,
    falsified,
    made,
    other_value,
    sentence,
)
from guardrail_service.detectors.facts.amounts import Fact
from guardrail_service.detectors.facts.read import read

_GAP = "____"


def asked(question: WhQuestion, generator: str) -> GeneratedCase:
    """Return the case of a question about one fact."""
    return made(
        generator, question.text, question.answer, [question.statement.span],
        condition=condition_of(question.answer), truth=question.statement.line,
        references=(question.statement.line,),
    )  # fmt: skip


def simple_factual(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield who, what and where, and what stands in a cell of a table."""
    for question in corpus.questions:
        if question.kind in ("who", "what", "where"):
            yield asked(question, "simple_factual")
    for cell in corpus.cells:
        if len(cell.value) < 2 or cell.value.lower() == cell.row.lower():
            continue
        text = (
            f'In the table under "{cell.heading}" in "{cell.title}", what does the column '
            f'"{cell.column}" say about "{cell.row}"?'
        )
        yield made("simple_factual", text, cell.value, [cell.span],
                   truth=f"{cell.row}: {cell.column}: {cell.value}",
                   condition=condition_of(cell.value))  # fmt: skip


def numerical_reasoning(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield how many and how much."""
    for question in corpus.questions:
        if question.kind == "numeric":
            yield asked(question, "numerical_reasoning")


def temporal_reasoning(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield when, and how many years passed between two events of one document."""
    dated = [question for question in corpus.questions if question.kind == "temporal"]
    for question in dated:
        yield asked(question, "temporal_reasoning")
    years = [q for q in dated if q.fact is not None and is_year(q.fact) and _has_past(q)]
    for first in years:
        for second in years:
            passed = _year(second) - _year(first)
            same = first.statement.chunk.document == second.statement.chunk.document
            clauses = first.statement.clause, second.statement.clause
            if passed < 2 or not same or clauses[0] is None or clauses[1] is None:
                continue
            if not (clauses[0].named and clauses[1].named):
                continue
            event = first.indirect.removeprefix("in which year ")
            later = second.direct.removeprefix("in which year ")
            truth = f"{first.statement.line} {second.statement.line}"
            yield made(
                "temporal_reasoning", f"How many years after {event} {later}?", f"{passed} years",
                [first.statement.span, second.statement.span],
                condition=f'word("{passed}")', truth=truth,
            )  # fmt: skip


def _has_past(question: WhQuestion) -> bool:
    clause = question.statement.clause
    past = clause is not None and (clause.tense == "past" or clause.verb in ("was", "were"))
    return past and question.direct.startswith("in which year ")


def _year(question: WhQuestion) -> int:
    return int("".join(filter(str.isdigit, question.answer))[:4])


def cloze(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield sentences with a gap in the place of an exact fact or a name."""
    for statement in corpus.statements:
        line = statement.line
        if statement.clause is None and not _has_verb(line):
            continue
        places = [(f.start, f.end) for f in read(line).facts if _may_be_gap(f, line)]
        places += names_in(line, corpus.book)
        for start, end in places:
            answer = line[start:end].strip()
            if line.count(answer) != 1 or not answer or line[end : end + 1] in ("-", "'", "%"):
                continue
            in_word = line[end : end + 1] == "." and line[end + 1 : end + 2].isalnum()
            if in_word or (start and line[start - 1] != " ") or _is_listed(line, start, end):
                continue
            gapped = f"{line[:start]}{_GAP}{line[end:]}"
            text = f'Fill in the gap as "{statement.title}" has it: {gapped}'
            yield made("cloze", text, answer, [statement.span], truth=line,
                       condition=condition_of(answer), references=(line,))  # fmt: skip


def _has_verb(line: str) -> bool:
    known = words.verb_forms()
    lows = [word.strip(",.").lower() for word in line.split()[1:]]
    return any(
        low in words.AUXILIARIES or any(form.tense != "base" for form in known.get(low, ()))
        for low in lows
    )


def _is_listed(line: str, start: int, end: int) -> bool:
    """Return whether a place is one of several items, so that its neighbours fit as well."""
    behind = line[end:]
    return line[:start].endswith((", ", " and ", " or ")) or behind.startswith(
        (",", " and ", " or ")
    )


def _may_be_gap(fact: Fact, line: str) -> bool:
    if fact.is_range or fact.minus or fact.kind == "ordinal" or fact.other is not None:
        return False
    if line[fact.start : fact.end].lower() in ("half", "quarter", "third", "once", "twice"):
        return False
    before = line[: fact.start].rstrip().rpartition(" ")[2].lower()
    if fact.is_word and before in ("all", "the", "these", "those", "both", "its", "their"):
        return False  # "all three" counts what was named before
    return not (fact.is_word and (fact.raw <= 1 or fact.end - fact.start < 3)) and fact.start > 0


def yes_no(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield questions whose answer is yes, and the same with a changed value: no."""
    for statement in corpus.clauses:
        clause = statement.clause
        if clause is None or len(statement.line.split()) > 22 or _denies(clause):
            continue
        text = _capital(f"{statement.scope}{clause.question()}?")
        yield made("yes_or_no", text, "Yes", [statement.span], condition=_YES,
                   truth=statement.line, references=(f"Yes. {statement.line}",))  # fmt: skip
        wrong = falsified(statement, corpus.rng("yes_no", statement.line))
        if wrong is not None:
            text = _capital(f"{statement.scope}{clause.question(wrong.rest)}?")
            yield made("yes_or_no", text, "No", [statement.span], condition=_NO,
                       truth=statement.line, false=sentence(wrong.line),
                       references=(f"No. {statement.line}",))  # fmt: skip


_YES = 'regexp("(?i)\\byes\\b")'
_NO = 'regexp("(?i)\\bno\\b") OR regexp("(?i)\\bnot\\b")'


_DENIALS = frozenset(("not", "no", "nothing", "only", "never", "without", "none", "neither"))


def _denies(clause: Clause) -> bool:
    return not _DENIALS.isdisjoint(clause.rest.split())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def negation(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield the denial of a statement as a question, and a contradiction that somebody claims."""
    for statement in corpus.clauses:
        clause = statement.clause
        if clause is None or len(statement.line.split()) > 20 or _denies(clause):
            continue
        scope = statement.scope
        text = _capital(f"{scope}is it true that {clause.statement(negated=True)}?")
        yield made("negation_and_contradiction", text, f"No. {statement.line}", [statement.span],
                   condition=_NO, truth=statement.line,
                   false=sentence(clause.statement(negated=True)))  # fmt: skip
        wrong = falsified(statement, corpus.rng("negation", statement.line))
        if wrong is not None:
            text = (
                f"One colleague says that {clause.statement()}. "
                f"Another one says that {wrong.line}. "
                f'Who is right according to "{statement.title}"?'
            )
            yield made("negation_and_contradiction", text, f"The first one: {clause.statement()}.",
                       [statement.span], truth=statement.line, false=sentence(wrong.line),
                       condition=condition_of(wrong.before))  # fmt: skip


def inference(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield comparisons with a value that no document names: before a year, more than an amount."""
    for question in corpus.questions:
        fact, clause = question.fact, question.statement.clause
        if fact is None or clause is None or fact.bound:
            continue
        rng = corpus.rng("inference", question.text)
        if question.kind == "temporal" and is_year(fact) and question.direct.startswith("in which"):
            found: tuple[str, bool] | None = _about_year(
                question, _year(question) + rng.choice((-9, -6, -4, 4, 6, 9))
            )
        elif question.kind == "numeric" and not fact.is_word:
            found = _about_amount(clause, fact, rng.random() < 0.5)
        else:
            continue
        if found is not None and found[0]:
            text, is_so = found
            said = "Yes" if is_so else "No"
            yield made("inference", _capital(f"{question.statement.scope}{text}?"), said,
                       [question.statement.span], condition=_YES if is_so else _NO,
                       truth=question.statement.line,
                       references=(f"{said}. {question.statement.line}",))  # fmt: skip


def _about_year(question: WhQuestion, year: int) -> tuple[str, bool]:
    left = question.direct.removeprefix("in which year ")
    return f"{left} before {year}", _year(question) < year


def _about_amount(clause: Clause, fact: Fact, more: bool) -> tuple[str, bool] | None:
    text = clause.rest[fact.start : fact.end]
    digits = "".join(c for c in text if c.isdigit() or c in ".,").strip(".,")
    if not digits.replace(",", "").isdecimal() or text.count(digits) != 1:
        return None
    value = int(digits.replace(",", ""))
    if value < 4:
        return None
    other = value // 2 if more else value * 2
    shown = f"{other:,}" if "," in digits else str(other)
    changed = f"more than {text.replace(digits, shown)}"
    before = clause.rest[: fact.start].split()
    if before and before[-1].lower() in ("by", "to", "at", "in", "the", "its"):
        return None
    rest = f"{clause.rest[: fact.start]}{changed}{clause.rest[fact.end :]}"
    return clause.question(rest), value > other


def multiple_choice(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield questions about a value with four options, three of them changed."""
    for question in corpus.questions:
        fact = question.fact
        if fact is None or question.kind not in ("numeric", "temporal"):
            continue
        rng = corpus.rng("choice", question.text)
        value = _value_text(question, fact)
        options = [question.answer]
        for _ in range(24):
            other = other_value(fact, value, rng)
            text = question.answer.replace(value, other, 1) if other else ""
            if other and text not in options and other not in question.statement.chunk.text:
                options.append(text)
            if len(options) == 4:
                break
        if len(options) < 4:
            continue
        rng.shuffle(options)
        place = "ABCD"[options.index(question.answer)]
        listed = "\n".join(f"{'ABCD'[n]}) {text}" for n, text in enumerate(options))
        yield made(
            "multiple_choice", f"{question.text}\n{listed}", f"{place}) {question.answer}",
            [question.statement.span], truth=question.statement.line,
            references=(question.answer, place), condition=condition_of(question.answer),
        )  # fmt: skip


def _value_text(question: WhQuestion, fact: Fact) -> str:
    clause = question.statement.clause
    return "" if clause is None else clause.rest[fact.start : fact.end]


def lists(corpus: Corpus) -> Iterator[GeneratedCase]:
    """Yield questions for all points of a list and for all items of an enumeration."""
    for found in corpus.lists:
        text = f'What does "{found.title}" list after "{found.lead}"? Name every point.'
        yield made("list", text, "\n".join(found.points), list(found.spans),
                   truth=f"{found.lead} {' '.join(found.points)}")  # fmt: skip
    for statement in corpus.clauses:
        clause = statement.clause
        listed = None if clause is None else list_items(clause.rest)
        if clause is None or listed is None:
            continue
        before = clause.rest[: listed[0]].split()
        if len(before) > 1 or (before and before[0] not in ("for", "with", "of", "to", "in")):
            continue
        if not clause.base and (before or clause.verb not in ("are", "were")):
            continue
        asked_for = clause.question(" ".join(before))
        text = _capital(f"{statement.scope}what {asked_for}? Name all of them.")
        yield made("list", text, clause.rest[listed[0] :], [statement.span], truth=statement.line,
                   references=("\n".join(listed[1]),))  # fmt: skip
