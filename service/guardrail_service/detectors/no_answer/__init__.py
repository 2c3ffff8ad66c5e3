"""Does the answer abstain?"""

from guardrail_service.detectors.no_answer.detector import NoAnswer as NoAnswer
