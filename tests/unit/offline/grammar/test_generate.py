"""Templates are filled with what joined rows hold, and a normal lab comes out."""

from __future__ import annotations

import json
import runpy
import sqlite3
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.datasets.labs import open_lab
from tests.unit.offline.grammar.conftest import Database, guardrail

MAKER = runpy.run_path(str(Path(__file__).parents[4] / "examples/grammar/make_company.py"))


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's folder."""
    folder: Path = tmp_path_factory.mktemp("company")
    MAKER["write"](folder)
    return folder


def generated(database: Path, folder: Path, *words: object, make: tuple[object, ...] = ()) -> Any:
    """Make templates, generate, and return statistics and cases."""
    templates, lab = folder / "t.json", folder / "lab.jsonl"
    ran = guardrail("templates", database, "-o", templates, "--overwrite", *make)
    assert ran.status == 0, ran.text
    ran = guardrail("generate", database, "-t", templates, "-o", lab, "--json", *words)
    assert ran.status == 0, ran.text
    return ran.json, list(open_lab(lab).cases())


def test_the_companys_queries_are_942(company: Path, tmp_path: Path) -> None:
    """Known answer 23, through the commands: 20, 87 and 50 queries in six texts each."""
    told, cases = generated(company / "company.db", tmp_path, make=("--joins", 0))
    by_table: Counter[str] = Counter()
    for name, counts in told["templates"].items():
        by_table[name.partition(".")[0]] += counts["queries"]
    assert by_table == {"Client": 20, "Employee": 87, "Project": 50}
    assert (told["queries"], told["cases"], len(cases)) == (157, 942, 942)
    assert len({case.group for case in cases}) == 157
    assert Counter(case.categories[2] for case in cases) == {
        f"style:{name}": 157
        for name in ("short", "long", "interrogative", "directive", "formal", "casual")
    }


def test_a_link_is_filled_with_the_combinations_that_exist(
    made: Callable[[str], Path], tmp_path: Path
) -> None:
    """Known answer 51, on own rows: 133 combinations, 5 of them joined; 57 groups, 570 texts."""
    firms = ", ".join(f"({n}, 'Firm {n}', 'trade {n % 4}', 'city {n % 3}')" for n in range(19))
    people = ", ".join(f"({n}, 'Person {n}', 'land {n % 2}', 'school {n}')" for n in range(7))
    path = made(
        "CREATE TABLE company (company_id INTEGER PRIMARY KEY, name TEXT UNIQUE, industry TEXT,"
        " headquarters TEXT);"
        "CREATE TABLE people (people_id INTEGER PRIMARY KEY, name TEXT UNIQUE, nationality TEXT,"
        " college TEXT);"
        "CREATE TABLE employment (company_id INT REFERENCES company,"
        " people_id INT REFERENCES people, year_working INT);"
        f"INSERT INTO company VALUES {firms}; INSERT INTO people VALUES {people};"
        "INSERT INTO employment VALUES (1, 1, 2), (2, 3, 4), (5, 2, 1), (9, 1, 7), (12, 6, 2);"
    )
    told, cases = generated(path, tmp_path, make=("--texts", 10))
    counts = [one["queries"] for one in told["templates"].values()]
    assert sorted(counts, reverse=True) == [19, 19, 7, 7, 5]
    link = next(one for one in told["templates"].values() if one["queries"] == 5)
    assert (link["combinations"], link["filled"]) == (133, 5)
    assert len(cases) == 570
    assert not told["skipped"].get("several_answers")
    assert any(
        case.question == "What is the year working of the employment of the company Firm 5 and the "
        "person Person 2?" and case.expected == "1"
        for case in cases
    )  # fmt: skip


def test_what_the_database_does_not_know_is_kept_as_unknown(shop: Database, tmp_path: Path) -> None:
    """Such a question has no right answer, and says so."""
    _, cases = generated(shop.path, tmp_path)
    unknown = [case for case in cases if case.answerable is False]
    assert len(unknown) == 6
    assert {case.expected for case in unknown} == {None}
    assert all("grammar:unknown" in case.categories for case in unknown)
    assert all(case.answerable for case in cases if case not in unknown)


def test_sets_are_asked_for_only_when_wanted(shop: Database, tmp_path: Path) -> None:
    """Each item of a set has a line; otherwise only filled queries with one answer are taken."""
    _, cases = generated(shop.path, tmp_path, "--multi", make=("--multi", "--counts"))
    lists = {case.expected for case in cases if "grammar:set" in case.categories}
    assert lists == {"Alder\nBirch"}
    counted = {c.question: c.expected for c in cases if "sql:count of Project" in c.categories[1]}
    assert counted["How many projects whose client is Acme?"] == "2"
    told, _ = generated(shop.path, tmp_path, make=("--multi",))
    assert told["skipped"] == {"several_answers": 1}


def test_documents_units_and_aliases_come_from_the_labels(shop: Database, tmp_path: Path) -> None:
    """A joined question names the documents of every row behind its answer."""
    labels = tmp_path / "labels.json"
    columns = {"Budget": {"unit": "EUR"}, "Client": {"aliases": {"Acme": ["Acme Ltd"]}}}
    tables = {
        "Client": {"documents": "c/{Name}"},
        "Project": {"documents": "p/{ProjectID}", "columns": columns},
    }
    content = {"format": "guardrail-grammar-labels", "version": 1, "tables": tables}
    labels.write_text(json.dumps(content), "utf-8")
    _, cases = generated(shop.path, tmp_path, "--labels", labels, make=("--labels", labels))
    found = {(c.categories[1], c.group): c for c in cases}
    budgets = {c.expected: c.references for (name, _), c in found.items() if "Budget" in name}
    assert budgets == {"10 EUR": ("10",), "20.5 EUR": ("20.5",)}
    clients = {c.references for (name, _), c in found.items() if "Project.Client" in name}
    assert clients == {("Acme Ltd",), ()}
    via = {c.reference_ids for (name, _), c in found.items() if "via" in name}
    assert via == {("p/1", "c/Acme"), ("p/2", "c/Acme"), ("p/3", "c/Zürich & Co")}


@pytest.mark.parametrize("sampling", ["stratified", "proportional"])
def test_a_seed_gives_the_same_bytes_and_another_seed_others(
    company: Path, tmp_path: Path, sampling: str
) -> None:
    """Stratified templates have one share; proportional ones follow their rows."""
    contents = []
    for seed in (1, 1, 2):
        words = ("--cases", 120, "--sampling", sampling, "--seed", seed)
        told, _ = generated(company / "company.db", tmp_path, *words, make=("--joins", 0))
        contents.append((tmp_path / "lab.jsonl").read_bytes())
        counts = [one["queries"] for one in told["templates"].values()]
        assert sum(counts) == 20
        assert (set(counts) == {2}) is (sampling == "stratified")
    assert contents[0] == contents[1] != contents[2]


def test_templates_have_a_bound_of_their_own(company: Path, tmp_path: Path) -> None:
    """What small templates leave of a stratified sample goes to the others."""
    words = ("--per-template", 12, "--cases", 630)
    told, _ = generated(company / "company.db", tmp_path, *words, make=("--joins", 0))
    counts = [one["queries"] for one in told["templates"].values()]
    assert counts == [10, 10, 12, 12, 11, 10, 10, 10, 10, 10]
    assert told["cases"] == 630


def test_more_cases_take_no_more_memory(made: Callable[[str], Path], tmp_path: Path) -> None:
    """Ten times the cases take no more than a little more; nothing is held but a sample."""

    def peak(rows: int) -> int:
        values = ((f"Person {n}", f"title {n % 17}") for n in range(rows))
        path = tmp_path / f"{rows}.db"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE person (name TEXT PRIMARY KEY, job TEXT)")
            connection.executemany("INSERT INTO person VALUES (?, ?)", values)
        connection.close()
        guardrail("templates", path, "-o", tmp_path / f"{rows}.json")
        tracemalloc.start()
        words = ("-t", tmp_path / f"{rows}.json", "-o", tmp_path / "lab.jsonl")
        ran = guardrail("generate", path, *words, "--json")
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert ran.json["cases"] == rows * 6
        return found

    peak(10)
    small, large = peak(40), peak(400)
    assert large < 1.3 * small + 2**20


def test_nothing_half_written_is_left(made: Callable[[str], Path], tmp_path: Path) -> None:
    """A query that fails on the way, values that cannot be read: no file, and the reason."""
    path = made(
        "CREATE TABLE t (name TEXT PRIMARY KEY, a TEXT);"
        "INSERT INTO t VALUES (CAST(x'ff' AS TEXT), 'x'), (' ', 'y');"
    )
    ran = guardrail("templates", path, "-o", tmp_path / "t.json")
    assert ran.status == 0
    lab = tmp_path / "lab.jsonl"
    ran = guardrail("generate", path, "-t", tmp_path / "t.json", "-o", lab)
    assert ran.status == 3
    assert "unreadable_value" in ran.text
    assert "blank_value" in ran.text
    with sqlite3.connect(path) as connection:
        connection.executemany("INSERT INTO t VALUES (?, 'z')", ((f"n{n}",) for n in range(50)))
    connection.close()
    words = ("-t", tmp_path / "t.json", "-o", lab, "--max-rows", 20)
    ran = guardrail("generate", path, *words)
    assert ran.status == 2
    assert "over 20 rows" in ran.text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made.db", "t.json"]


def test_values_that_look_like_placeholders_stay_values(
    made: Callable[[str], Path], tmp_path: Path
) -> None:
    """Values are bound, and put into texts once."""
    path = made(
        "CREATE TABLE t (name TEXT PRIMARY KEY, a TEXT);"
        "INSERT INTO t VALUES ('[t.name]', 'x'), (''' OR 1=1 --', 'y'), ('{row}', 'z');"
    )
    _, cases = generated(path, tmp_path)
    asked = {c.question: c.expected for c in cases if "style:interrogative" in c.categories}
    assert asked == {
        "What is the a of the t [t.name]?": "x",
        "What is the a of the t ' OR 1=1 --?": "y",
        "What is the a of the t {row}?": "z",
    }
