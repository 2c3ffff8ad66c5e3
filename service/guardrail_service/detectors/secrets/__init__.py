"""Does the answer leak keys, tokens or passwords?"""

from guardrail_service.detectors.secrets.detector import Secrets as Secrets
