"""The client itself."""

from __future__ import annotations

import os
from pathlib import Path

from guardrail_offline.h2o_client.client_collections import _Collections
from guardrail_offline.h2o_client.client_documents import _Documents
from guardrail_offline.h2o_client.client_evaluations import _Evaluations, _Evaluators
from guardrail_offline.h2o_client.client_folder import LOG, ClientFolder
from guardrail_offline.h2o_client.client_labs import _TestLabs
from guardrail_offline.h2o_client.client_models import _Models
from guardrail_offline.h2o_client.client_tests import _Tests

FOLDER_VARIABLE = "GUARDRAIL_CLIENT_FOLDER"
"""Environment variable with the folder of clients that name none."""


class TokenProvider:
    """H2O's login, which nothing here needs: what it is given is not kept."""

    def __init__(
        self,
        refresh_token: str | None = None,
        client_id: str | None = None,
        token_endpoint_url: str | None = None,
    ) -> None:
        """Forget everything."""

    def __repr__(self) -> str:
        return "TokenProvider()"


class Client:
    """H2O Eval Studio's client over a folder in place of a server.

    Args:
        host: The address of a server is taken and never asked.
        token_provider: Is taken and never asked.
        folder: Where tests, labs, hosts and evaluations are kept; None for the one that
            `GUARDRAIL_CLIENT_FOLDER` names, else a temporary one that goes with this process,
            which a warning in the log says.
        pack: Model pack.

    Raises:
        ConfigurationError: If the folder holds something else.
    """

    def __init__(
        self,
        host: str | None = None,
        token_provider: object | None = None,
        *,
        folder: str | os.PathLike[str] | None = None,
        pack: str = "embedded",
    ) -> None:
        if host is not None or token_provider is not None:
            LOG.info("the client works on a folder: no server is asked")
        named = folder if folder is not None else os.environ.get(FOLDER_VARIABLE) or None
        kept = ClientFolder(None if named is None else Path(named))
        self.folder = kept.path
        self.is_temporary = kept.is_temporary
        self.documents = _Documents(kept)
        self.evaluators = _Evaluators()
        self.tests = _Tests(kept, pack)
        self.collections = _Collections(kept)
        self.test_labs = _TestLabs(kept, pack)
        self.models = _Models(kept, pack)
        self.evaluations = _Evaluations(kept, pack)
        self.leaderboards = self.evaluations

    def __repr__(self) -> str:
        return f"Client(folder={str(self.folder)!r}{', temporary' * self.is_temporary})"
