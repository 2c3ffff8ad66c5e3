"""The six-file table of docs/architecture.md is true, and so is its picture of the layers."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROW = re.compile(r"^\| (\d) \| `([^`]+)` \| (.+?) \|", re.MULTILINE)
FILES = [
    (path, re.findall(r"`([^`]+)`", functions)) for _, path, functions in ROW.findall(TEXT)
]  # fmt: skip


def tree(path: str) -> ast.Module:
    """Return a file's syntax."""
    return ast.parse((ROOT / path).read_text("utf-8"))


def defined(path: str) -> set[str]:
    """Return the functions of a file, methods with their class."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name for node in tree(path).body if isinstance(node, functions)}
    for cls in (node for node in tree(path).body if isinstance(node, ast.ClassDef)):
        found |= {f"{cls.name}.{node.name}" for node in cls.body if isinstance(node, functions)}
    return found


def imported(path: str) -> set[str]:
    """Return the modules of this project that a file imports at run time."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("guardrail_service")}


def module(path: str) -> str:
    """Return a file's module name."""
    return path.removeprefix("service/").removesuffix(".py").replace("/", ".")


def reached(path: str) -> set[str]:
    """Return the project's files that a file imports, straight or through others."""
    found: set[str] = set()
    waiting = [path]
    while waiting:
        for name in imported(waiting.pop()) - found:
            candidate = ROOT / "service" / f"{name.replace('.', '/')}.py"
            if candidate.is_file():
                found.add(name)
                waiting.append(str(candidate.relative_to(ROOT)))
    return found


def test_the_table_has_six_files() -> None:
    """In the order in which an answer passes them."""
    assert [number for number, _, _ in ROW.findall(TEXT)] == list("123456")


@pytest.mark.parametrize(("path", "functions"), FILES)
def test_a_file_has_the_functions_it_is_listed_with(path: str, functions: list[str]) -> None:
    """A reader who follows the table finds them."""
    assert functions
    assert set(functions) <= defined(path)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (FILES[0][0], FILES[1][0]),  # the route reaches the guard
        (FILES[1][0], FILES[3][0]),  # the guard submits to the scheduler
        (FILES[1][0], FILES[5][0]),  # the guard asks the policy
    ],
)
def test_a_file_reaches_the_next_by_import(here: str, there: str) -> None:
    """Straight or through a helper that the page names."""
    assert module(there) in reached(here)


def test_the_guard_finds_detectors_by_name_and_the_scheduler_gets_sessions() -> None:
    """The two hand-overs that are no imports: a registry and a mapping of runners."""
    source = (ROOT / FILES[2][0]).read_text("utf-8")
    assert "@detector\nclass Groundedness" in source
    check = (ROOT / "service/guardrail_service/guard/check.py").read_text("utf-8")
    assert "self._registry[rule.spec.id].encode" in check
    assert "self._registry[rule.spec.id].reduce" in check
    runtime = "service/guardrail_service/server/runtime.py"
    assert {module(FILES[3][0]), module(FILES[4][0])} <= reached(runtime)
    assert "session.run for role, session" in (ROOT / runtime).read_text("utf-8")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:\w+/)+[\w.]+\.\w+)`", TEXT))))
def test_every_other_path_on_the_page_exists(path: str) -> None:
    """As it stands, or inside the package."""
    assert (ROOT / path).exists() or (ROOT / "service" / "guardrail_service" / path).exists()


DRAWN = TEXT.split("## What depends on what")[1].split("```")[1].strip().splitlines()
LAYERS = [re.split(r" {3,}", line.strip())[0].replace(",", " ").split() for line in DRAWN]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
PACKAGE = ROOT / "service" / "guardrail_service"


def sources(name: str) -> list[Path]:
    """Return the files of a module or package."""
    return [*(PACKAGE / name).rglob("*.py"), *PACKAGE.glob(f"{name}.py")]


@pytest.mark.parametrize("name", LEVEL)
def test_nothing_in_the_picture_imports_what_stands_above_it(name: str) -> None:
    """Arrows point down only; what is drawn exists."""
    assert sources(name)
    for path in sources(name):
        for other in imported(str(path.relative_to(ROOT))):
            part = other.split(".")[1] if "." in other else ""
            assert LEVEL.get(part, len(LAYERS)) >= LEVEL[name], f"{path.name} imports {other}"
