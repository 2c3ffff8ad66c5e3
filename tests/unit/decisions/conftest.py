"""A new database for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail_decisions.keys import new_key


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return where a store may be made; `tests/databases` gives one of PostgreSQL."""
    return f"sqlite:///{tmp_path / 'decisions.db'}"


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    """Return a file with one key."""
    path = tmp_path / "keys"
    path.write_text(f"# made for a test\n{new_key()}\n")
    return path
