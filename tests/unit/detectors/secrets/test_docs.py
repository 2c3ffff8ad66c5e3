"""docs/secrets.md says what the code does; run this file as a script to rewrite its table."""

from pathlib import Path

from guardrail_service.detectors.encoding import EncodingParameters
from guardrail_service.detectors.secrets.detector import SecretsParameters
from guardrail_service.detectors.secrets.patterns import KINDS
from guardrail_service.text.decoding.blocks import _DECODERS
from guardrail_service.text.decoding.decode import GUESSES, INLINE

DOCUMENT = Path(__file__).parents[4] / "docs" / "secrets.md"
BEGIN = "<!-- kinds: kept true by tests/unit/detectors/secrets/test_docs.py -->\n"
END = "<!-- end of kinds -->"


def table() -> str:
    """Return the table of kinds as the document has it."""
    rows = [f"| `{kind}` | {what} | {severity} |" for kind, (what, severity) in KINDS.items()]
    return "\n".join(["| Kind | What it is | Severity |", "|---|---|---|", *rows, ""])


def test_the_table_of_kinds_is_the_codes() -> None:
    """A kind that is not listed cannot be configured by a reader."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == table()


def test_every_parameter_and_codec_is_described() -> None:
    """By its name in code style."""
    text = DOCUMENT.read_text(encoding="utf-8")
    names = {*SecretsParameters.model_fields, *EncodingParameters.model_fields}
    codecs = {"base64", "base64url", *_DECODERS, *INLINE, *GUESSES}
    assert [name for name in sorted(names | codecs) if f"`{name}`" not in text] == []


if __name__ == "__main__":
    head, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    DOCUMENT.write_text(head + BEGIN + table() + END + rest.partition(END)[2], encoding="utf-8")
