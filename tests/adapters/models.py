"""OpenAI's SDK with the guard inside it, and `guardrail proxy`, both before a real small model."""

from __future__ import annotations

import asyncio
from typing import Any

import openai

from guardrail_client.integrations.openai_client import guarded
from tests.adapters.adapter import PASSAGES, QUESTION, SAID, Adapter, Seen
from tests.adapters.conftest import Ground
from tests.adapters.frameworks import BOTH, patient
from tests.adapters.gateways import MESSAGES
from tests.vendors.senders import grammar

UPSTREAM_KEY = "sk-made-up-for-the-model"


def _asked(said: str) -> dict[str, Any]:
    """Return what makes the model say one thing; it is asked to, which is faster."""
    forced = {"grammar": grammar(SAID[said]), "temperature": 0, "max_tokens": 100}
    return {"model": "smollm2", "extra_body": forced}


def _sdk(url: str) -> dict[str, Any]:
    return {"base_url": f"{url}/v1", "api_key": UPSTREAM_KEY, "max_retries": 0}


def _chat(client: openai.OpenAI, said: str, streamed: bool) -> Seen:
    with client:
        create: Any = client.chat.completions.create
        if not streamed:
            whole = create(messages=MESSAGES, **_asked(said))
            return Seen(whole.choices[0].message.content or "", whole.model_dump())
        chunks = list(create(messages=MESSAGES, stream=True, **_asked(said)))
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    return Seen(text, [chunk.model_dump() for chunk in chunks])


def _responses(client: openai.OpenAI, said: str, streamed: bool) -> Seen:
    asked = _asked(said)
    own = {"guardrail": {"contexts": PASSAGES}}
    with client:
        create: Any = client.responses.create
        body = asked.pop("extra_body") | own
        given = {"input": QUESTION, "extra_body": body, **asked}
        if not streamed:
            whole = create(**given)
            return Seen(whole.output_text, whole.model_dump())
        events = list(create(stream=True, **given))
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    return Seen(text, [event.model_dump() for event in events])


def sdk_chat(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask with the SDK's client."""
    client = guarded(openai.OpenAI(**_sdk(ground.model)), **patient(ground))
    return _chat(client, said, streamed)


def sdk_responses(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask for a response with passages beside the messages."""
    client = guarded(openai.OpenAI(**_sdk(ground.model)), **patient(ground))
    return _responses(client, said, streamed)


def sdk_async(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask with the SDK's asynchronous client."""

    async def run() -> Seen:
        async with guarded(openai.AsyncOpenAI(**_sdk(ground.model)), **patient(ground)) as client:
            create: Any = client.chat.completions.create
            if not streamed:
                whole = await create(messages=MESSAGES, **_asked(said))
                return Seen(whole.choices[0].message.content or "", whole.model_dump())
            stream = await create(messages=MESSAGES, stream=True, **_asked(said))
            chunks = [chunk async for chunk in stream]
        text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
        return Seen(text, [chunk.model_dump() for chunk in chunks])

    return asyncio.run(run())


def proxied_chat(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask the proxy."""
    return _chat(openai.OpenAI(**_sdk(ground.proxy)), said, streamed)


def proxied_responses(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask the proxy for a response with passages beside the messages."""
    return _responses(openai.OpenAI(**_sdk(ground.proxy)), said, streamed)


MODELS = [
    Adapter("openai", "`guarded(client)`, chat completions", "openai.md", sdk_chat, BOTH),
    Adapter("openai", "`guarded(client)`, responses", "openai.md", sdk_responses, BOTH),
    Adapter("openai", "`guarded(client)`, asynchronous", "openai.md", sdk_async, BOTH),
    Adapter("openai", "`guardrail proxy`, chat completions", "proxy.md", proxied_chat, BOTH,
            "paths that it does not know are refused"),
    Adapter("openai", "`guardrail proxy`, responses", "proxy.md", proxied_responses, BOTH,
            "stored responses cannot be fetched"),
]  # fmt: skip
