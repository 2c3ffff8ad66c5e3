"""The registry: no duplicates, no silent gaps, plug-ins that fail stop start-up."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from guardrail_service import plugins
from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    MetricSpec,
    Parameters,
    Registry,
)
from guardrail_service.errors import ConfigurationError
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Direction, Outcome, RowOutput


def spec(name: str, *aliases: str) -> DetectorSpec:
    """Return a spec with one metric."""
    return DetectorSpec(
        id=name,
        aliases=aliases,
        summary="A made-up risk.",
        metrics=(MetricSpec("good", Direction.HIGHER, gating=True),),
        inputs=frozenset({"answer"}),
    )


def detector(name: str, *aliases: str) -> type[Detector[Parameters]]:
    """Return a detector class."""

    class Made(Detector[Parameters]):
        """Always passes."""

        parameters = Parameters

        def reduce(
            self, sample: SegmentedSample, outputs: Sequence[RowOutput], parameters: Parameters
        ) -> Outcome:
            return Outcome.evaluated({"good": 1.0})

    Made.spec = spec(name, *aliases)
    return Made


class Point:
    """An entry point as `importlib.metadata` gives it."""

    dist = None

    def __init__(self, name: str, loads: Callable[[], Any]) -> None:
        self.name = name
        self.value = f"acme:{name}"
        self._loads = loads
        self.loaded = 0

    def load(self) -> Any:
        """Import the plug-in."""
        self.loaded += 1
        return self._loads()


@pytest.fixture
def plug_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Point]:
    """Install a plug-in."""
    points: list[Point] = []

    def entry_points(group: str) -> list[Point]:
        return points[:] if group == plugins.DETECTORS else []

    monkeypatch.setattr(plugins, "entry_points", entry_points)

    def install(name: str, loads: Callable[[], Any]) -> Point:
        points.append(Point(name, loads))
        return points[-1]

    return install


def test_a_registered_detector_is_found_by_both_ids() -> None:
    """Ours and H2O's."""
    made = Registry()
    made.register(detector("risk", "h2o.Risk"))
    assert "risk" in made
    assert made.spec("risk", "here") is made.spec("h2o.Risk", "here")
    assert made["risk"].spec.id == "risk"
    assert [d.spec.id for d in made] == ["risk"]


@pytest.mark.parametrize(
    "names",
    [
        ("risk",),
        ("risk", "h2o.Other"),
        ("other", "h2o.Risk"),
        ("other", "suite:other", "suite:risk"),
    ],
)
def test_a_duplicate_is_an_error(names: tuple[str, ...]) -> None:
    """Of the id or of any alias."""
    made = Registry()
    made.register(detector("risk", "h2o.Risk", "suite:risk"))
    with pytest.raises(ConfigurationError, match="already registered"):
        made.register(detector(*names))


def test_two_detectors_without_an_alias_are_no_duplicates() -> None:
    """No alias is not an id."""
    made = Registry()
    made.register(detector("one"))
    made.register(detector("two"))
    assert len(made.specs()) == 2


def test_an_unknown_id_gets_a_suggestion_or_the_list() -> None:
    """Near misses are named; far ones get everything there is."""
    made = Registry()
    made.register(detector("groundedness"))
    made.register(detector("looping"))
    with pytest.raises(ConfigurationError, match="did you mean 'groundedness'") as near:
        made.spec("grondedness", "file: evaluator_ids[0]")
    assert near.value.where == "file: evaluator_ids[0]"
    with pytest.raises(ConfigurationError, match="one of groundedness, looping"):
        made.spec("xyz", "here")


def test_only_wanted_plug_ins_are_imported(plug_in: Callable[..., Point]) -> None:
    """What no configuration names runs no code."""
    wanted = plug_in("mine", lambda: detector("mine"))
    other = plug_in("other", lambda: detector("other"))
    made = Registry()
    made.load_plugins(["mine", "looping"])
    assert (wanted.loaded, other.loaded) == (1, 0)
    assert "mine" in made
    made.load_plugins(["mine"])
    assert wanted.loaded == 1


def test_a_plug_in_that_fails_to_import_stops(plug_in: Callable[..., Point]) -> None:
    """A missing detector would be an open door."""

    def broken() -> Any:
        raise ImportError("no module named secret")

    plug_in("mine", broken)
    with pytest.raises(ConfigurationError, match=r"plug-in 'mine'.*ImportError on import"):
        Registry().load_plugins(["mine"])


def test_a_plug_in_that_takes_a_published_id_stops(plug_in: Callable[..., Point]) -> None:
    """Other detectors' ids are taken."""
    made = Registry()
    made.register(detector("mine"))
    plug_in("mine", lambda: detector("mine"))
    with pytest.raises(ConfigurationError, match="already registered"):
        made.load_plugins(["mine"])


def abstract() -> type[Any]:
    """Return a detector class that cannot be made."""

    class Unfinished(Detector[Parameters]):
        """Has no `reduce`."""

        parameters = Parameters
        spec = spec("mine")

    return Unfinished


def nameless() -> type[Any]:
    """Return a detector class without metadata."""

    class Nameless(Detector[Parameters]):
        """Has no `spec`."""

        parameters = Parameters

        def reduce(self, *_: Any) -> Outcome:
            return Outcome.not_applicable("never")

    return Nameless


@pytest.mark.parametrize(
    ("load", "says"),
    [
        *(
            (lambda loaded=loaded: loaded, "expected a Detector class")
            for loaded in (object(), int, detector, "text", None)
        ),
        (lambda: detector("yours"), r"spec\.id 'yours'.*entry point's own name"),
        (abstract, "plug-in 'mine'"),
        (nameless, "plug-in 'mine'"),
    ],
    ids=["object", "int", "function", "text", "None", "another id", "abstract", "nameless"],
)
def test_a_plug_in_that_is_no_whole_detector_stops(
    load: Callable[[], Any], says: str, plug_in: Callable[..., Point]
) -> None:
    """With one line for the operator, whatever the entry point names instead."""
    plug_in("mine", load)
    with pytest.raises(ConfigurationError, match=says):
        Registry().load_plugins(["mine"])


def test_a_plug_in_is_found_by_its_h2o_id(plug_in: Callable[..., Point]) -> None:
    """Configurations may name detectors in either form."""
    made = Registry()
    plug_in("mine", lambda: detector("mine", "h2o_sonar.evaluators.mine.Mine"))
    made.load_plugins(["h2o_sonar.evaluators.mine.Mine"])
    assert "mine" in made


def test_a_broken_plug_in_that_nobody_named_stops_nothing(plug_in: Callable[..., Point]) -> None:
    """Not even while another one is looked for by its alias."""

    def broken() -> Any:
        raise SystemExit(3)

    made = Registry()
    plug_in("broken", broken)
    plug_in("mine", lambda: detector("mine", "h2o.Mine"))
    bystander = plug_in("other", lambda: detector("other"))
    made.load_plugins(["h2o.Mine"])
    assert [one.spec.id for one in made] == ["mine"]
    assert bystander.loaded == 0
    with pytest.raises(ConfigurationError, match=r"plug-in 'broken'.*SystemExit on import"):
        made.load_plugins(["broken"])


def test_two_distributions_that_bring_one_name_stop(plug_in: Callable[..., Point]) -> None:
    """Which of them judges would depend on the order of folders."""
    plug_in("mine", lambda: detector("mine"))
    plug_in("mine", lambda: detector("mine"))
    with pytest.raises(ConfigurationError, match="expected one distribution that brings it"):
        Registry().load_plugins(["mine"])


def test_a_plug_in_named_like_a_built_in_detector_stops(plug_in: Callable[..., Point]) -> None:
    """Whoever installed it believes that it judges."""
    made = Registry()
    made.register(detector("mine"))
    plug_in("mine", lambda: detector("mine"))
    with pytest.raises(ConfigurationError, match="already registered"):
        made.load_plugins(["mine"])


@pytest.mark.parametrize(
    ("score", "holds"),
    [(0.0, True), (1.0, True), (-1e-9, False), (1.0000001, False), (float("nan"), False),
     (float("inf"), False)],
)  # fmt: skip
def test_a_metric_knows_its_range(score: float, holds: bool) -> None:
    """Both ends inclusive; NaN is in no range."""
    assert MetricSpec("good", Direction.HIGHER).holds(score) is holds


def test_the_id_of_h2o_is_one_of_the_aliases() -> None:
    """Told by how it begins; the others are no ids of H2O's."""
    assert spec("risk", "suite:risk", "h2o_sonar.evaluators.risk.Risk").h2o_id == (
        "h2o_sonar.evaluators.risk.Risk"
    )
    assert spec("risk", "suite:risk").h2o_id is None


@pytest.mark.parametrize(
    ("in_flight", "reach", "most"), [("search", 20_001, 20_000), ("parts", 1, 0), ("end", -1, 0)]
)
def test_a_reach_that_no_stream_can_hold_back_is_refused(
    in_flight: Any, reach: int, most: int
) -> None:
    """And one that nothing searches for."""
    with pytest.raises(ConfigurationError, match=f"risk.*reach.*from 0 to {most}$"):
        dataclasses.replace(spec("risk"), in_flight=in_flight, reach=reach)
