"""One file per family of evaluators. Importing the package registers those of every file in it.

A new evaluator is a new file here: nothing lists them. Code that several evaluators use is in
`shared/`; `catalogue`, `case_view`, `pack_models`, `configured` and `description` say what an
evaluator is, what it reads and what it needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules


def import_all(folders: Iterable[str]) -> None:
    """Import every module of some folders of this package, in the order of their names."""
    for name in sorted(module.name for module in iter_modules(folders) if not module.ispkg):
        import_module(f"{__name__}.{name}")


import_all(__path__)
