"""The events of well-known services' streams. Data: one entry for each kind of event.

An event of a kind that is listed here is read; strings in it that no pattern names, and that stand
under no key of names and codes, wait until they are known to repeat what was shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PRESENT: Any = object()
"""In `EventKind.when`: anything but null."""
Ends = Literal["", "key", "all"]


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind of event.

    Attributes:
        when: What stands at which pointers in events of this kind, and in no other before it.
        texts: Patterns of the next piece of a text; as in `Shape`.
        tool_calls: Patterns of arguments that the model wrote for tools: pieces, or a value.
        key: Pointers of what tells texts of one stream apart, such as an index.
        ends: Whether the text of this key, or every text, has been said when the event arrives.
        goes_on: Whether the event is sent even if it had nothing but its text.
        removed: Patterns of what says something nobody has read, beside the text; emptied.
        names: What the field `event` says; empty: anything.
        is_snapshot: Whether a text is all that was said so far, not what is new.
        messages: A pattern of messages, of which only names and codes are left unless they are the
            model's.
    """

    when: Mapping[str, Any] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    tool_calls: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    ends: Ends = ""
    goes_on: bool = False
    removed: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    is_snapshot: bool = False
    messages: str = ""


@dataclass(frozen=True, slots=True)
class StreamShape:
    """The events of one service.

    Attributes:
        name: Of the shape.
        kinds: Of its events; the first that fits counts.
        blank: An event with an empty text, for a stream of which none was read.
        stopped: The events that say that a filter has ended the answer. A string that begins with
            `$` is a pointer into the last event with text.
        marked: An event without text that can say that the answer is marked, for readers who know
            no comments.
        codes: Keys whose strings are names and codes, beside those of every shape.
        is_named: Whether the field `event` says the type again.
        event: What that field says otherwise.
        end: Name of the event without data behind which readers wait for nothing; they ask the
            server for the rest of a stream that ends without.
        is_told: Whether a route has to name it, because its events alone do not prove it.
        source: The published description.
    """

    name: str
    kinds: tuple[EventKind, ...]
    blank: Any
    stopped: tuple[Any, ...] = ()
    marked: Any = None
    codes: frozenset[str] = frozenset()
    is_named: bool = False
    event: str = ""
    end: str = ""
    is_told: bool = False
    source: str = ""


def _typed(name: str, *texts: str, **more: Any) -> EventKind:
    return EventKind(when={"/type": name}, texts=texts, **more)


_PART = ("/output_index", "/content_index")
_SUMMARY = ("/output_index", "/summary_index")
_ITEM = ("/output_index",)
_ECHOED = ("/response/instructions", "/response/tools", "/response/metadata", "/response/input")
_UNREAD = ("/logprobs", "/annotation", "/part/annotations", "/part/logprobs", "/obfuscation")
_IN_ITEM = ("/item/content/*/annotations", "/item/content/*/logprobs")
_IN_RESPONSE = ("/response/output/*/content/*/annotations", "/response/output/*/content/*/logprobs")
OPENAI_RESPONSES = StreamShape(
    "openai-responses",
    kinds=(
        *(
            _typed(f"response.{name}.delta", "/delta", key=key, removed=_UNREAD)
            for name, key in (
                ("output_text", _PART), ("refusal", _PART), ("reasoning_text", _PART),
                ("reasoning_summary_text", _SUMMARY),
            )
        ),
        *(
            EventKind({"/type": f"response.{name}.delta"}, tool_calls=("/delta",), key=_ITEM,
                      removed=_UNREAD)
            for name in ("function_call_arguments", "custom_tool_call_input", "mcp_call_arguments",
                         "code_interpreter_call_code")
        ),
        *(
            _typed(f"response.{name}", ends="all", removed=(*_ECHOED, *_IN_RESPONSE))
            for name in ("completed", "incomplete", "failed")
        ),
        *(
            _typed(f"response.{name}", removed=(*_ECHOED, *_IN_RESPONSE))
            for name in ("created", "in_progress", "queued")
        ),
        _typed("response.output_text.annotation.added", removed=_UNREAD),
        *(
            _typed(f"response.{tool}.{state}")
            for tool in ("web_search_call", "file_search_call", "code_interpreter_call", "mcp_call",
                         "mcp_list_tools", "image_generation_call")
            for state in ("in_progress", "searching", "interpreting", "generating", "completed",
                          "failed")
        ),
        *(
            _typed(f"response.{name}", removed=(*_UNREAD, *_IN_ITEM))
            for name in (
                "output_item.added", "output_item.done", "content_part.added", "content_part.done",
                "output_text.done", "refusal.done", "reasoning_text.done",
                "reasoning_summary_part.added", "reasoning_summary_part.done",
                "reasoning_summary_text.done", "function_call_arguments.done",
                "custom_tool_call_input.done", "mcp_call_arguments.done",
                "code_interpreter_call_code.done", "compaction.compacting",
            )
        ),
    ),
    blank={"type": "response.output_text.delta", "item_id": "", "output_index": 0,
           "content_index": 0, "delta": ""},
    stopped=(
        {"type": "response.incomplete",
         "response": {"object": "response", "status": "incomplete", "output": [], "error": None,
                      "incomplete_details": {"reason": "content_filter"}}},
    ),
    codes=frozenset(
        {"item_id", "call_id", "service_tier", "truncation", "effort", "tool_choice",
         "previous_response_id", "encrypted_content", "safety_identifier", "user", "summary",
         "prompt_cache_key", "prompt_cache_retention", "verbosity"}
    ),
    is_named=True,
    source="https://github.com/openai/openai-python/blob/"
    "main/src/openai/types/responses/response_stream_event.py",
)  # fmt: skip
_BLOCK = ("/index",)
ANTHROPIC = StreamShape(
    "anthropic",
    kinds=(
        _typed("message_start", removed=("/message/content/*/citations",)),
        _typed("content_block_start", "/content_block/text", "/content_block/thinking",
               tool_calls=("/content_block/input",), key=_BLOCK, goes_on=True,
               removed=("/content_block/citations",)),
        EventKind({"/type": "content_block_delta", "/delta/type": "citations_delta"},
                  removed=("/delta/citation",)),
        _typed("content_block_delta", "/delta/text", "/delta/thinking",
               tool_calls=("/delta/partial_json",), key=_BLOCK),
        _typed("content_block_stop", key=_BLOCK, ends="key"),
        _typed("message_delta", ends="all"),
        _typed("message_stop", ends="all"),
        EventKind({"/type": "ping"}),
    ),
    blank={"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ""}},
    stopped=(
        {"type": "content_block_stop", "index": "$/index"},
        {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_sequence": None},
         "usage": {"output_tokens": 0}},
        {"type": "message_stop"},
    ),
    codes=frozenset({"stop_reason", "stop_sequence", "service_tier", "signature"}),
    is_named=True,
    source="https://github.com/anthropics/anthropic-sdk-python/blob/"
    "main/src/anthropic/types/raw_message_stream_event.py",
)  # fmt: skip
_GROUNDS = (
    "/candidates/*/citationMetadata", "/candidates/*/groundingMetadata",
    "/candidates/*/logprobsResult",
)  # fmt: skip
_GOOGLE_TEXT = ("/candidates/*/content/parts/*/text",)
_GOOGLE_CALL = ("/candidates/*/content/parts/*/functionCall/args",)
GOOGLE = StreamShape(
    "google",
    kinds=(
        EventKind({"/candidates/0/finishReason": PRESENT}, _GOOGLE_TEXT, _GOOGLE_CALL, ends="all",
                  removed=_GROUNDS),
        EventKind({"/candidates": PRESENT}, _GOOGLE_TEXT, _GOOGLE_CALL, removed=_GROUNDS),
        EventKind({"/usageMetadata": PRESENT}),
    ),
    blank={"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "index": 0}]},
    stopped=(
        {"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "index": 0,
                         "finishReason": "SAFETY"}]},
    ),
    marked={"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "index": 0}]},
    codes=frozenset(
        {"finishReason", "modelVersion", "responseId", "category", "probability", "createTime",
         "thoughtSignature", "modality", "trafficType", "blockReason"}
    ),
    source="https://github.com/googleapis/python-genai/blob/"
    "main/google/genai/types.py",
)  # fmt: skip
_OF_BLOCK = ("/contentBlockDelta/contentBlockIndex",)
BEDROCK = StreamShape(
    "bedrock",
    kinds=(
        EventKind({"/messageStart": PRESENT}),
        EventKind({"/contentBlockStart": PRESENT}),
        EventKind(
            {"/contentBlockDelta": PRESENT},
            ("/contentBlockDelta/delta/text", "/contentBlockDelta/delta/reasoningContent/text"),
            ("/contentBlockDelta/delta/toolUse/input",),
            _OF_BLOCK,
            removed=("/contentBlockDelta/delta/citation", "/contentBlockDelta/p"),
        ),
        EventKind({"/contentBlockStop": PRESENT}, key=("/contentBlockStop/contentBlockIndex",),
                  ends="key"),
        EventKind({"/messageStop": PRESENT}, ends="all"),
        EventKind({"/metadata/usage": PRESENT}, ends="all", removed=("/metadata/trace",)),
    ),
    blank={"contentBlockDelta": {"delta": {"text": ""}, "contentBlockIndex": 0}},
    stopped=(
        {"contentBlockStop": {"contentBlockIndex": "$/contentBlockDelta/contentBlockIndex"}},
        {"messageStop": {"stopReason": "guardrail_intervened"}},
    ),
    codes=frozenset({"stopReason", "toolUseId", "signature", "p"}),
    source="https://github.com/boto/botocore/blob/"
    "develop/botocore/data/bedrock-runtime/2023-09-30/service-2.json",
)  # fmt: skip
COHERE = StreamShape(
    "cohere",
    kinds=(
        _typed("message-start"),
        _typed("content-start", "/delta/message/content/text", "/delta/message/content/thinking",
               key=_BLOCK, goes_on=True),
        _typed("content-delta", "/delta/message/content/text", "/delta/message/content/thinking",
               key=_BLOCK, removed=("/logprobs",)),
        _typed("content-end", key=_BLOCK, ends="key"),
        _typed("tool-plan-delta", "/delta/message/tool_plan"),
        EventKind({"/type": "tool-call-start"}, key=_BLOCK, goes_on=True,
                  tool_calls=("/delta/message/tool_calls/function/arguments",)),
        EventKind({"/type": "tool-call-delta"}, key=_BLOCK,
                  tool_calls=("/delta/message/tool_calls/function/arguments",)),
        _typed("tool-call-end", key=_BLOCK, ends="key"),
        _typed("citation-start", removed=("/delta/message/citations",)),
        _typed("citation-end"),
        _typed("message-end", ends="all"),
    ),
    blank={"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": ""}}}},
    stopped=(
        {"type": "content-end", "index": "$/index"},
        {"type": "message-end", "delta": {"finish_reason": "ERROR"}},
    ),
    codes=frozenset({"finish_reason"}),
    is_named=True,
    source="https://github.com/cohere-ai/cohere-python/blob/"
    "main/src/cohere/v2/types/v2chat_stream_response.py",
)  # fmt: skip
OLLAMA_CHAT = StreamShape(
    "ollama-chat",
    kinds=(
        EventKind({"/message": PRESENT, "/done": True}, ("/message/content", "/message/thinking"),
                  ("/message/tool_calls/*/function/arguments",), ends="all"),
        EventKind({"/message": PRESENT, "/done": False}, ("/message/content", "/message/thinking"),
                  ("/message/tool_calls/*/function/arguments",)),
    ),
    blank={"message": {"role": "assistant", "content": ""}, "done": False},
    stopped=(
        {"model": "$/model", "created_at": "$/created_at",
         "message": {"role": "assistant", "content": ""},
         "done": True, "done_reason": "content_filter"},
    ),
    marked={"message": {"role": "assistant", "content": ""}, "done": False},
    codes=frozenset({"done_reason"}),
    source="https://github.com/ollama/ollama/blob/"
    "main/api/types.go",
)  # fmt: skip
OLLAMA_GENERATE = StreamShape(
    "ollama-generate",
    kinds=(
        EventKind({"/response": PRESENT, "/done": True}, ("/response", "/thinking"), ends="all",
                  removed=("/context",)),
        EventKind({"/response": PRESENT, "/done": False}, ("/response", "/thinking")),
    ),
    blank={"response": "", "done": False},
    stopped=(
        {"model": "$/model", "created_at": "$/created_at", "response": "", "done": True,
         "done_reason": "content_filter"},
    ),
    marked={"response": "", "done": False},
    codes=frozenset({"done_reason"}),
    source="https://github.com/ollama/ollama/blob/"
    "main/api/types.go",
)  # fmt: skip
_ID = ("/id",)
VERCEL = StreamShape(
    "vercel",
    kinds=(
        *(_typed(name) for name in ("start", "start-step", "tool-input-start")),
        *(_typed(name, key=_ID) for name in ("text-start", "reasoning-start")),
        *(_typed(name, "/delta", key=_ID) for name in ("text-delta", "reasoning-delta")),
        *(_typed(name, key=_ID, ends="key", removed=("/citations",))
          for name in ("text-end", "reasoning-end")),
        EventKind({"/type": "tool-input-delta"}, tool_calls=("/inputTextDelta",),
                  key=("/toolCallId",)),
        EventKind({"/type": "tool-input-available"}, tool_calls=("/input",),
                  key=("/toolCallId",), ends="key"),
        *(_typed(name, ends="all") for name in ("finish-step", "finish", "abort")),
    ),
    blank={"type": "text-delta", "id": "0", "delta": ""},
    stopped=(
        {"type": "text-end", "id": "$/id"},
        {"type": "finish", "finishReason": "content-filter"},
    ),
    codes=frozenset({"messageId", "toolCallId", "toolName", "finishReason"}),
    source="https://github.com/vercel/ai/blob/"
    "main/packages/ai/src/ui-message-stream/ui-message-chunks.ts",
)  # fmt: skip
VERCEL_PARTS = StreamShape(
    "vercel-parts",
    kinds=(
        *(EventKind({"/part": part}, ("/value",), key=("/part",)) for part in ("0", "g")),
        *(EventKind({"/part": part}) for part in ("b", "f", "j")),
        EventKind({"/part": "c"}, tool_calls=("/value/argsTextDelta",), key=("/value/toolCallId",)),
        EventKind({"/part": "9"}, tool_calls=("/value/args",), key=("/value/toolCallId",)),
        *(EventKind({"/part": part}, ends="all") for part in ("d", "e")),
    ),
    blank={"part": "0", "value": ""},
    marked={"part": "8", "value": [{}]},
    stopped=({"part": "d", "value": {"finishReason": "content-filter"}},),
    codes=frozenset({"part", "messageId", "toolCallId", "toolName", "finishReason", "signature"}),
    source="https://github.com/vercel/ai/blob/"
    "a8e19f010ce42ef767b0c78a2f697c2f5ec5574c/packages/ui-utils/src/data-stream-parts.ts",
)  # fmt: skip
_DATA = frozenset({"data"})
_CHUNK_CODES = ("/response_metadata", "/additional_kwargs")
LANGSERVE = StreamShape(
    "langserve",
    kinds=(
        EventKind({"/run_id": PRESENT}, names=frozenset({"metadata"})),
        EventKind(
            {},
            ("", "/content", "/content/*/text", "/answer", "/output"),
            ("/tool_call_chunks/*/args",),
            names=_DATA,
            removed=(*_CHUNK_CODES, "/tool_calls", "/invalid_tool_calls"),
        ),
    ),
    blank="",
    event="data",
    end="end",
    codes=frozenset({"run_id", "chunk_position"}),
    source="https://github.com/langchain-ai/langserve/blob/main/langserve/api_handler.py",
)
LLAMAINDEX = StreamShape(
    "llamaindex",
    kinds=(
        EventKind(
            {"/qualified_name": PRESENT, "/value/delta": PRESENT},
            ("/value/delta", "/value/thinking_delta"),
            removed=("/value/response", "/value/raw", "/value/tool_calls"),
        ),
    ),
    blank={"value": {"delta": ""}, "qualified_name": "AgentStream"},
    codes=frozenset({"qualified_name", "current_agent_name", "types"}),
    source="https://github.com/run-llama/llama_index/blob/"
    "main/llama-index-core/llama_index/core/agent/workflow/workflow_events.py",
)
_OF_MODEL = frozenset({"messages/partial", "messages/complete"})
_BESIDE = ("additional_kwargs", "response_metadata", "tool_call_chunks", "invalid_tool_calls")
_CALLS = "tool_calls/*/args"
LANGGRAPH = StreamShape(
    "langgraph",
    kinds=(
        EventKind({"/run_id": PRESENT}, names=frozenset({"metadata"})),
        EventKind(names=frozenset({"messages/metadata"}), removed=("/*",)),
        EventKind(
            {}, ("/*/content", "/*/content/*/text"), (f"/*/{_CALLS}",), names=_OF_MODEL,
            removed=tuple(f"/*/{key}" for key in _BESIDE), messages="/*", is_snapshot=True,
        ),
        EventKind(
            {"/messages": PRESENT}, ("/messages/*/content", "/messages/*/content/*/text"),
            (f"/messages/*/{_CALLS}",), names=frozenset({"values"}),
            removed=tuple(f"/messages/*/{key}" for key in _BESIDE), messages="/messages/*",
            is_snapshot=True,
        ),
        EventKind(
            {}, ("/0/content", "/0/content/*/text"), ("/0/tool_call_chunks/*/args",), ("/0/id",),
            names=frozenset({"messages"}), messages="/0",
            removed=("/1", "/0/additional_kwargs", "/0/response_metadata", "/0/tool_calls",
                     "/0/invalid_tool_calls"),
        ),
    ),
    blank=[{"type": "ai", "content": ""}],
    event="messages/partial",
    end="end",
    codes=frozenset({"run_id", "thread_id", "tool_call_id", "status", "chunk_position"}),
    is_told=True,
    source="https://reference.langchain.com/javascript/langchain-langgraph-sdk/index/"
    "MessagesStreamEvent",
)  # fmt: skip

STREAM_SHAPES: Mapping[str, StreamShape] = {
    shape.name: shape
    for shape in (
        OPENAI_RESPONSES, ANTHROPIC, GOOGLE, BEDROCK, COHERE, OLLAMA_CHAT, OLLAMA_GENERATE,
        VERCEL, VERCEL_PARTS, LANGSERVE, LLAMAINDEX, LANGGRAPH,
    )
}  # fmt: skip
"""Tried in this order where a route declares none and an event is no chunk of OpenAI's chat."""
