"""Flask: an extension that puts the WSGI middleware around an application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guardrail_client.client import GuardrailClient
from guardrail_client.middleware.route_options import Route, routes_of
from guardrail_client.middleware.wsgi import GuardrailWSGI


class GuardrailExtension:
    """Guards routes of a Flask application.

    Args:
        app: The application; None if `init_app` is called later.
        routes: Which endpoints, and how; a text is a path whose replies have an `answer`.
        url: Address of the service; None takes the application's GUARDRAIL_URL, else that of the
            environment.
        client: Asks the guard; takes the place of `url`.
    """

    def __init__(
        self,
        app: Any = None,
        routes: Sequence[Route | str] = (),
        url: str | None = None,
        client: GuardrailClient | None = None,
    ) -> None:
        self._routes, self._url, self._client = routes, url, client
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Any) -> None:
        """Guard the routes of an application.

        Raises:
            ValueError: If there is none: the application would only seem to be guarded.
        """
        if not self._routes:
            raise ValueError("routes: found none, expected the paths to guard")
        client = self._client or GuardrailClient(self._url or app.config.get("GUARDRAIL_URL"))
        app.wsgi_app = GuardrailWSGI(app.wsgi_app, client, routes_of(self._routes))
        app.extensions["guardrail"] = self
