"""Filling the caches from a corpus: what counts as a passage, and how a service is asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from guardrail_service.commands.warm import (
    ATTEMPTS,
    CHARS_AT_ONCE,
    PASSAGES_AT_ONCE,
    Sent,
    chunks,
    into_store,
    through_service,
    warm,
)
from guardrail_service.errors import ConfigurationError, InputError, ServiceError
from guardrail_service.settings import Settings


def corpus(folder: Path, name: str, *lines: str) -> Path:
    """Write a corpus."""
    path = folder / name
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def passages(*files: Path) -> list[str]:
    """Return every passage of some files."""
    return [text for chunk in chunks(files) for text in chunk.texts]


def test_a_line_of_json_is_a_passage_or_a_check(tmp_path: Path) -> None:
    """What people have at hand: texts, documents, recorded requests."""
    lines = (
        '"plain"',
        '{"text": "a document", "id": "7"}',
        "",
        '{"answer": "x", "contexts": ["one", {"id": "c", "text": "two"}]}',
    )
    found = passages(corpus(tmp_path, "c.jsonl", *lines))
    assert found == ["plain", "a document", "one", "two"]


def test_blank_lines_stand_between_passages_of_a_text(tmp_path: Path) -> None:
    """Line breaks inside a passage stay; a byte order mark goes."""
    path = corpus(tmp_path, "c.txt", "\ufeffFirst line", "second line", "", "", "Next.")
    assert passages(path) == ["First line\nsecond line", "Next."]


@pytest.mark.parametrize("line", ["7", '{"answer": "x"}', '["a", 7]', "{", '"\\ud800'])
def test_what_is_no_passage_is_named_by_file_and_line(line: str, tmp_path: Path) -> None:
    """Without repeating it."""
    path = corpus(tmp_path, "c.jsonl", '"fine"', line)
    with pytest.raises(InputError, match=r"c\.jsonl:2") as caught:
        passages(path)
    assert "fine" not in str(caught.value)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    """By file and line."""
    path = tmp_path / "c.txt"
    path.write_bytes(b"fine\n\xff\n")
    with pytest.raises(InputError, match=r"c\.txt:2"):
        passages(path)


def test_a_missing_corpus_is_an_error(tmp_path: Path) -> None:
    """Not an empty one."""
    with pytest.raises(ConfigurationError, match="missing"):
        passages(tmp_path / "missing.txt")


def test_a_corpus_is_sent_in_parts_that_a_service_accepts(tmp_path: Path) -> None:
    """Bounded passages and characters; a long passage goes alone, nothing is cut."""
    short, long = "short", "x" * (CHARS_AT_ONCE + 1)
    path = corpus(tmp_path, "c.jsonl", *map(json.dumps, [short] * 60 + [long, short]))
    parts = list(chunks([path]))
    assert [len(part.texts) for part in parts] == [PASSAGES_AT_ONCE, 10, 1, 1]
    assert parts[2].texts == [long]
    assert sum(part.bytes for part in parts) == path.stat().st_size


def test_a_report_sums_up_and_progress_reaches_the_end(tmp_path: Path) -> None:
    """Bytes are what the bar counts."""
    path = corpus(tmp_path, "c.jsonl", *['"text"'] * 60)
    done: list[int] = []
    report = warm(chunks([path]), lambda texts: Sent(len(texts), 0), done.append)
    assert report == (60, 60, 0)
    assert sum(done) == path.stat().st_size


def sent(replies: Sequence[httpx.Response], key: str | None = None) -> tuple[object, list[str]]:
    """Return what came of sending a passage to a service that replies like this."""
    left, seen, pauses = list(replies), [], []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(f"{request.url.path} {request.headers.get('authorization')}")
        return left.pop(0) if len(left) > 1 else left[0]

    transport = httpx.MockTransport(reply)
    with through_service("http://service", key, transport, pauses.append) as send:
        found = send(["text"])
    return found, [*seen, *(f"paused {seconds:g}" for seconds in pauses)]


DONE = httpx.Response(200, json={"request_id": "r", "sentences": 5, "failed": 1})


def test_passages_are_posted_with_the_key() -> None:
    """And the counts come back."""
    assert sent([DONE], "k") == (Sent(5, 1), ["/v1/contexts Bearer k"])


def test_a_busy_service_is_asked_again_when_it_said() -> None:
    """Warming gives way to traffic."""
    busy = httpx.Response(429, headers={"Retry-After": "7"})
    found, seen = sent([busy, busy, DONE])
    assert found == Sent(5, 1)
    assert seen[3:] == ["paused 7", "paused 7"]


def test_a_service_that_stays_busy_is_an_error() -> None:
    """Not an endless loop."""
    with pytest.raises(ServiceError, match="429"):
        sent([httpx.Response(429, headers={"Retry-After": "0"})] * ATTEMPTS)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (httpx.Response(401, json={"error": {"message": "no valid key"}}), "401 no valid key"),
        (httpx.Response(502, text="<html>secret</html>"), "502 and no error of a guardrail"),
    ],
)
def test_a_refusal_is_shown_as_the_service_says_it(reply: httpx.Response, message: str) -> None:
    """Pages of other servers are not."""
    with pytest.raises(ServiceError, match=message) as caught:
        sent([reply])
    assert "secret" not in str(caught.value)


def test_a_service_that_is_not_there_is_an_error() -> None:
    """With its address."""

    def refuse(_request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    transport = httpx.MockTransport(refuse)
    with (
        through_service("http://service", transport=transport) as send,
        pytest.raises(ServiceError, match="http://service: ConnectError"),
    ):
        send(["text"])


def test_without_a_service_a_store_is_needed() -> None:
    """What was computed would end with the command."""
    with pytest.raises(ConfigurationError, match="--store"), into_store(Settings(store=None)):
        pass
