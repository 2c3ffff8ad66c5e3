"""Guards what an application sends: ASGI and WSGI middleware, and a decorator for functions."""

from guardrail_client.middleware.asgi import GuardrailMiddleware
from guardrail_client.middleware.decorator import guarded
from guardrail_client.middleware.exchange import Exchange
from guardrail_client.middleware.metrics import AnswerMetrics
from guardrail_client.middleware.outcome import AnswerOutcome
from guardrail_client.middleware.route_options import FALLBACK, MARK, OUTAGE, Route
from guardrail_client.middleware.shapes import SHAPES, Shape
from guardrail_client.middleware.wsgi import GuardrailWSGI

__all__ = [
    "FALLBACK",
    "MARK",
    "OUTAGE",
    "SHAPES",
    "AnswerMetrics",
    "AnswerOutcome",
    "Exchange",
    "GuardrailMiddleware",
    "GuardrailWSGI",
    "Route",
    "Shape",
    "guarded",
]
