"""Makes perturbed variants of cases: named, seeded, chained, linked to what they were made from."""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Literal

from guardrail_offline.datasets.cases import PERTURBATION_SOURCE, PERTURBED_BY, Case, Relationship
from guardrail_offline.perturbation import characters, words
from guardrail_service.errors import ConfigurationError

Intensity = Literal["low", "medium", "high"]
INTENSITIES: tuple[Intensity, ...] = ("low", "medium", "high")
Change = Callable[[str, float, random.Random], str]
TRIES = 15
"""H2O's number of attempts until a text differs."""


@dataclass(frozen=True)
class Perturbation:
    """One way to change a text.

    Attributes:
        summary: For people.
        change: Text, share and generator to text.
        shares: Of what may change, by intensity.
    """

    summary: str
    change: Change
    shares: tuple[float, float, float]


_FEW = (0.05, 0.1, 0.2)  # of characters: at a fifth a question is hardly readable
_SOME = (0.1, 0.3, 0.5)  # H2O's shares for commas and swapped words


def _encoded(text: str, _share: float, _rng: random.Random, *, base: int) -> str:
    data = text.encode("utf-8", "replace")
    return (base64.b16encode(data) if base == 16 else base64.b64encode(data)).decode()


PERTURBATIONS: Mapping[str, Perturbation] = {
    "random_replacement": Perturbation("letters become other letters", characters.replaced, _FEW),
    "random_keyboard_typos": Perturbation("letters become neighbours", characters.typed, _FEW),
    "random_insert": Perturbation("letters are inserted", characters.inserted, _FEW),
    "random_delete": Perturbation('letters become "X"', characters.deleted, _FEW),
    "random_ocr": Perturbation("characters are misread", characters.scanned, (0.1, 0.2, 0.4)),
    "qwerty": Perturbation(
        "y and z change places", lambda text, share, _: characters.exchanged(text, share),
        (0.3, 0.5, 0.8),
    ),
    "comma": Perturbation("commas are added", words.with_commas, _SOME),
    "word_swap": Perturbation("neighbouring words change places", words.with_swaps, _SOME),
    "synonym": Perturbation(
        "words become synonyms", partial(words.with_related, relation="synonyms"), (0.3, 0.5, 0.7)
    ),
    "antonym": Perturbation(
        "words become opposites", partial(words.with_related, relation="antonyms"), (0.5, 0.7, 0.9)
    ),
    "base16": Perturbation("the text is encoded", partial(_encoded, base=16), (1.0, 1.0, 1.0)),
    "base64": Perturbation("the text is encoded", partial(_encoded, base=64), (1.0, 1.0, 1.0)),
}  # fmt: skip
"""Of Eval Studio's list only contextual misinformation is missing: it needs an agent. The shares of
commas, swaps, synonyms, opposites and y/z are H2O's."""


class Unchanged(Exception):
    """No attempt gave another text: there was nothing to change."""


def parse(text: str) -> tuple[str, ...]:
    """Return the chain a name such as `comma+qwerty` stands for.

    Raises:
        ConfigurationError: If a part is no perturbation.
    """
    chain = tuple(part.strip() for part in text.split("+"))
    for part in chain:
        if part not in PERTURBATIONS:
            known = ", ".join(PERTURBATIONS)
            raise ConfigurationError("--by", repr(part), f"one of {known}, joined by +")
    return chain


def perturbed(text: str, chain: Sequence[str], intensity: Intensity, seed: str) -> str:
    """Return a changed text; the same arguments give the same text.

    Raises:
        Unchanged: If some part of the chain found nothing to change in 15 attempts.
    """
    for place, name in enumerate(chain):
        text = _applied(text, PERTURBATIONS[name], intensity, f"{seed}\0{place}\0{name}")
    return text


def _applied(text: str, perturbation: Perturbation, intensity: Intensity, seed: str) -> str:
    share = perturbation.shares[INTENSITIES.index(intensity)]
    digest = hashlib.sha256(f"{intensity}\0{seed}".encode("utf-8", "surrogatepass")).digest()
    rng = random.Random(digest)  # noqa: S311 - typing errors, not secrets
    for _ in range(TRIES):
        changed = perturbation.change(text, share, rng)
        if changed != text:
            return changed
    raise Unchanged


def variant_key(case: Case, chain: Sequence[str], intensity: Intensity) -> str:
    """Return the key of a variant; the seed is no part of it."""
    return f"{case.key}~{'+'.join(chain)}~{intensity}"


def variant(case: Case, chain: Sequence[str], intensity: Intensity, seed: int) -> Case:
    """Return a perturbed case without an answer, linked to its source and in its group.

    Raises:
        Unchanged: If there was nothing to change.
    """
    question = perturbed(case.question, chain, intensity, f"{seed}\0{case.key}")
    return replace(
        case,
        key=variant_key(case, chain, intensity),
        question=question,
        answer=None,
        duration_s=None,
        cost=None,
        artifacts=None,
        categories=(
            *case.categories,
            "perturbed",
            *(f"{PERTURBED_BY}{part}" for part in chain),
            f"perturbation_intensity:{intensity}",
            *(part for part in chain if part in ("base16", "base64")),
        ),
        relationships=(*case.relationships, Relationship(PERTURBATION_SOURCE, case.key)),
    )


@dataclass(frozen=True)
class Perturbed:
    """Cases with their variants behind them.

    Attributes:
        cases: The lab's, and the new ones.
        added: How many are new.
        unchanged: Keys of variants for which there was nothing to change.
        present: Keys of variants that the lab has already, or that were asked for twice.
    """

    cases: tuple[Case, ...]
    added: int
    unchanged: tuple[str, ...]
    present: tuple[str, ...]


def perturb(
    cases: Iterable[Case],
    chains: Sequence[Sequence[str]],
    intensities: Sequence[Intensity],
    seed: int,
) -> Perturbed:
    """Return all cases with a variant per chain and intensity behind each original.

    Variants are not perturbed again, and one that is there is not made again, whatever its seed.
    Their answers are to be asked for anew: an answer to the
    original question would say nothing about robustness.
    """
    originals = list(cases)
    keys = {case.key for case in originals}
    out: list[Case] = []
    unchanged, present = [], []
    for case in originals:
        out.append(case)
        if case.source is not None:
            continue
        for chain, intensity in product(chains, intensities):
            key = variant_key(case, chain, intensity)
            if key in keys:
                present.append(key)
                continue
            try:
                out.append(variant(case, chain, intensity, seed))
                keys.add(key)
            except Unchanged:
                unchanged.append(key)
    return Perturbed(tuple(out), len(out) - len(originals), tuple(unchanged), tuple(present))
