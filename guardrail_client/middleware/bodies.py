"""Response bodies: types, compression, and the headers that must change with a body. Pure."""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from guardrail_client.middleware.shapes import Framing

Header = tuple[bytes, bytes]
_OF_THE_BODY = frozenset(
    {b"content-length", b"content-encoding", b"etag", b"content-md5", b"digest", b"repr-digest",
     b"content-digest", b"last-modified", b"accept-ranges"}
)  # fmt: skip
"""Headers that describe a body byte for byte; wrong as soon as one byte differs."""
_INSTEAD = frozenset(
    {b"x-accel-redirect", b"x-sendfile", b"x-lighttpd-send-file", b"x-reproxy-url"}
)
"""Headers at which a server in front sends something else in place of the body."""
_UNASKED = frozenset({b"accept-encoding", b"range", b"if-range"})
"""Request headers that would make a response that cannot be read whole."""
_OF_PYTHON = frozenset({"idna", "punycode", "raw_unicode_escape", "unicode_escape", "utf-7"})
"""Codecs that browsers do not know as charsets, or no longer do."""
CHARSET = "charset_of_stream"
ELSEWHERE = "sent_from_elsewhere"
_UTF_16 = frozenset(
    {"csunicode", "iso-10646-ucs-2", "ucs-2", "unicode", "unicodefeff", "unicodefffe"}
)
"""Names by which browsers know UTF-16 and Python does not."""
_MARKS = {
    codecs.BOM_UTF8: ("utf-8", "utf-8-sig"),
    codecs.BOM_UTF16_LE: ("utf-16", "utf-16-le", "utf-32", "utf-32-le"),
    codecs.BOM_UTF16_BE: ("utf-16", "utf-16-be"),
}
"""Browsers go by these at the beginning of a text, whatever its charset is said to be."""
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class UnreadableBody(Exception):
    """A body that should be checked and cannot be read; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def single(headers: Iterable[Header], name: bytes) -> str:
    """Return a header's value in lower case; empty if it is not there.

    Raises:
        UnreadableBody: If it stands there twice: readers differ about which counts.
    """
    headers = list(headers)
    if sum(k.lower() == name for k, _ in headers) > 1:
        raise UnreadableBody("ambiguous_headers")
    return value(headers, name)


def value(headers: Iterable[Header], name: bytes) -> str:
    """Return a header's value in lower case; empty if it is not there."""
    return next((v.decode("latin-1").strip().lower() for k, v in headers if k.lower() == name), "")


def media_type(headers: Iterable[Header]) -> str:
    """Return the media type without parameters, in lower case."""
    return value(headers, b"content-type").partition(";")[0].strip()


def charset(headers: Iterable[Header]) -> str:
    """Return the charset a content type names; UTF-8 if it names none that can be read here."""
    name = next(iter(_charsets(headers)), "")
    return name if _is_charset(name) else "utf-8"


def _charsets(headers: Iterable[Header]) -> list[str]:
    """Return the charsets that a content type names."""
    parameters = [part.partition("=") for part in value(headers, b"content-type").split(";")[1:]]
    return [text.strip(' "') for name, _, text in parameters if name.strip() == "charset"]


def encoder(name: str) -> codecs.IncrementalEncoder:
    """Return what writes a text in pieces; only the first gets a byte-order mark, if any does."""
    return codecs.getincrementalencoder(name)("replace")


def is_marked_otherwise(beginning: bytes, charset: str) -> bool:
    """Return whether a text begins with the mark of another charset than it is said to be in."""
    own = codecs.lookup(charset).name
    return any(beginning.startswith(m) and own not in names for m, names in _MARKS.items())


def _is_charset(name: str) -> bool:
    """Return whether text can be read and written under a name; not all codecs are charsets."""
    try:
        "".encode(name, "replace")
        codecs.getincrementaldecoder(name)("replace").decode(b"\xff", final=True)
        encoder(name)
    except (LookupError, ValueError):
        return False
    return True


def _is_of_python(name: str) -> bool:
    """Return whether only some readers know a charset, so that they would read another text."""
    if name in _UTF_16:
        return True
    try:
        return codecs.lookup(name).name in _OF_PYTHON
    except (LookupError, ValueError):
        return False


def is_json(kind: str) -> bool:
    """Return whether a media type is JSON's."""
    return kind in ("application/json", "text/json") or (
        kind.startswith("application/") and kind.endswith("+json")
    )


def framing(headers: Iterable[Header], types: Mapping[str, Framing]) -> Framing:
    """Return how a body is read.

    Raises:
        UnreadableBody: If its type says nothing about that, or readers could differ about it.
    """
    headers = list(headers)
    if own(headers) != headers:
        raise UnreadableBody(ELSEWHERE)
    if value(headers, b"transfer-encoding") not in ("", "identity", "chunked"):
        raise UnreadableBody("unknown_encoding")
    single(headers, b"content-type")
    single(headers, b"content-encoding")
    if len({*_charsets(headers)}) > 1:
        raise UnreadableBody("ambiguous_headers")
    found = _framing(headers, types)
    foreign = any(_is_of_python(name) for name in _charsets(headers))
    if (found in ("events", "lines", "parts") and not is_utf8(headers)) or foreign:
        raise UnreadableBody(CHARSET)
    return found


def _framing(headers: Sequence[Header], types: Mapping[str, Framing]) -> Framing:
    kind = media_type(headers)
    if kind == "text/plain" and value(headers, b"x-vercel-ai-data-stream"):
        return "parts"
    if kind in types:
        return types[kind]
    if is_json(kind):
        return "json"
    raise UnreadableBody("unread_media_type")


def is_utf8(headers: Iterable[Header]) -> bool:
    """Return whether a body is in UTF-8, as those of JSON have to be: some readers follow it."""
    return all(name in ("utf-8", "utf8", "us-ascii", "ascii") for name in _charsets(headers))


def is_encoded_stream(framing: Framing, headers: Iterable[Header]) -> bool:
    """Return whether a body is sent in pieces and compressed: it cannot be read in pieces."""
    streamed = framing not in ("json", "unchecked")
    return streamed and value(headers, b"content-encoding") not in ("", "identity")


def own(headers: Iterable[Header]) -> list[Header]:
    """Return headers without those at which something else is sent in place of the body."""
    return [(name, content) for name, content in headers if name.lower() not in _INSTEAD]


def asked(headers: Iterable[Header]) -> list[Header]:
    """Return request headers without those that ask for parts or for compression."""
    return [(k, v) for k, v in headers if k.lower() not in _UNASKED]


def rewritten(headers: Iterable[Header], length: int | None) -> list[Header]:
    """Return response headers for another body; None: of a length that is not known yet."""
    kept = [(k, v) for k, v in headers if k.lower() not in _OF_THE_BODY | _INSTEAD]
    return kept if length is None else [*kept, (b"content-length", str(length).encode())]


def added(headers: Sequence[Header], more: Iterable[tuple[str, str]]) -> list[Header]:
    """Return response headers with ours; an application's own of our name are dropped."""
    ours = [(k.lower().encode(), v.encode("latin-1", "replace")) for k, v in more]
    names = {name for name, _ in ours}
    kept = [
        (k, v)
        for k, v in headers
        if k.lower() not in names and not k.lower().startswith(b"x-guardrail-")
    ]
    return [*kept, *ours]


def decoded(body: bytes, encoding: str, limit: int) -> bytes:
    """Return a body without its compression.

    Raises:
        UnreadableBody: If the compression is not known, broken, or hides more than `limit` bytes.
    """
    if encoding in ("", "identity"):
        return body
    if encoding not in _WBITS:
        raise UnreadableBody("unknown_encoding")
    inflater = zlib.decompressobj(_WBITS[encoding])
    try:
        plain = inflater.decompress(body, limit + 1)
    except zlib.error:
        raise UnreadableBody("broken_encoding") from None
    if len(plain) > limit:
        raise UnreadableBody("too_large")
    if not inflater.eof or inflater.unused_data:  # readers differ about a second member
        raise UnreadableBody("broken_encoding")
    return plain


def parsed(body: bytes) -> Any:
    """Return JSON, or None for anything else."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
