"""Disguised words and emoji are read as words; ordinary text stays as it is."""

# Look-alike letters are what these tests are about.
# ruff: noqa: RUF001

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.text.decoding.disguise import is_pictograph, undisguised

WORDS = {"idiot", "women", "deserve", "kill", "moron", "cool", "so", "loser", "people", "scum"}
WORDS |= {"password", "hate", "like", "a", "you", "are"}


def read(text: str) -> str:
    """Return the text as read with a small vocabulary."""
    return undisguised(text, WORDS.__contains__)


@pytest.mark.parametrize(
    ("written", "understood"),
    [
        ("you w0m3n", "you women"),
        ("d3serve", "deserve"),
        ("p@ssw0rd", "password"),
        ("k1ll!", "kill!"),
        ("i d i o t", "idiot"),
        ("you are a m o r o n", "you are a moron"),
        ("k.i.l.l them", "kill them"),
        ("l-o-s-e-r", "loser"),
        ("idiooooot", "idiot"),
        ("cooool", "cool"),
        ("sh*t", "shit"),
        ("f**k you", "fuck you"),
        ("idіоt", "idiot"),
        ("𝖍𝖆𝖙𝖊", "hate"),
        ("ｈａｔｅ", "hate"),
        ("ⓗⓐⓣⓔ", "hate"),
        ("sc\u200bum", "scum"),
        ("id\u00adiot", "idiot"),
        ("id*ot", "idiot"),
        ("b*st*rd", "bastard"),
        ("f-ck it", "fuck it"),
        ("n1gger", "nigger"),
        ("as5hole", "asshole"),
        ("kiss my a$$", "kiss my ass"),
        ("r3t4rd", "retard"),
        ("fu ck you", "fuck you"),
        ("🅸🅳🅸🅾🆃", "idiot"),
        ("🇮 🇩 🇮 🇴 🇹", "idiot "),
    ],
)
def test_a_disguised_word_is_read_as_the_word(written: str, understood: str) -> None:
    """Digits, signs, blanks, stars, look-alikes and invisible characters hide nothing."""
    assert read(written) == understood


@pytest.mark.parametrize(
    "text",
    [
        "The B2B price of H2O in COVID-19 times is 5$ per 100m.",
        "mp3, k8s, log4j, 4th, 1st, 80s, Level1 and base64",
        "vitamin a b c d",
        "U.S.A. and U.S.S.R.",
        "C# and F#, 5*3*2, a*b, *like* and **hate**",
        "“Quotes” – and… №5, 10⁵, ½ ™ naïve café",
        "x@mail.com, www.example.org, III, hmmm",
        "f*g, sh*, *args, P*ssword, K-9, s_t and re-tard",
        "the A55, a$ap, @assist and it's hit",
        "",
    ],
)
def test_ordinary_text_stays_byte_for_byte(text: str) -> None:
    """So its row is the one other detectors read."""
    assert read(text) == text


def test_letters_that_make_no_known_word_stay() -> None:
    """What cannot be told is not guessed."""
    assert read("x7q0z and z z y y x") == "x7q0z and z z y y x"


def test_upper_case_initials_with_full_stops_are_no_spelt_word() -> None:
    """An abbreviation may happen to spell a word."""
    assert read("K.I.L.L") == "K.I.L.L"
    assert read("k.i.l.l") == "kill"


def test_the_longer_word_wins_over_a_part_of_it() -> None:
    """Letters left out at the ends stay in the text."""
    assert read("x k i l l") == "x kill"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("you 🐒", ["monkey"]),
        ("💩", ["pile", "of", "poo"]),
        ("🖕", ["middle", "finger"]),
        ("👨🏿", ["man", "black", "skin"]),
        ("❤️", ["heart"]),
        ("🇩🇪", ["flag", "d", "flag", "e"]),
    ],
)
def test_an_emoji_is_read_by_its_name(written: str, words: list[str]) -> None:
    """The model's vocabulary has almost none."""
    found = read(written).split()
    assert [word for word in found if word in words] == words


def test_words_of_other_scripts_stay() -> None:
    """A Russian word that is not made of look-alikes only is no disguise."""
    assert read("Привет мир") == "Привет мир"
    assert read("料金は三十ユーロです。") == "料金は三十ユーロです。"


def test_a_dingbat_is_a_pictograph_and_a_letter_is_not() -> None:
    """Letters beyond the first plane are letters."""
    assert is_pictograph("✂")
    assert is_pictograph("🐒")
    assert not is_pictograph("a")
    assert not is_pictograph("𠮷")


@given(st.text(alphabet=st.characters(codec=None), max_size=80))
def test_any_text_is_read_and_reading_it_again_changes_nothing_ascii(text: str) -> None:
    """Lone surrogates included; a text without anything to undo is returned as it is."""
    assert isinstance(read(text), str)
    plain = "The guests may stay for two weeks."
    assert read(plain) is plain
