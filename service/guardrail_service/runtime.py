"""Everything a process loads before it judges: pack, sessions, golden rows, policies, guard."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import guardrail_service.detectors  # noqa: F401 - importing registers the built-in detectors
from guardrail_service.config import Serving, load_defaults, load_policies
from guardrail_service.detectors.claims import CLAIMS_VERSION
from guardrail_service.detectors.hallucination import READING_VERSION
from guardrail_service.errors import ConfigurationError
from guardrail_service.guard import Guard
from guardrail_service.inference.encoder import SharedEncoder
from guardrail_service.inference.evidence import EVIDENCE_VERSION
from guardrail_service.inference.golden import GoldenReport, check_golden
from guardrail_service.inference.head import HeadSession
from guardrail_service.inference.lexical import LEXICAL_VERSION
from guardrail_service.inference.pack import Pack, load_pack, resolve
from guardrail_service.inference.scheduler import Scheduler
from guardrail_service.inference.session import ModelSession, Session
from guardrail_service.policy import Policy
from guardrail_service.registry import REGISTRY
from guardrail_service.resources import configs_dir, packs_dir
from guardrail_service.settings import Settings
from guardrail_service.text import language
from guardrail_service.text.sentences import SEGMENTER_VERSION
from guardrail_service.types import Role

_LOG = logging.getLogger(__name__)


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
            self.sessions = open_sessions(self.pack)
            self.golden = run_golden(self.pack, self.sessions, settings.workers)
            prepared.result()
        self.scheduler = Scheduler(
            {role: session.run for role, session in self.sessions.items()},
            settings.workers,
            settings.limits.queued_rows,
        )
        self.guard = Guard(
            policies,
            REGISTRY,
            self.scheduler,
            windowers={role: session.tokenizer for role, session in self.sessions.items()},
            languages=_languages(self.sessions),
            max_sentences=settings.limits.sentences,
            default_policy=default,
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


def serving_for(pack: Pack) -> Serving:
    """Return what configurations are checked against, without loading a model."""
    fingerprints: dict[str, str] = {role: pack.model(role).fingerprint() for role in pack.roles}
    return Serving(
        registry=REGISTRY,
        pack_name=pack.name,
        roles=frozenset(pack.roles),
        fingerprints={
            **fingerprints,
            "segmenter": SEGMENTER_VERSION,
            "evidence": " ".join(
                (CLAIMS_VERSION, READING_VERSION, EVIDENCE_VERSION, LEXICAL_VERSION)
            ),
        },
        defaults=load_defaults(default_thresholds_file()),
    )


def default_thresholds_file() -> Path:
    """Return the file with the shipped default thresholds."""
    return configs_dir() / "defaults" / "thresholds.json"


def run_golden(
    pack: Pack,
    sessions: dict[Role, Session],
    workers: int,
    progress: Callable[[Role], None] = lambda _role: None,
) -> dict[Role, GoldenReport]:
    """Return each loaded model's golden report.

    Raises:
        PackError: If a model does not reproduce its golden rows on this machine.
    """

    def check(role: Role) -> GoldenReport:
        report = check_golden(pack.path(pack.model(role).golden), sessions[role].run)
        progress(role)
        return report

    with ThreadPoolExecutor(workers) as pool:
        return dict(zip(sessions, pool.map(check, sessions), strict=True))


def _prepare(policies: Iterable[Policy]) -> None:
    """Load what the policies' detectors need beside models."""
    language.load()
    for detector in sorted({name for policy in policies for name in policy.rules}):
        REGISTRY[detector].load()


def open_sessions(pack: Pack) -> dict[Role, Session]:
    """Return what runs each role's rows; roles that read one encoder share its memory."""
    sessions: dict[Role, Session] = {
        role: ModelSession(pack, role) for role in pack.roles if pack.model(role).encoder is None
    }
    embedding = sessions.get("embedding")
    if isinstance(embedding, ModelSession) and "grounding" in pack.roles:
        shared = SharedEncoder(embedding)
        sessions["embedding"] = shared
        sessions["grounding"] = HeadSession(pack, shared)
    return sessions


def _languages(sessions: dict[Role, Session]) -> dict[Role, frozenset[str]]:
    return {
        role: frozenset(session.file.languages)
        for role, session in sessions.items()
        if session.file.languages is not None
    }
