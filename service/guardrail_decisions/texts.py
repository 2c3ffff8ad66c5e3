"""The part of texts that is kept: nothing, keyed hashes, all but findings, or all encrypted.

Everything here happens before a text is given to a file or a database.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from guardrail_decisions.keys import CannotDecrypt, Keys
from guardrail_service.detectors.pii.detector import PIIParameters, findings
from guardrail_service.detectors.secrets.detector import SecretsParameters, scan
from guardrail_service.errors import ConfigurationError
from guardrail_service.guard.check import redact
from guardrail_service.types import Span

TextMode = Literal["none", "hashes", "redacted", "full"]
_PII = PIIParameters()
_SECRETS = SecretsParameters()


@dataclass(frozen=True, slots=True)
class KeptText:
    """A text as it is stored.

    Attributes:
        body: JSON, or base64 of what is encrypted; None: nothing is kept.
        wrapped: The key that encrypts `body`, encrypted itself; None where nothing is.
    """

    mode: TextMode
    body: str | None = None
    wrapped: str | None = None


NOTHING = KeptText("none")


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one decision as they can be read: whole, or without what was found in them."""

    question: str | None
    answer: str
    contexts: tuple[str, ...]


class TextKeeper:
    """Makes of texts what is stored of them.

    Args:
        mode: How much.
        keys: Needed for hashes and full texts.

    Raises:
        ConfigurationError: If they are needed and missing.
    """

    def __init__(self, mode: TextMode, keys: Keys | None) -> None:
        if mode in ("hashes", "full") and keys is None:
            raise ConfigurationError(
                "GUARDRAIL_DECISIONS_KEYS_FILE", f"none, with texts {mode!r}", "a file of keys"
            )
        self.mode = mode
        self._keys = keys
        if mode == "redacted":
            redacted("")  # loads the patterns before anybody waits for them

    def keep(
        self, value: Mapping[str, Any], bound_to: str, withheld: str | None = None
    ) -> KeptText:
        """Return what is stored of texts.

        Args:
            value: Texts, or lists of texts, by name.
            bound_to: The id of the record they belong to.
            withheld: The answer without what the policy withheld.
        """
        if self.mode == "none":
            return NOTHING
        if self.mode == "redacted":
            shown = dict(value) if withheld is None else {**value, "answer": withheld}
            return KeptText("redacted", _json(_each(shown, redacted)))
        if self._keys is None:
            raise CannotDecrypt("no key")  # the constructor refuses this
        if self.mode == "hashes":
            return KeptText("hashes", _json(_each(value, self._keys.hashed)))
        body, wrapped = self._keys.encrypt(_json(value), bound_to)
        return KeptText("full", body, wrapped)


def read(kept: KeptText, keys: Keys | None, bound_to: str) -> dict[str, Any] | None:
    """Return stored texts by name; None where they cannot be read because only hashes are there.

    Raises:
        CannotDecrypt: If they are encrypted and no key at hand opens them.
    """
    if kept.body is None or kept.mode in ("none", "hashes"):
        return None
    if kept.mode == "redacted":
        return dict(json.loads(kept.body))
    if keys is None or kept.wrapped is None:
        raise CannotDecrypt("the texts are encrypted; expected GUARDRAIL_DECISIONS_KEYS_FILE")
    return dict(json.loads(keys.decrypt(kept.body, kept.wrapped, bound_to)))


def redacted(text: str) -> str:
    """Return a text without the personal data and secrets that the service's detectors find."""
    found = [
        *((f.start, f.end, f.type) for f in findings(text, _PII)),
        *((f.start, f.end, f.type) for f in scan(text, _SECRETS)),
    ]
    return redact(text, _replaced(found))


def _replaced(found: Iterable[tuple[int, int, str]]) -> Iterable[Span]:
    return [
        Span(start, end, label, replacement=f"[{label.upper()}]") for start, end, label in found
    ]


def _each(value: Mapping[str, Any], change: Any) -> dict[str, Any]:
    def changed(item: Any) -> Any:
        if isinstance(item, str):
            return change(item)
        return [changed(part) for part in item] if isinstance(item, list | tuple) else item

    return {name: changed(item) for name, item in value.items()}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
