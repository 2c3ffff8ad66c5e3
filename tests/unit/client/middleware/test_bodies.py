"""Bodies and their headers."""

from __future__ import annotations

import gzip
import zlib

import pytest

from guardrail_client.middleware import bodies
from guardrail_client.middleware.bodies import UnreadableBody

HEADERS = [
    (b"Content-Type", b"application/json; charset=utf-8"),
    (b"ETag", b'"x"'),
    (b"Content-Length", b"9"),
    (b"X-Own", b"1"),
]


def test_headers_of_the_old_body_go_with_it() -> None:
    """The others stay; the length is the new one, or none where it is not known."""
    assert bodies.rewritten(HEADERS, 3) == [HEADERS[0], HEADERS[3], (b"content-length", b"3")]
    assert bodies.rewritten(HEADERS, None) == [HEADERS[0], HEADERS[3]]


def test_our_headers_replace_those_of_the_same_name() -> None:
    """An application must not say that its answer was checked."""
    forged = [*HEADERS, (b"X-Guardrail-Decision", b"pass")]
    shown = bodies.added(forged, [("X-Guardrail-Decision", "flag")])
    assert [v for k, v in shown if k.lower() == b"x-guardrail-decision"] == [b"flag"]


def test_requests_ask_for_whole_plain_bodies() -> None:
    """Or there is nothing to read."""
    asked = [(b"Accept-Encoding", b"br"), (b"Range", b"bytes=0-1"), (b"Accept", b"*/*")]
    assert bodies.asked(asked) == [(b"Accept", b"*/*")]


@pytest.mark.parametrize(
    ("kind", "is_json"),
    [("application/json", True), ("application/problem+json", True), ("text/html", False),
     ("application/x-ndjson", False), ("", False)],
)  # fmt: skip
def test_json_has_several_names(kind: str, is_json: bool) -> None:
    """And lines of JSON are not one document."""
    assert bodies.is_json(kind) == is_json


def test_types_and_charsets_are_read_from_the_header() -> None:
    """In any case, quoted or not."""
    assert bodies.media_type(HEADERS) == "application/json"
    assert bodies.charset([(b"content-type", b'text/plain; Charset="Latin-1"')]) == "latin-1"
    assert bodies.charset([]) == "utf-8"


@pytest.mark.parametrize(
    "name", ["utf8mb4", "x-unknown", "base64", "rot13", "idna", "undefined", "", '""', "ü", "a b"]
)
def test_a_charset_that_cannot_be_read_is_utf_8(name: str) -> None:
    """Names that nobody knows, and codecs that are no charsets."""
    kind = f"text/plain; charset={name}".encode("latin-1")
    assert bodies.charset([(b"content-type", kind)]) == "utf-8"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("", b"{}"), ("identity", b"{}"), ("gzip", gzip.compress(b"{}", mtime=0)),
     ("deflate", zlib.compress(b"{}"))],
)  # fmt: skip
def test_compression_is_undone(encoding: str, body: bytes) -> None:
    """The kinds that need no library."""
    assert bodies.decoded(body, encoding, 10) == b"{}"


@pytest.mark.parametrize(
    ("encoding", "body", "code"),
    [
        ("br", b"x", "unknown_encoding"),
        ("gzip", b"no gzip at all", "broken_encoding"),
        ("gzip", gzip.compress(b"{}", mtime=0)[:-9], "broken_encoding"),
        ("gzip", gzip.compress(b"x" * 1_000_000, mtime=0), "too_large"),
        ("gzip", gzip.compress(b"{}", mtime=0) + gzip.compress(b"{}", mtime=0), "broken_encoding"),
    ],
)
def test_what_cannot_be_read_says_why(encoding: str, body: bytes, code: str) -> None:
    """A bomb is not unpacked."""
    with pytest.raises(UnreadableBody) as caught:
        bodies.decoded(body, encoding, 1_000)
    assert caught.value.code == code
