"""The keys of callers: what each allows, and how a file of them is read again.

Two kinds of files hold keys. A file of lines has the keys themselves. A JSON file, which
`guardrail keys` writes, has an entry per key with rights and limits, and of the key itself only
HMAC-SHA256 under the file's salt. Slow hashes are for passwords, which can be guessed: a key is
256 random bits, which cannot, so one fast digest per request is enough. The salt keeps two files
from showing that they hold the same key, and callers from steering which digests are compared.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from guardrail_service.errors import (
    ConfigurationError,
    Forbidden,
    KeyExpired,
    KeyRevoked,
    Unauthorized,
    choices,
)
from guardrail_service.policy.file_schema import Name, read_json
from guardrail_service.server.watch import LOOK_S, FileWatch
from guardrail_service.settings import Settings
from guardrail_service.types import ANONYMOUS, IDENTITY, Caller, Rate

_LOG = logging.getLogger(__name__)
Right = Literal["check", "feedback", "decisions", "admin"]
RIGHTS: tuple[Right, ...] = ("check", "feedback", "decisions", "admin")
"""To have answers judged; to say whether a verdict was right; to read decisions that were kept; to
reload policies."""
SECONDS = {"second": 1, "minute": 60, "hour": 3_600}
MOST_KEYS = 10_000
KEY = "key "
"""Before the id of a key where callers are told apart; an address never begins so."""
LOOPBACK = ("127.", "::1", "unix")


class KeyEntry(BaseModel):
    """One key of a JSON file: all that is known of it but the key itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Name = Field(description="Its name in log, metrics and records.")
    digest: str = Field(
        pattern="^[0-9a-f]{64}$", description="HMAC-SHA256 of the key under the file's salt."
    )
    policies: tuple[Annotated[str, Field(max_length=130)], ...] | None = Field(
        None, min_length=1, description="Those it may use; the first where a request names none."
    )
    overrides: bool = Field(False, description="May its requests change thresholds?")
    rights: tuple[Right, ...] = Field(("check", "feedback"), description="What it may do.")
    rate: str | None = Field(
        None,
        pattern=r"^[1-9][0-9]{0,6}/(second|minute|hour)$",
        description="Requests in a time, such as 600/minute.",
    )
    concurrency: int | None = Field(
        None, ge=1, le=10_000, description="Requests in work at the same time."
    )
    expires: AwareDatetime | None = Field(None, description="Refused from then on.")
    revoked: AwareDatetime | None = Field(None, description="Refused since.")
    created: AwareDatetime | None = Field(None, description="When it was made.")

    def caller(self) -> Caller:
        """Return who sends this key."""
        return Caller(
            self.id,
            frozenset(self.rights),
            self.policies,
            self.overrides,
            None if self.rate is None else _rate(self.rate),
            self.concurrency,
            self.id,
        )


class KeysFile(BaseModel):
    """A JSON file of keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    salt: str = Field(pattern="^[0-9a-f]{32,128}$", description="Random bytes, as hex digits.")
    keys: tuple[KeyEntry, ...] = Field((), max_length=MOST_KEYS, description="One entry per key.")


def read_keys_file(path: Path) -> KeysFile:
    """Return a JSON file of keys.

    Raises:
        ConfigurationError: Naming the field that is wrong; never with a value of the file.
    """
    try:
        found = KeysFile.model_validate(read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "(whole file)"
        expected = first["msg"]
        raise ConfigurationError(
            f"{path}: {where}", "a value that does not fit", expected
        ) from None
    for what in ("id", "digest"):
        values = [getattr(key, what) for key in found.keys]
        if len(set(values)) < len(values):
            raise ConfigurationError(f"{path}: keys", f"one {what} twice", "each key once")
    return found


def _rate(text: str) -> Rate:
    count, _, unit = text.partition("/")
    return Rate(int(count), SECONDS[unit])


def key_id(key: bytes) -> str:
    """Return what logs and metrics call a key that has no id: the start of its hash."""
    return hashlib.sha256(key).hexdigest()[:8]


def digest_of(salt: bytes, key: bytes) -> bytes:
    """Return what is kept of a key."""
    return hmac.digest(salt, key, "sha256")


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key at hand. Its digest is compared, never the key."""

    digest: bytes
    caller: Caller
    expires: datetime | None = None
    revoked: datetime | None = None

    def refusal(self) -> Unauthorized | None:
        """Return why it opens nothing any more; None if it does."""
        if self.revoked is not None:
            return KeyRevoked("this key was revoked; ask for a new one")
        if self.expires is not None and datetime.now(UTC) >= self.expires:
            return KeyExpired(f"this key expired at {self.expires.isoformat()}; ask for a new one")
        return None


@dataclass(frozen=True, slots=True)
class Ring:
    """All keys at one time, by digest."""

    salt: bytes
    known: Mapping[bytes, KnownKey]


_NONE = KnownKey(bytes(32), ANONYMOUS)


def ring(plain: Iterable[bytes], file: KeysFile | None = None) -> Ring:
    """Return keys as they are looked up.

    Args:
        plain: Keys without an entry: they may ask for checks and give feedback, under each policy.
        file: Those with one.
    """
    salt = secrets.token_bytes(32) if file is None else bytes.fromhex(file.salt)
    known = [
        KnownKey(digest_of(salt, key), Caller(f"key-{key_id(key)}", label=key_id(key)))
        for key in plain
    ]
    known += [
        KnownKey(bytes.fromhex(entry.digest), entry.caller(), entry.expires, entry.revoked)
        for entry in (file.keys if file else ())
    ]
    return Ring(salt, {key.digest: key for key in known})


def is_json(path: Path) -> bool:
    """Return whether a file of keys holds entries rather than a key per line."""
    try:
        with path.open("rb") as file:
            return file.read(4_096).lstrip().startswith(b"{")
    except OSError:
        return False  # whoever reads it says what is wrong


def read_ring(settings: Settings) -> Ring:
    """Return every key that the settings name.

    Raises:
        ConfigurationError: If the file of keys cannot be used.
    """
    file = settings.api_keys_file
    if file is not None and file.exists() and not file.is_file():  # a pipe may never answer
        raise ConfigurationError(str(file), "no regular file", "a file of keys")
    if file is None or not is_json(file):
        return ring(settings.keys())
    return ring([k.get_secret_value().encode() for k in settings.api_keys], read_keys_file(file))


class Keys:
    """The accepted keys; those of a file as it is now, looked at once a second.

    Args:
        read: Reads all of them.
        file: Where some of them lie; None: nowhere.

    Raises:
        ConfigurationError: If they cannot be read.
    """

    def __init__(self, read: Callable[[], Ring], file: Path | None = None) -> None:
        self._read = read
        self._watch = None if file is None else FileWatch(lambda: (file,))
        self._ring = read()
        self._next_look = time.monotonic() + LOOK_S

    @classmethod
    def of(cls, settings: Settings) -> Keys | None:
        """Return the keys that the settings name; None if there are none: everybody may ask."""
        if not settings.api_keys and settings.api_keys_file is None:
            return None
        return cls(lambda: read_ring(settings), settings.api_keys_file)

    def find(self, sent: bytes) -> KnownKey | None:
        """Return the key that somebody sent, or None if it is none.

        The same work is done for every key, known or not: one digest, one look-up, one comparison.
        """
        if self._watch is not None and time.monotonic() >= self._next_look:
            self.renew()
        held = self._ring
        digest = digest_of(held.salt, sent)
        found = held.known.get(digest, _NONE)
        return found if hmac.compare_digest(digest, found.digest) else None

    def renew(self) -> None:
        """Read the file if it has changed; one that cannot be used leaves the keys as they are."""
        self._next_look = time.monotonic() + LOOK_S
        if self._watch is None or not self._watch.changed():
            return
        try:
            self._ring = self._read()
        except ConfigurationError:
            _LOG.error("the file of keys cannot be used; the last good keys stay in force")
            return
        _LOG.warning("the file of keys has changed and is in force")


def require(right: Right) -> None:
    """Raise Forbidden if the caller of this context lacks a right."""
    if right not in IDENTITY.get().rights:
        raise Forbidden(f"this key lacks the right {right!r}")


def needs(right: Right) -> Callable[[Request], Awaitable[None]]:
    """Return a dependency of routes whose callers need a right.

    Without keys, whoever is on this machine or asks the port for operations may reload policies.
    """

    async def check(request: Request) -> None:
        if right == "admin" and IDENTITY.get() is ANONYMOUS:
            if getattr(request.state, "is_operations", False) or _is_near(request):
                return
            raise Forbidden("expected a key with the right 'admin', or a request from this machine")
        require(right)

    return check


def _is_near(request: Request) -> bool:
    return (request.client.host if request.client else "unix").startswith(LOOPBACK)


def known_right(name: str) -> Right:
    """Return a right by its name.

    Raises:
        ConfigurationError: If there is none of that name.
    """
    found = next((right for right in RIGHTS if right == name), None)
    if found is None:
        raise ConfigurationError("--right", repr(name), choices(name, RIGHTS, "right"))
    return found
