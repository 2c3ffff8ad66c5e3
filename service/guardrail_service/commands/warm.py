"""Fills the caches ahead of traffic from a corpus: through a running service, or into its store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from guardrail_service.errors import ConfigurationError, InputError, ServiceError
from guardrail_service.guard.waiting import Cancellation
from guardrail_service.server.translate import decode
from guardrail_service.types import Passage

if TYPE_CHECKING:
    import httpx

    from guardrail_service.settings import Settings

PASSAGES_AT_ONCE = 50
CHARS_AT_ONCE = 100_000
"""A tenth of what a service accepts by default: about a thousand sentences, seconds of work."""
TIMEOUT_S = 120.0
ATTEMPTS = 20
"""Refusals in a row of one part until the service counts as too busy."""
_LONGEST_PAUSE_S = 30.0
_EXPECTED = 'a text, or an object with "text" or "contexts"'


class Chunk(NamedTuple):
    """Passages that are sent together, and how many bytes of the corpus they took."""

    texts: list[str]
    bytes: int


class Sent(NamedTuple):
    """The distinct sentences of some passages, and how many of them failed."""

    sentences: int
    failed: int


Send = Callable[[Sequence[str]], Sent]


class Report(NamedTuple):
    """The counts of a corpus. Sentences are counted per request, so repeats count again."""

    passages: int
    sentences: int
    failed: int


def warm(chunks: Iterable[Chunk], send: Send, advance: Callable[[int], None]) -> Report:
    """Send a corpus part by part.

    Args:
        chunks: The corpus.
        send: Computes passages ahead.
        advance: Told how many bytes of the corpus are done.
    """
    total = Report(0, 0, 0)
    for chunk in chunks:
        done = send(chunk.texts)
        total = Report(*(a + b for a, b in zip(total, (len(chunk.texts), *done), strict=True)))
        advance(chunk.bytes)
    return total


def chunks(files: Iterable[Path]) -> Iterator[Chunk]:
    """Yield the passages of a corpus in parts that a service accepts.

    `.jsonl` files hold a passage or a `/v1/check` body a line; in other files, blank lines stand
    between passages.

    Raises:
        InputError: Naming file and line of what is no passage.
    """
    texts: list[str] = []
    chars = size = 0
    for text, read in _passages(files):
        if texts and (len(texts) >= PASSAGES_AT_ONCE or chars + len(text) > CHARS_AT_ONCE):
            yield Chunk(texts, size)
            texts, chars, size = [], 0, 0
        texts.append(text)
        chars += len(text)
        size += read
    if texts:
        yield Chunk(texts, size)


def _passages(files: Iterable[Path]) -> Iterator[tuple[str, int]]:
    for file in files:
        reader = _of_jsonl if file.suffix == ".jsonl" else _of_text
        try:
            with file.open("rb") as stream:
                yield from reader(file, stream)
        except OSError as error:
            raise ConfigurationError(str(file), error.strerror or "no file", "a corpus") from error


def _of_jsonl(file: Path, lines: Iterable[bytes]) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = texts_of(decode(line, f"{file}:{number}"))
        if found is None:
            raise InputError(
                f"found another kind of line; expected {_EXPECTED}", f"{file}:{number}"
            )
        for index, text in enumerate(found):
            yield text, 0 if index else len(line)


def texts_of(value: Any) -> list[str] | None:
    """Return the passages of one line; None if it has another shape."""
    if isinstance(value, dict):
        value = value.get("contexts", value.get("text"))
    items = value if isinstance(value, list) else [value]
    found = [item.get("text") if isinstance(item, dict) else item for item in items]
    texts = [text for text in found if isinstance(text, str)]
    return texts if len(texts) == len(found) else None


def _of_text(file: Path, lines: Iterable[bytes]) -> Iterator[tuple[str, int]]:
    kept: list[str] = []
    size = 0
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise InputError("found no UTF-8; expected text", f"{file}:{number}") from None
        size += len(line)
        if text.strip():
            kept.append(text)
        elif kept:
            yield "".join(kept).strip(), size
            kept, size = [], 0
    if kept:
        yield "".join(kept).strip(), size


@contextmanager
def into_store(settings: Settings) -> Iterator[Send]:
    """Yield what computes passages here and keeps them in the store of the settings.

    Raises:
        ConfigurationError: If the settings name no store.
    """
    from guardrail_service.commands.sample_file import unqueued
    from guardrail_service.server.runtime import Runtime

    if settings.store is None:
        raise ConfigurationError(
            "warm", "neither --url nor --store", "a running service, or a store to fill"
        )
    with closing(Runtime(unqueued(settings))) as runtime:

        def send(texts: Sequence[str]) -> Sent:
            done = runtime.guard.warm([Passage(text) for text in texts], Cancellation())
            return Sent(sum(done), done.failed)

        yield send


@contextmanager
def through_service(
    url: str,
    api_key: str | None = None,
    transport: httpx.BaseTransport | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Send]:
    """Yield what sends passages to a running service's `/v1/contexts`.

    Args:
        url: Where the service listens.
        api_key: Bearer key, if it wants one.
        transport: Instead of the network.
        pause: Waits some seconds when the service is busy.
    """
    import httpx

    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    client: AbstractContextManager[httpx.Client] = httpx.Client(
        base_url=url, headers=headers, timeout=TIMEOUT_S, transport=transport
    )
    with client as opened:
        yield lambda texts: _sent(opened, texts, pause)


def _sent(client: httpx.Client, texts: Sequence[str], pause: Callable[[float], None]) -> Sent:
    import httpx

    for _ in range(ATTEMPTS):
        try:
            reply = client.post("/v1/contexts", json={"contexts": list(texts)})
        except httpx.HTTPError as error:
            raise ServiceError(f"{client.base_url}: {type(error).__name__}") from error
        if reply.status_code != 429:
            break
        pause(min(float(reply.headers.get("Retry-After", "1")), _LONGEST_PAUSE_S))
    if reply.status_code != 200:
        raise ServiceError(f"{client.base_url}: {reply.status_code} {_message(reply)}")
    body = reply.json()
    return Sent(body["sentences"], body["failed"])


def _message(reply: httpx.Response) -> str:
    """Return the service's own words, which never quote text; nothing of another server's."""
    try:
        return str(reply.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return "and no error of a guardrail service"
