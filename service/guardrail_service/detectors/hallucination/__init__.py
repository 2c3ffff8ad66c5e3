"""Is every claim of the answer supported by the passages?"""

from guardrail_service.detectors.hallucination.detector import Hallucination as Hallucination
