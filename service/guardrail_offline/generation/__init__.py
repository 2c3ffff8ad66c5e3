"""Test generation: documents to checked test cases.

The names are imported when they are asked for: the command line prints its help without them.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "source_documents": ("SourceDocument", "ReadLimits", "read_documents"),
    "chunks": ("DocumentChunk", "chunks_of"),
    "generated": ("GeneratedCase", "SourceSpan", "to_case"),
    "generators": (
        "ADVERSARIAL_GENERATORS",
        "DEFAULT_GENERATORS",
        "GENERATORS",
        "Generated",
        "GenerationOptions",
        "GeneratorSpec",
        "generate",
        "named_generators",
    ),
    "validation": ("Rejected", "Validated", "ValidationThresholds", "validate"),
    "coverage": ("coverage_of", "coverage_picture"),
    "lab": ("GeneratedLab", "generate_lab", "write_generated"),
    "library": ("SUITES", "LibrarySuite", "library_cases", "library_lab"),
}
_FILE_OF = {name: file for file, names in _HOMES.items() for name in names}
__all__ = sorted(_FILE_OF)


def __getattr__(name: str) -> Any:
    """Return a public name from the file it stands in."""
    if name not in _FILE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
