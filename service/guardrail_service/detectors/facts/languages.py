"""Number words, weekdays and function words of other languages, as the English words they mean.

The rules are written for English words. A text in another language is read with its own number
words, weekdays and function words replaced; all other words are compared by their first letters.
"""

# Words of ten languages are the data.
# ruff: noqa: RUF001

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from guardrail_service.detectors.facts import vocabulary as words


class Token(NamedTuple):
    """One number, word or sign; `low` is its text in lower case."""

    kind: str
    text: str
    low: str
    start: int
    end: int


_ENGLISH: Final = [
    *words.NUMBER_WORDS, "hundred", "thousand",
]  # fmt: skip
_NUMBERS: Final = {
    "de": "null - zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn"
    " fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig"
    " achtzig neunzig hundert tausend",
    "fr": "zéro - deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze"
    " seize - - - vingt trente quarante cinquante - - - - cent mille",
    "es": "cero - dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince"
    " dieciséis diecisiete dieciocho diecinueve veinte treinta cuarenta cincuenta sesenta setenta"
    " ochenta noventa cien mil",
    "it": "zero - due tre quattro cinque sei sette otto nove dieci undici dodici tredici"
    " quattordici quindici sedici diciassette diciotto diciannove venti trenta quaranta cinquanta"
    " sessanta settanta ottanta novanta cento mille",
    "pt": "zero - dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze"
    " dezasseis dezassete dezoito dezanove vinte trinta quarenta cinquenta sessenta setenta oitenta"
    " noventa cem mil",
    "nl": "nul - twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien"
    " zestien zeventien achttien negentien twintig dertig veertig vijftig zestig zeventig tachtig"
    " negentig honderd duizend",
    "pl": "zero - dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście"
    " trzynaście czternaście piętnaście szesnaście siedemnaście osiemnaście dziewiętnaście"
    " dwadzieścia trzydzieści czterdzieści pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt"
    " dziewięćdziesiąt sto tysiąc",
}
_MORE: Final = {
    "de": "davon=which denen=which"
    " zweimal=twice dreimal=thrice mal=times"
    " dreißigste=thirtieth zweite=second zweiten=second zweiter=second"
    " dritte=third dritten=third vierte=fourth vierten=fourth fünfte=fifth fünften=fifth",
    "fr": "dont=which lesquels=which lesquelles=which"
    " fois=times deuxième=second troisième=third quatrième=fourth cinquième=fifth",
    "es": "cuales=which ellos=which ellas=which"
    " veces=times"
    " dieciseis=sixteen segunda=second tercera=third tercer=third cuarta=fourth quinta=fifth",
    "it": "quali=which cui=which volte=times seconda=second terza=third quarta=fourth quinta=fifth",
    "pt": "quais=which eles=which elas=which"
    " vezes=times"
    " duas=two dezesseis=sixteen dezessete=seventeen dezenove=nineteen segundo=second"
    " terceira=third terceiro=third",
    "nl": "waarvan=which"
    " tweemaal=twice driemaal=thrice keer=times"
    " tweede=second derde=third vierde=fourth vijfde=fifth één=one",
    "pl": "których=which nich=which"
    " razy=times"
    " dwie=two dwóch=two trzech=three czterech=four pięciu=five sześciu=six siedmiu=seven"
    " ośmiu=eight dziewięciu=nine dziesięciu=ten dwunastu=twelve czternastu=fourteen"
    " dwudziestu=twenty trzydziestu=thirty",
}
_DAYS: Final = list(words.WEEKDAYS)[:7]
_WEEKDAYS: Final = {
    "de": "montag dienstag mittwoch donnerstag freitag samstag,sonnabend sonntag",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "es": "lunes martes miércoles jueves viernes sábado domingo",
    "it": "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "pt": "segunda terça quarta quinta sexta sábado domingo",
    "nl": "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
    "pl": "poniedziałek,poniedziałku,poniedziałki wtorek,wtorku,wtorki środa,środę,środy"
    " czwartek,czwartku,czwartki piątek,piątku,piątki sobota,sobotę,soboty,soboty"
    " niedziela,niedzielę,niedziele",
}
_FUNCTION: Final = {
    "de": "der die das den dem des ein eine einen einem einer eines ist sind war wird werden hat"
    " haben kann können sie ihr ihre ihren wir uns unser mit für von vom zu zum zur im am an auf"
    " aus bei nach sich auch noch nur nicht als wie wenn dann dass es er pro je über bitte dort",
    "fr": "le la les l un une des du de d et est sont a ont pour par sur avec dans au aux ce cette"
    " ces vous votre vos nous notre nos il elle ils elles on que qui ne pas plus se son sa ses en y"
    " être peut peuvent",
    "es": "el la los las un una unos unas de del al y es son está están ha han para por con en que"
    " se su sus lo le les no más como usted puede pueden hay si",
    "it": "il lo la i gli le un una uno di del della dello dei degli delle da dal dalla al alla ai"
    " è sono ha hanno per con in nel nella su che si non più come può possono e ed",
    "pt": "o a os as um uma de do da dos das no na nos nas ao à aos às e é são tem têm para por com"
    " em que se seu sua seus suas não mais como pode podem há",
    "nl": "de het een en van in op te is zijn was wordt worden heeft hebben kan kunnen voor met aan"
    " bij naar uit dat die dit u uw je wij ons onze er ook nog niet als om per",
    "pl": "i w we z ze na do od po za o u jest są był była było być się nie że to ten ta te dla"
    " przez oraz lub może można a jak",
}
_AND: Final = {"de": "und", "fr": "et", "es": "y", "it": "e", "pt": "e", "nl": "en", "pl": "i"}
_TO: Final = {
    "fr": "au", "es": "a al hasta", "it": "al", "pt": "às a até", "nl": "tot", "pl": "do",
}  # fmt: skip
_MORE_THAN: Final = {
    "de": "mehr weniger", "fr": "plus moins", "es": "más menos", "it": "più meno",
    "pt": "mais menos", "nl": "meer minder", "pl": "ponad poniżej",
}  # fmt: skip
_CALCULATIONS: Final = words.listed(
    "insgesamt zusammen gesamt summe differenz durchschnitt unterschied mehr weniger hälfte doppelt"
    " jeweils gespart sparen total totale ensemble différence moyenne moitié double chacun somme"
    " conjunto diferencia media promedio mitad doble cada suma insieme differenza metà doppio"
    " ciascuno tutto todo tudo somma soma diferença média metade dobro totaal samen verschil"
    " gemiddeld helft dubbel"
    " elk razem łącznie suma różnica średnio połowa każdy jährlich annuel anual annuale"
)
"""Words of other languages with which a claim may have computed its number."""
LATIN: Final = frozenset(_NUMBERS)
_STATED: Final = {
    "de": "not: nicht kein keine keinen keinem keiner keines nie niemals; only: nur lediglich"
    " ausschließlich; without: ohne; except: außer ausgenommen; if: wenn falls sofern; but: aber"
    " sondern jedoch; or: oder; allowed: erlaubt gestattet zulässig; forbidden: verboten untersagt"
    " unzulässig; open: geöffnet offen; closed: geschlossen; possible: möglich; impossible:"
    " unmöglich; gratis: kostenlos kostenfrei gratis umsonst",
    "fr": "not: pas jamais; only: seulement uniquement; without: sans; except: sauf excepté hormis;"
    " if: si; but: mais; or: ou; allowed: autorisé autorisée autorisés autorisées permis permise;"
    " forbidden: interdit interdite interdits interdites; open: ouvert ouverte ouverts ouvertes;"
    " closed: fermé fermée fermés fermées; gratis: gratuit gratuite gratuits gratuites",
    "es": "not: no nunca; only: solo sólo solamente únicamente; without: sin; except: excepto"
    " salvo; if: si; but: pero sino; or: o; allowed: permitido permitida permitidos permitidas;"
    " forbidden: prohibido prohibida prohibidos prohibidas; open: abierto abierta abiertos"
    " abiertas; closed: cerrado cerrada cerrados cerradas; possible: posible; impossible:"
    " imposible; gratis: gratis gratuito gratuita gratuitos gratuitas",
    "it": "not: non; only: solo soltanto solamente; without: senza; except: tranne eccetto salvo;"
    " but: ma però; or: o; allowed: permesso permessa consentito consentita; forbidden: vietato"
    " vietata vietati vietate; open: aperto aperta aperti aperte; closed: chiuso chiusa chiusi"
    " chiuse; possible: possibile; impossible: impossibile; gratis: gratis gratuito gratuita"
    " gratuiti gratuite",
    "pt": "not: não nunca; only: só somente apenas; without: sem; except: exceto salvo; but: mas"
    " porém; or: ou; allowed: permitido permitida permitidos permitidas; forbidden: proibido"
    " proibida proibidos proibidas; open: aberto aberta abertos abertas; closed: fechado fechada"
    " fechados fechadas; possible: possível; impossible: impossível; gratis: grátis gratuito"
    " gratuita gratuitos gratuitas",
    "nl": "not: niet geen nooit; only: alleen slechts enkel; without: zonder; except: behalve"
    " uitgezonderd; if: indien mits; but: maar; or: of; allowed: toegestaan; forbidden: verboden;"
    " open: open geopend; closed: gesloten dicht; possible: mogelijk; impossible: onmogelijk;"
    " gratis: gratis kosteloos",
    "pl": "not: nie; only: tylko wyłącznie; without: bez; except: oprócz poza; if: jeśli jeżeli;"
    " but: ale lecz; or: lub albo; allowed: dozwolone dozwolony dozwolona; forbidden: zabronione"
    " zabroniony zabroniona; open: otwarte otwarty otwarta czynne czynny czynna; closed: zamknięte"
    " zamknięty zamknięta; possible: możliwe; impossible: niemożliwe; gratis: bezpłatny bezpłatna"
    " bezpłatne darmowy darmowa darmowe",
}
"""Words that deny, limit or turn a statement, by the English word that means as much."""
_PHRASES: Final = {
    ("al", "menos"): ("at", "least"), ("por", "lo"): ("the", "the"), ("pelo", "menos"): ("at",
    "least"), ("au", "moins"): ("at", "least"), ("au", "plus"): ("at", "most"),
    ("como", "máximo"): ("at", "most"), ("no", "máximo"): ("at", "most"), ("al", "massimo"): ("at",
    "most"), ("ten", "minste"): ("at", "least"), ("ten", "hoogste"): ("at", "most"),
    ("co", "najmniej"): ("at", "least"), ("co", "najwyżej"): ("at", "most"),
}  # fmt: skip


@cache
def meanings(language: str) -> dict[str, str]:
    """Return the English words for a language's number words, weekdays and function words.

    Args:
        language: A code of two letters; a language without a table gives an empty one.
    """
    if language not in _NUMBERS:
        return {}
    names = _NUMBERS[language].split()
    found = dict.fromkeys(_FUNCTION[language].split(), "the")
    found |= {own: put for own, put in zip(names, _ENGLISH, strict=True) if own != "-"}
    found |= dict(row.split("=") for row in _MORE[language].split())
    for own, day in zip(_WEEKDAYS[language].split(), _DAYS, strict=True):
        for name in own.split(","):
            if language != "pt" or name in ("sábado", "domingo"):
                found |= {name: day, name + "s": day}
    found |= _compounds(language, names)
    found[_AND[language]] = "and"
    found |= dict.fromkeys(_CALCULATIONS, "total")
    found |= dict.fromkeys(_TO.get(language, "").split(), "to")
    found |= dict(zip(_MORE_THAN[language].split(), ("over", "under"), strict=True))
    for row in _STATED[language].split(";"):
        put, _, own_words = row.partition(":")
        found |= dict.fromkeys(own_words.split(), put.strip())
    return found


def _compounds(language: str, names: list[str]) -> dict[str, str]:
    """Return the numbers of two digits that are written as one word."""
    ones = [*zip(names[2:10], range(2, 10), strict=True)]
    ones = [("ein" if language == "de" else "uno" if language == "it" else "een", 1), *ones]
    tens = [*zip(names[20:28], range(20, 100, 10), strict=True)]
    found: dict[str, str] = {}
    for ten, value in tens:
        for one, more in ones:
            both = str(value + more)
            if language == "de":
                found[f"{one}und{ten}"] = both
            elif language == "nl":
                found[f"{one}en{ten}"] = found[f"{one}ën{ten}"] = both
            elif language == "it":
                found[(ten[:-1] if more in (1, 8) else ten) + one] = both
            elif language == "es" and value == 20 and more > 1:
                found[f"veinti{one}"] = both
    return found


_PORTUGUESE: Final = dict(zip(_WEEKDAYS["pt"].split()[:5], _DAYS, strict=False))
KOREAN_DAYS: Final = dict(zip("월화수목금토일", _DAYS, strict=True))
JAPANESE_DAYS: Final = dict(zip("月火水木金土日", _DAYS, strict=True))
_CHINESE: Final = dict(zip("一二三四五六日", _DAYS, strict=True)) | {"天": "sunday"}
_KNOWN: Final = frozenset(
    (*words.NUMBER_WORDS, *words.SCALES, *words.MONTHS, *words.FRACTIONS, *words.PER)
) | {word for name in words.UNITS for word in name} | {
    word for phrase, _ in words.BOUNDS for word in phrase
}  # fmt: skip
_ELIDED: Final = 3
_LETTERS: Final = 6
"""Of a word in another language that are compared."""


def in_english(word: str, language: str, behind: str = "") -> str:
    """Return the English word, or the digits, that a word in small letters means, or its beginning.

    Args:
        word: A word in small letters.
        language: A code of two letters.
        behind: The next two tokens in small letters, joined.
    """
    if language == "pt" and word in _PORTUGUESE and behind.startswith("-feira"):
        return _PORTUGUESE[word]
    if (put := meanings(language).get(word)) is not None:
        return put
    head, sign, rest = word.replace("\u2019", "'").partition("'")
    if sign and len(head) < _ELIDED and rest:  # "l'affitto", "n'est"
        return in_english(rest, language)
    return word if word in _KNOWN else word[:_LETTERS]


def weekday_of(before: str, numeral: str) -> str:
    """Return the weekday of a Chinese numeral behind its sign ("周三"), or ""."""
    return _CHINESE.get(numeral, "") if before and before in "周期拜週" else ""


def in_language(found: Sequence[Token], language: str) -> Iterator[Token]:
    """Yield tokens with the English words that they mean."""
    phrase: tuple[str, ...] = ()
    for place, token in enumerate(found):
        if token.kind != "w" or token.text[0] >= "\u3040":
            yield token
            continue
        pair = (token.low, found[place + 1].low if place + 1 < len(found) else "")
        phrase = phrase or _PHRASES.get(pair, ())
        if phrase:
            yield token._replace(low=phrase[0])
            phrase = phrase[1:]
            continue
        behind = "".join(t.low for t in found[place + 1 : place + 3])
        low = in_english(token.low, language, behind)
        kind = "n" if low.isdecimal() else "w"
        yield Token(kind, low if kind == "n" else token.text, low, token.start, token.end)


def is_han(sign: str) -> bool:
    """Return whether a sign is a Chinese one, as Japanese has them, too."""
    return "\u3400" <= sign <= "\u9fff"


def folded(word: str) -> str:
    """Return a word in small letters without accents."""
    plain = unicodedata.normalize("NFKD", word.lower().replace("ł", "l"))
    return "".join(sign for sign in plain if not unicodedata.combining(sign))


_HAN_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {
    "〇": 0,
    "两": 2,
    "兩": 2,
}
_HAN_PLACES = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000}
_HAN_NUMERALS = frozenset((*_HAN_DIGITS, *_HAN_PLACES)) - {"〇"}
_COUNTED = frozenset(
    "元块点點月日号年时時天分小周週个個人位次折岁歳名张台层階楼件本冊枚回円度米公千万百家间条室段名回米"
)
"""Signs behind which a single Chinese numeral is an amount."""
_COUNTERS = frozenset("원년월일시분초개회명주점세만천억")


def without_blanks(word: str, start: int) -> Iterator[Token]:
    """Yield the tokens of Chinese, Japanese or Korean letters without a blank."""
    if "가" <= word[0] <= "힣":
        yield from _hangul(word, start)
        return
    at = 0
    while at < len(word):
        end = at + 1
        if word[at] in _HAN_NUMERALS:
            while end < len(word) and word[end] in _HAN_NUMERALS:
                end += 1
            if (day := weekday_of(word[at - 1 : at] if at else "", word[at])) and end == at + 1:
                yield Token("w", word[at:end], day, start + at, start + end)
            elif end < len(word) and word[end] in _COUNTED:
                value = str(_han_number(word[at:end]))
                yield Token("n", value, value, start + at, start + end)
            else:
                yield Token("w", word[at:end], word[at:end], start + at, start + end)
        elif word[at + 1 : at + 2] == "曜" and word[at] in JAPANESE_DAYS:
            end = at + 2
            yield Token("w", word[at:end], JAPANESE_DAYS[word[at]], start + at, start + end)
        elif "぀" <= word[at] <= "ヿ":
            is_katakana = word[at] >= "゠"
            while end < len(word) and "぀" <= word[end] <= "ヿ":
                if (word[end] >= "゠") != is_katakana:
                    break
                end += 1
            yield Token("w", word[at:end], word[at:end], start + at, start + end)
        else:
            yield Token("w", word[at], word[at], start + at, start + end)
        at = end


def _han_number(numeral: str) -> int:
    """Return what a Chinese numeral means: 八十八 is 88, 二〇 is 20."""
    if not any(sign in _HAN_PLACES for sign in numeral):
        return int("".join(str(_HAN_DIGITS[sign]) for sign in numeral))
    total = part = digit = 0
    for sign in numeral:
        if sign in _HAN_DIGITS:
            digit = _HAN_DIGITS[sign]
        elif _HAN_PLACES[sign] == 10_000:
            total, part, digit = (total + part + digit) * 10_000, 0, 0
        else:
            part, digit = part + max(digit, 1) * _HAN_PLACES[sign], 0
    return total + part + digit


def _hangul(word: str, start: int) -> Iterator[Token]:
    """Yield a counter apart from what follows it, and of other words the first two syllables."""
    end = start + len(word)
    if word[1:3] == "요일" and word[0] in KOREAN_DAYS:
        yield Token("w", word, KOREAN_DAYS[word[0]], start, end)
        return
    long = next((name for name in ("시간", "개월") if word.startswith(name)), "")
    size = len(long) or (1 if word[0] in _COUNTERS else 0)
    if not size or size == len(word):
        yield Token("w", word, word if size else word[:2], start, end)
        return
    yield Token("w", word[:size], word[:size], start, start + size)
    yield Token("w", word[size:], word[size:][:2], start + size, end)
