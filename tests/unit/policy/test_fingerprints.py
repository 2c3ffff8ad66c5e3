"""What a threshold was fitted on, by name."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from guardrail_service.detectors.hallucination.verbatim import GATE_VERSION
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.detectors.safety import ALONE_VERSION
from guardrail_service.detectors.safety_denials import DENIALS_VERSION
from guardrail_service.detectors.safety_wordings import WORDINGS_VERSION
from guardrail_service.inference.models.encoder import EVIDENCE_VERSION
from guardrail_service.inference.pack import load_pack
from guardrail_service.policy.fingerprints import fingerprints, rule_versions
from guardrail_service.text.decoding.disguise import DISGUISE_VERSION
from guardrail_service.text.quotations import QUOTATIONS_VERSION
from tests import tiny_pack

PACKAGE = "guardrail_service.detectors."


def test_safety_roles_name_the_rules_by_which_they_read(tiny: Path, tmp_path: Path) -> None:
    """Another reading of the same text is another score; groundedness does not depend on it."""
    folder = Path(shutil.copytree(tiny, tmp_path / "tiny"))
    tiny_pack.add_branch(folder, roles=["toxicity", "bias"], labels=["toxicity", "insult"])
    pack = load_pack(folder)
    found = fingerprints(pack)
    reading = f"{DISGUISE_VERSION} {QUOTATIONS_VERSION} {DENIALS_VERSION} {ALONE_VERSION}"
    assert found["toxicity"] == f"{pack.fingerprint('toxicity')} {reading} {WORDINGS_VERSION}"
    assert found["bias"] == f"{pack.fingerprint('bias')} {reading}"
    assert found["embedding"] == pack.fingerprint("embedding")


def test_rules_without_a_model_have_a_version() -> None:
    """The second one is noted, so that whoever stored a score sees that they changed since."""
    own = [spec for spec in REGISTRY.specs() if spec.version.startswith("rules/")]
    built_in = [one.spec for one in REGISTRY if type(one).__module__.startswith(PACKAGE)]
    assert [spec.id for spec in built_in if not spec.roles] == [spec.id for spec in own]
    assert rule_versions(own) == {}
    changed = [replace(spec, version="rules/2") for spec in own]
    assert rule_versions(changed) == {f"detector:{spec.id}": "rules/2" for spec in own}


def test_evidence_names_what_is_settled_without_a_model(tiny: Path) -> None:
    """Thresholds fitted with another gate, or another choice of evidence, do not fit."""
    named = fingerprints(load_pack(tiny))["evidence"].split()
    assert {GATE_VERSION, EVIDENCE_VERSION} <= set(named)
