"""Lexicons: what ships is enough and clean, and Debian's WordNet is read where it is."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.perturbation import lexicon as lexicons
from guardrail_offline.perturbation.lexicon import lexicon, named
from guardrail_offline.perturbation.wordnet import FOLDER, WordNet, frequent, installed
from guardrail_service.errors import ConfigurationError

LISTS = ("lexicon.json", "wordnet.json")


def shipped(name: str) -> dict[str, dict[str, list[str]]]:
    """Return one of the lists of the package."""
    found: dict[str, dict[str, list[str]]] = json.loads(
        files("guardrail_offline.perturbation").joinpath(name).read_text("utf-8")
    )
    return found


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("relation", ["synonyms", "antonyms"])
def test_the_lists_are_clean(name: str, relation: str) -> None:
    """Lower case, no underscore, and no word its own synonym or opposite."""
    for word, others in shipped(name)[relation].items():
        assert word == word.lower()
        assert others
        assert word not in others
        assert not any("_" in other for other in others)


def test_what_ships_has_a_thousand_pairs_and_its_licence() -> None:
    """A pair counts once, whichever of the two words is exchanged."""
    words = shipped("wordnet.json")["synonyms"]
    pairs = {frozenset((word, other)) for word, others in words.items() for other in others}
    assert len(pairs) > 2000
    notice = files("guardrail_offline.perturbation").joinpath("WORDNET-LICENSE.txt")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in notice.read_text("utf-8")


@pytest.mark.parametrize(
    ("word", "other"),
    [("factory", "mill"), ("factories", "mills"), ("cities", "towns"), ("costs", "prices")],
)
def test_words_and_their_regular_forms_are_known(word: str, other: str) -> None:
    """With the same ending."""
    assert other in lexicon("shipped").others(word, "synonyms")


@pytest.mark.parametrize("word", ["is", "the", "who", "s", "", "glass", "as", "5", "naïve"])
def test_words_of_form_and_unknown_ones_have_no_synonyms(word: str) -> None:
    """Nothing is exchanged for the letter a."""
    assert lexicon("shipped").others(word, "synonyms") == ()


def test_an_unknown_lexicon_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so is one that is not installed."""
    with pytest.raises(ConfigurationError, match="one of auto, shipped, wordnet"):
        named("thesaurus")
    monkeypatch.setattr(lexicons, "installed", lambda: None)
    lexicon.cache_clear()
    with pytest.raises(ConfigurationError, match="package wordnet-base"):
        named("wordnet")
    assert named("auto").name == "shipped"
    lexicon.cache_clear()


HEAD = "  1 A licence.\n"
SYNSETS = (("bank", "shore"), ("bank", "depository"), ("day",), ("night",))


def data_file(places: list[int]) -> tuple[str, list[int]]:
    """Return a data file in which day and night are opposites, and where its synsets are."""
    text, found = HEAD, []
    for number, words in enumerate(SYNSETS):
        found.append(len(text))
        listed = " ".join(f"{word} 0" for word in words)
        opposite = {2: 3, 3: 2}.get(number)
        pointers = "000" if opposite is None else f"001 ! {places[opposite]:08d} n 0101"
        text += f"{len(text):08d} 17 n {len(words):02x} {listed} {pointers} | gloss\n"
    return text, found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """WordNet's files with the words bank, shore and day; `bank` mostly means the shore."""
    data, places = data_file(data_file([0] * len(SYNSETS))[1])
    words = sorted({word for synset in SYNSETS for word in synset})
    senses = {
        word: [place for place, synset in zip(places, SYNSETS, strict=True) if word in synset]
        for word in words
    }
    index = HEAD + "".join(
        f"{word} n {len(at)} 0 {len(at)} 1 {' '.join(f'{place:08d}' for place in at)}  \n"
        for word, at in senses.items()
    )
    counts = ["bank%1:17:01:: 1 9", "bank%1:17:02:: 2 2", "day%1:17:00:: 1 5"]
    counts += ["night%1:17:00:: 1 5", "shore%1:17:00:: 1 3"]
    for name in ("noun", "verb", "adj", "adv"):
        (tmp_path / f"index.{name}").write_text(index if name == "noun" else HEAD)
        (tmp_path / f"data.{name}").write_text(data if name == "noun" else HEAD)
    (tmp_path / "cntlist.rev").write_text("\n".join(counts) + "\n")
    return tmp_path


def test_a_word_is_exchanged_in_its_dominant_sense_only(folder: Path) -> None:
    """A bank is a shore here; a depository is a bank that nobody means by the word."""
    net = installed(folder)
    assert net is not None
    assert net.related("bank", "synonyms") == ("shore",)
    assert net.related("depository", "synonyms") == ()
    assert net.related("day", "antonyms") == ("night",)
    assert net.related("shore", "antonyms") == ()
    assert net.related("unknown", "synonyms") == ()
    assert frequent(net, "synonyms") == {"bank": ["shore"], "shore": ["bank"]}


def test_without_its_files_there_is_no_wordnet(tmp_path: Path) -> None:
    """Nor with an empty one."""
    assert installed(tmp_path) is None
    for kind in ("index", "data"):
        for name in ("noun", "verb", "adj", "adv"):
            (tmp_path / f"{kind}.{name}").touch()
    assert installed(tmp_path) is None


@pytest.mark.skipif(installed() is None, reason="Debian's wordnet-base is not installed")
def test_the_shipped_list_is_what_wordnet_gives() -> None:
    """Word by word."""
    net: Any = WordNet(FOLDER)
    for word, others in shipped("wordnet.json")["synonyms"].items():
        assert [w for w in net.related(word, "synonyms") if net.counts(w)] == others
