"""Where the server listens, and what its log lines look like."""

from __future__ import annotations

import json
import logging
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from guardrail_service.errors import ConfigurationError
from guardrail_service.server.log_lines import _JsonLines, json_logging
from guardrail_service.server.serve import _listen, refuse_strangers, serve
from guardrail_service.settings import Settings


def test_port_0_takes_a_free_one_and_says_which() -> None:
    """The address is written as a client needs it."""
    bound, address = _listen(Settings(port=0))
    with bound:
        assert address == f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "guard.example"])  # noqa: S104
def test_an_address_that_others_reach_needs_keys_or_a_word(host: str) -> None:
    """One line names both ways out."""
    with pytest.raises(ConfigurationError) as refused:
        serve(Settings(host=host))
    message = str(refused.value)
    assert "\n" not in message
    assert "GUARDRAIL_API_KEYS" in message
    assert "--allow-anonymous (GUARDRAIL_ALLOW_ANONYMOUS=1)" in message


@pytest.mark.parametrize(
    "given",
    [
        {"host": "0.0.0.0", "allow_anonymous": True},  # noqa: S104
        {"host": "0.0.0.0", "api_keys": "one"},  # noqa: S104
        {"host": "0.0.0.0", "uds": "socket"},  # noqa: S104
        {"host": "127.0.0.1"},
        {"host": "::1"},
        {"host": "localhost"},
    ],
)
def test_who_may_listen_without_further_words(given: dict[str, Any]) -> None:
    """Keys, an express permission, or an address of this machine alone."""
    refuse_strangers(Settings(**given))


def test_a_taken_port_is_named() -> None:
    """Address, what was found, what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"listen on 127.0.0.1:{port}: found Address"):
            _listen(Settings(port=port))


def test_an_address_that_is_not_ours_is_named() -> None:
    """A name that does not resolve is no traceback either."""
    with pytest.raises(ConfigurationError, match=r"listen on 192\.0\.2\.1:0: found"):
        _listen(Settings(host="192.0.2.1", port=0))


@pytest.mark.parametrize("where", ["missing/folder/socket", "x" * 200, "."])
def test_a_socket_that_cannot_be_made_is_named(where: str, tmp_path: Path) -> None:
    """No folder, a path longer than the system takes, or a folder in its place."""
    with pytest.raises(ConfigurationError, match=r"listen on .*: found .+; expected"):
        _listen(Settings(uds=tmp_path / where))


def test_a_socket_left_over_by_a_kill_is_taken(tmp_path: Path) -> None:
    """A killed service could not clean up behind itself."""
    path = tmp_path / "guardrail.sock"
    first, address = _listen(Settings(uds=path))
    first.close()
    assert path.is_socket()
    second, again = _listen(Settings(uds=path))
    with second, socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(path))
    assert address == again == f"unix:{path}"


def test_a_socket_somebody_listens_on_is_kept(tmp_path: Path) -> None:
    """A second service must not take the first one's callers."""
    path = tmp_path / "guardrail.sock"
    living, _ = _listen(Settings(uds=path))
    with living, pytest.raises(ConfigurationError, match="Address already in use"):
        _listen(Settings(uds=path))
    assert path.is_socket()


def test_a_file_in_place_of_the_socket_is_kept(tmp_path: Path) -> None:
    """What is no socket is somebody's file."""
    path = tmp_path / "precious"
    path.write_text("mine")
    with pytest.raises(ConfigurationError, match="Address already in use"):
        _listen(Settings(uds=path))
    assert path.read_text() == "mine"


def record(name: str, message: str, *, fails: bool = False) -> logging.LogRecord:
    """Return a log record, on request with an exception that quotes text."""
    try:
        raise ValueError("submitted text")
    except ValueError:
        info = sys.exc_info() if fails else None
    return logging.LogRecord(name, logging.ERROR, __file__, 1, message, (), info)


def test_a_line_that_is_json_already_passes_unchanged() -> None:
    """The access line is written once."""
    assert _JsonLines().format(record("guardrail.access", '{"a":1}')) == '{"a":1}'


def test_every_other_line_becomes_one_json_object_without_a_traceback() -> None:
    """An exception's message may quote the text it choked on; its type is enough."""
    line = _JsonLines().format(record("uvicorn.error", "two\nlines", fails=True))
    assert json.loads(line) == {
        "level": "error",
        "logger": "uvicorn.error",
        "message": "two\nlines",
        "exception": "ValueError",
    }
    assert "\n" not in line


def test_a_running_service_logs_json_and_leaves_logging_as_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Or a later line would go to an output that is closed by then."""
    before = state_of_logging()
    with json_logging("error"):
        logging.getLogger("uvicorn.error").error("zq9")
        logging.getLogger("uvicorn.error").warning("not shown")
        logging.getLogger("guardrail.serve").info("{}")
    assert [json.loads(line).get("message") for line in capsys.readouterr().out.splitlines()] == [
        "zq9",
        None,
    ]
    assert state_of_logging() == before


def test_a_service_that_does_not_start_leaves_logging_as_it_was(tmp_path: Path) -> None:
    """Whoever called it goes on."""
    before = state_of_logging()
    with pytest.raises(ConfigurationError, match=r"missing\.json"):
        serve(Settings(config=(tmp_path / "missing.json",), log_level="debug"))
    assert state_of_logging() == before


def state_of_logging() -> tuple[object, ...]:
    """Return what starting a service changes."""
    root, own = logging.getLogger(), logging.getLogger("guardrail.serve")
    access = logging.getLogger("uvicorn.access")
    return root.handlers[:], root.level, own.level, access.disabled
