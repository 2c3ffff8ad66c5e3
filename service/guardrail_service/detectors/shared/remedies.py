"""Rules for a system prompt that several detectors have in common, in the order they are shown."""

from __future__ import annotations

from guardrail_service.detectors.registry import Remedy

STAY_WITH_PASSAGES = Remedy(
    "Staying with the passages",
    (
        "State only what the passages say. Leave out what you know from elsewhere.",
        "Copy numbers, names and dates from the passages character by character.",
        "If passages contradict each other, say so and give both.",
        "If the passages do not hold the answer, say that, and say what is missing.",
    ),
)
ANSWER_THE_QUESTION = Remedy(
    "Answering the question",
    (
        "Answer the question that was asked before adding anything else.",
        "If a question can mean two things, ask which one is meant.",
        "Decline politely where a question is outside the documents' subject.",
    ),
)
KEEP_THE_FORM = Remedy(
    "Language and form",
    (
        "Answer in the language of the question unless asked for another.",
        "Say each thing once.",
        "Keep to the requested format, and add nothing around it.",
    ),
)
KEEP_SAFE = Remedy(
    "Safety",
    (
        "Keep a respectful tone whatever the tone of the question.",
        "Attribute nothing to people because of a group they belong to.",
        "Do not repeat personal data, passwords or keys, in whatever encoding.",
    ),
)
SHARED = (STAY_WITH_PASSAGES, ANSWER_THE_QUESTION, KEEP_THE_FORM, KEEP_SAFE)
