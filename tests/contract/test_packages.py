"""What the distributions need, bring and say, as their pyprojects and pinned lists have it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import entry_points, requires, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import guardrail_client
import guardrail_service
from guardrail_service.commands.group import DISTRIBUTIONS

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = {
    "rag-guardrail": ROOT,
    "rag-guardrail-client": ROOT / "guardrail_client",
    "rag-guardrail-decisions": ROOT / "service" / "guardrail_decisions",
    "rag-guardrail-offline": ROOT / "service" / "guardrail_offline",
    "rag-guardrail-models": ROOT / "models" / "guardrail_models",
    "rag-guardrail-bench": ROOT / "load_tests" / "guardrail_bench",
}
REQUIREMENTS = ROOT / "requirements"


@cache
def declared(distribution: str) -> dict[str, Any]:
    """Return the table of a pyproject that release.py reads."""
    text = (PROJECTS[distribution] / "pyproject.toml").read_text("utf-8")
    return dict(tomllib.loads(text)["tool"]["rag-guardrail"])


def name_of(requirement: str) -> str:
    """Return the package that a requirement names."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return found[0].lower()


def wanted(distribution: str, extra: str | None = None) -> set[str]:
    """Return the packages that a distribution, or one of its extras, asks for."""
    table = declared(distribution)
    return {name_of(r) for r in (table["extras"][extra] if extra else table["dependencies"])}


def listed(file: str) -> set[str]:
    """Return the packages that a list of requirements names itself."""
    lines = (REQUIREMENTS / file).read_text("utf-8").splitlines()
    return {name_of(line) for line in lines if re.match(r"[A-Za-z0-9]", line)}


@pytest.mark.parametrize(
    ("package", "place"),
    [
        *((name, "rag-guardrail") for name in ("fastapi", "uvicorn", "pydantic", "onnxruntime")),
        ("prometheus-client", "rag-guardrail"),
        *((name, "export") for name in ("optimum", "transformers", "detoxify")),
        ("sentence-transformers", "export"),
        ("pytest", "dev.in"),
        ("locust", "load.in"),
    ],
)
def test_every_package_that_was_asked_for_is_named(package: str, place: str) -> None:
    """The service's in its pyproject, the export's in an extra, the tests' in their lists."""
    if place.endswith(".in"):
        assert package in listed(place)
    elif place == "export":
        assert package in wanted("rag-guardrail-models", "export")
    else:
        assert package in wanted(place)


def test_one_file_says_the_version() -> None:
    """Every distribution, `__version__` and the User-Agent follow it."""
    released = (ROOT / "VERSION").read_text("utf-8").strip()
    assert {name: version(name) for name in PROJECTS} == dict.fromkeys(PROJECTS, released)
    assert guardrail_service.__version__ == guardrail_client.__version__ == released
    for folder in PROJECTS.values():
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        assert "version" in project["dynamic"]


@pytest.mark.parametrize("name", PROJECTS)
def test_our_distributions_pin_each_other_exactly(name: str) -> None:
    """Parts of two releases are never mixed."""
    released = version(name)
    ours = [r for r in requires(name) or [] if r.startswith("rag-guardrail")]
    assert all(f"=={released}" in r for r in ours)
    assert bool(ours) == (name != "rag-guardrail-client")


def test_integrations_bring_the_client_and_what_is_tried() -> None:
    """In ranges that hold the versions of `.ci/adapters`; only the pins are ours."""
    folder = ROOT / "guardrail_client" / "integrations" / "distribution"
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    table = project["tool"]["rag-guardrail"]
    assert project["project"]["name"] == "rag-guardrail-integrations"
    assert table["dependencies"] == ["rag-guardrail-client=={version}"]
    assert table["extras"].pop("proxy") == ["rag-guardrail=={version}"]
    tried = (REQUIREMENTS / "adapters.txt").read_text("utf-8")
    for (needed,) in table["extras"].values():
        asked = Requirement(needed)
        versions = re.findall(rf"^{asked.name}==(\S+)", tried, re.MULTILINE)
        assert versions
        assert all(map(asked.specifier.contains, versions))
    modules = (folder.parent).glob("*.py")
    named = {
        found for m in modules for found in re.findall(r'needs\("(\w+)"', m.read_text("utf-8"))
    }
    assert named <= table["extras"].keys()


@pytest.mark.parametrize(
    ("file", "distributions"),
    [
        ("runtime", ["rag-guardrail", "rag-guardrail-client"]),
        ("demo", ["rag-guardrail", "rag-guardrail-client", "rag-guardrail-offline"]),
        ("demo", ["rag-guardrail-decisions", "rag-guardrail-bench"]),
    ],
)
def test_a_pinned_list_has_what_the_pyprojects_ask_for(file: str, distributions: list[str]) -> None:
    """So that a dependency that is added is installed by `make demo`."""
    needed = {n for d in distributions for n in wanted(d) if not n.startswith("rag-guardrail")}
    assert needed <= listed(f"{file}.txt")


def test_the_image_holds_what_serves_only() -> None:
    """No training library, no offline library, nothing that downloads."""
    pinned = listed("runtime.txt")
    assert pinned < listed("demo.txt") < listed("dev.txt")
    strangers = {"torch", "transformers", "optimum", "scipy", "pyarrow", "matplotlib", "locust"}
    assert not pinned & (strangers | listed("without.txt"))
    assert listed("without.txt").isdisjoint(listed("dev.txt"))


@pytest.mark.parametrize("path", sorted(REQUIREMENTS.iterdir()), ids=lambda path: path.name)
def test_no_list_names_an_index(path: Path) -> None:
    """Where packages come from is the machine's business."""
    assert "://" not in path.read_text("utf-8")


def test_make_notices_changes_of_every_pyproject() -> None:
    """A change of what is installed installs again."""
    shown = subprocess.run(
        ["make", "--print-data-base", "--question", ".venv/.demo"],  # noqa: S607 - the system's
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (rule,) = (line for line in shown.stdout.splitlines() if line.startswith(".venv/.demo:"))
    for folder in PROJECTS.values():
        assert str((folder / "pyproject.toml").relative_to(ROOT)) in rule.split()
    assert {"VERSION", "release.py", "requirements/demo.txt"} <= set(rule.split())


def test_every_command_of_another_distribution_is_brought_by_the_one_that_is_named() -> None:
    """A missing one is answered with the name of what to install."""
    points = entry_points(group="rag_guardrail.commands")
    brought = {point.name: point.dist.name for point in points if point.dist is not None}
    ours = {name: by for name, by in brought.items() if by in PROJECTS}
    assert ours.keys() == DISTRIBUTIONS.keys()
    for name, by in ours.items():
        assert by == DISTRIBUTIONS[name] or by == "rag-guardrail-bench"


def test_serving_imports_nothing_of_the_other_distributions() -> None:
    """Not the offline module, not what it needs, not the commands that are installed beside."""
    code = """
import sys
from guardrail_service.commands.main import app
from guardrail_service.server import serve
from guardrail_service.server.app import create_app
from guardrail_service.server.runtime import Runtime

def load(settings):
    create_app(runtime=Runtime(settings))
    print(sorted({name.split('.')[0] for name in sys.modules}))

serve.serve = load
app(['serve'])
"""
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    others = {"guardrail_offline", "guardrail_models", "guardrail_bench", "guardrail_client"}
    others |= {"guardrail_decisions", "sqlalchemy", "alembic", "cryptography"}
    others |= {"scipy", "pyarrow", "matplotlib", "pandas", "sklearn", "torch", "transformers"}
    assert "'onnxruntime'" in shown
    assert not [name for name in others if f"'{name}'" in shown]


def test_every_file_of_weights_is_in_the_wheel() -> None:
    """What a detector reads beside its code is named among the package's data."""
    with (ROOT / "pyproject.toml").open("rb") as stream:
        named = tomllib.load(stream)["tool"]["setuptools"]["package-data"]["guardrail_service"]
    package = ROOT / "service" / "guardrail_service"
    found = {str(path.relative_to(package)) for path in (package / "detectors").rglob("*.json")}
    assert found
    assert found <= set(named)
