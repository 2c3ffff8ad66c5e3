"""A real request passes the files of docs/architecture.md; its picture of the layers is true."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.walk import Walk, traced

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROW = re.compile(r"^\| (\d+) \| `([^`]+)` \| (.+?) \|", re.MULTILINE)
FILES = [
    (path, re.findall(r"`([^`]+)`", functions)) for _, path, functions in ROW.findall(TEXT)
]  # fmt: skip


SERVICE = "service/guardrail_service/"
MOST_FILES = 45
MOST_MOVES = 500
"""In version 0.1, with three detectors fewer, a request entered 67 files and moved 964 times."""


@cache
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


@cache
def imported(path: str) -> frozenset[str]:
    """Return the modules of this project that a file imports at run time."""
    found: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return frozenset(name for name in found if name.startswith("guardrail_service"))


@pytest.fixture(scope="module")
def walk() -> Walk:
    """The traced request of three in which threads met least often."""
    return min((traced() for _ in range(3)), key=lambda walk: walk.moves)


def test_the_spine_is_short_and_numbered() -> None:
    """In the order in which an answer passes the files."""
    numbers = [int(number) for number, _, _ in ROW.findall(TEXT)]
    assert numbers == list(range(1, len(FILES) + 1))
    assert len(FILES) <= 14


@pytest.mark.parametrize(("path", "functions"), FILES)
def test_a_file_has_the_functions_it_is_listed_with(path: str, functions: list[str]) -> None:
    """A reader who follows the table finds them."""
    assert functions
    assert set(functions) <= defined(path)


def test_a_real_request_passes_the_spine_in_order(walk: Walk) -> None:
    """Each file by the first function that the page names there."""
    places = [walk.first(path.removeprefix(SERVICE), names[0]) for path, names in FILES]
    assert places == sorted(places)
    for path, names in FILES:
        for name in names:
            assert walk.first(path.removeprefix(SERVICE), name) >= 0


def test_a_request_enters_few_files_and_moves_little(walk: Walk) -> None:
    """The bounds only ever go down."""
    assert len(walk.files) <= MOST_FILES
    assert walk.moves <= MOST_MOVES


def test_no_modules_of_the_service_import_each_other_in_a_circle() -> None:
    """Importing a module runs its packages too, so they count."""
    graph = {name: imported(path) - {name} for name, path in modules().items()}
    order = TopologicalSorter({name: found & graph.keys() for name, found in graph.items()})
    assert list(order.static_order())


def modules() -> dict[str, str]:
    """Return the path of every module of the service."""
    paths = (str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*.py"))
    return {
        path.removeprefix("service/")
        .removesuffix(".py")
        .removesuffix("/__init__")
        .replace("/", "."): path
        for path in paths
    }


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
