"""Is the answer JSON that satisfies a schema?"""

from guardrail_service.detectors.json_schema.detector import JsonSchema as JsonSchema
