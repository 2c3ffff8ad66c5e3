"""The setup.py of every distribution calls this: one version, exact pins, files from elsewhere.

`VERSION` is the only place that names a version. A pyproject writes `{version}` in pins between our
own distributions; its table `[tool.rag-guardrail]` also says which files of the checkout travel in
the wheel. Wheels are built from a checkout; there are no source archives.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent


def version() -> str:
    """Return the version of all our distributions."""
    return (ROOT / "VERSION").read_text("utf-8").strip()


def distribution(folder: Path) -> None:
    """Set up the distribution whose pyproject.toml lies in a folder."""
    declared = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["tool"][
        "rag-guardrail"
    ]
    extras = {name: _pinned(wanted) for name, wanted in declared.get("extras", {}).items()}
    setup(
        version=version(),
        **_packages(folder),
        install_requires=_pinned(declared["dependencies"]),
        **({"extras_require": extras} if extras else {}),
        cmdclass={"build_py": _with_files(declared.get("files", {}))},
        options={"build": {"build_base": _empty_folder()}},
    )


def _empty_folder() -> str:
    """Return a folder to build in; in one that stays, gone modules would live on in wheels."""
    folder = tempfile.mkdtemp(prefix="rag-guardrail-build-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _packages(folder: Path) -> dict[str, Any]:
    """Return the packages of a folder that is a package itself; others name theirs."""
    if not (folder / "__init__.py").exists():
        return {}
    top = folder.name
    found = (init.parent.relative_to(folder) for init in folder.rglob("__init__.py"))
    packages = sorted(".".join((top, *path.parts)) for path in found)
    return {"packages": packages, "package_dir": {top: "."}}


def _pinned(requirements: list[str]) -> list[str]:
    return [requirement.format(version=version()) for requirement in requirements]


def _with_files(files: dict[str, str]) -> type[build_py]:
    """Return a build step that also copies files of the checkout into the wheel."""

    class BuildWithFiles(build_py):
        def run(self) -> None:
            super().run()
            if self.editable_mode:  # the checkout itself is read then
                return
            for source, target in files.items():
                _copy(ROOT / source, Path(self.build_lib) / target)

        def get_outputs(self, include_bytecode: bool = True) -> list[Any]:
            lib = Path(self.build_lib)
            brought = [p for target in files.values() for p in _files(lib / target)]
            return [*super().get_outputs(include_bytecode), *map(str, brought)]

    return BuildWithFiles


def _copy(source: Path, target: Path) -> None:
    if not source.exists():
        raise FileNotFoundError(f"{source} belongs in the wheel")
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=ignored)
    else:
        shutil.copyfile(source, target)


def _files(path: Path) -> list[Path]:
    return [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
