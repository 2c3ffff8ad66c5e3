"""English speech that claims nothing of the world, told by its frame and its words.

No list of phrases holds what people think of next. So a clause is looked at as a whole: it must have
the frame of such speech (the speaker about itself, a request or question to the reader, advice to
ask somebody, a remark on what the sources lack or on the answer's own form), and its other words
must be ones that such speech uses, or that the question used. In doubt it is a claim.
"""

# One frame or list of words a line group: wrapped patterns are harder to check than long ones.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from unicodedata import combining, normalize

import re2

Beyond = Callable[[Sequence[str]], list[str]]
"""Returns those of some words that the question has not."""
"""Whether a word stands in the question."""


class Speech(Enum):
    """The ways in which a clause claims nothing."""

    LACKS = "the speaker or the sources do not know"
    POLITE = "courtesy, advice to ask somebody, or a remark on the answer's own form"


def speech(clause: str, *, asks: bool, beyond: Beyond) -> Speech | None:
    """Return how a clause claims nothing, or None if it may claim something.

    Args:
        clause: Case-folded, with straight apostrophes and single blanks, without closing marks.
        asks: Whether its sentence ends in a question mark.
        beyond: Returns those of some words that the question has not.
    """
    clause = without_accents(clause)
    if not clause.isascii() or _ADDRESS.search(clause) is not None:
        return None
    text = _MATTER.sub(r"\1", _CONDITION.sub(r"\1", _spelled_out(clause)))
    if _lacks(text):
        return Speech.LACKS
    if _EMBEDDED_CLAIM.search(_TO_HEAR_THAT.sub("sorry", _GLAD_OF_IT.sub("", text))) is not None:
        return None
    risky: list[str] = _RISKY.findall(clause)
    if risky and beyond(risky):
        return None
    if asks and _asks_the_reader(text, beyond):
        return Speech.POLITE
    if _refuses(text):
        return Speech.POLITE
    if _DEEDS.search(text) is not None:
        return None
    return Speech.POLITE if _is_polite(text, beyond) else None


def without_accents(text: str) -> str:
    """Return a text with "cafe" for "caf\u00e9"; other scripts stay as they are."""
    if text.isascii():
        return text
    return "".join(sign for sign in normalize("NFKD", text) if not combining(sign))


def _is_polite(text: str, beyond: Beyond) -> bool:
    refers = _REFERRAL.search(text) and not _DISCOURAGES.search(text)
    if refers or _SYMPATHY.search(text):
        return len(_new_words(text, beyond)) <= 1
    if _WISH.search(text):
        return len(_new_words(text, beyond)) <= _WISHED
    if _SMALL_TALK.search(text):
        return not _new_words(text, _all)
    offer = _OFFER.search(text)
    if offer is not None and not _IS_OR_NOT.search(text[offer.end() :]):
        return not _new_words(text, beyond)
    if not any(frame.search(text) for frame in (_SPEAKER, _INVITATION, _OWN_FORM)):
        return False
    says_something = any(word not in _EMPTY for word in _content_words(text))
    return (says_something or text.startswith("if you ")) and not _new_words(text, _all)


def _all(words: Sequence[str]) -> list[str]:
    """Return them all: "I see no fee" must not pass because somebody asked about a fee."""
    return list(words)


def _spelled_out(clause: str) -> str:
    """Return a clause without contractions and without clauses that only name a source."""
    text = clause
    if "'" in text or "cannot" in text or text.startswith("should "):
        for short, long in _SHORT_FORMS:
            text = short.sub(long, text)
    if _NAMES_SOURCE.search(text) is not None:
        for where, instead in _OF_SOURCES:
            text = where.sub(instead, text)
    return " ".join(text.split())


def _lacks(text: str) -> bool:
    """Return whether the speaker or the sources lack something, and nothing is stated beside it."""
    if _MAY_LACK.search(text) is None:
        return False
    for frame in (
        _SPEAKER_LACKS,
        _SOURCE_SILENT,
        _NOT_TOLD,
        _NOT_IN_SOURCE,
        _NOTHING_TOLD,
        _TOLD_NOWHERE,
        _NONE_TELLS,
        _BREAKS_OFF,
        _NOT_TO_FIND,
    ):
        found = frame.fullmatch(text)
        if found is not None and not any(_states(part) for part in found.groups() if part):
            return True
    return False


def _refuses(text: str) -> bool:
    """Return whether the speaker only says what it will not do: that states nothing of the world."""
    found = _REFUSAL.fullmatch(text)
    return found is not None and not any(_states(part) for part in found.groups() if part)


def _states(part: str) -> bool:
    """Return whether words beside a frame state something: a verb that is not asked about."""
    asked = _ASKED.search(part)
    return _VERB.search(part[: asked.start()] if asked else part) is not None


def _asks_the_reader(text: str, beyond: Beyond) -> bool:
    if _TO_THE_READER.search(text) is None:
        return False
    return len(_new_words(text, beyond)) <= _MOST_NEW_WORDS_ASKED


def _new_words(text: str, beyond: Beyond) -> list[str]:
    """Return the words that such speech does not use and that nobody asked about."""
    return beyond([word for word in _content_words(text) if not _is_listed(word, _USUAL)])


def _content_words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        yield word.removesuffix("'s").removesuffix("'")


def unusual(words: Iterable[str]) -> list[str]:
    """Return those of some words, in lower case, that such speech does not use; each once.

    Whom it sends the reader to ("ask the company") counts: others may say of them what they like.
    """
    return [word for word in dict.fromkeys(words) if not _is_listed(word, _USUAL_BUT_ROLES)]


def _is_listed(word: str, usual: frozenset[str]) -> bool:
    if word in usual:
        return True
    for ending in ("ing", "ed", "es", "s", "d", "ly"):
        base = word.removesuffix(ending)
        if base != word and (base in usual or base + "e" in usual or base[:-1] in usual):
            return True
    return False


_MOST_NEW_WORDS_ASKED = 1
"""A question back may name one thing ("Is it about a bag?"); with more it may presuppose."""
_ADDRESS = re2.compile(r"[@/\\]|www\.|[a-z]\.[a-z]{2,}")
"""Advice to write to an address says which one: links look at that, and the model."""
_WORD = re2.compile(r"[a-z0-9]+(?:'[a-z]+)?")

_SHORT_FORMS = [
    (re2.compile(pattern), instead)
    for pattern, instead in (
        (r"\bcan't\b|\bcannot\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"\bshan't\b", "shall not"),
        (r"n't\b", " not"),
        (r"\bi'm\b", "i am"),
        (r"'re\b", " are"),
        (r"'ve\b", " have"),
        (r"'ll\b", " will"),
        (r"'d\b", " would"),
        (r"\blet's\b", "let us"),
        (r"^should (you|anything|something|any)\b", r"if \1"),
        (r"\b(it|that|this|there|here|what|who|where|how|which)'s\b", r"\1 is"),
    )
]
_NOUNS = (
    r"(?:documents?|documentation|docs|passages?|texts?|sources?|contexts?|excerpts?|extracts?"
    r"|materials?|pages?|leaflets?|sections?|articles?|abstracts?|information|info|snippets?"
    r"|transcripts?|minutes|guides?|manuals?|handbooks?|brochures?|factsheets?|sheets?|files?"
    r"|notes?|reports?|stud(?:y|ies)|papers?|websites?|web ?pages?|results|knowledge base|labels?"
    r"|listings?|records?|chapters?|paragraphs?|summar(?:y|ies)|descriptions?|announcements?"
    r"|press releases?|forecasts?|e-?mails?|letters?|statements?|tables?|entr(?:y|ies)|data"
    r"|datasheets?|specifications?|faqs?|data ?sheets?|wording|content|programmes?|agendas?|schedules?"
    r"|timetables?|catalogues?|adverts?|postings?|posts?|blogs?|booklets?|newsletters?|bulletins?"
    r"|prospectus|invoices?|profiles?|logs?|protocols?|overviews?|menus?|charts?|maps?|recipes?"
    r"|instructions|histor(?:y|ies)|stor(?:y|ies)|notices?|price ?lists?|tariffs?|memos?|guidance"
    r"|directions|reviews?|changelogs?|readme|hand-?outs?|briefings?|interviews?|captions?)"
)
"""What an answer rests on. Not policies, plans and contracts: what they do not cover is a claim."""
_MORE_NOUNS = rf"(?:{_NOUNS}|polic(?:y|ies)|contracts?|agreements?|terms|rules|regulations?)"
"""Beside verbs of telling these name a source, too: "The contract does not say ..."."""
_OF_SOURCES = [
    (re2.compile(pattern), instead)
    for pattern, instead in (
        (
            rf"\b({_MORE_NOUNS}) (?:that |which )?(?:i|we) (?:(?:can|could|currently|have|had|am|was"
            r"|were|been|do|only|just) )*(?:see|have|given|found|retrieved|access|read|reach|check"
            r"|looking at|working (?:with|from)|got)(?: (?:access )?to)?(?: here| now| at hand)?\b",
            r"\1",
        ),
        (
            rf"\b({_MORE_NOUNS}) (?:that |which )?you (?:have )?(?:provided|gave|given|shared|sent"
            r"|supplied|uploaded|pasted)(?: me| with me| to me)?\b",
            r"\1",
        ),
        (
            rf"\b({_MORE_NOUNS}) (?:that|which) (?:was|were|is|are|has been|have been) (?:provided|given"
            r"|shared|supplied|retrieved|available|found)(?: to me)?\b",
            r"\1",
        ),
        (
            r"\bwhat (?:i|we) (?:have|was given|were given|can see|got|found|was sent|am given)(?: here)?\b"
            r"|\bwhat you (?:gave|sent|shared|provided)(?: me)?\b|\bmy (?:end|side)\b",
            "the document",
        ),
        (r"\b(?:a|the) (?:dash|hyphen|blank|empty cell|question mark|n/a) (?:means|stands for|shows)"
         r"(?: that)?\b", ""),
    )
]  # fmt: skip
_NAMES_SOURCE = re2.compile(
    rf"\b{_MORE_NOUNS} (?:that |which |i |we |you )|\bwhat (?:i|we|you) |\bmy (?:end|side)\b"
    r"|\b(?:means|stands for|shows)\b"
)
"""Every pattern of `_OF_SOURCES` has one of these: most clauses name no source."""
_EMBEDDED_CLAIM = re2.compile(
    r"\b(?:tell you|say|see|confirm|know|note|notice|add|feel|assure you|mention|remember|aware|sure|report"
    r"|think|believe|guess|assume|understand|hear|find|found|learned|means?) that\b"
    r"|\b(?:sure|certain|think|believe|guess|suppose|assume|bet|did you know) (?:it|they|there|he|she|the"
    r"|this|we|you|your|our|all|every)\b"
    r"|\b(?:because|since|as the|due to|so that|given that)\b|\bgood news\b|\bcongratulations\b"
)
_VERB = re2.compile(
    r"\b(?:because|since|but|so that|is|are|was|were|has|had|will|would|may|might|must|should|does|did|gets?|got|costs"
    r"|closes?|opens?|receives?|pays?|takes?|lasts|begins?|starts?|ends?|includes?|offers?|needs?"
    r"|allows?|gives?|provides?|charges?|requires?|runs?|comes?|goes|makes?|became|becomes?"
    r"|remains?|stays?|works?|says|shows?|won|lost|died|said|to be|to have)\b"
)
_ASKED = re2.compile(r"\b(?:who|whom|whose|what|when|where|which|why|how|whether|if)\b")
_VERB_OF_KNOWING = (
    r"(?:know|see|find|have|tell|say|answer|confirm|help|determine|check|access|give|provide|offer"
    r"|look|identify|locate|verify|share|assist|comment|advise|judge|spot|quote|name|come across"
    r"|see any|read|work out|figure out|make out|establish|infer|conclude|speak to|point to)"
)
_SPEAKER_LACKS = re2.compile(
    r"(.{0,80}\b)?i (?:(?:am|do|did|can|could|have|would|was|will|must|may|honestly|really"
    r"|just|simply|still|currently|actually|unfortunately|also|only) ){1,4}"
    rf"(?:not|unable|no|nothing|never)\b(?: [a-z]+){{0,4}}? (?:{_VERB_OF_KNOWING}|sure|certain"
    r"|aware|able|idea|details?|information|data|figures?|record)\b(.*)"
)
_TELL = (
    r"(?:mention|say|state|specify|tell|name|discuss|explain|describe|address|indicate|detail|note"
    r"|answer|reveal|disclose|clarify|go into|touch on|touch upon|talk about|look at|speak (?:to|of)"
    r"|comment on|refer to|elaborate|report|spell out|set out|deal with|quote|identify|cite|define"
    r"|extend to|go as far as|give (?:any|a|an|the)|make (?:any|a) (?:mention|statement|reference))"
)
_HOLD = r"(?:include|contain|list|cover|give|provide|have)"
_TOLD = (
    r"(?:mentioned|stated|specified|indicated|said|disclosed|documented|discussed|explained"
    r"|addressed|revealed|noted|clarified|quoted|cited|spelled out"
    r"|touched on)"
)
_HELD = (
    r"(?:named|included|listed|covered|given|provided|found|shown|available|contained|part|present|there"
    r"|displayed|printed|known|recorded|reported|determined|identified|answered|described|defined"
    r"|set out|clear)"
)
_NOT = r"(?:not|never|nowhere)(?: [a-z]+){0,2}?"
_AUX = r"(?:do|does|did|is|are|was|were|has|have|had|can|could|will|would)"
_SOURCE_SILENT = re2.compile(
    rf"(?:.{{0,60}}\b{_MORE_NOUNS}\b.{{0,60}}|it|this|that|they|these|those|which) {_AUX} {_NOT} "
    rf"{_TELL}\b(.*)"
    rf"|(?:.{{0,60}}\b{_NOUNS}\b.{{0,60}}) (?:do|does|did) {_NOT} {_HOLD}\b(.*)"
)
_NOT_TOLD = re2.compile(
    rf"(.{{0,100}}) (?:is|are|was|were|has been|have been) {_NOT} {_TOLD}\b(.*)"
)
_NOT_IN_SOURCE = re2.compile(
    rf"(.{{0,100}}) (?:is|are|was|were|has been|have been) {_NOT} {_HELD}\b"
    rf"(?: [a-z]+){{0,4}} {_MORE_NOUNS}\b(.*)"
)
_NOTHING_TOLD = re2.compile(
    rf"(?:.{{0,60}}\b{_MORE_NOUNS}\b.{{0,40}}|but|and|it|this|that|they|which|all of which|makes?|gives?"
    r"|says?) ?(?:says?|said|gives?|gave|contains?|contained|makes?|made|has|have|had|offers?|provides?"
    r"|includes?|mentions?|holds?|names?|states?|lists?|shows?|tells?|covers?|specif(?:y|ies)|describes?"
    r"|records?)? (?:nothing|no (?:mention|statement|information|details?|word"
    r"|figures?|answer|reference|data|indication|guidance|specifics?|advice|instructions?|hints?|rules?"
    r"|explanation|comments?|clue|price|date)|neither|not a word)\b(.*)"
)
_TOLD_NOWHERE = re2.compile(
    rf"(?:no|neither|none of) (.{{1,80}}) (?:is|are|was|were|has been|have been) (?:[a-z]+ ){{0,1}}?"
    rf"(?:{_TOLD}|{_HELD}(?: [a-z0-9]+){{0,4}} {_MORE_NOUNS})\b(.*)"
)
_INFO = (
    r"(?:names?|figures?|dates?|prices?|times?|details?|information|reasons?|numbers?|amounts?"
    r"|explanations?|measurements?|answers?|address(?:es)?|values?|costs?|sources?|examples?)"
)
_NONE_TELLS = re2.compile(
    rf"(?:none|neither|nothing|no)\b.{{0,40}}\b{_MORE_NOUNS}\b.{{0,20}}? (?:{_TELL}|{_HOLD})(?:s|es)?\b(.*)"
    rf"|(?:.{{0,60}}\b{_MORE_NOUNS}\b.{{0,20}}|it|this|that|they) never (?:{_TELL}|{_HOLD})(?:s|es)?\b(.*)"
    rf"|(?:none|neither)(?: of [a-z ]{{1,30}})? (?:is|are|was|were) (?:in|part of|among|on)\b.{{0,40}}"
    rf"\b{_MORE_NOUNS}\b(.*)"
    rf"|no (?:[a-z]+ ){{0,2}}{_INFO} (?:is|are|was|were) (?:given|provided|listed|included|available"
    r"|found|shown)(.*)"
    rf"|there (?:is|are|was|were) (?:no|not any|nothing)\b(.*) (?:in|from|on|among|within) (?:[a-z]+ ){{0,3}}"
    rf"{_MORE_NOUNS}(?: here)?"
)
_BREAKS_OFF = re2.compile(
    rf"(?:.{{0,60}}\b{_MORE_NOUNS}\b.{{0,20}}?|it|this|that) (?:stops? short of|(?:ends?|breaks? off|stops?) before (?:it gets|reaching|getting)"
    r"|(?:is|are|stays?|remains?) silent (?:on|about)|goes? no further than|falls? short of)\b(.*)"
    rf"|(?:.{{0,60}}\b{_MORE_NOUNS}\b.{{0,20}}?|it|this|that) leaves? (.*) (?:open|unanswered)"
    rf"|(.{{0,60}}) (?:is|are|goes|go) (?:beyond|outside) (?:what )?.{{0,20}}\b{_NOUNS}\b.*"
)
_NOT_TO_FIND = re2.compile(
    r"(.{0,80}) (?:is|are|was|were) not (?:something|anything|information|a detail|one)(?: that| which)?"
    rf" (?:i|we|it|the [a-z]+|this [a-z]+|{_NOUNS})\b.*"
    r"|(.{0,80}) (?:is|are|was|were) not named"
    r"|(.{0,80}) (?:can|could) not be (?:determined|established|answered|inferred|derived|confirmed"
    r"|worked out|verified|concluded|deduced)\b(.*)"
    r"|(?:the |this |that )?(?:question|topic|subject|issue|matter|point)(.*) (?:does|do|did|is|are) not"
    r" (?:come up|raised|touched on)(.*)"
    r"|(?:found|see|saw|find|have|had|got) (?:no|nothing|none)\b(.*)"
    r"|(?:.{0,40}\b)?i am (?:missing|lacking)\b(.*)"
    r"|(?:.{0,40}\b)?i would (?:also )?need (.*) to (?:answer|say|tell|help|know|judge|give)\b.*"
)
_MAY_LACK = re2.compile(
    r"\b(?:no|not|nothing|never|nowhere|none|neither|unable|silent|missing|lacking|need|beyond|outside"
    r"|leaves?|short of|before)\b"
)
"""Every frame of what is lacking has one of these words: a plain statement is looked at once."""
_OFFER = re2.compile(
    r"^(?:but |and |so |well |then )*(?:i (?:am|can|will|would|could|might)\b|let me\b|happy to\b|glad to\b"
    r"|thanks?\b)"
)
_IS_OR_NOT = re2.compile(
    r"\b(?:is|are|was|were|has|have|had|there|no|not|none|nothing|without|can|will|may|must)\b"
)
"""Behind an offer these would state something of what was asked: "I am glad there is no fee"."""
_DEEDS = re2.compile(
    r"\b(?:i|we) (?:(?:will|can|could|would|have|had|am going to|shall|just|already|now|be) )*"
    r"(?:sen[dt]|ship(?:ped)?|deliver(?:ed)?|book(?:ed)?|order(?:ed)?|transfer(?:red)?|pay|paid|update[d]?"
    r"|change[d]?|register(?:ed)?|schedule[d]?|arrange[d]?|process(?:ed)?|issue[d]?|submit(?:ted)?|file[d]?"
    r"|escalate[d]?|cancel(?:led|ed)?|remove[d]?|add(?:ed)?|fix(?:ed)?)\b"
)
"""Deeds and promises of the speaker are no courtesy: nobody may have done them."""
_SYMPATHY = re2.compile(
    r"^i am (?:so |very |really |truly |terribly )*sorry\b|^(?:to hear|sorry)\b"
)
_WISH = re2.compile(
    r"^(?:but |and |so )*(?:i (?:really |do |sincerely )?wish (?:you|your|him|her|them|the)\b|i can (?:well |certainly |quite )?"
    r"(?:see|understand|imagine) (?:why|how|that) you (?:are|feel)\b|you are doing the right thing\b"
    r"|what (?:a )?(?:wonderful|great|lovely|good|fantastic|exciting|sad|sorry) (?:news|idea|plan|story)\b"
    r"|i (?:really |do |sincerely |very much )*hope (?:that )?you(?: (?:both|all))? (?:are|feel|get well|enjoy|find some)\b"
    r"|(?:many |warm |hearty |my |our )*congratulations\b|(?:warm|warmest|best|good) wishes\b|fingers crossed\b"
    r"|you have got this\b|(?:please )?do not be (?:too|so) hard on yourself\b"
    r"|(?:it|that|this) must (?:be|have been|feel) (?:(?:a|an|such|so|very|really|quite|terribly|incredibly) )*(?:anxious|hard|difficult|worrying"
    r"|stressful|frustrating|upsetting|exciting|sad|painful|tough|scary|disappointing|exhausting|overwhelming|emotional|lonely|confusing)\b"
    r"|(?:my|our) (?:thoughts (?:are|go out) (?:with|to)|(?:deepest |sincere )*condolences (?:to|on|for)|heart goes out)\b"
    r"|losing (?:a|an|your|someone|somebody)\b.* is (?:always |never |so |very )*(?:hard|easy|painful|sad|difficult)\b"
    r"|(?:please |just )*(?:give (?:me|us) a (?:shout|call|ring)|drop (?:me|us) a (?:line|note|message))\b)"
)
"""Wishes and sympathy with the reader are neither true nor false."""
_WISHED = 2
"""Words of their own that they may have: the birth of a daughter."""
_SPEAKER = re2.compile(
    r"(?:^|\b(?:and|but|so|here|then|today|sure|okay|ok|well|course|certainly|absolutely|no|course) )"
    r"(?:of course |unfortunately |also |just |really |always |happily |gladly )*"
    r"(?:i (?:am|have|can|will|would|do|did|hope|see|understand|apologi[sz]e|appreciate|look|wish|get"
    r"|know|need|hear|realise|realize|could|might|feel|want|went|looked|searched|checked|read|scanned"
    r"|have (?:looked|searched|checked|read|gone))|let me|let us|my (?:pleasure|apologies"
    r"|mistake|bad|answers?|repl(?:y|ies)|explanations?|responses?)|thank|thanks|sorry|happy to|glad to|delighted|pleased to|we (?:are|would|can)"
    r" (?:happy|glad|sorry|here|love|look)"
    r"|(?:see|find out|look into) (?:what|if|whether|how) (?:i|we) can)\b"
)
_GLAD_OF_IT = re2.compile(r"\bcongratulations(?: (?:to|on|for) [^\d]{1,60})?$")
_TO_HEAR_THAT = re2.compile(r"(?:^|\bsorry )to hear that\b")
_DISCOURAGES = re2.compile(r"\b(?:not|never|avoid|stop|without|instead|if you|you will|will get)\b")
_WHO_IS_ASKED = (
    r"(?:contact|ask|check|consult|reach out|speak (?:to|with)|talk to|call|ring|phone|e-?mail|get in touch"
    r"|refer to|look it up|visit|confirm|verify|write to|turn to|raise)"
)
_REFERRAL = re2.compile(
    rf"(?:^|\b(?:please|kindly|and|or|to|could|should|would|can|might|may|you|better|best|just|then|do"
    rf"|directly|always|then) ){_WHO_IS_ASKED}\b"
    r"|\b(?:should|will|would|can|may|might) (?:also )?be able to (?:tell|help|answer|advise|confirm"
    r"|assist)\b|\b(?:can|could|will|would|may|might|should) (?:help|advise|tell|confirm|know|answer"
    r"|assist)\b|\bis (?:the|your) best (?:place|person|source|bet|contact)\b"
)
_CONDITION = re2.compile(
    rf"^((?:.* )?{_WHO_IS_ASKED}\b.*?) (?:before|if|when|unless|in case|whenever|as soon as) you\b.*$"
)
"""Advice to ask somebody may name when: that is not checked unless it promises something."""
_MATTER = re2.compile(
    rf"^((?:.* )?{_WHO_IS_ASKED}(?: [a-z']+){{1,4}}?) (?:about|regarding|concerning) (?:[a-z]+ ?){{1,5}}$"
)
"""It may also name about what."""
_REFUSAL = re2.compile(
    r"(?:(?:no|but|so|sorry|unfortunately|apologies|however|i am (?:very |so |really )?sorry|i am afraid|i apologi[sz]e) ?)*"
    r"i (?:can|could|am|will|would|may|must) (?:unfortunately |simply )?not (?:be )?"
    r"(?:able to |allowed to |permitted to |going to |willing to )?"
    r"(?:help|assist|support|share|give|provide|reveal|disclose|discuss|delete|remove|edit|change|alter|write|draft"
    r"|create|make|perform|carry out|do|act|comply|continue|take part|take sides|open|access|look into|judge|diagnose"
    r"|prescribe|recommend|pretend|speculate|predict|repeat|generate|produce|complete|fulfil|engage|browse|see)"
    r"\b(.{0,80})"
    r"|(?:.{0,20}\b)?that is (?:not something|nothing) i (?:can|could|am able to|am allowed to)\b(.{0,40})"
)
_INVITATION = re2.compile(
    r"^(?:please |just |do |then |and |so |or )*(?:feel free|do not hesitate|go ahead|let (?:me|us)"
    r"|tell (?:me|us)|ask|send|share|give (?:me|us)|type|describe|take your time|take care|have a"
    r"|enjoy|stay|good luck|all the best|best (?:wishes|regards)|kind regards|get well|safe travels"
    r"|if (?:anything|something|any)|if you (?:have|need|would|want|like|could|can|let|tell|share|give"
    r"|send|prefer|are|do))\b"
)
_SMALL_TALK = re2.compile(
    r"^(?:hi|hello|hey|good (?:morning|afternoon|evening|day|night)|greetings|welcome|howdy|bye"
    r"|goodbye|see you|cheers|sure thing|no (?:problem|worries|trouble)|you are (?:very |most )?welcome|any ?time"
    r"|it was (?:a|my) pleasure|that is (?:kind|very kind|a (?:good|great"
    r"|fair|interesting) (?:question|point))|(?:a )?(?:good|great|fair|interesting) (?:question|point)"
    r"|what a|the same to you|you too|likewise|same (?:here|to you)|it would (?:only |just )?be"
    r" (?:a guess|guesswork|speculation))\b"
)
_OWN_FORM = re2.compile(
    r"^(?:based|going|judging|relying|here (?:is|are)|below|the following|this is|these are|(?:all |the )?(?:figures|numbers|values"
    r"|amounts|percentages|shares|totals?|results|names|dates|entries|rows|items|prices)|note|scaled"
    r"|rounded|sorted|ordered|listed|as follows|in short|to sum up|in summary|briefly|summary|overview"
    r"|hope)\b"
    rf"|^(?:on|in|from|by) (?:just |only |all )?(?:this|these|that|those|the|my|your) (?:[a-z]+ )?{_MORE_NOUNS}$"
)
_TO_THE_READER = re2.compile(
    r"\b(?:you|your|yours|i|we|it|me)\b|^(?:which|what|anything|something|any|is there|shall)\b"
)
_RISKY = re2.compile(
    r"\b(?:free|discount(?:s|ed)?|bonus(?:es)?|gifts?|refund(?:s|ed)?|guarantee[sd]?|entitled|eligible"
    r"|unlimited|complimentary|included|waived|half|double|triple|percent|per cent|vouchers?|credits?"
    r"|compensation|upgrades?|rewards?|prizes?|win|cheap(?:er)?|safe|dangerous|allowed|forbidden"
    r"|cure[sd]?|proven|always|never|everyone|everybody|cancel(?:led|ed)?|approved|rejected"
    r"|granted|confirmed|booked|paid|sold|closed?|opened|password|pin|card|[a-z]*[0-9][a-z0-9]*|two|three"
    r"|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|million)\b"
)
_FUNCTION_WORDS = """
a all every about above after again ago also although am an and another any anybody anyone anything are around as at
be been before being below beside besides between both but by can could did do does doing done each either else even few for
from get gets getting got had has have having he her here hers him his how however i if in into is it its itself just
least less let like made make many may maybe me mean meant might mine more most much must my myself near need neither no none nor not nothing
now of off often on once one ones only onto or other others otherwise our ours ourselves out over own per perhaps please quite rather
really same several shall she should since so some somebody someone something somewhere soon still such than that the
their theirs them then there these they thing things this those though through thus to together too toward towards under
until up us very was way we well were what whatever when where whether which while who whom whose why will with within without
would yes yet you your yours yourself today tonight currently presently simply actually unfortunately sadly
"""
_SPEECH_WORDS = """
able absolutely access accurate add additional advance advice advise afraid afternoon ahead ai alright answer anytime apologise
apologize apologies apology appreciate article ask asking assist assistance assistant available aware back bad based best
better big bit bot bother bottom brief briefly bring call care case certain certainly chat check clarify clarification clear clearly
colleague come comment concern confident confirm confuse confusing consult contact context conversation correct course cover
day dear decide department describe desk detail determine different difficult directly do document documentation doubt
easier easily elaborate email enjoy enough evening exact exactly example excellent expert explain explanation extra
fair fall feedback feel figure find fine first follow forget forgive forward found frustrating frustrated frustration full further
general give glad gladly go good goodbye great greetings guess guide hand handy happen happened happily happy hard hear hello
help helpful hesitate hey hi hope hopefully howdy idea immediately inconvenience inform information instead interested
interesting issue keep kind kindly know knowledge language last later learn leave little listen long look lovely luck
manage manager matter mention message mind minute miss mistake model moment morning name new next nice night note number
offer office official okay ok open option order overview page pardon part particular patience patient people person phone
pick place plan pleasant please pleased pleasure point possible prefer previous problem proper properly provide provider
question quick quickly quote reach read ready real reason receive recent recommend refer regard regarding regards relevant
reliably reliable remember repeat rephrase reply request resolve respond response rest right round safely satisfied say search section see
seem send sense sentence separately service share short show sincerely situation sooner sorry sort sound source speak specific
specifically start stay step stop story stuff suggest suggestion sum summarise summarize summary support suppose sure take talk task
team tell term text thank thanks think thought through time today together told tomorrow topic touch tough trouble troubling true
try trying turn type understand understanding understandable unsure until use useful using version view virtual visit wait walk
want warm website week welcome wish wonder wonderful word work worry worries worth write wrong year yesterday
bear hold listen luck stand stressful annoying upset upsetting disappointing disappointed tiring unpleasant worrying hesitation
congratulations congrats wishing birthday recovery condolences grateful lucky excited exciting fun imagine wonder
smooth speedy swift gentle especially disappointed pleased delighted stuck
front put away apart aside sign item pass far ears went gone guess guesswork speculation judge rely part rather joke whole entire everything scan scanned thing silent prefer meet
"""
_FORM_WORDS = """
figures numbers values amounts table list bullet column row dash hyphen blank cell rounded round decimal decimals nearest whole place
order sorted alphabetical alphabetically chronological ascending descending approximate approximately bold italic euro dollar pound cent
shown listed follows following scaled calculated computed percentages shares totals entries
"""
_ROLE_WORDS = """
doctor pharmacist gp physician nurse clinic hospital specialist manufacturer maker seller retailer shop store supplier vendor
customer bank branch insurer insurance adviser advisor lawyer solicitor attorney accountant council authority authorities ministry
hotel reception host airline carrier airport station organiser organizer museum school university teacher professor employer hr
human resources helpdesk hotline helpline administrator admin author editor landlord agent agency operator company owner
sales billing accounts marketing booking clerk secretary secretariat caretaker union press reservations admissions
local relevant responsible appropriate medical legal financial professional qualified independent technical member staff
"""
_EMPTY = frozenset(_FUNCTION_WORDS.split())
"""Alone they may answer: "I do", "You can"."""
_USUAL_BUT_ROLES = frozenset(" ".join((_FUNCTION_WORDS, _SPEECH_WORDS, _FORM_WORDS)).split())
_USUAL = _USUAL_BUT_ROLES.union(_ROLE_WORDS.split())
"""Words of such speech. A frame of nothing but these names nothing that could be wrong."""
