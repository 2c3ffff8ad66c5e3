"""Loads what installed distributions bring by entry points, and only when it is named.

    rag_guardrail.detectors    a Detector class
    rag_guardrail.evaluators   an Evaluator class of guardrail_offline
    rag_guardrail.sessions     a kind of model session
    rag_guardrail.decision_stores  opens a store of decisions; named after the scheme of its URL
    rag_guardrail.commands     a typer.Typer or a function

An entry point of the first two groups has the id of its class as its name, so that looking a name
up runs no code of anybody else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract
from typing import Any, Literal, Protocol, TypeVar

from guardrail_service.errors import PluginError

Group = Literal[
    "rag_guardrail.detectors",
    "rag_guardrail.evaluators",
    "rag_guardrail.sessions",
    "rag_guardrail.commands",
    "rag_guardrail.decision_stores",
]
DETECTORS: Group = "rag_guardrail.detectors"
EVALUATORS: Group = "rag_guardrail.evaluators"
SESSIONS: Group = "rag_guardrail.sessions"
COMMANDS: Group = "rag_guardrail.commands"
DECISION_STORES: Group = "rag_guardrail.decision_stores"


class Spec(Protocol):
    """The description a class gives of itself; detectors and evaluators have such specs."""

    @property
    def id(self) -> str:
        """Return the id."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the id and its aliases: everything a configuration may call it."""


T = TypeVar("T")


def installed(group: Group) -> Mapping[str, list[EntryPoint]]:
    """Return a group's entry points by name, without importing any of them."""
    found: defaultdict[str, list[EntryPoint]] = defaultdict(list)
    for point in entry_points(group=group):
        found[point.name].append(point)
    return {name: found[name] for name in sorted(found)}


def load(group: Group, name: str) -> Any:
    """Return what an entry point stands for.

    Raises:
        PluginError: If no distribution brings the name, several do, or it does not import.
    """
    points = installed(group).get(name, [])
    if len(points) != 1:
        found = ", ".join(sorted(_origin(point) for point in points)) or "none"
        raise PluginError(name, group, found, "one distribution that brings it")
    try:
        return points[0].load()
    except (Exception, SystemExit) as error:
        found = f"{type(error).__name__} on import of {points[0].value}"
        raise PluginError(name, group, found, "a module that imports") from error


def load_class(group: Group, name: str, base: type[T], spec_class: type[Spec]) -> type[T]:
    """Return the finished subclass of `base` that an entry point stands for.

    Raises:
        PluginError: If it cannot be loaded, is something else, or has another id.
    """
    loaded = load(group, name)
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise PluginError(name, group, type(loaded).__name__, f"a {base.__name__} class")
    spec = getattr(loaded, "spec", None)
    if not isinstance(spec, spec_class) or isabstract(loaded):
        abstract = getattr(loaded, "__abstractmethods__", ())
        methods = "".join(f" and `{method}`" for method in sorted(abstract))
        raise PluginError(name, group, "an unfinished class", f"one with `spec`{methods}")
    if spec.id != name:
        raise PluginError(name, group, f"spec.id {spec.id!r}", "the entry point's own name")
    return loaded


def named_classes(
    group: Group,
    base: type[T],
    spec_class: type[Spec],
    wanted: Collection[str],
    known: Collection[str],
) -> Iterator[type[T]]:
    """Yield the plugged-in classes that `wanted` asks for.

    An entry point's name is looked up first. An alias, which has a dot or a colon in it, is known
    only to the class, so the plug-ins that nobody named are imported until it is found. One of
    those that does not import is passed over.

    Args:
        group: Where to look.
        base: What each has to be.
        spec_class: What its `spec` has to be.
        wanted: Ids and aliases.
        known: The ids and aliases that need no plug-in, and the plug-ins that are loaded.

    Raises:
        PluginError: If one that is asked for by its id cannot be loaded.
    """
    rest = []
    for name in installed(group):
        if name in wanted:
            yield load_class(group, name, base, spec_class)
        elif name not in known:
            rest.append(name)
    aliases = {name for name in wanted if "." in name or ":" in name} - set(known)
    for name in rest:
        if not aliases:
            return
        try:
            found = load_class(group, name, base, spec_class)
        except PluginError:
            continue
        if taken := aliases.intersection(found.spec.names):  # type: ignore[attr-defined]
            aliases -= taken
            yield found


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
