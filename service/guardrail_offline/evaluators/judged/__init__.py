"""Evaluators by a judge: one file per family, each with its prompts, versions and schemas.

A form asks and then computes. Its questions go through `Asking`, which counts; its formula is that
of the form without a judge. Importing the package registers every form.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _module in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")
