"""Computes the fingerprints of everything that scores depend on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from guardrail_service.detectors.groundedness import CLAIMS_VERSION
from guardrail_service.detectors.hallucination.reading import READING_VERSION
from guardrail_service.detectors.hallucination.verbatim import GATE_VERSION
from guardrail_service.detectors.registry import DetectorSpec
from guardrail_service.detectors.safety import ALONE_VERSION
from guardrail_service.detectors.safety_denials import DENIALS_VERSION
from guardrail_service.detectors.safety_wordings import WORDINGS_VERSION
from guardrail_service.inference.models.encoder import EVIDENCE_VERSION
from guardrail_service.inference.models.lexical import LEXICAL_VERSION
from guardrail_service.inference.models.pair import PAIR_VERSION
from guardrail_service.inference.models.session import runtime_version
from guardrail_service.inference.pack import Pack
from guardrail_service.inference.session_kinds import kind_of
from guardrail_service.text.decoding.disguise import DISGUISE_VERSION
from guardrail_service.text.quotations import QUOTATIONS_VERSION
from guardrail_service.text.segmentation.sentences import SEGMENTER_VERSION
from guardrail_service.types import Provider, Role

READ_UNDISGUISED = frozenset({"toxicity", "bias"})
"""Roles whose texts are read as `text.disguise` reads them."""
FIRST_RULES = "rules/1"


def fingerprints(pack: Pack, specs: Iterable[DetectorSpec] = ()) -> dict[str, str]:
    """Return a name for each part that can move a score.

    Args:
        pack: The models at hand.
        specs: Detectors; those that state a version of their own rules are part of it.

    Returns:
        Per role of the pack a hash over weights, tokenizer, longest row, batch rule, labels and
        the models it reads, for toxicity and bias the rules by which answers are read, too, and the
        version of a plugged-in kind of session; `detector:ID` for rules with a version of their
        own; `segmenter`;
        `evidence`, the rules that choose what a model is asked;
        `runtime`, the library, its options and the providers of roles that do not run on the CPU,
        which golden rows check at every start instead.
    """
    reads_pairs = "grounding" in pack.roles and pack.model("grounding").encoder is None
    how = PAIR_VERSION if reads_pairs else LEXICAL_VERSION
    return {
        **{role: " ".join(_role_parts(pack, role)) for role in pack.roles},
        **rule_versions(specs),
        "segmenter": SEGMENTER_VERSION,
        "evidence": " ".join(
            (CLAIMS_VERSION, READING_VERSION, GATE_VERSION, EVIDENCE_VERSION, how)
        ),
        "runtime": runtime_version(elsewhere(pack)),
    }


def elsewhere(pack: Pack) -> dict[Role, Provider]:
    """Return the provider of each role whose model does not run on the CPU."""
    chosen = {role: pack.provider(role) for role in pack.roles}
    return {role: provider for role, provider in chosen.items() if provider != "cpu"}


def rule_versions(specs: Iterable[DetectorSpec]) -> dict[str, str]:
    """Return the versions of the detectors' own rules, where they state one.

    The first version of built-in rules stands for those that had none noted, and is left out: what
    was stored, fitted or half judged with them stays valid.
    """
    return {
        rules_key(spec): spec.version
        for spec in specs
        if spec.version and spec.version != FIRST_RULES
    }


def rules_key(spec: DetectorSpec) -> str:
    """Return under which key the version of a detector's own rules stands."""
    return f"detector:{spec.id}"


def used_by(specs: Iterable[DetectorSpec], fingerprints: Mapping[str, str]) -> dict[str, str]:
    """Return the fingerprints that detectors' scores depend on: roles, rules, what all share."""
    named = list(specs)
    used = {role for spec in named for role in spec.roles} | {rules_key(spec) for spec in named}
    used |= {"segmenter", "evidence"}
    return {key: value for key, value in sorted(fingerprints.items()) if key in used}


def _role_parts(pack: Pack, role: Role) -> Iterator[str]:
    yield pack.fingerprint(role)
    if role in READ_UNDISGUISED:
        yield from (DISGUISE_VERSION, QUOTATIONS_VERSION, DENIALS_VERSION, ALONE_VERSION)
    if role == "toxicity":
        yield WORDINGS_VERSION
    if version := kind_of(pack, role).version:
        yield version
