"""Templates meet criteria that are proved on the data, and are saved, edited and read again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.grammar.engine import open_engine
from guardrail_offline.grammar.enumeration import EnumerationOptions
from guardrail_offline.grammar.queries import Wrong, read_query
from guardrail_offline.grammar.rewriting import rewriter_of
from guardrail_offline.grammar.schema import labelled, phrase_of, plural, read_schema, singular
from guardrail_offline.grammar.templates import (
    TemplateOptions,
    make_templates,
    read_templates,
    reworded,
    templates_json,
)
from guardrail_offline.grammar.wording import STYLES, word
from guardrail_offline.judge.stand_in import FakeJudge
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.grammar.conftest import Database, guardrail

WHERE = "WHERE Name = '[Project.Name]'"
OF_CLIENT = (
    'SELECT c."Industry" FROM "Project" p JOIN "Client" c ON p."Client" = c."Name" '
    "WHERE p.\"Name\" = '[Project.Name]'"
)


@pytest.mark.parametrize(
    ("sql", "criterion"),
    [
        ("(((", "not_sql"),
        ("DROP TABLE Project", "not_one_select"),
        (f"SELECT Budget FROM Project {WHERE}; SELECT 1", "not_one_select"),
        (f"SELECT Budget FROM (SELECT * FROM Project) {WHERE}", "not_one_select"),
        (f"WITH x AS (SELECT 1) SELECT Budget FROM Project {WHERE}", "not_one_select"),
        (f"SELECT Budget FROM Project {WHERE} UNION SELECT 1", "not_one_select"),
        (f"SELECT * FROM Project {WHERE}", "star"),
        (f"SELECT Project.* FROM Project {WHERE}", "star"),
        (f"SELECT Budget FROM Nothing {WHERE}", "unknown_table"),
        (f"SELECT Nothing FROM Project {WHERE}", "unknown_column"),
        (f"SELECT Budget + 1 FROM Project {WHERE}", "unknown_column"),
        ("SELECT Budget FROM Project", "no_placeholder"),
        ("SELECT Budget FROM Project WHERE Name = 'Alder'", "no_placeholder"),
        ("SELECT Budget FROM Project WHERE Name > '[Project.Name]'", "placeholder_elsewhere"),
        (f"SELECT Budget FROM Project {WHERE} OR Budget = 1", "placeholder_elsewhere"),
        (f"SELECT Budget FROM Project {WHERE} AND Client = '[Project.Name]'",
         "placeholder_elsewhere"),
        (OF_CLIENT.replace('p."Client" = c."Name"', 'p."Name" = c."Name"'), "join_without_key"),
        (f"SELECT Industry FROM Project, Client {WHERE.replace('Name', 'Project.Name', 1)}",
         "join_without_key"),
        (f"SELECT ProjectID FROM Project {WHERE}", "not_descriptive"),
        (f"SELECT Name FROM Project {WHERE}", "asks_what_it_says"),
        (f"SELECT Budget FROM Project {WHERE} LIMIT 1", "hides_answers"),
        (f"SELECT Budget FROM Project {WHERE} GROUP BY Budget", "hides_answers"),
        (f"SELECT max(Budget) FROM Project {WHERE}", "aggregate"),
        (f"SELECT COUNT(*) FROM Project {WHERE}", "aggregate"),
    ],
)  # fmt: skip
def test_a_query_meets_each_criterion_of_table_4(shop: Database, sql: str, criterion: str) -> None:
    """The first one that it does not meet is named."""
    with pytest.raises(Wrong) as wrong:
        read_query(sql, shop.schema, "sqlite")
    assert wrong.value.refusal.criterion == criterion
    assert wrong.value.refusal.reason


def test_one_answer_is_proved_on_the_data(shop: Database) -> None:
    """NULL beside a value would be a second answer; NULL alone is one that is not known."""
    proof = read_query(OF_CLIENT, shop.schema, "sqlite").proof(shop.engine)
    assert proof == (3, 3, 3, 0)
    unknown = read_query(f'SELECT "order" FROM Project {WHERE}', shop.schema, "sqlite")
    assert unknown.proof(shop.engine) == (3, 3, 3, 1)
    several = "SELECT Name FROM Project WHERE Client = '[Project.Client]'"
    assert read_query(several, shop.schema, "sqlite").proof(shop.engine) == (2, 2, 1, 0)
    mixed = "SELECT \"order\" FROM Project WHERE Client = '[Project.Client]'"
    assert read_query(mixed, shop.schema, "sqlite").proof(shop.engine) == (2, 2, 1, 0)


def test_a_second_condition_stays_beside_the_placeholder(shop: Database) -> None:
    """It is data of the template, not of the question."""
    sql = "SELECT Name FROM Project WHERE Client = '[Project.Client]' AND Budget < 15"
    query = read_query(sql, shop.schema, "sqlite")
    assert query.proof(shop.engine) == (2, 1, 1, 0)
    assert query.answers(shop.engine, ("Acme",), 5) == [("Alder",)]


def test_enumeration_follows_keys_and_refuses_what_the_data_refuse(shop: Database) -> None:
    """Nothing of identifiers, blobs or what is known already."""
    found = make_templates(shop.engine, shop.schema, TemplateOptions())
    assert [one.id for one in found.templates] == [
        "Client.Industry by Client.Name",
        "Project.Budget by Project.Name",
        "Project.order by Project.Name",
        "Project.Client by Project.Name",
        "Client.Industry by Project.Name via Client",
    ]
    lists = TemplateOptions(EnumerationOptions(counts=True), several=True)
    more = [one.id for one in make_templates(shop.engine, shop.schema, lists).templates]
    assert more[5:] == [
        "Project.Name by Client.Name via Client",
        "count of Project by Client.Name via Client",
    ]


def test_select_lists_are_all_subsets(made: Callable[[str], Path], tmp_path: Path) -> None:
    """Known answer 24, through the command: five columns to ask for give 31."""
    rows = "('a', 1, 2, 3, 4, 5), ('b', 1, 2, 3, 4, 5)"
    path = made(
        f"CREATE TABLE t (Name TEXT PRIMARY KEY, a, b, c, d, e); INSERT INTO t VALUES {rows}"
    )
    ran = guardrail("templates", path, "-o", tmp_path / "t.json", "--selected", 5, "--json")
    assert (ran.status, ran.json["templates"], ran.json["texts"]) == (0, 31, 186)


def test_texts_are_in_six_styles_with_the_placeholder_in_each(shop: Database) -> None:
    """Each of twelve is another text."""
    for sql in (f"SELECT Budget FROM Project {WHERE}", OF_CLIENT):
        query = read_query(sql, shop.schema, "sqlite")
        found = word(query, 12)
        assert [style for style, _ in found] == [*STYLES, *STYLES]
        assert len({text for _, text in found}) == 12
        assert all("[Project.Name]" in text for _, text in found)
    assert "the industry of the client of the project [Project.Name]" in found[2].text


@pytest.mark.parametrize(
    ("name", "phrase", "one", "many"),
    [
        ("StartDate", "start date", "start date", "start dates"),
        ("year_working", "year working", "year working", "year workings"),
        ("Companies", "companies", "company", "companies"),
        ("people", "people", "person", "people"),
        ("Adresse", "adresse", "adresse", "adresses"),
        ("Größe", "größe", "größe", "größes"),
        ("客户", "客户", "客户", "客户s"),
    ],
)
def test_names_become_phrases(name: str, phrase: str, one: str, many: str) -> None:
    """As far as a name tells; the labels file says the rest."""
    assert phrase_of(name) == phrase
    assert singular(phrase) == one
    assert plural(one) == many


def _saved(shop: Database, path: Path) -> None:
    found = make_templates(shop.engine, shop.schema, TemplateOptions())
    path.write_text(json.dumps(templates_json(found, shop.schema, "sqlite")), "utf-8")


def test_a_file_is_edited_checked_and_written_on(shop: Database, tmp_path: Path) -> None:
    """An own text stays; one that lost its placeholder is refused with the reason, not dropped."""
    first, second = tmp_path / "t.json", tmp_path / "t2.json"
    assert guardrail("templates", shop.path, "-o", first).status == 0
    content = json.loads(first.read_text("utf-8"))
    content["templates"][0]["texts"][0]["text"] = "Trade of [Client.Name]?"
    content["templates"][1]["texts"][0]["text"] = "Budget?"
    content["templates"].append({"sql": f"SELECT Client, Budget FROM Project {WHERE}"})
    first.write_text(json.dumps(content), "utf-8")
    ran = guardrail("templates", shop.path, "--from", first, "-o", second, "--json")
    assert ran.json == {
        "templates": 5, "refused": {"text_placeholders": 1}, "edition": 2, "texts": 30, "notes": [],
    }  # fmt: skip
    again = read_templates(second, shop.engine, shop.schema, TemplateOptions())
    assert [one.id for one in again.templates if one.is_edited] == [
        "Client.Industry by Client.Name",
        "Project.Client, Project.Budget by Project.Name",
    ]
    written = json.loads(second.read_text("utf-8"))
    assert len(written["parent"]) == 64
    assert "[Project.Name] is missing" in written["refused"][0]["reason"]


def test_a_file_that_is_there_is_not_written_over(shop: Database, tmp_path: Path) -> None:
    """People may have edited it."""
    path = tmp_path / "t.json"
    path.write_text("mine")
    for name in ("schema", "templates"):
        ran = guardrail(name, shop.path, "-o", path)
        assert ran.status == 2
        assert "--overwrite" in ran.text
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    "content", ["", "[]", '{"format": "guardrail-grammar-templates"}', '{"format": "x"}', "nul"]
)
def test_a_file_that_is_none_is_refused(shop: Database, tmp_path: Path, content: str) -> None:
    """By the place that is wrong."""
    path = tmp_path / "t.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match="templates"):
        read_templates(path, shop.engine, shop.schema, TemplateOptions())


def test_a_rewriter_is_held_to_the_placeholders(shop: Database) -> None:
    """What it loses is said; what it words anew is kept beside the rules' texts."""

    def rewrite(text: str, style: str) -> str | None:
        answers = {"short": "no placeholder", "long": None, "formal": f"Pray: {text}"}
        return answers.get(style, text)

    found = make_templates(shop.engine, shop.schema, TemplateOptions())
    again = reworded(found, rewrite)
    assert all(len(one.texts) == 7 for one in again.templates)
    reasons = [why.criterion for _, why in again.refused]
    assert reasons.count("text_placeholders") == len(again.templates)
    assert all(one.is_edited for one in again.templates)


def test_labels_hide_rename_and_add_synonyms(shop: Database, tmp_path: Path) -> None:
    """What the file leaves out stays; a name that is not there is refused."""
    path = tmp_path / "labels.json"
    labels = {
        "format": "guardrail-grammar-labels",
        "version": 1,
        "tables": {
            "Project": {
                "phrase": "building site",
                "columns": {
                    "Budget": {"phrase": "money", "synonyms": ["budget"]},
                    "order": {"hidden": True, "why": "ours"},
                },
            }
        },
    }
    path.write_text(json.dumps(labels))
    schema = labelled(shop.schema, path)
    found = make_templates(shop.engine, schema, TemplateOptions(texts=12))
    assert "Project.order by Project.Name" not in [one.id for one in found.templates]
    texts = [text for one in found.templates for _, text in one.texts if "Budget" in one.id]
    assert "What is the money of the building site [Project.Name]?" in texts
    assert "Which budget does the building site [Project.Name] have?" in texts
    labels["tables"] = {"Projekt": {}}
    path.write_text(json.dumps(labels))
    with pytest.raises(ConfigurationError, match="did you mean 'Project'"):
        labelled(shop.schema, path)


def test_labels_change_only_what_they_say(made: Callable[[str], Path], tmp_path: Path) -> None:
    """A synonym for the column that names rows leaves it that; a view is asked about if wanted."""
    path = made(
        "CREATE TABLE t (Name TEXT PRIMARY KEY, a TEXT); INSERT INTO t VALUES ('x', 'y');"
        "CREATE VIEW v AS SELECT Name, a FROM t;"
    )
    labels = tmp_path / "labels.json"
    head = {"format": "guardrail-grammar-labels", "version": 1}
    content = {"t": {"columns": {"Name": {"synonyms": ["title"]}}}, "v": {"phrase": "thing"}}
    labels.write_text(json.dumps({**head, "tables": content}))
    engine = open_engine(path)
    schema = labelled(read_schema(engine), labels)
    made_ = make_templates(engine, schema, TemplateOptions())
    assert [one.id for one in made_.templates] == ["t.a by t.Name"]
    content["v"] = {"hidden": False}
    labels.write_text(json.dumps({**head, "tables": content}))
    more = make_templates(engine, labelled(read_schema(engine), labels), TemplateOptions())
    assert [one.id for one in more.templates] == ["t.a by t.Name", "v.a by v.Name"]
    labels.write_text(json.dumps({**head, "tables": {"t": {"columns": {"Name": {"hidden": 1}}}}}))
    with pytest.raises(ConfigurationError, match=r"tables\.t\.columns\.Name\.hidden"):
        labelled(schema, labels)


BAD: Sequence[tuple[str, str]] = (
    ("CREATE TABLE t (a TEXT PRIMARY KEY, b TEXT)", "nothing is written"),
    ("CREATE TABLE t (ID INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)", "nothing is written"),
    ("", "no table"),
    ("CREATE VIEW v AS SELECT 1 AS a", "nothing is written"),
)


@pytest.mark.parametrize(("script", "told"), BAD)
def test_a_database_without_questions_says_so(
    made: Callable[[str], Path], tmp_path: Path, script: str, told: str
) -> None:
    """No rows, only identifiers, no table, only a view: no file, and a reason."""
    path = tmp_path / "t.json"
    ran = guardrail("templates", made(script), "-o", path)
    assert ran.status in (2, 3)
    assert told in ran.text
    assert not path.exists()


def test_odd_names_are_no_obstacle(made: Callable[[str], Path]) -> None:
    """Reserved words, blanks, quotes, brackets, other scripts; one row; no keys."""
    path = made(
        'CREATE TABLE "select" ("from where" TEXT PRIMARY KEY, "grö""ße [m]" TEXT, "客户" TEXT);'
        "INSERT INTO \"select\" VALUES ('it''s [x]', '3 m', '北京')"
    )
    engine = open_engine(path)
    found = make_templates(engine, read_schema(engine), TemplateOptions())
    assert not found.refused
    assert [one.proof.single for one in found.templates] == [1, 1]


def test_a_judge_words_each_text_once_more(shop: Database) -> None:
    """It is given the placeholders; a text without them is refused, no answer is said."""

    def says(_: object, inputs: Mapping[str, Any], __: int) -> Any:
        assert inputs["placeholders"] == [
            inputs["text"].partition("[")[1] + _inside(inputs["text"])
        ]
        if inputs["style"] == "long":
            return FakeJudge.failing("refused")
        lost = inputs["style"] == "short"
        return {"text": "Which?" if lost else f"Pray, {inputs['text']}"}

    found = make_templates(shop.engine, shop.schema, TemplateOptions())
    again = reworded(found, rewriter_of(FakeJudge(says)))
    assert all(len(one.texts) == 10 for one in again.templates)
    assert {why.criterion for _, why in again.refused} == {"text_placeholders", "duplicate"}


def _inside(text: str) -> str:
    return text.partition("[")[2].partition("]")[0] + "]"
