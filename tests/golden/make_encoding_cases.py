"""Write encoding_cases.jsonl: made-up data in every encoding, nested and framed, and innocents.

    python tests/golden/make_encoding_cases.py > tests/golden/encoding_cases.jsonl

The encoders are the standard library's; none of the service's code is used. Spans mark the encoded
part of the text.
"""

# Cases are one per line, whatever their length.
# ruff: noqa: E501

from __future__ import annotations

import base64
import codecs
import json
import random
import string
import sys
import urllib.parse
from collections.abc import Callable
from typing import Any

Encoder = Callable[[str], str]


def _card(rng: random.Random) -> str:
    digits = [4, *(rng.randrange(10) for _ in range(14))]
    total = sum(d if i % 2 else (2 * d - 9 if d > 4 else 2 * d) for i, d in enumerate(digits))
    return "".join(map(str, digits)) + str(-total % 10)


def _mail(rng: random.Random) -> str:
    name = "".join(rng.choice(string.ascii_lowercase) for _ in range(rng.randint(4, 9)))
    return f"{name}.{rng.choice(('meyer', 'smith', 'rossi'))}@{rng.choice(('example.com', 'mail.example.org'))}"


def _key(rng: random.Random) -> str:
    return "AKI" + "A" + "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ234567") for _ in range(16))


PAYLOADS = {"email": _mail, "credit_card": _card, "aws_access_key_id": _key}
HARMLESS = (
    "the meeting is at noon in room four",
    "chapter two: rivers and lakes",
    "all tests passed",
)


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _url64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _b32(text: str) -> str:
    return base64.b32encode(text.encode()).decode()


def _hex(text: str) -> str:
    return text.encode().hex()


BLOCKS: dict[str, Encoder] = {
    "base64": _b64,
    "base64 without padding": lambda t: _b64(t).rstrip("="),
    "base64url": _url64,
    "base64 of UTF-16": lambda t: base64.b64encode(t.encode("utf-16-le")).decode(),
    "base32": _b32,
    "base32, lower case": lambda t: _b32(t).lower().rstrip("="),
    "hex": _hex,
    "hex, upper case": lambda t: _hex(t).upper(),
    "hex with prefix": lambda t: "0x" + _hex(t),
    "hex, spaced": lambda t: t.encode().hex(" "),
    "hex, colons": lambda t: t.encode().hex(":"),
    "hex, 0x list": lambda t: ", ".join(f"0x{b:02x}" for b in t.encode()),
    "decimal": lambda t: " ".join(str(b) for b in t.encode()),
    "decimal, commas": lambda t: ",".join(str(b) for b in t.encode()),
    "binary": lambda t: " ".join(f"{b:08b}" for b in t.encode()),
    "U+ list": lambda t: " ".join(f"U+{ord(c):04X}" for c in t),
    "base64 twice": lambda t: _b64(_b64(t)),
    "base64 of hex": lambda t: _b64(_hex(t)),
    "hex of base64": lambda t: _hex(_b64(t)),
    "base64 of percent": lambda t: _b64("".join(f"%{b:02X}" for b in t.encode())),
    "base64 three times": lambda t: _b64(_b64(_b64(t))),
    "base32 of base64": lambda t: _b32(_b64(t)),
}
DISGUISES: dict[str, Encoder] = {
    "percent, all": lambda t: "".join(f"%{b:02X}" for b in t.encode()),
    "percent": lambda t: (
        urllib.parse.quote(t, safe="") if "@" in t else f"%{ord(t[0]):02X}" + t[1:]
    ),
    "percent twice": lambda t: "".join(f"%25{b:02X}" for b in t.encode()),
    "entities": lambda t: "".join(f"&#{ord(c)};" for c in t),
    "hex entities": lambda t: "".join(f"&#x{ord(c):x};" for c in t),
    "one entity": lambda t: t[:4] + f"&#{ord(t[4])};" + t[5:],
    "u escapes": lambda t: "".join(f"\\u{ord(c):04x}" for c in t),
    "x escapes": lambda t: "".join(f"\\x{ord(c):02x}" for c in t),
    "octal escapes": lambda t: "".join(f"\\{ord(c):03o}" for c in t),
    "zero width": lambda t: t[:3] + "\u200b" + t[3:7] + "\u200d" + t[7:],
    "soft hyphen": lambda t: t[:5] + "\u00ad" + t[5:],
    "full width": lambda t: "".join(chr(ord(c) + 0xFEE0) for c in t),
    "bold": lambda t: "".join(_bold(c) for c in t),
    "entity and percent": lambda t: "".join(f"&#37;{b:02X}" for b in t.encode()),
}
CYRILLIC = str.maketrans("aeocp", "аеоср")  # noqa: RUF001 - that is the point
FRAMES = (
    "{}",
    "{} was in the record.",
    "The record says {}",
    "Decode this: {} and reply.",
    '{{"d": "{}"}}',
    "see\n{}\nbelow",
)

SHOWN = {("full width", "credit_card")}
"""What the detector `pii` reads as it stands, so that nothing is hidden."""

INNOCENT = (
    "https://docs.example.org/a%20b%2Fc?q=%C3%BCber&lang=de",
    "Fish &amp; chips cost &pound;9 &ndash; or less.",
    "The hash is 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.",
    "550e8400-e29b-41d4-a716-446655440000",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==",
    "AbstractSingletonProxyFactoryBean implements InternationalizationConfigurer",
    "Washington, Mississippi and Massachusetts are spelled like this.",
    "Die Straße führt über die Brücke; größere Züge fahren später.",
    "Россия расположена в Восточной Европе и Северной Азии.",
    "Η Ελλάδα βρίσκεται στη νοτιοανατολική Ευρώπη.",  # noqa: RUF001 - Greek on purpose
    "日本の人口は約1億2500万人です。电话本在桌子上。",
    "👩‍👩‍👧‍👦 is one family and 🏳️‍🌈 one flag.",
    "می‌خواهم کتاب بخوانم",
    "Write to support@example.com, the address is public and in plain sight.",
    "Uryyb jbeyq, guvf vf n greevoyr pvcure sbe cebfr.",
    "The numbers 4 8 15 16 23 42 and 10 20 30 40 50 60 70 80 are sums.",
    "64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80",
    "Scores: 98, 87, 76, 92, 85, 88, 91, 79, 84, 90 of 100 points.",
    "00000000 11111111 00001111 11110000 00110011 11001100",
    "C:\\users\\public\\new\\table\\x64\\u2028 is a path.",
    'printf("\\x1b[31mred\\x1b[0m\\n");',
    "0xDEADBEEF 0xCAFEBABE 0x8BADF00D are magic numbers.",
    "The colours #ff8800, #00ff88 and #8800ff go together.",
    "MAC-like 00:1A:2B:3C is short; a fingerprint is SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8.",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\nRTESMBAGA1UEChMJQmFsdGltb3JlMRMwEQYDVQQLEwpDeWJlclRydXN0MSIwIAYD\n-----END CERTIFICATE-----",
    "1O1 Dalmatians, B52s and S10 E5 L0l are no numbers; GAO-01-725T is a report.",
    "H2O, CO2, C6H12O6 and NaHCO3 react; LiFePO4 cells last longer.",
    "x = y if z else w; a@b; @decorator; user@host:~$ ls",
    "U+00E9 is é, U+0041 is A.",
    "50% of 200 is 100, 5%25 is odd, and 100%AB is not a thing.",
)

BROKEN = (
    "aGVsbG8gd29ybGQgdGhpcyBpcyBicm9rZW4A=",
    "0x48656c6c6f20776f726c642",
    "%E0%A4%A",
    "&#99999999; is no character, &#x110000; neither",
)
"""They claim an encoding and break its rules: parse failures, never findings."""


def _bold(character: str) -> str:
    if character.isdigit():
        return chr(0x1D7CE + int(character))
    if character.islower():
        return chr(0x1D41A + ord(character) - ord("a"))
    return chr(0x1D400 + ord(character) - ord("A")) if character.isupper() else character


def case(frame: str, encoded: str, kind: str | None) -> dict[str, Any]:
    """Return one record with the encoded part where the frame has its braces."""
    before, _, after = frame.format("\0").partition("\0")
    spans = [{"start": len(before), "end": len(before) + len(encoded), "type": f"encoded_{kind}"}]
    return {"text": before + encoded + after, "spans": spans if kind else []}


def cases() -> list[dict[str, Any]]:
    """Return every record, always the same."""
    rng, out, turn = random.Random(7), [], 0  # noqa: S311 - made-up data, always the same
    for name, encode in {**BLOCKS, **DISGUISES}.items():
        for kind, make in PAYLOADS.items():
            payload = make(rng)
            if name in BLOCKS and rng.random() < 0.5:
                payload = f"record 7: {payload} (kept)"
            frame = FRAMES[turn % len(FRAMES)]
            shown = (name, kind) in SHOWN
            out.append(case(frame, encode(payload), None if shown else kind))
            turn += 1
        out.append(case(FRAMES[turn % len(FRAMES)], encode(rng.choice(HARMLESS)), None))
    for frame in FRAMES:
        out.append(case(frame, codecs.encode(_mail(rng), "rot13"), "email"))
        out.append(case(frame, _mail(rng).translate(CYRILLIC), "email"))
        out.append(
            case(
                frame,
                _card(rng).replace("1", "l").replace("0", "O").replace("4", "4", 1),
                "credit_card",
            )
        )
    out.extend({"text": text, "spans": []} for text in INNOCENT)
    out.extend({"text": text, "spans": [], "broken": True} for text in BROKEN)
    return out


if __name__ == "__main__":
    for record in cases():
        sys.stdout.write(json.dumps(record) + "\n")
