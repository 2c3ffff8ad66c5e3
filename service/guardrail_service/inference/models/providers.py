"""Execution providers of onnxruntime: their names there, their options, and what brings them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import onnxruntime as ort

from guardrail_service.errors import ConfigurationError
from guardrail_service.types import OtherProvider, Provider

CPU = "CPUExecutionProvider"
"""Also computes what another provider has no kernel for."""


class _Known(NamedTuple):
    """A provider as onnxruntime knows it, and what to do where a build lacks it."""

    name: str
    options: Mapping[str, str]
    remedy: str


_KNOWN: Mapping[OtherProvider, _Known] = {
    # TF32 keeps ten bits of each factor: scores would be further from the golden rows.
    "cuda": _Known(
        "CUDAExecutionProvider", {"use_tf32": "0"}, "onnxruntime-gpu in place of onnxruntime"
    ),
    # One thread, as on the CPU: rows run side by side.
    "openvino": _Known(
        "OpenVINOExecutionProvider",
        {"device_type": "CPU", "num_of_threads": "1"},
        "onnxruntime-openvino in place of onnxruntime",
    ),
    "dnnl": _Known(
        "DnnlExecutionProvider", {}, "a build of onnxruntime with --use_dnnl; PyPI has none"
    ),
    "coreml": _Known("CoreMLExecutionProvider", {}, "onnxruntime on macOS"),
}


def execution_providers(provider: Provider) -> list[str | tuple[str, dict[str, Any]]]:
    """Return what a session is opened with.

    Raises:
        ConfigurationError: If this build of onnxruntime lacks the provider; says what to install.
    """
    if provider == "cpu":
        return [CPU]
    known = _KNOWN[provider]
    if known.name not in ort.get_available_providers():
        has = [name for name, one in _KNOWN.items() if one.name in ort.get_available_providers()]
        raise ConfigurationError(
            "GUARDRAIL_PROVIDERS",
            f"{provider}, which onnxruntime {ort.__version__} here does not bring "
            f"(it has {', '.join(('cpu', *has))})",
            f"one that is there, or {known.remedy}",
        )
    return [(known.name, dict(known.options)), CPU]


def refuse_other(opened: Sequence[str], provider: Provider) -> None:
    """Raise ConfigurationError if a session runs without the provider it was opened with.

    onnxruntime falls back to the CPU where a driver or a library of the provider is missing.
    """
    if provider != "cpu" and _KNOWN[provider].name not in opened:
        raise ConfigurationError(
            "GUARDRAIL_PROVIDERS",
            f"{provider}, which onnxruntime {ort.__version__} brings but could not start",
            "its driver and libraries (the lines above say which), or cpu",
        )
