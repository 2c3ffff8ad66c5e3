"""Names the place of the answer in the replies of well-known services. Data only.

A pattern is a JSON pointer. `*` stands for any index or key, and each match is a text of its own;
`[]` does too, and its matches are parts of one text, which a reader sees joined.

Strings of a document that no pattern names are read as texts of their own, unless the key they
stand under is known to carry none. So a field that a service adds later is checked, not passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

IDENTIFIERS = frozenset(
    {"id", "object", "type", "model", "role", "name", "status", "index", "created_at", "provider"}
)
"""Keys under which every shape has names and codes, never sentences."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The places of text that a reader may be shown, in documents of one kind.

    Attributes:
        name: Of the shape.
        marks: Pointers of which each must lead somewhere, or the document is of another shape.
        texts: Patterns of the texts.
        tool_calls: Patterns of arguments that the model wrote for tools.
        repeats: Patterns of what says the same again, letter by letter or as a whole; null where a
            text was changed, or an empty list.
        objects: Keys of these under which clients expect an object: an empty one, not null.
        codes: Keys whose strings are names and codes, beside `IDENTIFIERS`.
        labels: Keys whose strings are labels of a few words, such as names of files.
        phrases: What servers always say in the same words, beside an answer.
        when_stopped: Patterns, and what stands there when a text of the same `*` was stopped.
        asked: Finds the question in the request.
        source: The published description.
    """

    name: str
    marks: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    tool_calls: tuple[str, ...] = ()
    repeats: tuple[str, ...] = ()
    objects: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    phrases: frozenset[str] = frozenset()
    when_stopped: Mapping[str, Any] = field(default_factory=dict)
    asked: Callable[[Any], str | None] = lambda _request: None
    source: str = ""


def last_user_message(*names: str) -> Callable[[Any], str | None]:
    """Return a function that finds the last thing a user said in a list of messages.

    Args:
        *names: Keys of the request under which the list, or the question itself, may stand.
    """

    def find(request: Any) -> str | None:
        if not isinstance(request, dict):
            return None
        for name in names:
            found = request.get(name)
            if isinstance(found, str):
                return found
            messages = found if isinstance(found, list) else []
            asked = [m for m in messages if isinstance(m, dict) and m.get("role") in _ASKING]
            if asked:
                return _said(asked[-1])
        return None

    return find


_ASKING = ("user", "USER", "human", None)


def _said(message: Mapping[str, Any]) -> str | None:
    content = message.get("content") or message.get("parts") or message.get("text")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part if isinstance(part, str) else part.get("text") for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


OPENAI_CHAT = Shape(
    "openai",
    marks=("/choices",),
    texts=(
        "/choices/*/message/content",
        "/choices/*/message/content/[]/text",
        "/choices/*/message/content/[]/refusal",
        "/choices/*/message/refusal",
        "/choices/*/message/reasoning_content",
        "/choices/*/message/reasoning",
        "/choices/*/message/audio/transcript",
        "/choices/*/text",
    ),
    tool_calls=(
        "/choices/*/message/tool_calls/*/function/arguments",
        "/choices/*/message/function_call/arguments",
    ),
    repeats=("/choices/*/logprobs", "/choices/*/message/audio", "/choices/*/message/annotations"),
    codes=frozenset(
        {"finish_reason", "system_fingerprint", "service_tier", "native_finish_reason"}
    ),
    when_stopped={"/choices/*/finish_reason": "content_filter"},
    asked=last_user_message("messages", "prompt"),
    source="https://github.com/openai/openai-python/blob/"
    "main/src/openai/types/chat/chat_completion.py",
)
OPENAI_RESPONSES = Shape(
    "openai-responses",
    marks=("/output",),
    texts=(
        "/output/*/content/[]/text",
        "/output/*/content/[]/refusal",
        "/output/*/summary/[]/text",
        "/output_text",
    ),
    tool_calls=("/output/*/arguments", "/output/*/input"),
    repeats=("/output/*/content/*/logprobs", "/output/*/content/*/annotations"),
    codes=frozenset(
        {"call_id", "service_tier", "truncation", "effort", "tool_choice", "previous_response_id"}
    ),
    when_stopped={"/status": "incomplete", "/incomplete_details": {"reason": "content_filter"}},
    asked=last_user_message("input"),
    source="https://github.com/openai/openai-python/blob/"
    "main/src/openai/types/responses/response.py",
)
ANTHROPIC = Shape(
    "anthropic",
    marks=("/content", "/stop_reason"),
    texts=("/content/[]/text", "/content/[]/thinking"),
    tool_calls=("/content/*/input",),
    repeats=("/content/*/citations",),
    codes=frozenset({"stop_reason", "stop_sequence", "service_tier", "signature"}),
    when_stopped={"/stop_reason": "refusal"},
    asked=last_user_message("messages"),
    source="https://github.com/anthropics/anthropic-sdk-python/blob/"
    "main/src/anthropic/types/message.py",
)
GOOGLE = Shape(
    "google",
    marks=("/candidates",),
    texts=("/candidates/*/content/parts/[]/text",),
    tool_calls=("/candidates/*/content/parts/*/functionCall/args",),
    repeats=(
        "/candidates/*/citationMetadata",
        "/candidates/*/groundingMetadata",
        "/candidates/*/logprobsResult",
    ),
    codes=frozenset(
        {"finishReason", "modelVersion", "responseId", "category", "probability", "createTime"}
    ),
    when_stopped={"/candidates/*/finishReason": "SAFETY"},
    asked=last_user_message("contents"),
    source="https://github.com/googleapis/python-genai/blob/main/google/genai/types.py",
)
BEDROCK = Shape(
    "bedrock",
    marks=("/output/message",),
    texts=(
        "/output/message/content/[]/text",
        "/output/message/content/[]/reasoningContent/reasoningText/text",
    ),
    tool_calls=("/output/message/content/*/toolUse/input",),
    codes=frozenset({"stopReason", "toolUseId", "latency", "signature"}),
    when_stopped={"/stopReason": "guardrail_intervened"},
    asked=last_user_message("messages"),
    source="https://github.com/boto/botocore/blob/"
    "develop/botocore/data/bedrock-runtime/2023-09-30/service-2.json",
)
COHERE = Shape(
    "cohere",
    marks=("/message/content", "/finish_reason"),
    texts=(
        "/message/content/[]/text",
        "/message/content/[]/thinking",
        "/message/tool_plan",
    ),
    tool_calls=("/message/tool_calls/*/function/arguments",),
    repeats=("/message/citations", "/logprobs"),
    codes=frozenset({"finish_reason"}),
    when_stopped={"/finish_reason": "ERROR"},
    asked=last_user_message("messages", "message"),
    source="https://github.com/cohere-ai/cohere-python/blob/"
    "main/src/cohere/v2/types/v2chat_response.py",
)
OLLAMA_CHAT = Shape(
    "ollama-chat",
    marks=("/message", "/done"),
    texts=("/message/content", "/message/thinking"),
    tool_calls=("/message/tool_calls/*/function/arguments",),
    codes=frozenset({"done_reason"}),
    when_stopped={"/done_reason": "content_filter"},
    asked=last_user_message("messages"),
    source="https://github.com/ollama/ollama/blob/main/api/types.go",
)
OLLAMA_GENERATE = Shape(
    "ollama-generate",
    marks=("/response", "/done"),
    texts=("/response", "/thinking"),
    codes=frozenset({"done_reason"}),
    when_stopped={"/done_reason": "content_filter", "/context": []},
    asked=last_user_message("prompt"),
    source="https://github.com/ollama/ollama/blob/main/api/types.go",
)
LANGSERVE = Shape(
    "langserve",
    marks=("/output", "/metadata/run_id"),
    texts=("/output", "/output/content", "/output/content/[]/text", "/output/answer"),
    tool_calls=("/output/tool_calls/*/args", "/output/invalid_tool_calls/*/args"),
    repeats=("/output/additional_kwargs",),
    objects=frozenset({"additional_kwargs"}),
    codes=frozenset({"run_id", "finish_reason", "model_name", "system_fingerprint"}),
    asked=last_user_message("input"),
    source="https://github.com/langchain-ai/langserve/blob/main/langserve/api_handler.py",
)
LLAMAINDEX = Shape(
    "llamaindex",
    marks=("/response", "/source_nodes"),
    texts=("/response",),
    repeats=("/metadata",),
    objects=frozenset({"metadata"}),
    codes=frozenset({"id_", "node_id", "hash", "class_name", "mimetype"}),
    labels=frozenset({"file_path", "file_name"}),
    phrases=frozenset({"{key}: {value}", "{metadata_str}\n\n{content}"}),
    asked=last_user_message("messages", "query"),
    source="https://github.com/run-llama/llama_index/blob/"
    "main/llama-index-core/llama_index/core/base/response/schema.py",
)
ANSWER = Shape("answer", marks=("/answer",), texts=("/answer",))
"""The shape of a route that declares none: the answer stands under `answer`."""

SHAPES: Mapping[str, Shape] = {
    shape.name: shape
    for shape in (
        OPENAI_CHAT,
        OPENAI_RESPONSES,
        ANTHROPIC,
        GOOGLE,
        BEDROCK,
        COHERE,
        OLLAMA_CHAT,
        OLLAMA_GENERATE,
        LANGSERVE,
        LLAMAINDEX,
    )
}
"""Tried in this order where a route declares no shape of its own."""

Framing = Literal["json", "events", "lines", "parts", "text", "unchecked"]
MEDIA_TYPES: Mapping[str, Framing] = {
    "application/json": "json",
    "text/json": "json",
    "text/event-stream": "events",
    "application/x-ndjson": "lines",
    "application/ndjson": "lines",
    "application/jsonl": "lines",
    "application/jsonlines": "lines",
    "application/x-jsonlines": "lines",
    "application/stream+json": "lines",
    "text/plain": "text",
    "text/markdown": "text",
}
"""How a body of a media type is read. A body of any other type cannot be checked."""
