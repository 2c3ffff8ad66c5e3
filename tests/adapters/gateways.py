"""Others' clients and gateways that speak to the service in a dialect."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import boto3
import openai
import pytest
import requests
import yaml
from azure.ai.contentsafety import ContentSafetyClient
from azure.core.credentials import AzureKeyCredential
from azure.core.rest import HttpRequest

from tests.adapters.adapter import HIDDEN, PASSAGES, QUESTION, SAID, Adapter, Seen
from tests.adapters.conftest import Ground
from tests.vendors.senders import KEY

CONTEXT = "".join(f"<passage>{text}</passage>" for text in PASSAGES)
MESSAGES: Any = [
    {"role": "system", "content": f"Answer from the passages.\n{CONTEXT}"},
    {"role": "user", "content": QUESTION},
]


CARD = "The deposit was paid with the card 4111 1111 1111 1111."
PAID = "How was the deposit paid?"


def litellm_settings(guard: str, key: str) -> dict[str, Any]:
    """Return the settings of LiteLLM's page, with models that say what their names say."""
    page = Path(__file__).resolve().parents[2] / "docs" / "integrations" / "litellm.md"
    (block, *_) = re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    shown = yaml.safe_load(block)
    (guardrail,) = shown["guardrails"]
    guardrail["litellm_params"] |= {"api_base": guard, "api_key": key}
    models = [
        {
            "model_name": name,
            "litellm_params": {"model": "openai/gpt-4o", "api_key": "x", "mock_response": said},
        }
        for name, said in {**SAID, "card": CARD}.items()
    ]
    return {"model_list": models, **shown}


def litellm(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask through LiteLLM's proxy; it answers a stopped answer with an error."""
    with openai.OpenAI(base_url=f"{ground.litellm}/v1", api_key=KEY, max_retries=0) as client:
        create = client.chat.completions.create
        try:
            if not streamed:
                whole = create(model=said, messages=MESSAGES)
                return Seen(whole.choices[0].message.content or "", whole.model_dump())
            chunks = list(
                client.chat.completions.create(model=said, messages=MESSAGES, stream=True)
            )
        except openai.BadRequestError as error:
            return Seen("", error.response.text)
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    return Seen(text, [chunk.model_dump() for chunk in chunks])


def moderations(ground: Ground, said: str, _: bool) -> Seen:
    """Ask what OpenAI's SDK makes of an answer with its passages."""
    given = {"question": QUESTION, "contexts": PASSAGES}
    with openai.OpenAI(base_url=f"{ground.guard}/v1", api_key=ground.key, max_retries=0) as client:
        reply = client.moderations.create(input=SAID[said], extra_body=given)
    return Seen("" if reply.results[0].flagged else SAID[said], reply.model_dump())


def apply_guardrail(ground: Ground, said: str, _: bool) -> Seen:
    """Apply a guardrail with boto3; the key is where AWS has the id of one."""
    marked = [("grounding_source", text) for text in PASSAGES]
    marked += [("query", QUESTION), ("guard_content", SAID[said])]
    content: Any = [{"text": {"text": text, "qualifiers": [kind]}} for kind, text in marked]
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=ground.guard,
        region_name="eu-west-1",
        aws_access_key_id=ground.key,
        aws_secret_access_key="unused",
    )
    asked: Any = {"guardrailVersion": "DRAFT", "source": "OUTPUT", "content": content}
    reply = client.apply_guardrail(guardrailIdentifier="default", outputScope="FULL", **asked)
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.apply_guardrail(guardrailIdentifier="nobody", **asked)
    stopped = reply["action"] == "GUARDRAIL_INTERVENED"
    return Seen(reply["outputs"][0]["text"] if stopped else SAID[said], reply)


def detect_groundedness(ground: Ground, said: str, _: bool) -> Seen:
    """Send Azure's request with its SDK, which has no method of its own for it."""
    body = {"domain": "Generic", "task": "QnA", "qna": {"query": QUESTION}, "text": SAID[said]}
    request = HttpRequest(
        "POST",
        "/text:detectGroundedness?api-version=2024-09-15-preview",
        json={**body, "groundingSources": PASSAGES},
    )
    with ContentSafetyClient(ground.guard, AzureKeyCredential(ground.key)) as client:
        reply = client.send_request(request)
        reply.raise_for_status()
    found = reply.json()
    if not found["ungroundedDetected"]:
        return Seen(SAID[said], found)
    places = {detail.pop("text") for detail in found["ungroundedDetails"]}
    assert any(HIDDEN in place for place in places)  # the place is quoted, as Azure does
    return Seen("", found)


def llm_guard(ground: Ground, said: str, _: bool) -> Seen:
    """Send what LLM Guard's documentation sends; it has no client for outputs."""
    tagged = "".join(f"<document>{text}</document>" for text in PASSAGES)
    body = {"prompt": f"{tagged}\n{QUESTION}", "output": SAID[said]}
    headers = {"Authorization": f"Bearer {ground.key}"}
    reply = requests.post(f"{ground.guard}/analyze/output", json=body, headers=headers, timeout=60)
    reply.raise_for_status()
    assert reply.json()["is_valid"] == (said == "good")
    scanned = requests.post(f"{ground.guard}/scan/output", json=body, headers=headers, timeout=60)
    assert scanned.json() == {k: v for k, v in reply.json().items() if k != "sanitized_output"}
    return Seen(reply.json()["sanitized_output"], reply.json())


GATEWAYS = [
    Adapter(
        "litellm",
        "generic_guardrail_api of the proxy",
        "litellm.md",
        litellm,
        (False, True),
        "streams of other routes than chat completions leave unread; a stream leaves when it was "
        "judged whole; passages must stand in the messages",
    ),
    Adapter(
        "openai",
        "moderations",
        "openai-moderations.md",
        moderations,
        lost="no place for passages but `extra_body`; nine of thirteen categories are null",
    ),
    Adapter(
        "boto3",
        "ApplyGuardrail",
        "bedrock.md",
        apply_guardrail,
        lost="signatures are not checked; matches are places, not values",
    ),
    Adapter(
        "azure-ai-contentsafety",
        "text:detectGroundedness",
        "azure.md",
        detect_groundedness,
        lost="no correction; every flag counts as ungrounded",
    ),
    Adapter(
        "requests",
        "LLM Guard's `/analyze/output`",
        "llm-guard.md",
        llm_guard,
        lost="no scanner can be suppressed; risks are 0, 1 or -1",
    ),
]
