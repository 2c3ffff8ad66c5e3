"""Model hosts: who is asked a test's questions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from guardrail_offline.datasets.cases import Case, Lab, Model
from guardrail_offline.datasets.labs import lab_of_text
from guardrail_offline.h2o_client.client_collections import _Collections
from guardrail_offline.h2o_client.client_evaluations import (
    AskedHost,
    Evaluation,
    EvaluatorsGiven,
    begin,
)
from guardrail_offline.h2o_client.client_folder import LOG, ClientFolder, KeptObjects, moment
from guardrail_offline.h2o_client.client_generation import with_passages
from guardrail_offline.h2o_client.client_tests import Test
from guardrail_offline.hosts.endpoint import Endpoint
from guardrail_offline.hosts.opening import parse_address
from guardrail_offline.hosts.targets import SEARCHING
from guardrail_service.errors import ConfigurationError

_SECRET = ("token", "secret", "passw", "authorization", "credential")
_NOT_SECRET = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"})
_LISTS: Mapping[str, tuple[str, str, str]] = {
    "openai": ("/models", "data", "id"),
    "llamacpp": ("/v1/models", "data", "id"),
    "ollama": ("/api/tags", "models", "name"),
}
"""Where a kind of host lists its models: path, field of the list, field of a name."""


@dataclass(frozen=True)
class ModelHost:
    """A host of models. Made by `Client().models`; its key is in an environment variable only.

    Attributes:
        key: Of the host in the client's folder.
        name: What to call it.
        description: Free text.
        url: Its address, as `guardrail ask --target` takes it.
        is_rag: Whether it finds passages by itself; then it is given none.
        api_key_env: Environment variable with its key, if it needs one.
        model_parameters: Fields of every request.
    """

    key: str
    name: str
    description: str
    url: str
    is_rag: bool
    api_key_env: str | None
    model_parameters: Mapping[str, Any]
    pack: str = field(repr=False, compare=False)
    _known: tuple[str, ...] = field(repr=False, compare=False)
    _folder: ClientFolder = field(repr=False, compare=False)
    create_time: datetime | None = field(default=None, compare=False)
    update_time: datetime | None = field(default=None, compare=False)

    @property
    def base_models(self) -> list[str]:
        """Return the models it serves."""
        return self.list_base_models()

    def list_base_models(self) -> list[str]:
        """Return the models it serves: those that were named, else those that it lists.

        Raises:
            ConfigurationError: If none were named and hosts of this kind list none.
            HostError: If it does not answer.
        """
        if self._known:
            return [*self._known]
        found = parse_address(self.url, option="model")
        if found.kind in ("python", "template"):
            return [found.kind]
        if found.kind not in _LISTS:
            expected = "base_models, since hosts of this kind list none"
            raise ConfigurationError(f"model {self.key}", "no model", expected)
        path, records, name = _LISTS[found.kind]
        endpoint = Endpoint(found.place, self._variable())
        try:
            value = endpoint.get(path).value
        finally:
            endpoint.close()
        rows = value.get(records) if isinstance(value, Mapping) else None
        return [
            str(row[name])
            for row in (rows if isinstance(rows, list) else ())
            if isinstance(row, Mapping) and name in row
        ]

    def evaluate(
        self,
        name: str,
        evaluators: EvaluatorsGiven,
        test_suites: Test | Sequence[Test],
        description: str | None = None,
        base_models: Sequence[str] | None = None,
        existing_collection: str | None = None,
        model_parameters: Mapping[str, Any] | str | None = None,
        use_cache: bool = True,
    ) -> Evaluation:
        """Ask every question of every model, judge the answers, and return what becomes of it.

        Args:
            name: Of the evaluation.
            evaluators: One or several.
            test_suites: One test or several.
            description: Of the evaluation.
            base_models: Models of this host; its first one if none are named.
            existing_collection: A collection of the client's folder, whose passages are given.
            model_parameters: Fields of every request, over the host's own.
            use_cache: Has no effect: an evaluation asks everything once and keeps the answers.

        Raises:
            ConfigurationError: If something named here does not exist, or there is no question.
        """
        tests = [test_suites] if isinstance(test_suites, Test) else list(test_suites)
        names = [str(one) for one in base_models or self.list_base_models()[:1]]
        if not names:
            raise ConfigurationError(f"model {self.key}", "no model", "base_models")
        models = {f"model-{number}": one for number, one in enumerate(names, start=1)}
        cases = [case for test in tests for case in test.cases]
        if not cases:
            raise ConfigurationError("test_suites", "no test case", "at least one")
        if existing_collection is not None:
            cases = with_passages(cases, _Collections(self._folder).files(existing_collection))
        lab = Lab(
            tuple(_asked_of(case, key, len(models)) for key in models for case in cases),
            tuple(
                Model(key, one, one, "rag" if self.is_rag else "llm") for key, one in models.items()
            ),
            name,
            description or "",
        )
        settings = {**self.model_parameters, **_parameters(model_parameters)}
        gives = not self.is_rag or existing_collection is not None
        host = AskedHost(self.url, models, self._variable(), settings, gives)
        return begin(self._folder, self.pack, name, lab, evaluators, None, host, description or "")

    def create_leaderboard(
        self,
        name: str,
        evaluator: EvaluatorsGiven,
        test_suite: Test | Sequence[Test],
        description: str | None = None,
        base_models: Sequence[str] | None = None,
        use_cache: bool = True,
        existing_collection: str | None = None,
    ) -> Evaluation:
        """Return `evaluate` of one evaluator."""
        return self.evaluate(
            name,
            evaluator,
            test_suite,
            description,
            base_models,
            existing_collection,
            None,
            use_cache,
        )

    def create_leaderboard_from_testlab(
        self,
        name: str,
        evaluator: EvaluatorsGiven,
        test_lab: str,
        description: str | None = None,
    ) -> Evaluation:
        """Judge answers that a test lab has already; the host is not asked.

        Args:
            name: Of the evaluation.
            evaluator: One or several.
            test_lab: The lab in H2O's JSON.
            description: Of the evaluation.

        Raises:
            ConfigurationError: If it is no lab.
        """
        lab = lab_of_text("test lab", test_lab)
        return begin(self._folder, self.pack, name, lab, evaluator, description=description or "")

    def delete(self) -> None:
        """Take the host away; evaluations that asked it stay."""
        self._folder.delete(self.key)

    def _variable(self) -> str | None:
        """Return the variable with the key, if it is set: many hosts take none."""
        name = self.api_key_env
        return name if name and os.environ.get(name) else None


@dataclass(frozen=True)
class _Models(KeptObjects[ModelHost]):
    """The hosts of a client."""

    _kind = "model"

    def create_model(
        self,
        name: str,
        address: str,
        description: str = "",
        is_rag: bool | None = None,
        api_key_env: str | None = None,
        base_models: Sequence[str] = (),
        model_parameters: Mapping[str, Any] | str | None = None,
    ) -> ModelHost:
        """Keep a host of any kind and return it.

        Args:
            name: What to call it.
            address: As `guardrail ask --target` takes it, with the kind in front where it is not
                OpenAI-compatible.
            description: Free text.
            is_rag: Whether it finds passages by itself; None for what its kind does.
            api_key_env: Environment variable with its key. The key itself is never kept.
            base_models: Its models; deployments, assistants and model ids have to be named.
            model_parameters: Fields of every request, an object or its JSON.

        Raises:
            ConfigurationError: If the address is none or holds a password, or a parameter a key.
        """
        kind = parse_address(address, option="url").kind
        if "@" in urlsplit(address.partition("+")[2] or address).netloc:
            raise ConfigurationError("url", "a user name or password", "a key in the environment")
        record = {
            "name": name,
            "description": description or "",
            "url": address,
            "is_rag": kind in SEARCHING if is_rag is None else is_rag,
            "api_key_env": api_key_env,
            "base_models": [str(one) for one in base_models],
            "model_parameters": _parameters(model_parameters),
        }
        return self.get(self._folder.add("model", record)["key"])

    def create_h2ogpte_model(
        self,
        name: str,
        is_rag: bool,
        description: str,
        url: str,
        api_key: str = "",
        model_parameters: Mapping[str, Any] | str | None = None,
    ) -> ModelHost:
        """Keep an Enterprise h2oGPTe, asked over its OpenAI-compatible API."""
        key = _variable("api_key", api_key, "H2OGPTE_API_KEY")
        address = _under(url, "/openai_api/v1")
        return self.create_model(name, address, description, is_rag, key, (), model_parameters)

    def create_h2ogpt_model(
        self,
        name: str,
        description: str,
        url: str,
        api_key: str = "",
        model_parameters: Mapping[str, Any] | str | None = None,
    ) -> ModelHost:
        """Keep an h2oGPT, asked over its OpenAI-compatible API."""
        key = _variable("api_key", api_key, "H2OGPT_API_KEY")
        return self._compatible(name, url, description, key, model_parameters)

    def create_h2o_llmops_model(
        self,
        name: str,
        description: str,
        url: str,
        api_key: str = "",
        model_parameters: Mapping[str, Any] | str | None = None,
    ) -> ModelHost:
        """Keep a deployment of H2O LLMOps."""
        key = _variable("api_key", api_key, "H2O_LLMOPS_API_KEY")
        return self._compatible(name, url, description, key, model_parameters)

    def _compatible(
        self,
        name: str,
        url: str,
        description: str,
        key: str,
        model_parameters: Mapping[str, Any] | str | None,
    ) -> ModelHost:
        """Keep a host that answers without passages of its own under `/v1`."""
        address = _under(url, "/v1")
        return self.create_model(name, address, description, False, key, (), model_parameters)

    def create_openai_model(
        self,
        name: str,
        description: str,
        api_key: str = "",
        url: str = "",
        is_rag: bool = True,
        model_parameters: Mapping[str, Any] | str | None = None,
    ) -> ModelHost:
        """Keep OpenAI or a compatible server; with `is_rag`, an assistant that searches files."""
        key = _variable("api_key", api_key, "OPENAI_API_KEY")
        address = url or "https://api.openai.com/v1"
        if is_rag:
            address = f"assistants+{address}"
        return self.create_model(name, address, description, is_rag, key, (), model_parameters)

    def create_azure_openai_model(
        self,
        name: str,
        description: str,
        url: str,
        api_key: str = "",
        environmentID: str = "",  # noqa: N803 - H2O's name of the parameter
        model_parameters: Mapping[str, Any] | str | None = None,
    ) -> ModelHost:
        """Keep Azure OpenAI; its base models are deployments, and `environmentID` is one."""
        key = _variable("api_key", api_key, "AZURE_OPENAI_API_KEY")
        named = [environmentID] if environmentID else []
        return self.create_model(
            name, f"azure+{url}", description, False, key, named, model_parameters
        )

    def create_ollama_model(
        self,
        name: str,
        description: str,
        url: str,
        api_key: str = "",
        model_parameters: Mapping[str, Any] | str | None = None,
    ) -> ModelHost:
        """Keep an Ollama server."""
        key = _variable("api_key", api_key, "OLLAMA_API_KEY")
        return self.create_model(
            name, f"ollama+{url}", description, False, key, (), model_parameters
        )

    def create_amazon_bedrock_model(
        self,
        name: str,
        description: str,
        aws_access_key_id: str = "",
        aws_secret_access_key: str = "",
        aws_session_token: str = "",
        aws_region: str = "",
        model_parameters: Mapping[str, Any] | str | None = None,
        base_models: Sequence[str] = (),
    ) -> ModelHost:
        """Keep Amazon Bedrock; its keys are AWS's own variables, a profile or a role."""
        given = {
            "aws_access_key_id": aws_access_key_id,
            "aws_secret_access_key": aws_secret_access_key,
            "aws_session_token": aws_session_token,
        }
        for parameter, value in given.items():
            _variable(parameter, value, parameter.upper())
        return self.create_model(
            name,
            f"bedrock:{aws_region}",
            description,
            False,
            None,
            base_models,
            model_parameters,
        )

    def _opened(self, record: Mapping[str, Any]) -> ModelHost:
        return ModelHost(
            record["key"],
            record["name"],
            record["description"],
            record["url"],
            record["is_rag"],
            record["api_key_env"],
            record["model_parameters"],
            self._pack,
            tuple(record["base_models"]),
            self._folder,
            moment(record, "create_time"),
            moment(record, "update_time"),
        )

    def get_default_rag(self) -> ModelHost:
        """Return the first host that finds passages by itself; KeyError if there is none."""
        return self._first(is_rag=True)

    def get_default_llm(self) -> ModelHost:
        """Return the first host that is given passages; KeyError if there is none."""
        return self._first(is_rag=False)

    def _first(self, *, is_rag: bool) -> ModelHost:
        found = next((one for one in self.list() if one.is_rag is is_rag), None)
        if found is None:
            raise KeyError("no such host yet; make one with create_model")
        return found


def _asked_of(case: Case, model: str, models: int) -> Case:
    """Return a test case as one of a model, still without answer."""
    key = f"{case.key}@{model}" if models > 1 else case.key
    links = tuple(
        replace(link, target=f"{link.target}@{model}")
        if models > 1 and link.target_type == "test_case"
        else link
        for link in case.relationships
    )
    return replace(case, key=key, model=model, test_case_key=case.key, relationships=links)


def _variable(parameter: str, given: str, usual: str) -> str:
    """Return the variable with a key: the one that is given as `$NAME`, else the usual one."""
    if given.startswith("$") and given[1:].isidentifier():
        return given[1:]
    if given:
        LOG.warning("%s is not kept: put the key into the environment as %s", parameter, usual)
    return usual


def _under(url: str, path: str) -> str:
    """Return the address of an API: a bare host gets the usual path."""
    return url if urlsplit(url).path.strip("/") else url.rstrip("/") + path


def _parameters(given: Mapping[str, Any] | str | None) -> dict[str, Any]:
    try:
        found = json.loads(given) if isinstance(given, str) and given else given or {}
    except ValueError:
        found = None
    if not isinstance(found, Mapping):
        raise ConfigurationError("model_parameters", type(found).__name__, "a JSON object")
    for name in _names_in(found):
        if _is_secret(name.casefold()):
            expected = "no key: it belongs into an environment variable"
            raise ConfigurationError("model_parameters", f"{name:.40}", expected)
    return dict(found)


def _is_secret(name: str) -> bool:
    """Return whether a field of a request may hold a key."""
    said = name.endswith("key") or any(word in name for word in _SECRET)
    return said and name not in _NOT_SECRET


def _names_in(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [name for key, one in value.items() for name in (str(key), *_names_in(one))]
    if isinstance(value, list):
        return [name for one in value for name in _names_in(one)]
    return []
