"""Settings: environment in, checked values out; nothing is read at import time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from guardrail_service.errors import ConfigurationError
from guardrail_service.settings import Limits, Settings


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GUARDRAIL_")]:
        monkeypatch.delenv(name)


def test_every_field_is_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """`GUARDRAIL_<NAME>`, limits `GUARDRAIL_MAX_<NAME>`; read when asked, not before."""
    given = {
        "HOST": "0.0.0.0",  # noqa: S104 - a value, nothing listens
        "PORT": "0",
        "UDS": "/run/guardrail.sock",
        "CONFIG": os.pathsep.join(["a.json", "", "b.json"]),
        "DEFAULT_POLICY": "b",
        "MODEL_PACK": "other",
        "WORKERS": "3",
        "API_KEYS": " one, two ,,",
        "DRAIN_S": "2.5",
        "LOG_LEVEL": "warning",
        "MAX_SENTENCES": "7",
        "STORE": "/var/lib/guardrail.sqlite",
        "STORE_MB": "5",
        "CACHE_VECTORS_MB": "6",
    }
    for name, value in given.items():
        monkeypatch.setenv(f"GUARDRAIL_{name}", value)
    settings = Settings()
    assert settings.host == given["HOST"]
    assert settings.port == 0
    assert settings.uds == Path("/run/guardrail.sock")
    assert settings.config == (Path("a.json"), Path("b.json"))
    assert settings.default_policy == "b"
    assert settings.model_pack == "other"
    assert settings.workers == 3
    assert [key.get_secret_value() for key in settings.api_keys] == ["one", "two"]
    assert settings.drain_s == 2.5
    assert settings.log_level == "warning"
    assert settings.limits.sentences == 7
    assert settings.store == Path("/var/lib/guardrail.sqlite")
    assert (settings.store_mb, settings.cache.vectors_mb) == (5, 6)
    assert settings.cache.states_mb == 64
    assert settings.limits.contexts == Limits().contexts


def test_an_option_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said on the command line is meant now."""
    monkeypatch.setenv("GUARDRAIL_PORT", "1")
    assert Settings(port=2).port == 2


def test_without_configuration_the_shipped_two_are_loaded() -> None:
    """And only those."""
    assert [path.name for path in Settings().config_files()] == [
        "default.json",
        "strict.json",
        "observe.json",
    ]
    assert Settings(config=(Path("mine.json"),)).config_files() == (Path("mine.json"),)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", {"*": "cpu"}),
        ("cuda", {"*": "cuda"}),
        ("grounding=cuda", {"*": "cpu", "grounding": "cuda"}),
        (" openvino , toxicity = cpu,", {"*": "openvino", "toxicity": "cpu"}),
    ],
)
def test_providers_are_chosen_whole_and_by_role(
    written: str, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Roles that are not named run on what stands alone, else on the processor."""
    monkeypatch.setenv("GUARDRAIL_PROVIDERS", written)
    assert Settings().providers == expected


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("cudda", "found 'cudda'; expected a known provider; did you mean 'cuda'"),
        ("grounding=tpu", "found 'tpu'; expected one of 5 known providers, see docs/models.md"),
        ("cpu,cuda", "two for every role"),
        ("nli=cpu,nli=cuda", "two for 'nli'"),
        ("=cuda", "found =cuda; expected `PROVIDER` once"),
    ],
)
def test_a_choice_of_providers_that_is_none_is_refused(written: str, message: str) -> None:
    """Names, and at most one provider for each role."""
    with pytest.raises(ConfigurationError, match=f"GUARDRAIL_PROVIDERS: .*{message}"):
        Settings(providers=written)


def test_several_processes_share_what_the_processor_computes_only() -> None:
    """A GPU's context or another library's threads do not survive a fork."""
    with pytest.raises(ConfigurationError, match=r"found 2, with GUARDRAIL_PROVIDERS=cuda"):
        Settings(processes=2, providers="cpu,nli=cuda")


def test_keys_are_not_printed() -> None:
    """A log line with the settings must not give them away."""
    settings = Settings(api_keys=("hunter2",))
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in settings.model_dump_json()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "-1"),
        ("PORT", "65536"),
        ("PORT", "http"),
        ("WORKERS", "0"),
        ("WORKERS", "257"),
        ("DRAIN_S", "-0.1"),
        ("LOG_LEVEL", "LOUD"),
        ("MAX_BODY_BYTES", "1023"),
        ("MAX_ANSWER_CHARS", "0"),
        ("MAX_BATCH_ITEMS", "many"),
    ],
)
def test_a_value_out_of_range_is_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At start-up, not at the first request."""
    monkeypatch.setenv(f"GUARDRAIL_{name}", value)
    with pytest.raises(ValidationError):
        Settings()


def test_answers_that_must_be_recorded_are_all_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share of them would let the others leave without a record."""
    monkeypatch.setenv("GUARDRAIL_DECISIONS_SHARE", "0.5")
    assert Settings().decisions.share == 0.5
    monkeypatch.setenv("GUARDRAIL_DECISIONS_AUDIT", "required")
    with pytest.raises(ConfigurationError, match="GUARDRAIL_DECISIONS_SHARE"):
        Settings()


def test_an_unknown_field_is_refused() -> None:
    """In code, where it can only be a mistake; the environment may hold other programs' names."""
    with pytest.raises(ValidationError):
        Settings(prot=8080)  # type: ignore[call-arg]


def test_settings_are_frozen() -> None:
    """A running service does not change under its own feet."""
    with pytest.raises(ValidationError):
        Settings().port = 1  # type: ignore[misc]


def test_keys_come_from_the_environment_and_from_a_file(tmp_path: Path) -> None:
    """Blank lines and remarks are no keys."""
    file = tmp_path / "keys"
    file.write_text("# of the chat\nthree\n\n four \n")
    assert Settings(api_keys="one,two", api_keys_file=file).keys() == (
        b"one", b"two", b"three", b"four",
    )  # fmt: skip


@pytest.mark.parametrize("content", [None, b"", b"# nothing\n", b"\xff\xfe"])
def test_a_file_without_keys_is_an_error(content: bytes | None, tmp_path: Path) -> None:
    """An empty mount must not open the service to everybody."""
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError, match="GUARDRAIL_API_KEYS_FILE: found"):
        Settings(api_keys_file=file).keys()
