"""The keys of a store: what encrypts texts, hashes them and seals the end of the chain.

A file of keys has one key a line, each as `new_key` makes it. The first one is used for everything
new; the others only open what they closed. Nothing that is derived from a key tells the key.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from guardrail_service.errors import ConfigurationError, ServiceError

WHERE = "GUARDRAIL_DECISIONS_KEYS_FILE"
_NONCE = 12  # bytes, as AES-GCM has it


class CannotDecrypt(ServiceError):
    """A text cannot be read: its key is missing, or it was changed."""

    code = "cannot_decrypt"


def new_key() -> str:
    """Return a new key for a file of keys: 32 random bytes in URL-safe base64."""
    return Fernet.generate_key().decode()


class Keys:
    """The keys of one store, the current one first.

    Args:
        lines: Keys in text form.

    Raises:
        ConfigurationError: If one is no key.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        expected = "32 bytes in URL-safe base64, as `guardrail decisions new-key` prints them"
        try:
            raw = [base64.urlsafe_b64decode(line) for line in lines]
            self._fernets = MultiFernet([Fernet(line.encode()) for line in lines])
        except ValueError as error:
            raise ConfigurationError(WHERE, "something else than keys", expected) from error
        self._raw = {_id(key): key for key in raw}
        self.current = _id(raw[0])

    @classmethod
    def of_file(cls, path: Path) -> Keys:
        """Return the keys of a file; blank lines and comments are none.

        Raises:
            ConfigurationError: If it cannot be read or has no key.
        """
        try:
            lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
        except (OSError, ValueError) as error:
            found = getattr(error, "strerror", None) or type(error).__name__
            raise ConfigurationError(WHERE, found, "a text file with one key a line") from error
        keys = [line for line in lines if line and not line.startswith("#")]
        if not keys:
            raise ConfigurationError(WHERE, "no key", "a text file with one key a line")
        return cls(keys)

    def encrypt(self, text: str, bound_to: str) -> tuple[str, str]:
        """Return a text under a key of its own, and that key under the current one.

        Args:
            text: What to encrypt.
            bound_to: The record it belongs to; elsewhere it cannot be decrypted.
        """
        own, nonce = AESGCM.generate_key(256), os.urandom(_NONCE)
        closed = AESGCM(own).encrypt(
            nonce, text.encode("utf-8", "surrogatepass"), bound_to.encode()
        )
        return base64.b64encode(nonce + closed).decode(), self._fernets.encrypt(own).decode()

    def decrypt(self, closed: str, wrapped: str, bound_to: str) -> str:
        """Return what `encrypt` was given.

        Raises:
            CannotDecrypt: If no key opens it, or it was changed or moved.
        """
        try:
            own = self._fernets.decrypt(wrapped)
            data = base64.b64decode(closed)
            text = AESGCM(own).decrypt(data[:_NONCE], data[_NONCE:], bound_to.encode())
        except (InvalidToken, InvalidTag, ValueError) as error:
            raise CannotDecrypt("no key at hand opens this text, or it was changed") from error
        return text.decode("utf-8", "surrogatepass")

    def rotate(self, wrapped: str) -> str:
        """Return a text's own key under the current key.

        Raises:
            CannotDecrypt: If no key opens it.
        """
        try:
            return self._fernets.rotate(wrapped).decode()
        except InvalidToken as error:
            raise CannotDecrypt("no key at hand opens this text, or it was changed") from error

    def hashed(self, text: str) -> str:
        """Return the keyed hash of a text, with the id of the key: 8 and 64 hexadecimal digits."""
        data = text.encode("utf-8", "surrogatepass")
        return f"{self.current}:{self._mac(self.current, 'texts', data)}"

    def seal(self, data: str, key: str | None = None) -> str | None:
        """Return the seal of the end of a chain; None if that key is not at hand."""
        name = self.current if key is None else key
        return self._mac(name, "chain", data.encode()) if name in self._raw else None

    def _mac(self, key: str, purpose: str, data: bytes) -> str:
        derived = hmac.digest(self._raw[key], purpose.encode(), "sha256")
        return hmac.new(derived, data, "sha256").hexdigest()


def _id(key: bytes) -> str:
    return hashlib.sha256(b"rag-guardrail key id" + key).hexdigest()[:8]
