"""One file or folder per risk; importing this package registers the built-in detectors."""

from guardrail_service.detectors import answer_relevancy_sentence as answer_relevancy_sentence
from guardrail_service.detectors import bias as bias
from guardrail_service.detectors import context_relevancy_soft as context_relevancy_soft
from guardrail_service.detectors import encoding as encoding
from guardrail_service.detectors import groundedness as groundedness
from guardrail_service.detectors import language_mismatch as language_mismatch
from guardrail_service.detectors import looping as looping
from guardrail_service.detectors import toxicity as toxicity
from guardrail_service.detectors.hallucination.detector import Hallucination as Hallucination
from guardrail_service.detectors.json_schema.detector import JsonSchema as JsonSchema
from guardrail_service.detectors.no_answer.detector import NoAnswer as NoAnswer
from guardrail_service.detectors.pii.detector import PII as PII
from guardrail_service.detectors.secrets.detector import Secrets as Secrets
from guardrail_service.detectors.text_matching.detector import TextMatching as TextMatching
