"""The commands under `guardrail policies`: the versions of a deployment, and which of them decides.

They change a folder; a running service that serves it takes a change over by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from guardrail_service.commands.config import print_difference, serving_at_hand
from guardrail_service.commands.console import AsJson, PackOption, command, out, plain
from guardrail_service.commands.group import Commands
from guardrail_service.errors import ConfigurationError

if TYPE_CHECKING:
    from guardrail_service.policy.decide import Policy
    from guardrail_service.policy.file import Serving
    from guardrail_service.policy.versions import LedgerLine, PolicyFolder, PolicyVersion

policies_app = typer.Typer(
    cls=Commands,
    help="List, compare, promote and roll back the versions of a deployment's policies.",
    no_args_is_help=True,
)
Folder = Annotated[
    Path,
    typer.Option("--folder", envvar="GUARDRAIL_POLICIES", help="Folder of policies in versions."),
]
PolicyName = Annotated[str, typer.Argument(help="Name of the policy.")]
Address = Annotated[str, typer.Argument(help="A version: NAME@VERSION, or NAME for the live one.")]
Why = Annotated[str, typer.Option(help="A remark for the ledger.")]
By = Annotated[str | None, typer.Option(help="Who does it; the user of the system if unset.")]


@policies_app.command("list")
@command
def policies_list(folder: Folder, as_json: AsJson = False) -> None:
    """List every version of every policy: which is live, on trial or in the shadow."""
    from guardrail_service.policy.versions import read_folder

    found = read_folder(folder)
    if as_json:
        out.print_json(json.dumps([_as_json(policy) for policy in found]))
        return
    table = Table("version", "part", "added", "by", "why", "file sha256", "policy sha256")
    for policy in found:
        for version in policy.versions.values():
            cells = (version.address, _part(policy, version.version), version.at, version.by)
            hashes = (version.sha256[:12], (_policy_sha256(version) or "unreadable")[:12])
            table.add_row(*(plain(c) for c in (*cells, version.why, *hashes)))
    out.print(table)


@policies_app.command("show")
@command
def policies_show(address: Address, folder: Folder, pack: PackOption = None) -> None:
    """Print everything a version means, as JSON: every default and preset filled in."""
    from guardrail_service.policy.difference import described

    version = _version(folder, address)
    shown = described(_load(folder, address, serving_at_hand(pack)))
    hashes = {"file sha256": version.sha256, "policy sha256": shown["sha256"]}
    out.print_json(json.dumps({**shown, **hashes}))


@policies_app.command("diff")
@command
def policies_diff(
    old: Address, new: Address, folder: Folder, pack: PackOption = None, as_json: AsJson = False
) -> None:
    """Show where two versions differ in meaning, as `config diff` does for files.

    Ends with 0 if they mean the same, 1 if they differ, 2 if one is wrong.
    """
    from guardrail_service.policy.difference import difference

    serving = serving_at_hand(pack)
    changed = difference(*(_load(folder, address, serving) for address in (old, new)))
    print_difference(changed, as_json=as_json)


@policies_app.command("add")
@command
def policies_add(
    file: Annotated[Path, typer.Argument(help="Guardrail JSON to add as the next version.")],
    folder: Folder,
    name: Annotated[
        str | None, typer.Option(help="Name of the policy; the file's if unset.")
    ] = None,
    why: Why = "",
    by: By = None,
    pack: PackOption = None,
) -> None:
    """Add a guardrail JSON as the next version of a policy. It decides nothing until promoted."""
    from guardrail_service.policy.file_schema import parse
    from guardrail_service.policy.versions import add_version

    own = name or parse(file).policy.name or file.stem
    check = _check(pack)
    added = add_version(folder, file, name=own, why=why, by=by, check=check)
    word = "added" if added.is_new else "already"
    shown = f"{word} {plain(own)}@{added.version}, file sha256 {added.sha256[:12]}"
    out.print(shown, soft_wrap=True)


@policies_app.command("promote")
@command
def policies_promote(
    address: Annotated[str, typer.Argument(help="The version: NAME@VERSION.")],
    folder: Folder,
    why: Why = "",
    by: By = None,
    pack: PackOption = None,
) -> None:
    """Make a version live. Requests in work end under the one that they began with."""
    from guardrail_service.policy.versions import promote

    name, version = _split(address)
    _say(name, promote(folder, name, version, why=why, by=by, check=_check(pack)))


@policies_app.command("rollback")
@command
def policies_rollback(
    name: PolicyName, folder: Folder, why: Why = "", by: By = None, pack: PackOption = None
) -> None:
    """Make the version live again that was live before; called again, the one before that."""
    from guardrail_service.policy.versions import rollback

    _say(name, rollback(folder, name, why=why, by=by, check=_check(pack)))


@policies_app.command("shadow")
@command
def policies_shadow(
    address: Annotated[
        str, typer.Argument(help="The policy, NAME, or a version of it, NAME@VERSION.")
    ],
    folder: Folder,
    versions: Annotated[
        list[str] | None,
        typer.Argument(help="Versions to judge in the shadow, with that one; none ends it."),
    ] = None,
    why: Why = "",
    by: By = None,
    pack: PackOption = None,
) -> None:
    """Let versions judge what the live one judges, on the same model rows, and decide nothing."""
    from guardrail_service.policy.versions import set_shadow

    name, _, version = address.partition("@")
    chosen = (*([version] if version else []), *(versions or ()))
    line = set_shadow(folder, name, chosen, why=why, by=by, check=_check(pack))
    shown = ", ".join(line.shadow) or "no version"
    out.print(f"{plain(name)}: {shown} in the shadow", soft_wrap=True)


@policies_app.command("canary")
@command
def policies_canary(
    address: Annotated[str, typer.Argument(help="The version on trial; NAME alone ends it.")],
    folder: Folder,
    share: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of the callers, above 0.")
    ] = 0.1,
    why: Why = "",
    by: By = None,
    pack: PackOption = None,
) -> None:
    """Let a version decide for a share of the callers, always the same ones."""
    from guardrail_service.policy.versions import set_canary

    name, _, version = address.partition("@")
    given = (version or None, share if version else 0.0)
    line = set_canary(folder, name, *given, why=why, by=by, check=_check(pack))
    told = f"{line.version} decides for {line.share:.0%} of callers" if version else "no trial"
    out.print(f"{plain(name)}: {told}", soft_wrap=True)


def _split(address: str) -> tuple[str, str]:
    name, _, version = address.partition("@")
    if not version:
        raise ConfigurationError("ADDRESS", repr(address), "NAME@VERSION, such as support@3")
    return name, version


def _load(folder: Path, address: str, serving: Serving) -> Policy:
    """Return the policy of a version."""
    from guardrail_service.policy.file import load_file
    from guardrail_service.policy.versions import checked_path

    return load_file(checked_path(_version(folder, address)), serving).policy


def _version(folder: Path, address: str) -> PolicyVersion:
    from guardrail_service.policy.versions import read_policy

    name, _, version = address.partition("@")
    policy = read_policy(folder, name)
    if not version and policy.alias.live is None:
        found, expected = "no version", "a policy that was promoted, or NAME@VERSION"
        raise ConfigurationError(f"{policy.path}: live", found, expected)
    return policy.version(version or str(policy.alias.live))


def _policy_sha256(version: PolicyVersion) -> str | None:
    """Return the hash that replies have; None if the file is not as it was added."""
    from guardrail_service.policy.file_schema import content_of, parse
    from guardrail_service.policy.provenance import sha256_of
    from guardrail_service.policy.versions import checked_path

    try:
        return sha256_of(content_of(parse(checked_path(version))))
    except ConfigurationError:
        return None


def _check(pack: str | None) -> Callable[[Path], object]:
    """Return what refuses a file that the service could not load either."""
    from guardrail_service.policy.file import load_served

    serving = serving_at_hand(pack)
    return lambda path: load_served(path, serving)


def _say(name: str, line: LedgerLine) -> None:
    out.print(f"{plain(name)}@{line.version} is live ({line.event} by {plain(line.by)})")


def _part(policy: PolicyFolder, number: str) -> str:
    alias = policy.alias
    parts = ["live"] if alias.live == number else []
    if alias.canary is not None and alias.canary.version == number:
        parts.append(f"canary {alias.canary.share:.0%}")
    if number in alias.shadow:
        parts.append("shadow")
    return ", ".join(parts)


def _as_json(policy: PolicyFolder) -> dict[str, Any]:
    return {
        "name": policy.name,
        **policy.alias.model_dump(mode="json"),
        "versions": [
            {"version": v.version, "at": v.at, "by": v.by, "why": v.why, "sha256": v.sha256}
            for v in policy.versions.values()
        ],
        "changes": [line.model_dump(mode="json", exclude_defaults=True) for line in policy.lines],
    }
