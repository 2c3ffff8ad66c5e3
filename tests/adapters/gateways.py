"""Others' clients and gateways that speak to the service in a dialect."""

from __future__ import annotations

from typing import Any

import openai

from tests.adapters.adapter import PASSAGES, QUESTION, SAID, Adapter, Seen
from tests.adapters.conftest import Ground
from tests.vendors.senders import KEY

CONTEXT = "".join(f"<passage>{text}</passage>" for text in PASSAGES)
MESSAGES: Any = [
    {"role": "system", "content": f"Answer from the passages.\n{CONTEXT}"},
    {"role": "user", "content": QUESTION},
]


def litellm_settings(guard: str, key: str) -> dict[str, Any]:
    """Return what docs/integrations/litellm.md shows, with models that say what their name says."""
    models = [
        {
            "model_name": name,
            "litellm_params": {"model": "openai/gpt-4o", "api_key": "x", "mock_response": said},
        }
        for name, said in SAID.items()
    ]
    guardrail = {
        "guardrail": "generic_guardrail_api",
        "mode": ["pre_call", "post_call"],
        "api_base": guard,
        "api_key": key,
        "default_on": True,
        "streaming_transform_mode": "incremental_diff",
        "streaming_end_of_stream_only": True,
    }
    named = {"guardrail_name": "rag-guardrail", "litellm_params": guardrail}
    return {"model_list": models, "guardrails": [named]}


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


GATEWAYS = [
    Adapter(
        "litellm",
        "generic_guardrail_api of the proxy",
        "litellm.md",
        litellm,
        (False, True),
        "a stream leaves when it is judged whole; passages must stand in the messages",
    ),
    Adapter(
        "openai",
        "moderations",
        "openai-moderations.md",
        moderations,
        lost="no place for passages but `extra_body`; eight of thirteen categories are null",
    ),
]
