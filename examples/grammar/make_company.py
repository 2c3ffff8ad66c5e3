"""Writes a made-up company: a database of projects, clients and employees, and its documents.

Usage: examples/grammar/make_company.py FOLDER [SEED]

The same seed gives the same bytes. Nobody in it exists. Sizes are those of the made-up company of
GRAMMAR's table 5b: 14 attributes and 49 rows in all, from which 157 queries about single tables
come; in six texts each they are 942 questions.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

CLIENTS, EMPLOYEES, PROJECTS = 10, 29, 10
SCHEMA = """
CREATE TABLE Client (Name TEXT PRIMARY KEY, Industry TEXT NOT NULL, Location TEXT NOT NULL);
CREATE TABLE Employee (
    EmployeeID INTEGER PRIMARY KEY, Name TEXT NOT NULL UNIQUE, JobTitle TEXT NOT NULL,
    Department TEXT NOT NULL, Supervisor TEXT REFERENCES Employee (Name));
CREATE TABLE Project (
    Name TEXT PRIMARY KEY, Location TEXT NOT NULL, StartDate TEXT NOT NULL, EndDate TEXT NOT NULL,
    Client TEXT NOT NULL REFERENCES Client (Name),
    Director TEXT NOT NULL REFERENCES Employee (Name));
"""
FIRST = (
    "Ada Boris Clara Dario Edith Felix Greta Hugo Ines Jonas Karla Leo Mira Nils Olga Pavel Rosa"
)
LAST = (
    "Abelin Brandt Corvo Dahl Ekman Farkas Grimaldi Holm Ivarsson Jansen Kuipers Lindqvist Moreau"
)
RIVERS = "Alder Birch Cedar Dune Ember Fjord Gravel Heron Iris Juniper"
WORKS = "Bridge Tower Terminal Library Viaduct Stadium Harbour Tunnel Pavilion Depot"
FIRMS = (
    "Northwater Brightfield Castellan Dovetail Eastmark Fairholt Greyfell Highmoor Ironvale Kestrel"
)
TRADES = "Foods Energy Hotels Rail Clinics Textiles Software Timber Media Shipping"
INDUSTRIES = ("food processing", "power supply", "hospitality", "rail transport", "health care",
              "textile trade", "software", "forestry", "publishing", "sea freight")  # fmt: skip
CITIES = ("Lisbon", "Gdansk", "Turku", "Bergen", "Porto", "Ghent", "Split", "Trieste")
TITLES = {
    "Structures": ("structural engineer", "bridge engineer", "senior engineer"),
    "Planning": ("urban planner", "surveyor", "transport planner"),
    "Monitoring": ("sensor technician", "data analyst", "inspector"),
    "Finance": ("accountant", "controller", "cost estimator"),
}


class Company(NamedTuple):
    """The rows of the three tables, in the order of their columns."""

    clients: list[tuple[str, str, str]]
    employees: list[tuple[int, str, str, str, str | None]]
    projects: list[tuple[str, str, str, str, str, str]]


def made_up(seed: int = 0) -> Company:
    """Return the rows of a company."""
    rng = random.Random(seed)  # noqa: S311 - made-up data, not a secret
    names = [f"{first} {last}" for first in FIRST.split() for last in LAST.split()]
    people = rng.sample(names, EMPLOYEES)
    clients = [
        (f"{firm} {trade}", industry, rng.choice(CITIES))
        for firm, trade, industry in zip(FIRMS.split(), TRADES.split(), INDUSTRIES, strict=True)
    ]
    employees: list[tuple[int, str, str, str, str | None]] = [
        (1, people[0], "managing director", "Management", None)
    ]
    heads = {}
    for number, name in enumerate(people[1:], start=2):
        department = list(TITLES)[number % len(TITLES)]
        chief = heads.get(department)
        title = rng.choice(TITLES[department]) if chief else f"head of {department.lower()}"
        employees.append((number, name, title, department, chief or people[0]))
        heads.setdefault(department, name)
    works = WORKS.split()
    rng.shuffle(works)
    projects = []
    for river, work in zip(RIVERS.split(), works, strict=True):
        begun = date(2018, 1, 1) + timedelta(days=rng.randrange(1500))
        done = begun + timedelta(days=rng.randrange(200, 1200))
        project = (f"{river} {work}", rng.choice(CITIES), begun.isoformat(), done.isoformat())
        projects.append((*project, rng.choice(clients)[0], rng.choice(people[1:])))
    return Company(clients, employees, projects)


def write_database(company: Company, path: Path) -> None:
    """Write the three tables as a SQLite file; one that is there is replaced."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    with connection:
        connection.executescript(SCHEMA)
        connection.executemany("INSERT INTO Client VALUES (?, ?, ?)", company.clients)
        connection.executemany("INSERT INTO Employee VALUES (?, ?, ?, ?, ?)", company.employees)
        connection.executemany("INSERT INTO Project VALUES (?, ?, ?, ?, ?, ?)", company.projects)
    connection.close()


def spoken(day: str) -> str:
    """Return a date as people write it."""
    found = date.fromisoformat(day)
    return f"{found.day} {found:%B} {found.year}"


def documents(company: Company) -> list[dict[str, str]]:
    """Return a document for each row, in whole sentences, with the id that the labels file says."""
    found = []
    for name, industry, city in company.clients:
        text = (
            f"The industry of the client {name} is {industry}. "
            f"The location of the client {name} is {city}."
        )
        found.append({"id": f"clients/{name}", "text": text})
    for _, name, title, department, chief in company.employees:
        text = (
            f"The job title of the employee {name} is {title}. "
            f"The department of the employee {name} is {department}."
        )
        told = f" The supervisor of the employee {name} is {chief}." if chief else ""
        found.append({"id": f"employees/{name}", "text": text + told})
    for name, city, begun, done, client, director in company.projects:
        text = (
            f"The location of the project {name} is {city}. "
            f"The start date of the project {name} is {spoken(begun)}. "
            f"The end date of the project {name} is {spoken(done)}. "
            f"The client of the project {name} is {client}. "
            f"The director of the project {name} is {director}."
        )
        found.append({"id": f"projects/{name}", "text": text})
    return found


LABELS = {"Client": "clients/{Name}", "Employee": "employees/{Name}", "Project": "projects/{Name}"}
"""Of which document a row is told in: `documents` of the labels file."""


def write(folder: Path, seed: int = 0) -> None:
    """Write `company.db`, `documents.jsonl` and `labels.json` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    company = made_up(seed)
    write_database(company, folder / "company.db")
    lines = [json.dumps(document) + "\n" for document in documents(company)]
    (folder / "documents.jsonl").write_text("".join(lines), "utf-8")
    labels = {
        "format": "guardrail-grammar-labels",
        "version": 1,
        "tables": {name: {"documents": pattern} for name, pattern in LABELS.items()},
    }
    (folder / "labels.json").write_text(json.dumps(labels, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
