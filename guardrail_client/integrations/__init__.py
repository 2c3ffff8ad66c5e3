"""The guard inside frameworks. Each module imports its framework, and is imported by itself."""

from __future__ import annotations


def needs(extra: str, error: ImportError) -> ImportError:
    """Return the error of a module whose framework is not installed; it says what to install."""
    wanted = f"rag-guardrail-integrations[{extra}]"
    return ImportError(f"{error.name} is not installed: pip install '{wanted}'", name=error.name)
