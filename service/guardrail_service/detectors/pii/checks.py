"""Verifies numbers beyond their form: check digits, ranges, calendars. Pure."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable
from datetime import date
from functools import cache
from importlib import import_module

Check = Callable[[str], bool]

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_CONSTANTS = (1, 0x2BC830A3)
_BECH32_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_ADVERTISED_SSN = frozenset({"078051120", "219099999"})
"""Numbers once printed in advertisements, so nobody's (Social Security Administration)."""
_FIRST_YEAR = 1910
"""A date of birth before this year belongs to nobody alive whose data needs protection."""
_PUBLIC_RESOLVERS = frozenset(
    {"1.1.1.1", "1.0.0.1", "8.8.8.8", "8.8.4.4", "9.9.9.9", "149.112.112.112", "208.67.222.222"}
)
_DOCUMENTATION = tuple(
    ipaddress.ip_network(n)
    for n in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
)


def alnum(value: str) -> str:
    """Return a value without separators, in upper case."""
    return "".join(c for c in value if c.isalnum()).upper()


def luhn(value: str) -> bool:
    """Return whether the digits pass the Luhn check (ISO/IEC 7812-1)."""
    digits = [int(c) for c in value if "0" <= c <= "9"]
    doubled = sum(sum(divmod(2 * d, 10)) for d in digits[-2::-2])
    return len(digits) > 1 and (doubled + sum(digits[::-2])) % 10 == 0


def card(value: str) -> bool:
    """Return whether a card network issues numbers of this prefix and length, and Luhn holds.

    Source:
        The networks' published issuer ranges; 12-digit Maestro only counts in context.
    """
    number = alnum(value)
    return len(set(number)) > 1 and _issuer(number) and luhn(number)


def card_in_context(value: str) -> bool:
    """Return whether a number called a card can be one: length and Luhn, any issuer."""
    number = alnum(value)
    return number.isdigit() and 12 <= len(number) <= 19 and len(set(number)) > 1 and luhn(number)


def _issuer(number: str) -> bool:
    size, two, three, four = len(number), number[:2], int(number[:3]), int(number[:4])
    if size == 13:
        return number[0] == "4"
    if size == 14:
        return two in ("36", "38", "39") or 300 <= three <= 305 or four == 3095
    if size == 15:
        return two in ("34", "37") or number[:4] in ("2131", "1800")
    if number[0] == "4":
        return size in (16, 19)
    if size == 16 and (51 <= int(two) <= 55 or 2200 <= four <= 2204 or 2221 <= four <= 2720):
        return True
    return size >= 16 and _long_issuer(four, three, two)


def _long_issuer(four: int, three: int, two: str) -> bool:
    """Return whether it is Discover, JCB, UnionPay, Maestro, RuPay, Dankort, Diners or Troy."""
    return (
        four in (6011, 5018, 5019, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763, 9792)
        or 3528 <= four <= 3589
        or 644 <= three <= 649
        or three == 508
        or two in ("36", "62", "65", "81", "82")
    )


def ssn(value: str) -> bool:
    """Return whether the area, group and serial of a US social security number exist."""
    number = alnum(value)
    area, group, serial = number[:3], number[3:5], number[5:]
    return (
        len(number) == 9
        and number.isdigit()
        and area not in ("000", "666")
        and area < "900"
        and group != "00"
        and serial != "0000"
        and number not in _ADVERTISED_SSN
        and number not in ("123456789", "111111111", "222222222", "333333333")
    )


def itin(value: str) -> bool:
    """Return whether the group of a US ITIN is one that the tax service assigns."""
    number = alnum(value)
    if len(number) != 9 or not number.isdigit() or number[0] != "9":
        return False
    group = int(number[3:5])
    return 50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 92 or 94 <= group <= 99


def iban(value: str) -> bool:
    """Return whether ISO 13616's mod 97 holds; the length is checked by the form."""
    number = alnum(value)
    digits = "".join(str(int(c, 36)) for c in number[4:] + number[:4])
    return int(digits) % 97 == 1


def routing(value: str) -> bool:
    """Return whether a US routing number has a Federal Reserve prefix and the ABA checksum."""
    number = alnum(value)
    if len(number) != 9 or not number.isdigit():
        return False
    prefix = int(number[:2])
    known = prefix <= 12 or 21 <= prefix <= 32 or 61 <= prefix <= 72 or prefix == 80
    total = sum(w * int(d) for w, d in zip((3, 7, 1) * 3, number, strict=True))
    return known and total > 0 and total % 10 == 0


def address(value: str) -> bool:
    """Return whether it is an address of the internet protocol, of whatever network."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def public_ip(value: str) -> bool:
    """Return whether it is one host's address on the public network.

    Private, loopback, link-local, multicast and reserved addresses name nobody; nor do the public
    resolvers. Documentation ranges count, so that examples behave like real ones.
    """
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False
    if any(address in network for network in _DOCUMENTATION if network.version == address.version):
        return True
    return address.is_global and not address.is_multicast and value not in _PUBLIC_RESOLVERS


def version_like(value: str) -> bool:
    """Return whether a dotted quad has only small parts, as versions and section numbers do."""
    return "." in value and ":" not in value and all(int(p) < 32 for p in value.split("."))


def mac(value: str) -> bool:
    """Return whether a MAC address is not a placeholder of one repeated digit."""
    return len(set(alnum(value))) > 1


def bitcoin(value: str) -> bool:
    """Return whether a Bitcoin address has its base58 or bech32(m) checksum (BIP 173, 350)."""
    if value[:3].lower() == "bc1":
        return _bech32(value)
    number = 0
    for character in value:
        number = number * 58 + _BASE58.index(character)
    raw = number.to_bytes(25, "big") if number.bit_length() <= 200 else b""
    digest = hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()
    return raw != b"" and digest[:4] == raw[-4:]


def _bech32(value: str) -> bool:
    if value not in (value.lower(), value.upper()):
        return False
    prefix, _, data = value.lower().rpartition("1")
    values = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    checksum = 1
    for number in values + [_BECH32.find(c) for c in data]:
        if number < 0:
            return False
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ number
        for bit, generator in enumerate(_BECH32_GENERATOR):
            checksum ^= generator if top >> bit & 1 else 0
    return checksum in _BECH32_CONSTANTS


_MONTHS = {
    name: month
    for month, names in enumerate(
        (
            "january jan januar janvier enero gennaio janeiro januari",
            "february feb februar février fevrier febrero febbraio fevereiro februari",
            "march mar märz marz mars marzo março marco maart",
            "april apr avril abril aprile",
            "may mai mayo maggio maio mei",
            "june jun juni juin junio giugno junho",
            "july jul juli juillet julio luglio julho",
            "august aug août aout agosto augustus",
            "september sep sept septembre septiembre settembre setembro",
            "october oct oktober okt octobre octubre ottobre outubro",
            "november nov novembre noviembre novembro",
            "december dec dezember dez décembre decembre diciembre dicembre dezembro",
        ),
        start=1,
    )
    for name in names.split()
}


def birth_date(value: str) -> bool:
    """Return whether a day exists in the calendar and somebody born then may be alive."""
    if len({c for c in value if c in "-/."}) > 1:
        return False
    parts = "".join(c if c.isalnum() else " " for c in value.casefold()).split()
    numbers = [int(_day(p)) for p in parts if _day(p).isdigit()]
    named = next((_MONTHS[p] for p in parts if p in _MONTHS), None)
    if named is not None:
        return len(numbers) == 2 and _plausible(numbers[1], named, numbers[0])
    if len(numbers) != 3:
        return False
    first, second, third = numbers
    if first > 999:
        return _plausible(first, second, third)
    return _plausible(third, second, first) or _plausible(third, first, second)


def _plausible(year: int, month: int, day: int) -> bool:
    return (year >= _FIRST_YEAR or year < 100) and _exists(year, month, day)


def _day(part: str) -> str:
    return part[:-2] if part[-2:] in ("st", "nd", "rd", "th") else part


def _exists(year: int, month: int, day: int) -> bool:
    full = year if year > 99 else 2000 + year
    try:
        date(full, month, day)
    except ValueError:
        return False
    return True


def au_medicare(value: str) -> bool:
    """Return whether the ninth digit of an Australian Medicare number checks the first eight."""
    number = alnum(value)
    weights = (1, 3, 7, 9, 1, 3, 7, 9)
    return (
        number.isdigit()
        and len(number) in (10, 11)
        and number[0] in "23456"
        and sum(w * int(d) for w, d in zip(weights, number, strict=False)) % 10 == int(number[8])
    )


def sg_nric(value: str) -> bool:
    """Return whether the last letter of a Singapore NRIC or FIN fits its digits."""
    number = alnum(value)
    if len(number) != 9 or not number[1:8].isdigit() or number[0] not in "STFGM":
        return False
    total = sum(w * int(d) for w, d in zip((2, 7, 6, 5, 4, 3, 2), number[1:8], strict=True))
    total += {"T": 4, "G": 4, "M": 3}.get(number[0], 0)
    letters = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "XWUTRQPNJLK"}
    return number[8] == letters.get(number[0], "XWUTRQPNMLK")[total % 11]


def hkid(value: str) -> bool:
    """Return whether the check digit of a Hong Kong identity card holds (mod 11)."""
    number = alnum(value).rjust(9)
    if not number[2:8].isdigit() or not number[1].isalpha() or number[8] not in "0123456789A":
        return False
    values = [36 if c == " " else int(c, 36) for c in number]
    return sum(w * v for w, v in zip(range(9, 0, -1), values, strict=True)) % 11 == 0


def tw_id(value: str) -> bool:
    """Return whether the check digit of a Taiwanese identity number holds (mod 10)."""
    number = alnum(value)
    if len(number) != 10 or not number[0].isalpha() or not number[1:].isdigit():
        return False
    code = "ABCDEFGHJKLMNPQRSTUVXYWZIO".find(number[0]) + 10
    values = [code // 10, code % 10, *map(int, number[1:])]
    weights = (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1)
    return sum(w * v for w, v in zip(weights, values, strict=True)) % 10 == 0


def kr_rrn(value: str) -> bool:
    """Return whether a Korean number starts with a date; since October 2020 nothing else checks."""
    number = alnum(value)
    if len(number) != 13 or not number.isdigit() or number[6] in "90":
        return False
    century = 1900 if number[6] in "1256" else 2000
    return _exists(century + int(number[:2]), int(number[2:4]), int(number[4:6]))


def uk_nino(value: str) -> bool:
    """Return whether the letters of a British national insurance number are allowed."""
    number = alnum(value)
    return (
        len(number) == 9
        and number[0] not in "DFIQUV"
        and number[1] not in "DFIQUVO"
        and number[:2].isalpha()
        and number[:2] not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")
        and number[2:8].isdigit()
        and number[8] in "ABCD"
    )


def in_voter(value: str) -> bool:
    """Return whether it has the form of an Indian voter id; its check digit is often not kept."""
    number = alnum(value)
    return len(number) == 10 and number[:3].isalpha() and number[3:].isdigit()


def za_id(value: str) -> bool:
    """Return whether a South African number has a date, a known status and the Luhn digit."""
    number = alnum(value)
    return (
        len(number) == 13
        and number.isdigit()
        and number[10] in "012"
        and any(_exists(c + int(number[:2]), *_month_day(number[2:6])) for c in (1900, 2000))
        and luhn(number)
    )


def fi_hetu(value: str) -> bool:
    """Return whether a Finnish code is valid; temporary ones (serial from 900) count too."""
    check = import_module("stdnum.fi.hetu").is_valid
    return bool(check(value, allow_temporary=True))


def es_dni(value: str) -> bool:
    """Return whether the letter of a Spanish DNI holds; its leading zero is often not written."""
    check = import_module("stdnum.es.dni").is_valid
    return len(alnum(value)) >= 8 and bool(check(alnum(value).zfill(9)))


def de_svnr(value: str) -> bool:
    """Return whether a German insurance number has a date and its check digit.

    Source:
        VKVV section 4: area, birth date (day + 50 for a second series), letter, serial, digit.
    """
    number = alnum(value)
    if len(number) != 12 or not _one_letter(number, 8):
        return False
    day, month = int(number[2:4]) % 50, int(number[4:6])
    dated = _exists(2000, month, day)  # a leap year: the century is not part of the number
    digits = number[:8] + _ordinal(number[8]) + number[9:]
    return dated and _cross_sums(digits[:-1], (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)) == digits[-1]


def de_kvnr(value: str) -> bool:
    """Return whether a German health-insurance number has its check digit (SGB V section 290)."""
    number = alnum(value)
    if len(number) != 10 or not _one_letter(number, 0):
        return False
    digits = _ordinal(number[0]) + number[1:]
    return _cross_sums(digits[:-1], (1, 2) * 5) == digits[-1]


def de_lanr(value: str) -> bool:
    """Return whether a German physician number has its check digit (KBV, weights 4 and 9)."""
    number = alnum(value)
    if len(number) != 9 or not (number.isascii() and number.isdigit()):
        return False
    total = sum(w * int(d) for w, d in zip((4, 9) * 3, number[:6], strict=True))
    return total > 0 and (10 - total % 10) % 10 == int(number[6])


def de_document(value: str) -> bool:
    """Return whether a German passport or identity card has its check digit (ICAO 9303).

    Nine characters of which the last is the check digit; vowels and look-alike letters are unused.
    """
    number = alnum(value)
    if len(number) != 9 or number[0].isdigit() or not number[8:].isdecimal():
        return False
    if not number.isascii() or any(c in "ABDEIOQSU" for c in number):
        return False
    weights = (7, 3, 1) * 3
    total = sum(w * int(c, 36) for w, c in zip(weights, number[:8], strict=False))
    return total % 10 == int(number[8])


def us_npi(value: str) -> bool:
    """Return whether a US provider number has the Luhn digit behind its prefix 80840 (CMS)."""
    number = alnum(value)
    return len(number) == 10 and number[0] in "12" and number.isdecimal() and luhn("80840" + number)


def ph_tin(value: str) -> bool:
    """Return whether a Philippine taxpayer number has its check digit (weights 9 to 2, mod 11)."""
    number = alnum(value)
    if len(number) not in (9, 12) or not (number.isascii() and number.isdigit()):
        return False
    total = sum(w * int(d) for w, d in zip(range(9, 1, -1), number[:8], strict=True))
    return total > 0 and total % 11 == int(number[8])


_DATES_AT = {
    "pl_pesel": (2, 20, 4, 100), "be_nn": (2, 20, 4, 100), "no_fnr": (2, 40, 0, 40),
    "ee_ik": (3, 100, 5, 100), "gr_amka": (2, 100, 0, 100), "za_id": (2, 100, 4, 100),
    "ro_cnp": (3, 100, 5, 100), "si_emso": (2, 100, 0, 100),
}  # fmt: skip
"""Where the month of birth starts and what may be added to it in multiples; so for the day."""


def may_be(type_: str, digits: str) -> bool:
    """Return False where a glance shows that bare digits are no number of a type.

    A tenth of the cost of the full check, which most numbers in a text then never need.
    """
    place = _DATES_AT.get(type_)
    if place is not None:
        month, months, day, days = place
        return 1 <= int(digits[month : month + 2]) % months <= 12 and (
            1 <= int(digits[day : day + 2]) % days <= 31
        )
    if type_ == "tr_tckn":
        return sum(map(int, digits[:10])) % 10 == int(digits[10])
    if type_ == "br_cpf":
        total = sum(w * int(d) for w, d in zip(range(11, 1, -1), digits[:10], strict=True))
        return (11 - total % 11) % 11 % 10 == int(digits[10])
    return True


def _one_letter(number: str, place: int) -> bool:
    """Return whether exactly one place holds a letter, A to Z, and all others digits."""
    rest = number[:place] + number[place + 1 :]
    return number.isascii() and number[place].isalpha() and rest.isdigit()


def _ordinal(letter: str) -> str:
    return f"{ord(letter) - ord('A') + 1:02d}"


def _cross_sums(digits: str, weights: tuple[int, ...]) -> str:
    """Return the last digit of the summed digit sums of weighted digits."""
    products = (w * int(d) for w, d in zip(weights, digits, strict=True))
    return str(sum(sum(divmod(p, 10)) for p in products) % 10)


def _month_day(digits: str) -> tuple[int, int]:
    return int(digits[:2]), int(digits[2:])


_OWN: dict[str, Check] = {
    f.__name__: f
    for f in (
        au_medicare,
        sg_nric,
        hkid,
        tw_id,
        kr_rrn,
        uk_nino,
        in_voter,
        za_id,
        fi_hetu,
        es_dni,
        de_svnr,
        de_kvnr,
        de_lanr,
        us_npi,
        ph_tin,
    )
}


@cache
def national(module: str) -> Check:
    """Return the check behind a name: `own:` and a function here, or a python-stdnum module."""
    source, _, name = module.partition(":")
    if source == "own":
        return _OWN[name]
    check: Check = import_module(f"stdnum.{module}").is_valid
    return check
