"""Did the generation go into a loop?"""

from guardrail_service.detectors.looping.detector import Looping as Looping
