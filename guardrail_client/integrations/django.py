"""Django: the WSGI or ASGI application of a project, with guarded routes."""

from __future__ import annotations

from typing import Any

from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.client import GuardrailClient
from guardrail_client.integrations import needs
from guardrail_client.middleware.asgi import GuardrailMiddleware
from guardrail_client.middleware.route_options import Route, routes_of
from guardrail_client.middleware.wsgi import GuardrailWSGI

try:
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.core.exceptions import ImproperlyConfigured
    from django.core.wsgi import get_wsgi_application
except ImportError as error:
    raise needs("django", error) from error


def guarded_wsgi_application() -> GuardrailWSGI:
    """Return the project's WSGI application, its routes guarded as `settings.GUARDRAIL` says.

    Raises:
        ImproperlyConfigured: If the settings name no route.
    """
    application = get_wsgi_application()
    url, routes = _settings()
    return GuardrailWSGI(application, GuardrailClient(url), routes)


def guarded_asgi_application() -> GuardrailMiddleware:
    """Return the project's ASGI application, its routes guarded as `settings.GUARDRAIL` says.

    Raises:
        ImproperlyConfigured: If the settings name no route.
    """
    application = get_asgi_application()
    url, routes = _settings()
    return GuardrailMiddleware(application, AsyncGuardrailClient(url), routes)


def _settings() -> tuple[str | None, list[Route]]:
    given: Any = getattr(settings, "GUARDRAIL", None)
    if not isinstance(given, dict) or not given.get("routes"):
        raise ImproperlyConfigured(
            'GUARDRAIL: found no routes, expected {"url": ..., "routes": ["/ask"]}'
        )
    if unknown := set(given) - {"url", "routes"}:
        raise ImproperlyConfigured(f"GUARDRAIL: found {sorted(unknown)}, expected url and routes")
    return given.get("url"), routes_of(given["routes"])
