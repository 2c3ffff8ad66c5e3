"""`guardrail decisions sample` and `labels`: stored decisions to people and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardrail_decisions.commands import (
    CallerOption,
    KeysFile,
    PolicyOption,
    Since,
    Until,
    Url,
    moment,
    opened,
)
from guardrail_service.commands.console import command, out, plain


@command
def decisions_sample(
    folder: Annotated[Path, typer.Option("--out", help="New folder; it holds texts in clear.")],
    viewer: Annotated[str, typer.Option(help="Who sees the texts; the store notes it.")],
    flagged: Annotated[int, typer.Option(min=0, help="Flagged decisions to draw.")] = 50,
    random: Annotated[int, typer.Option(min=0, help="Decisions that passed to draw.")] = 100,
    seed: Annotated[int, typer.Option(help="Which draw.")] = 7,
    policy: PolicyOption = None,
    caller: CallerOption = None,
    since: Since = None,
    until: Until = None,
    url: Url = None,
    keys_file: KeysFile = None,
) -> None:
    """Draw decisions for people to label, with known probabilities, into files for calibrate."""
    from guardrail_decisions.reading import Filters
    from guardrail_offline.production.drawing import LAB, LABELS, SAMPLE, draw_sample

    filters = Filters(moment(since, "--since"), moment(until, "--until"), policy, caller=caller)
    with opened(url, keys_file) as store:
        draw = draw_sample(
            store, folder, viewer, flagged=flagged, random=random, seed=seed, filters=filters
        )
    for name, stratum in draw.strata.items():
        out.print(f"{name}: {stratum.drawn} of {stratum.stored} questions")
    out.print(f"one decision a question, of {draw.decisions} stored decisions")
    if draw.unknown:
        out.print(f"{draw.unknown} decisions without a question count as one question each")
    fit = f"guardrail calibrate fit {folder / LAB} --labels {folder / LABELS}"
    out.print(plain(f"then: {fit} --sample {folder / SAMPLE}"), soft_wrap=True)


@command
def decisions_labels(
    folder: Annotated[Path, typer.Argument(help="A folder of `guardrail decisions sample`.")],
    url: Url = None,
    keys_file: KeysFile = None,
) -> None:
    """Store the labels of a drawn folder as feedback, and add feedback on its cases to them."""
    from guardrail_offline.production.drawing import exchange

    with opened(url, keys_file) as store:
        stored, added = exchange(store, folder)
    out.print(f"{stored} labels stored, {added} words of the store added to the labels")
