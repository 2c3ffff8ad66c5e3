"""The published list of personal-data types, with the names other tools give them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from guardrail_service.detectors.pii.national import NATIONAL


@dataclass(frozen=True, slots=True)
class PiiType:
    """One kind of personal data.

    Attributes:
        id: Our name: span label, parameter value and placeholder stem.
        name: What a report calls it.
        aliases: Names of the same thing in Presidio, H2O Eval Studio and elsewhere.
        how: How it is recognised, for people.
        check: What is verified beyond the form; empty where nothing can be.
        structured: Whether its form is fixed enough to be held to recall and precision of .97.
        context: Whether words that announce it must stand nearby: `no`, `bare` or `always`.
        country: Who issues it; empty where it is international.
    """

    id: str
    name: str
    aliases: tuple[str, ...]
    how: str
    check: str = ""
    structured: bool = True
    context: str = "no"
    country: str = ""


_GENERIC = (
    PiiType("email", "E-mail address", ("EMAIL_ADDRESS", "email", "EMAIL"), "local part @ domain"),
    PiiType(
        "phone",
        "Telephone number",
        ("PHONE_NUMBER", "PHONE", "phone_number", "PH_MOBILE_NUMBER", "TR_PHONE_NUMBER"),
        "international form; national form of a configured region; any form in context",
        "numbering plan (possible; valid for national forms)",
        context="bare",
    ),
    PiiType(
        "credit_card",
        "Payment card number",
        ("CREDIT_CARD", "credit_card_number", "CREDIT_CARD_NUMBER"),
        "12 to 19 digits, plain or in printed groups",
        "Luhn and issuer range (Luhn alone in context)",
    ),
    PiiType("iban", "IBAN", ("IBAN_CODE", "IBAN"), "country, length, groups of four", "mod 97"),
    PiiType(
        "us_ssn",
        "US social security number",
        ("US_SSN", "SSN", "social_security_number"),
        "3-2-4 digits with one separator; nine digits in context",
        "area, group and serial rules",
        context="bare",
        country="US",
    ),
    PiiType(
        "us_itin",
        "US taxpayer number (ITIN)",
        ("US_ITIN", "ITIN"),
        "9xx-xx-xxxx; nine digits in context",
        "group ranges",
        context="bare",
        country="US",
    ),
    PiiType(
        "passport",
        "Passport or identity-card number",
        (
            "US_PASSPORT",
            "UK_PASSPORT",
            "IT_PASSPORT",
            "ES_PASSPORT",
            "DE_PASSPORT",
            "DE_ID_CARD",
            "IN_PASSPORT",
            "KR_PASSPORT",
            "IT_IDENTITY_CARD",
            "PASSPORT",
        ),
        "6 to 12 letters and digits",
        context="always",
    ),
    PiiType(
        "driving_licence",
        "Driving licence number",
        (
            "US_DRIVER_LICENSE",
            "UK_DRIVING_LICENCE",
            "IT_DRIVER_LICENSE",
            "DE_FUEHRERSCHEIN",
            "KR_DRIVER_LICENSE",
            "DRIVER_LICENSE",
        ),
        "5 to 18 letters and digits; the British form stands alone",
        context="always",
    ),
    PiiType(
        "ip_address",
        "IP address",
        ("IP_ADDRESS", "IP"),
        "IPv4 and IPv6, public unless `private_ips`; not networks or version numbers",
        "parsed",
    ),
    PiiType(
        "mac_address",
        "MAC address",
        ("MAC_ADDRESS", "MAC"),
        "six pairs, or three groups of four hexadecimal digits",
        "not all equal",
    ),
    PiiType(
        "date_of_birth",
        "Date of birth",
        ("DATE_OF_BIRTH", "DOB", "BIRTH_DATE"),
        "a calendar date from 1910 on, next to words for birth",
        "calendar",
        structured=False,
        context="always",
    ),
    PiiType(
        "street_address",
        "Street address",
        ("STREET_ADDRESS", "ADDRESS"),
        "house number and street word (English, German, Dutch, French, Spanish, Portuguese, "
        "Italian), post-office box, military post",
        structured=False,
    ),
    PiiType(
        "crypto_wallet",
        "Crypto wallet",
        ("CRYPTO", "CRYPTO_WALLET", "BITCOIN_ADDRESS"),
        "Bitcoin (base58, bech32), Ethereum",
        "Bitcoin checksums; none for Ethereum",
    ),
    PiiType(
        "medical_record_number",
        "Medical record number",
        ("MEDICAL_RECORD_NUMBER", "MRN"),
        "4 to 12 digits, letters in front allowed",
        context="always",
    ),
    PiiType(
        "us_mbi",
        "US Medicare beneficiary number",
        ("US_MBI",),
        "1EG4-TE5-MK73",
        "letters allowed at each place",
        country="US",
    ),
    PiiType(
        "bank_account",
        "Bank account number",
        ("US_BANK_NUMBER", "US_BANK", "BANK_ACCOUNT", "BANK_ACCOUNT_NUMBER"),
        "6 to 18 digits",
        context="always",
    ),
    PiiType(
        "us_routing",
        "US bank routing number",
        ("ABA_ROUTING_NUMBER", "ABA_ROUTING", "US_ROUTING"),
        "nine digits",
        "ABA checksum and Federal Reserve prefix",
        context="always",
        country="US",
    ),
    PiiType(
        "username",
        "User name",
        ("USERNAME", "USER_NAME", "LOGIN"),
        "what follows `username:`, `user id is`, `handle: @` and the like",
        structured=False,
        context="always",
    ),
)


def _national() -> Iterable[PiiType]:
    for number in NATIONAL:
        context = "always" if not number.forms else "bare" if number.lengths else "no"
        yield PiiType(
            id=number.id,
            name=number.name,
            aliases=number.aliases,
            how=number.how,
            check="check digits" if number.checked else "allowed letters and digits",
            context=context,
            country=number.country,
        )


TYPES = MappingProxyType({t.id: t for t in (*_GENERIC, *_national())})
"""Every published type by id, in the order of the documentation."""

NATIONAL_IDS = tuple(number.id for number in NATIONAL)
H2O_TYPES = ("email", "credit_card", "us_ssn")
"""The types H2O Eval Studio's evaluator looks for."""

_GROUPS = {"all": tuple(TYPES), "national_id": NATIONAL_IDS, "structured": ()}
_GROUPS["structured"] = tuple(t.id for t in TYPES.values() if t.structured)
_ALIASES = {alias.casefold(): t.id for t in TYPES.values() for alias in (t.id, *t.aliases)}


def canonical(name: str) -> str | None:
    """Return our id for any tool's name of a type, or None where the list has no such type."""
    return _ALIASES.get(name.casefold())


def resolve(name: str) -> tuple[str, ...]:
    """Return the ids behind an id, an alias or a group (`all`, `national_id`, `structured`).

    Raises:
        ValueError: If there is no such type; the message lists what exists.
    """
    if name in _GROUPS:
        return _GROUPS[name]
    found = canonical(name)
    if found is None:
        raise ValueError(
            f"found type {name!r}; expected one of {', '.join((*_GROUPS, *TYPES))} or an alias"
        )
    return (found,)


class Finding(NamedTuple):
    """One piece of personal data; offsets are code points [start, end)."""

    type: str
    start: int
    end: int
    validated: bool
    distance: int = 0
