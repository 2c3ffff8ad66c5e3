"""Decide whether a run of digits is a telephone number. The only file that imports phonenumbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import phonenumbers

from guardrail_service.detectors.pii.checks import alnum

REGIONS = ("US", "GB", "DE", "FR", "IT", "ES", "NL", "AU", "IN")
"""Regions whose national forms are recognised without context, unless configured otherwise."""
_MORE_REGIONS = (
    *REGIONS, "AT", "BE", "BR", "CH", "CN", "DK", "FI", "GR", "HK", "ID", "IE", "IL", "JP", "KR",
    "MX", "MY", "NO", "NZ", "PH", "PL", "PT", "RO", "SE", "SG", "TH", "TR", "TW", "UA", "ZA",
)  # fmt: skip
"""Regions whose national forms count where a text is nothing but a number."""
_PUBLIC_LINES = (
    phonenumbers.PhoneNumberType.TOLL_FREE,
    phonenumbers.PhoneNumberType.PREMIUM_RATE,
    phonenumbers.PhoneNumberType.SHARED_COST,
    phonenumbers.PhoneNumberType.UAN,
)
_TOLL_FREE = ("800", "833", "844", "855", "866", "877", "888")
_SEPARATORS = " .-/()"


def international(value: str) -> int:
    """Return how many leading characters are a number in international form; 0 if none are."""
    for end in _cuts(value):
        number = _parse("+" + value[:end].lstrip("+0"), None)
        if number is not None and phonenumbers.is_possible_number(number):
            return 0 if _nobodys(number) else end
    return 0


def national(value: str, regions: Sequence[str]) -> bool:
    """Return whether it is an assigned number in the national form of one of the regions.

    A leading 0 is the trunk prefix everywhere but in North America, which has none.
    Groups of 3-2-4 are left to social security numbers, real or refused.
    """
    if is_date(value) or tuple(map(len, _groups(value))) == (3, 2, 4):
        return False
    trunk = value.lstrip("(").startswith("0")
    numbers = (_parse(value, r) for r in regions if trunk != _north_american(r))
    valid = [n for n in numbers if n is not None and phonenumbers.is_valid_number(n)]
    return bool(valid) and not any(_nobodys(number) for number in valid)


def anywhere(value: str) -> bool:
    """Return whether a text of nothing else is a number: in groups or with the trunk prefix 0."""
    if not all(c.isdigit() or c in _SEPARATORS for c in value) or thousands(value):
        return False
    if is_date(value) or (value.count(".") == 1 and value.replace(".", "").isdigit()):
        return False
    grouped = len(_groups(value)) in (2, 3, 4, 5)
    trunk = value.lstrip("(").startswith("0")
    return (grouped or trunk) and any(national(value, (region,)) for region in _MORE_REGIONS)


def announced(value: str) -> bool:
    """Return whether it may be a number, given that words nearby announce one."""
    digits = sum(c.isdigit() for c in _without_extension(value))
    decimal = value.count(".") == 1 and value.replace(".", "").isdigit()
    number = alnum(_without_extension(value)).removeprefix("1")
    toll_free = len(number) == 10 and number.startswith(_TOLL_FREE)
    varied = len(set(number)) > 1
    return 7 <= digits <= 15 and varied and not (is_date(value) or decimal or toll_free)


def thousands(value: str) -> bool:
    """Return whether it may be one number written with blanks or points between thousands."""
    for separator in " .":
        head, *rest = value.split(separator)
        if rest and head[:1] != "0" and len(head) <= 3 and head.isdigit():
            return all(len(group) == 3 and group.isdigit() for group in rest)
    return False


def _north_american(region: str) -> bool:
    return bool(phonenumbers.country_code_for_region(region) == 1)


def _nobodys(number: phonenumbers.PhoneNumber) -> bool:
    """Return whether it is a toll-free or charged line, which is a company's and not a person's."""
    return phonenumbers.number_type(number) in _PUBLIC_LINES


def _without_extension(value: str) -> str:
    for mark in ("x", "X", "e", "E"):
        value = value.partition(mark)[0]
    return value


def _cuts(value: str) -> Iterator[int]:
    """Yield the whole length, then shorter ones that end before a separator, down to 8 digits."""
    yield len(value)
    for end in range(len(value) - 1, 7, -1):
        if value[end] in _SEPARATORS and value[end - 1].isdigit():
            yield end


def _parse(value: str, region: str | None) -> phonenumbers.PhoneNumber | None:
    try:
        return phonenumbers.parse(value, region)
    except phonenumbers.NumberParseException:
        return None


def _groups(value: str) -> list[str]:
    return "".join(c if c.isdigit() else " " for c in value).split()


def is_date(value: str) -> bool:
    """Return whether it reads as a calendar date: 2024-05-01, 01.05.2024, 1/5/24."""
    parts = _groups(value)
    if len(parts) != 3 or "(" in value or " " in value.strip():
        return False
    sizes = tuple(map(len, parts))
    if sizes[0] == 4 and max(sizes[1:]) <= 2:
        return 1800 <= int(parts[0]) <= 2199
    if max(sizes[1:]) <= 2:
        return True
    return sizes[2] == 4 and max(sizes[:2]) <= 2 and int(min(parts[:2], key=int)) <= 12
