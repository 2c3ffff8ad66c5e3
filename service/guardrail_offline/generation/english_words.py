"""The words that rules for English questions know: verbs with their forms, and words of a class."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from guardrail_service.detectors.facts.vocabulary import listed

BE = {"is": "be", "are": "be", "was": "be", "were": "be"}
MODALS = listed("can could may might must shall should will would")
HAVE = frozenset(("has", "have", "had"))
DO = frozenset(("does", "do", "did"))
AUXILIARIES = frozenset(BE) | MODALS | HAVE | DO
DETERMINERS = listed(
    "the a an every each all no some any most many several both either neither another"
)
POSSESSIVES = frozenset(("its", "their", "his", "her", "our", "your", "my"))
PRONOUNS = listed(
    "he she it they we i you him them us me himself herself itself themselves one ones who whom "
    "someone everyone anyone somebody everybody nobody something everything nothing anything "
    "mine yours theirs ours hers there here"
)
POINTING = listed(
    "this that these those such former latter above below following previous same other others "
    "latest respectively likewise thereby therein thereof hereby aforementioned "
    "said instead otherwise too again"
)
OPENERS = listed(
    "however therefore thus hence also then so but and or yet still instead otherwise moreover "
    "furthermore nevertheless meanwhile consequently besides finally first second third next "
    "lastly similarly additionally again afterwards later earlier now today yesterday tomorrow "
    "if when while although though because since unless until whether whereas once where why "
    "how what which only even just not nor neither either both rather indeed perhaps maybe for "
    "as with without by from to of on at during before after under over between among within "
    "like unlike despite per let see note please never always sometimes often usually nothing "
    "none more less fewer else nobody everybody whoever whatever whenever wherever in according "
    "based given most many few several some any all each every another half"
)
"""A sentence that begins so leans on another one, or its subject is not where a rule looks."""
CLAUSE_WORDS = listed(
    "that which who whom whose where when if because although though while whereas unless "
    "whether than as so but"
)
PREPOSITIONS = listed(
    "of in on at by for from with within without to into onto about after before since until "
    "under over between among during through against across per via up down near beside behind "
    "beyond above below around along inside outside toward towards upon off out except despite"
)
ADVERBS = listed(
    "not also always never often usually generally normally typically currently now still "
    "already only therefore then thus mainly mostly largely fully partly both all each again "
    "usually originally officially initially formerly first later recently automatically "
    "directly"
)
BOUND_WORDS = (
    "at least", "at most", "more than", "less than", "fewer than", "up to", "no more than",
    "no less than", "about", "around", "approximately", "roughly", "nearly", "almost", "over",
    "under", "only", "exactly", "some", "as many as", "as much as",
)  # fmt: skip
PERSON_NOUNS = listed(
    "actor actress architect artist astronomer athlete author baker banker biologist bishop "
    "chemist composer dancer director doctor economist emperor engineer explorer farmer founder "
    "general governor historian inventor journalist judge king lawyer leader lecturer linguist "
    "mathematician mayor merchant minister musician novelist nurse officer painter philosopher "
    "photographer physician physicist pianist player poet politician president priest prince "
    "princess professor psychologist queen researcher scholar scientist sculptor senator singer "
    "soldier statistician student teacher theologian writer man woman person chairman "
    "chairwoman manager"
)
_IRREGULAR = """
be was been|become became become|begin began begun|break broke broken|bring brought brought
build built built|buy bought bought|catch caught caught|choose chose chosen|come came come
cost cost cost|cut cut cut|deal dealt dealt|draw drew drawn|drive drove driven|eat ate eaten
fall fell fallen|feed fed fed|feel felt felt|fight fought fought|find found found|fly flew flown
forbid forbade forbidden|freeze froze frozen|get got got|give gave given|go went gone
grow grew grown|hang hung hung|hear heard heard|hide hid hidden|hold held held|keep kept kept
know knew known|lay laid laid|lead led led|leave left left|lend lent lent|let let let
lie lay lain|lose lost lost|make made made|mean meant meant|meet met met|pay paid paid
put put put|read read read|rise rose risen|run ran run|say said said|see saw seen|sell sold sold
send sent sent|set set set|show showed shown|shut shut shut|sing sang sung|sink sank sunk
sit sat sat|sleep slept slept|speak spoke spoken|spend spent spent|split split split
spread spread spread|stand stood stood|steal stole stolen|swim swam swum|take took taken
teach taught taught|tell told told|think thought thought|throw threw thrown
understand understood understood|wear wore worn|win won won|withdraw withdrew withdrawn
write wrote written|undergo underwent undergone|overcome overcame overcome
rebuild rebuilt rebuilt|bear bore born
""".replace("\n", "|")
_REGULAR = """
abolish accept accompany achieve acquire adapt add admit adopt advertise advise affect agree aim
allow alter announce annex appear apply appoint approve arrange arrive ask assess assign assume
attach attack attend attract avoid award base belong borrow calculate cancel capture carry cause
celebrate change charge check claim clean close collect combine comprise complete concern
conclude conduct confirm connect conquer consider consist construct consume contain continue
contribute control convert cool cooperate copy correct count cover create cross decide declare
decline decrease define delay deliver demand deny depart depend deploy describe design destroy
detect determine develop differ direct discover discuss display dissolve distribute divide
donate double earn elect emerge employ enable encourage end enforce enjoy enlarge ensure enter
equal establish estimate evaluate evolve examine exceed exchange exclude execute exist expand
expect expire explain explore export express extend face fail favor favour feature fill finance
finish fit focus follow force form found fund gain gather generate govern grant guarantee guide
handle happen harvest heat help hire host house identify ignore implement import impose improve
include incorporate increase indicate influence inform inherit inspect install introduce invade
invent invest investigate invite involve issue join judge justify label lack land last launch
learn license limit link list live load locate look lower maintain manage manufacture mark marry
match matter measure mention merge modify monitor move multiply name need note notify obey
obtain occupy occur offer open operate oppose order organise organize originate own participate
pass perform permit place plan plant play possess practice practise predict prefer prepare
present preserve prevent print process produce prohibit promise promote propose protect prove
provide publish purchase pursue qualify question raise range reach receive recognise recognize
recommend record recover reduce refer reflect refuse refund regard register regulate reject
relate release rely remain remember remove renew rent repair repeat replace reply report
represent request require rescue reserve resign resist respond rest restore restrict result
retain retire return reveal review reward round rule sail satisfy save scan score search select
separate serve settle share sign signal sort stage start state stay stop store strike study
submit succeed suffer suggest supply support surround survive suspend switch talk target test
total touch trace trade train transfer transform translate transmit transport travel treat
trigger triple try turn use value vary visit vote wait walk want warn wash waste watch weigh
work worship yield emit absorb accommodate generate insure invoice deduct reimburse terminate
""".split()  # noqa: SIM905
_NOUNLIKE = listed(
    "access aim attack award base break call cause change charge check claim close control copy "
    "cost count cover cross cut deal delay demand design display double draw drive end estimate "
    "exchange experience export face fall feature fight fill finance fit focus force form fund "
    "gain grant guarantee guide handle help hold host house import increase influence interest "
    "issue judge label lack land launch lead lease limit link list load look make mark match "
    "matter measure mention move name need note number offer open order own pass pay place plan "
    "plant play practice present print process produce promise purchase question range rank "
    "rate reach read record refund release rent repair reply report request rescue reserve rest "
    "result return reveal review reward rise round rule run sail save scan score search set "
    "share show sign signal sort sound split spread stage stand start state stay stop store "
    "strike study supply support switch talk target test time total touch trace trade train "
    "transfer transport travel treat trigger try turn use value visit vote wait walk want wash "
    "waste watch wear win work yield decrease lie bear feed function host land last"
)
_DOUBLED = listed(
    "plan stop permit admit submit refer commit occur transfer control scan fit ship regret"
)


class VerbForm(NamedTuple):
    """A form of a verb.

    Attributes:
        base: Its infinitive.
        tense: `base`, `third` or `past`.
        nounlike: The form, or the base, is as often a noun.
    """

    base: str
    tense: str
    nounlike: bool


def third(base: str) -> str:
    """Return the form of the third person singular."""
    if base in ("have", "do", "go"):
        return {"have": "has", "do": "does", "go": "goes"}[base]
    if base.endswith(("s", "x", "z", "ch", "sh")):
        return base + "es"
    return base[:-1] + "ies" if base.endswith("y") and base[-2] not in "aeiou" else base + "s"


def past_of(base: str) -> str:
    """Return the simple past."""
    return _irregular()[base][0] if base in _irregular() else _regular_past(base)


def participle_of(base: str) -> str:
    """Return the past participle."""
    return _irregular()[base][1] if base in _irregular() else _regular_past(base)


def _regular_past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + base[-1] + "ed" if base in _DOUBLED else base + "ed"


@lru_cache(1)
def _irregular() -> dict[str, tuple[str, str]]:
    rows = (row.split() for row in _IRREGULAR.split("|") if row.strip())
    return {base: (past, participle) for base, past, participle in rows}


@lru_cache(1)
def verb_forms() -> dict[str, tuple[VerbForm, ...]]:
    """Return every known finite form of a full verb with what it may be."""
    found: dict[str, list[VerbForm]] = {}
    bases = dict.fromkeys([*_irregular(), *_REGULAR])
    bases.pop("be")
    for base in bases:
        noun = base in _NOUNLIKE
        for text, tense in ((base, "base"), (third(base), "third"), (past_of(base), "past")):
            found.setdefault(text, []).append(VerbForm(base, tense, noun and tense != "past"))
    return {text: tuple(forms) for text, forms in found.items()}


@lru_cache(1)
def participles() -> dict[str, str]:
    """Return the known past participles with their bases."""
    return {participle_of(base): base for base in [*_irregular(), *_REGULAR]}


def is_participle(word: str) -> bool:
    """Return whether a word may be a past participle."""
    return word in participles() or (word.endswith("ed") and len(word) > 4)
