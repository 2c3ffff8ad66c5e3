"""One file or folder per risk; importing this package registers the built-in detectors.

A new detector is a new file here, or a new folder with a `detector.py`: nothing lists them.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules


def import_all(folders: Iterable[str]) -> None:
    """Import every detector in some folders of this package, in the order of their names."""
    for module in sorted(iter_modules(folders), key=lambda found: found.name):
        name = f"{__name__}.{module.name}"
        if not module.ispkg:
            import_module(name)
        elif any((Path(folder) / module.name / "detector.py").is_file() for folder in folders):
            import_module(f"{name}.detector")


import_all(__path__)
