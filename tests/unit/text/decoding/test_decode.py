"""Decoding: what is found, where it points, and what bounds it."""

from __future__ import annotations

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.text.decoding import decode
from guardrail_service.text.decoding.confusables import ascii_twin
from guardrail_service.text.decoding.decode import layers, search

MAIL = "alice.smith@example.com"


def chains(text: str) -> dict[str, str]:
    """Return the decoded texts by their codecs."""
    return {layer.chain: layer.text for layer in layers(text)}


@pytest.mark.parametrize(
    ("text", "chain"),
    [
        (base64.b64encode(MAIL.encode()).decode(), "base64"),
        (base64.b32encode(MAIL.encode()).decode(), "base32"),
        (MAIL.encode().hex(), "hex"),
        ("\\x" + MAIL.encode().hex(" ").replace(" ", "\\x"), "escape"),
        (", ".join(str(ord(c)) for c in MAIL), "charcode"),
        ("String.fromCharCode(" + ",".join(str(ord(c)) for c in MAIL) + ")", "charcode"),
        ("+".join(f"chr({ord(c)})" for c in MAIL), "charcode"),
        (MAIL.replace("@", "%40"), "percent"),
        (MAIL.replace("@", "&commat;"), "html"),
        (MAIL.replace("@", "\\u0040"), "escape"),
        (MAIL.replace("@", "\\u{40}"), "escape"),
        (MAIL.replace("l", "l\u2060"), "zero_width"),
        (MAIL.replace("a", "\u0430"), "confusable"),
        ("".join(chr(0xE0000 + ord(c)) for c in MAIL), "confusable"),
        ("nyvpr.fzvgu@rknzcyr.pbz", "rot13"),
    ],
)
def test_each_encoding_is_undone(text: str, chain: str) -> None:
    """The layer says how it was written and what it says."""
    assert chains(text)[chain] == MAIL


def test_layers_point_at_the_encoded_text() -> None:
    """Offsets are those of the text that was submitted, through every layer."""
    inner = MAIL.encode().hex()
    outer = base64.b64encode(inner.encode()).decode()
    text = f"é {outer}."
    (layer,) = [found for found in layers(text) if found.chain == "base64>hex"]
    assert (layer.start, layer.end) == (2, 2 + len(outer))
    assert layer.locate(0, 5) == (2, 2 + len(outer))


def test_a_disguise_points_at_the_disguised_part_only() -> None:
    """The rest of the text is not encoded."""
    text = "Mail alice%40example.com today"
    (layer,) = [found for found in layers(text) if found.chain == "percent"]
    start = layer.text.index("alice")
    assert layer.locate(start, start + 17) == (5, 24)
    assert layer.reveals(start, start + 17)
    assert not layer.reveals(0, 4)


def test_wrapped_base64_is_one_block() -> None:
    """Mail and PEM files break lines at 64 or 76 characters."""
    wrapped = base64.encodebytes((MAIL * 10).encode()).decode().strip()
    assert chains(f"see:\n{wrapped}\nend")["base64"] == MAIL * 10


def test_a_block_glued_to_other_characters_is_found() -> None:
    """In a path, behind a JSON escape, behind a prefix."""
    block = base64.b64encode(MAIL.encode()).decode().rstrip("=")
    for text in (f"https://x.test/cb/{block}", f"a\\n{block}", f"x9{block}", f"v1-{block}"):
        assert MAIL in chains(text).values(), text


def test_base64_of_utf16_is_read() -> None:
    """PowerShell's encoded commands are written so."""
    assert chains(base64.b64encode(MAIL.encode("utf-16-le")).decode())["base64"] == MAIL


def test_binary_is_no_layer() -> None:
    """An image or a key decodes to bytes, not to text."""
    blob = base64.b64encode(bytes(range(128, 256))).decode()
    assert [layer for layer in layers(blob) if not layer.guessed] == []


def test_three_layers_are_read_and_a_fourth_is_told() -> None:
    """A bound that cut the search is never silent."""
    text = MAIL
    for _ in range(3):
        text = base64.b64encode(text.encode()).decode()
    assert search(text).complete
    assert MAIL in chains(text).values()
    text = base64.b64encode(text.encode()).decode()
    assert not search(text).complete
    assert MAIL not in chains(text).values()


def test_percent_of_percent_beyond_the_depth_is_told() -> None:
    """`%252525...` may hide anything."""
    assert search("100%25").complete
    assert not search("alice%2525252540example.com").complete


def test_too_many_layers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of layers is bounded."""
    monkeypatch.setattr(decode, "MAX_LAYERS", 3)
    block = base64.b64encode(MAIL.encode()).decode()
    found = search(" ".join([block] * 5))
    assert not found.complete
    assert len(found.layers) == 3


def test_too_many_decoded_characters_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of a search is bounded."""
    monkeypatch.setattr(decode, "MIN_DECODED", 10)
    monkeypatch.setattr(decode, "MAX_GROWTH", 0)
    assert not search(MAIL.encode().hex()).complete


@pytest.mark.parametrize("text", ["&#99999999;", "%C3%28", "aGVsbG8gd29ybGQgdGhpcyBpcyBicm9rZW4A="])
def test_what_claims_an_encoding_and_breaks_it_is_counted(text: str) -> None:
    """A parse failure, not a finding."""
    assert search(text).failures == 1


@pytest.mark.parametrize(
    ("character", "twin"),
    [("\u0430", "a"), ("\u039f", "O"), ("\uff21", "A"), ("\u0663", "3"), ("\U0001d7d7", "9"),
     ("\u2011", "-"), ("é", None), ("日", None), ("a", None), ("\u00a8", None)],
)  # fmt: skip
def test_look_alikes_have_an_ascii_twin(character: str, twin: str | None) -> None:
    """Letters with a mark and other scripts' own letters have none."""
    assert ascii_twin(character) == twin


@given(
    before=st.text(max_size=80),
    after=st.text(max_size=80),
    codec=st.sampled_from(["64", "32", "16"]),
)
def test_a_planted_block_is_found_with_exact_offsets(before: str, after: str, codec: str) -> None:
    """In any Unicode text, between blanks."""
    encode = {"64": base64.b64encode, "32": base64.b32encode, "16": base64.b16encode}[codec]
    block = encode(MAIL.encode()).decode()
    text = f"{before} \u00b7 {block} \u00b7 {after}"
    start = len(before) + 3
    assert (start, start + len(block), MAIL) in [(f.start, f.end, f.text) for f in layers(text)]


@given(st.text(max_size=300))
def test_any_text_can_be_searched(text: str) -> None:
    """Layers stay inside the text, whatever it is."""
    for layer in layers(text):
        assert 0 <= layer.start < layer.end <= len(text)
        assert 1 <= len(layer.codecs) <= decode.MAX_DEPTH


FLOODS = {
    "percent signs": "%" * 100_000,
    "percent of percent": "%25" * 33_333,
    "entities": "&#64;" * 20_000,
    "one letter": "A" * 100_000,
    "wrapped letters": ("A" * 76 + "\n") * 1_300,
    "random base64": base64.b64encode(os.urandom(75_000)).decode(),
    "random hex": os.urandom(50_000).hex(),
    "numbers": "64 " * 33_333,
    "zero width": "a\u200b" * 50_000,
    "look-alikes": "\u0430" * 100_000,
    "at signs": "a@" * 50_000,
    "small blocks": (base64.b64encode(MAIL.encode()).decode() + " ") * 3_000,
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_is_bounded_in_work_and_memory(flood: str) -> None:
    """Decoded characters stay within the stated multiple, counted rather than timed."""
    text = FLOODS[flood]
    decoded = sum(len(layer.text) for layer in search(text).layers)
    assert decoded <= decode.MAX_GROWTH * len(text)


def test_a_nested_bomb_stops_at_the_depth() -> None:
    """Thirty layers cost no more than three."""
    text = MAIL
    for _ in range(20):
        text = base64.b64encode(text.encode()).decode()
    found = search(text)
    assert not found.complete
    assert sum(len(layer.text) for layer in found.layers) <= decode.MAX_GROWTH * len(text)
