"""What a text's numbers, dates and times mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.detectors.facts.read import read


@pytest.mark.parametrize(
    ("text", "kind", "unit", "value"),
    [
        ("It costs €35.50.", "money", "money:EUR", 35.5),
        ("It costs 1 234,56 EUR.", "money", "money:EUR", 1234.56),
        ("It costs US$5 million.", "money", "money:USD", 5e6),
        ("It costs 20 pence.", "money", "money:GBP", 0.2),
        ("It costs 39 kr.", "money", "money:kr", 39),
        ("It weighs 8 pounds.", "measure", "mass", 8 * 0.45359237),
        ("There are 1,900 cases.", "number", "", 1900),
        ("There are 12 500 cases.", "number", "", 12500),
        ("Es gibt 3.400.000 Zeilen.", "number", "", 3.4e6),
        ("Two hundred and fifty-five people came.", "number", "", 255),
        ("It takes four and a half hours.", "duration", "duration", 4.5 * 3600),
        ("Nineteen eighty-nine it was.", "number", "", 1989),
        ("Some 1\u00b73 million deaths.", "number", "", 1.3e6),
        ("A quarter of an hour.", "duration", "duration", 900),
        ("It takes 7:49 min.", "duration", "duration", 469),
        ("A man, 72 y/o.", "duration", "duration", 72 * 365.25 * 86400),
        ("It costs 1,290 CZK.", "money", "money:CZK", 1290),
        ("It takes half an hour.", "duration", "duration", 1800),
        ("It takes 11 hours and 35 minutes.", "duration", "duration", 41700),
        ("She ran 1:14:32.", "duration", "duration", 4472),
        ("A 14-day stay.", "duration", "duration", 14 * 86400),
        ("About 12.5 % of them.", "percentage", "percent", 12.5),
        ("About 12.5 per cent of them.", "percentage", "percent", 12.5),
        ("Two-thirds of guests.", "percentage", "percent", 200 / 3),
        ("It is 72 °F.", "measure", "temperature", 200 / 9),
        ("At 100 km/h.", "measure", "speed", 100),
        ("It covers 18 km².", "measure", "area", 18e6),
        ("At 5:30 p.m.", "time", "time", 1050),
        ("Um 17.30 Uhr.", "time", "time", 1050),
        ("At noon.", "time", "time", 720),
        ("On the 3rd floor.", "ordinal", "ordinal", 3),
        ("On the second floor.", "ordinal", "ordinal", 2),
        ("On Fridays.", "weekday", "weekday", 4),
        ("Using ٣٥ km.", "measure", "length", 35000),
    ],
)
def test_one_fact(text: str, kind: str, unit: str, value: float) -> None:
    """By kind, dimension and value in the base unit; the first reading is the likeliest."""
    (fact,) = read(text).facts
    assert (fact.kind, fact.unit) == (kind, unit)
    assert fact.values[0] == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("20 November 2015", (2015, 11, 20)),
        ("Nov 20, 2015", (2015, 11, 20)),
        ("as of november 20th 2015", (2015, 11, 20)),
        ("20. November 2015", (2015, 11, 20)),
        ("20 de noviembre de 2015", (2015, 11, 20)),
        ("2015-11-20", (2015, 11, 20)),
        ("20.11.2015", (2015, 11, 20)),
        ("11/20/2015", (2015, 11, 20)),
        ("3/4/2015", (2015, None, None)),
        ("10/10/92", (1992, 10, 10)),
        ("3/4/07", (2007, None, None)),
        ("2015年11月20日", (2015, 11, 20)),
        ("November 2015", (2015, 11, None)),
        ("in 2015", (2015, None, None)),
    ],
)
def test_a_date(text: str, date: tuple[int | None, ...]) -> None:
    """In several formats and languages; day and month that could be either stay open."""
    (fact,) = read(text).facts
    assert fact.date == date


@pytest.mark.parametrize(
    ("text", "language", "minutes"),
    [
        ("入館は16時30分まで", "ja", [990]),
        ("晚上8点半", "zh", [510, 1230]),
        ("parte alle 9.40", "it", [580, 1300]),
    ],
)
def test_a_time_in_another_language(text: str, language: str, minutes: list[float]) -> None:
    """With minutes behind the sign for hours, and with a point behind a word for the hour."""
    (fact,) = read(text, 0, language).facts
    assert list(fact.values) == minutes


@pytest.mark.parametrize(
    "text",
    ["COVID-19 spread.", "Version v2.1.3.", "The address is 192.168.0.1.", "In the 1990s.",
     "3. Open the lid.", "Shown before [12].", "Rated 3D."],
)  # fmt: skip
def test_a_number_in_a_name_is_no_fact(text: str) -> None:
    """Nor is a list's mark or a citation."""
    assert not read(text).facts


def test_both_ends_of_a_range_have_its_unit() -> None:
    """ "5 to 10 km" is 5 km to 10 km, "9 to 5 pm" is 9 o'clock to 5 o'clock."""
    low, high = read("It is 5 to 10 km away.").facts
    assert (low.unit, low.values, high.values) == ("length", (5000.0,), (10000.0,))
    assert low.is_range
    assert low.other == 10000.0


@given(st.text(max_size=80), st.integers(0, 5))
def test_any_text_is_read_and_offsets_fit(text: str, start: int) -> None:
    """Tokens and facts are pieces of the text, in order."""
    found = read(text, start)
    for token in found.tokens:
        assert 0 <= token.start < token.end <= len(text)
    for fact in found.facts:
        assert 0 <= fact.start < fact.end <= len(text)
