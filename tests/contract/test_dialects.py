"""Every dialect decides as the native API, refuses what it refuses, and names no submitted text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from guardrail_service.errors import ConfigurationError
from guardrail_service.server.app import create_app
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import DIALECTS, Limits, Settings
from tests.contract.dialects import ANSWERS, INVENTED, PASSAGES, QUESTION, SPOKEN, TWIN

KEY = "a-made-up-key"
SECRET = "Zanzibar"
"""Stands in every refused request and in no reply."""


@pytest.fixture(scope="module")
def http() -> Iterator[TestClient]:
    """The service on the embedded pack, in every dialect."""
    limits = Limits(answer_chars=2_000, contexts=5, body_bytes=20_000, batch_items=4)
    runtime = Runtime(Settings(dialects="all", workers=2, limits=limits, api_keys=(KEY,)))
    app = create_app(runtime=runtime)
    headers = {"Authorization": f"Bearer {KEY}"}
    with TestClient(app, raise_server_exceptions=False, headers=headers) as client:
        yield client


@pytest.fixture(scope="module")
def native(http: TestClient) -> dict[str, Any]:
    """The native reply to each answer."""
    asked = {"question": QUESTION, "contexts": PASSAGES, "include": ["redacted_answer"]}
    return {a: http.post("/v1/check", json={**asked, "answer": a}).json() for a in ANSWERS}


def test_every_dialect_is_tested() -> None:
    """A new one adds its line in `dialects.py`."""
    assert set(SPOKEN) == set(DIALECTS)


@pytest.mark.parametrize("name", SPOKEN)
def test_a_dialect_decides_as_the_native_api(
    name: str, http: TestClient, native: dict[str, Any]
) -> None:
    """Twenty answers: good, invented, rude, private, foreign, empty of words."""
    spoken = SPOKEN[name]
    for answer in ANSWERS:
        reply = spoken.ask(http, answer)
        assert reply.status_code == 200, reply.text
        assert spoken.seen(reply.json(), answer) == spoken.expected(native[answer], answer), answer
        assert reply.headers["x-guardrail-decision"] == native[answer]["decision"]
        assert reply.headers["x-guardrail-action"] == native[answer]["action"]
    actions = {native[answer]["action"] for answer in ANSWERS}
    assert {"allow", "redact", "block"} <= actions
    assert (native[TWIN]["action"], native[INVENTED]["action"]) == ("allow", "block")


REFUSED: dict[str, tuple[int, dict[str, Any]]] = {
    "an answer that is too long": (422, {"answer": f"{SECRET} " * 300}),
    "too many passages": (422, {"contexts": [SECRET] * 6}),
    "a lone surrogate": (422, {"answer": f"{SECRET} \ud800"}),
    "no letter": (422, {"answer": "\u200b \n"}),
    "another's key": (401, {"headers": {"Authorization": f"Bearer {SECRET}"}}),
    "too many bytes": (413, {"contexts": [SECRET * 2_000] * 2}),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("name", SPOKEN)
def test_a_dialect_refuses_what_the_native_api_refuses(
    name: str, case: str, http: TestClient
) -> None:
    """With the status that it has for that, a request id and no word of the caller."""
    status, changes = REFUSED[case]
    native = {"answer": TWIN, "contexts": PASSAGES, **changes}
    headers = native.pop("headers", {})
    sent = json.dumps(native)
    assert http.post("/v1/check", content=sent, headers=headers | JSON).status_code == status
    reply = SPOKEN[name].ask(http, **{"answer": TWIN, **changes})
    expected = {422: (400, 422), 401: (401, 403), 413: (400, 413)}
    assert reply.status_code in expected[status]
    assert SPOKEN[name].error(reply.json())
    assert reply.headers["x-request-id"]
    assert SECRET not in reply.text


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("name", SPOKEN)
def test_an_unknown_guard_is_refused(name: str, http: TestClient) -> None:
    """In each dialect's own words; never judged by the default policy instead."""
    spoken = SPOKEN[name]
    reply = spoken.ask(http, TWIN, policy=SECRET)
    status, code = spoken.unknown
    assert (reply.status_code, code in reply.text) == (status, True), reply.text
    assert SECRET not in reply.text
    other = spoken.ask(http, TWIN, headers={"x-guardrail-policy": SECRET})
    if name != "bedrock":  # its path always names one
        assert other.status_code == status
    assert spoken.ask(http, TWIN, policy="strict").status_code == 200


@pytest.mark.parametrize("name", SPOKEN)
@pytest.mark.parametrize("content", [b"{", b"[]", b'{"a": NaN}', b"\xff", b'{"texts": 1}', b""])
def test_a_body_that_is_none_is_a_clear_error(name: str, content: bytes, http: TestClient) -> None:
    """Never a 500."""
    paths = [
        route.path  # type: ignore[attr-defined]
        for route in http.app.routes  # type: ignore[attr-defined]
        if getattr(route, "include_in_schema", True) is False and "POST" in route.methods
    ]
    assert paths
    for path in paths:
        reply = http.post(path.replace("{", "").replace("}", ""), content=content, headers=JSON)
        assert 400 <= reply.status_code < 500, (path, reply.text)


def test_a_key_may_stand_where_the_dialects_clients_send_it(http: TestClient) -> None:
    """LiteLLM's is `x-api-key`, boto3 names it as it signs; elsewhere they count for nothing."""
    signed = "AWS4-HMAC-SHA256 Credential={}/20260101/eu-west-1/bedrock/aws4_request, Signature=0"
    for name, header, value in (
        ("litellm", "x-api-key", "{}"),
        ("azure", "Ocp-Apim-Subscription-Key", "{}"),
        ("bedrock", "Authorization", signed),
    ):
        ask = SPOKEN[name].ask
        for key, allowed in ((KEY, True), (SECRET, False)):
            reply = ask(http, TWIN, headers={"Authorization": "", header: value.format(key)})
            assert (reply.status_code == 200) is allowed
            assert SECRET not in reply.text
    for name in ("openai", "llm_guard"):
        reply = SPOKEN[name].ask(http, TWIN, headers={"Authorization": signed.format(KEY)})
        assert reply.status_code == 401
    native = http.get("/v1/policies", headers={"Authorization": "", "x-api-key": KEY})
    assert native.status_code == 401


def test_without_the_setting_there_is_no_dialect(tiny_runtime: Runtime) -> None:
    """Nor is a file of one loaded for native requests."""
    with TestClient(create_app(runtime=tiny_runtime)) as client:
        assert client.post("/v1/moderations", json={"input": "x"}).status_code == 404


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", ()),
        ("all", DIALECTS),
        (" litellm , openai,litellm", ("litellm", "openai")),
        (("openai",), ("openai",)),
    ],
)
def test_dialects_are_named_by_a_setting(given: Any, expected: tuple[str, ...]) -> None:
    """Off by default."""
    assert Settings(dialects=given).dialects == expected
    assert Settings().dialects == ()


def test_an_unknown_dialect_stops_the_start() -> None:
    """With what may have been meant."""
    with pytest.raises(ConfigurationError, match="did you mean 'litellm'"):
        Settings(dialects="openai,litelm")


def test_passages_of_another_call_are_no_evidence(http: TestClient) -> None:
    """Nor those of another user with the same call id; without any the policy stops the answer."""
    path = "/beta/litellm_basic_guardrail_api"
    user = {"request_data": {"user_api_key_hash": "one"}, "litellm_call_id": "joined"}
    tool = [{"role": "tool", "content": PASSAGES[0]}]
    http.post(path, json={"input_type": "request", "structured_messages": tool, **user})
    said = {"input_type": "response", "texts": [TWIN], **user}
    assert http.post(path, json=said).json()["action"] == "NONE"
    for other in ({"request_data": {"user_api_key_hash": "two"}}, {"litellm_call_id": "other"}):
        blocked = http.post(path, json=said | other).json()
        assert blocked["action"] == "BLOCKED"
        assert "pre_call" in blocked["blocked_reason"]


@pytest.mark.parametrize(
    ("more", "action"),
    [
        ({"tool_calls": [{"function": {"name": "mail", "arguments": "{}"}}]}, "NONE"),
        ({"tool_calls": [{"function": {"name": "mail", "arguments": f'{{"a":"{INVENTED}"}}'}}]},
         "BLOCKED"),
        ({"images": ["data:image/png;base64,AA=="]}, "BLOCKED"),
        ({"texts": ["", TWIN]}, "NONE"),
        ({"texts": [TWIN, INVENTED]}, "BLOCKED"),
        ({"texts": []}, "NONE"),
    ],
)  # fmt: skip
def test_nothing_unread_of_an_answer_passes(
    more: dict[str, Any], action: str, http: TestClient
) -> None:
    """Every choice and every argument for a tool is judged; a picture cannot be."""
    path = "/beta/litellm_basic_guardrail_api"
    tool = [{"role": "tool", "content": PASSAGES[0]}]
    call = {"litellm_call_id": "n"}
    http.post(path, json={"input_type": "request", "structured_messages": tool, **call})
    reply = http.post(path, json={"input_type": "response", "texts": [TWIN], **call, **more})
    assert reply.json()["action"] == action


def test_a_moderation_without_passages_is_about_the_text_alone(http: TestClient) -> None:
    """It has no place for passages, so that they are missing is no reason to flag."""
    for text, flagged in ((TWIN, False), (ANSWERS[7], True)):
        result = http.post("/v1/moderations", json={"input": [text]}).json()["results"][0]
        assert result["flagged"] is flagged
        assert result["guardrail"]["decision"] == "flag"
        assert result["categories"]["sexual"] is result["category_scores"]["sexual"] is None


def applied(http: TestClient, path: str = "default/version/DRAFT", **body: Any) -> Any:
    """Apply a guardrail; content is pairs of qualifiers and text."""
    texts = [{"text": {"text": t, "qualifiers": list(q)}} for q, t in body.pop("texts", ())]
    given = {"source": "OUTPUT", "content": texts, **body}
    return http.post(f"/guardrail/{path}/apply", json=given)


SOURCES = [(["grounding_source"], PASSAGES[0]), (["query"], QUESTION)]


def test_bedrock_tells_what_was_found(http: TestClient) -> None:
    """Scores beside thresholds; places of personal data without the data; honest coverage."""
    texts = [*SOURCES, (["guard_content"], INVENTED)]
    full = applied(http, texts=texts, outputScope="FULL").json()
    filters = full["assessments"][0]["contextualGroundingPolicy"]["filters"]
    assert [(f["type"], f["detected"], f["action"]) for f in filters] == [
        ("GROUNDING", True, "BLOCKED"),
        ("RELEVANCE", False, "NONE"),
    ]
    assert filters[0]["score"] < filters[0]["threshold"]
    total = sum(len(text) for _, text in texts)
    counted = {"guarded": len(INVENTED), "total": total}
    assert full["guardrailCoverage"] == {"textCharacters": counted}
    some = applied(http, texts=texts).json()["assessments"][0]
    assert len(some["contextualGroundingPolicy"]["filters"]) == 1
    card = [(["grounding_source"], PASSAGES[2]), (["guard_content"], PASSAGES[2])]
    leaked = applied(http, texts=card).json()
    entities = leaked["assessments"][0]["sensitiveInformationPolicy"]["piiEntities"]
    assert [entity["type"] for entity in entities] == ["CREDIT_DEBIT_CARD_NUMBER"]
    assert "1111" not in json.dumps(leaked)


def test_bedrock_detects_without_acting_where_the_policy_only_observes(http: TestClient) -> None:
    """`detected` is what was found, `action` what was done."""
    texts = [*SOURCES, (["guard_content"], INVENTED)]
    seen = applied(http, "observe/version/DRAFT", texts=texts).json()
    assert (seen["action"], seen["outputs"]) == ("NONE", [])
    (found,) = seen["assessments"][0]["contextualGroundingPolicy"]["filters"]
    assert (found["type"], found["detected"], found["action"]) == ("GROUNDING", True, "NONE")


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/beta/litellm_basic_guardrail_api",
         {"input_type": "response",
          "additional_provider_specific_params": {"policy": 7}}, "policy"),
        ("/beta/litellm_basic_guardrail_api",
         {"input_type": "request",
          "additional_provider_specific_params": {"passages": {"roles": ["sytem"]}}}, "passages"),
        ("/v1/moderations", {"input": TWIN, "model": "strct"}, "model"),
        ("/guardrail/default/version/7/apply",
         {"source": "OUTPUT", "content": [{"text": {"text": TWIN}}]}, "version"),
        ("/guardrail/default/version/DRAFT/apply",
         {"source": "ANSWER", "content": [{"text": {"text": TWIN}}]}, "source"),
        ("/contentsafety/text:detectGroundedness",
         {"text": TWIN, "groundingSources": [], "task": "Chat"}, "task"),
        ("/contentsafety/text:detectGroundedness",
         {"text": TWIN, "groundingSources": [], "correction": True}, "correction"),
        ("/scan/output",
         {"prompt": "", "output": TWIN, "scanners_suppress": ["Toxicity"]}, "scanners_suppress"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named(path: str, body: Any, field: str, http: TestClient) -> None:
    """Never judged as if it were not there."""
    reply = http.post(path, json=body)
    assert 400 <= reply.status_code < 500
    assert field in reply.text


@pytest.mark.parametrize(
    ("source", "text", "action"),
    [
        ("INPUT", TWIN, "NONE"),
        ("INPUT", ANSWERS[7], "GUARDRAIL_INTERVENED"),
        ("OUTPUT", TWIN, "GUARDRAIL_INTERVENED"),
    ],
)
def test_what_a_user_wrote_needs_no_source(
    source: str, text: str, action: str, http: TestClient
) -> None:
    """An answer does: without one the policy says what follows."""
    assert applied(http, texts=[([], text)], source=source).json()["action"] == action


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("default/version/7", {"texts": [([], TWIN)]}, 404),
        ("default/version/DRAFT", {"content": [{"image": {"format": "png"}}]}, 400),
        ("default/version/DRAFT", {"texts": SOURCES}, 400),
        ("default/version/DRAFT", {"texts": [(["other"], TWIN)]}, 400),
        ("default/version/DRAFT", {"texts": []}, 400),
    ],
)
def test_bedrock_refuses_in_its_own_words(
    path: str, body: dict[str, Any], status: int, http: TestClient
) -> None:
    """A picture, nothing to judge, an unknown qualifier, another version."""
    reply = applied(http, path, **body)
    kinds = {404: "ResourceNotFoundException", 400: "ValidationException"}
    assert reply.status_code == status
    assert reply.headers["x-amzn-errortype"] == kinds[status]
    assert reply.headers["x-amzn-requestid"] == reply.headers["x-request-id"]


def grounded(http: TestClient, **changes: Any) -> Any:
    """Ask Azure's way."""
    body = {"text": INVENTED, "groundingSources": PASSAGES, "reasoning": True, **changes}
    return http.post("/contentsafety/text:detectGroundedness", json=body)


def test_azure_tells_the_place_in_every_encoding(http: TestClient) -> None:
    """Of the sentence that no source says, behind an emoji."""
    text = f"\U0001f3dd {INVENTED}"
    reply = grounded(http, text=text).json()
    detail = next(d for d in reply["ungroundedDetails"] if "company" in d["text"])
    start = text.index(detail["text"])
    assert detail["offset"] == {"utf8": start + 3, "utf16": start + 1, "codePoint": start}
    assert set(detail["length"].values()) == {len(detail["text"])}
    assert detail["reason"].startswith("hallucination")
    assert 0 < reply["ungroundedPercentage"] < 1
    assert grounded(http, text=TWIN).json()["ungroundedDetails"] == []
    assert grounded(http, correction=True).status_code == 400


def test_llm_guard_suppresses_nothing(http: TestClient) -> None:
    """A caller that could leave detectors out would decide in the policy's place."""
    body = {"prompt": PASSAGES[0], "output": TWIN}
    scanned = http.post("/scan/output", json=body).json()
    assert (scanned["is_valid"], "sanitized_output" in scanned) == (True, False)
    assert scanned["scanners"]["toxicity"] == 0.0
    suppressed = http.post("/scan/output", json={**body, "scanners_suppress": ["Toxicity"]})
    assert suppressed.status_code == 422
    assert "Toxicity" not in suppressed.text


def test_a_request_holds_no_more_texts_than_a_batch(http: TestClient) -> None:
    """Whatever its format calls them."""
    said = {"input_type": "response", "texts": ["Hello!"] * 5}
    replies = [
        http.post("/beta/litellm_basic_guardrail_api", json=said),
        http.post("/v1/moderations", json={"input": ["Hello!"] * 5}),
        applied(http, texts=[([], "Hello!")] * 5),
    ]
    assert [reply.status_code for reply in replies] == [422, 400, 400]
    said["texts"] = ["Hello!"] * 4
    assert http.post("/beta/litellm_basic_guardrail_api", json=said).json()["action"] == "NONE"
