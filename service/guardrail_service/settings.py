"""Environment variables `GUARDRAIL_*`: where and how the service runs, never what it checks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from guardrail_service.resources import configs_dir


class Limits(BaseSettings):
    """Sizes beyond which a request is refused, in bytes, code points, passages and sentences."""

    model_config = SettingsConfigDict(env_prefix="GUARDRAIL_MAX_", frozen=True, extra="forbid")

    body_bytes: int = Field(4_194_304, ge=1_024, description="Bytes of a request body.")
    answer_chars: int = Field(100_000, ge=1, description="Code points of one answer.")
    question_chars: int = Field(20_000, ge=1, description="Code points of one question.")
    context_chars: int = Field(1_000_000, ge=1, description="Code points of all passages together.")
    contexts: int = Field(200, ge=1, description="Passages of one sample.")
    sentences: int = Field(4_000, ge=1, description="Sentences of answer and passages together.")
    batch_items: int = Field(100, ge=1, description="Samples of one batch request.")
    queued_rows: int = Field(8_000, ge=1, description="Model rows waiting in the queue.")
    concurrent_requests: int = Field(64, ge=1, description="Samples judged at the same time.")
    concurrent_streams: int = Field(256, ge=1, description="Streams open at the same time.")


class CacheSettings(BaseSettings):
    """How much of what models computed is kept in memory."""

    model_config = SettingsConfigDict(env_prefix="GUARDRAIL_CACHE_", frozen=True, extra="forbid")

    vectors_mb: int = Field(24, ge=0, description="MiB of sentence embeddings.")
    states_mb: int = Field(64, ge=0, description="MiB of the encoder's states.")
    branch_mb: int = Field(32, ge=0, description="MiB of each branch's outputs.")


class Settings(BaseSettings):
    """How the service runs. Every field is an environment variable `GUARDRAIL_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="GUARDRAIL_", frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    uds: Path | None = Field(None, description="Unix socket to listen on instead of a port.")
    config: Annotated[tuple[Path, ...], NoDecode] = Field(
        (), description="Guardrail JSONs to load as policies, separated by the path separator."
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
    batch_tokens: int = Field(
        512,
        ge=1,
        description="Tokens that one model call computes at most, padding included, where the "
        "model's manifest lets rows run together; 1 runs each row alone.",
    )
    api_keys: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        (), description="Accepted bearer keys, separated by commas; none means no authentication."
    )
    drain_s: float = Field(10.0, ge=0, description="Seconds to finish running work on SIGTERM.")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    store: Path | None = Field(
        None, description="File that keeps model outputs over restarts; none if unset."
    )
    store_mb: int = Field(1_024, ge=1, description="MiB the store may use.")
    cache: CacheSettings = Field(default_factory=CacheSettings)
    limits: Limits = Field(default_factory=Limits)

    @field_validator("config", mode="before")
    @classmethod
    def _split_paths(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(Path(part) for part in value.split(os.pathsep) if part)
        return value

    @field_validator("api_keys", mode="before")
    @classmethod
    def _split_keys(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    def config_files(self) -> tuple[Path, ...]:
        """Return the guardrail JSONs to load: the named ones, else the shipped three."""
        if self.config:
            return self.config
        return tuple(configs_dir() / f"{name}.json" for name in ("default", "strict", "observe"))
