"""A distribution of somebody else's, as pip would have unpacked it, for tests of plug-ins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def unpack(
    folder: Path,
    name: str,
    points: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str],
) -> Path:
    """Write a distribution's modules and metadata into a folder of the import path.

    Args:
        folder: Where it goes.
        name: Of the distribution.
        points: By group, what each entry point's name stands for.
        modules: Sources by module name.
    """
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source, "utf-8")
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    lines = []
    for group, entries in points.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return folder
