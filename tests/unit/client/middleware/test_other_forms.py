"""A withheld text or value again in another form: encoded, as a number, in pieces."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from guardrail_client.middleware import Route
from guardrail_client.middleware.codes import is_unread_number
from guardrail_client.middleware.encodings import hides_a_sentence, views
from guardrail_client.middleware.withheld import Withheld
from tests.unit.client.middleware.conftest import (
    BAD,
    CARD,
    GOOD,
    LEAK,
    PAID,
    RECEIVE,
    VALUE,
    Guard,
    Host,
    Reply,
    on_socket,
)
from tests.unit.client.middleware.test_event_streams import chunk, completion, data, stream
from tests.unit.client.middleware.test_json_replies import with_text

DIGITS = int(CARD.replace(" ", ""))


def b64(text: str) -> str:
    """Return a text in base64."""
    return base64.b64encode(text.encode()).decode()


def url64(text: str) -> str:
    """Return a text in the base64 of addresses, without padding."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


ENCODED: dict[str, Callable[[str], str]] = {
    "base64": b64,
    "base64 of addresses": url64,
    "base64 over several lines": lambda t: base64.encodebytes((t * 3).encode()).decode(),
    "base64 in an address of data": lambda t: f"data:text/plain;base64,{b64(t)}",
    "base64 in a query": lambda t: f"https://h.example/a/?q={url64(t)}&n=1",
    "base64 in a path": lambda t: f"https://h.example/a/{url64(t)}/b",
    "base64 of JSON": lambda t: b64(json.dumps({"say": t})),
    "base64 twice": lambda t: b64(b64(t)),
    "base64 of UTF-16": lambda t: base64.b64encode(t.encode("utf-16")).decode(),
    "percent-encoded": quote,
    "percent-encoded twice": lambda t: quote(quote(t)),
    "a form": lambda t: "q=" + quote(t).replace("%20", "+"),
    "entities": lambda t: "".join(f"&#{ord(letter)};" for letter in t),
    "entities, percent-encoded": lambda t: quote("".join(f"&#{ord(one)};" for one in t)),
    "escapes": lambda t: "".join(f"\\u{ord(letter):04x}" for letter in t),
    "JSON in JSON in JSON": lambda t: json.dumps(json.dumps({"a": json.dumps({"b": t})})),
    "hexadecimal": lambda t: t.encode().hex(),
    "hexadecimal with blanks": lambda t: t.encode().hex(" "),
    "quoted-printable": lambda t: "".join(f"={ord(letter):02X}" for letter in t),
    "accents on letters": lambda t: "".join(f"{letter}\u0301" for letter in t),
    "letters that nobody sees": lambda t: "".join(chr(0xE0000 + ord(letter)) for letter in t),
    "blanks of no width": "\u200b".join,
    "letters of full width": lambda t: "".join(
        chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in t
    ),
}
PIECES: dict[str, Callable[[str], Any]] = {
    "words": str.split,
    "letters": list,
    "tokens": lambda t: [{"token": w, "logprob": -0.1} for w in t.split(" ")],
    "tokens with bytes": lambda t: [{"bytes": [*w.encode()]} for w in t.split(" ")],
    "the first of two tokens": lambda t: [
        {"top": [{"token": w}, {"token": "zzz"}]} for w in t.split(" ")
    ],
    "bytes": lambda t: [*t.encode()],
    "values of an object": lambda t: {f"w{at}": w for at, w in enumerate(t.split(" "))},
    "pairs": lambda t: [[w, 5] for w in t.split(" ")],
    "numbered keys": lambda t: {str(at): w for at, w in enumerate(t.split(" "))},
}
NUMBERS: dict[str, Any] = {
    "a number": DIGITS,
    "a negative number": -DIGITS,
    "a fraction": float(DIGITS),
    "a number with decimals": DIGITS + 0.5,
    "groups of digits": [4111, 1111, 1111, 1111],
    "digits": [int(digit) for digit in str(DIGITS)],
    "a number in a list": [[1, DIGITS]],
    "a string of digits": str(DIGITS),
    "a number in JSON in a string": json.dumps({"card": DIGITS}),
}


def says(sent: bytes, text: str) -> bool:
    """Return whether bytes say a withheld text or value in any of these forms."""
    secret = {BAD: "secret pass phrase of the vault", LEAK: VALUE, PAID: CARD}[text]
    withheld = Withheld([secret], [secret])
    shown = sent.decode()
    found = withheld.is_in(shown)
    for line in shown.split("\n"):
        said = line.removeprefix("data: ")
        if said[:1] in ("{", "[") and said != "[DONE]":
            document = json.loads(said)
            cleaned = withheld.without_pieces(withheld.removed_from(json.loads(said)))
            found = found or cleaned != document
    return found


@pytest.mark.parametrize("text", [BAD, LEAK], ids=["bad", "leak"])
@pytest.mark.parametrize("form", [*ENCODED, *PIECES])
def test_a_reply_does_not_say_it_again_in_another_form(form: str, text: str, host: Host) -> None:
    """Under a key of its own, under one of names, and within a list."""
    made = (ENCODED | PIECES)[form](text)
    document = {"answer": text, "again": made, "id": made, "all": [{"n": 1, "of": made}]}
    assert says(json.dumps(document).encode(), text)
    reply = host.get(Reply.of(document))
    assert not says(reply.content, text)
    assert reply.json()["all"][0]["n"] == 1


@pytest.mark.parametrize("form", NUMBERS)
def test_a_reply_does_not_say_a_value_as_a_number(form: str, host: Host) -> None:
    """In whatever notation."""
    document = {"answer": PAID, "again": NUMBERS[form], "pages": [1, 2, 3], "at": 1732300000}
    reply = host.get(Reply.of(document))
    assert not says(reply.content, PAID)
    assert reply.json() | {"answer": PAID, "again": NUMBERS[form]} == document


@pytest.mark.parametrize("form", [*ENCODED, *PIECES, *NUMBERS])
def test_a_good_reply_leaves_byte_for_byte(form: str, host: Host) -> None:
    """Whatever repeats its text."""
    made = (ENCODED | PIECES)[form](GOOD) if form not in NUMBERS else NUMBERS[form]
    reply = Reply.of({"answer": GOOD, "again": made, "id": made})
    assert host.get(reply).content == reply.body


EVENTS = {
    "under a key": lambda made: data({"choices": [], "again": made}),
    "of another type": lambda made: data({"type": "trace", "again": made}),
    "under an id": lambda made: data({"choices": [], "id": made}),
    "beside text": lambda made: data({"choices": [{"index": 0, "delta": {}, "again": made}]}),
    "in a chunk with text": lambda made: data(
        {"choices": [{"index": 0, "delta": {"content": " "}}], "again": made}
    ),
    "a number of events": lambda made: f"id: {made}\ndata: {{}}\n\n".encode(),
}  # fmt: skip


@pytest.mark.parametrize("where", EVENTS)
@pytest.mark.parametrize("form", NUMBERS)
def test_no_event_says_a_value_as_a_number(form: str, where: str, host: Host) -> None:
    """Ahead of the text, in the midst of it, and behind; names and identifiers from there on."""
    event = EVENTS[where](NUMBERS[form])
    whole = completion(PAID)
    places = [at for at in range(len(whole)) if whole[at:].startswith(b"data")]
    if where in ("under an id", "a number of events"):
        places = [at for at in places if at > whole.index(b"1 was c")]
    if where == "in a chunk with text":  # not in the midst of the value
        places = [at for at in places if not 0 < at - whole.index(b"Your ca") < 800]
    for at in places:
        reply = host.get(stream(whole[:at] + event + whole[at:]))
        assert not says(reply.content, PAID)


@pytest.mark.parametrize("text", [BAD, LEAK], ids=["bad", "leak"])
@pytest.mark.parametrize("where", ["under an id", "of another type", "a number of events"])
@pytest.mark.parametrize("form", [*ENCODED, *PIECES])
def test_no_event_says_it_again_in_another_form(
    form: str, where: str, text: str, host: Host
) -> None:
    """Ahead of the text, in the midst of it, and behind."""
    made = (ENCODED | PIECES)[form](text)
    if where == "a number of events" and (not isinstance(made, str) or "\n" in made):
        return
    whole = completion(text)
    for at in (0, whole.index(b"data", 30), len(whole) - 14):
        reply = host.get(stream(whole[:at] + EVENTS[where](made) + whole[at:]))
        assert not says(reply.content, text)


@pytest.mark.parametrize("form", ["base64", "percent-encoded", "entities", "hexadecimal"])
def test_an_event_that_repeats_a_good_text_in_another_form_passes(form: str, host: Host) -> None:
    """When it has been shown."""
    event = data({"type": "trace", "again": ENCODED[form](GOOD)})
    whole = completion(GOOD)
    for at in (whole.index(b"data", 30), len(whole) - 14):
        reply = host.get(stream(whole[:at] + event + whole[at:]))
        assert event in reply.content
        assert reply.content.index(event) > reply.content.index(GOOD[-5:].encode())


def test_a_number_that_may_be_a_value_waits_for_the_texts(host: Host) -> None:
    """Others, such as times and counts, do not."""
    numbers = {"created": 1732300000, "total_tokens": 1234567, "n": 12, "score": 0.123456789}
    early, late = data({"type": "a", **numbers}), data({"type": "b", "order": 123456789})
    said = host.get(stream(late + early + completion(GOOD))).content
    assert said.index(early) > said.index(late) > said.index(GOOD[:5].encode())
    assert host.get(stream(early + completion(GOOD))).content.startswith(early)


@pytest.mark.parametrize(
    ("place", "number", "is_unread"),
    [
        (("card",), DIGITS, True), (("phone",), 5550131, True), (("phone",), 555013, False),
        (("a", 0), -DIGITS, True), (("x",), 4e15, True), (("x",), 0.4111111111, False),
        (("created",), 1732300000, False), (("ms",), 1732300000123, False),
        (("total_duration",), 4935886791, False), (("user_id",), 4935886791, False),
        (("x",), float("inf"), False),
    ],
)  # fmt: skip
def test_which_numbers_may_be_values(place: Any, number: float, is_unread: bool) -> None:
    """Long and whole, no time and no count."""
    assert is_unread_number(place, number) == is_unread


@pytest.mark.parametrize("form", NUMBERS)
def test_no_frame_says_a_value_as_a_number(form: str) -> None:
    """Behind the first text of an answer, and behind its end."""
    frames = [json.dumps({"delta": part}) for part in ("Your card ", CARD, " was charged. ")]
    again = json.dumps({"type": "trace", "again": NUMBERS[form]})
    beside = json.dumps({"delta": "At the desk. ", "again": NUMBERS[form]})
    for end in ("receive", "/done"):
        route = Route("/ask", websocket="json:/delta", websocket_end=end)
        for more in (again, beside):
            for at in (1, 2, 3):
                steps = [*frames[:at], more, *frames[at:], json.dumps({"done": True}), RECEIVE]
                sent = on_socket(Guard(), route, *steps, again)
                said = "\n".join(str(one.get("text") or "") for one in sent)
                assert not says(said.encode(), PAID)


def test_identifiers_hide_no_sentence() -> None:
    """Not those of vendors, nor words."""
    names = ["chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "gpt-4o-mini-2024-07-18",
             "550e8400-e29b-41d4-a716-446655440000", "VXNlcjoxMjM0NTY3",
             "msg_01XFDUDYJgAACzvnptvVoYEL", "models/meta-llama/Llama-3.2-11B-Vision-Instruct",
             "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b"]  # fmt: skip
    assert not any(map(hides_a_sentence, names))
    assert hides_a_sentence(url64(GOOD))


def test_the_views_of_a_text_are_few() -> None:
    """Also of one that was made to have many, and no longer than it together."""
    odd = "%2525&amp;amp;\\\\\\u0026=3D3D QUFBQUFBQUFB/QUFBQUFBQUFB= " * 50
    found = [*views(odd)]
    assert len(found) <= 32
    assert all(len(view) <= 2 * len(odd) for view in found)
    assert [*views(bytes(range(128, 192)).hex())][1:] == []  # is no text


def test_what_waits_is_read_once(monkeypatch: pytest.MonkeyPatch, host: Host) -> None:
    """However many events with text come meanwhile."""
    read: list[str] = []

    def counted(text: str) -> list[str]:
        read.append(text)
        return [text]

    monkeypatch.setattr("guardrail_client.middleware.repeats.readings", counted)
    monkeypatch.setattr("guardrail_client.middleware.repeats.views_of_name", counted)
    image = "iVBORw0KGgo" * 99
    early = data({"type": "a", "image": image}) + data({"choices": [], "id": f"{image}1"})
    body = chunk(content=GOOD) + early + completion(f" {GOOD}" * 20)
    host.get(stream(body), Route("/ask", on_error="open"))
    assert read.count(image) == read.count(f"{image}1") == 1


def test_a_text_of_its_own_does_not_say_it_encoded(host: Host) -> None:
    """The guard has judged that text as it stands, and read nothing in it."""
    found = [f"https://h.example/?q={quote(LEAK)}", "https://h.example/", b64(LEAK), GOOD]
    made = {**with_text("openai", "/choices/0/message/content", LEAK), "citations": found}
    reply = host.get(Reply.of(made))
    assert reply.json()["citations"] == ["", "https://h.example/", "", GOOD]


@pytest.mark.parametrize("make", [b64, lambda text: text.replace(" ", "-")], ids=["base64", "slug"])
@pytest.mark.parametrize("text", [BAD, LEAK], ids=["bad", "leak"])
def test_no_word_of_an_error_or_of_a_closed_socket_is_a_sentence(
    text: str, make: Callable[[str], str], host: Host
) -> None:
    """Other names and codes stay."""
    said = {"detail": make(text), "code": "context_length_exceeded"}
    reply = host.get(Reply.of(said, status=400))
    assert reply.json() == {"detail": "Bad Request", "code": "context_length_exceeded"}
    frames = [json.dumps({"delta": text}), RECEIVE]
    for reason, sent in ((make(text), ""), ("too_busy", "too_busy")):
        close = {"type": "websocket.close", "code": 1000, "reason": reason}
        first = frames if text == LEAK else []
        last = on_socket(Guard(), Route("/ask", websocket="json:/delta"), *first, close)[-1]
        assert last["reason"] == sent


def test_lists_of_embeddings_and_ids_stay(host: Host) -> None:
    """Digits of a value that lie across the borders of numbers say nothing."""
    document = {"answer": PAID, "vector": [0.4111, 0.1111], "ids": [41, 11111111, 1111112],
                "odd": [94111, 1111, 1111, 11112]}  # fmt: skip
    reply = host.get(Reply.of(document)).json()
    assert {**reply, "answer": PAID} == document


def test_a_chunk_repeats_no_name_of_what_was_redacted(host: Host) -> None:
    """In the events that carry the text, too."""
    chunks = [chunk(content=part) for part in (PAID, " One more sentence stands here.")]
    named = b"".join(chunks).replace(b"c-1", str(DIGITS).encode())
    said = host.get(stream(named + chunk("stop") + data("[DONE]"))).text
    assert "One more" in said
    assert str(DIGITS) not in said[said.index("One more") :]
