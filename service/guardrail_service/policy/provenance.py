"""Checks whether a calibration's promise still holds for a file and the models at hand. Pure.

The `calibration` block says what thresholds were fitted on. Its promise ends when a model differs,
when the date has passed, or when someone has edited the block or what it speaks for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

BLOCK_HASH = "sha256_of_this_block"
DECIDES_HASH = "decides_sha256"
_DECISIVE = ("on_error", "on_timeout", "on_unverified", "parameters", "report_only")
"""Keys of `policy` that change which answers are flagged; names, actions and versions do not."""


class Doubt(NamedTuple):
    """One reason why a calibration's promise does not hold here."""

    key: str
    found: str
    expected: str


def canonical(value: Any) -> bytes:
    """Return JSON bytes that are the same for the same content, whatever order it was in."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def sha256_of(value: Any) -> str:
    """Return the hash of a value's canonical bytes."""
    return hashlib.sha256(canonical(value)).hexdigest()


def block_sha256(block: Mapping[str, Any]) -> str:
    """Return the hash of a calibration block, itself left out."""
    return sha256_of({key: value for key, value in block.items() if key != BLOCK_HASH})


def decides_sha256(file: Mapping[str, Any]) -> str:
    """Return the hash of everything in a guardrail file that a calibration's promise is about.

    Args:
        file: The validated file as plain JSON values, every default filled in.
    """
    policy = {key: file["policy"][key] for key in _DECISIVE}
    if file["policy"].get("preset"):  # a key of its own: files written before have other hashes
        policy["preset"] = file["policy"]["preset"]
    return sha256_of([file["calibrated_thresholds"], list(file["evaluator_ids"]), policy])


def doubts(
    block: Mapping[str, Any],
    file: Mapping[str, Any],
    fingerprints: Mapping[str, str],
    now: datetime,
) -> Iterator[Doubt]:
    """Yield every reason to doubt a calibration; none if it says nothing that can be checked.

    Args:
        block: The `calibration` key as it lies in the file.
        file: The whole validated file, every default filled in.
        fingerprints: What is at hand: a hash per model role, `segmenter` and `evidence`.
        now: The time of loading; a running service does not look again before a reload.
    """
    for key, fitted in block.get("fingerprints", {}).items():
        found = fingerprints.get(key)
        if found != fitted:
            at_hand = f"{found[:40]!r} at hand" if found else "no such model at hand"
            where = f"fingerprints.{key}"
            yield Doubt(where, at_hand, f"{fitted[:40]!r}, which thresholds were fitted on")
    if block.get(BLOCK_HASH, block_sha256(block)) != block_sha256(block):
        yield Doubt(BLOCK_HASH, "a block that was edited", "the block as calibration wrote it")
    if block.get(DECIDES_HASH, decides_sha256(file)) != decides_sha256(file):
        edited = "thresholds, evaluator_ids or policy edited after calibration"
        yield Doubt(DECIDES_HASH, edited, "them as calibration wrote them")
    yield from _expiry(block.get("expires"), now)


def _expiry(expires: str | None, now: datetime) -> Iterator[Doubt]:
    if expires is None:
        return
    try:
        end = datetime.fromisoformat(expires)
    except ValueError:
        yield Doubt("expires", f"{expires[:40]!r}", "a date such as 2027-06-30")
        return
    if now >= (end if end.tzinfo else end.replace(tzinfo=UTC)):
        yield Doubt("expires", expires, "a calibration that has not expired; calibrate again")
