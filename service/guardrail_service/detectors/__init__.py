"""One file or folder per risk; importing this package registers the built-in detectors."""

from guardrail_service.detectors import answer_relevancy_sentence as answer_relevancy_sentence
from guardrail_service.detectors import bias as bias
from guardrail_service.detectors import context_relevancy_soft as context_relevancy_soft
from guardrail_service.detectors import encoding as encoding
from guardrail_service.detectors import groundedness as groundedness
from guardrail_service.detectors import hallucination as hallucination
from guardrail_service.detectors import json_schema as json_schema
from guardrail_service.detectors import language_mismatch as language_mismatch
from guardrail_service.detectors import looping as looping
from guardrail_service.detectors import no_answer as no_answer
from guardrail_service.detectors import pii as pii
from guardrail_service.detectors import secrets as secrets
from guardrail_service.detectors import text_matching as text_matching
from guardrail_service.detectors import toxicity as toxicity
