"""Reads words that are written to be overlooked, and emoji, as the words they stand for.

A model's vocabulary knows neither "1diot", "i d i o t", "idiooot" and "idiot" in Cyrillic letters
nor most emoji. Only a form that becomes one whole word of the vocabulary is changed, so ordinary
text, product names and numbers stay byte for byte as they are.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator

from guardrail_service.text.decoding.confusables import INVISIBLE, ascii_twin
from guardrail_service.text.offsets import Edit, Edited
from guardrail_service.text.patterns.search import Prepared, compile_regex

DISGUISE_VERSION = "rag-guardrail-disguise/2"
"""Part of the safety thresholds' fingerprint: raise it when any text is read differently."""

IsWord = Callable[[str], bool]
"""Whether some letters are one word of the model's vocabulary."""

MIN_WORD = 4
"""Letters of a word that may be spelt apart; "a b c" and "U.S.A" are ordinary."""
_SIGN = "[A-Za-z0-9@$!|]"
_SPELT = compile_regex(
    "|".join(rf"\b(?:[A-Za-z0-9@$]{sep}){{3,30}}[A-Za-z0-9]\b" for sep in (" ", r"\.", "-", "_")),
    "word spelt apart",
)
_LEET = compile_regex(
    rf"{_SIGN}{{0,20}}(?:[A-Za-z][0134578@$!|]|[0134578@$!|][A-Za-z]){_SIGN}{{0,20}}",
    "word with digits or signs",
)
_STRETCHED = compile_regex(
    "[A-Za-z]{0,20}(?:"
    + "|".join(f"[{c}{c.upper()}]{{3,40}}" for c in "abcdefghijklmnopqrstuvwxyz")
    + ")[A-Za-z]{0,20}",
    "stretched word",
)
_MASKED = compile_regex(
    r"\b[A-Za-z]{1,8}(?:[*#]{1,6}[A-Za-z]{0,8}(?:[*#]{1,4}[A-Za-z]{1,6})?|[_-][A-Za-z]{1,8}\b)",
    "masked word",
)
_BROKEN = compile_regex(
    r"(?i)\b(?:f uck|fu ck|fuc k|c unt|cu nt|cun t|b itch|bi tch|bitc h|id iot|idi ot|ass hole)"
    r"(?:ing|er|ed|s|es)?\b",
    "word broken in two",
)
_LEET_LETTERS = tuple(str.maketrans("0134578@$!|", f"o{one}eastbas{one}{one}") for one in "il")
_MASKABLE = (
    "fuck", "shit", "bitch", "cunt", "slut", "whore", "bastard", "asshole", "dick", "pussy",
    "fucking", "fucker", "fucked", "fucks", "shitty", "bullshit", "bitches", "nigger", "nigga",
    "faggot", "retard", "motherfucker", "shithead", "dickhead", "wanker", "cock", "idiot", "stupid",
    "moron", "loser", "sluts", "whores", "niggers", "faggots", "retards", "retarded", "idiots",
    "morons", "losers", "kill", "rape", "suicide", "twat", "prick", "dumbass", "scumbag",
)  # fmt: skip
"""Words that are commonly written with stars; the first that fits is read."""
_ABUSE = frozenset(_MASKABLE) | frozenset(
    [
        "assholes",
        "arsehole",
        "arseholes",
        "dickheads",
        "motherfuckers",
        "wankers",
        "twats",
        "cunts",
        "bastards",
        "pricks",
        "bitchy",
        "imbecile",
        "dumbasses",
        "scumbags",
        "douchebag",
        "dipshit",
        "jackass",
        "tosser",
        "tranny",
        "kike",
        "chink",
        "gook",
    ]
)
"""Read as words though a vocabulary may have them in pieces only."""
_BOXED = (range(0x1F150, 0x1F16A), range(0x1F170, 0x1F18A))
"""Latin letters in white on black, which the Unicode data relate to none."""
_ENCLOSED = (range(0x24B6, 0x24EA), range(0x1F130, 0x1F14A))
_REGIONAL = range(0x1F1E6, 0x1F200)
_SKIN = {0x1F3FB: "light", 0x1F3FC: "light", 0x1F3FD: "brown", 0x1F3FE: "dark", 0x1F3FF: "black"}


def undisguised(text: str, is_word: IsWord) -> str:
    """Return the text as a reader understands it; ordinary text is returned unchanged.

    Args:
        text: One window of an answer.
        is_word: Tells words of the model's vocabulary, lower-case letters only.
    """
    if not text.isascii():
        text = _plain_letters(_without_flags(text, is_word))
    source = Prepared(text)

    def reads(word: str) -> bool:
        return word in _ABUSE or is_word(word)

    for finder in (_spelt_apart, _with_signs, _stretched, _masked, _broken):
        edits = list(finder(source, reads))
        if edits:
            source = Prepared(Edited(source.text, edits).text)
    return source.text


def is_pictograph(character: str) -> bool:
    """Return whether a character is an emoji or a dingbat."""
    if character >= "\U0001f000":
        return not (character.isalnum() or _boxed(character))
    return "\u2600" <= character <= "\u27bf" or character in "\u2b50\u2b55\u2b1b\u2b1c\u2764"


def _boxed(character: str) -> str | None:
    code = ord(character)
    return next((chr(97 + code - letters.start) for letters in _BOXED if code in letters), None)


def _without_flags(text: str, is_word: IsWord) -> str:
    """Return the text with letters that flags are made of as a word, where they spell one."""
    if not any(ord(c) in _REGIONAL for c in text):
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        end, letters = at, ""
        while end < len(text) and (ord(text[end]) in _REGIONAL or (letters and text[end] == " ")):
            if text[end] != " ":
                letters += chr(97 + ord(text[end]) - _REGIONAL.start)
            end += 1
        spelt = len(letters) >= MIN_WORD and is_word(letters)
        end = max(end, at + 1)
        out.append(f"{letters} " if spelt else text[at:end])
        at = end
    return "".join(out)


def _plain_letters(text: str) -> str:
    """Return the text without invisible signs, with look-alike letters and emoji in words."""
    text = "".join(c for c in text if c not in INVISIBLE)
    words = [_latin(word) if not word.isascii() else word for word in _split_keeping(text)]
    return "".join(words)


def _split_keeping(text: str) -> Iterator[str]:
    """Yield runs of whitespace, runs of other characters, and each emoji alone."""
    start = 0
    for at in range(1, len(text) + 1):
        if at == len(text) or _kind(text[at]) != _kind(text[at - 1]) or _kind(text[at]) == 2:
            yield text[start:at]
            start = at


def _kind(character: str) -> int:
    return 2 if is_pictograph(character) else int(character.isspace())


def _latin(word: str) -> str:
    """Return a word in ASCII letters if a reader takes it for one; an emoji's name."""
    if is_pictograph(word[0]):
        return f" {_emoji_name(word)} "
    mixed = any(c.isascii() and c.isalpha() for c in word)
    twins = [(_letter_twin(c) if not c.isascii() else None) for c in word]
    letters = [(c, t) for c, t in zip(word, twins, strict=True) if c.isalpha() or t]
    whole = len(letters) >= MIN_WORD and all(t or c.isascii() for c, t in letters)
    if not (mixed or whole):
        return word
    return "".join(t or c for c, t in zip(word, twins, strict=True))


def _letter_twin(character: str) -> str | None:
    code = ord(character)
    if (boxed := _boxed(character)) is not None:
        return boxed
    if any(code in block for block in _ENCLOSED) or unicodedata.category(character)[0] == "L":
        return None if character in "ªº" else ascii_twin(character)
    return None


def _emoji_name(character: str) -> str:
    code = ord(character)
    if code in _SKIN:
        return f"{_SKIN[code]} skin"
    if code in _REGIONAL:
        return f"flag {chr(ord('a') + code - _REGIONAL.start)}"
    name = unicodedata.name(character, "").lower()
    return name.replace(" sign", "").replace(" symbol", "").replace("-", " ")


def _spelt_apart(text: Prepared, is_word: IsWord) -> Iterator[Edit]:
    """Yield edits for "i d i o t" and "i.d.i.o.t"; a letter or two more at the ends stay."""
    for start, run in _matches(_SPELT, text):
        signs = run[::2]
        if run[1] == "." and signs.isupper():
            continue
        letters = _letters(signs.lower())
        for first, last in _cuts(len(letters)):
            word = letters[first:last]
            if word.isalpha() and is_word(word):
                yield Edit(start + 2 * first, start + 2 * last - 1, word)
                break


def _cuts(length: int) -> Iterator[tuple[int, int]]:
    """Yield parts of a run of letters, longest first, at most two left out at either end."""
    cuts = [(a, length - b) for a in range(3) for b in range(3) if length - a - b >= MIN_WORD]
    yield from sorted(cuts, key=lambda cut: cut[0] - cut[1])


def _letters(word: str) -> str:
    return word.translate(_LEET_LETTERS[0])


def _with_signs(text: Prepared, is_word: IsWord) -> Iterator[Edit]:
    """Yield edits for "1d10t", "b!tch" and "a$$hole"."""
    for start, run in _matches(_LEET, text):
        core = run.rstrip("!|")
        letters = sum(map(str.isalpha, core))
        if core.lower() in ("a$$", "@ss", "@$$"):
            yield Edit(start, start + len(core), "ass")
            continue
        if letters * 2 < len(core) or len(core) < (3 if "$" in core or "@" in core else MIN_WORD):
            continue
        for table in _LEET_LETTERS:
            word = core.lower().translate(table)
            if word.isalpha() and word != core.lower() and is_word(word):
                yield Edit(start, start + len(core), word)
                break


def _stretched(text: Prepared, is_word: IsWord) -> Iterator[Edit]:
    """Yield edits for "idiooot"."""
    for start, run in _matches(_STRETCHED, text):
        for most in (2, 1):
            word = _squeezed(run.lower(), most)
            if len(word) > 1 and is_word(word):
                yield Edit(start, start + len(run), word)
                break


def _squeezed(word: str, most: int) -> str:
    """Return the word with runs of three and more of a letter cut to `most`."""
    out: list[str] = []
    at = 0
    while at < len(word):
        end = at
        while end < len(word) and word[end] == word[at]:
            end += 1
        out.append(word[at] * (most if end - at > 2 else end - at))
        at = end
    return "".join(out)


def _masked(text: Prepared, _is_word: IsWord) -> Iterator[Edit]:
    """Yield edits for "sh*t"."""
    for start, run in _matches(_MASKED, text):
        written = run.lower()
        for word in _MASKABLE:
            pairs = zip(written, word, strict=False)
            if len(word) == len(written) and all(a in "*#_-" or a == b for a, b in pairs):
                yield Edit(start, start + len(run), word)
                break


def _broken(text: Prepared, _is_word: IsWord) -> Iterator[Edit]:
    """Yield edits for "fu ck"."""
    for start, run in _matches(_BROKEN, text):
        yield Edit(start, start + len(run), run.replace(" ", ""))


def _matches(pattern: object, text: Prepared) -> Iterator[tuple[int, str]]:
    for match in pattern.finditer(text.data):  # type: ignore[attr-defined]
        yield text.code_point(match.start()), match.group().decode("utf-8")
