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

from guardrail_offline.datasets.cases import (
    PERTURBATION_INTENSITY,
    PERTURBATION_SOURCE,
    PERTURBED_BY,
    SHOULD_FLIP,
    Case,
    Relationship,
)
from guardrail_offline.perturbation import characters, words
from guardrail_offline.perturbation.lexicon import Lexicon, lexicon
from guardrail_offline.perturbation.misinformation import Contradiction, contradicted
from guardrail_offline.perturbation.wordnet import Relation
from guardrail_service.errors import ConfigurationError

Intensity = Literal["low", "medium", "high"]
INTENSITIES: tuple[Intensity, ...] = ("low", "medium", "high")
Change = Callable[[str, float, random.Random], str]
TRIES = 15
"""H2O's number of attempts until a text differs."""


@dataclass(frozen=True)
class Perturbation:
    """One way to change a question, or the passages.

    Attributes:
        summary: For people.
        change: Text, share and generator to text; a relation exchanges words by the lexicon, and
            None contradicts sentences of the passages.
        shares: Of what may change, by intensity; of passages the number of sentences.
        other_answer: Whether the expected answer is no longer right, so that whatever compares with
            it should flip. All others leave the answer as it is: nothing should flip.
    """

    summary: str
    change: Change | Relation | None
    shares: tuple[float, float, float]
    other_answer: bool = False


_FEW = (0.05, 0.1, 0.2)  # of characters: at a fifth a question is hardly readable
_SOME = (0.1, 0.3, 0.5)  # H2O's shares for commas and swapped words


def _encoded(text: str, _share: float, _rng: random.Random, *, base: int) -> str:
    data = text.encode("utf-8", "replace")
    return (base64.b16encode(data) if base == 16 else base64.b64encode(data)).decode()


CONTEXTUAL_MISINFORMATION = "contextual_misinformation"
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
    "synonym": Perturbation("words become synonyms", "synonyms", (0.3, 0.5, 0.7)),
    "antonym": Perturbation("words become opposites", "antonyms", (0.5, 0.7, 0.9), True),
    CONTEXTUAL_MISINFORMATION: Perturbation("passages contradict themselves", None, (1, 2, 3)),
    "base16": Perturbation("the text is encoded", partial(_encoded, base=16), (1.0, 1.0, 1.0)),
    "base64": Perturbation("the text is encoded", partial(_encoded, base=64), (1.0, 1.0, 1.0)),
}  # fmt: skip
"""Of Eval Studio's list all; its contextual misinformation changes the question by an agent, ours
the passages by rules. The shares of commas, swaps, synonyms, opposites and y/z are H2O's."""


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


def perturbed(
    text: str, chain: Sequence[str], intensity: Intensity, seed: str, known: Lexicon | None = None
) -> str:
    """Return a changed text; the same arguments give the same text.

    Raises:
        Unchanged: If some part of the chain found nothing to change in 15 attempts.
    """
    for place, name in enumerate(chain):
        if PERTURBATIONS[name].change is not None:
            text = _applied(text, name, intensity, f"{seed}\0{place}\0{name}", known or lexicon())
    return text


def _applied(text: str, name: str, intensity: Intensity, seed: str, known: Lexicon) -> str:
    perturbation, rng = PERTURBATIONS[name], _generator(intensity, seed)
    share, change = perturbation.shares[INTENSITIES.index(intensity)], perturbation.change
    for _ in range(TRIES):
        if isinstance(change, str):
            changed = words.with_related(text, share, rng, change, known)
        else:
            changed = text if change is None else change(text, share, rng)
        if changed != text:
            return changed
    raise Unchanged


def _generator(intensity: Intensity, seed: str) -> random.Random:
    digest = hashlib.sha256(f"{intensity}\0{seed}".encode("utf-8", "surrogatepass")).digest()
    return random.Random(digest)  # noqa: S311 - typing errors, not secrets


def variant_key(case: Case, chain: Sequence[str], intensity: Intensity) -> str:
    """Return the key of a variant; the seed is no part of it."""
    return f"{case.key}~{'+'.join(chain)}~{intensity}"


def variant(
    case: Case,
    chain: Sequence[str],
    intensity: Intensity,
    seed: int,
    known: Lexicon | None = None,
) -> Case:
    """Return a perturbed case without an answer, linked to its source and in its group.

    Sentences that were put into passages are linked, too: `contradicted_sentence` names the true
    one, `contradicting_sentence` what was put behind it.

    Raises:
        Unchanged: If there was nothing to change.
    """
    known, own_seed = known or lexicon(), f"{seed}\0{case.key}"
    question = perturbed(case.question, chain, intensity, own_seed, known)
    changed: list[Contradiction] = []
    if CONTEXTUAL_MISINFORMATION in chain:
        count = int(PERTURBATIONS[CONTEXTUAL_MISINFORMATION].shares[INTENSITIES.index(intensity)])
        case, changed = contradicted(case, count, _generator(intensity, own_seed), known)
        if not changed:
            raise Unchanged
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
            f"{PERTURBED_BY}{'+'.join(chain)}",
            f"{PERTURBATION_INTENSITY}{intensity}",
            *((SHOULD_FLIP,) if any(PERTURBATIONS[part].other_answer for part in chain) else ()),
            *(part for part in chain if part in ("base16", "base64")),
        ),
        relationships=(
            *case.relationships,
            Relationship(PERTURBATION_SOURCE, case.key),
            *_links(changed),
        ),
    )


def _links(changed: Iterable[Contradiction]) -> Iterable[Relationship]:
    for one in changed:
        yield Relationship("contradicted_sentence", one.sentence, "text")
        yield Relationship("contradicting_sentence", one.inserted, "text")


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
    known: Lexicon | None = None,
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
                out.append(variant(case, chain, intensity, seed, known))
                keys.add(key)
            except Unchanged:
                unchanged.append(key)
    return Perturbed(tuple(out), len(out) - len(originals), tuple(unchanged), tuple(present))
