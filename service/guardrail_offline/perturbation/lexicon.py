"""Words that may stand for others: an own list of everyday words before WordNet's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

from guardrail_offline.perturbation.wordnet import FOLDER, Relation, installed
from guardrail_service.errors import ConfigurationError

LexiconName = Literal["auto", "shipped", "wordnet"]
LEXICONS: tuple[LexiconName, ...] = get_args(LexiconName)
_Words = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Lexicon:
    """Words by word, in lower case.

    Attributes:
        name: For reports: another lexicon draws other words from the same seed.
        related: Other words for one, often none.
    """

    name: str
    related: Callable[[str, Relation], Sequence[str]]

    def others(self, word: str, relation: Relation) -> Sequence[str]:
        """Return other words for a word, or for its singular with the same ending."""
        if found := self.related(word, relation):
            return found
        for stem in _stems(word):
            if found := self.related(stem, relation):
                return [_with_s(other) for other in found if other.isalpha()]
        return ()


@cache
def lexicon(name: LexiconName = "auto") -> Lexicon:
    """Return a lexicon; `auto` is Debian's WordNet where it is installed, else what ships.

    Raises:
        ConfigurationError: If WordNet is asked for and not there.
    """
    net = None if name == "shipped" else installed()
    if name == "wordnet" and net is None:
        raise ConfigurationError("--lexicon", f"no WordNet in {FOLDER}", "package wordnet-base")
    own = _read("lexicon.json")
    if net is None:
        shipped = _read("wordnet.json")
        return Lexicon("shipped", lambda word, kind: _first(word, own[kind], shipped[kind]))
    return Lexicon("wordnet", lambda word, kind: own[kind].get(word) or net.related(word, kind))


def named(name: str) -> Lexicon:
    """Return the lexicon that an option names.

    Raises:
        ConfigurationError: If there is no such lexicon.
    """
    for known in LEXICONS:
        if name == known:
            return lexicon(known)
    raise ConfigurationError("--lexicon", repr(name), f"one of {', '.join(LEXICONS)}")


def _first(word: str, *lists: _Words) -> Sequence[str]:
    return next((words[word] for words in lists if word in words), ())


def _read(name: str) -> Mapping[Relation, _Words]:
    text = files(__package__).joinpath(name).read_text("utf-8")
    content: Mapping[Relation, _Words] = json.loads(text)
    return content


def _stems(word: str) -> list[str]:
    """Return what a word may be a regular plural or third person of."""
    if not word.endswith("s") or word.endswith("ss") or len(word) < 4:
        return []
    found = [word[:-1]]
    if word.endswith("ies"):
        found = [word[:-3] + "y"]
    elif word.endswith(("ches", "shes", "sses", "xes", "zes")):
        found = [word[:-2]]
    return found


def _with_s(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"
