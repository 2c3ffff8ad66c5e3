"""The texts an export is verified on: a user's own, or the shipped ones with long rows added."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from guardrail_models.original import Text
from guardrail_service.errors import ConfigurationError
from guardrail_service.resources import shipped
from guardrail_service.types import Role

FIRST = ("premise", "prompt", "text", "question", "answer")
SECOND = ("hypothesis", "pair", "second")
GOLDEN_ROWS = 56
"""About how many rows are compared and kept with the model."""
LEAST_ROWS = 50
"""The pack format asks for as many golden rows."""
MAX_ROWS = 400
LONG_SHARES = (0.3, 0.5, 0.7, 0.85, 0.95)
"""Shares of the longest row a model reads. A row cut to fewer tokens must show."""


def load_texts(path: Path | None) -> list[Text]:
    """Return the rows of a JSON-lines file, also .gz; None gives the shipped texts.

    Raises:
        ConfigurationError: Naming file and line, and which keys a row may have.
    """
    source = path or shipped("texts/embedding_texts.jsonl", "models/embedding_texts.jsonl")
    try:
        opened = gzip.open if source.suffix == ".gz" else open
        with opened(source, "rt", encoding="utf-8") as lines:
            rows = [
                _text(json.loads(line), f"{source}:{number}")
                for number, line in enumerate(islice(lines, MAX_ROWS), 1)
                if line.strip()
            ]
    except (OSError, ValueError) as error:
        raise ConfigurationError(str(source), type(error).__name__, "JSON lines") from error
    if len(rows) < GOLDEN_ROWS:
        raise ConfigurationError(str(source), f"{len(rows)} rows", f"at least {GOLDEN_ROWS}")
    return rows


def _text(row: Any, where: str) -> Text:
    first = next((row[key] for key in FIRST if key in row), None)
    second = next((row[key] for key in SECOND if key in row), None)
    if not isinstance(first, str) or not isinstance(second, str | None):
        raise ConfigurationError(where, "no text", f"a key of {', '.join(FIRST)}")
    return Text(first, second)


def rows_for(role: Role, texts: list[Text], tokens_of: Any, max_tokens: int) -> list[Text]:
    """Return rows a role's model can read whole, long ones among them.

    Args:
        role: Pairs for `grounding`, `nli` and `causal_lm`, else every text alone.
        texts: What to make rows of.
        tokens_of: Counts a row's tokens, special tokens included.
        max_tokens: Longest row the model reads.
    """
    is_pair = role in ("grounding", "nli", "causal_lm")
    if is_pair:
        made = [row for row in texts if row.second]
    else:
        found = dict.fromkeys(part for row in texts for part in row if part)
        made = [Text(part) for part in found]
    long = list(_long_rows(made, tokens_of, max_tokens))
    rows = [row for row in made if 0 < tokens_of(row) <= max_tokens]
    step = max(1, len(rows) // (GOLDEN_ROWS - len(long)))
    spread = rows[::step]  # from all kinds of texts, which lie in the file by kind
    if len(spread) + len(long) < LEAST_ROWS:
        raise ConfigurationError(
            "--texts", f"{len(spread)} rows of at most {max_tokens} tokens", f"{LEAST_ROWS} or more"
        )
    return [*spread, *long]


def _long_rows(rows: list[Text], tokens_of: Any, max_tokens: int) -> Iterator[Text]:
    """Yield rows of several texts after another, of about the given shares of the longest row."""
    for place, share in enumerate(LONG_SHARES):
        last = rows[-1 - place]
        parts: list[str] = []
        for row in rows[7 * place :] + rows:
            longer = Text(" ".join([*parts, row.first]), last.second)
            if tokens_of(longer) > share * max_tokens:
                break
            parts.append(row.first)
        if parts:
            yield Text(" ".join(parts), last.second)
