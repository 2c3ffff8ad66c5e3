"""The promise holds in every simulated world and the usual methods break it: fast version.

Fixed seeds; `python -m tests.simulation.study` runs the same functions 1000 times and writes the
numbers of docs/calibration.md.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binomtest

from tests.simulation.study import (
    ALPHA,
    DELTA,
    METHODS,
    OUT,
    PROMISING,
    WORLDS,
    Row,
    real,
    simulate,
)

SIZE = (120, 40)
RUNS = 40


def explained(broken: int, runs: int) -> bool:
    """Return whether chance explains so many broken promises if delta of them are.

    One false alarm in ten thousand rows: the fresh answers are a sample, too, and the same for all
    rows of a world.
    """
    return bool(binomtest(broken, runs, DELTA, alternative="greater").pvalue > 1e-4)


@pytest.fixture(scope="module", params=sorted(WORLDS))
def rows(request: pytest.FixtureRequest) -> dict[str, Row]:
    """Every method's row in one world."""
    found = simulate(WORLDS[request.param], SIZE, RUNS, 7, tuple(METHODS))
    return {row.method: row for row in found}


def test_no_promise_is_broken_more_often_than_stated(rows: dict[str, Row]) -> None:
    """No more broken promises than chance explains where delta of them are."""
    for name in PROMISING:
        assert explained(rows[name].broken, rows[name].runs), name


def test_methods_in_common_use_break_it_nearly_always(rows: dict[str, Row]) -> None:
    """Each metric by itself flags a tenth; five of them flag far more."""
    for name in ("10 % percentile", "max F1"):
        assert rows[name].interval[0] > 0.5, name


def test_the_joint_rule_catches_what_splitting_alpha_cannot(rows: dict[str, Row]) -> None:
    """Bonferroni needs 194 good answers for five metrics before it flags anything."""
    assert rows["Bonferroni"].recall < 0.05
    assert rows["joint auto (ours)"].recall > 0.3
    assert rows["joint by ranks"].recall > 0.3


def test_real_scores_are_judged_against_the_population_they_come_from() -> None:
    """Rates are exact there: the labelled answers are the whole population."""
    generator = np.random.default_rng(3)
    world = WORLDS["skewed"]
    good, bad = world.draw(generator, 150, False), world.draw(generator, 100, True)
    found = {row.method: row for row in real(world.axes, good, bad, 40, 1)}
    assert explained(found["joint by ranks"].broken, 40)
    assert found["max F1"].broken == 40


@pytest.mark.parametrize("name", ["simulations", "real"])
def test_the_published_numbers_keep_the_promise(name: str) -> None:
    """Of the committed results, whatever scores they were made from."""
    content = json.loads((OUT / f"{name}.json").read_text("utf-8"))
    assert (content["alpha"], content["delta"]) == (ALPHA, DELTA)
    rows = [
        row for rows in content.get("worlds", {"": content.get("rows")}).values() for row in rows
    ]
    promising = [row for row in rows if row["method"] in PROMISING]
    assert promising
    for row in promising:
        assert explained(row["broken"], row["runs"]), row
    assert any(row["broken"] > 0.9 * row["runs"] for row in rows if row["method"] == "max F1")
