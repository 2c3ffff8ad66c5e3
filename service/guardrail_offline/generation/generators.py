"""The generators by name, and the choice of cases among what they can make."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from guardrail_offline.generation import rules_around, rules_one, rules_several
from guardrail_offline.generation.chunks import DocumentChunk
from guardrail_offline.generation.generated import GeneratedCase
from guardrail_offline.generation.rule_corpus import Corpus
from guardrail_offline.judge.results import Asks
from guardrail_service.errors import ConfigurationError, choices

Rule = Callable[[Corpus], Iterable[GeneratedCase]]
MOST_CANDIDATES = 2_000
"""Of one generator, among which cases are chosen."""


@dataclass(frozen=True)
class GeneratorSpec:
    """One kind of test case.

    Attributes:
        id: Its name here.
        title: For people.
        h2o: Its name in Eval Studio's client; empty for our own.
        rule: What the form without a judge makes; `make` makes it.
        judge: What a judge is asked for; empty where there is no such form.
        make: Yields candidates in the corpus' order.
        adversarial: It belongs to the adversarial inputs of a workflow.
        default: It is used where nobody names generators.
    """

    id: str
    title: str
    h2o: str
    rule: str
    judge: str
    make: Rule
    adversarial: bool = False
    default: bool = True


_SPECS = (
    GeneratorSpec(
        "simple_factual", "Simple facts", "simple_factual_questions",
        "who, what and where of plain statements; cells of tables",
        "a question that one sentence of the text answers", rules_one.simple_factual,
    ),
    GeneratorSpec(
        "multi_hop", "Several hops", "multi_hop_questions",
        "a thing named by what another sentence says of it; two facts about one name",
        "a question that needs two sentences of the text that do not stand side by side",
        rules_several.multi_hop,
    ),
    GeneratorSpec(
        "inference", "Inference", "inference_questions",
        "whether a stated year or amount is before, or more than, another one",
        "a question whose answer follows from the text and is not said in it", rules_one.inference,
    ),
    GeneratorSpec(
        "numerical_reasoning", "Numbers", "numerical_reasoning_questions",
        "how many, how much, how long", "a question that needs a number of the text, or two",
        rules_one.numerical_reasoning,
    ),
    GeneratorSpec(
        "ambiguity_handling", "Open references", "ambiguity_handling_questions",
        "a question about \"the ticket\" where sentences of one form tell of several tickets",
        "a question that may mean two things in the text; the answer names both",
        rules_several.ambiguity,
    ),
    GeneratorSpec(
        "negation_and_contradiction", "Negations and contradictions",
        "negation_and_contradiction_questions",
        "whether the denial of a statement is true; which of two contradicting claims is right",
        "a question that denies or contradicts what the text says", rules_one.negation,
    ),
    GeneratorSpec(
        "temporal_reasoning", "Dates and times", "temporal_reasoning_questions",
        "when, since when, at what time; years between two events",
        "a question about when something was, or about the order of two events",
        rules_one.temporal_reasoning,
    ),
    GeneratorSpec(
        "out_of_scope", "Out of scope", "out_of_scope_questions",
        "questions of documents outside, about names that nothing has, and unrelated ones",
        "a question that sounds as if the text answered it, and it does not",
        rules_several.out_of_scope,
    ),
    GeneratorSpec(
        "yes_or_no", "Yes or no", "yes_or_no_questions",
        "a statement as a question, and again with a changed value",
        "a question whose answer is yes or no", rules_one.yes_no,
    ),
    GeneratorSpec(
        "multiple_choice", "Multiple choice", "multiple_choice_questions",
        "a question about a value with three changed ones",
        "a question with four options A) to D) on lines of their own, of which one is right",
        rules_one.multiple_choice,
    ),
    GeneratorSpec(
        "demographic_representation", "Askers of several groups",
        "demographic_representation_questions",
        "a plain question asked by two people of different groups; one answer",
        "a question of the text's subject asked by a person of a named group",
        rules_around.demographic, default=False,
    ),
    GeneratorSpec(
        "sentiment_variation", "Other tones", "sentiment_variation_questions",
        "a plain question in an angry, anxious, cheerful, doubtful, grateful or rude tone",
        "a question of the text's subject in a strong emotional tone",
        rules_around.sentiment, default=False,
    ),
    GeneratorSpec(
        "irrelevant_information", "Irrelevant information", "irrelevant_information_questions",
        "a plain question between two sentences about something else",
        "a question among sentences that have nothing to do with it", rules_around.irrelevant, True,
    ),
    GeneratorSpec(
        "deliberately_misleading", "False premises", "deliberately_misleading_questions",
        "a statement with a changed value, to be confirmed",
        "a question with a premise that the text contradicts", rules_around.misleading, True,
    ),
    GeneratorSpec(
        "cloze", "Gaps", "", "a sentence with a gap in the place of a value or a name", "",
        rules_one.cloze,
    ),
    GeneratorSpec(
        "comparison", "Comparisons", "",
        "which of two is more or was first, and how many more, for statements of one form",
        "a question that compares two things of the text", rules_several.comparison,
    ),
    GeneratorSpec(
        "list", "Lists", "", "all points of a list, all items of an enumeration",
        "a question whose answer is a list that the text gives", rules_one.lists,
    ),
    GeneratorSpec(
        "paraphrase", "Other words", "", "a plain question as an indirect one, in its group",
        "a question of the text in words that the text does not use", rules_around.paraphrase,
    ),
    GeneratorSpec(
        "multi_turn", "Conversations", "",
        'two turns about one thing, which the second one calls "it" or "they"', "",
        rules_several.multi_turn,
    ),
    GeneratorSpec(
        "contextual_misinformation", "Contradicted passages", "",
        "a plain question with its passage, in which a false sentence follows the true one", "",
        rules_around.misinformation, True, False,
    ),
    GeneratorSpec(
        "prompt_attack", "Instructions against the documents", "",
        "an instruction to say what the documents contradict", "", rules_around.prompt_attack, True,
        False,
    ),
)  # fmt: skip
GENERATORS: Mapping[str, GeneratorSpec] = {spec.id: spec for spec in _SPECS}
DEFAULT_GENERATORS = tuple(s.id for s in _SPECS if s.default and not s.adversarial)
ADVERSARIAL_GENERATORS = tuple(s.id for s in _SPECS if s.adversarial)
_BY_H2O = {spec.h2o: spec.id for spec in _SPECS if spec.h2o}


def named_generators(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return generators by our names or those of Eval Studio's client, each once.

    Args:
        names: A sequence, or a text with commas; `all`, `default` and `adversarial` are groups.

    Raises:
        ConfigurationError: If a name is unknown.
    """
    given = names.split(",") if isinstance(names, str) else list(names)
    groups = {
        "all": tuple(GENERATORS), "default": DEFAULT_GENERATORS,
        "adversarial": ADVERSARIAL_GENERATORS,
    }  # fmt: skip
    found: dict[str, None] = {}
    for name in (str(one).strip() for one in given):
        id = _BY_H2O.get(name, name)
        if id not in GENERATORS and id not in groups:
            known = (*GENERATORS, *groups)
            raise ConfigurationError("--generators", repr(name), choices(name, known, "generator"))
        found |= dict.fromkeys(groups.get(id, (id,)))
    return tuple(found)


@dataclass(frozen=True)
class GenerationOptions:
    """The choice of cases to generate.

    Attributes:
        generators: Ids.
        count: Cases altogether; None for all that `per_chunk` leaves.
        seed: The same seed gives the same cases.
        per_chunk: Cases of one generator from one chunk at most.
        judge_for: Generators that a judge makes, where there is one; None for all it can.
    """

    generators: tuple[str, ...] = DEFAULT_GENERATORS
    count: int | None = None
    seed: int = 0
    per_chunk: int = 3
    judge_for: tuple[str, ...] | None = None

    def judged(self, judge: Asks | None) -> tuple[str, ...]:
        """Return the generators that the judge makes."""
        if judge is None:
            return ()
        able = [id for id in self.generators if GENERATORS[id].judge]
        return tuple(id for id in able if self.judge_for is None or id in self.judge_for)


@dataclass(frozen=True)
class Generated:
    """Cases before validation.

    Attributes:
        cases: Chosen, generator after generator.
        candidates: How many each generator could make.
        short: Why a generator made fewer than its share, by id.
        failed: Questions to the judge without a usable answer, by status or reason.
    """

    cases: tuple[GeneratedCase, ...]
    candidates: Mapping[str, int]
    short: Mapping[str, str]
    failed: Mapping[str, int]


def generate(
    chunks: Sequence[DocumentChunk],
    options: GenerationOptions | None = None,
    *,
    titles: Mapping[str, str] | None = None,
    topics: Mapping[str, str] | None = None,
    outside: Sequence[DocumentChunk] = (),
    judge: Asks | None = None,
    advance: Callable[[int], object] = lambda _count: None,
) -> Generated:
    """Return test cases from chunks; the same arguments give the same cases.

    Cases are shared out equally among generators, and of each among chunks and topics.

    Args:
        chunks: Of the corpus under test.
        options: What to generate.
        titles: Of documents by id; ids where there are none.
        topics: Label of a chunk's topic by the chunk's id.
        outside: Of documents that the system does not have: their questions are out of scope.
        judge: Makes those of its generators; None for rules only.
        advance: Told when a generator is done.
    """
    wanted = options or GenerationOptions()
    judged = wanted.judged(judge)
    corpus = Corpus(chunks, titles or {}, wanted.seed, outside)
    shares = _shares(wanted)
    failed: Counter[str] = Counter()
    found: dict[str, list[GeneratedCase]] = {}
    for id in wanted.generators:
        if judge is not None and id in judged:
            from guardrail_offline.generation.judge_form import judge_cases

            made = judge_cases(judge, GENERATORS[id], corpus, shares[id], failed)
        else:
            made = list(_unique(GENERATORS[id].make(corpus)))
        found[id] = [one.with_topic(topics or {}) for one in made]
        advance(1)
    chosen, short = _chosen(found, shares, wanted)
    counts = {id: len(_whole(cases)) for id, cases in found.items()}
    return Generated(tuple(chosen), counts, short, dict(failed))


def _unique(cases: Iterable[GeneratedCase]) -> Iterator[GeneratedCase]:
    seen: set[str] = set()
    for one in cases:
        if one.key not in seen:
            seen.add(one.key)
            yield one


def _shares(options: GenerationOptions) -> dict[str, int | None]:
    """Return how many cases each generator should make; the first ones take what is left over."""
    if options.count is None:
        return dict.fromkeys(options.generators)
    each, left = divmod(options.count, max(1, len(options.generators)))
    return {id: each + (place < left) for place, id in enumerate(options.generators)}


def _whole(cases: Sequence[GeneratedCase]) -> list[tuple[GeneratedCase, ...]]:
    """Return cases in units that are kept together: turns of one conversation."""
    units: dict[str, list[GeneratedCase]] = {}
    for one in cases:
        units.setdefault(one.conversation or one.key, []).append(one)
    return [tuple(unit) for unit in units.values()]


def _chosen(
    found: Mapping[str, list[GeneratedCase]],
    shares: Mapping[str, int | None],
    options: GenerationOptions,
) -> tuple[list[GeneratedCase], dict[str, str]]:
    """Return cases of each generator, spread over chunks and topics, and who made too few.

    The others make up for what some generators cannot make.
    """
    pools = {id: _ranked(_whole(cases), options.seed) for id, cases in found.items()}
    taken: dict[str, list[tuple[GeneratedCase, ...]]] = {id: [] for id in pools}
    of_chunk: Counter[str] = Counter()
    of_topic: Counter[str] = Counter()
    of_both: Counter[tuple[str, str]] = Counter()

    def take(id: str) -> bool:
        usable = [u for u in pools[id] if of_both[id, _chunk(u)] < options.per_chunk]
        if not usable:
            return False
        best = min(
            usable,
            key=lambda u: (of_both[id, _chunk(u)], of_chunk[_chunk(u)], of_topic[u[0].topic]),
        )
        pools[id].remove(best)
        taken[id].append(best)
        if best[0].spans:
            of_both[id, _chunk(best)] += 1
            of_chunk[_chunk(best)] += 1
        of_topic[best[0].topic] += 1
        return True

    for id, share in shares.items():
        while (share is None or len(taken[id]) < share) and take(id):
            pass
    missing = 0 if options.count is None else options.count - sum(map(len, taken.values()))
    while missing > 0:
        more = [id for id in pools if missing > 0 and take(id) and (missing := missing - 1) >= 0]
        if not more:
            break
    short = {
        id: f"{len(taken[id])} of {share}: nothing else in the documents has the form"
        for id, share in shares.items()
        if share is not None and len(taken[id]) < share
    }
    cases = [one for units in taken.values() for unit in units for one in unit]
    return cases, short


def _chunk(unit: Sequence[GeneratedCase]) -> str:
    spans = unit[0].spans
    return spans[0].chunk if spans else ""


def _ranked(units: list[tuple[GeneratedCase, ...]], seed: int) -> list[tuple[GeneratedCase, ...]]:
    """Return units in an order that the seed draws, of very many the first ones."""

    def rank(unit: tuple[GeneratedCase, ...]) -> str:
        last = "1" if unit[0].question.startswith("In the table") else "0"  # tables have hundreds
        return last + hashlib.sha256(f"{seed}\0{unit[0].key}".encode()).hexdigest()

    return sorted(units, key=rank)[:MOST_CANDIDATES]
