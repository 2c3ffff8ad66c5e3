"""`guardrail warm`: into a store, and through a running service; scores stay what they were."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.conftest import Served, here

PASSAGES = [
    "The pool opens at seven in the morning. Dogs are not allowed in the pool.",
    "Breakfast is served until ten. Parking costs five euros per night.",
]
SAMPLE = {"answer": "The pool opens at seven.", "contexts": PASSAGES}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus of JSON lines."""
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(map(json.dumps, PASSAGES)) + "\n")
    return path


def test_a_store_that_was_filled_is_found_again_with_the_same_scores(
    corpus: Path, tmp_path: Path, tiny_options: tuple[str | Path, ...]
) -> None:
    """Each command opens it anew; what is known is not computed, and no bit of a score moves."""
    store = tmp_path / "outputs.sqlite"
    filled = here("warm", corpus, *tiny_options, "--store", store, "--json")
    assert json.loads(filled.stdout) == {"passages": 2, "sentences": 4, "failed": 0}
    again = here("warm", corpus, *tiny_options, "--store", store, "--json")
    assert json.loads(again.stdout) == {"passages": 2, "sentences": 4, "failed": 0}
    lines = tmp_path / "samples.jsonl"
    lines.write_text(json.dumps(SAMPLE) + "\n")
    plain, stored = (
        json.loads(here("check", lines, *tiny_options, **env).stdout)["detectors"]
        for env in ({}, {"GUARDRAIL_STORE": str(store)})
    )
    assert plain["groundedness"]["metrics"] == stored["groundedness"]["metrics"]


def test_a_running_service_is_warmed_over_http(
    corpus: Path, serve: Callable[..., Served], on_tiny: tuple[str | Path, ...]
) -> None:
    """Afterwards only the answer itself is computed."""
    with serve(*on_tiny).client() as client:

        def computed() -> int:
            found: int = client.get("/v1/info").json()["caches"]["vectors"]["misses"]
            return found

        golden = computed()
        warmed = here("warm", corpus, "--url", str(client.base_url))
        assert warmed.exit_code == 0
        assert "2 passages: 4 sentences kept ready, 0 failed" in warmed.stdout
        assert computed() == golden + 4
        assert client.post("/v1/check", json=SAMPLE).status_code == 200
        assert computed() == golden + 5


def test_a_warm_that_has_nowhere_to_go_says_what_to_name(corpus: Path) -> None:
    """Status 2, one line."""
    found = here("warm", corpus)
    assert found.exit_code == 2
    assert "expected a running service, or a store to fill" in found.stderr
