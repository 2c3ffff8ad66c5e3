"""Resolves our distributions, with all their extras, from wheels alone for systems not at hand.

    python requirements/resolution.py      prints a table; ends with 1 if one cannot be installed

Needs uv beside the interpreter that runs this, or on the path. Packages come from where pip gets
them. Nothing is installed, and nothing says that it would run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SYSTEMS = {
    "Linux x86-64": "x86_64-manylinux_2_28",
    "Linux ARM64": "aarch64-manylinux_2_28",
    "macOS 14 ARM64": "aarch64-apple-darwin",
    "Windows x86-64": "x86_64-pc-windows-msvc",
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
WITH_HYPERSCAN = frozenset({"Linux x86-64", "Linux ARM64"})
"""Elsewhere patterns are found by keywords; the markers in pyproject.toml say so."""
OWN = re.compile(r"(rag-guardrail[a-z-]*)(?:\[([a-z,]+)\])?==\{version\}")
Declared = dict[str, dict[str, Any]]


class Resolved(NamedTuple):
    """A distribution on one system and Python: its pins, or why there are none."""

    name: str
    system: str
    python: str
    pins: str
    reason: str


def declared() -> Declared:
    """Return the table `[tool.rag-guardrail]` of each of our distributions."""
    found = {}
    for path in sorted(ROOT.glob("**/pyproject.toml")):
        if path.is_relative_to(ROOT / ".venv"):
            continue
        content = tomllib.loads(path.read_text("utf-8"))
        if "rag-guardrail" in content.get("tool", {}):
            found[content["project"]["name"]] = content["tool"]["rag-guardrail"]
    return found


def wanted(name: str, extras: list[str], all_declared: Declared) -> Iterator[str]:
    """Yield what others have to provide for a distribution with some extras."""
    own = all_declared[name]
    lists = [own["dependencies"], *(own["extras"][extra] for extra in extras)]
    for requirement in (one for some in lists for one in some):
        if match := OWN.fullmatch(requirement):
            yield from wanted(match[1], match[2].split(",") if match[2] else [], all_declared)
        else:
            yield requirement


def resolved(name: str, system: str, python: str, requirements: str) -> Resolved:
    """Return what uv makes of requirements on a system."""
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    command = [
        *(uv or "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"),
        *("--no-python-downloads", "--python", sys.executable),
        *("--python-platform", SYSTEMS[system], "--python-version", python),
        *("--only-binary", ":all:", "-"),
    ]
    environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"}
    if index := os.environ.get("UV_DEFAULT_INDEX") or pips_index():
        environment["UV_DEFAULT_INDEX"] = index
    done = subprocess.run(  # noqa: S603 - uv, with words of this file
        command, input=requirements, text=True, capture_output=True, env=environment, check=False
    )
    reason = "" if done.returncode == 0 else done.stderr.strip()
    if not reason and ("hyperscan==" in done.stdout) != (
        "hyperscan" in requirements and system in WITH_HYPERSCAN
    ):
        reason = f"hyperscan is there: {'hyperscan==' in done.stdout}"
    return Resolved(name, system, python, done.stdout, reason)


def pips_index() -> str:
    """Return the index that pip is configured with, or nothing."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)  # noqa: S603
    return done.stdout.strip() if done.returncode == 0 else ""


def main() -> int:
    """Print a table and every reason; return the exit status."""
    known = declared()
    texts = {
        name: "\n".join(sorted(set(wanted(name, list(own.get("extras", {})), known))))
        for name, own in known.items()
    }
    jobs = [(name, system, python) for name in texts for system in SYSTEMS for python in PYTHONS]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda job: resolved(*job, texts[job[0]]), jobs))
    print(f"| with all extras | {' | '.join(SYSTEMS)} |")
    print("| --- " * (len(SYSTEMS) + 1) + "|")
    for name in texts:
        cells = []
        for system in SYSTEMS:
            some = [one for one in found if (one.name, one.system) == (name, system)]
            good = [one.python for one in some if not one.reason]
            whole = f"{PYTHONS[0]} to {PYTHONS[-1]}"
            cells.append(whole if len(good) == len(PYTHONS) else ", ".join(good) or "none")
        print(f"| `{name}` | {' | '.join(cells)} |")
    failed = [one for one in found if one.reason]
    for one in failed:
        print(f"\n{one.name}, {one.system}, Python {one.python}: {one.reason}")
    print(f"\n{len(found) - len(failed)} of {len(found)} resolve from wheels")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
