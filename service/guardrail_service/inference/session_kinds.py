"""Kinds of model sessions: what a pack's model is, and how it becomes something that runs rows.

A manifest says the `kind` of each model. The built-in kinds stand at the end of this file; another
distribution adds one by an entry point of the group `rag_guardrail.sessions`, named like the kind
and loading to a `SessionKind`. Only a kind that a pack names is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from guardrail_service.errors import ConfigurationError, PackError, PluginError, choices
from guardrail_service.inference.golden import GoldenForm
from guardrail_service.inference.memory import CacheSizes
from guardrail_service.inference.models.causal_lm import CausalLmSession
from guardrail_service.inference.models.classifier import ClassifierSession
from guardrail_service.inference.models.encoder import (
    MIDDLE,
    TOKENS,
    VECTOR,
    Branch,
    BranchClassifier,
    HeadSession,
    SharedEncoder,
)
from guardrail_service.inference.models.pair import NliSession, PairGroundingSession
from guardrail_service.inference.models.session import ModelSession, Session
from guardrail_service.inference.pack import ENCODER_ROLE, Pack
from guardrail_service.plugins import SESSIONS, installed, load
from guardrail_service.types import PROVIDERS, Provider, Role

ONE_LENGTH = frozenset({"encoder", "branch", "head"})
"""Kinds whose rows can share calls by their lengths."""
FEWER = 4
"""By how much less memory a branch has that gives a few numbers for each text, not states: still as
many texts as there are embeddings, and full, as these are, after some thousand requests."""


class Opening(NamedTuple):
    """The things a session kind may use to open the session of one role.

    Attributes:
        pack: Where the role's model lies.
        role: Whose rows the session will run.
        encoder: Runs the pack's `embedding` rows; None in a pack without that role.
        branches: The pack's models on the encoder's middle states, by name.
    """

    pack: Pack
    role: Role
    encoder: SharedEncoder | None
    branches: Mapping[str, Branch]

    @property
    def model(self) -> str:
        """Return the name of the role's model in the manifest."""
        return self.pack.manifest.roles[self.role]

    def read(self) -> SharedEncoder:
        """Return the encoder.

        Raises:
            PackError: If the pack has none.
        """
        if self.encoder is None:
            pack, role = self.pack.name, ENCODER_ROLE
            raise PackError(f"pack {pack}: no role {role}, which {self.role} reads")
        return self.encoder


class SessionKind(NamedTuple):
    """One kind of model.

    Attributes:
        name: What manifests call it; for a plug-in also the name of its entry point.
        open: Returns the session of a role whose model is of this kind.
        golden: What the golden rows of such a model look like.
        version: Part of the fingerprint of every role that is served by this kind: change it
            whenever the same model gives other outputs. The built-in kinds have their own places
            in the fingerprint.
        providers: Where such a model can run; `pack.model(role).provider` says what was chosen.
    """

    name: str
    open: Callable[[Opening], Session]
    golden: GoldenForm
    version: str = ""
    providers: tuple[Provider, ...] = ("cpu",)


def kind_of(pack: Pack, role: Role) -> SessionKind:
    """Return the kind of a role's model: what the manifest says, else what it must be.

    Raises:
        PackError: If nothing here is called so.
        PluginError: If a plug-in is, and cannot be loaded.
    """
    pack = pack.owner(role)
    model = pack.manifest.roles[role]
    name = pack.manifest.models[model].kind or derived_kind(
        role, reads_states=pack.model(role).encoder is not None
    )
    if name in BUILT_IN:
        return BUILT_IN[name]
    if name not in installed(SESSIONS):
        expected = choices(name, {*BUILT_IN, *installed(SESSIONS)}, "kind of session")
        where = f"{pack.folder}: manifest.json: models.{model}.kind"
        raise PackError(f"{where}: found {name!r}; expected {expected}")
    found = load(SESSIONS, name)
    if not isinstance(found, SessionKind):
        raise PluginError(name, SESSIONS, type(found).__name__, "a SessionKind")
    if found.name != name:
        raise PluginError(name, SESSIONS, f"name {found.name!r}", "the entry point's own name")
    return found


def golden_form(pack: Pack, role: Role) -> GoldenForm:
    """Return what a role's golden rows look like; a claim comes with evidence to choose from."""
    return "claims" if role == "grounding" else kind_of(pack, role).golden


def derived_kind(role: Role, *, reads_states: bool) -> str:
    """Return the kind of a role's model where the manifest is older than the key.

    Args:
        role: What the model is for.
        reads_states: Whether it reads the states of an encoder in place of text.
    """
    if role == "grounding":
        return "head" if reads_states else "pair"
    known = {ENCODER_ROLE: "encoder", "nli": "pair", "causal_lm": "causal_lm"}
    return known.get(role, "branch" if reads_states else "classifier")


def open_sessions(pack: Pack, sizes: CacheSizes | None = None) -> dict[Role, Session]:
    """Return what runs each role's rows; models that read one encoder share its memory.

    Raises:
        PackError: If a model cannot be opened as its kind.
        ConfigurationError: If it cannot run on the provider that is chosen for it.
    """
    kinds = {role: kind_of(pack, role) for role in pack.roles}
    for role, kind in kinds.items():
        if pack.provider(role) not in kind.providers:
            found = f"{pack.provider(role)} for {role}"
            raise ConfigurationError("GUARDRAIL_PROVIDERS", found, _where(role, kind))
        if pack.model(role).one_length and kind.name not in ONE_LENGTH:
            found = "batch_rule: found same_length"
            expected = f"expected it of {', '.join(sorted(ONE_LENGTH))}"
            raise PackError(f"{pack.model(role).path}: {found} of a {kind.name}; {expected}")
    sessions: dict[Role, Session] = {}
    for owner in dict.fromkeys(pack.owner(role) for role in pack.roles):
        encoder = _encoder(owner, sizes or CacheSizes())
        branches = _branches(owner, encoder, sizes or CacheSizes())
        for role in pack.roles:
            if pack.owner(role) is owner:
                sessions[role] = kinds[role].open(Opening(owner, role, encoder, branches))
    return {role: sessions[role] for role in pack.roles}


def _where(role: Role, kind: SessionKind) -> str:
    able = " or ".join(f"{role}={name}" for name in kind.providers)
    return f"{able}, where models of the kind {kind.name!r} run"


def _encoder(pack: Pack, sizes: CacheSizes) -> SharedEncoder | None:
    if ENCODER_ROLE not in pack.manifest.roles:
        return None
    session = ModelSession(pack, ENCODER_ROLE)
    return SharedEncoder(session, _kept(pack), sizes.states, sizes.vectors)


def _kept(pack: Pack) -> tuple[str, ...]:
    """Return the encoder's outputs that models of the pack read."""
    models = pack.manifest.models
    readers = [f for f in models.values() if f.encoder == pack.manifest.roles[ENCODER_ROLE]]
    branched = any(MIDDLE in file.inputs for file in readers)
    on_top = any(MIDDLE not in file.inputs for file in readers)
    return (VECTOR, *((MIDDLE,) if branched else ()), *((TOKENS,) if on_top else ()))


def _branches(pack: Pack, encoder: SharedEncoder | None, sizes: CacheSizes) -> dict[str, Branch]:
    if encoder is None:
        return {}
    names = [name for name, file in pack.manifest.models.items() if MIDDLE in file.inputs]
    models = pack.manifest.models
    return {
        name: Branch(pack, name, encoder, sizes.branch // (FEWER if models[name].labels else 1))
        for name in names
    }


def _open_encoder(opening: Opening) -> Session:
    if opening.role == ENCODER_ROLE:
        return opening.read()
    return SharedEncoder(ModelSession(opening.pack, opening.role), (VECTOR,))


def _open_branch(opening: Opening) -> Session:
    opening.read()
    file = opening.pack.model(opening.role)
    if opening.model not in opening.branches:
        raise PackError(f"{file.path}: reads {file.encoder} but has no input {MIDDLE}")
    return BranchClassifier(opening.branches[opening.model])


def _open_head(opening: Opening) -> Session:
    file = opening.pack.model(opening.role)
    if file.encoder is None:
        raise PackError(
            f"{file.path}: encoder: found none; expected the model whose states it reads"
        )
    return HeadSession(opening.pack, opening.read(), opening.branches.get(file.encoder))


def _open_classifier(opening: Opening) -> Session:
    return ClassifierSession(opening.pack, opening.role)


def _open_pair(opening: Opening) -> Session:
    if opening.role == "grounding":
        return PairGroundingSession(opening.pack, opening.read())
    return NliSession(opening.pack, opening.role)


def _open_causal_lm(opening: Opening) -> Session:
    return CausalLmSession(opening.pack, opening.role)


BUILT_IN: Mapping[str, SessionKind] = {
    kind.name: kind._replace(providers=PROVIDERS)
    for kind in (
        SessionKind("encoder", _open_encoder, "vectors"),
        SessionKind("branch", _open_branch, "texts"),
        SessionKind("head", _open_head, "claims"),
        SessionKind("classifier", _open_classifier, "texts"),
        SessionKind("pair", _open_pair, "pairs"),
        SessionKind("causal_lm", _open_causal_lm, "log_probabilities"),
    )
}
