"""A lab is cut by question, read row by row, and written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail_offline.datasets.cases import PERTURBATION_SOURCE, Case, Lab, Model, Relationship
from guardrail_offline.datasets.cases import question_group as group_of
from guardrail_offline.datasets.labs import lab_source
from guardrail_offline.runs import shards
from guardrail_offline.runs.shards import (
    JsonList,
    Layout,
    by_group,
    cut,
    in_order,
    read_cases,
    whole_file,
    write_json,
)
from guardrail_service.errors import ConfigurationError


def case(key: str, question: str, source: str | None = None) -> Case:
    """Return a case, possibly made from another one."""
    links = (Relationship(PERTURBATION_SOURCE, source),) if source else ()
    return Case(key, question, "a", relationships=links, group=group_of(question))


def shards_of(folder: Path, *cases: Case, rows: int = 1) -> list[list[Case]]:
    """Cut a lab and return what is in each shard."""
    layout = Layout(folder)
    plan = cut(lab_source(Lab(cases)), layout, rows)
    return [[found for _, found in read_cases(layout.cases(n))] for n in range(plan.shards)]


def test_every_case_is_in_one_shard_with_its_place(tmp_path: Path) -> None:
    """Together they are the lab."""
    cases = [case(str(n), f"q{n % 7}") for n in range(40)]
    layout = Layout(tmp_path)
    plan = cut(lab_source(Lab(tuple(cases))), layout, 5)
    assert (plan.cases, plan.shards) == (40, 8)
    found = [pair for n in range(8) for pair in read_cases(layout.cases(n))]
    assert sorted(index for index, _ in found) == list(range(40))
    assert {c.key: c.question for _, c in found} == {c.key: c.question for c in cases}


def test_reruns_and_variants_are_in_the_shard_of_their_question(tmp_path: Path) -> None:
    """Whatever the variant's own wording, through any number of steps."""
    cases = [case("a", "q"), case("b", "qq", "a"), case("c", "qqq", "b"), case("d", "q")]
    others = [case(f"o{n}", f"other {n}") for n in range(20)]
    found = shards_of(tmp_path, *others, *cases)
    (home,) = [shard for shard in found if any(c.key == "a" for c in shard)]
    kept = [c for c in home if not c.key.startswith("o")]
    assert [c.key for c in kept] == ["a", "b", "c", "d"]
    assert len({c.group for c in kept}) == 1


def test_a_variant_without_its_source_stays_with_its_own_question(tmp_path: Path) -> None:
    """And a circle of links does not hang."""
    (shard,) = shards_of(tmp_path, case("b", "qq", "gone"), rows=9)
    assert shard[0].group == group_of("qq")
    assert shards_of(tmp_path / "circle", case("x", "1", "y"), case("y", "2", "x"), rows=9)


def test_a_lab_of_many_shards_is_cut_and_read_with_few_files_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each case in the shard of its question, and all of them in order again."""
    monkeypatch.setattr(shards, "MOST_OPEN", 4)
    cases = [case(str(n), f"q{n % 90}") for n in range(200)]
    layout = Layout(tmp_path)
    plan = cut(lab_source(Lab(tuple(cases))), layout, 10)
    assert (plan.cases, plan.shards) == (200, 20)
    names = sorted(path.name for path in layout.work.iterdir())
    assert names == [layout.cases(n).name for n in range(20)]
    homes: dict[str, int] = {}
    for number in range(20):
        with whole_file(layout.scores(number)) as stream:
            for index, found in read_cases(layout.cases(number)):
                assert homes.setdefault(found.group, number) == number
                stream.write(f'{{"index": {index}, "key": "{found.key}", "results": {{}}}}\n')
    assert [one.case.key for one in in_order(layout, 20)] == [one.key for one in cases]
    again = cut(lab_source(Lab(tuple(cases))), Layout(tmp_path / "b"), 10, shards=3)
    assert again.shards == 3, "a run that goes on keeps its cut"


def test_models_are_the_labs_and_those_only_cases_name(tmp_path: Path) -> None:
    """In that order."""
    lab = Lab((Case("1", "q", model="b", group="g"),), (Model("a", "A"),))
    assert [m.key for m in cut(lab_source(lab), Layout(tmp_path), 5).models] == ["a", "b"]


def test_a_key_that_occurs_twice_is_refused_with_its_rows(tmp_path: Path) -> None:
    """Results could not be told apart."""
    with pytest.raises(ConfigurationError, match=r"the key 'a' in rows 1 and 3"):
        shards_of(tmp_path, case("a", "q"), case("b", "q"), case("a", "q2"))


def test_an_empty_lab_is_refused(tmp_path: Path) -> None:
    """There is nothing to score."""
    with pytest.raises(ConfigurationError, match="no case"):
        shards_of(tmp_path)


def test_a_file_that_was_not_finished_is_not_there(tmp_path: Path) -> None:
    """Neither under its name nor under another."""

    def stopped_halfway() -> None:
        with whole_file(tmp_path / "f") as stream:
            stream.write("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stopped_halfway()
    assert list(tmp_path.iterdir()) == []


def test_groups_come_in_the_order_of_their_first_case() -> None:
    """Whatever lies between their cases."""
    cases = [(0, case("a", "q")), (1, case("b", "r")), (2, case("c", "q"))]
    assert [[index for index, _ in group] for group in by_group(cases)] == [[0, 2], [1]]


def test_a_list_written_record_by_record_has_the_bytes_of_one_written_whole(tmp_path: Path) -> None:
    """With line breaks in its texts; without a record there is no file."""
    records = [{"a": 1, "b": [1, {"c": "two\nlines"}], "e": {}}, [], {"d": None}]
    write_json(tmp_path / "whole.json", records)
    with JsonList(tmp_path / "parts.json") as parts, JsonList(tmp_path / "none.json"):
        for record in records:
            parts.add(record)
        assert not (tmp_path / "parts.json").exists()
    assert (tmp_path / "parts.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"whole.json", "parts.json"}


def test_a_list_whose_block_fails_leaves_no_file(tmp_path: Path) -> None:
    """Half a list would look like a whole one."""

    def stopped_halfway() -> None:
        with JsonList(tmp_path / "list.json") as found:
            found.add({"a": 1})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stopped_halfway()
    assert not list(tmp_path.iterdir())
