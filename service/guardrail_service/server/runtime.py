"""Loads all a process needs to judge: pack, sessions, golden rows, policies, guard."""

from __future__ import annotations

import dataclasses
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import guardrail_service.detectors  # noqa: F401 - importing registers the built-in detectors
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.errors import ConfigurationError, PackError, ServiceError, choices
from guardrail_service.guard.guard import FIRST_CHECKS, Guard
from guardrail_service.inference.golden import SOME_ROWS, GoldenReport, check_golden
from guardrail_service.inference.memory import Caches, CacheSizes, space
from guardrail_service.inference.models.session import Session
from guardrail_service.inference.pack import Pack, load_pack, resolve
from guardrail_service.inference.queue.batch import Batch, Batches, OneLength
from guardrail_service.inference.queue.cost import CostModel
from guardrail_service.inference.queue.scheduler import Peeks, Scheduler, Warms
from guardrail_service.inference.session_kinds import golden_form, open_sessions
from guardrail_service.inference.store import Store
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.file import (
    Serving,
    default_thresholds_file,
    load_defaults,
    load_presets,
)
from guardrail_service.policy.fingerprints import fingerprints
from guardrail_service.policy.served import PolicySet, load_set
from guardrail_service.policy.versions import policy_files
from guardrail_service.resources import StartCache, packs_dir
from guardrail_service.server.refusals import refusals
from guardrail_service.server.reload import Reloads
from guardrail_service.server.watch import FileWatch
from guardrail_service.settings import CacheSettings, Settings
from guardrail_service.text import language
from guardrail_service.types import ROLES, Role, Row, RowResult

_LOG = logging.getLogger(__name__)
READS: Mapping[Role, Role] = {"grounding": "embedding"}
"""A grounding row chooses among the embeddings of the texts that were submitted with it."""


class LoadedService:
    """Everything that is read and computed before a thread is started or a file stays open.

    A process that serves may be forked after it: what is here is shared by all of them.

    Raises:
        PackError: If a file of the pack is missing, changed or computes other scores.
        ConfigurationError: If a guardrail configuration cannot be served.
    """

    def __init__(self, settings: Settings) -> None:
        started = time.perf_counter()
        self.settings = settings
        self.reload_error: str | None = None
        pack = load_pack(resolve(settings.model_pack, packs_dir())).on(settings.providers)
        self.watch = watch_of(settings)  # before they are read: later changes count
        policies = load_set(*policy_sources(settings), serving_for(pack))
        self.pack = with_models_of(pack, {name for p in policies.all() for name in p.rules})
        refuse_unread(self.pack)
        self.pack.refuse_unserved()
        # No plug-in's model is added while the service runs: what is loaded now is what there is.
        self.serving = dataclasses.replace(serving_for(self.pack), join=None)
        default = settings.default_policy
        if default is not None and default not in policies.live:
            names = ", ".join(policies.live)
            raise ConfigurationError("GUARDRAIL_DEFAULT_POLICY", repr(default), names)
        self.policies = policies
        with ThreadPoolExecutor(1, "prepare") as pool:
            # Patterns and language tables beside the models: each takes a core for about a second.
            prepared = pool.submit(_prepare, policies.all())
            self.sessions = open_sessions(self.pack, _sizes(settings.cache))
            self.costs = _first_costs()
            start_cache = StartCache(settings.start_cache)
            self.golden = run_golden(
                self.pack, self.sessions, settings.workers, costs=self.costs, passed=start_cache
            )
            prepared.result()
        self.load_s = time.perf_counter() - started

    def reload(self) -> None:
        """Read the configurations again for processes that are forked later, if they are right.

        Those that run say in the log what is wrong.
        """
        try:
            policies = load_set(*policy_sources(self.settings), self.serving)
            default = self.settings.default_policy or next(iter(self.policies.live))
            if default not in policies.live:
                raise ConfigurationError("reload", f"no policy {default!r}", "the default policy")
        except Exception as error:  # noqa: BLE001 - the others would end with the first process
            known = isinstance(error, ServiceError)
            self.reload_error = str(error) if known else type(error).__name__
        else:
            self.policies, self.reload_error = policies, None

    def renew(self) -> None:
        """Read the configurations again if they are watched and have changed."""
        if self.watch is not None and self.watch.changed():
            self.reload()


class Runtime:
    """A loaded service without its HTTP side; the API, the command line and benchmarks share it.

    Args:
        settings: How it runs.
        loaded: What was loaded with these settings; loaded now if unset.

    Raises:
        PackError: If a file of the pack is missing, changed or computes other scores.
        ConfigurationError: If a guardrail configuration cannot be served.
    """

    def __init__(self, settings: Settings, loaded: LoadedService | None = None) -> None:
        loaded = loaded or LoadedService(settings)
        self.settings = settings
        self.pack, self.serving, self.sessions = loaded.pack, loaded.serving, loaded.sessions
        self.golden, self.load_s, self.watch = loaded.golden, loaded.load_s, loaded.watch
        self.caches = Caches(self.sessions.values())
        if settings.store is not None:
            self.caches.attach(Store(settings.store, settings.store_mb * 2**20))
        self.scheduler = Scheduler(
            {role: session.run for role, session in self.sessions.items()},
            settings.workers,
            settings.limits.queued_rows,
            costs=loaded.costs,
            peeks={role: s.peek for role, s in self.sessions.items() if isinstance(s, Peeks)},
            after=READS,
            batches=batches(self.sessions, settings.batch_tokens),
        )
        self.guard = Guard(
            loaded.policies,
            REGISTRY,
            self.scheduler,
            windowers={role: session.tokenizer for role, session in self.sessions.items()},
            languages=_languages(self.sessions),
            max_sentences=settings.limits.sentences,
            cpu_s=settings.limits.cpu_s,
            default_policy=settings.default_policy,
            warming=[s.warming for s in self.sessions.values() if isinstance(s, Warms)],
        )
        self.reloads = Reloads(self.guard, self._load)
        self.reloads.error = loaded.reload_error
        self.refused = refusals()

    @property
    def reload_error(self) -> str | None:
        """Return why the policies of before are in force; None if those that lie there are."""
        return self.reloads.error

    def reload(self) -> bool:
        """Read the configurations again; keep the last good ones if that fails.

        Returns:
            Whether the new configurations are in force. `reload_error` says why not.
        """
        return self.reloads.tried()

    def _load(self) -> PolicySet:
        policies = load_set(*policy_sources(self.settings), self.serving)
        _prepare(policies.all())
        return policies

    def close(self) -> None:
        """Finish running work within the drain time and stop the workers."""
        self.scheduler.draining = True
        self.scheduler.close(self.settings.drain_s)
        self.guard.turns.close()
        self.caches.close()

    def end(self) -> None:
        """Stop at once: whoever waits is told that the service ends."""
        self.guard.turns.close()
        self.scheduler.close()


def policy_sources(settings: Settings) -> tuple[tuple[Path, ...], Path | None, tuple[str, ...]]:
    """Return where policies lie: files, a folder of versions; and which judge in the shadow."""
    return settings.config_files(), settings.policies, settings.shadow_policies


def watch_of(settings: Settings) -> FileWatch | None:
    """Return what tells when policies have changed; None if nobody wants to know."""
    folder = settings.policies
    files = settings.config_files() if settings.watch_config else ()
    if folder is None:
        return FileWatch(lambda: files) if files else None
    return FileWatch(lambda: (*files, *policy_files(folder)))


def _first_costs() -> CostModel:
    costs = CostModel()
    for kind, checks in FIRST_CHECKS.items():
        for size, ms in checks:
            costs.learn(kind, size, ms)
    return costs


def batches(sessions: Mapping[Role, Session], tokens: int) -> dict[Role, Batch]:
    """Return how rows run together, for the roles whose model's file allows it."""
    made = {role: _batch(session, tokens) for role, session in sessions.items()}
    return {role: batch for role, batch in made.items() if batch is not None}


def _batch(session: Session, tokens: int) -> Batch | None:
    if not isinstance(session, Batches) or not session.file.may_batch:
        return None
    if not session.file.one_length:
        return Batch(session.run_many, tokens)
    if not isinstance(session, OneLength):
        return None
    # No more than the longest row: what is urgent never waits for longer than for one.
    most = min(tokens, session.file.max_tokens)
    return Batch(session.run_many, most, session.row_lengths)


def _sizes(cache: CacheSettings) -> CacheSizes:
    mebi = 2**20
    return CacheSizes(cache.vectors_mb * mebi, cache.states_mb * mebi, cache.branch_mb * mebi)


def serving_for(pack: Pack) -> Serving:
    """Return what configurations are checked against, without loading a model."""
    return Serving(
        registry=REGISTRY,
        pack_name=pack.name,
        roles=frozenset(pack.roles),
        fingerprints=fingerprints(pack, REGISTRY.specs()),
        defaults=load_defaults(default_thresholds_file()),
        presets=load_presets(default_thresholds_file()),
        labels={role: frozenset(pack.model(role).labels or ()) for role in pack.roles},
        join=lambda detectors: serving_for(with_models_of(pack, detectors)),
    )


def pack_at_hand(name_or_folder: str) -> Pack:
    """Return a model pack with what the plug-ins bring that are loaded by now.

    Raises:
        PackError: If there is no such pack, or a file of one of them is missing or changed.
    """
    pack = load_pack(resolve(name_or_folder, packs_dir()))
    return with_models_of(pack, [detector.spec.id for detector in REGISTRY])


def with_models_of(pack: Pack, detectors: Iterable[str]) -> Pack:
    """Return a pack with the models that plugged-in detectors bring and it lacks.

    A role that the pack serves itself is the pack's: whoever runs the service may choose a model.

    Raises:
        PackError: If a plug-in's pack lacks the role, is changed, or two bring different models.
    """
    brought: dict[Role, Pack] = {}
    for name in sorted(detectors):
        detector = REGISTRY[name]
        if detector.pack is None:
            continue
        for role in sorted(detector.spec.roles - set(pack.roles)):
            found = load_pack(detector.pack)
            if role not in found.manifest.roles:
                where = f"detector {name}: pack {found.name!r}"
                hint = choices(role, found.manifest.roles, "role of the pack")
                raise PackError(f"{where}: found no role {role!r}; expected {hint}")
            other = brought.setdefault(role, found)
            if other.fingerprint(role) != found.fingerprint(role):
                raise PackError(
                    f"role {role!r}: found a model in pack {other.name!r} and another one in "
                    f"{found.name!r}; expected one"
                )
    return pack.joined(brought)


def refuse_unread(pack: Pack) -> None:
    """Raise PackError if a pack serves a role that nothing reads: a misspelt one, most likely."""
    known = {*ROLES, *(role for spec in REGISTRY.specs() for role in spec.roles)}
    for role in pack.manifest.roles:
        if role not in known:
            raise PackError(
                f"{pack.folder}: manifest.json: roles: found {role!r}, which no detector of the "
                f"configurations reads; expected {choices(role, known, 'role')}"
            )


def run_golden(
    pack: Pack,
    sessions: dict[Role, Session],
    workers: int,
    progress: Callable[[Role], None] = lambda _role: None,
    costs: CostModel | None = None,
    passed: StartCache | None = None,
) -> dict[Role, GoldenReport]:
    """Return each loaded model's golden report.

    Args:
        pack: The loaded pack.
        sessions: What runs each role's rows.
        workers: Models that are checked at the same time.
        progress: Told each role that is done.
        costs: Learns from the golden rows what rows cost on this machine.
        passed: Remembers which models passed whole, with this processor and these libraries; of
            those only some rows run again.

    Raises:
        PackError: If a model does not reproduce its golden rows on this machine.
    """

    def check(role: Role) -> GoldenReport:
        session = sessions[role]
        run = session.run if costs is None else costs.learning(session.run)
        report = _golden_report(pack, role, session, run, passed or StartCache(None))
        progress(role)
        return report

    with ThreadPoolExecutor(workers) as pool:
        return dict(zip(sessions, pool.map(check, sessions), strict=True))


def _golden_report(
    pack: Pack,
    role: Role,
    session: Session,
    run: Callable[[Row], RowResult],
    passed: StartCache,
) -> GoldenReport:
    path = pack.golden(role)
    check = partial(check_golden, path, run, golden_form(pack, role))
    computed = pack.fingerprint(role)
    if elsewhere := [file for file in pack.files(role) if file.provider != "cpu"]:
        names = dict.fromkeys(file.provider for file in elsewhere)
        together = batches({role: session}, tokens=1)
        check = partial(
            check,
            run_many=together[role].run if together else None,
            tolerance=max(file.tolerance or 0.0 for file in elsewhere),
            computing=f"{' and '.join(names)}, which GUARDRAIL_PROVIDERS names,",
        )
        computed = " ".join((computed, *(file.computed_as() for file in elsewhere)))
    rests_on = space(computed) + path.read_bytes()
    before = passed.get("golden", rests_on)
    if before is not None:
        some = check(most_rows=SOME_ROWS)
        rows, worst = json.loads(before)
        return some._replace(rows=rows, worst=max(worst, some.worst))
    report = check()
    passed.put("golden", rests_on, json.dumps([report.rows, report.worst]).encode())
    return report


def _prepare(policies: Iterable[Policy]) -> None:
    """Load what the policies' detectors need beside models."""
    language.load()
    for detector in sorted({name for policy in policies for name in policy.rules}):
        REGISTRY[detector].load()


def _languages(sessions: dict[Role, Session]) -> dict[Role, frozenset[str]]:
    return {
        role: frozenset(session.file.languages)
        for role, session in sessions.items()
        if session.file.languages is not None
    }
