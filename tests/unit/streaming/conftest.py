"""A guard over the real pattern detectors, and streams of text cut anywhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest

import guardrail_service.detectors  # noqa: F401 - registers the built-in detectors
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.guard.guard import Guard
from guardrail_service.inference.queue.scheduler import Scheduler
from guardrail_service.policy.decide import Cut, Policy, Rule
from guardrail_service.streaming.guarded import Ended, Release, StreamedCheck
from guardrail_service.types import Action, Sample

PATTERN_DETECTORS = ("pii", "secrets", "encoding")


def pattern_policy(action: Action, *names: str) -> Policy:
    """Return a policy of real detectors that need no model."""
    rules = {}
    for name in names or PATTERN_DETECTORS:
        detector = REGISTRY[name]
        cuts = {
            k: Cut(v, calibrated=True) for k, v in (detector.spec.default_thresholds or {}).items()
        }
        rules[name] = Rule(detector.spec, detector.parameters(), cuts, action)
    return Policy("p", "1", "0" * 64, rules)


@pytest.fixture(scope="session")
def guard() -> Iterator[Guard]:
    """A guard without models."""
    scheduler = Scheduler({}, 1, 10)
    policies = {action.label: pattern_policy(action) for action in Action}
    named = {k: dataclasses.replace(p, name=k) for k, p in policies.items()}
    yield Guard(named, REGISTRY, scheduler, {}, {}, 4_000)
    scheduler.close()


def chunks(text: str, sizes: Sequence[int]) -> Iterator[str]:
    """Yield a text in pieces of these sizes, over and over."""
    at = index = 0
    while at < len(text):
        size = sizes[index % len(sizes)]
        yield text[at : at + size]
        at, index = at + size, index + 1


def streamed(
    check: StreamedCheck, pieces: Iterable[str], seen: Callable[[Release, int], None] | None = None
) -> tuple[list[Release], Ended]:
    """Feed pieces, take every release as soon as it is due, return them and the end."""
    releases: list[Release] = []
    for piece in pieces:
        check.feed(piece)
        while check.due():
            found = check.step()
            if isinstance(found, Ended):
                return releases, found
            if found is None:
                break
            releases.append(found)
            if seen is not None:
                seen(found, check.state.size)
    ended = check.finish()
    if ended.release is not None:
        releases.append(ended.release)
    return releases, ended


def begin(guard: Guard, policy: str = "redact", **options: object) -> StreamedCheck:
    """Return a stream under a policy of the guard."""
    return StreamedCheck(guard, guard.policies[policy], Sample(""), **options)  # type: ignore[arg-type]
