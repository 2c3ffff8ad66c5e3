"""Does the answer satisfy a condition on its text?"""

from guardrail_service.detectors.text_matching.detector import TextMatching as TextMatching
