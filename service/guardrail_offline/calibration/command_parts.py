"""The parts that the commands under `guardrail calibrate` share: options, reading, writing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from guardrail_service.commands.console import command, out, plain, settings_from
from guardrail_service.errors import ConfigurationError, MissingExtra

if TYPE_CHECKING:
    from guardrail_service.policy.file import Serving

calibrate_app = typer.Typer(
    add_completion=False,
    help="Fit thresholds to human labels, with a known error rate.",
    no_args_is_help=True,
)
P = ParamSpec("P")

ScoredLabArgument = Annotated[
    Path, typer.Argument(help="Run folder of guardrail evaluate, or output of calibrate lab.")
]
LabelsOption = Annotated[
    Path, typer.Option("--labels", help="Labels: .jsonl, .csv, or a Label Studio export .json.")
]
Alpha = Annotated[
    float, typer.Option("--alpha", help="Largest share of good answers that may be flagged.")
]
Delta = Annotated[
    float, typer.Option("--delta", help="Chance, over labels, that the share is larger after all.")
]
Split = Annotated[
    float, typer.Option("--split", help="Share of questions that choose the method only.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of the random draws.")]
Adjudicator = Annotated[str, typer.Option("--adjudicator", help="Annotator whose word is final.")]
JudgedMetric = Annotated[
    str | None, typer.Option("--metric", help="EVALUATOR.METRIC; the first of a judge if unset.")
]
PassThreshold = Annotated[
    float | None,
    typer.Option("--threshold", help="Where scores pass; the metric's own if unset."),
]
LabelsAbout = Annotated[
    str | None,
    typer.Option("--about", help="Use labels about this metric, not the whole answer."),
]
THIRD = 1 / 3
_ESCAPED = "backslashreplace"


def calibrates(function: Callable[P, None]) -> Callable[P, None]:
    """Make a command of a function, and name what brings a library that is missing."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "scipy":
                raise MissingExtra("rag-guardrail-offline") from error
            raise

    return command(run)


def serving_at_hand(pack: str | None, config: Path | None = None) -> tuple[Serving, dict[str, Any]]:
    """Return what configurations are checked against, and the models by role.

    Args:
        pack: Name or folder of a model pack; None: the one of the settings.
        config: Guardrail JSON whose plug-ins may bring models of their own.
    """
    from guardrail_service.detectors.registry import REGISTRY
    from guardrail_service.policy.file import load_plugins_of
    from guardrail_service.server.runtime import pack_at_hand, serving_for

    if config is not None:
        load_plugins_of(config, REGISTRY)
    loaded = pack_at_hand(settings_from(model_pack=pack).model_pack)
    models: dict[str, Any] = {"pack": loaded.name}
    models |= {role: {"name": loaded.model_name(role)} for role in loaded.roles}
    return serving_for(loaded), models


def write(path: Path, data: str | bytes) -> None:
    """Write a file. A lone surrogate is written as JSON writes it: escaped.

    Raises:
        ConfigurationError: If it cannot be written.
    """
    try:
        path.write_bytes(data if isinstance(data, bytes) else data.encode(errors=_ESCAPED))
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise ConfigurationError(str(path), found, "a file to write to") from error


def say(sentences: Iterable[str]) -> None:
    """Print sentences, one a line, as they are."""
    for sentence in sentences:
        out.print(plain(sentence), highlight=False, soft_wrap=True)
