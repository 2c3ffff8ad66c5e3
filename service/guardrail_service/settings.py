"""Environment variables `GUARDRAIL_*`: where and how the service runs, never what it checks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.resources import configs_dir, start_cache_dir
from guardrail_service.types import EVERY, PROVIDERS, Provider, Role

DIALECTS = ("azure", "bedrock", "litellm", "llm_guard", "openai")
"""Other guards' formats that the service can answer in; each has a file in `server/dialects`."""


class Limits(BaseSettings):
    """Sizes beyond which a request is refused, in bytes, code points, passages and sentences."""

    model_config = SettingsConfigDict(env_prefix="GUARDRAIL_MAX_", frozen=True, extra="forbid")

    body_bytes: int = Field(8_388_608, ge=1_024, description="Bytes of a request body.")
    answer_chars: int = Field(100_000, ge=1, description="Code points of one answer.")
    question_chars: int = Field(20_000, ge=1, description="Code points of one question.")
    context_chars: int = Field(1_000_000, ge=1, description="Code points of all passages together.")
    contexts: int = Field(200, ge=1, description="Passages of one sample.")
    sentences: int = Field(4_000, ge=1, description="Sentences of answer and passages together.")
    batch_items: int = Field(100, ge=1, description="Samples of one batch request.")
    header_bytes: int = Field(
        65_536, ge=1_024, description="Bytes of a request's line and headers together."
    )
    queued_rows: int = Field(8_000, ge=1, description="Model rows waiting in the queue.")
    concurrent_requests: int = Field(64, ge=1, description="Samples judged at the same time.")
    requests_per_key: int = Field(
        48, ge=1, description="Samples judged at the same time for one key."
    )
    requests_per_address: int = Field(
        0,
        ge=0,
        description="Samples judged at the same time for one address, without keys; 0: no limit.",
    )
    concurrent_streams: int = Field(256, ge=1, description="Streams open at the same time.")
    cpu_s: float = Field(
        20.0,
        gt=0,
        description="Seconds of processor time for either half of a check; a sixth of its rows'.",
    )
    streams_per_caller: int = Field(
        224, ge=1, description="Streams of one key, or of one address where there are no keys."
    )
    connections: int = Field(2_000, ge=1, description="Connections open at the same time.")
    connections_per_caller: int = Field(1_000, ge=1, description="Connections of one address.")


class Timeouts(BaseSettings):
    """Limits, in seconds, on the time a client may keep the service waiting."""

    model_config = SettingsConfigDict(env_prefix="GUARDRAIL_TIMEOUT_", frozen=True, extra="forbid")

    header_s: float = Field(10.0, gt=0, description="From a request's first byte to its headers.")
    body_s: float = Field(60.0, gt=0, description="For a whole request body, except a stream's.")
    keep_alive_s: int = Field(75, ge=1, description="Between two requests of one connection.")
    stream_idle_s: float = Field(120.0, gt=0, description="Between two lines of a stream.")
    unread_s: float = Field(120.0, gt=0, description="For a client that reads nothing.")


class CacheSettings(BaseSettings):
    """Limits on the model outputs kept in memory."""

    model_config = SettingsConfigDict(env_prefix="GUARDRAIL_CACHE_", frozen=True, extra="forbid")

    vectors_mb: int = Field(24, ge=0, description="MiB of sentence embeddings.")
    states_mb: int = Field(64, ge=0, description="MiB of the encoder's states.")
    branch_mb: int = Field(
        32, ge=0, description="MiB of each branch's states; a quarter where it gives probabilities."
    )


class DecisionSettings(BaseSettings):
    """The place of decisions, how much of them is kept there, and for how long."""

    model_config = SettingsConfigDict(
        env_prefix="GUARDRAIL_DECISIONS_", frozen=True, extra="forbid"
    )

    url: SecretStr | None = Field(
        None,
        description="Database that keeps decisions: `sqlite:///FILE` or `postgresql://...`; none "
        "if unset.",
    )
    texts: Literal["none", "hashes", "redacted", "full"] = Field(
        "none",
        description="What is kept of question, passages, answer and comments: nothing, keyed "
        "hashes, the texts without what was found in them, or the texts encrypted.",
    )
    audit: Literal["best_effort", "required"] = Field(
        "best_effort",
        description="`required` sends an answer only when its decision is durable, and 503 "
        "otherwise.",
    )
    keys_file: Path | None = Field(
        None,
        description="File with keys of `guardrail decisions new-key`, one a line; the first "
        "encrypts, all decrypt.",
    )
    share: float = Field(
        1.0, gt=0, le=1, description="Share of the passing decisions that is kept; flagged all are."
    )
    retention_days: float | None = Field(
        None, gt=0, description="Days after which decisions are deleted; never if unset."
    )
    queue: int = Field(10_000, ge=1, description="Decisions waiting to be written.")
    queue_mb: int = Field(64, ge=1, description="MiB of decisions waiting to be written.")
    spool: Path | None = Field(
        None, description="File that takes decisions while the database is away; memory if unset."
    )
    spool_mb: int = Field(256, ge=1, description="MiB the spool may use.")
    wait_s: float = Field(
        5.0, gt=0, description="Seconds that an answer or feedback waits to become durable."
    )

    @model_validator(mode="after")
    def _records_all_that_is_required(self) -> DecisionSettings:
        if self.audit == "required" and self.share < 1:
            raise ConfigurationError(
                "GUARDRAIL_DECISIONS_SHARE",
                f"{self.share}, with GUARDRAIL_DECISIONS_AUDIT=required",
                "1, so that no answer leaves without a record",
            )
        return self


def _keys_in(file: Path) -> list[str]:
    """Return the keys of a file; lines that are blank or begin with # are none."""
    try:
        lines = [line.strip() for line in file.read_text("utf-8").splitlines()]
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigurationError(_KEYS_FILE, found, "a text file with one key per line") from error
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys:
        raise ConfigurationError(_KEYS_FILE, "no key", "a text file with one key per line")
    return keys


_KEYS_FILE = "GUARDRAIL_API_KEYS_FILE"
_PROVIDERS = "GUARDRAIL_PROVIDERS"


def _providers_by_role(written: str) -> dict[Role, str]:
    """Return the provider of each named role, and under `EVERY` that of all others."""
    found: dict[Role, str] = {}
    for part in filter(None, map(str.strip, written.split(","))):
        role, equals, name = (piece.strip() for piece in part.rpartition("="))
        role = role if equals else EVERY
        if name not in PROVIDERS:
            raise ConfigurationError(
                _PROVIDERS, repr(name), choices(name, PROVIDERS, "provider", "docs/models.md")
            )
        if not role or role in found:
            where = f"two for {'every role' if role == EVERY else repr(role)}" if role else part
            raise ConfigurationError(_PROVIDERS, where, "`PROVIDER` once, and `ROLE=PROVIDER`s")
        found[role] = name
    return {EVERY: "cpu", **found}


class Settings(BaseSettings):
    """The settings of the service. Every field is an environment variable `GUARDRAIL_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="GUARDRAIL_", frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    uds: Path | None = Field(None, description="Unix socket to listen on instead of a port.")
    config: Annotated[tuple[Path, ...], NoDecode] = Field(
        (), description="Guardrail JSONs to load as policies, separated by the path separator."
    )
    policies: Path | None = Field(
        None, description="Folder of policies in versions, see `guardrail policies`."
    )
    shadow_policies: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Policies that judge beside every other one, separated by commas."
    )
    watch_config: bool = Field(
        False, description="Read the guardrail JSONs again when they change, as policies are."
    )
    watch_s: float = Field(
        1.0, gt=0, le=3_600, description="Seconds between two looks whether policies have changed."
    )
    default_policy: str | None = Field(
        None, description="Policy of requests that name none; the first loaded one if unset."
    )
    model_pack: str = Field("embedded", description="Name of a shipped model pack, or a folder.")
    workers: int = Field(
        default_factory=lambda: max(1, os.cpu_count() or 1),
        ge=1,
        le=256,
        description="Model runs at the same time, each on one thread.",
    )
    providers: Annotated[Mapping[Role, Provider], NoDecode] = Field(
        {EVERY: "cpu"},
        description="Execution providers of onnxruntime that compute: one for all models, `cuda`, "
        "or some by role, `cpu,grounding=cuda`.",
    )
    processes: int = Field(
        1,
        ge=1,
        le=64,
        description="Processes that serve behind one socket; workers, limits and memory are "
        "divided among them.",
    )
    batch_tokens: int = Field(
        512,
        ge=1,
        description="Tokens that one model call computes at most, padding included, where the "
        "model's manifest lets rows run together; 1 runs each row of the queue alone.",
    )
    api_keys: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        (), description="Accepted bearer keys, separated by commas; none means no authentication."
    )
    api_keys_file: Path | None = Field(
        None,
        description="File with further keys: one a line, or with rights and limits as "
        "`guardrail keys` writes it. A secret mount.",
    )
    counters: str = Field(
        "memory",
        pattern="^(memory$|file:.|rediss?://|unix://)",
        description="Where the requests of keys with limits are counted: memory, file:PATH for "
        "processes of one machine, redis://HOST for more.",
    )
    counters_away: Literal["serve", "refuse"] = Field(
        "serve", description="What becomes of requests that cannot be counted."
    )
    tenant_cache: bool = Field(
        False, description="Keep the outputs of models apart for each key, at the price of memory."
    )
    allow_anonymous: bool = Field(
        False, description="Serve without keys on an address that other machines reach."
    )
    tls_certificate: Path | None = Field(
        None, description="PEM file with the certificate chain; the service then speaks TLS."
    )
    tls_key: Path | None = Field(None, description="PEM file with the certificate's key.")
    operations_port: int | None = Field(
        None,
        ge=0,
        le=65_535,
        description="Second port, which serves health and /metrics and nothing else.",
    )
    dialects: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Other guards' formats to answer in, separated by commas, or `all`."
    )
    drain_s: float = Field(10.0, ge=0, description="Seconds to finish running work on SIGTERM.")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    store: Path | None = Field(
        None, description="File that keeps model outputs over restarts; none if unset."
    )
    store_mb: int = Field(1_024, ge=1, description="MiB the store may use.")
    start_cache: Path | None = Field(
        default_factory=start_cache_dir,
        description="Folder that keeps what every start would compute again: compiled patterns "
        "and golden rows that passed on this machine; `off` keeps nothing.",
    )
    cache: CacheSettings = Field(default_factory=CacheSettings)
    decisions: DecisionSettings = Field(default_factory=DecisionSettings)
    limits: Limits = Field(default_factory=Limits)
    timeouts: Timeouts = Field(default_factory=Timeouts)

    @field_validator("config", mode="before")
    @classmethod
    def _split_paths(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(Path(part) for part in value.split(os.pathsep) if part)
        return value

    @field_validator("start_cache", mode="before")
    @classmethod
    def _off_is_none(cls, value: object) -> object:
        return None if value in ("", "off") else value

    @field_validator("api_keys", "shadow_policies", mode="before")
    @classmethod
    def _split_keys(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("providers", mode="before")
    @classmethod
    def _by_role(cls, value: object) -> object:
        return _providers_by_role(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _only_the_processor_forks(self) -> Settings:
        used = sorted(set(self.providers.values()) - {"cpu"})
        if self.processes > 1 and used:
            raise ConfigurationError(
                "GUARDRAIL_PROCESSES",
                f"{self.processes}, with {_PROVIDERS}={','.join(used)}",
                "1: what another provider than cpu has opened is not shared by several processes",
            )
        return self

    @field_validator("dialects", mode="before")
    @classmethod
    def _known_dialects(cls, value: object) -> object:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            return value
        names = dict.fromkeys(str(part).strip() for part in parts if str(part).strip())
        for name in names:
            if name not in (*DIALECTS, "all"):
                expected = choices(name, (*DIALECTS, "all"), "dialect", "docs/integrations")
                raise ConfigurationError("GUARDRAIL_DIALECTS", repr(name), expected)
        return DIALECTS if "all" in names else tuple(names)

    def keys(self) -> tuple[bytes, ...]:
        """Return every accepted key.

        Raises:
            ConfigurationError: If the file of keys cannot be read or has none.
        """
        given = [key.get_secret_value() for key in self.api_keys]
        if self.api_keys_file is not None:
            given += _keys_in(self.api_keys_file)
        return tuple(key.encode() for key in given)

    def config_files(self) -> tuple[Path, ...]:
        """Return the guardrail JSONs to load: the named ones, else the shipped three.

        With a folder of policies, none is shipped beside it.
        """
        if self.config or self.policies is not None:
            return self.config
        return tuple(configs_dir() / f"{name}.json" for name in ("default", "strict", "observe"))
