"""docs/configuration.md lists every variable and every key with its default, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from guardrail_service.policy.file_schema import GuardrailFile, PolicyBlock
from guardrail_service.settings import CacheSettings, DecisionSettings, Limits, Settings, Timeouts

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "configuration.md").read_text("utf-8")
ROW = re.compile(r"^\|\s*(`.+?`)\s*\|\s*(.*?)\s*\|\s*(.+?)\s*\|$", re.MULTILINE)
VARIABLES = TEXT.split("| variable |")[1].split("\n\n")[0]
KEYS = TEXT.split("| key |")[1].split("\n\n")[0]
IN_WORDS = {
    "start_cache": "~/.cache/rag-guardrail",
    "workers": "cores",
    "config": "shipped files",
    "default_policy": "first loaded",
    "providers": "cpu",
}
"""Defaults that depend on the machine or on what is loaded."""


def documented(text: str) -> dict[str, str]:
    """Return the default by name; a row may hold several of both."""
    found: dict[str, str] = {}
    for names, defaults, _ in ROW.findall(text):
        listed = re.findall(r"`([^`]+)`", names)
        values = [value.strip("` ") for value in defaults.split(", ")]
        values = values if len(values) == len(listed) else values * len(listed)
        found |= dict(zip(listed, values, strict=True))
    return found


def shown(name: str, value: Any) -> str:
    """Return a default as the page writes it."""
    if name in IN_WORDS:
        return IN_WORDS[name]
    if value is None:
        return ""
    if value == ():
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_every_variable_is_listed_with_its_default() -> None:
    """And nothing is listed that no longer exists."""
    expected = {
        f"GUARDRAIL_{name.upper()}": shown(name, field.default)
        for name, field in Settings.model_fields.items()
        if name not in ("limits", "cache", "timeouts", "decisions")
    }
    expected |= {
        f"GUARDRAIL_MAX_{name.upper()}": shown(name, field.default)
        for name, field in Limits.model_fields.items()
    }
    expected |= {
        f"GUARDRAIL_CACHE_{name.upper()}": shown(name, field.default)
        for name, field in CacheSettings.model_fields.items()
    }
    expected |= {
        f"GUARDRAIL_TIMEOUT_{name.upper()}": shown(name, field.default)
        for name, field in Timeouts.model_fields.items()
    }
    expected |= {
        f"GUARDRAIL_DECISIONS_{name.upper()}": shown(name, field.default)
        for name, field in DecisionSettings.model_fields.items()
    }
    assert documented(VARIABLES) == expected


def test_every_key_of_a_guardrail_file_is_listed_with_its_default() -> None:
    """Nested keys under `policy.`."""
    found = documented(KEYS)
    aliased = {f.alias or n for n, f in GuardrailFile.model_fields.items()}
    expected = {*aliased, *(f"policy.{n}" for n in PolicyBlock.model_fields)}
    names = {n if n in aliased or n.startswith("policy.") else f"policy.{n}"
             for n in found}  # fmt: skip
    assert names == expected - {"policy"}
    for name, default in found.items():
        field = PolicyBlock.model_fields.get(name.removeprefix("policy."))
        if field is None or default in ("the file's stem", "none"):
            continue
        if isinstance(field.default, dict) and default == '"flag"':
            continue  # policy.actions: every detector not named flags
        value = list(field.default) if isinstance(field.default, tuple) else field.default
        assert json.loads(default) == value, name


def test_every_field_describes_itself() -> None:
    """For `--help`, editors and the generated schemas."""
    for model in (Settings, Limits, CacheSettings, DecisionSettings, Timeouts, PolicyBlock):
        for name, field in model.model_fields.items():
            if name not in ("log_level", "limits", "cache", "timeouts", "decisions"):
                assert field.description, name
