"""Exact facts: does a passage say another number, date, unit or order than the answer?

Each fact of a claim is supported, contradicted or not mentioned by the passages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.absence import (
    HARDLY,
    LIKELY,
    SURELY,
    UNSURE,
    absence,
    in_foreign_unit,
    in_other_unit,
    numbered,
    stands_bare,
    strange_name,
)
from guardrail_service.detectors.facts.align import (
    Held,
    PassageFacts,
    Place,
    agrees,
    alone,
    around,
    clause_words,
    dated_words,
    dates_agree,
    equations,
    in_slot,
    is_amount,
    is_operand,
    is_other_unit,
    is_rate,
    labels,
    remainders,
    rivals,
    same_things,
)
from guardrail_service.detectors.facts.amounts import Fact, in_unit_of
from guardrail_service.detectors.facts.calculation import Calculation
from guardrail_service.detectors.facts.conditions import is_age, is_case, unconditional
from guardrail_service.detectors.facts.derive import portions, shown
from guardrail_service.detectors.facts.doubt import columns, is_doubtful
from guardrail_service.detectors.facts.grids import (
    Grid,
    GridReading,
    exchanged,
    grids,
    headings_of,
)
from guardrail_service.detectors.facts.languages import LATIN
from guardrail_service.detectors.facts.read import ReadSentence, read_all
from guardrail_service.detectors.facts.roles import misattributed
from guardrail_service.detectors.facts.sequence import disorders, misplaced
from guardrail_service.detectors.facts.statements import contradicted
from guardrail_service.detectors.facts.suspicion import (
    MOST_SUSPICION,
    may_stand_for,
    second_look,
)
from guardrail_service.detectors.hallucination.reading import claims_of
from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    MetricSpec,
    Parameters,
    detector,
)
from guardrail_service.detectors.shared.remedies import STAY_WITH_PASSAGES
from guardrail_service.text.budget import check_time, in_time
from guardrail_service.text.cached import cached_property
from guardrail_service.text.sample import SegmentedSample, passage_sentences
from guardrail_service.text.segmentation.sentences import Sentence
from guardrail_service.types import Coverage, Direction, Evidence, Outcome, RowOutput, Span

SUPPORTED: Final = "supported"
CONTRADICTED: Final = "contradicted"
NOT_MENTIONED: Final = "not_mentioned"
_SHARED = 1
"""Further words that two counts of the same things share at least."""
_SURE_LANGUAGE = 0.9
"""Probability from which a short answer's language counts against its passages'."""
_STATED = 0.35
"""Score of a statement without a number that a passage contradicts."""
_SAME_WORDS = 0.25
"""Below it a passage says another value among so many of the claim's words that none is
computed."""
_NOT_ONLY = frozenset((("not", "only"), ("not", "just"), ("not", "merely")))
_THIRD = 0.33
_SEASON = frozenset(("-", "/", "\u2013"))
_INSTANCES = (",forinstance", ",forexample")
_BEHIND = 7
"""Tokens behind a number in which ", for instance" may stand."""
_FOR_EXAMPLE = ("e.g.", "forexample", "forinstance")
_FEW_AMOUNTS = 6
"""Amounts of a claim at most that are tried as what others follow from."""
_ROW = 4
"""Strokes of the smallest table."""
_ERAS = frozenset(("century", "time", "millennium"))
_MODAL = frozenset(("must", "may", "should", "shall", "can", "cannot", "can't", "mustn't", "do"))
"""With a "not" they forbid something, whatever the number behind it: "must not drive for 48 h"."""
READ = frozenset(("", "zh", "ja", "ko")) | LATIN
"""Languages whose words are compared; of others only numbers are."""


class FactVerdict(NamedTuple):
    """The passages' word on one fact of a claim.

    Attributes:
        start: Where it begins in the answer.
        end: Where it ends.
        kind: The fact's kind.
        label: `supported`, `contradicted` or `not_mentioned`.
        score: 1 for supported, less the surer it is that the passages say otherwise.
        place: The passage place that says it, or says otherwise.
        derivation: How it follows from numbers of the passages; "" if it stands there.
    """

    start: int
    end: int
    kind: str
    label: str
    score: float
    place: Place | None = None
    derivation: str = ""


class FactsParameters(Parameters):
    """Facts have nothing to set; where they gate is a threshold."""


@detector
class Facts(Detector[FactsParameters]):
    """Compares what the answer states exactly with the passages; one span per fact."""

    spec = DetectorSpec(
        id="facts",
        version="rules/1",
        summary="Do the passages hold other numbers, dates or units than the answer? (rules)",
        metrics=(MetricSpec("facts", Direction.HIGHER, gating=True),),
        inputs=frozenset({"answer", "contexts"}),
        cost="pattern",
        default_thresholds={"facts": 0.5},
        skip_on_abstention=True,
        in_flight="parts",
        remedy=STAY_WITH_PASSAGES,
        listing=Listing(
            title="Exact facts", tags=("rule-based", "nist:valid-reliable"), avid="E0400"
        ),
    )
    parameters = FactsParameters

    def reduce(
        self, sample: SegmentedSample, outputs: Sequence[RowOutput], parameters: FactsParameters
    ) -> Outcome:
        """Return the worst fact's score, with every fact as a span."""
        pieces = claims_of(sample).stated
        if not pieces:
            return Outcome.not_applicable("no_claim")
        if not any(sample.context_sentences):
            return Outcome.unverified("missing_input")
        found = _weighed(verdicts(sample, pieces), sample)
        coverage = Coverage.whole(sample.sample, contexts=True)
        score = min((verdict.score for verdict in found), default=1.0)
        return Outcome.evaluated({"facts": score}, tuple(map(_span, found)), coverage)


def _weighed(found: list[FactVerdict], sample: SegmentedSample) -> list[FactVerdict]:
    """Return verdicts; where the whole answer speaks for it, what is held against it is unsure."""
    if all(one.score >= _DOUBT for one in found):
        return found
    answer, asked = sample.sample.answer, sample.sample.question or ""
    counts = columns(found, answer, asked, not _language(sample))
    if counts is None or not is_doubtful(counts):
        return found
    return [
        one if one.score >= _DOUBT else one._replace(label=NOT_MENTIONED, score=HARDLY)
        for one in found
    ]


def _span(verdict: FactVerdict) -> Span:
    place = verdict.place
    shown = () if place is None else (Evidence(*place, verdict.score),)
    about: dict[str, str] = {"kind": verdict.kind}
    if verdict.derivation:
        about["derivation"] = verdict.derivation
    against = NOT_MENTIONED if verdict.label == SUPPORTED else verdict.label
    return Span(
        verdict.start, verdict.end, verdict.label, verdict.score, "facts", shown,
        attributes=about, crossed=against,
    )  # fmt: skip


def verdicts(sample: SegmentedSample, pieces: Sequence[Sentence]) -> list[FactVerdict]:
    """Return what the passages say about each fact of some claims, in order."""
    asked = sample.sample.question or ""
    code = _language(sample)
    is_told = not code or code in LATIN
    around = sample.language("contexts")
    is_one_language = bool(code) and around is not None and around.code == code
    (claims,) = read_all(pieces, language=code)
    texts = tuple(passage.text for passage in sample.sample.contexts)
    hold = _kept if sum(map(len, texts)) <= KEPT_CHARS else _source
    source, found_grids = hold(texts, asked, code)
    told = source.signals
    said_by_all = [*claims, *([source.question] if source.question else [])]
    shares = [*_shares_of_bases(said_by_all, source), *_factors(said_by_all)]
    found: list[FactVerdict] = []
    before: list[ReadSentence] = []
    told_before: dict[tuple[str, float], str] = {}
    examples: set[float] = set()
    said = [(place, fact) for place, one in enumerate(claims) for fact in one.facts][:MOST_SAID]
    lines = cache(lambda: (_lines(claims, last=True), _lines(claims, last=False)))
    headings = cache(lambda: headings_of(sample.sample.answer))
    for place, claim in enumerate(in_time(claims)):
        told_so_far = len(found)
        reading = None
        if found_grids:
            own = headings().get(claim.start, ()) if "|" in claim.text else ()
            reading = GridReading(claim, source, before, found_grids, own)
        if claim.facts:
            misread = dict(reading.misread()) if reading is not None else {}
            others = [fact for at, fact in said if at not in (place - 1, place)]
            judge = FactJudge(
                claim, source, before, code, shares, others, lines, told_before, examples
            )
            found += judge.verdicts(misread)
        if reading is not None and is_told:
            found += [_whole(claim, kind, place) for kind, place in reading.denied()]
        if is_told and (claim.signals & told or "denial" in claim.signals | told):
            found += _statements(claim, source)
        if is_told and "condition" in claim.signals:
            found += [_whole(claim, one.kind, one.place) for one in unconditional(claim, source)]
        if is_told and "names" in claim.signals:
            other = misattributed(claim, source, code)
            found += [] if other is None else [_whole(claim, "role", other.place)]
        if is_one_language and all(one.score >= _DOUBT for one in found[told_so_far:]):
            found += _strange(claim, source, code)
        before = [claim]
    if any("order" in one.signals for one in claims):
        found += [_whole(one.claim, "order", one.place) for one in disorders(claims, source)]
        found += [_whole(one.claim, "order", one.place) for one in misplaced(claims, source)]
    return found


def _strange(claim: ReadSentence, source: PassageFacts, language: str) -> list[FactVerdict]:
    """Return the verdict on a name, or a sentence, that nobody has said."""
    name = strange_name(claim, source, language)
    if name is None:
        return []
    start, end = claim.start + name.start, claim.start + name.end
    return [FactVerdict(start, end, name.kind, NOT_MENTIONED, LIKELY)]


_DOUBT = 0.5
"""From this score on a claim's other facts say nothing against it."""
MOST_SAID, MOST_ENDS = 64, 24
"""Numbers of an answer that others are computed from, and those that end a line: a long answer has
more than anybody adds up."""


def _lines(claims: Sequence[ReadSentence], *, last: bool) -> list[Fact]:
    """Return the first or the last amount of each line of some claims, of the first ones."""
    found: list[Fact] = []
    for claim in claims:
        if len(found) >= MOST_ENDS:
            break
        facts = [fact for fact in claim.facts[:MOST_SAID] if is_amount(fact)]
        ordered = facts if last else [f for f in reversed(facts) if not _is_line_number(claim, f)]
        lines = {claim.text.count("\n", 0, fact.start): fact for fact in ordered}
        found += lines.values() if last else reversed(lines.values())
    return found[:MOST_ENDS]


def _is_line_number(claim: ReadSentence, fact: Fact) -> bool:
    """Return whether a number counts its line: "2. Vale, 295 km"."""
    behind = claim.tokens[fact.last : fact.last + 1]
    begins = not claim.text[claim.text.rfind("\n", 0, fact.start) + 1 : fact.start].strip()
    return begins and bool(behind) and behind[0].text in (".", ")")


def _source(
    texts: tuple[str, ...], asked: str, language: str
) -> tuple[PassageFacts, tuple[Grid, ...]]:
    """Return what passages and a question hold, "" for none, and the passages' tables."""
    question, *passages = read_all(
        [Sentence(0, len(asked), asked)], *map(passage_sentences, texts), language=language
    )
    has_rows = any(text.count("|") > _ROW for text in texts)
    return PassageFacts(passages, question[0] if asked else None), grids(texts) if has_rows else ()


KEPT_SOURCES, KEPT_CHARS = 16, 10_000
"""Evaluators ask about claims one by one, and about several answers to one question."""
_kept = lru_cache(KEPT_SOURCES)(_source)


def _whole(claim: ReadSentence, kind: str, place: Place) -> FactVerdict:
    """Return the verdict on a claim that passages contradict as a whole."""
    end = claim.start + len(claim.text)
    return FactVerdict(claim.start, end, kind, CONTRADICTED, _STATED, place)


def _language(sample: SegmentedSample) -> str:
    """Return the code of the answer's language, "" for English and where it cannot be told."""
    own, around = sample.language("answer"), sample.language("contexts")
    if own is None or own.probability < _SURE_LANGUAGE:
        own = around
    return "" if own is None or own.code == "en" else own.code


def _shares_of_bases(
    said: Sequence[ReadSentence], source: PassageFacts
) -> list[tuple[float, float, str]]:
    """Return what portions answer and question speak of, as shares of the passages' "per 100 g"."""
    if not source.bases:
        return []
    asked = [fact for one in said for fact in one.facts if fact.kind in ("measure", "number")]
    return portions(asked, source.bases)


def _factors(said: Sequence[ReadSentence]) -> list[tuple[float, float, str]]:
    """Return by what an answer or its question multiplies everything: "triple the recipe".

    Like `portions`, with a base that no amount has.
    """
    told = {
        factor
        for one in said
        for at, token in enumerate(one.tokens)
        if token.kind == "w"
        for factor, stems in words.FACTORS.items()
        if token.text.lower().startswith(stems)
        if any(
            behind.text.lower().startswith(words.MULTIPLIED)
            for behind in one.tokens[at + 1 : at + _OBJECT]
        )
    }
    return [(factor, -1.0, f"{factor:g}") for factor in sorted(told)]


_OBJECT = 5
"""Tokens from a verb to what it is about."""


def _statements(claim: ReadSentence, source: PassageFacts) -> list[FactVerdict]:
    """Return the statements of a claim that a passage contradicts, one per kind."""
    found = {one.kind: one for one in contradicted(claim, source)}
    return [
        FactVerdict(one.start, one.end, kind, CONTRADICTED, _STATED, one.place)
        for kind, one in found.items()
    ]


class FactJudge:
    """Judges the facts of one claim."""

    def __init__(
        self,
        claim: ReadSentence,
        source: PassageFacts,
        given: Sequence[ReadSentence],
        language: str,
        shares: Sequence[tuple[float, float, str]] = (),
        others: Sequence[Fact] = (),
        lines: Callable[[], Sequence[Sequence[Fact]]] = tuple,
        told_before: dict[tuple[str, float], str] | None = None,
        examples: set[float] | None = None,
    ) -> None:
        self.claim = claim
        self.source = source
        self.given = given
        self.words_read = language in READ
        self.language = language
        self.in_english = not language
        self.tells_sums = not language or language in LATIN
        self.shares = shares
        self.others = others
        self.lines = lines
        self.told_before = {} if told_before is None else told_before
        self.examples = set() if examples is None else examples
        self._judged: dict[int, float] = {}

    @cached_property
    def calculation(self) -> Calculation:
        """The calculations that may give its numbers; most claims need none."""
        return Calculation(
            self.claim, self.source, self.given, self.tells_sums, self.shares, self.language,
            self.others, self.lines(),
        )  # fmt: skip

    def verdicts(self, misread: Mapping[int, Place]) -> Iterator[FactVerdict]:
        """Yield a verdict for each fact, in order.

        Args:
            misread: The values that a table has in another row, by token.
        """
        shown_ones = list(equations(self.claim))
        right = {one.token: one.told for one in shown_ones if one.is_right}
        wrong = {one.token: one.told for one in shown_ones if not one.is_right}
        wrong |= dict(remainders(self.claim))
        swapped = {**misread, **(self._swapped() if self.words_read else {})}
        for fact in self.claim.facts:
            check_time()
            if fact.token in wrong:
                verdict = self._say(fact, CONTRADICTED, 0.1, None, wrong[fact.token])
            elif fact.token in right and not self.source.agreeing(fact):
                # Its terms are judged themselves.
                verdict = self._say(fact, SUPPORTED, 1.0, None, right[fact.token])
            elif fact.token in swapped:
                verdict = self._say(fact, CONTRADICTED, 0.2, swapped[fact.token])
            else:
                verdict = self._looked_at_again(fact, self._verdict(fact))
            self._judged[fact.token] = verdict.score
            yield verdict

    def _looked_at_again(self, fact: Fact, verdict: FactVerdict) -> FactVerdict:
        """Return the verdict, or that a passage seems to say another value in the fact's place."""
        if verdict.score < _DOUBT or not self.words_read:
            return verdict
        # "in 1646, and the castle three years later" of "in 1649, three years after"
        if verdict.derivation and fact.date is not None:
            return verdict
        if "|" in self.claim.text and verdict.label == SUPPORTED and not verdict.derivation:
            return verdict  # of a cell its neighbours tell nothing
        if _is_of_source(self.claim, fact, self.source):
            return verdict
        held = self.source.held
        if not any(
            one.fact.raw != fact.raw
            and (one.fact.kind == fact.kind or may_stand_for(fact, one.fact))
            for one in held
        ):
            return verdict
        look = second_look(
            self.claim, fact, self.source, self.given, (verdict.score, verdict.derivation),
            lambda held: self._is_taken(fact, held),
            lambda held: self._is_of_another_time(fact, held),
        )  # fmt: skip
        if look.other is None or look.value <= MOST_SUSPICION:
            return verdict
        return self._say(fact, CONTRADICTED, _STATED, look.other.place)

    def _verdict(self, fact: Fact) -> FactVerdict:
        agreeing = self.source.agreeing(fact)
        if self.words_read and (other := in_slot(self.claim, fact, self.source, agreeing)):
            is_computed = "|" in self.claim.text and self.calculation.in_row(fact)
            is_taken = self._is_taken(fact, other.fact) or self._is_of_another_time(fact, other)
            if is_computed or is_taken:
                pass
            elif not self.source.is_asked(fact) or agreeing:
                return self._say(fact, CONTRADICTED, _STATED, other.place)
        if (named := self._by_name(fact, agreeing)) is not None:
            return named
        rival = self._rival(fact, agreeing)
        if not agreeing and "|" in self.claim.text and (told := self.calculation.in_row(fact)):
            return self._say(fact, SUPPORTED, 1.0, None, told)
        if agreeing:
            if (other := self.source.of_other_unit(fact, agreeing)) is not None:
                return self._say(fact, CONTRADICTED, LIKELY, other.place)
            if (turned := self.source.is_turned(self.claim, fact)) is not None:
                return self._say(fact, CONTRADICTED, _STATED, turned.place)
            if rival is not None:
                return self._say(fact, CONTRADICTED, rival[1], rival[0].place)
            if (counted := self._counted_otherwise(fact, agreeing)) is not None:
                return self._say(fact, CONTRADICTED, LIKELY, counted.place)
            best = self.source.nearest(self.claim, fact, agreeing)
            return self._say(fact, SUPPORTED, 1.0, best.place)
        if self.source.is_asked(fact) or self._is_season(fact) or self._is_bare_day(fact):
            return self._say(fact, SUPPORTED, 1.0)
        told = self._converted(fact)
        if not told and [t.low for t in self.claim.tokens[fact.last : fact.last + 1]] == ["to"]:
            told = self.calculation.by_to(fact)  # "by 28 to 412"
        if told:
            return self._say(fact, SUPPORTED, 1.0, None, told)
        foreign = None if is_age(self.claim, fact) else in_foreign_unit(self.source, fact)
        if foreign is not None and not self._is_computed_with(fact):
            if told := self._derived(fact, certain=True):
                return self._say(fact, SUPPORTED, 1.0, None, told)
            return self._say(fact, CONTRADICTED, SURELY, foreign.place)
        if (other := in_other_unit(self.claim, self.source, fact)) is not None:
            return self._say(fact, CONTRADICTED, LIKELY, other.place)
        swapped = rival is not None and is_other_unit(fact, rival[0].fact)
        certain = rival is not None and rival[1] < _SAME_WORDS and "|" not in self.claim.text
        if not swapped and (told := self._derived(fact, certain)):
            return self._say(fact, SUPPORTED, 1.0, None, told)
        if not swapped and self.in_english and (told := self.calculation.told_by_another(fact)):
            return self._say(fact, NOT_MENTIONED, HARDLY, None, told)
        if not swapped and self.in_english and self._is_computed_with(fact):
            return self._say(fact, NOT_MENTIONED, UNSURE)
        held = rival and rival[0]
        if not swapped and self.in_english and is_case(self.claim, fact, held, self.source):
            return self._say(fact, NOT_MENTIONED, UNSURE)
        if (counted := self._counted_otherwise(fact, ())) is not None:
            return self._say(fact, CONTRADICTED, LIKELY, counted.place)
        absent = self._absence(fact)
        if (rival is None or rival[1] >= HARDLY) and self._is_example(fact):
            return self._say(fact, NOT_MENTIONED, max(absent, UNSURE))
        if self._is_denied(fact):
            return self._say(fact, NOT_MENTIONED, max(absent, UNSURE))
        least = absent if rival is None else min(rival[1], absent)
        if (
            not swapped
            and _SAME_WORDS <= least < HARDLY
            and (told := self.calculation.plausible(fact))
        ):
            return self._say(fact, NOT_MENTIONED, HARDLY, None, told)
        if rival is None:
            return self._say(fact, NOT_MENTIONED, absent)
        if swapped:
            return self._say(fact, CONTRADICTED, min(rival[1], SURELY), rival[0].place)
        label = CONTRADICTED if rival[1] < HARDLY or absent < HARDLY else NOT_MENTIONED
        return self._say(fact, label, min(rival[1], absent), rival[0].place)

    def _by_name(self, fact: Fact, agreeing: Sequence[Held]) -> FactVerdict | None:
        """Return the verdict on a number that belongs to a name, or to a work that is cited."""
        if self.in_english and fact.kind == "number" and not fact.unit:
            named = numbered(self.claim, fact, self.source)
            if named is None or (named.is_same and agreeing):
                return None
            label, score = (SUPPORTED, 1.0) if named.is_same else (CONTRADICTED, LIKELY)
            return self._say(fact, label, score, named.place)
        if not agreeing and _is_of_source(self.claim, fact, self.source):
            return self._say(fact, NOT_MENTIONED, UNSURE)
        return None

    def _counted_otherwise(self, fact: Fact, agreeing: Sequence[Held]) -> Held | None:
        """Return where a passage counts the same things, and none counts as many of them."""
        if not self.words_read or fact.unit not in ("", "ordinal"):
            return None
        if fact.is_range or fact.bound in words.LOOSE or self.source.is_asked(fact):
            return None
        if not (fact.nouns or fact.lead) or _ERAS.issuperset(fact.nouns[:1] or (fact.lead,)):
            return None
        if any(not held.fact.nouns or same_things(fact, held.fact) for held in agreeing):
            return None
        every = alone(self.claim, fact) - set(fact.nouns)
        for held in in_time(self.source.comparable(fact)):
            theirs = held.fact
            if theirs.unit != fact.unit or not same_things(fact, theirs):
                continue
            if theirs.bound not in ("", fact.bound) or agrees(fact, theirs):
                continue
            if self._is_taken(fact, theirs):
                continue
            if len(every & held.read.content) > _SHARED and not self.calculation.derived(fact):
                return held
        return None

    def _derived(self, fact: Fact, certain: bool) -> str:
        """Return how a number follows from others, in this sentence or one before, or ""."""
        key = (fact.unit, fact.values[0])
        if key not in self.told_before and (told := self.calculation.derived(fact, certain)):
            self.told_before[key] = told
        return self.told_before.get(key, "")

    def _is_computed_with(self, fact: Fact) -> bool:
        """Return whether another number of the claim follows from this one: "on a sale of 50"."""
        return is_amount(fact) and shown(fact.raw) in self._computed_with

    @cached_property
    def _computed_with(self) -> frozenset[str]:
        """The numbers from which others of the claim follow; of a claim with many, none."""
        amounts = [fact for fact in self.claim.facts if is_amount(fact)]
        if not 1 < len(amounts) <= _FEW_AMOUNTS:
            return frozenset()
        found: set[str] = set()
        for fact in amounts:
            if not self.source.agreeing(fact):
                found.update(self._derived(fact, certain=False).split(" = ")[0].split())
        return frozenset(found)

    def _converted(self, fact: Fact) -> str:
        """Return the amount of the claim that a fact is in another unit: "1 ha is 2.47 acres"."""
        if fact.kind != "measure":
            return ""
        for other in self.claim.facts:
            if other is fact or other.kind != fact.kind or other.unit != fact.unit:
                continue
            if other.factor == fact.factor or not agrees(fact, other):
                continue
            stated = other.raw == 1 or self.source.agreeing(other)
            if stated or self._judged.get(other.token, 0.0) >= _DOUBT:
                return f"{shown(other.raw * other.factor / fact.factor)}"
        return ""

    def _say(
        self, fact: Fact, label: str, score: float, place: Place | None = None, derived: str = ""
    ) -> FactVerdict:
        start = self.claim.start
        return FactVerdict(
            start + fact.start, start + fact.end, fact.kind, label, score, place, derived
        )

    def _absence(self, fact: Fact) -> float:
        if stands_bare(self.source, fact):
            return 1.0
        return absence(self.claim, fact, self.source, self.calculation, self.language)

    def _rival(self, fact: Fact, agreeing: Sequence[Held]) -> tuple[Held, float] | None:
        """Return the passage fact that stands where the claim's should, and the claim's score."""
        if not self.words_read:
            return None
        near = around(self.claim, fact)
        every = alone(self.claim, fact)
        if not every or is_rate(self.claim, fact) or (fact.kind == "money" and not fact.raw):
            return None
        best: tuple[float, Held] | None = None
        for held in in_time(self.source.held, every=16):
            if not rivals(fact, held.fact) or agrees(fact, held.fact):
                continue
            if self._is_of_another_time(fact, held) or self._is_taken(fact, held.fact):
                continue
            cover = self.source.covered(every, held.read.content)
            close = self.source.covered(near, held.near) if near else cover
            if fact.is_range and held.fact.is_range and fact.other == held.fact.other:
                close += 0.8
            value = 0.6 * cover + 0.4 * close + 0.3 * is_other_unit(fact, held.fact)
            if best is None or value > best[0]:
                best = (value, held)
        if best is None:
            return None
        if agreeing:
            return self._exchanged(fact, agreeing, best)
        theirs = best[1].fact
        is_end = fact.is_range and theirs.is_range and fact.other == theirs.other
        least = 1 if is_end or is_other_unit(fact, theirs) else 2
        shared = len(every & best[1].read.content)
        if shared < least and shared == len(every) and self.source.is_alone(theirs):
            return best[1], LIKELY
        if shared < least:
            return None
        if fact.kind == "ordinal" and fact.token < 4:
            return None
        score = _score(best[0])
        if not self.in_english and least > 1 and self.source.is_alone(theirs):
            score = min(score, LIKELY)
        return best[1], score

    def _is_taken(self, fact: Fact, held: Fact) -> bool:
        """Return whether another fact of the claim says what this passage fact says."""
        return any(
            other is not fact and other.unit == held.unit and agrees(other, held)
            for other in in_time(self.claim.facts)
        )

    def _is_said_elsewhere(self, held: Fact) -> bool:
        """Return whether another sentence of the answer says what a passage fact says."""
        return any(other.unit == held.unit and agrees(other, held) for other in self.others)

    def _is_of_another_time(self, fact: Fact, held: Held) -> bool:
        """Return whether claim and passage sentence name different dates beside the fact."""
        if fact.date is not None:
            return False
        ours = [one.date for one in self.claim.facts if one.date is not None]
        theirs = [one.date for one in held.read.facts if one.date is not None]
        if not ours:
            return False
        return not any(dates_agree(a, b) for a in ours for b in theirs)

    def _exchanged(
        self, fact: Fact, agreeing: Sequence[Held], best: tuple[float, Held]
    ) -> tuple[Held, float] | None:
        """Return the rival if the claim's own words stand by it, and not by the equal value."""
        rival = best[1]
        if fact.is_range or fact.bound or fact.unit != rival.fact.unit or not is_amount(fact):
            return None
        if is_operand(self.claim, fact) or self._is_said_elsewhere(rival.fact):
            return None
        if "\u2192" in [t.text for t in self.claim.tokens[fact.last : fact.last + _BEHIND]]:
            return None  # "last year's -> this year's": the words are of both
        if "|" in self.claim.text or any("|" in held.read.text for held in agreeing):
            return None  # names of rows and columns do not stand beside a cell
        named = labels(self.claim, around(self.claim, fact))
        if len(self.claim.facts) == 1:  # "of Black or African Americans: 8.4 %"
            named = labels(self.claim, set(self.claim.content))
        by_rival = rival.near
        for held in agreeing:
            by_equal = held.near
            told = named & by_rival - by_equal
            if held.read is not rival.read:
                told -= held.read.content
            others = labels(held.read, by_equal) - named - by_rival
            if held.fact.unit != fact.unit or not told or named & by_equal - by_rival or not others:
                return None
        return rival, 0.35

    def _swapped(self) -> dict[int, Place]:
        """Return the facts that have another's value, each with the place of its own.

        "A costs 10 and B costs 20" is wrong if the passage has B's words by 10 and A's by 20.
        """
        found: dict[int, Place] = {}
        if "names" in self.claim.signals and len(self.claim.facts) > 1:
            found = exchanged(self.claim, self.source)
        own = [(self.claim, fact) for fact in self.claim.facts]
        earlier = [(one, fact) for one in self.given for fact in one.facts]
        for at, (one, fact) in enumerate(own):
            for other_read, other in (*earlier, *own[:at]):
                if not fact.unit and not fact.nouns and one is other_read and is_amount(other):
                    fact = in_unit_of(fact, other)  # "28 years, and females 22"
                follows = at and one is other_read and other is own[at - 1][1]
                if follows and not fact.unit and not other.unit and not fact.nouns:
                    fact = replace(fact, nouns=other.nouns)  # "nine goals, Ann with seven"
                countable = not fact.unit and bool(fact.nouns and other.nouns)
                if countable and fact.nouns[0] == other.nouns[0]:  # "Ann nine goals, Eve seven"
                    countable = one is other_read and bool(labels(one, around(one, fact)))
                if fact.unit != other.unit or fact.values == other.values:
                    continue
                if not (is_amount(fact) or fact.kind in ("time", "date") or countable):
                    continue
                if fact.other in other.values or (
                    one is other_read and _are_listed(one, other, fact)
                ):
                    continue
                place = self._swap(one, fact, other_read, other)
                if place is not None:
                    found[fact.token] = place
        return found

    def _swap(
        self, read: ReadSentence, fact: Fact, other_read: ReadSentence, other: Fact
    ) -> Place | None:
        """Return where a passage has the other fact's value by this fact's words, or None."""
        of_unit = [held for held in in_time(self.source.held) if held.fact.unit == fact.unit]
        ours = [held for held in of_unit if held.fact.values == fact.values]
        theirs = [held for held in of_unit if held.fact.values == other.values]
        if len(ours) != 1 or len(theirs) != 1:
            both = [(a, b) for a in ours for b in theirs if a.read is b.read]
            if len(both) != 1:
                return None
            ours, theirs = [both[0][0]], [both[0][1]]
        if "|" in ours[0].read.text and ours[0].read is theirs[0].read:
            return None  # of one table; neighbouring cells are of other rows and columns
        nouns = fact.nouns[:1], other.nouns[:1]
        counted = theirs[0].fact.nouns[:1], ours[0].fact.nouns[:1]
        if not fact.unit and nouns[0] != nouns[1] and counted == nouns:
            return theirs[0].place
        words_1, words_2 = dated_words(read, fact), dated_words(other_read, other)
        words_1, words_2 = words_1 - words_2, words_2 - words_1
        held_1, held_2 = (
            dated_words(ours[0].read, ours[0].fact, ours[0].before),
            dated_words(theirs[0].read, theirs[0].fact, theirs[0].before),
        )
        held_1, held_2 = (
            held_1 - held_2 - clause_words(theirs[0].read, theirs[0].fact),
            held_2 - held_1 - clause_words(ours[0].read, ours[0].fact),
        )
        crossed = bool(words_1 & held_2) + bool(words_2 & held_1)
        # "A 10 and B 20" of "B 10, A 20": values in the same order need both names exchanged.
        is_turned = (fact.token < other.token) != (ours[0].fact.token < theirs[0].fact.token)
        is_side_by_side = ours[0].read is theirs[0].read and read is other_read
        needed = 1 if is_side_by_side and is_turned else 2
        if is_side_by_side and (
            _words_beside(read, other) & _words_beside(ours[0].read, ours[0].fact)
            or _words_beside(read, fact) & _words_beside(theirs[0].read, theirs[0].fact)
        ):
            needed = 1  # a name stands right by the one value here and by the other one there
        if crossed < needed or words_1 & held_1 or words_2 & held_2:
            return None
        return theirs[0].place

    def _is_season(self, fact: Fact) -> bool:
        """Return whether a year is the first of two of which passages have one: "2017-18"."""
        if fact.date is None or fact.date[0] is None or fact.date[1:] != (None, None):
            return False
        behind = self.claim.tokens[fact.last : fact.last + 2]
        second = f"{(fact.date[0] + 1) % 100:02d}"
        is_joined = len(behind) > 1 and behind[0].text in _SEASON and behind[1].text == second
        return is_joined and fact.date[0] + 1 in self.source.years and not self.source.has_seasons

    def _is_bare_day(self, fact: Fact) -> bool:
        """Return whether a passage has a date's day alone, behind another day of its month.

        "On 19 February ... on the 26th".
        """
        if fact.date is None or None in fact.date[1:]:
            return False
        for held in in_time(self.source.held):
            if held.fact.unit != "ordinal" or held.fact.raw != fact.date[2] or held.fact.nouns:
                continue
            near = (*held.read.facts, *(held.before.facts if held.before is not None else ()))
            is_month = any(
                one.date is not None
                and one.date[1] == fact.date[1]
                and one.date[0] in (None, fact.date[0])
                for one in near
            )
            own = around(self.claim, fact)
            if is_month and self.source.covered(own, held.near) >= _THIRD:
                return True
        return False

    def _is_example(self, fact: Fact) -> bool:
        """Return whether the answer calls the number an example, here or before: "e.g. 50 MB"."""
        lows = [token.low for token in self.claim.tokens]
        before = "".join(lows[max(0, fact.token - 5) : fact.token])
        behind = "".join(lows[fact.last : fact.last + _BEHIND])
        announced = ("example", ":") in pairwise(lows[: fact.token])
        if (
            announced
            or before.rstrip(",:").endswith(_FOR_EXAMPLE)
            or any(told in behind for told in _INSTANCES)
        ):
            self.examples.add(fact.raw)
        return fact.raw in self.examples

    def _is_denied(self, fact: Fact) -> bool:
        """Return whether the claim denies the number: "not 100 members", "no 5 km of it"."""
        tokens = self.claim.tokens
        clause = self.claim.clauses[fact.token]
        lows = {
            token.low.replace("\u2019", "'")
            for token, own in zip(tokens[: fact.token], self.claim.clauses, strict=False)
            if own == clause
        }
        before = tuple(token.low for token in tokens[max(0, fact.token - 2) : fact.token])
        if before in _NOT_ONLY:
            return True
        if fact.bound or not lows.isdisjoint(words.HEDGED) or not lows.isdisjoint(_MODAL):
            return False
        return not lows.isdisjoint(words.DENYING)


def _words_beside(read: ReadSentence, fact: Fact) -> set[str]:
    """Return the stems right beside a value, without units."""
    places = (*range(max(0, fact.token - _BESIDE), fact.token),
              *range(fact.last, min(len(read.stems), fact.last + _BESIDE)))  # fmt: skip
    return {
        read.stems[at]
        for at in places
        if read.stems[at] and (read.tokens[at].low,) not in words.UNITS
    }


_BESIDE = 3


def _is_of_source(claim: ReadSentence, fact: Fact, source: PassageFacts) -> bool:
    """Return whether a year is that of a work no passage names: "(Vale et al., 2014)"."""
    behind = claim.tokens[fact.last : fact.last + 1]
    if fact.date is None or not behind or behind[0].text not in (")", ";"):
        return False
    names = [at for at in range(fact.token) if claim.tokens[at].text[0].isupper()]
    if not names or source.is_known(claim.stems[names[-1]]):
        return False
    between = [token.low for token in claim.tokens[names[-1] + 1 : fact.token]]
    return between[-1:] == [","] or between in (["("], ["et", "al", ".", "("])  # "Vale (2014)"


def _are_listed(read: ReadSentence, first: Fact, second: Fact) -> bool:
    """Return whether two values are told of one thing: "at noon and 3 p.m."."""
    joint = [
        token for token in read.tokens[first.last : second.token] if token.text not in ("*", "_")
    ]
    return 0 < len(joint) <= _JOINED and all(token.low in _AND for token in joint)


_AND = frozenset(("and", "or", ",", "to", "\u2013", "-", "&", "at", "\u2192"))
_JOINED = 2


def _score(value: float) -> float:
    return round(max(0.0, 0.9 - value), 3)
