"""Guardrail JSON: every wrong key stops start-up, naming file, key, found and expected."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import guardrail_service.detectors  # noqa: F401 - registers the built-in detectors
from guardrail_service.detectors.registry import REGISTRY, Detector, Parameters, Registry
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.consequences import ANY, FLAG, Consequence, written
from guardrail_service.policy.decide import decide
from guardrail_service.policy.file import Serving, load_file, load_policies
from guardrail_service.policy.file_schema import read_json
from guardrail_service.policy.provenance import canonical
from guardrail_service.types import Action, Outcome, State

H2O = "h2o_sonar.evaluators."
GROUNDEDNESS = H2O + "rag_groundedness_evaluator.RagGroundednessEvaluator"
SERVING = Serving(
    registry=REGISTRY,
    pack_name="embedded",
    roles=frozenset({"embedding"}),
    fingerprints={"embedding": "a" * 64, "segmenter": "segmenter/1"},
    defaults={"groundedness": {"groundedness": 0.4}},
)
Write = Callable[..., Path]


def refused(path: Path) -> ConfigurationError:
    """Load a file that must be refused."""
    with pytest.raises(ConfigurationError) as caught:
        load_file(path, SERVING)
    assert str(path) in str(caught.value)
    return caught.value


def test_ids_in_h2os_form_and_in_ours_are_the_same_detector(write_config: Write) -> None:
    """Thresholds may use one form and the list the other."""
    path = write_config(
        calibrated_thresholds={"groundedness": {"groundedness": 0.61}},
        evaluator_ids=[GROUNDEDNESS],
    )
    policy = load_file(path, SERVING).policy
    assert policy.rules["groundedness"].cuts["groundedness"].threshold == 0.61
    assert policy.rules["groundedness"].cuts["groundedness"].calibrated
    assert policy.name == path.stem


def test_an_id_without_threshold_uses_the_shipped_default_uncalibrated(write_config: Write) -> None:
    """And says so."""
    policy = load_file(write_config(evaluator_ids=["groundedness"]), SERVING).policy
    cut = policy.rules["groundedness"].cuts["groundedness"]
    assert (cut.threshold, cut.calibrated) == (0.4, False)


@pytest.mark.parametrize(("toxicity", "decision"), [(0.25, "pass"), (0.3, "flag")])
def test_h2os_own_example_cuts_where_it_says(toxicity: float, decision: str) -> None:
    """Three evaluators; toxicity above .25 flags, .25 itself passes; a passed check is above .5.

    Known answer 15.
    """
    specs = [REGISTRY[name].spec for name in ("toxicity", "bias")]
    labels = {s.id: frozenset(metric.key for metric in s.metrics) for s in specs}
    serving = dataclasses.replace(SERVING, roles=frozenset(labels), labels=labels)
    example = Path(__file__).resolve().parents[3] / "configs" / "h2o_example.json"
    policy = load_file(example, serving).policy
    assert set(policy.rules) == {"toxicity", "bias", "pii"}
    low = {metric.key: 0.0 for metric in policy.rules["toxicity"].spec.metrics}
    passed = {metric.key: 1.0 for metric in policy.rules["pii"].spec.metrics}
    outcomes = {
        "toxicity": Outcome.evaluated({**low, "toxicity": toxicity}),
        "bias": Outcome.evaluated({m.key: 0.0 for m in policy.rules["bias"].spec.metrics}),
        "pii": Outcome.evaluated(passed),
    }
    assert decide(policy, outcomes).decision == decision
    outcomes["pii"] = Outcome.evaluated({**passed, "model_passes": 0.0})
    assert decide(policy, outcomes).decision == "flag"


def test_a_metric_calibration_gave_up_on_is_uncalibrated(write_config: Write) -> None:
    """Its provenance says `default` or `insufficient_labels`."""
    path = write_config(
        calibrated_thresholds={"groundedness": {"groundedness": 0.61}},
        evaluator_ids=["groundedness"],
        calibration={"per_metric": {"groundedness": {"groundedness": {"status": "default"}}}},
    )
    assert not load_file(path, SERVING).policy.rules["groundedness"].cuts["groundedness"].calibrated


def test_the_damaged_spelling_is_refused_with_the_repaired_one(write_config: Write) -> None:
    """Scanned copies of the manual turn letters into digits."""
    damaged = GROUNDEDNESS.replace("h2o_", "h20_")
    assert f"did you mean '{GROUNDEDNESS}'" in str(refused(write_config(evaluator_ids=[damaged])))


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ({}, ["evaluator_ids", "nothing"]),
        ({"evaluator_ids": []}, ["evaluator_ids"]),
        ({"evaluator_ids": ["nope"]}, ["evaluator_ids[0]", "'nope'", "GET /v1/detectors"]),
        ({"evaluator_ids": ["groundedness", GROUNDEDNESS]}, ["evaluator_ids[1]", "once"]),
        ({"evaluator_ids": ["groundedness"], "extra": 1}, ["extra"]),
        (
            {"evaluator_ids": ["groundedness"], "calibrated_thresholds": {"looping": {}}},
            ["calibrated_thresholds", "'looping'", "evaluator_ids"],
        ),
        (
            {
                "evaluator_ids": ["groundedness"],
                "calibrated_thresholds": {"groundedness": {"nope": 0.5}},
            },
            ["groundedness", "'nope'"],
        ),
        (
            {
                "evaluator_ids": ["groundedness"],
                "calibrated_thresholds": {"groundedness": {"groundedness": 1.5}},
            },
            ["groundedness.groundedness", "1.5", "[-1, 1]"],
        ),
        (
            {"evaluator_ids": ["groundedness"], "policy": {"actions": {"groundedness": "burn"}}},
            ["policy.actions.groundedness", "burn"],
        ),
        (
            {"evaluator_ids": [GROUNDEDNESS], "policy": {"actions": {GROUNDEDNESS: "redact"}}},
            ["policy.actions.groundedness", "'redact'", "mark, flag or block", "encoding, links"],
        ),
        (
            {"evaluator_ids": ["toxicity"], "policy": {"actions": {"toxicity": "redact"}}},
            ["policy.actions.toxicity", "'redact'"],
        ),
        (
            {"evaluator_ids": ["groundedness"], "policy": {"on_error": {"looping": "flag"}}},
            ["policy.on_error", "'looping'"],
        ),
        (
            {
                "evaluator_ids": ["groundedness"],
                "policy": {"parameters": {"groundedness": {"nope": 1}}},
            },
            ["policy.parameters.groundedness.nope"],
        ),
        ({"evaluator_ids": ["groundedness"], "policy": {"deadline_ms": 0}}, ["policy.deadline_ms"]),
        (
            {"evaluator_ids": ["groundedness"], "policy": {"on_unverfied": "flag"}},
            ["policy.on_unverfied", "an unknown key", "did you mean 'on_unverified'"],
        ),
        (
            {"evaluator_id": ["groundedness"], "evaluator_ids": ["groundedness"]},
            ["evaluator_id", "an unknown key", "did you mean 'evaluator_ids'"],
        ),
        (
            {
                "evaluator_ids": ["groundedness"],
                "policy": {"on_unverified": {"*": {"unsuported_language": {"decision": "pass"}}}},
            },
            ["policy.on_unverified.*", "'unsuported_language'", "'unsupported_language'"],
        ),
        (
            {
                "evaluator_ids": ["groundedness"],
                "policy": {"on_error": {"*": {"*": {"decision": "pass", "action": "block"}}}},
            },
            ["policy.on_error", "may only allow or mark"],
        ),
        (
            {"evaluator_ids": ["groundedness"], "policy": {"preset": {"looping": "precise"}}},
            ["policy.preset", "'looping'"],
        ),
        ({"evaluator_ids": ["groundedness"], "policy": {"preset": "exact"}}, ["policy.preset"]),
        ({"evaluator_ids": ["groundedness"], "policy": {"name": "a b"}}, ["policy.name"]),
    ],
)
def test_a_wrong_key_is_named(
    write_config: Write, content: dict[str, Any], names: list[str]
) -> None:
    """The message says where, what was found and what was expected."""
    message = str(refused(write_config(**content)))
    for name in names:
        assert name in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"evaluator_ids": [}', "line 1 column"),
        ('{"evaluator_ids": ["a"], "evaluator_ids": ["b"]}', "twice"),
        ('{"calibrated_thresholds": {"groundedness": {"groundedness": NaN}}}', "finite"),
        ("[" * 100_000, "RecursionError"),
        ("[1]", "whole file"),
    ],
)
def test_broken_json_is_refused(tmp_path: Path, text: str, says: str) -> None:
    """Duplicate keys and NaN too: neither is what its author meant."""
    path = tmp_path / "broken.json"
    path.write_text(text)
    assert says in str(refused(path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Nothing starts on a guess."""
    assert "expected a file" in str(refused(tmp_path / "absent.json"))


def test_a_detector_without_code_or_model_is_reported_and_not_served(write_config: Write) -> None:
    """`config check` lists it; start-up refuses it."""
    path = write_config(
        calibrated_thresholds={"toxicity": {"toxicity": 0.25}},
        evaluator_ids=["toxicity", "groundedness"],
    )
    loaded = load_file(path, SERVING)
    assert [(u.detector, "lacks role toxicity" in u.reason) for u in loaded.unserved] == [
        ("toxicity", True)
    ]
    assert list(loaded.policy.rules) == ["groundedness"]
    with pytest.raises(ConfigurationError, match="toxicity"):
        load_policies([path], SERVING)


@pytest.mark.parametrize(
    ("labels", "cuts", "missing"),
    [
        ({"toxicity", "insult"}, {"toxicity": 0.5}, None),
        ({"insult"}, {}, "toxicity"),
        ({"toxicity", "insult"}, {"toxicity": 0.5, "threat": 0.5}, "threat"),
    ],
)
def test_a_model_without_a_label_that_gates_cannot_serve(
    labels: set[str], cuts: dict[str, float], missing: str | None, write_config: Write
) -> None:
    """A detector's gating metrics, or those the file has thresholds for, must be its labels."""
    thresholds = {"toxicity": cuts} if cuts else {}
    path = write_config(calibrated_thresholds=thresholds, evaluator_ids=["toxicity"])
    role = frozenset({"toxicity"})
    serving = dataclasses.replace(
        SERVING, registry=_with_toxicity(), roles=role, labels={"toxicity": frozenset(labels)}
    )
    loaded = load_file(path, serving)
    if missing is None:
        assert loaded.unserved == ()
    else:
        (unserved,) = loaded.unserved
        assert f"'embedded' lacks {missing}: its role toxicity gives" in unserved.reason


def _with_toxicity() -> Registry:
    """Return a registry whose toxicity has code, whatever this build has."""

    class Toxicity(Detector[Parameters]):
        spec = REGISTRY.spec("toxicity", "test")
        parameters = Parameters

        def reduce(self, sample: Any, outputs: Any, parameters: Any) -> Outcome:
            return Outcome.not_applicable("test")

    registry = Registry()
    registry.register(Toxicity)
    return registry


def test_thresholds_fitted_on_another_model_are_refused_or_warned_about(
    write_config: Write,
) -> None:
    """`on_mismatch` decides; the default refuses."""
    content: dict[str, Any] = {
        "evaluator_ids": ["groundedness"],
        "calibration": {"fingerprints": {"embedding": "b" * 64, "segmenter": "segmenter/1"}},
    }
    assert "calibration.fingerprints.embedding" in str(refused(write_config(**content)))
    warned = load_file(write_config(**content, policy={"on_mismatch": "warn"}), SERVING).policy
    assert len(warned.warnings) == 1
    content["calibration"]["fingerprints"]["embedding"] = "a" * 64
    assert load_file(write_config(**content), SERVING).policy.warnings == ()


def test_two_files_with_one_name_are_refused(write_config: Write) -> None:
    """A request could not tell them apart."""
    paths = [
        write_config(f"{n}.json", evaluator_ids=["looping"], policy={"name": "same"})
        for n in range(2)
    ]
    with pytest.raises(ConfigurationError, match="unique names"):
        load_policies(paths, SERVING)


def test_a_file_name_that_cannot_be_a_policy_name_needs_one_inside(write_config: Write) -> None:
    """Requests, logs and metrics carry the name."""
    assert "policy.name" in str(refused(write_config("my policy.json", evaluator_ids=["looping"])))
    named = write_config("my policy.json", evaluator_ids=["looping"], policy={"name": "mine"})
    assert load_file(named, SERVING).policy.name == "mine"


def test_every_policy_key_reaches_its_rule(write_config: Write) -> None:
    """Strings apply to all detectors, maps to the named ones."""
    path = write_config(
        evaluator_ids=["groundedness", "looping"],
        policy={
            "version": "7",
            "allow_overrides": True,
            "deadline_ms": 250,
            "report_only": ["looping"],
            "parameters": {"groundedness": {"h2o_compatible": True}},
            "on_error": "pass",
            "on_timeout": {"groundedness": "pass"},
            "actions": {"groundedness": "block"},
        },
    )
    policy = load_file(path, SERVING).policy
    rule, looping = policy.rules["groundedness"], policy.rules["looping"]
    assert (policy.version, policy.allow_overrides, policy.deadline_ms) == ("7", True, 250)
    passing = {ANY: Consequence("pass")}
    assert (rule.on_error, rule.on_timeout, looping.on_timeout) == (passing, passing, FLAG)
    assert (rule.action, looping.action) == (Action.BLOCK, Action.FLAG)
    assert looping.report_only
    assert not rule.report_only
    assert rule.parameters.model_dump() == {"h2o_compatible": True}


def test_what_finds_a_replacement_may_redact(write_config: Write) -> None:
    """The detectors of this package that have one."""
    names = ["pii", "secrets", "encoding", "links"]
    path = write_config(evaluator_ids=names, policy={"actions": dict.fromkeys(names, "redact")})
    rules = load_file(path, SERVING).policy.rules
    assert {rule.action for rule in rules.values()} == {Action.REDACT}
    assert {spec.id for spec in REGISTRY.specs() if spec.replaces} == set(names)


def test_a_detector_of_others_may_redact_if_its_spec_says_so(write_config: Write) -> None:
    """The name is not what counts."""
    registry = Registry()

    @registry.register
    class Masking(REGISTRY["looping"].__class__):  # type: ignore[misc,name-defined]
        spec = dataclasses.replace(REGISTRY["looping"].spec, id="own", aliases=(), replaces=True)

    serving = dataclasses.replace(SERVING, registry=registry)
    path = write_config(evaluator_ids=["own"], policy={"actions": {"own": "redact"}})
    assert load_file(path, serving).policy.rules["own"].action is Action.REDACT


def test_the_policy_hash_ignores_layout_and_nothing_else(write_config: Write) -> None:
    """The same content in another order is the same policy."""
    one = write_config("p.json", evaluator_ids=["looping"], policy={"version": "1"})
    first = load_file(one, SERVING).policy.sha256
    one.write_text(json.dumps({"policy": {"version": "1"}, "evaluator_ids": ["looping"]}, indent=4))
    assert load_file(one, SERVING).policy.sha256 == first
    one.write_text(json.dumps({"policy": {"version": "2"}, "evaluator_ids": ["looping"]}))
    assert load_file(one, SERVING).policy.sha256 != first


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.text())))
def test_canonical_bytes_depend_on_content_only(value: dict[str, Any]) -> None:
    """Key order does not matter; the bytes are JSON."""
    shuffled = dict(reversed(value.items()))
    assert canonical(value) == canonical(shuffled)
    assert json.loads(canonical(value).decode("utf-8", "surrogatepass")) == value


def test_the_most_specific_rule_about_a_missing_score_wins(write_config: Write) -> None:
    """This detector and reason, this detector, this reason, any."""
    mark, block = {"decision": "pass", "action": "mark"}, {"decision": "flag", "action": "block"}
    path = write_config(
        evaluator_ids=["groundedness", "looping", "pii"],
        policy={
            "on_unverified": {
                "*": {"*": {"decision": "flag", "action": "flag"}, "unsupported_language": mark},
                "groundedness": {"missing_input": block},
                "looping": {"*": {"decision": "pass"}},
                "pii": "flag",
            }
        },
    )
    rules = load_file(path, SERVING).policy.rules

    def found(detector: str, reason: str) -> Consequence:
        return rules[detector].on_state(State.UNVERIFIED, reason)

    assert found("groundedness", "missing_input") == Consequence("flag", Action.BLOCK)
    assert found("groundedness", "unsupported_language") == Consequence("pass", Action.MARK)
    assert found("groundedness", "unreadable_text") == Consequence("flag", Action.FLAG)
    assert found("looping", "unsupported_language") == Consequence("pass")
    assert found("pii", "unsupported_language") == Consequence("flag")
    assert rules["pii"].on_state(State.NOT_APPLICABLE, "no_claim").decision == "pass"
    assert written(rules["looping"].on_unverified) == "pass"
    assert written(rules["groundedness"].on_unverified)["missing_input"] == block


def test_presets_choose_among_the_shipped_thresholds(write_config: Write) -> None:
    """A threshold of the file's own comes first; what a preset lacks is the default's."""
    presets = {
        "sensitive": {"groundedness": {"groundedness": 0.6}},
        "precise": {"groundedness": {"groundedness": 0.2}},
    }
    serving = dataclasses.replace(SERVING, presets=presets)

    def cut(preset: Any, **content: Any) -> tuple[float, str | None]:
        content = {"evaluator_ids": ["groundedness"], "policy": {"preset": preset}, **content}
        rule = load_file(write_config(**content), serving).policy.rules["groundedness"]
        return rule.cuts["groundedness"].threshold, rule.preset

    assert cut("sensitive") == (0.6, "sensitive")
    assert cut({"*": "sensitive", "groundedness": "precise"}) == (0.2, "precise")
    assert cut({"*": "sensitive"}) == (0.6, "sensitive")
    assert cut("balanced") == (0.4, "balanced")
    own = {"calibrated_thresholds": {"groundedness": {"groundedness": 0.9}}}
    assert cut("sensitive", **own) == (0.9, None)


def test_keys_that_came_later_leave_the_hash_of_older_files_alone(write_config: Write) -> None:
    """And an editor's `$schema` never counts."""
    content = {"evaluator_ids": ["groundedness"], "policy": {"name": "mine"}}
    plain = load_file(write_config(**content), SERVING).policy
    assert plain.sha256 == "99c936edfaeea22bda4141130545fd3d03be53ae82687dd91d52dbdb247c4f4d"
    with_schema = load_file(write_config(**{"$schema": "x.json", **content}), SERVING).policy
    assert with_schema.sha256 == plain.sha256
    content["policy"] = {"name": "mine", "preset": "precise"}
    assert load_file(write_config(**content), SERVING).policy.sha256 != plain.sha256


def test_a_file_without_end_is_refused() -> None:
    """A device gives bytes for ever."""
    with pytest.raises(ConfigurationError, match="more than 16777216 bytes"):
        read_json(Path("/dev/zero"))


def test_many_keys_are_read_in_linear_time(tmp_path: Path) -> None:
    """Each was looked for among all others; a hundred thousand took minutes."""
    file = tmp_path / "many.json"
    file.write_text(json.dumps({str(n): n for n in range(100_000)}))
    assert len(read_json(file)) == 100_000
