"""The schema of guardrail JSON: its keys, what each may hold, and what is said of a wrong one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.policy.consequences import PerDetector

Name = Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Preset = Literal["precise", "balanced", "sensitive"]
PRESETS: tuple[Preset, ...] = ("precise", "balanced", "sensitive")


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PolicyBlock(_Block):
    """The `policy` key: everything about a decision that is not a fitted threshold."""

    name: Name | None = Field(None, description="Name requests use; the file's stem if unset.")
    version: str = Field("0", max_length=64, description="Shown in every reply.")
    allow_overrides: bool = Field(
        default=False, description="May a request change thresholds and parameters?"
    )
    report_only: tuple[str, ...] = Field((), description="Detectors that never gate.")
    parameters: dict[str, dict[str, Any]] = Field({}, description="Parameters by detector.")
    deadline_ms: int | None = Field(None, gt=0, description="Deadline of requests that name none.")
    on_error: PerDetector = Field("flag", description="What a failed detector means.")
    on_timeout: PerDetector = Field("flag", description="What a detector without time means.")
    on_unverified: PerDetector = Field("flag", description="What 'cannot be judged' means.")
    preset: Preset | dict[str, Preset] | None = Field(
        None,
        description="Which shipped thresholds detectors without one of their own have: a word, or "
        "a word per detector with `*` for the others.",
    )
    on_mismatch: Literal["refuse", "warn"] = Field(
        "refuse", description="What a calibration that does not hold here means."
    )
    actions: dict[str, Literal["allow", "mark", "flag", "redact", "block"]] = Field(
        {}, description="What to do when a detector flags, by detector."
    )


class CalibrationBlock(BaseModel):
    """The `calibration` key: provenance written by a calibration run. Further keys are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    fingerprints: dict[str, str] = Field(
        {}, description="What the thresholds were fitted on: per model role, and `segmenter`."
    )
    per_metric: dict[str, dict[str, dict[str, Any]]] = Field(
        {}, description="How each threshold came about; `status` says whether it is calibrated."
    )
    expires: str | None = Field(
        None, max_length=64, description="ISO date or time from which the promise has ended."
    )
    decides_sha256: str | None = Field(
        None, description="Hash of the thresholds, ids and policy keys the promise is about."
    )
    sha256_of_this_block: str | None = Field(
        None, description="Hash of this block without this key."
    )


class GuardrailFile(_Block):
    """A guardrail configuration as it lies on disk."""

    schema_: str | None = Field(
        None, alias="$schema", description="For editors: where the JSON Schema of this file lies."
    )
    calibrated_thresholds: dict[str, dict[str, float]] = Field(
        {}, description="Thresholds by detector id and metric key."
    )
    evaluator_ids: tuple[str, ...] = Field(min_length=1, description="Exactly these run.")
    policy: PolicyBlock = Field(default_factory=PolicyBlock)
    calibration: CalibrationBlock = Field(default_factory=CalibrationBlock)


def content_of(file: GuardrailFile) -> dict[str, Any]:
    """Return a file's content, every default filled in.

    Keys that came later are left out where a file does not use them: hashes over the content must
    not change for files that were written before.
    """
    content = file.model_dump(mode="json", exclude={"schema_"})
    if content["policy"]["preset"] is None:
        del content["policy"]["preset"]
    return content


MOST_FILE_BYTES = 16 * 2**20
"""Bytes of a guardrail JSON or a thresholds file; the largest that we wrote has a fiftieth."""


def read_json(path: Path) -> Any:
    """Return a JSON file's value; duplicate keys, NaN, infinities and endless files are refused."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            times = Counter(key for key, _ in items)
            twice = next(key for key in found if times[key] > 1)
            raise ConfigurationError(str(path), f"the key {twice!r} twice", "each key once")
        return found

    def constant(name: str) -> float:
        raise ConfigurationError(str(path), name, "a finite number")

    try:
        with path.open("rb") as file:  # a device or a pipe may have no end
            data = file.read(MOST_FILE_BYTES + 1)
        if len(data) > MOST_FILE_BYTES:
            most = f"at most {MOST_FILE_BYTES} bytes"
            raise ConfigurationError(str(path), f"more than {MOST_FILE_BYTES} bytes", most)
        return json.loads(data, object_pairs_hook=pairs, parse_constant=constant)
    except OSError as error:
        raise ConfigurationError(str(path), error.strerror or "no file", "a file") from error
    except json.JSONDecodeError as error:
        where = f"{path}: line {error.lineno} column {error.colno}"
        raise ConfigurationError(where, error.msg, "JSON") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a number of too many digits, depth
        raise ConfigurationError(str(path), type(error).__name__, "JSON in UTF-8") from error


def parse(path: Path) -> GuardrailFile:
    """Return a guardrail file as it lies on disk.

    Raises:
        ConfigurationError: Naming the key that is wrong, what was found and what was expected.
    """
    try:
        return GuardrailFile.model_validate(read_json(path))
    except ValidationError as error:
        first = _most_specific(error.errors())
        key = ".".join(str(part) for part in first["loc"] if "[" not in str(part))
        key = key or "(whole file)"
        found = "nothing" if first["type"] == "missing" else _brief(first["input"])
        expected = first["msg"]
        if first["type"] == "extra_forbidden":
            found, expected = "an unknown key", _keys_beside(first["loc"])
        raise ConfigurationError(f"{path}: {key}", found, expected) from error


def _most_specific(errors: Sequence[ErrorDetails]) -> ErrorDetails:
    """Return the first error; of the several that a choice of forms gives, the deepest one."""
    same = [e for e in errors if e["loc"][:2] == errors[0]["loc"][:2]]
    return max(same, key=lambda e: len(e["loc"]))


def _keys_beside(loc: tuple[int | str, ...]) -> str:
    """Return which keys were expected where an unknown one was found."""
    models: dict[tuple[int | str, ...], type[BaseModel]] = {
        (): GuardrailFile,
        ("policy",): PolicyBlock,
    }
    model = models.get(loc[:-1])
    if model is None:
        return "only documented keys"
    known = [field.alias or name for name, field in model.model_fields.items()]
    return choices(str(loc[-1]), known, "key")


def _brief(value: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}... ({type(value).__name__})"
