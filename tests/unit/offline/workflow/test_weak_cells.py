"""Weak cells: planted ones are found, and where there is none hardly ever one is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact, mannwhitneyu

from guardrail_offline.runs.paired import holm
from guardrail_offline.workflow.definition import WeaknessParameters
from guardrail_offline.workflow.weak_cells import cells_tested, weaknesses
from tests.unit.offline.workflow.made_up import column, facts, table

PARAMETERS = WeaknessParameters(dimensions=("topic", "generator"))
CUTS = {"made.up": 0.5}


def places(found: dict[str, list[dict[str, object]]]) -> set[object]:
    """Return the weak cells by their values."""
    return {one.get("value") or tuple(one["values"]) for one in found["weak"]}  # type: ignore[call-overload]


def test_a_planted_weak_topic_is_found_and_no_other() -> None:
    """One topic in four fails in 70 of 100 cases, all others in 10."""
    rng = np.random.default_rng(1)
    known = facts(240, rng)
    share = np.where(np.array([one["topic"] for one in known]) == "t2", 0.7, 0.1)
    values = np.where(rng.random(240) < share, 0.2, 0.9)
    found = weaknesses(table(known, [column(values)]), CUTS, PARAMETERS)
    assert "t2" in places(found)
    assert all("t2" in place for place in places(found))
    assert "topic 't2'" in found["weak"][0]["words"]


def test_a_planted_pair_is_found_where_neither_of_its_values_is_weak_elsewhere() -> None:
    """Only topic t1 with generator g0 fails; its cell is the worst."""
    rng = np.random.default_rng(2)
    known = facts(360, rng)
    inside = np.array([one == {"topic": "t1", "generator": "g0"} for one in known])
    values = np.where(rng.random(360) < np.where(inside, 0.9, 0.05), 0.2, 0.9)
    found = weaknesses(table(known, [column(values)]), CUTS, PARAMETERS)
    assert found["weak"][0]["values"] == ["t1", "g0"]


@pytest.mark.parametrize(("cut", "trials"), [(0.5, 80), (None, 30)], ids=["failures", "scores"])
def test_without_a_weakness_any_is_reported_at_most_at_the_stated_rate(
    cut: float | None, trials: int
) -> None:
    """Over made-up evaluations; the count is one that a rate of 5 % gives 999 times in 1000."""
    rng, false = np.random.default_rng(3), 0
    for _ in range(trials):
        known = facts(80, rng)
        values = rng.random(80)
        found = cells_tested(table(known, [column(values)]), {"made.up": cut}, PARAMETERS)
        false += min(p_holm for *_, p_holm in found) < 0.05
    assert false <= binom.ppf(0.999, trials, 0.05)


def test_p_values_and_corrections_are_those_of_scipy() -> None:
    """Fisher's exact test on the counts of a row; Holm over all rows."""
    rng = np.random.default_rng(4)
    known = facts(90, rng)
    values = rng.random(90)
    found = weaknesses(table(known, [column(values)]), CUTS, PARAMETERS)
    rows = [*found["marginal"], *found["bivariate"]]
    for row in rows:
        inside, outside = row["failing"], row["rest"]["failing"]
        counts = [[one["x"], one["n"] - one["x"]] for one in (inside, outside)]
        assert row["p"] == pytest.approx(fisher_exact(counts, alternative="greater").pvalue)
    assert [row["p_holm"] for row in rows] == holm([row["p"] for row in rows])
    assert found["family"]["tests"] == len(rows)
    plain = weaknesses(table(known, [column(values)]), {"made.up": None}, PARAMETERS)
    first = plain["marginal"][0]
    inside = np.array([one["topic"] == first["value"] for one in known])
    expected = mannwhitneyu(values[inside], values[~inside], alternative="less").pvalue
    assert first["p"] == pytest.approx(expected)


def test_the_grid_has_every_case_once_and_cells_without_cases_are_empty() -> None:
    """Counts of the grid add up to the cases with a value; a missing value is in no cell."""
    known = [{"topic": "a", "generator": "x"}] * 6 + [{"topic": "b", "generator": "y"}] * 6
    values = np.array([0.9] * 11 + [np.nan])
    (grid,) = weaknesses(table(known, [column(values)]), CUTS, PARAMETERS)["grid"]
    cells = [cell for row in grid["cells"] for cell in row]
    assert sum(cell["n"] for cell in cells if cell) == 11
    assert cells.count(None) == 2


def test_a_metric_where_lower_is_better_is_weak_where_it_is_high() -> None:
    """The direction decides on which side of the threshold a case fails."""
    known = [{"topic": "a"}] * 20 + [{"topic": "b"}] * 20
    own = column(np.array([0.9] * 20 + [0.1] * 20))
    own = type(own)(own.evaluator, _turned(own.metric), own.values, own.reasons, own.origin)
    found = weaknesses(table(known, [own]), CUTS, WeaknessParameters(dimensions=("topic",)))
    assert places(found) == {"a"}


def _turned(metric: object) -> object:
    from dataclasses import replace

    from guardrail_service.types import Direction

    return replace(metric, direction=Direction.LOWER)  # type: ignore[type-var]
