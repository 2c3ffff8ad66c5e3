"""Amazon Bedrock through boto3: Converse, and RetrieveAndGenerate of a knowledge base.

boto3 is an extra, and keys are AWS's own: environment variables, profiles, roles.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guardrail_offline.datasets.images import Image, split_content
from guardrail_offline.hosts.chat import Completion, Message
from guardrail_offline.hosts.endpoint import Pace, Patience
from guardrail_offline.hosts.errors import (
    BadReply,
    HostError,
    HostUnavailable,
    NeedsVision,
    RateLimited,
    SchemaUnsupported,
    TimedOut,
    Unreachable,
    WrongKey,
    refusal,
)
from guardrail_service.errors import ConfigurationError, MissingExtra

_INFERENCE = {
    "max_tokens": "maxTokens", "temperature": "temperature", "top_p": "topP",
}  # fmt: skip
_KEYS = (
    "AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException",
    "InvalidSignatureException", "IncompleteSignature", "MissingAuthenticationTokenException",
)  # fmt: skip
_FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}
_REFUSED = ("guardrail_intervened", "content_filtered")


@dataclass(frozen=True)
class AwsClient:
    """One service of AWS in a region.

    Attributes:
        service: `bedrock-runtime` or `bedrock-agent-runtime`.
        region: Such as `eu-west-1`; None for that of the environment.
        url: Another address than AWS's; None for AWS's.
        limits: Time, tries and pace.

    Raises:
        MissingExtra: If boto3 is not installed.
        ConfigurationError: If there is no such region, or none is known.
    """

    service: str
    region: str | None
    url: str | None = None
    limits: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        """Make the client."""
        try:
            boto3 = importlib.import_module("boto3")
            config = importlib.import_module("botocore.config").Config
            errors = importlib.import_module("botocore.exceptions")
        except ImportError as error:
            raise MissingExtra("rag-guardrail-offline[bedrock]") from error
        given = config(
            connect_timeout=self.limits.timeout_s,
            read_timeout=self.limits.timeout_s,
            retries={"total_max_attempts": self.limits.retries + 1, "mode": "standard"},
            max_pool_connections=64,
        )
        session = boto3.session.Session(region_name=self.region)
        try:
            made = session.client(self.service, endpoint_url=self.url, config=given)
        except (errors.BotoCoreError, ValueError) as error:
            expected = "a region of AWS, as in bedrock:eu-west-1"
            raise ConfigurationError("the host's region", type(error).__name__, expected) from None
        object.__setattr__(self, "_client", made)
        object.__setattr__(self, "_pace", Pace(self.limits.per_second))

    @property
    def host(self) -> str:
        """Return what messages call it."""
        return f"{self.service} ({self.url or self.region or 'default region'})"

    @property
    def place(self) -> list[str | None]:
        """Return what tells this service from others."""
        return [self.service, self.region, self.url]

    def call(self, operation: str, **arguments: Any) -> tuple[Mapping[str, Any], float, int]:
        """Return what an operation gives, its seconds and its tries.

        Raises:
            HostError: If it gives nothing.
        """
        errors = importlib.import_module("botocore.exceptions")
        time.sleep(self._pace.turn())  # type: ignore[attr-defined]
        started = time.monotonic()
        run: Callable[..., Mapping[str, Any]] = getattr(self._client, operation)  # type: ignore[attr-defined]
        try:
            found = run(**arguments)
        except errors.ClientError as error:
            raise self._refused(error.response) from None
        except errors.ParamValidationError:
            raise BadReply(self.host, "settings that boto3 refuses", "fields of its API") from None
        except (errors.NoCredentialsError, errors.PartialCredentialsError):
            raise WrongKey(self.host) from None
        except (errors.ReadTimeoutError, errors.ConnectTimeoutError):
            raise self._tried(TimedOut(f"{self.host}: no reply in time")) from None
        except errors.EndpointConnectionError:
            raise self._tried(Unreachable(f"{self.host}: nobody answers there")) from None
        except errors.BotoCoreError as error:
            told = f"{self.host}: {type(error).__name__}"
            raise self._tried(HostUnavailable(told)) from None
        retries = found.get("ResponseMetadata", {}).get("RetryAttempts", 0)
        return found, time.monotonic() - started, retries + 1

    def _tried(self, error: HostError) -> HostError:
        error.attempts = self.limits.retries + 1
        return error

    def _refused(self, response: Mapping[str, Any]) -> HostError:
        told, meta = response.get("Error", {}), response.get("ResponseMetadata", {})
        code, status = str(told.get("Code", "")), int(meta.get("HTTPStatusCode", 0))
        error: HostError
        if code == "ThrottlingException" or status == 429:
            error = RateLimited(f"{self.host}: found status {status}; expected 200", status)
        elif code == "ModelTimeoutException":
            error = TimedOut(f"{self.host}: the model took too long", status)
        elif code in _KEYS:
            error = WrongKey(self.host, status)
        elif status >= 500 or code == "ModelNotReadyException":
            error = HostUnavailable(f"{self.host}: found status {status}; expected 200", status)
        else:
            error = refusal(
                self.host, status, {"code": code, "message": str(told.get("Message", ""))}
            )
        error.attempts = int(meta.get("RetryAttempts", 0)) + 1
        return error


@dataclass(frozen=True)
class BedrockConverse:
    """One model of Bedrock.

    Attributes:
        client: Of `bedrock-runtime`.
        model: Model id, inference profile or ARN.
        settings: Further fields of Converse, as they are: guardrailConfig and so on.
    """

    client: AwsClient
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return service, place and model."""
        found = [*self.client.place, self.model]
        return json.dumps([*found, self.settings] if self.settings else found)

    def chat(self, messages: Sequence[Message], **options: Any) -> Completion:
        """Return the model's next message; see `ChatHost`.

        Options that Converse does not have, such as `seed`, are left out.

        Raises:
            NeedsVision: If an image is an address: Converse takes bytes only.
            SchemaUnsupported: For JSON without a schema, and log probabilities.
            HostError: If it does not answer.
        """
        arguments = {"modelId": self.model, **self._given(options), **self.settings}
        system = [
            {"text": split_content(m["content"])[0]} for m in messages if m["role"] == "system"
        ]
        said = [
            {"role": m["role"], "content": self._parts(m)}
            for m in messages
            if m["role"] != "system"
        ]
        if system:
            arguments["system"] = system
        value, seconds, attempts = self.client.call("converse", messages=said, **arguments)
        parts = value.get("output", {}).get("message", {}).get("content", [])
        texts = [part["text"] for part in parts if "text" in part]
        reason = value.get("stopReason")
        refused = reason in _REFUSED
        if not texts and not refused:
            raise BadReply(self.client.host, "no text", "output.message.content with a text")
        usage = value.get("usage", {})
        return Completion(
            "\n".join(texts),
            "content_filter" if refused else _FINISH.get(str(reason), reason),
            (usage["inputTokens"], usage["outputTokens"]) if usage else None,
            seconds,
            cached=usage.get("cacheReadInputTokens"),
            refused=refused,
            attempts=attempts,
        )

    def _given(self, options: Mapping[str, Any]) -> dict[str, Any]:
        inference = {
            theirs: options[ours] for ours, theirs in _INFERENCE.items() if ours in options
        }
        if stop := options.get("stop"):
            inference["stopSequences"] = [stop] if isinstance(stop, str) else list(stop)
        found: dict[str, Any] = {"inferenceConfig": inference} if inference else {}
        if options.get("logprobs"):
            raise SchemaUnsupported(self.client.host)
        if (form := options.get("response_format", {})).get("type") == "json_schema":
            schema = {"schema": json.dumps(form["json_schema"]["schema"])}
            schema["name"] = form["json_schema"].get("name", "answer")
            inner = {"type": "json_schema", "structure": {"jsonSchema": schema}}
            found["outputConfig"] = {"textFormat": inner}
        elif form.get("type") == "json_object":
            raise SchemaUnsupported(self.client.host)
        return found

    def _parts(self, message: Message) -> list[dict[str, Any]]:
        text, images = split_content(message["content"])
        return [{"text": text}, *(self._image(image) for image in images)]

    def _image(self, image: Image) -> dict[str, Any]:
        if image.is_remote:
            raise NeedsVision(self.client.host)
        return {
            "image": {
                "format": image.type.removeprefix("image/"),
                "source": {"bytes": image.data},
            }
        }


@dataclass(frozen=True)
class BedrockKnowledgeBase:
    """A knowledge base that is searched, and a model that answers from what was found.

    Attributes:
        client: Of `bedrock-agent-runtime`.
        knowledge_base: Its id.
        model: ARN of the model that answers.
        settings: Further fields of `knowledgeBaseConfiguration`, as they are:
            retrievalConfiguration, generationConfiguration, orchestrationConfiguration.
    """

    client: AwsClient
    knowledge_base: str
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return service, place, knowledge base and model."""
        found = [*self.client.place, self.knowledge_base, self.model]
        return json.dumps([*found, self.settings] if self.settings else found)

    def chat(self, messages: Sequence[Message], **options: Any) -> Completion:
        """Return the answer to the last message, with the passages that it cites.

        The knowledge base has a prompt and inference settings of its own: earlier messages and
        options are not sent.

        Raises:
            HostError: If it does not answer.
        """
        question, _ = split_content(messages[-1]["content"])
        base = {"knowledgeBaseId": self.knowledge_base, "modelArn": self.model, **self.settings}
        value, seconds, attempts = self.client.call(
            "retrieve_and_generate",
            input={"text": question},
            retrieveAndGenerateConfiguration={
                "type": "KNOWLEDGE_BASE",
                "knowledgeBaseConfiguration": base,
            },
        )
        text = value.get("output", {}).get("text")
        if not isinstance(text, str):
            raise BadReply(self.client.host, "no text", "output.text")
        refused = value.get("guardrailAction") == "INTERVENED"
        return Completion(
            text,
            "content_filter" if refused else "stop",
            None,
            seconds,
            refused=refused,
            contexts=_cited(value),
            attempts=attempts,
        )


def _cited(value: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the passages that an answer cites, each once, in their order."""
    found = [
        reference.get("content", {}).get("text")
        for citation in value.get("citations", [])
        for reference in citation.get("retrievedReferences", [])
    ]
    return tuple(dict.fromkeys(text for text in found if isinstance(text, str)))
