"""Requests are repeated where that may help, in time and at a pace, and give no secrets away."""

from __future__ import annotations

import logging
import shutil
import ssl
import subprocess
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.hosts.endpoint import Endpoint, Patience
from guardrail_offline.hosts.errors import (
    BadReply,
    HostError,
    HostRefused,
    HostUnavailable,
)
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.hosts.server import Reply, asked, serving, waits

__all__ = ["waits"]
GOOD = Reply({"ok": True})
KEY = "sk-made-up-for-this-test"
OPENSSL = shutil.which("openssl") or ""


def paused(found: list[float]) -> list[float]:
    """Return the waits that are any."""
    return [seconds for seconds in found if seconds > 0]


@pytest.mark.parametrize(
    "bad",
    [
        Reply(status=429, value={}),
        Reply(status=500, value={}),
        Reply(status=503, value={}),
        Reply(content=b"<html>"),
        Reply(content=b'{"ok": NaN}'),
        Reply(content=b"[" * 200_000),
        Reply(content=b""),
        Reply(content=b'{"ok": tr', claimed=100),
    ],
    ids=["busy", "error", "unavailable", "garbage", "nan", "deep", "empty", "truncated"],
)
def test_what_may_pass_is_tried_again(bad: Reply, waits: list[float]) -> None:
    """Longer and longer apart."""
    with serving(bad, bad, GOOD) as server, asked(server.url, waits) as endpoint:
        assert endpoint.post({"q": 1}).value == {"ok": True}
    assert server.bodies == [{"q": 1}] * 3
    first, second = paused(waits)
    assert 0.25 <= first <= 0.5 <= second <= 1.0


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (Reply(status=503, value={}), HostUnavailable),
        (Reply(content=b"<html>"), BadReply),
        (Reply(content=b'{"ok": tr', claimed=100), HostUnavailable),
        (Reply({"long": "x" * 99}), BadReply),
        (Reply({"slow": "x" * 99}, drops=0.05), HostUnavailable),
    ],
    ids=["unavailable", "garbage", "truncated", "too long", "drop by drop"],
)
def test_what_stays_bad_is_an_error_of_its_own_kind(
    bad: Reply, error: type[HostError], waits: list[float]
) -> None:
    """After all tries; a reply that comes drop by drop has no more time than others."""
    seconds, size = (0.4, 150) if bad.drops else (30, 60)
    limits = Patience(timeout_s=seconds, retries=1, reply_bytes=size)
    with (
        serving(bad) as server,
        asked(server.url, waits, limits=limits) as endpoint,
        pytest.raises(error),
    ):
        endpoint.post({})
    assert len(server.bodies) == 2


@pytest.mark.parametrize("status", [400, 401, 404, 422, 301])
def test_what_is_refused_for_good_is_asked_once(status: int) -> None:
    """A redirect is not followed: the key is for this host."""
    elsewhere = {"Location": "http://127.0.0.1:9/"} if status == 301 else {}
    refusal = Reply({}, status, elsewhere)
    with (
        serving(refusal) as server,
        asked(server.url) as endpoint,
        pytest.raises(HostRefused) as caught,
    ):
        endpoint.post({})
    assert (caught.value.status, len(server.bodies)) == (status, 1)
    assert caught.value.is_general is (status not in (400, 422))


def test_nobody_there_is_unavailable(waits: list[float]) -> None:
    """After all tries."""
    with serving(GOOD) as server:
        url = server.url
    with (
        asked(url, waits, limits=Patience(retries=2)) as endpoint,
        pytest.raises(HostUnavailable, match="ConnectError"),
    ):
        endpoint.post({})
    assert len(paused(waits)) == 2


def test_a_host_that_names_a_wait_is_given_it(waits: list[float]) -> None:
    """In seconds or as a date."""
    later = formatdate(time.time() + 20, usegmt=True)
    busy = [Reply({}, 429, {"Retry-After": value}) for value in ("7", later, "soon")]
    with serving(*busy, GOOD) as server, asked(server.url, waits) as endpoint:
        endpoint.post({})
    first, second, third = paused(waits)[:3]
    assert 6 < first <= 7
    assert 7 < second <= 27  # nobody waited for the first one, so both are still ahead
    assert third > 0


def test_a_host_that_names_too_long_a_wait_is_unavailable(waits: list[float]) -> None:
    """An hour is another run."""
    with (
        serving(Reply({}, 429, {"Retry-After": "3600"})) as server,
        asked(server.url, waits) as endpoint,
        pytest.raises(HostUnavailable, match="429"),
    ):
        endpoint.post({})
    assert len(server.bodies) == 1


def test_requests_begin_at_a_pace(waits: list[float]) -> None:
    """Two a second: the fourth begins a second and a half after the first."""
    limits = Patience(per_second=2)
    with serving(GOOD) as server, asked(server.url, waits, limits=limits) as endpoint:
        for _ in range(4):
            endpoint.post({})
    assert waits[0] == 0
    assert waits[1] <= 0.5
    assert waits[1] <= waits[2] <= waits[3] <= 1.5


def test_keys_come_from_the_environment_and_are_told_to_nobody_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in errors, logs nor what an endpoint looks like."""
    monkeypatch.setenv("MADE_UP_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    with serving(Reply({"secret": "text"}, 400)) as server:
        headers = {"X-Team": "$MADE_UP_KEY", "X-Plain": "a"}
        options: dict[str, Any] = {"key_variable": "MADE_UP_KEY", "headers": headers}
        with asked(server.url, **options) as endpoint, pytest.raises(HostRefused) as caught:
            endpoint.post({})
    sent = server.headers[0]
    assert (sent["Authorization"], sent["X-Team"], sent["X-Plain"]) == (f"Bearer {KEY}", KEY, "a")
    shown = f"{endpoint!r} {caught.value} {caplog.text}"
    assert KEY not in shown
    assert "secret" not in shown


@pytest.mark.parametrize("value", ["", "with\nline", "schlüssel"])
def test_a_key_that_cannot_be_sent_is_refused_by_its_variable(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its value is not shown."""
    monkeypatch.setenv("MADE_UP_KEY", value)
    with pytest.raises(ConfigurationError, match="environment variable MADE_UP_KEY") as caught:
        Endpoint("https://example.test", "MADE_UP_KEY")
    assert not value or value not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("ftp://example.test", "no web address"),
        ("example.test/v1", "no web address"),
        ("http://", "no web address"),
        ("http://user:pass@example.test", "a user name or password"),
        ("http://a\nb", "no URL"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str, found: str) -> None:
    """Before anything is sent, without showing a password."""
    with pytest.raises(ConfigurationError, match=found) as caught:
        Endpoint(url)
    assert "pass@" not in str(caught.value)


@pytest.mark.skipif(not OPENSSL, reason="openssl makes the certificate")
def test_a_certificate_that_nobody_vouches_for_is_refused(
    tmp_path: Path, waits: list[float]
) -> None:
    """Nothing is sent to whoever has it."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    files = ["-subj", "/CN=127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    made = subprocess.run([OPENSSL, *words.split(), *files], capture_output=True)
    assert made.returncode == 0, made.stderr
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with (
        serving(GOOD, tls=context) as server,
        asked(server.url, waits, limits=Patience(retries=0)) as endpoint,
        pytest.raises(HostUnavailable, match="ConnectError"),
    ):
        endpoint.post({})
    assert server.bodies == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"code": "context_length_exceeded", "message": "texts"}, "context_too_long"),
        ({"code": "model_not_found"}, "unknown_model"),
        ({"code": "another"}, None),
        ({"code": 7}, None),
        ("text", None),
    ],
)
def test_a_refusal_says_why_in_a_word_of_the_protocol(error: Any, reason: str | None) -> None:
    """The message of the error, which may quote what was sent, is told to nobody."""
    with (
        serving(Reply(status=400, value={"error": error})) as server,
        asked(server.url) as endpoint,
        pytest.raises(HostRefused) as caught,
    ):
        endpoint.post({})
    assert caught.value.reason == reason
    assert "texts" not in str(caught.value)


def test_what_is_unavailable_says_how(waits: list[float]) -> None:
    """Its status, and the pause it asked for."""
    busy = Reply(status=429, value={}, headers={"Retry-After": "90"})
    with (
        serving(busy) as server,
        asked(server.url) as endpoint,
        pytest.raises(HostUnavailable) as caught,
    ):
        endpoint.post({})
    assert (caught.value.status, caught.value.wait_s, caught.value.timed_out) == (429, 90.0, False)
