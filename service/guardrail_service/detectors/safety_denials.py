"""Finds insults that a sentence denies, means otherwise, or says of its own writer, in English.

"You are certainly not an idiot" holds the words of an insult, and "the bitch will have her puppies"
none. Such a word is set apart like a reported quotation, and the sentence around it is still read.
"""

# One sense a line, and one pattern a line where it can be: wrapped ones are harder to check.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from guardrail_service.text.patterns.search import Prepared, compile_regex
from guardrail_service.text.quotations import SPEAKS, Quotation

DENIALS_VERSION: Final = "rag-guardrail-denials/1"
"""Part of the safety models' fingerprint: raise it when another word is set apart."""

_NOUN = r"(?:idiot|moron|fool|loser|clown|imbecile|cretin|dimwit|half-?wit|dunce|dummy|liar|coward|crook|fraud|failure|freak|creep|weirdo|pig|parasite|monster|disgrace|hypocrite|bitch|bastard|asshole|arsehole|scumbag|scum|trash|vermin|slob|jerk|twat|prick|wanker|slut|whore|retard|nobody|burden|lunatic|maniac|psychopath|waste of (?:space|time|oxygen))(?:e?s)?"
_ADJECTIVE = r"(?:stupid|dumb|idiotic|moronic|brainless|clueless|useless|worthless|pathetic|ridiculous|disgusting|ugly|lazy|crazy|insane|incompetent|ignorant|hopeless|repulsive|retarded|inferior)"
_DEGREE = r"(?:complete|total|utter|mere|born|real|little|big|bloody|fucking|damn|old|dirty)"
_ARTICLE = r"(?:(?:an?|the|any|some|such an?|that|as|like|at all|to be|being|into) ){0,2}"
_INSULT = rf"{_ARTICLE}((?:(?:{_ADJECTIVE}|{_DEGREE}) ){{0,2}}(?:{_NOUN}|{_ADJECTIVE}))\b"
_WHO = r"(?:you|he|she|it|they|we|i|him|her|them|us|me|yourself|himself|herself|themselves|anyone|anybody|someone|somebody|people|(?:the|your|my|his|her|our|their|a|an) (?:\w+ )?\w+|\w+)"
_IS = r"(?:(?:is|are|am|was|were|be|been|being|becomes?|became|looks?|looked|seems?|seemed)|'(?:re|s|m))"
_NOT = r"(?:not|never|hardly|no|neither|far from|anything but|the opposite of|by no means|in no way|nowhere near)"
_MILD = r"(?: (?:certainly|definitely|really|clearly|absolutely|necessarily|automatically|by any means|in any way|therefore|ever))?"
_NEGATED = r"\b(?:not|(?:do|does|did|would|should|wo|is|are|was|were|has|have|had|need|must|might)n't|never|nobody|no one|no-one|nothing|none of (?:us|them|you)|hardly)"
_CALLS = r"(?:call(?:s|ed|ing)?|consider(?:s|ed|ing)?|find|found|describe(?:s|d)?|mak(?:es?|ing)|made|treat(?:s|ed)?|label(?:s|led)?)"
_WRONG = r"(?:wrong|unfair|unkind|rude|cruel|untrue|false|insulting|unacceptable|offensive|hurtful|harassment|a mistake) to"
_THINKS = r"(?:says?|said|think|thinks|thought|mean|means|meant|believes?|believed|suggest(?:s|ed)?|impl(?:y|ies|ied)|prove[sd]?|show(?:s|ed)?|conclude)"
_DENIED = compile_regex(
    rf"(?i)(?:\b{_IS}{_MILD} {_NOT}{_MILD} |'(?:re|s|m) {_NOT}{_MILD} |\b(?:is|are|was|were|ai)n't{_MILD} ){_INSULT}"
    rf"|{_NEGATED}{_MILD} (?:[\w']+ ){{0,2}}?{_CALLS} {_WHO} {_INSULT}|\b{_WRONG} {_CALLS} {_WHO} {_INSULT}"
    rf"|(?:{_NEGATED}{_MILD} (?:[\w']+ ){{0,2}}?{_THINKS}(?: that)?|\bno (?:\w+ )?(?:sign|evidence|reason|proof|hint)s?(?: \w+){{0,2}}? that|\bnot because) {_WHO} ?{_IS} {_INSULT}",
    "insult that is denied",
)
_SPARED_BEFORE = compile_regex(
    r"(?i)\b(?:if|unless|wish|whether|unlike|why|at least|can't|cannot|couldn't|can not|pretend|hard to)\b[^.!?;]*$|(?:\bnever|\bnot|n't|\bnothing) *$",
    "what makes a denial none, before it",
)
_SPARED_BEHIND = compile_regex(
    r"(?i)^(?:[^.!?]{0,120}\?| (?:like|unlike|than|as|enough)\b|,? (?:but|just|only|merely)\b|[^.!?]{0,20}\bfor nothing\b)",
    "what makes a denial none, behind it",
)
SENSES: Final[tuple[tuple[str, str], ...]] = (
    ("bitch|bitches", r"pupp(?:y|ies)|pups|litter|whelp(?:s|ed|ing)?|kennel|breeders?|spayed|neutered|in heat|into heat|oestrus|estrus|veterinar\w+|vet|sled dogs?|hounds?"),
    ("dyke|dykes", r"flood(?:s|ed|ing)?|sea ?walls?|polders?|levees?|basalt|magma|dolerite|tidal|north sea|storm surge|reclaimed land|embankments?"),
    ("faggot|faggots", r"gravy|meatballs?|mushy peas|butchers?|offal|minced|bundle of (?:sticks|twigs)|firewood|brushwood|kindling"),
    ("fag|fags", r"cigarettes?|smok(?:e|es|ed|ing)|packet|tobacco|ashtray|lighter|public school"),
    ("cock|cocks", r"hens?|roosters?|crow(?:s|ed|ing)?|weather|church tower|poultry|pheasants?|robin|stop ?cock|valve|feathers?"),
    ("ass|asses|jackass", r"donkeys?|mules?|foals?|saddle|hooves|hooved|equids?|equus|african wild|asiatic wild|onager"),
    ("tit|tits", r"nest(?:s|ed|ing|box)?|birds?|feeder|blue tit|great tit|coal tit|willow tit|marsh tit|fledg\w+|songbirds?"),
    ("retard|retards|retarded", r"flames?|ignition|spread|growth|corrosion|oxidation|timing|curing|setting|evaporation|decay"),
    ("bastard|bastards", r"files?|second[- ]cut|smooth[- ]cut|swords?|toadflax|typefaces?|culverin"),
    ("prick|pricks", r"fork|needle|skin|finger|fingertip|glucose|allerg\w+|pastry|dough"),
    ("pussy", r"willows?|catkins?"),
    ("hoe|hoes", r"weeds?|weeding|soil|garden(?:s|er|ing)?|spade|crops?"),
    ("crip|crips", r"theory|disability studies|disability justice|street gang|los angeles"),
    ("cum", r"laude|magna|summa|honou?rs|centuries|dividend|grano"),
    ("dick", r"moby|uncle|philip k|cheney|van dyke|francis|whittington|tracy|turpin"),
    ("hooker|hookers", r"rugby|scrums?|props?|line-?outs?|tackles?|general hooker"),
    ("bloody", r"stools?|diarrh\w+|sputum|discharge|urine|faeces|feces|vomit|mary|sunday"),
    ("suck|sucks|sucking|sucker|suckers", r"pumps?|vacuum|straws?|lampreys?|leech(?:es)?|tubes?|nectar|saplings?|roots?|mosquitoe?s?|aphids?|thumb"),
    ("slag", r"furnaces?|smelt\w*|iron|steel|cement|welding"),
    ("shag|shags", r"carpets?|rugs?|tobacco|cormorants?|pile"),
    ("pansy|pansies", r"flower\w*|beds?|petals|garden\w*|violets?"),
    ("cracker|crackers", r"cheese|biscuits?|christmas|soup|prawn|graham"),
    ("monkey|monkeys", r"primates?|zoo|tails?|species|macaques?|capuchins?|fruit|forest|wrench"),
    ("tramp", r"steamers?|ships?|cargo|freight\w*|lady and the"),
    ("chink", r"armou?r|curtains?|light|wall|door"),
    ("spastic", r"paresis|paraplegia|diplegia|cerebral palsy|muscles?|muscle tone|botulinum|gait|colon|limbs?"),
)  # fmt: skip
"""Words that are abuse in one sense, and words of the topics in which they are not."""
_SENSES = tuple(
    (compile_regex(rf"(?i)\b({words})\b", "a word of two senses"), compile_regex(rf"(?i)\b(?:{topic})\b", "its harmless topic"))
    for words, topic in SENSES
)  # fmt: skip
_TERM = compile_regex(
    r"(?i)\b(queer) (?:theory|theorists?|studies|films?|cinema|festivals?|history|historians?|literature|poetry|art|pride|eye)\b",
    "queer as a term",
)
"""Not where it names people: bias has to read whom a sentence is about."""
_OWN = r"(?:queers?|dykes?|fags?|faggots?|tranny|trannies|crips?|bitch|bitches|sluts?)"
_PROUD = r"(?:proud|happy|old|young|black|brown|asian|jewish|disabled|married|retired|out|working-class|fellow|little|big|middle-aged|(?:an?|the))"
_RECLAIMED = compile_regex(
    rf"(?i)\b(?:(?:my|our)(?: {_PROUD}){{0,3}} (queers?|dykes?|fags?|crips?)\b|(?:i am|i'm|we are|we're|as|call (?:myself|ourselves)|called (?:myself|ourselves)|we|us|my fellow|our fellow)(?: {_PROUD}){{0,3}} ({_OWN})\b)",
    "a word that its writer takes for themselves",
)
_FIRST = compile_regex(
    r"(?i)\b(?:i|i'm|i've|my|we|we're|we've|our|us|ourselves|myself)\b", "the writer"
)
_AIMED = compile_regex(r"(?i)\b(?:you|your|yours|yourself|u|ur)\b", "the reader")
MAY_HOLD: Final = compile_regex(
    rf"(?i)\b(?:{_NOUN}|{_ADJECTIVE}|{_OWN}|{'|'.join(words for words, _ in SENSES)})\b",
    "words of insults",
)
"""Found wherever anything is set apart: ordinary text is looked at once, with this."""
_STOPS = (b". ", b"! ", b"? ", b".\n", b"\n")


def denials(text: str) -> list[Quotation]:
    """Return the places of insults that are none, in order, none within another.

    Args:
        text: An answer.
    """
    source = Prepared(text.replace("\u2019", "'"))
    found = sorted({*_denied(source), *_other_senses(source), *_terms(source), *_reclaimed(source)})
    kept: list[Quotation] = []
    for place in found:
        if not kept or place.start >= kept[-1].end:
            kept.append(place)
    return kept


def _denied(source: Prepared) -> Iterator[Quotation]:
    for match in _DENIED.finditer(source.data):
        group = next(number for number in (1, 2, 3, 4) if match.group(number) is not None)
        start, end = match.span(group)
        before = source.data[max(0, match.start() - 80) : match.start()]
        behind = source.data[end : end + 160]
        if not _SPARED_BEFORE.search(before) and not _SPARED_BEHIND.search(behind):
            yield _place(source, start, end)


def _other_senses(source: Prepared) -> Iterator[Quotation]:
    for word, topic in _SENSES:
        for match in word.finditer(source.data):
            low, high = _sentence(source.data, *match.span(1))
            around = source.data[low : match.start(1)] + b" " + source.data[match.end(1) : high]
            if topic.search(around) and not SPEAKS.search(around):
                yield _place(source, *match.span(1))


def _terms(source: Prepared) -> Iterator[Quotation]:
    return (_place(source, *match.span(1)) for match in _TERM.finditer(source.data))


def _reclaimed(source: Prepared) -> Iterator[Quotation]:
    for match in _RECLAIMED.finditer(source.data):
        start, end = match.span(1 if match.group(1) is not None else 2)
        low, high = _sentence(source.data, start, end)
        around = source.data[low:high]
        if _FIRST.search(around) and not _AIMED.search(around):
            yield _place(source, start, end)


def _sentence(data: Any, start: int, end: int) -> tuple[int, int]:
    stops = [at + len(stop) for stop in _STOPS if (at := data.rfind(stop, 0, start)) >= 0]
    ends = [at for stop in _STOPS if (at := data.find(stop, end)) >= 0]
    return max(stops, default=0), min(ends, default=len(data))


def _place(source: Prepared, start: int, end: int) -> Quotation:
    return Quotation(source.code_point(start), source.code_point(end))
