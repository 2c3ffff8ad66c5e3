"""Everything a process loads before it judges: pack, sessions, golden rows, policies, guard."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import guardrail_service.detectors  # noqa: F401 - importing registers the built-in detectors
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.errors import ConfigurationError, PackError
from guardrail_service.guard.guard import Guard
from guardrail_service.inference.golden import GoldenReport, check_golden
from guardrail_service.inference.memory.caches import Caches, CacheSizes
from guardrail_service.inference.memory.store import Store
from guardrail_service.inference.models.causal_lm import CausalLmSession
from guardrail_service.inference.models.classifier import ClassifierSession
from guardrail_service.inference.models.encoder import (
    MIDDLE,
    TOKENS,
    VECTOR,
    Branch,
    BranchClassifier,
    SharedEncoder,
)
from guardrail_service.inference.models.head import HeadSession
from guardrail_service.inference.models.pair import NliSession, PairGroundingSession
from guardrail_service.inference.models.session import ModelSession, Session
from guardrail_service.inference.pack import ModelFile, Pack, load_pack, resolve
from guardrail_service.inference.queue.batch import Batch, Batches, may_batch
from guardrail_service.inference.queue.cost import CostModel
from guardrail_service.inference.queue.scheduler import Peeks, Scheduler, Warms
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.file import Serving, load_defaults, load_policies, load_presets
from guardrail_service.policy.fingerprints import fingerprints
from guardrail_service.resources import configs_dir, packs_dir
from guardrail_service.settings import CacheSettings, Settings
from guardrail_service.text import language
from guardrail_service.types import Role

_LOG = logging.getLogger(__name__)
READS: Mapping[Role, Role] = {"grounding": "embedding"}
"""A grounding row chooses among the embeddings of the texts that were submitted with it."""


class Runtime:
    """A loaded service without its HTTP side; the API, the command line and benchmarks share it.

    Raises:
        PackError: If a file of the pack is missing, changed or computes other scores.
        ConfigurationError: If a guardrail configuration cannot be served.
    """

    def __init__(self, settings: Settings) -> None:
        started = time.perf_counter()
        self.settings = settings
        self.pack = load_pack(resolve(settings.model_pack, packs_dir()))
        self.serving = serving_for(self.pack)
        policies = load_policies(settings.config_files(), self.serving)
        default = settings.default_policy
        if default is not None and default not in policies:
            raise ConfigurationError("GUARDRAIL_DEFAULT_POLICY", repr(default), ", ".join(policies))
        with ThreadPoolExecutor(1, "prepare") as pool:
            # Patterns and language tables beside the models: each takes a core for about a second.
            prepared = pool.submit(_prepare, policies.values())
            self.sessions = open_sessions(self.pack, _sizes(settings.cache))
            costs = CostModel()
            self.golden = run_golden(self.pack, self.sessions, settings.workers, costs=costs)
            prepared.result()
        self.caches = Caches(self.sessions.values())
        if settings.store is not None:
            self.caches.attach(Store(settings.store, settings.store_mb * 2**20))
        self.scheduler = Scheduler(
            {role: session.run for role, session in self.sessions.items()},
            settings.workers,
            settings.limits.queued_rows,
            costs=costs,
            peeks={role: s.peek for role, s in self.sessions.items() if isinstance(s, Peeks)},
            after=READS,
            batches=batches(self.sessions, settings.batch_tokens),
        )
        self.guard = Guard(
            policies,
            REGISTRY,
            self.scheduler,
            windowers={role: session.tokenizer for role, session in self.sessions.items()},
            languages=_languages(self.sessions),
            max_sentences=settings.limits.sentences,
            default_policy=default,
            warming=[s.warming for s in self.sessions.values() if isinstance(s, Warms)],
        )
        self.reload_error: str | None = None
        self.draining = False
        self.load_s = time.perf_counter() - started

    def reload(self) -> bool:
        """Read the configurations again; keep the last good ones if that fails.

        Returns:
            Whether the new configurations are in force. `reload_error` says why not.
        """
        try:
            policies = load_policies(self.settings.config_files(), self.serving)
            if self.guard.default_policy not in policies:
                raise ConfigurationError(
                    "reload", f"no policy {self.guard.default_policy!r}", "the default policy"
                )
        except ConfigurationError as error:
            self.reload_error = str(error)
            _LOG.error("configuration reload failed, keeping the last good one: %s", error)
            return False
        self.guard.policies = policies
        self.reload_error = None
        return True

    def not_ready(self) -> str | None:
        """Return why the service cannot judge right now, or None if it can."""
        if self.draining:
            return "the service is shutting down"
        if not self.scheduler.healthy():
            return "a model worker has stopped"
        return None

    def close(self) -> None:
        """Finish running work within the drain time and stop the workers."""
        self.draining = True
        self.scheduler.close(self.settings.drain_s)
        self.guard.turns.close()
        self.caches.close()

    def end(self) -> None:
        """Stop at once: whoever waits is told that the service ends."""
        self.guard.turns.close()
        self.scheduler.close()


def batches(sessions: Mapping[Role, Session], tokens: int) -> dict[Role, Batch]:
    """Return how rows run together, for the roles whose model's file allows it."""
    return {
        role: Batch(session.run_many, tokens)
        for role, session in sessions.items()
        if isinstance(session, Batches) and may_batch(session.file)
    }


def _sizes(cache: CacheSettings) -> CacheSizes:
    mebi = 2**20
    return CacheSizes(cache.vectors_mb * mebi, cache.states_mb * mebi, cache.branch_mb * mebi)


def serving_for(pack: Pack) -> Serving:
    """Return what configurations are checked against, without loading a model."""
    return Serving(
        registry=REGISTRY,
        pack_name=pack.name,
        roles=frozenset(pack.roles),
        fingerprints=fingerprints(pack),
        defaults=load_defaults(default_thresholds_file()),
        presets=load_presets(default_thresholds_file()),
        labels={role: frozenset(pack.model(role).labels or ()) for role in pack.roles},
    )


def default_thresholds_file() -> Path:
    """Return the file with the shipped default thresholds."""
    return configs_dir() / "defaults" / "thresholds.json"


def run_golden(
    pack: Pack,
    sessions: dict[Role, Session],
    workers: int,
    progress: Callable[[Role], None] = lambda _role: None,
    costs: CostModel | None = None,
) -> dict[Role, GoldenReport]:
    """Return each loaded model's golden report.

    Args:
        pack: The loaded pack.
        sessions: What runs each role's rows.
        workers: Models that are checked at the same time.
        progress: Told each role that is done.
        costs: Learns from the golden rows what rows cost on this machine.

    Raises:
        PackError: If a model does not reproduce its golden rows on this machine.
    """

    def check(role: Role) -> GoldenReport:
        run = sessions[role].run if costs is None else costs.learning(sessions[role].run)
        report = check_golden(pack.path(pack.model(role).golden), run)
        progress(role)
        return report

    with ThreadPoolExecutor(workers) as pool:
        return dict(zip(sessions, pool.map(check, sessions), strict=True))


def _prepare(policies: Iterable[Policy]) -> None:
    """Load what the policies' detectors need beside models."""
    language.load()
    for detector in sorted({name for policy in policies for name in policy.rules}):
        REGISTRY[detector].load()


def open_sessions(pack: Pack, sizes: CacheSizes | None = None) -> dict[Role, Session]:
    """Return what runs each role's rows; models that read one encoder share its memory."""
    sizes = sizes or CacheSizes()
    files = {role: pack.model(role) for role in pack.roles}
    readers = {role: file for role, file in files.items() if file.encoder is not None}
    sessions: dict[Role, Session] = {}
    encoder: SharedEncoder | None = None
    if "embedding" in files:
        session = ModelSession(pack, "embedding")
        encoder = SharedEncoder(session, _kept(pack), sizes.states, sizes.vectors)
        sessions = _reading_states(pack, encoder, readers, sizes)
    elif needy := [role for role in files if role == "grounding" or role in readers]:
        raise PackError(f"pack {pack.name}: no role embedding, which {needy} read")
    for role in files:
        if role not in sessions:
            sessions[role] = _reading_text(pack, role, encoder)
    return {role: sessions[role] for role in files}


def _reading_text(pack: Pack, role: Role, encoder: SharedEncoder | None) -> Session:
    """Return the session of a role whose model reads text itself."""
    if role == "grounding" and encoder is not None:
        return PairGroundingSession(pack, encoder)
    if role == "nli":
        return NliSession(pack)
    if role == "causal_lm":
        return CausalLmSession(pack)
    return ClassifierSession(pack, role)


def _kept(pack: Pack) -> tuple[str, ...]:
    """Return the encoder's outputs that models of the pack read."""
    models = pack.manifest.models
    readers = [file for file in models.values() if file.encoder == pack.manifest.roles["embedding"]]
    branched = any(MIDDLE in file.inputs for file in readers)
    on_top = any(MIDDLE not in file.inputs for file in readers)
    return (VECTOR, *((MIDDLE,) if branched else ()), *((TOKENS,) if on_top else ()))


def _reading_states(
    pack: Pack, encoder: SharedEncoder, readers: Mapping[Role, ModelFile], sizes: CacheSizes
) -> dict[Role, Session]:
    """Return the sessions of models that read the encoder or a branch of it."""
    models = pack.manifest.models
    names = {name for name, file in models.items() if MIDDLE in file.inputs}
    branches = {name: Branch(pack, name, encoder, sizes.branch) for name in names}
    sessions: dict[Role, Session] = {"embedding": encoder}
    for role, file in readers.items():
        if role == "grounding":
            sessions[role] = HeadSession(pack, encoder, branches.get(file.encoder or ""))
        elif (name := pack.manifest.roles[role]) in branches:
            sessions[role] = BranchClassifier(branches[name])
        else:
            raise PackError(f"{file.path}: reads {file.encoder} but has no input {MIDDLE}")
    return sessions


def _languages(sessions: dict[Role, Session]) -> dict[Role, frozenset[str]]:
    return {
        role: frozenset(session.file.languages)
        for role, session in sessions.items()
        if session.file.languages is not None
    }
