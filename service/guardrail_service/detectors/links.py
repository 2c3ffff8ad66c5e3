"""Finds ways out of an answer that its passages do not hold: links, images, addresses, numbers.

Also requests for credentials. An invented address sends readers to a stranger, and an image whose
address holds part of the conversation sends it there by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple
from urllib.parse import unquote_plus, urlsplit

import re2
from pydantic import Field, field_validator

from guardrail_service.detectors.pii import phone
from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    Parameters,
    boolean_metrics,
    detector,
)
from guardrail_service.detectors.shared.placeholders import Placeholders
from guardrail_service.detectors.shared.remedies import STAY_WITH_PASSAGES
from guardrail_service.text.budget import check_time, in_time
from guardrail_service.text.cached import cached_property
from guardrail_service.text.patterns.search import Match, Pattern, PatternSet, encodable, prepared
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Coverage, Outcome, RowOutput, Span

LinkKind = Literal[
    "url", "image", "email", "phone", "data_in_url", "script_link", "credential_request"
]
KINDS: tuple[LinkKind, ...] = (
    "url", "image", "email", "phone", "data_in_url", "script_link", "credential_request",
)  # fmt: skip
ABSENT = frozenset({"url", "image", "email", "phone"})
"""Kinds that are a fault only because no passage holds them."""

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\x{3000}-\x{303F}\x{FF00}-\x{FFEF}"
_HOST = rf"[^\s/?#<>\"'`|\\()\[\]{{}},;{_UNSPACED}]+"
_REST = r"(?:[/?#][!#$%&()*+,\-./0-9:;=?@A-Z\[\]_a-z{}~]*)?"
_TOP = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|app|dev|cloud|online|site|shop|store|tech|xyz|top|"
    "example|test|invalid|link|click|live|help|support|eu|uk|de|fr|es|it|nl|ch|at|be|pl|se|no|dk|"
    "fi|ie|pt|cz|gr|ru|ua|tr|in|cn|jp|kr|au|nz|ca|us|mx|br|ar|cl|za|il|co|me|tv|gg|ly"
)
_CREDENTIAL = (
    r"(?:pass ?(?:word|code|phrase)s?|PIN(?: code| number)?|one[- ]time (?:code|pass(?:word|code))|"
    r"OTP|TAN|(?:verification|security|authentication|2FA|MFA|log-?in|SMS|access) codes?|CV[VC]2?|"
    r"(?:credit |debit |bank )?card (?:number|details|data)|social security number|SSN|"
    r"(?:seed|recovery) (?:phrase|words?)|private key|API key|(?:access|API) token|"
    r"log-?in (?:details|data|credentials)|credentials|mother'?s maiden name|"
    r"(?:bank|banking|account) (?:credentials|log-?in))"
)
_ANY_CODE = rf"(?:{_CREDENTIAL}|(?:that|this|the) (?:code|number|PIN|password|token))"
_DOCUMENTS = r"(?:passport|driving licen[cs]e|driver'?s licen[cs]e|identity card|ID card)"
_YOURS = r"\b(?:your|the|that|this)\b"
_GAP = r"[^.!?\n]{0,48}?"
_HERE = (
    r"\b(?:here|below|with (?:me|us)|to (?:me|us|this (?:chat|number|address|e-?mail))|"
    r"in(?:to)? (?:this|the|your) (?:chat|conversation|message|window|reply|box))\b"
)
_HAND_OVER = r"(?:send|tell|give|text|e-?mail|message|provide|forward|dm)"
_ENTER = (
    r"(?:share|provide|confirm|verify|enter|type|paste|post|submit|state|write|upload|give|send|"
    r"fill in|update)"
)
_ASKED_FOR = {
    # Compiling whole sentences with gaps takes the gate seconds; what they ask for does not.
    "ask_send": (rf"\b{_HAND_OVER}\s+(?:me|us)\b{_GAP}\b{_ANY_CODE}\b", r"\b(?:me|us)\b"),
    "ask_document": (rf"\b{_HAND_OVER}\s+(?:me|us)\b{_GAP}\byour {_DOCUMENTS}\b", _DOCUMENTS),
    "ask_reply": (
        rf"\b(?:reply|respond|answer)\b{_GAP}\bwith\b{_GAP}{_YOURS}{_GAP}\b{_CREDENTIAL}\b",
        r"\b(?:reply|respond|answer)\b",
    ),
    "ask_what": (rf"\bwhat(?:'s|\x{{2019}}s| is| are)\s+your\b{_GAP}\b{_CREDENTIAL}\b", r"\bwhat"),
    "ask_need": (
        rf"\b(?:I|we)(?:'ll|\x{{2019}}ll| will)?\s+(?:also\s+|just\s+)?(?:need|require)\b{_GAP}"
        rf"\byour\b{_GAP}\b{_CREDENTIAL}\b",
        r"\b(?:need|require)\b",
    ),
    "ask_here": (
        rf"\b{_ENTER}\b{_GAP}{_YOURS}{_GAP}\b{_CREDENTIAL}\b{_GAP}{_HERE}", rf"\b{_ENTER}\b"
    ),
    "ask_words": (
        rf"\b{_ENTER}\b{_GAP}\b(?:seed|recovery) (?:phrase|words?)\b", r"\b(?:seed|recovery) "
    ),
    "ask_there": (rf"\b{_ENTER}\b{_GAP}\byour\b{_GAP}\b{_CREDENTIAL}\b", rf"\b{_ENTER}\b"),
}  # fmt: skip
PATTERNS = (
    Pattern(
        "url", rf"\b(?:https?|ftp|wss?):[/\\]+{_HOST}{_REST}", (":/", ":\\"), 0, True,
        gate=r":[/\\]",
    ),
    Pattern("url_www", rf"\b(www\d?\.{_HOST}{_REST})", ("www",), 1, True, gate=r"\bwww\d?\."),
    Pattern(
        "url_relative",
        rf"(?:\]\(\s*<?|(?:src|href)\s*=\s*[\"']?)([/\\][/\\]+{_HOST}{_REST})",
        ("//", "/\\", "\\"), 1, True, gate=r"[/\\][/\\]",
    ),
    Pattern(
        "domain", rf"\b((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:{_TOP})\b{_REST})", (".",), 1,
        gate=rf"[a-z0-9]\.(?:{_TOP})\b",
    ),
    Pattern(
        "script_link", r"(?:\]\(\s*<?|(?:src|href)\s*=\s*[\"']?)((?:javascript|vbscript|data):)",
        ("script:", "data:"), 1, True,
    ),
    Pattern(
        "email", r"[a-z0-9][a-z0-9._%+-]*@(?:[a-z0-9-]+\.)+[a-z]{2,24}", ("@",), 0, True, gate="@"
    ),
    Pattern(
        "phone", r"(?:\+|\b00|\()?\b\d[\d ()./\x{2010}-\x{2013}\x{A0}-]{5,20}\d\b",
        gate=r"\d[^a-zA-Z]{5}",
    ),
    *(
        Pattern(name, regex, ignore_case=True, gate=gate)
        for name, (regex, gate) in _ASKED_FOR.items()
    ),
)  # fmt: skip
_CLOSERS = {")": "(", "]": "[", "}": "{"}
_IMAGE_BEFORE = re2.compile(r"(?:!\[[^\]\n]{0,200}\]\(\s{0,4}<?|url\(\s{0,4}[\"']?)$")
_TAG_BEFORE = re2.compile(r"(?i)<(?:img|source|video|audio|iframe|embed)\b[^<>]{0,280}$")
_LABEL_BEFORE = re2.compile(r"(?:^|\n)\s{0,3}\[([^\]\n]{1,60})\]:\s{0,4}<?$")
_BEFORE = 300
_NEGATED = re2.compile(
    r"(?i)\b(?:never|not|no one|nobody|without|avoid|refuse|beware|scams?|phishing)\b[^,;:]*$|"
    r"n['\x{2019}]t\b[^,;:]*$|\bask(?:s|ed|ing)?\s+(?:you|for|anyone|customers)\b"
)
"""Warnings against handing over, in the clause of the request, and talk about requests."""
_ANNOUNCES = re2.compile(
    r"(?i)\b(?:call|phone|tel|telephone|hot-?line|line|number|fax|whats ?app|ring|dial|text|sms|"
    r"mobile|contact|telefon\w*|anruf\w*|rufnummer|appel\w*|tel\x{E9}fono|telefono|telefoon)\b"
    r"[^\n\d]{0,30}$"
)
_HELD_BACK = re2.compile(r"[A-Za-z0-9+/_=-]{28,}")
_TEMPLATE = re2.compile(r"(?i)\{[^{}]{1,40}\}|<[a-z_ ]{3,40}>|\[[a-z_ ]{3,40}\]")
_WORD = re2.compile(r"\p{L}{4,}|\d{5,}")
_HOST_NAME = re2.compile(r"[A-Za-z0-9.-]{1,253}")
_SENTENCE_END = re2.compile(r"[.!?\n]")
_PREFIX = re2.compile(r"(?:(?:https?|ftp|wss?):[/\\]+|//+)(?:www\d?\.)?|\bwww\d?\.")
_LINK = frozenset({"url", "url_www", "url_relative"})
_ONLY_HOST = re2.compile(r"(?i)(?:[a-z]+:)?[/\\]*[^/?#]*")
_STILL_HOST = re2.compile(
    r"(?i)^(?:[!$-.0-;=@-\[\]-{}~]*(?:@|\.[a-z0-9-]+/)|[\x{3002}\x{FF0E}\x{FF61}][a-z0-9])[^\s<>\"]*"
)
"""Behind a host, where browsers read on: a user name ends there, or other signs belong to it."""
_BETWEEN_DIGITS = re2.compile(r"(\d)[ ()./\x{2010}-\x{2013}\x{A0}-]{1,3}")
_PLACES = frozenset({"localhost", "127.0.0.1", "::1"})
_STAND_IN = re2.compile(
    r"(?i)(?:(?:https?|wss?|ftp)://)?(?:(?:you|your[._-]?(?:name|address|email)|user(?:name)?|name|me|"
    r"someone|somebody|no-?reply|admin|test|(?:jane|john)(?:[._]?doe)?|alice|bob)@)?"
    r"(?:(?:www|mail|smtp|imap|api|app|host|server|proxy|db|auth|cdn|static|docs)\.)?"
    r"example\.(?:com|org|net)(?::\d{2,5})?/?"
)
"""Addresses that RFC 2606 keeps free for examples: nobody can own them. With a name of its own in
front, or a path, one may stand for a real one."""
_STEMS = frozenset({"asp.net", "vb.net", "ado.net"})
"""Names of products that look like domains."""


class LinksParameters(Parameters):
    """The ways out that an answer may name beyond its passages and its question."""

    kinds: tuple[LinkKind, ...] = Field(KINDS, description="What to look for.")
    allow_hosts: tuple[str, ...] = Field(
        (), description="Hosts, with their subdomains, that links and e-mail addresses may name."
    )
    allow: tuple[str, ...] = Field(
        (), description="Links, addresses and telephone numbers that are always right."
    )

    @field_validator("allow_hosts")
    @classmethod
    def _hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for number, host in enumerate(hosts):
            if not _HOST_NAME.fullmatch(host):
                raise ValueError(
                    f"allow_hosts[{number}]: found something else than a host; expected a name "
                    "such as 'example.com'"
                )
        return tuple(host.lower().strip(".") for host in hosts)


class WayOut(NamedTuple):
    """A way out of the answer; offsets are code points [start, end)."""

    start: int
    end: int
    kind: LinkKind


@cache
def engine() -> PatternSet:
    """Return the compiled patterns, shared by all threads of the process."""
    return PatternSet(PATTERNS)


@detector
class Links(Detector[LinksParameters]):
    """Flags what neither a passage nor the question holds.

    A link counts as held if its host and path stand in a passage, also as the beginning of a longer
    one; the scheme, `www.` and case do not matter. Without passages nothing can be held: an answer
    with a link is then `unverified`.
    """

    spec = DetectorSpec(
        id="links",
        version="rules/1",
        summary="Does the answer name links, addresses or numbers that its passages do not hold?",
        metrics=boolean_metrics(parse_failures=False),
        inputs=frozenset({"question", "answer", "contexts"}),
        cost="pattern",
        default_thresholds={"model_passes": 0.5},
        replaces=True,
        in_flight="search",
        remedy=STAY_WITH_PASSAGES,
        listing=Listing(
            title="Links and calls to act",
            tags=("rule-based", "nist:secure-resilient", "sr11-7:ongoing-monitoring"),
            problem="security",
            avid="S0301",
        ),
    )
    parameters = LinksParameters

    def load(self) -> None:
        """Compile the patterns."""
        engine()

    def reduce(
        self, sample: SegmentedSample, outputs: Sequence[RowOutput], parameters: LinksParameters
    ) -> Outcome:
        """Return whether every way out of the answer is held by a passage or the question."""
        sources = _Sources(sample, parameters)
        found = [
            f for f in ways_out(encodable(sample.answer), sources) if f.kind in parameters.kinds
        ]
        coverage = Coverage.whole(sample.sample, contexts=True)
        if found and not sample.sample.contexts and all(f.kind in ABSENT for f in found):
            return Outcome.unverified("missing_input", coverage)
        if not found:
            return Outcome.boolean(True, coverage=coverage)
        names = Placeholders()
        spans = tuple(
            Span(f.start, f.end, f.kind, replacement=names.of(f.kind, sample.answer[f.start:f.end]))
            for f in found
        )  # fmt: skip
        return Outcome.boolean(False, spans=spans, coverage=coverage)


class _Sources:
    """The texts an answer may repeat: its passages, its question, and what the operator allows."""

    def __init__(self, sample: SegmentedSample, parameters: LinksParameters) -> None:
        texts = [passage.text for passage in sample.sample.contexts]
        self._texts = [
            encodable(text) for text in (*texts, sample.sample.question or "", *parameters.allow)
        ]
        self._hosts = parameters.allow_hosts
        self._answer = encodable(sample.answer)
        self._held: dict[str, bool] = {}

    def hold_link(self, link: str) -> bool:
        """Return whether a link or an e-mail address stands in a source."""
        if link not in self._held:
            self._held[link] = self._holds(link)
        return self._held[link]

    def _holds(self, link: str) -> bool:
        host = _host(link)
        if host in _PLACES or any(host == h or host.endswith(f".{h}") for h in self._hosts):
            return True
        wanted, at = _bare(link).rstrip("/"), -1
        while (at := self._plain.find(wanted, at + 1)) >= 0:
            end = at + len(wanted)
            if not _goes_on(self._plain[at - 1 : at]) and not _goes_on(self._plain[end : end + 1]):
                return True
        return False

    @cached_property
    def _plain(self) -> str:
        return "\n".join(map(_bare, self._texts))

    def hold_number(self, value: str) -> bool:
        """Return whether a telephone number stands in a source, with or without its prefix."""
        digits = "".join(filter(str.isdigit, value))
        return digits[-8:] in self._digits

    @cached_property
    def _digits(self) -> str:
        return "\n".join(_BETWEEN_DIGITS.sub(r"\1", text) for text in self._texts)

    def hold_request(self, sentence: str) -> bool:
        """Return whether a source asks for the same thing: a manual says where passwords go."""
        asked, least = _words(sentence), len(sentence) // 2
        return any(size >= least and asked <= words for size, words in in_time(self._parts))

    @cached_property
    def _parts(self) -> list[tuple[int, set[str]]]:
        parts = (part for text in self._texts for part in _SENTENCE_END.split(text))
        return [(len(part), _words(part)) for part in in_time(parts)]

    @cached_property
    def spoken(self) -> frozenset[str]:
        """Return the words and long numbers of answer, question and passages."""
        return frozenset(_words(" ".join([*self._texts, self._answer])))


def ways_out(answer: str, sources: _Sources) -> list[WayOut]:
    """Return what the sources do not hold, in reading order, none overlapping another."""
    matches = engine().scan(prepared(answer))
    links = _unheld([m for m in matches if not m.pattern.startswith("ask")], answer, sources)
    asked = [m for m in matches if m.pattern.startswith("ask")]
    found: list[WayOut] = []
    for item in sorted([*links, *_requests(asked, links, answer, sources)]):
        if not found or item.start >= found[-1].end:
            found.append(item)
    return found


def _unheld(matches: Sequence[Match], answer: str, sources: _Sources) -> list[WayOut]:
    found: list[WayOut] = []
    taken = 0
    for match in sorted(matches, key=lambda m: (m.start, -m.end)):
        check_time()
        if match.start < taken:
            continue
        start, end = match.start, _end(match, answer)
        kind = _kind(match.pattern, answer, start, end, sources)
        if kind is not None:
            found.append(WayOut(start, end, kind))
        if match.pattern != "phone" or kind is not None:
            taken = end
    return found


def _kind(pattern: str, answer: str, start: int, end: int, sources: _Sources) -> LinkKind | None:
    """Return what a match is; None for what is held, or is no way out."""
    value = answer[start:end]
    if pattern == "script_link":
        return "script_link"
    if pattern == "phone":
        return (
            "phone" if _is_phone(answer, start, value) and not sources.hold_number(value) else None
        )
    if _STAND_IN.fullmatch(value) and _is_in_code(answer, start):
        return None
    if pattern == "email":
        return None if sources.hold_link(value) else "email"
    if pattern == "domain" and (value in _STEMS or _is_part(answer, start)):
        return None
    if sources.hold_link(value):
        return None
    is_image = _is_image(answer, start)
    if carries_data(value, sources.spoken, is_image=is_image):
        return "data_in_url"
    return "image" if is_image else "url"


def _is_in_code(answer: str, start: int) -> bool:
    """Return whether a place lies in code, or behind the sign of a setting: `MAIL_HOST=`."""
    before = answer[max(0, start - _BEFORE) : start]
    line = before[before.rfind("\n") + 1 :]
    is_quoted = answer.count("```", 0, start) % 2 == 1 or line.count("`") % 2 == 1
    return is_quoted or line.endswith("=")


def _is_part(answer: str, start: int) -> bool:
    """Return whether what looks like a domain is the rest of a name or the step of a path."""
    before = answer[max(0, start - 2) : start]
    return before.endswith(("@", ".")) or (before.endswith("/") and before != "//")


def carries_data(link: str, spoken: frozenset[str], *, is_image: bool) -> bool:
    """Return whether a link holds words of the conversation, a placeholder for them, or a code.

    An image is fetched without a click, so two words of the conversation in its address are enough;
    a search link may hold some.
    """
    try:
        parts = urlsplit(link if "//" in link else f"//{link}")
    except ValueError:
        return True
    carried = unquote_plus(f"{parts.query} {parts.fragment} {parts.path if is_image else ''}")
    if not carried.strip():
        return False
    if _TEMPLATE.search(carried) or _HELD_BACK.search(f"{parts.query} {parts.fragment}"):
        return True
    said = [word for word in _WORD.findall(carried.casefold()) if word in spoken]
    return len(said) >= (2 if is_image else 4)


def _requests(
    asked: Sequence[Match], links: Sequence[WayOut], answer: str, sources: _Sources
) -> Iterator[WayOut]:
    for match in asked:
        check_time()
        first, last = _sentence(answer, match.start, match.end)
        if _NEGATED.search(answer[max(first, match.start - 80) : match.start]):
            continue
        leads_out = any(first <= link.start < last + 200 for link in links)
        if match.pattern == "ask_there" and not leads_out:
            continue
        if not sources.hold_request(answer[match.start : match.end]):
            yield WayOut(match.start, match.end, "credential_request")


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """Return roughly where the sentence around a match begins and ends."""
    before = max(text.rfind(mark, max(0, start - 300), start) for mark in ".!?\n")
    after = [
        at for mark in ("\n", ". ", "! ", "? ") if (at := text.find(mark, end, end + 300)) >= 0
    ]
    return before + 1, min(after, default=min(len(text), end + 300))


def _is_image(text: str, start: int) -> bool:
    before = text[max(0, start - _BEFORE) : start]
    if _IMAGE_BEFORE.search(before) or _TAG_BEFORE.search(before):
        return True
    label = _LABEL_BEFORE.search(before)
    return bool(label) and f"][{label[1]}]" in text


def _is_phone(text: str, start: int, value: str) -> bool:
    """Return whether digits are a telephone number: by their plus, or by a word before them."""
    if not phone.announced(value) and sum(map(str.isdigit, value)) < 8:
        return False
    if phone.is_date(value) or phone.thousands(value):
        return False
    before = text[max(0, start - 48) : start]
    return value.startswith("+") or before.endswith("tel:") or bool(_ANNOUNCES.search(before))


def _end(match: Match, text: str) -> int:
    """Return where a match ends, as browsers read it."""
    end = _trimmed(text, match.start, match.end)
    if match.pattern in _LINK and _ONLY_HOST.fullmatch(text[match.start : end]):
        more = _STILL_HOST.search(text[end : end + _BEFORE])
        if more:
            return _trimmed(text, match.start, end + more.end())
    return end


def _trimmed(text: str, start: int, end: int) -> int:
    """Return where a link ends without the stop and the bracket of the sentence around it."""
    while end > start:
        last = text[end - 1]
        opener = _CLOSERS.get(last)
        unopened = opener and text.count(opener, start, end) < text.count(last, start, end)
        if last in ".,;:!?*_~" or unopened:
            end -= 1
        else:
            break
    return end


def _bare(text: str) -> str:
    """Return a text in which links stand without scheme, `www.` and case."""
    bare: str = _PREFIX.sub(" ", text.casefold())
    return bare.strip()


def _goes_on(letter: str) -> bool:
    return letter.isalnum() or letter in ("-", "_", "@")


def _host(link: str) -> str:
    if "@" in link and not any(sign in link for sign in "/?#"):
        return link.rpartition("@")[2].casefold()
    try:
        return urlsplit(link if "//" in link else f"//{link}").hostname or ""
    except ValueError:
        return ""


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
