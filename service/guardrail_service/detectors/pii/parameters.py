"""What a policy may say about personal data: types, actions, allow-lists, own patterns."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import phonenumbers
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from guardrail_service.detectors.pii import phone as pii_phone
from guardrail_service.detectors.pii.types import H2O_TYPES, TYPES, canonical, resolve
from guardrail_service.detectors.registry import Parameters
from guardrail_service.errors import ConfigurationError
from guardrail_service.text.patterns.search import Pattern, PatternSet, compile_regex
from guardrail_service.text.patterns.slow_regexes import superlinear

TypeAction = Literal["allow", "flag", "redact", "block"]
Mask = Literal["placeholder", "partial"]


class CustomPattern(BaseModel):
    """One pattern of the operator's own; its id is the type of what it finds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern="^[a-z][a-z0-9_]{0,47}$", description="Type of the finding.")
    regex: str = Field(min_length=1, description="google-re2 syntax, linear in the text.")
    keywords: tuple[str, ...] = Field((), description="Every match contains one of them.")
    group: int = Field(0, ge=0, description="Capture group that is the finding.")
    ignore_case: bool = False

    def pattern(self) -> Pattern:
        """Return it as the engine takes it."""
        return Pattern(self.id, self.regex, self.keywords, self.group, self.ignore_case)


class PIIParameters(Parameters):
    """Parameters of the `pii` detector. Types are named by id, alias or group."""

    types: tuple[str, ...] = Field(
        ("all",), description="What to look for; `all`, `structured`, `national_id` are groups."
    )
    actions: dict[str, TypeAction] = Field(
        {}, description="Action by type; `allow` ignores the type, `flag` leaves its text as it is."
    )
    evaluate_retrieved_context: bool = Field(False, description="Also scan the passages.")
    allow_if_in_context: tuple[str, ...] = Field(
        (), description="Types that an answer may repeat from its passages."
    )
    allow: tuple[str, ...] = Field((), description="Values that are no leak; case is ignored.")
    allow_domains: tuple[str, ...] = Field(
        (), description="Domains, with their subdomains, whose e-mail addresses are no leak."
    )
    allow_patterns: tuple[str, ...] = Field(
        (), description="google-re2 patterns; a value one of them matches as a whole is no leak."
    )
    custom: tuple[CustomPattern, ...] = Field((), description="Further patterns to look for.")
    phone_regions: tuple[str, ...] = Field(
        pii_phone.REGIONS, description="Whose national telephone forms count without context."
    )
    private_ips: bool = Field(
        False, description="Whether private, loopback and reserved addresses count, too."
    )
    mask: Mask = Field("placeholder", description="[EMAIL_1], or the last characters kept.")
    h2o_compatible: bool = Field(
        False, description="Look for e-mail, payment cards and US social security numbers only."
    )

    @field_validator("types", "allow_if_in_context")
    @classmethod
    def _known_types(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            resolve(name)
        return names

    @field_validator("allow_patterns")
    @classmethod
    def _compilable(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for index, regex in enumerate(patterns):
            _compiled(regex, f"allow_patterns[{index}]")
        return patterns

    @field_validator("custom")
    @classmethod
    def _linear(cls, custom: tuple[CustomPattern, ...]) -> tuple[CustomPattern, ...]:
        for index, pattern in enumerate(custom):
            where = f"custom[{index}].regex"
            _compiled(pattern.regex, where)
            if canonical(pattern.id) is not None:
                raise ValueError(f"custom[{index}].id: found a published type; expected a new name")
            reason = superlinear(pattern.regex, ignore_case=pattern.ignore_case)
            if reason is not None:
                raise ValueError(f"{where}: {reason}; expected bounded repeats, such as {{1,64}}")
        _checked(lambda: custom_set(custom))
        return custom

    @field_validator("phone_regions")
    @classmethod
    def _regions(cls, regions: tuple[str, ...]) -> tuple[str, ...]:
        for region in regions:
            if region not in phonenumbers.SUPPORTED_REGIONS:
                raise ValueError(f"found region {region!r}; expected ISO 3166 codes such as 'US'")
        return regions

    @model_validator(mode="after")
    def _known_actions(self) -> PIIParameters:
        own = {pattern.id for pattern in self.custom}
        for name in self.actions:
            if name not in own:
                resolve(name)
        return self

    def wanted(self) -> frozenset[str]:
        """Return ids of the types to report, without those whose action is allow."""
        named = H2O_TYPES if self.h2o_compatible else expand(self.types)
        own = () if self.h2o_compatible else (pattern.id for pattern in self.custom)
        return frozenset(t for t in (*named, *own) if self.action(t) != "allow")

    def action(self, type_: str) -> TypeAction | None:
        """Return the action of one type: its own, else its group's, else the detector's (None)."""
        for name, action in self.actions.items():
            if name == type_ or canonical(name) == type_:
                return action
        for name, action in self.actions.items():
            if type_ in TYPES and type_ in resolve_or_empty(name):
                return action
        return None


def expand(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the type ids behind ids, aliases and groups, each once."""
    return tuple(dict.fromkeys(type_ for name in names for type_ in resolve(name)))


def resolve_or_empty(name: str) -> tuple[str, ...]:
    """Return the ids behind a name; none for a custom type."""
    try:
        return resolve(name)
    except ValueError:
        return ()


@lru_cache(maxsize=64)
def custom_set(custom: tuple[CustomPattern, ...]) -> PatternSet:
    """Return the operator's patterns, compiled once."""
    return PatternSet([pattern.pattern() for pattern in custom])


@lru_cache(maxsize=256)
def allow_regex(regex: str) -> Any:
    """Return one allow-list pattern, compiled once."""
    return compile_regex(regex, "allow_patterns")


def _compiled(regex: str, where: str) -> Any:
    return _checked(lambda: compile_regex(regex, where))


def _checked(build: Any) -> Any:
    """Return what a function builds, with its error as pydantic wants it."""
    try:
        return build()
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
