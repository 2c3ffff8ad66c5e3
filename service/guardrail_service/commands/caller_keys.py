"""The commands under `guardrail keys`: make a key, take it back, list what keys there are.

They edit the file that `GUARDRAIL_API_KEYS_FILE` names; a running service reads it again by itself.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from guardrail_service.commands.console import AsJson, command, err, out, plain
from guardrail_service.commands.group import Commands
from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.posix import file_locks, lock

if TYPE_CHECKING:
    from guardrail_service.server.keys import KeyEntry, KeysFile

keys_app = typer.Typer(
    cls=Commands, help="Make, revoke and list the keys of callers.", no_args_is_help=True
)
KeysFileOption = Annotated[
    Path,
    typer.Option(
        "--file", envvar="GUARDRAIL_API_KEYS_FILE", help="JSON file of keys; add makes it."
    ),
]
KeyId = Annotated[str, typer.Argument(help="Name of the key in log, metrics and records.")]
KEY_BYTES = 32


@keys_app.command("add")
@command
def keys_add(
    key_id: KeyId,
    file: KeysFileOption,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A policy it may use: NAME, NAME@VERSION or NAME@*; repeatable."),
    ] = None,
    overrides: Annotated[
        bool, typer.Option("--overrides", help="Its requests may change thresholds.")
    ] = False,
    right: Annotated[
        list[str] | None,
        typer.Option(
            help="check, feedback, decisions or admin; repeatable. Default: check, feedback."
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="Requests in a second, minute or hour, such as 600/minute.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Requests in work at the same time.")
    ] = None,
    expires: Annotated[datetime | None, typer.Option(help="Refused from then on; UTC.")] = None,
) -> None:
    """Make a key, print it once, and write what it may do into the file of keys.

    The file holds a digest of the key: whoever reads it cannot use it.
    """
    from guardrail_service.server.keys import digest_of, known_right

    key = f"rgk_{secrets.token_urlsafe(KEY_BYTES)}"
    with _edited(file) as edited:
        if any(entry["id"] == key_id for entry in edited["keys"]):
            raise ConfigurationError(f"{file}: keys", f"{key_id!r} already", "an id that is new")
        entry = {
            "id": key_id,
            "digest": digest_of(bytes.fromhex(edited["salt"]), key.encode()).hex(),
            "policies": policy or None,
            "overrides": overrides,
            "rights": [known_right(name) for name in right or ("check", "feedback")],
            "rate": rate,
            "concurrency": concurrency,
            "expires": None if expires is None else expires.replace(tzinfo=UTC).isoformat(),
            "created": _now(),
        }
        edited["keys"].append({name: value for name, value in entry.items() if value is not None})
    err.print(f"wrote {plain(str(file))}; the key is shown this once:", soft_wrap=True)
    typer.echo(key)


@keys_app.command("revoke")
@command
def keys_revoke(key_id: KeyId, file: KeysFileOption) -> None:
    """Take a key back: its next request is refused, those in work end as they began.

    Its entry stays, so that the id is never given again.
    """
    with _edited(file) as edited:
        entry = next((entry for entry in edited["keys"] if entry["id"] == key_id), None)
        if entry is None:
            known = choices(key_id, [entry["id"] for entry in edited["keys"]], "key")
            raise ConfigurationError(f"{file}: keys", repr(key_id), known)
        entry.setdefault("revoked", _now())
    out.print(f"revoked {plain(key_id)} since {entry['revoked']}", soft_wrap=True)


@keys_app.command("list")
@command
def keys_list(file: KeysFileOption, as_json: AsJson = False) -> None:
    """List keys with what they may do; of the keys themselves nothing is known."""
    from guardrail_service.server.keys import read_keys_file

    found = read_keys_file(file).keys
    if as_json:
        shown = [key.model_dump(mode="json", exclude={"digest"}) for key in found]
        out.print_json(json.dumps(shown))
        return
    table = Table("id", "state", "policies", "rights", "overrides", "rate", "at a time", "expires")
    for key in found:
        table.add_row(*(plain(cell) for cell in _row(key)))
    out.print(table)


def _row(key: KeyEntry) -> tuple[str, ...]:
    is_over = key.expires is not None and key.expires <= datetime.now(UTC)
    return (
        key.id,
        "revoked" if key.revoked else "expired" if is_over else "in force",
        ", ".join(key.policies or ("every one",)),
        ", ".join(key.rights),
        "may" if key.overrides else "may not",
        key.rate or "no limit",
        str(key.concurrency or "no limit"),
        key.expires.isoformat(timespec="seconds") if key.expires else "never",
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def _edited(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the content of a file of keys and put what it became in its place, whole or not at all.

    Raises:
        ConfigurationError: If the file is no file of keys, before or afterwards.
    """
    with _locked(path):
        content = _content(path)
        yield content
        new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=2)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            _checked(new, path)
            new.replace(path)
        except OSError as error:
            found = error.strerror or type(error).__name__
            raise ConfigurationError(str(path), found, "a file that can be replaced") from error
        finally:
            new.unlink(missing_ok=True)


def _content(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"salt": secrets.token_hex(32), "keys": []}
    return _checked(path, path).model_dump(mode="json", exclude_unset=True)


def _checked(path: Path, named: Path) -> KeysFile:
    """Return a file of keys; what is wrong is said of the file that `named` is."""
    from guardrail_service.server.keys import read_keys_file

    try:
        return read_keys_file(path)
    except ConfigurationError as error:
        where = error.where.replace(str(path), str(named))
        raise ConfigurationError(where, error.found, error.expected) from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep two commands from editing a file at once; the lock ends with its process."""
    file_locks(str(path))
    try:
        folder = os.open(path.resolve().parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ConfigurationError(str(path), "no folder for it", "a file in a folder") from error
    try:
        lock(folder, str(path))
        yield
    finally:
        os.close(folder)
