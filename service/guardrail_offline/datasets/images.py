"""Images in messages: checked before they are sent, and never fetched.

A case names an image by a file under its lab's folder, a data URI, or an address. Files become data
URIs; an address is passed on as it is, and only if it is none of a private network: a model's
server would fetch it from there.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from guardrail_service.errors import ConfigurationError

MOST_BYTES = 5 * 2**20
"""Of one image, before base64: the smallest limit of the large vendors."""
_BEGINNINGS: Mapping[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
_LOCAL_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "home.arpa")
_EXPECTED = "a PNG, JPEG, GIF or WebP: a file under the lab's folder, a data URI or an address"


class Image(NamedTuple):
    """One image of a message: its bytes, or its address.

    Attributes:
        type: Such as `image/png`; empty for an address.
        data: The bytes; empty for an address.
        url: The address, or the data URI.
    """

    type: str
    data: bytes
    url: str

    @property
    def is_remote(self) -> bool:
        """Return whether only an address is known."""
        return not self.data


def load_image(reference: str, where: str) -> Image:
    """Return the image of a case that was read: its files lie under the lab's folder.

    Raises:
        ConfigurationError: As `read_image`, and if a path is relative: labs in memory have no
            folder.
    """
    if reference.startswith("data:") or "://" in reference:
        return read_image(reference, None, where)
    path = Path(reference)
    if not path.is_absolute():
        raise ConfigurationError(where, "a relative path", "a lab on disk, or an absolute path")
    return read_image(path.name, path.parent, where)


def located_image(reference: str, folder: Path, where: str) -> str:
    """Return what a case of a lab on disk names, with a file's path made absolute.

    Raises:
        ConfigurationError: If the image cannot be used; see `read_image`.
    """
    image = read_image(reference, folder, where)
    is_file = image.data and not reference.startswith("data:")
    return str((folder / reference).resolve()) if is_file else reference


def image_part(image: Image) -> dict[str, Any]:
    """Return an image as a part of a message's content, as OpenAI's protocol has it."""
    return {"type": "image_url", "image_url": {"url": image.url}}


def read_image(reference: str, folder: Path | None, where: str) -> Image:
    """Return the image that a case names.

    Args:
        reference: A file relative to the lab's folder, a data URI, or an http(s) address.
        folder: The lab's; None where no files are allowed.
        where: The case and field, for messages; the reference itself is in none.

    Raises:
        ConfigurationError: If it is no image, too large, of another type than it says, outside of
            the folder, or in a private network.
    """
    if reference.startswith("data:"):
        return _of_uri(reference, where)
    if "://" in reference:
        return Image("", b"", _checked_address(reference, where))
    return _of_file(reference, folder, where)


def split_content(content: Any) -> tuple[str, list[Image]]:
    """Return the text of a message and its images.

    Args:
        content: A text, or parts as OpenAI's protocol has them. Data URIs were checked before.
    """
    if isinstance(content, str):
        return content, []
    texts = [part["text"] for part in _parts(content) if part.get("type") == "text"]
    urls = [part["image_url"]["url"] for part in _parts(content) if "image_url" in part]
    found = [
        _of_uri(url, "an image") if url.startswith("data:") else Image("", b"", url) for url in urls
    ]
    return "\n".join(texts), found


def has_images(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether any message has a part that is an image."""
    return any("image_url" in part for one in messages for part in _parts(one.get("content")))


def _parts(content: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, list | tuple):
        yield from (part for part in content if isinstance(part, Mapping))


def _of_uri(uri: str, where: str) -> Image:
    head, comma, body = uri.partition(",")
    type_, _, encoding = head.removeprefix("data:").partition(";")
    if not comma or encoding != "base64" or type_ not in _BEGINNINGS:
        raise ConfigurationError(where, "another data URI", "data:image/png;base64,... or alike")
    if len(body) > MOST_BYTES * 4 // 3 + 4:
        raise ConfigurationError(where, "a longer image", f"at most {MOST_BYTES} bytes")
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise ConfigurationError(where, "no base64", _EXPECTED) from None
    if _type_of(data) != type_:
        raise ConfigurationError(where, "bytes of another type", type_)
    return Image(type_, data, uri)


def _of_file(reference: str, folder: Path | None, where: str) -> Image:
    if folder is None:
        raise ConfigurationError(where, "a file", "a data URI or an address")
    try:
        root = folder.resolve()
        path = (root / reference).resolve()
        inside = path.is_relative_to(root)
        size = path.stat().st_size if inside else 0
        data = path.read_bytes() if inside and path.is_file() and size <= MOST_BYTES else b""
    except (OSError, ValueError, RuntimeError) as error:  # none, a NUL, links in a circle
        raise ConfigurationError(where, type(error).__name__, _EXPECTED) from None
    if not inside:
        raise ConfigurationError(where, "a file elsewhere", "a file under the lab's folder")
    if size > MOST_BYTES:
        raise ConfigurationError(where, f"{size} bytes", f"at most {MOST_BYTES} bytes")
    type_ = _type_of(data)
    if type_ is None:
        raise ConfigurationError(where, "bytes that are no image", _EXPECTED)
    return Image(type_, data, f"data:{type_};base64,{base64.b64encode(data).decode()}")


def _type_of(data: bytes) -> str | None:
    """Return the type that the first bytes of an image say."""
    for type_, beginnings in _BEGINNINGS.items():
        if data.startswith(beginnings) and (type_ != "image/webp" or data[8:12] == b"WEBP"):
            return type_
    return None


def _checked_address(url: str, where: str) -> str:
    expected = "an http or https address in the public network, without a user name"
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        raise ConfigurationError(where, "no address", expected) from None
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
        raise ConfigurationError(where, "another address", expected)
    if _is_private(parsed.host):
        raise ConfigurationError(where, "an address in a private network", expected)
    return url


def _is_private(host: str) -> bool:
    """Return whether a host is a number that is not public, or a name without a public ending.

    Numbers in hexadecimal, octal or with fewer than four parts are not public either: resolvers
    read them differently.
    """
    name = host.rstrip(".").lower()
    try:
        return not ipaddress.ip_address(name.strip("[]")).is_global
    except ValueError:
        pass
    last = name.rpartition(".")[2]
    is_number = last.isdecimal() or last.startswith("0x")
    ends = any(name == local or name.endswith(f".{local}") for local in _LOCAL_NAMES)
    return "." not in name or is_number or ends
