"""The judge, its limits, and the place of its transcripts."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from guardrail_offline.hosts.opening import KEYLESS, parse_address
from guardrail_offline.hosts.prices import TokenPrice
from guardrail_service.errors import ConfigurationError

Mode = Literal["read-write", "replay", "off"]
MODES: tuple[Mode, ...] = get_args(Mode)
KEY_VARIABLES = ("GUARDRAIL_JUDGE_API_KEY", "OPENAI_API_KEY")
"""Environment variables with the judge's key; the first one that is set counts."""
STORE = "transcripts.sqlite"


@dataclass(frozen=True)
class JudgeSettings:
    """A judge and how it is asked. Picklable; holds no key.

    Attributes:
        url: Of its host: the base address of an OpenAI-compatible server, usually ending with
            /v1, or another kind of host, as `hosts/opening.py` names them.
        model: As the host calls it.
        store: File of the transcripts; None for one in the folder of the run.
        mode: `read-write` asks what was not asked before, `replay` asks nobody, `off` keeps
            nothing beyond the run.
        options: Further values of every request, such as {"reasoning_effort": "low"}; None takes a
            value out that would be sent: {"seed": None}.
        marked: The judge has to repeat the mark that ends the data.
        concurrency: Questions at the same time.
        requests_per_minute: At most; None for no limit.
        tokens_per_minute: At most, sent and received; None for no limit.
        timeout_s: For one try.
        question_s: For all tries of one question.
        run_s: For all questions of a run; None for no limit.
        tries: For one question, where nobody answers or the judge is busy.
        give_up_after: So many tries in a row without an answer end the asking.
        budget: Hard cap of what a run may cost, in the currency of `price`.
        price: Of the judge; None if unknown, then there is no cost.
        keep_texts: False keeps no message, and erases at the end what verdicts quote.
        ask_again: Ask again what has no value.
        kind: Of the host, where the address does not say it.
    """

    url: str
    model: str
    store: Path | None = None
    mode: Mode = "read-write"
    options: Mapping[str, Any] = field(default_factory=dict)
    marked: bool = True
    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout_s: float = 60.0
    question_s: float = 180.0
    run_s: float | None = None
    tries: int = 4
    give_up_after: int = 10
    budget: float | None = None
    price: TokenPrice | None = None
    keep_texts: bool = True
    ask_again: bool = False
    kind: str | None = None

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ConfigurationError: If one cannot be used.
        """
        if self.mode not in MODES:
            raise ConfigurationError("--judge-mode", repr(self.mode), f"one of {', '.join(MODES)}")
        if not self.model:
            raise ConfigurationError("--judge-model", "nothing", "the judge's name on its server")
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not (type(value) in (int, float) and 0 < value < math.inf):
                field = f"{_OPTIONS.get(name, 'judge')}: {name}"
                raise ConfigurationError(field, repr(value)[:40], "a number above 0")
        for name in ("concurrency", "tries", "give_up_after"):
            if type(getattr(self, name)) is not int:
                raise ConfigurationError(f"judge: {name}", "another number", "a whole number")
        if self.budget is not None and self.price is None:
            found = f"a budget and no price of {self.model!r}"
            raise ConfigurationError("--budget", found, "--prices with the judge in it")

    @property
    def key_variable(self) -> str | None:
        """Return the environment variable that has the key; None where none is needed or set."""
        if parse_address(self.url, self.kind, "--judge").kind in KEYLESS:
            return None
        return next((name for name in KEY_VARIABLES if os.environ.get(name)), None)

    def as_json(self) -> dict[str, Any]:
        """Return what verdicts depend on; addresses of stores, limits and prices are not."""
        described: dict[str, Any] = {"url": self.url, "model": self.model}
        if self.options:
            described["options"] = dict(self.options)
        return described if self.marked else described | {"marked": False}

    def in_folder(self, folder: Path) -> JudgeSettings:
        """Return the settings with a store; without one of their own it lies in a folder."""
        return self if self.store is not None else replace(self, store=folder / STORE)


_POSITIVE = (
    "concurrency", "requests_per_minute", "tokens_per_minute", "timeout_s", "question_s", "run_s",
    "tries", "give_up_after", "budget",
)  # fmt: skip
_OPTIONS: Mapping[str, str] = {
    "requests_per_minute": "--rpm",
    "tokens_per_minute": "--tpm",
    "timeout_s": "--judge-timeout",
    "budget": "--budget",
}
_IN_FILE = {one.name for one in fields(JudgeSettings)} - {"store", "mode", "price", "ask_again"}


def read_settings(
    path: Path | None, prices: Mapping[str, TokenPrice] | None = None, **given: Any
) -> JudgeSettings:
    """Return the settings of a JSON file with those of a command, which come first.

    Args:
        path: The file; None for none.
        prices: By model; that of `*` is any other's.
        given: Settings by name; None is none.

    Raises:
        ConfigurationError: If the file is none, or a value is wrong, or no judge is named.
    """
    content: Any = {}
    if path is not None:
        try:
            content = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigurationError(str(path), type(error).__name__, "settings in JSON") from error
    if not isinstance(content, dict):
        raise ConfigurationError(str(path), type(content).__name__, "an object")
    if unknown := sorted(set(content) - _IN_FILE):
        known = ", ".join(sorted(_IN_FILE))
        raise ConfigurationError(str(path), f"the key {unknown[0]!r}"[:80], f"one of {known}")
    if not isinstance(content.get("options", {}), dict):
        raise ConfigurationError(f"{path}: options", "another shape", "an object")
    values = content | {name: value for name, value in given.items() if value is not None}
    for name, option in (("url", "--judge"), ("model", "--judge-model")):
        if not isinstance(values.get(name), str) or not values[name]:
            raise ConfigurationError(option, "nothing", "an OpenAI-compatible server and its model")
    table = prices or {}
    return JudgeSettings(**values, price=table.get(values["model"], table.get("*")))
