"""The parts of SR 11-7 and of the NIST AI RMF that a report and its evaluators speak to."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    "sr11-7:conceptual-soundness": "SR 11-7 conceptual soundness",
    "sr11-7:ongoing-monitoring": "SR 11-7 ongoing monitoring",
    "sr11-7:outcomes-analysis": "SR 11-7 outcomes analysis",
    "sr11-7:backtesting": "SR 11-7 back-testing",
    "sr11-7:development": "SR 11-7 development, implementation and use",
    "sr11-7:validation": "SR 11-7 validation",
    "sr11-7:governance": "SR 11-7 governance, policies and controls",
    "nist:valid-reliable": "NIST valid and reliable",
    "nist:safe": "NIST safe",
    "nist:secure-resilient": "NIST secure and resilient",
    "nist:accountable-transparent": "NIST accountable and transparent",
    "nist:explainable": "NIST explainable and interpretable",
    "nist:privacy-enhanced": "NIST privacy-enhanced",
    "nist:fair": "NIST fair, with harmful bias managed",
    "nist:govern": "NIST function Govern",
    "nist:map": "NIST function Map",
    "nist:measure": "NIST function Measure",
    "nist:manage": "NIST function Manage",
}
"""Tags in words. SR 11-7 is the Federal Reserve's letter on model risk management of 4 April 2011;
the AI RMF is NIST AI 100-1 of January 2023."""


def in_words(tag: str) -> str:
    """Return a tag in words; one that is not known as it is."""
    return WORDS.get(tag, tag)
