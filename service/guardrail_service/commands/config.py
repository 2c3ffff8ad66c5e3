"""The commands under `guardrail config`: write, check, show, compare and modernise policy files.

They read files on disk. `GET /v1/policies` shows the policies that a running service has loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.table import Table

from guardrail_service.commands.console import (
    AsJson,
    PackOption,
    command,
    out,
    plain,
    settings_from,
)
from guardrail_service.commands.group import Commands
from guardrail_service.errors import ConfigurationError, choices

if TYPE_CHECKING:
    from guardrail_service.policy.decide import Policy
    from guardrail_service.policy.file import Loaded, Serving

SHIPPED = ("default", "strict", "observe")
SCHEMA = "guardrail.schema.json"
FileOrName = Annotated[
    str, typer.Argument(help="A guardrail JSON, or default, strict or observe: the shipped ones.")
]
config_app = typer.Typer(
    cls=Commands, help="Write, check, show and compare guardrail files.", no_args_is_help=True
)


@config_app.command("init")
@command
def config_init(
    file: Annotated[Path, typer.Argument(help="File to write; must not exist.")],
    base: Annotated[str, typer.Option(help="default, strict or observe.")] = "default",
    preset: Annotated[
        str | None, typer.Option(help="precise, balanced or sensitive; the base's if unset.")
    ] = None,
) -> None:
    """Write a guardrail file to start from: one of the shipped policies under the file's name."""
    from guardrail_service.policy.file_schema import PRESETS

    if preset is not None and preset not in PRESETS:
        raise ConfigurationError("--preset", repr(preset), choices(preset, PRESETS, "preset"))
    source = _path(base, "--base")
    content = json.loads(source.read_text("utf-8"))
    schema = source.parent / "schema" / SCHEMA
    content.pop("$schema", None)  # a path of this machine would mean nothing on another
    content["policy"] |= {"name": file.stem, "version": "1"}
    if preset is not None:
        content["policy"]["preset"] = preset
    _write_new(file, content)
    out.print(f"wrote {plain(str(file))}: policy {plain(file.stem)}, from {base}", soft_wrap=True)
    out.print(f"its JSON Schema, for editors: {plain(str(schema))}", soft_wrap=True)


@config_app.command("check")
@command
def config_check(
    files: Annotated[list[Path], typer.Argument(help="Guardrail JSONs.")],
    pack: PackOption = None,
    as_json: AsJson = False,
) -> None:
    """Validate guardrail configurations and say which detectors the pack cannot serve.

    Ends with 0 if every file can be served, 1 if a valid file names a detector that cannot,
    2 if a file is wrong.
    """
    from guardrail_service.policy.decide import describe
    from guardrail_service.policy.file import load_file

    serving = serving_at_hand(pack)
    loaded: list[Loaded] = [load_file(path, serving) for path in files]
    if as_json:
        report = [
            {
                "file": str(item.path),
                "policy": describe(item.policy),
                "unserved": {u.detector: u.reason for u in item.unserved},
            }
            for item in loaded
        ]
        out.print_json(json.dumps(report))
    else:
        for item in loaded:
            _print_policy(item.path, describe(item.policy))
            for missing in item.unserved:
                out.print(f"  [yellow]cannot serve[/yellow] {missing.detector}: {missing.reason}")
    raise typer.Exit(1 if any(item.unserved for item in loaded) else 0)


@config_app.command("show")
@command
def config_show(file: FileOrName, pack: PackOption = None) -> None:
    """Print everything a guardrail file means, as JSON: every default and preset filled in."""
    from guardrail_service.policy.difference import described

    out.print_json(json.dumps(described(_policy(file, serving_at_hand(pack)))))


@config_app.command("diff")
@command
def config_diff(
    old: FileOrName, new: FileOrName, pack: PackOption = None, as_json: AsJson = False
) -> None:
    """Show where two guardrail files differ in meaning, whatever form they are written in.

    Ends with 0 if they mean the same, 1 if they differ, 2 if one is wrong.
    """
    from guardrail_service.policy.difference import difference

    serving = serving_at_hand(pack)
    print_difference(difference(*(_policy(name, serving) for name in (old, new))), as_json=as_json)


def print_difference(changed: Mapping[str, Mapping[str, Any]], *, as_json: bool) -> NoReturn:
    """Print where two policies differ and end with 1, or with 0 where they do not."""
    if as_json:
        out.print_json(json.dumps(changed))
    elif changed:
        table = Table("key", "old", "new")
        for key, values in changed.items():
            table.add_row(plain(key), *(plain(json.dumps(values[side])) for side in ("old", "new")))
        out.print(table)
    else:
        out.print("both mean the same")
    raise typer.Exit(1 if changed else 0)


@config_app.command("upgrade")
@command
def config_upgrade(
    file: Annotated[Path, typer.Argument(help="Guardrail JSON to read.")],
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write here, not to standard output.")
    ] = None,
    pack: PackOption = None,
) -> None:
    """Write a guardrail file in today's form, with the same meaning.

    Meanings of missing scores become rules by detector and reason, and every detector's action
    is named. A calibrated file is left as it is: its promise covers the form, too.
    """
    from guardrail_service.policy.consequences import written_as_rules
    from guardrail_service.policy.file import load_file
    from guardrail_service.policy.file_schema import read_json

    loaded = load_file(file, serving_at_hand(pack))
    content = read_json(file)
    if content.get("calibration"):
        raise ConfigurationError(
            f"{file}: calibration", "a calibrated file", "one without; calibrate again instead"
        )
    rules = loaded.policy.rules
    block = content.setdefault("policy", {})
    block.setdefault("name", loaded.policy.name)
    for key in ("on_error", "on_timeout", "on_unverified"):
        block[key] = {name: written_as_rules(getattr(rule, key)) for name, rule in rules.items()}
    block["actions"] = {name: rule.action.label for name, rule in rules.items()}
    if output is None:
        typer.echo(_text(content), nl=False)
    else:
        _write_new(output, content)


def serving_at_hand(pack: str | None) -> Serving:
    """Return what files are checked against: the pack at hand, without loading a model."""
    from guardrail_service.inference.pack import load_pack, resolve
    from guardrail_service.resources import packs_dir
    from guardrail_service.server.runtime import serving_for

    return serving_for(load_pack(resolve(settings_from(model_pack=pack).model_pack, packs_dir())))


def _path(name: str, option: str) -> Path:
    """Return the file of a shipped policy by name."""
    from guardrail_service.resources import configs_dir

    if name not in SHIPPED:
        raise ConfigurationError(option, repr(name), choices(name, SHIPPED, "policy"))
    return configs_dir() / f"{name}.json"


def _policy(name: str, serving: Serving) -> Policy:
    from guardrail_service.policy.file import load_file

    shipped = name in SHIPPED and not Path(name).exists()
    path = _path(name, "FILE") if shipped else Path(name)
    return load_file(path, serving).policy


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _write_new(path: Path, content: dict[str, Any]) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(_text(content))
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise ConfigurationError(str(path), found, "a new file in a folder") from error


def _print_policy(path: Path, policy: dict[str, Any]) -> None:
    out.print(f"[green]valid[/green] {path}: policy {policy['name']}@{policy['version']}")
    for warning in policy["warnings"]:
        out.print(f"  [yellow]warning[/yellow] {plain(warning)}")
    if not policy["detectors"]:
        return
    table = Table("detector", "metric", "flags if", "threshold", "status", "action")
    for name, rule in policy["detectors"].items():
        for key, metric in rule["metrics"].items():
            if metric["threshold"] is not None:
                sign = "<" if metric["direction"] == "higher_is_better" else ">"
                cut = f"{metric['threshold']:.4g}"
                action = "report only" if rule["report_only"] else rule["action"]
                table.add_row(name, key, sign, cut, metric["status"], action)
    out.print(table)
