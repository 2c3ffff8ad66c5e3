"""Words the question of a template by rules, in six styles; no model is asked.

A question is put together from noun phrases: what is asked, of which row. Further wordings of a
style take the columns' synonyms, and other turns of the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from guardrail_offline.grammar.queries import Given, Named, TemplateQuery
from guardrail_offline.grammar.schema import plural

Style = Literal["short", "long", "interrogative", "directive", "formal", "casual"]
STYLES: tuple[Style, ...] = get_args(Style)
"""The styles of GRAMMAR, 2024, in the order in which questions are made."""
MOST_PER_STYLE = 2


class Wording(NamedTuple):
    """One text of a template, with placeholders, and its style."""

    style: str
    text: str


class _Parts(NamedTuple):
    """The noun phrases of a question.

    `fact` is what is asked without its row ("industry of the client"), `row` the row that is named
    ("the project [Project.Name]"), `name` its placeholder, `whole` fact and row with an article.
    """

    fact: str
    name: str
    row: str
    whole: str
    verb: str


_LONG = (
    "I am going through the records that we keep and I would like to know one thing about {row}: "
    "as far as it is written down somewhere, ",
    "For a summary that I have to hand in later today I still need something that I could not find "
    "in my own notes, and that is ",
)
_FACTS: Mapping[Style, tuple[str, str]] = {
    "short": ("{name}: {fact}?", "{Fact} of {name}?"),
    "long": (
        _LONG[0] + "what {verb} {whole}?",
        _LONG[1] + "{whole}; what does it say in the documents?",
    ),
    "interrogative": ("What {verb} {whole}?", "Which {fact} {does} {row} have?"),
    "directive": ("Give me {whole}.", "State {whole}."),
    "formal": (
        "Could you please inform me of {whole}?",
        "I should be grateful if you would let me know {whole}.",
    ),
    "casual": ("Hey, do you know {whole}?", "So {whole}, any idea?"),
}
_COUNTS: Mapping[Style, tuple[str, str]] = {
    "short": ("How many {fact}?", "Number of {fact}?"),
    "long": (_LONG[0] + "how many {fact} are there?", _LONG[1] + "how many {fact} there are."),
    "interrogative": ("How many {fact} are there?", "What is the number of {fact}?"),
    "directive": ("Give me the number of {fact}.", "Count the {fact}."),
    "formal": (
        "Could you please inform me how many {fact} there are?",
        "I should be grateful if you would let me know the number of {fact}.",
    ),
    "casual": ("Hey, how many {fact} are there?", "So how many {fact}, any idea?"),
}
_LISTS: Mapping[Style, tuple[str, str]] = {
    **_FACTS,
    "short": ("{Fact}?", "All {fact}?"),
    "interrogative": ("What are {whole}?", "Which are {whole}?"),
}


def word(query: TemplateQuery, texts: int = len(STYLES)) -> tuple[Wording, ...]:
    """Return wordings of a query, style by style, then each style's second one.

    Args:
        query: What is asked.
        texts: How many; at most two of each style.
    """
    found = list(_wordings(query))
    return tuple(found[:texts])


def _wordings(query: TemplateQuery) -> Iterator[Wording]:
    for turn in range(MOST_PER_STYLE):
        parts = _parts(query, turn)
        rules = _COUNTS if query.counts else _LISTS if _lists(query) else _FACTS
        for style in STYLES:
            text = _filled(rules[style][turn], parts)
            yield Wording(style, text[:1].upper() + text[1:] if text[0] != "[" else text)


def _filled(rule: str, parts: _Parts) -> str:
    """Return a rule with its parts: braces in a name of the database are not read as parts."""
    fact = parts.fact[:1].upper() + parts.fact[1:]
    return rule.format(**parts._asdict(), Fact=fact, does="does")


def _parts(query: TemplateQuery, turn: int) -> _Parts:
    row = _row(query)
    ways = _ways(query)
    name = _listed(query.placeholders)
    if query.counts or _lists(query):
        group = f"{query.sources[0][1].plural} whose {_step(*query.links[0])} is {name}"
        if query.counts:
            return _Parts(group, name, row, f"the number of {group}", "is")
        fact = f"{plural(_phrase(query.asked[0], turn))} of the {group}"
        return _Parts(fact, name, row, f"the {fact}", "are")
    names = [_phrase(one, turn) for one in query.asked]
    facts = _listed(names)
    way = "".join(f" of the {step}" for step in reversed(ways))
    whole = _listed([f"the {name}" for name in names]) + f"{way} of {row}"
    return _Parts(f"{facts}{way}", name, row, whole, "is" if len(names) == 1 else "are")


def _phrase(named: Named, turn: int) -> str:
    phrases = (named.column.phrase, *named.column.synonyms)
    return phrases[turn % len(phrases)]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _row(query: TemplateQuery) -> str:
    """Return the row that is named: "the project [X]", "the employment of ... and ..."."""
    if len(query.given) == 1:
        return _one(query.given[0])
    first = query.sources[0][1]
    inside = {one.named.alias for one in query.given}
    named = _listed([_one(one) for one in query.given])
    return named if query.sources[0][0] in inside else f"the {first.phrase} of {named}"


def _one(given: Given) -> str:
    return f"the {given.named.table.phrase} {given.placeholder}"


def _lists(query: TemplateQuery) -> bool:
    """Return whether rows are asked that refer to the named one: joined against the key."""
    if not query.joins or len(query.given) != 1 or query.counts:
        return False
    first = query.sources[0][0]
    return query.asked[0].alias == first != query.given[0].named.alias


def _ways(query: TemplateQuery) -> list[str]:
    """Return what the joins lead to, in the words of the keys: "client", "supervisor"."""
    start = query.given[0].named.alias
    if len(query.given) != 1 or any(one.alias == start for one in query.asked):
        return []
    return [_step(one, other) for one, other in query.links]


def _step(one: Named, other: Named) -> str:
    """Return what a row refers to through a key; a phrase that only says "id" is the table's."""
    phrase = one.column.phrase
    return phrase if phrase and phrase.lower() not in ("id", "key") else other.table.phrase
