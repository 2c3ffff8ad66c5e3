"""Does the answer leak personal data?"""

from guardrail_service.detectors.pii.detector import PII as PII
