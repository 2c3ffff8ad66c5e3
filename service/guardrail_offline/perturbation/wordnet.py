"""Synonyms and opposites from Princeton's WordNet 3.0 where its files are on this machine.

Debian's package `wordnet-base` puts them into /usr/share/wordnet. A word is only exchanged in its
dominant sense, for a word that mostly has this sense, too: "bank" never becomes "slope".
The list that ships with the package is made from the words that are frequent enough to be counted:

    python -m guardrail_offline.perturbation.wordnet /usr/share/wordnet > wordnet.json

Source:
    The files' formats: wndb(5WN), senseidx(5WN), cntlist(5WN).
"""

from __future__ import annotations

import json
import mmap
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

Relation = Literal["synonyms", "antonyms"]
FOLDER = Path("/usr/share/wordnet")
"""Where Debian's package puts the files."""
_FILES: Mapping[str, str] = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
_SENSE_TYPES: Mapping[str, str] = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
_DOMINANT = 0.5
"""Share of a word's counted occurrences from which a sense is the word's sense."""
_WORDS_OF_FORM = (
    "a an the in on at of to for from by with into as or and not no nor but if so than then this "
    "that these those it its he she his her him they them their we us our you your i me my who "
    "whom whose which what when where why how be am is are was were been being have has had do "
    "does did done can could may might must shall should will would there here all any each every "
    "some both few more most other such only own same too very just about up out off over under "
    "again further once during before after above below between through because until while "
    "against one two three four five six seven eight nine ten"
)
_FORM_WORDS = frozenset(_WORDS_OF_FORM.split())


class Sense(NamedTuple):
    """A synset: the kind of word it is and its place in the data file."""

    kind: str
    offset: int


class WordNet:
    """WordNet's files, searched in place; nothing is read in whole.

    Args:
        folder: With `index.noun`, `data.noun` and so on; `cntlist.rev` says what is frequent.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self._index = {kind: _opened(folder / f"index.{name}") for kind, name in _FILES.items()}
        self._data = {kind: _opened(folder / f"data.{name}") for kind, name in _FILES.items()}
        self._counts = _opened(folder / "cntlist.rev")

    def related(self, word: str, relation: Relation) -> Sequence[str]:
        """Return other words for a word in lower case, in the order of its sense; often none."""
        if word in _FORM_WORDS or not _is_plain(word):
            return ()
        sense = self.dominant(word)
        if sense is None:
            return ()
        found = self._synonyms(sense) if relation == "synonyms" else self._antonyms(sense, word)
        return tuple(
            dict.fromkeys(
                other
                for other, meant in found
                if other != word and _is_plain(other) and self.dominant(other) == meant
            )
        )

    @lru_cache(maxsize=4096)  # noqa: B019 - as long as the files are open
    def dominant(self, word: str) -> Sense | None:
        """Return what a word mostly means; None if that is open or the word is not known.

        A word that was never counted has its sense if it has only one.
        """
        senses = {
            (kind, number): Sense(kind, offset)
            for kind in _FILES
            for number, offset in enumerate(self._offsets(kind, word), start=1)
        }
        counts = self.counts(word)
        total = sum(counts.values())
        if not total:
            return next(iter(senses.values())) if len(senses) == 1 else None
        most = max(counts, key=counts.__getitem__)
        return senses.get(most) if counts[most] >= _DOMINANT * total else None

    def counts(self, word: str) -> dict[tuple[str, int], int]:
        """Return how often each sense of a word was counted, by kind and number."""
        found: dict[tuple[str, int], int] = {}
        for line in _lines_from(self._counts, f"{word}%"):
            key, number, count = line.split()
            found[_SENSE_TYPES[key[len(word) + 1]], int(number)] = int(count)
        return found

    def words(self) -> Iterator[str]:
        """Yield every word that has a sense, once for each kind it belongs to."""
        for kind in _FILES:
            index = self._index[kind]
            index.seek(0)
            while line := index.readline():
                if not line.startswith(b" "):
                    yield line.split(b" ", 1)[0].decode("ascii")

    def _offsets(self, kind: str, word: str) -> list[int]:
        for line in _lines_from(self._index[kind], f"{word} "):
            fields = line.split()
            return [int(offset) for offset in fields[len(fields) - int(fields[2]) :]]
        return []

    def _synset(self, sense: Sense) -> list[str]:
        data = self._data[sense.kind]
        data.seek(sense.offset)
        return data.readline().decode("latin-1").split(" | ")[0].split()

    def _synonyms(self, sense: Sense) -> Iterator[tuple[str, Sense]]:
        for word in _words_of(self._synset(sense)):
            yield word, sense

    def _antonyms(self, sense: Sense, word: str) -> Iterator[tuple[str, Sense]]:
        """Yield opposites of a word in its sense: pointers "!" lead from word to word."""
        fields = self._synset(sense)
        place = 4 + 2 * int(fields[3], 16)
        own = f"{_words_of(fields).index(word) + 1:02x}"
        for at in range(place + 1, place + 1 + 4 * int(fields[place]), 4):
            symbol, offset, kind, between = fields[at : at + 4]
            if symbol == "!" and between[:2] == own:
                target = Sense("a" if kind == "s" else kind, int(offset))
                yield _words_of(self._synset(target))[int(between[2:], 16) - 1], target


def installed(folder: Path = FOLDER) -> WordNet | None:
    """Return WordNet if its files are on this machine, else None."""
    try:
        return WordNet(folder)
    except (OSError, ValueError):  # mmap refuses an empty file with a ValueError
        return None


def frequent(net: WordNet, relation: Relation) -> dict[str, list[str]]:
    """Return related words of all words that were counted at least once, both of a pair."""
    found: dict[str, list[str]] = {}
    for word in sorted(set(net.words())):
        if word in found or not _is_plain(word) or not net.counts(word):
            continue
        if others := [other for other in net.related(word, relation) if net.counts(other)]:
            found[word] = others
    return found


def _opened(path: Path) -> mmap.mmap:
    with path.open("rb") as stream:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def _lines_from(file: mmap.mmap, start: str) -> Iterator[str]:
    """Yield the lines that start so from a file whose lines are sorted."""
    wanted = start.encode("ascii")
    low, high = 0, len(file)
    while low < high:
        middle = (low + high) // 2
        begin = file.rfind(b"\n", 0, middle) + 1
        end = file.find(b"\n", begin)
        if file[begin : begin + len(wanted)] < wanted:
            low = end + 1
        else:
            high = begin
    while file[low : low + len(wanted)] == wanted:
        end = file.find(b"\n", low)
        yield file[low:end].decode("ascii")
        low = end + 1


def _words_of(fields: Sequence[str]) -> list[str]:
    """Return the words of a synset, in lower case and without marks of grammar."""
    count = int(fields[3], 16)
    return [word.split("(")[0].lower() for word in fields[4 : 4 + 2 * count : 2]]


def _is_plain(word: str) -> bool:
    return len(word) > 2 and word.isascii() and word.isalpha()


def _shipped(folder: Path) -> str:
    """Return the content of wordnet.json: one line for each letter a word begins with."""
    net = WordNet(folder)
    parts = []
    relations: tuple[Relation, ...] = ("synonyms", "antonyms")
    for relation in relations:
        lines: dict[str, list[str]] = {}
        for word, others in frequent(net, relation).items():
            lines.setdefault(word[0], []).append(f'"{word}": {json.dumps(others)}')
        rows = ",\n".join("  " + ", ".join(entries) for entries in lines.values())
        parts.append(f' "{relation}": {{\n{rows}\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.stdout.write(_shipped(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
