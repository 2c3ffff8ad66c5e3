"""Minimal pairs for exact facts, made by a seeded draw: a true claim and one with one fact changed.

Each kind has templates of a passage and of a claim; the draw fills in subjects and values, adds
sentences about other things, and changes one value for the false twin.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

PAIRS = 120
"""Pairs of each kind."""
SUBJECTS = (
    "The Harbour Museum", "The Linden Hotel", "Parkside Gym", "The Otter Library", "Meadow Clinic",
    "The Falcon Theatre", "Brightwater School", "The Elm Garden", "Nordwind Ferries", "Cobalt Bank",
)  # fmt: skip
NAMES = (
    "Anna Berg", "Luis Ortega", "Mina Sato", "Peter Hahn", "Clara Novak", "Omar Haddad",
    "Ines Duarte", "Tom Ellis",
)  # fmt: skip
FILLERS = (
    "Visitors reach the building by tram or on foot.",
    "The staff speak English and Spanish.",
    "A small shop near the entrance sells postcards and tea.",
    "Lockers stand beside the main door.",
    "The garden behind the house is open to everybody.",
)
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine")
Draw = random.Random


class Pair(NamedTuple):
    """A passage with a claim that follows from it and one that does not."""

    kind: str
    passage: str
    true: str
    false: str


def other(draw: Draw, value: int, low: int, high: int) -> int:
    """Return another number of a range."""
    found = value
    while found == value:
        found = draw.randint(low, high)
    return found


def number(draw: Draw) -> tuple[str, str, str]:
    """Amounts of one thing, with and without thousands marks."""
    who, n = draw.choice(SUBJECTS), draw.randint(1100, 98000)
    wrong = n + draw.choice((-900, 1000, 90, 2700)) + 1
    shown = draw.choice((f"{n:,}", str(n), f"{n:,}".replace(",", " ")))
    return (f"{who} owns {n:,} objects.", f"{who} owns {shown} objects.",
            f"{who} owns {wrong:,} objects.")  # fmt: skip


def unit(draw: Draw) -> tuple[str, str, str]:
    """The same number in another unit."""
    who, n = draw.choice(SUBJECTS), draw.randint(11, 96)
    right, wrong = draw.choice((("km", "miles"), ("kg", "g"), ("cm", "mm"), ("GB", "MB"),
                                ("litres", "gallons"), ("metres", "feet")))  # fmt: skip
    return (f"The largest crate at {who} measures {n} {right}.",
            f"The largest crate at {who} measures {n} {right}.",
            f"The largest crate at {who} measures {n} {wrong}.")  # fmt: skip


def currency(draw: Draw) -> tuple[str, str, str]:
    """Another sign before the same amount."""
    who, n = draw.choice(SUBJECTS), draw.randint(11, 480)
    right, wrong = draw.sample((("€", "euros"), ("$", "dollars"), ("£", "pounds")), 2)
    return (f"A day ticket for {who} costs {right[0]}{n}.",
            f"A day ticket for {who} costs {n} {right[1]}.",
            f"A day ticket for {who} costs {wrong[0]}{n}.")  # fmt: skip


def percentage(draw: Draw) -> tuple[str, str, str]:
    """Shares."""
    who, n = draw.choice(SUBJECTS), draw.randint(11, 88)
    return (f"{who} gives members a discount of {n} %.",
            f"Members of {who} get a discount of {n} percent.",
            f"Members of {who} get a discount of {n + draw.choice((3, 5, 9))} %.")  # fmt: skip


def date(draw: Draw) -> tuple[str, str, str]:
    """Days, months and years in several formats."""
    who, day, month = draw.choice(SUBJECTS), draw.randint(1, 28), draw.randint(1, 12)
    year = draw.randint(1901, 2024)
    name = MONTHS[month - 1]
    shown = draw.choice((f"{name} {day}, {year}", f"{day} {name} {year}", f"{year}"))
    part = draw.choice(("day", "month", "year"))
    wrong = {
        "day": f"{other(draw, day, 1, 28)} {name} {year}",
        "month": f"{day} {MONTHS[other(draw, month, 1, 12) - 1]} {year}",
        "year": f"{day} {name} {other(draw, year, 1901, 2024)}",
    }[part]
    return (f"{who} was opened on {day} {name} {year}.", f"{who} was opened on {shown}."
            if len(shown) > 4 else f"{who} was opened in {shown}.",
            f"{who} was opened on {wrong}.")  # fmt: skip


def time(draw: Draw) -> tuple[str, str, str]:
    """Times of day on 12 and 24 hours."""
    who, hour, minute = draw.choice(SUBJECTS), draw.randint(13, 22), draw.choice((0, 15, 30, 45))
    half = f"{hour - 12}:{minute:02d} pm" if minute else f"{hour - 12} pm"
    wrong = other(draw, hour, 13, 22)
    return (f"{who} closes at {hour}:{minute:02d}.", f"{who} closes at {half}.",
            f"{who} closes at {wrong}:{minute:02d}.")  # fmt: skip


def duration(draw: Draw) -> tuple[str, str, str]:
    """How long, in digits and in words."""
    who, n = draw.choice(SUBJECTS), draw.randint(0, 7)
    span = draw.choice(("days", "weeks", "months", "hours", "minutes"))
    wrong = other(draw, n, 0, 7)
    return (f"Refunds from {who} take {WORDS[n]} {span}.",
            f"Refunds from {who} take {n + 2} {span}.",
            f"Refunds from {who} take {WORDS[wrong]} {span}.")  # fmt: skip


def count(draw: Draw) -> tuple[str, str, str]:
    """How many of a thing, in digits and in words."""
    who, n = draw.choice(SUBJECTS), draw.randint(0, 7)
    things = draw.choice(("floors", "branches", "reading rooms", "entrances", "lifts"))
    return (f"{who} has {WORDS[n]} {things}.", f"{who} has {n + 2} {things}.",
            f"{who} has {WORDS[other(draw, n, 0, 7)]} {things}.")  # fmt: skip


def ranged(draw: Draw) -> tuple[str, str, str]:
    """One end of a range changed."""
    who, low = draw.choice(SUBJECTS), draw.randint(2, 9)
    high = low + draw.randint(3, 9)
    wrong = high + draw.choice((2, 3, 10))
    return (f"Delivery by {who} takes {low} to {high} days.",
            f"Delivery by {who} takes between {low} and {high} days.",
            f"Delivery by {who} takes {low} to {wrong} days.")  # fmt: skip


def ordinal(draw: Draw) -> tuple[str, str, str]:
    """Which one of several."""
    who, n = draw.choice(SUBJECTS), draw.randint(0, 5)
    what = draw.choice(("pool", "restaurant", "office", "archive"))
    wrong = ORDINALS[other(draw, n, 0, 5)]
    return (f"The {what} of {who} is on the {ORDINALS[n]} floor.",
            f"At {who} the {what} is on the {ORDINALS[n]} floor.",
            f"The {what} of {who} is on the {wrong} floor.")  # fmt: skip


def negation(draw: Draw) -> tuple[str, str, str]:
    """Allowed and not allowed."""
    what = draw.choice(("Dogs", "Bicycles", "Large bags", "Cameras", "Small children", "Umbrellas"))
    where = draw.choice(("in the main hall", "in the lounge", "on the terrace", "in the tower"))
    word = draw.choice(("allowed", "permitted"))
    plain = f"{what} are {word} {where}."
    denied = draw.choice((f"{what} are not {word} {where}.", f"{what} are prohibited {where}."))
    return (plain, plain, denied) if draw.random() < 0.5 else (denied, denied, plain)


def quantifier(draw: Draw) -> tuple[str, str, str]:
    """All, some and none of a thing."""
    who = draw.choice(SUBJECTS).removeprefix("The ")
    what = draw.choice(("rooms", "desks", "lockers", "tickets"))
    have = draw.choice(("include a towel", "come with a lamp", "carry a number plate"))
    right, wrong = draw.choice((("Some", "All"), ("Few", "Most"), ("Most", "All"), ("No", "All")))
    return (f"{right} {what} of {who} {have}.", f"{right} {what} of {who} {have}.",
            f"{wrong} {what} of {who} {have}.")  # fmt: skip


def order(draw: Draw) -> tuple[str, str, str]:
    """What comes first."""
    events = ("the parade", "the concert", "the auction", "the lecture", "the banquet", "the race")
    one, two = draw.sample(events, 2)
    verb = draw.choice(("takes place", "is held", "begins"))
    return (f"{one.capitalize()} {verb} before {two}.", f"{two.capitalize()} {verb} after {one}.",
            f"{one.capitalize()} {verb} after {two}.")  # fmt: skip


def role(draw: Draw) -> tuple[str, str, str]:
    """Who did what to whom."""
    one, two = draw.sample(NAMES, 2)
    verb = draw.choice(("hired", "succeeded", "trained", "accused", "nominated", "replaced"))
    return (f"{one} {verb} {two}.", f"{two} was {verb} by {one}.", f"{two} {verb} {one}.")


def arithmetic(draw: Draw) -> tuple[str, str, str]:
    """Products, sums and differences."""
    who, a, b = draw.choice(SUBJECTS), draw.randint(31, 79), draw.randint(11, 29)
    times = draw.randint(2, 6)
    which = draw.choice(("product", "sum", "difference", "equation"))
    base = f"A night at {who} costs {a} euros. Breakfast costs {b} euros."
    if which == "product":
        right, said = times * a, f"{WORDS[times - 2].capitalize()} nights at {who} cost "
    elif which == "sum":
        right, said = a + b, f"A night at {who} with breakfast costs in total "
    elif which == "difference":
        right, said = a - b, f"The difference between a night at {who} and breakfast is "
    else:
        right, said = times * a, f"At {who} you pay {times} x {a} = "
    wrong = right + draw.choice((7, 13, 17))
    return base, f"{said}{right} euros.", f"{said}{wrong} euros."


def conversion(draw: Draw) -> tuple[str, str, str]:
    """The same amount in another unit."""
    who, n = draw.choice(SUBJECTS), draw.randint(3, 40)
    first, second, factor = draw.choice((("kg", "g", 1000), ("m", "cm", 100), ("km", "m", 1000),
                                         ("hours", "minutes", 60), ("weeks", "days", 7),
                                         ("litres", "ml", 1000)))  # fmt: skip
    wrong = other(draw, n, 3, 40)
    return (f"The longest test at {who} needs {n} {first}.",
            f"The longest test at {who} needs {n * factor} {second}.",
            f"The longest test at {who} needs {wrong * factor} {second}.")  # fmt: skip


def rounding(draw: Draw) -> tuple[str, str, str]:
    """Words such as about, nearly and more than."""
    who, n = draw.choice(SUBJECTS), draw.randint(2, 9) * 1000 + draw.randint(12, 90)
    base = n // 1000 * 1000
    word = draw.choice(("about", "roughly", "more than", "over"))
    wrong = base + draw.choice((1, 2, 3)) * 1000
    return (f"{who} welcomed {n:,} guests.", f"{who} welcomed {word} {base:,} guests.",
            f"{who} welcomed {word} {wrong:,} guests.")  # fmt: skip


KINDS: dict[str, Callable[[Draw], tuple[str, str, str]]] = {
    "number": number, "unit": unit, "currency": currency, "percentage": percentage, "date": date,
    "time": time, "duration": duration, "count": count, "range": ranged, "ordinal": ordinal,
    "negation": negation, "quantifier": quantifier, "order": order, "role": role,
    "arithmetic": arithmetic, "conversion": conversion, "rounding": rounding,
}  # fmt: skip


def pairs(kind: str, how_many: int = PAIRS) -> Iterator[Pair]:
    """Yield the pairs of a kind; the same ones every time."""
    draw = random.Random(f"facts {kind}")  # noqa: S311 - made-up cases, not a secret
    for _ in range(how_many):
        passage, true, false = KINDS[kind](draw)
        before, after = draw.sample(FILLERS, 2)
        yield Pair(kind, f"{before} {passage} {after}", true, false)
