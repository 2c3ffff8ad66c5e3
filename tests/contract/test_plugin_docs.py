"""The plug-ins of docs/plugins.md run as they stand there, and the public names exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import guardrail_offline
import guardrail_service
from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_service.detectors.registry import Registry
from guardrail_service.plugins import COMMANDS, DETECTORS, EVALUATORS, SESSIONS
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Sample, State

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "plugins.md").read_text("utf-8")
FACES = [guardrail_service, guardrail_offline]


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    """Return what the page's snippets define, run in their order."""
    names: dict[str, Any] = {"__name__": "acme"}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(snippet, "docs/plugins.md", "exec"), names)  # noqa: S102 - our own page
    return names


def test_the_detectors_of_the_page_can_be_registered(written: dict[str, Any]) -> None:
    """Neither lacks anything that the registry asks for."""
    made = Registry()
    for name in ("Shouting", "Mood"):
        made.register(written[name])
    assert [one.spec.id for one in made] == ["acme_mood", "acme_shouting"]


@pytest.mark.parametrize(("answer", "share"), [("WHAT IS THIS", 1.0), ("This LOUD", 0.5)])
def test_the_pattern_detector_scores(answer: str, share: float, written: dict[str, Any]) -> None:
    """As its docstring says."""
    made = written["Shouting"]()
    outcome = made.reduce(SegmentedSample(Sample(answer)), (), made.parameters())
    assert outcome.scores == {"capitals": share}


def test_nothing_to_judge_is_a_state(written: dict[str, Any]) -> None:
    """And no number."""
    made = written["Shouting"]()
    outcome = made.reduce(SegmentedSample(Sample("a b")), (), made.parameters())
    assert (outcome.state, outcome.reason) == (State.NOT_APPLICABLE, "too_short")


def test_the_evaluator_of_the_page_scores(written: dict[str, Any]) -> None:
    """Through what runs every evaluator."""
    view = CaseView(Case("k", "where is it", "It is there"), PackModels({}))
    (result,) = written["Echo"]().evaluate([view], written["Echo"].parameters())
    assert result.scores["echo"].value == pytest.approx(2 / 3)


def test_the_page_names_the_groups_that_are_loaded() -> None:
    """In its table and in its pyproject."""
    groups = {DETECTORS, EVALUATORS, SESSIONS, COMMANDS}
    assert set(re.findall(r"^\| `(rag_guardrail\.\w+)` \|", PAGE, re.MULTILINE)) == groups
    (snippet,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert set(tomllib.loads(snippet)["project"]["entry-points"]) == {DETECTORS, EVALUATORS}


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_every_public_name_exists_and_is_imported_where_types_are_read(face: ModuleType) -> None:
    """`__all__`, the lazy import and the imports that a type checker follows say the same."""
    source = Path(face.__file__ or "").read_text("utf-8")
    typed = source.partition("if TYPE_CHECKING:")[2].partition("\n\n")[0]
    found = re.findall(r"\b(?!import\b|from\b)[A-Za-z]+\b(?=,|$|\n)", typed.replace(")", ""))
    public = [name for name in face.__all__ if not name.startswith("__")]
    assert face.__all__ == sorted(face.__all__)
    assert set(public) <= set(found)
    for name in face.__all__:
        assert getattr(face, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = face.absent


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_importing_a_face_imports_nothing_heavy(face: ModuleType) -> None:
    """The command line does so to print its help."""
    heavy = ("numpy", "onnxruntime", "pydantic", "scipy", "pyarrow", "fastapi")
    code = f"import sys, {face.__name__}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
