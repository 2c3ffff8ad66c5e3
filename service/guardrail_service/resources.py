"""Finds the shipped files: inside the installed package, or at the top of a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def shipped(installed: str, checkout: str) -> Path:
    """Return the installed copy of a shipped folder if there is one, else the checkout's."""
    inside = _PACKAGE / "_data" / installed
    return inside if inside.exists() else _PACKAGE.parent.parent / checkout


def packs_dir() -> Path:
    """Return the folder whose subfolders are the shipped model packs."""
    return shipped("packs", "models")


def configs_dir() -> Path:
    """Return the folder with the shipped guardrail configurations."""
    return shipped("configs", "configs")
