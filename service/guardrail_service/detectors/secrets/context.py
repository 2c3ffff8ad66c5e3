"""Secrets that only their surroundings give away: `password = ...`, "the Datadog API key is ...".

A few patterns find a name, a sign and a value; the table says whose key it is. Nothing here decides
whether the value is worth an alarm, `value_checks.py` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from guardrail_service.detectors.secrets.kinds import UUID, SecretKind, Severity, kind
from guardrail_service.text.patterns.search import compile_regex

_NAME = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|pin code|secret|token|credentials?|api[ _.-]?key"
    r"|auth[ _-]?key|[a-z0-9][ _-]key|[a-z]key)"
)
_AFTER_NAME = r"[A-Za-z0-9_.-]{0,24}(?: [A-Za-z0-9_-]{1,15}){0,5}"
_SIGN = r"""[\\"'`*\])}]{0,5}[ \t]{0,4}(?:=>|:=|==?|->|:|>|\||\bis|\bwas)\s{0,4}[\\"'`*(<\[]{0,4}"""
_VALUE = r"([!#-&(-;=?-_a-{}~]{0,24}[0-9!@#$%^&*])"  # its beginning; the check reads on

_GATE = (
    r"(?:pass|pwd|pin code|secret|token|credential|key)"
    r"""[A-Za-z0-9_. "'`*\\\])}\t-]*(?:[:=>|]|\bis|\bwas)\s{0,4}[\\"'`*(<\[]{0,4}"""
    r"[!#-&(-;=?-_a-{}~]*[0-9!@#$%^&*]"
)
"""The same without the bounds, which cost hyperscan a second to compile."""
_NAME_PARTS = ("pass", "pwd", "pin", "secret", "token", "credential", "key")
_FLAG = r"--[a-z-]{0,24}(?:password|passwd|token|secret|key)[ =]"
_SPOKEN = r"\b(?:password|passcode|passphrase|secret key|api key|token)"

MAX_VALUE = 256
"""Code points of a named value; longer ones have forms of their own."""

_WHOLE_VALUE = compile_regex(r"[!#-&(-;=?-_a-{}~]{1,256}", "named value")


def value_end(text: str, start: int) -> int:
    """Return where the unquoted value that begins at `start` ends."""
    ahead = text[start : start + MAX_VALUE].encode("utf-8", "replace")
    match = _WHOLE_VALUE.match(ahead)
    return start + (match.end() if match else 0)


ASSIGNMENT = "assignment"
"""Pseudo-kind of a named value before `classify` knows whose it is."""

ASSIGNMENTS: tuple[SecretKind, ...] = tuple(
    kind(
        f"{ASSIGNMENT}/{name}",
        "A named value",
        regex,
        *keywords,
        entropy=0.0,
        check="quoted" if name == "prose" else ASSIGNMENT,
        group=1,
        ignore_case=True,
        closed=False,
        rank=0,
        gate=gate,
    )
    for name, regex, keywords, gate in (
        ("sign", _NAME + _AFTER_NAME + _SIGN + _VALUE, _NAME_PARTS, _GATE),
        ("flag", _FLAG + "[\"']?" + _VALUE, ("--",), r"--[a-z-]*(?:pass|token|secret|key)"),
        ("netrc", r"\blogin [!-~]{1,80}\s{1,4}password " + _VALUE, ("password",), r"\blogin [!-~]"),
        ("prose", _SPOKEN + "[ ,]{1,2}[\"'`]" + _VALUE, _NAME_PARTS, ""),
    )
)


@dataclass(frozen=True)
class Owner:
    """An issuer of values of this form, under these names."""

    kind: str
    what: str
    names: tuple[str, ...]
    value: str
    severity: Severity = "high"
    entropy: float = 2.8
    rank: int = 2

    @cached_property
    def _regex(self) -> Any:
        return compile_regex(self.value, self.kind)

    def owns(self, name: str, value: str) -> bool:
        """Return whether the lower-case name and the value both fit."""
        return any(word in name for word in self.names) and bool(
            self._regex.fullmatch(value.encode())
        )


_HEX32 = "[0-9a-fA-F]{32}"

# One row of the table per line, whatever its length.
# ruff: noqa: E501
# fmt: off
OWNERS = (
    Owner("aws_secret_access_key", "AWS secret access key", ("aws_secret", "aws secret", "awssecret", "secret access key", "secret_access_key", "secretaccesskey"), "[A-Za-z0-9+/]{40}", "critical", 3.5),
    Owner("aws_session_token", "AWS session token", ("session_token", "session token", "sessiontoken", "security_token", "securitytoken"), "[A-Za-z0-9+/]{80,1000}={0,2}", "critical", 3.5),
    Owner("azure_storage_key", "Azure storage, Cosmos DB or Batch account key", ("azure", "storage", "account", "cosmos", "primary", "secondary"), "[A-Za-z0-9+/]{86}==", "critical", 3.5),
    Owner("azure_client_secret", "Microsoft Entra client secret", ("azure", "client_secret", "client secret", "clientsecret", "entra"), "[A-Za-z0-9_~.-]{34,44}", "critical", 3.5),
    Owner("azure_api_key", "Azure AI services key", ("azure", "cognitive", "ocp-apim"), _HEX32),
    Owner("azure_devops_token", "Azure DevOps token", ("azure", "devops", "ado_", "vsts"), "[a-z2-7]{52}", "critical", 3.5),
    Owner("datadog_key", "Datadog API or application key", ("datadog", "dd_", "dd-a"), "[0-9a-f]{32}|[0-9a-f]{40}"),
    Owner("heroku_token", "Heroku API token", ("heroku",), UUID),
    Owner("cloudflare_key", "Cloudflare API token or global key", ("cloudflare", "cf_api", "cf-api"), "[0-9a-f]{37}|[A-Za-z0-9_-]{40}", "critical"),
    Owner("twilio_auth_token", "Twilio auth token", ("twilio",), _HEX32, "critical"),
    Owner("h2o_api_key", "H2O.ai key (h2oGPTe, AI Cloud)", ("h2o",), "(?:sk-)?[A-Za-z0-9_-]{20,200}", "critical", 3.0),
    Owner("atlassian_token", "Atlassian API token", ("atlassian", "jira", "confluence"), "[A-Za-z0-9]{20,24}", "high", 3.3),
    Owner("bitbucket_app_password", "Bitbucket app password", ("bitbucket",), "[A-Za-z0-9]{18,24}|[A-Za-z0-9=_-]{64}", "high", 3.3),
    Owner("vault_token", "HashiCorp Vault token", ("vault",), r"[sbr]\.[A-Za-z0-9]{24}", "high", 3.3),
    Owner("okta_token", "Okta API token", ("okta", "ssws"), "00[A-Za-z0-9_-]{40}", "critical", 3.5),
    Owner("snyk_token", "Snyk token", ("snyk",), UUID),
    Owner("algolia_key", "Algolia admin key", ("algolia",), "[0-9a-f]{32}"),
    Owner("fastly_token", "Fastly API token", ("fastly",), "[A-Za-z0-9_-]{32}", "high", 3.5),
    Owner("mistral_api_key", "Mistral API key", ("mistral",), "[A-Za-z0-9]{32}", "high", 3.3),
    Owner("cohere_api_key", "Cohere API key", ("cohere", "co_api_key"), "[A-Za-z0-9]{40}", "high", 3.5),
    Owner("wandb_key", "Weights & Biases key", ("wandb", "weights & biases", "weights and biases"), "[0-9a-f]{40}"),
    Owner("deepgram_key", "Deepgram key", ("deepgram",), "[0-9a-f]{40}"),
    Owner("assemblyai_key", "AssemblyAI key", ("assemblyai", "assembly ai"), "[0-9a-f]{32}"),
    Owner("together_api_key", "Together AI key", ("together",), "[0-9a-f]{64}"),
    Owner("discord_client_secret", "Discord client secret", ("discord",), "[A-Za-z0-9_-]{32}", "high", 3.3),
    Owner("twitter_secret", "X (Twitter) API secret or token", ("twitter",), "[A-Za-z0-9]{35,50}|[0-9]{15,25}-[A-Za-z0-9]{20,40}", "high", 3.5),
    Owner("facebook_app_secret", "Meta app secret", ("facebook", "meta_app", "fb_"), "[0-9a-f]{32}"),
    Owner("linkedin_secret", "LinkedIn client secret", ("linkedin",), "[A-Za-z0-9]{16}", "high", 3.0),
    Owner("spotify_secret", "Spotify client secret", ("spotify",), "[0-9a-f]{32}"),
    Owner("dropbox_token", "Dropbox token", ("dropbox",), "[a-z0-9]{15}|[A-Za-z0-9_-]{60,64}", "high", 3.0),
    Owner("trello_token", "Trello key or token", ("trello",), "[0-9a-f]{32}|[0-9a-f]{64}|ATTA[0-9A-Za-z]{72}"),
    Owner("asana_token", "Asana token", ("asana",), "[0-9a-f]{32}"),
    Owner("airtable_token", "Airtable token", ("airtable",), "key[A-Za-z0-9]{14}", "high", 3.0),
    Owner("zendesk_token", "Zendesk token", ("zendesk",), "[A-Za-z0-9]{40}", "high", 3.5),
    Owner("intercom_token", "Intercom token", ("intercom",), "[A-Za-z0-9=_-]{60}", "high", 3.5),
    Owner("mailjet_key", "Mailjet key", ("mailjet",), "[0-9a-f]{32}"),
    Owner("sendbird_token", "Sendbird token", ("sendbird",), "[0-9a-f]{40}"),
    Owner("sumologic_key", "Sumo Logic key", ("sumo",), "[A-Za-z0-9]{64}", "high", 3.5),
    Owner("travis_token", "Travis CI token", ("travis",), "[A-Za-z0-9_-]{22}", "high", 3.3),
    Owner("codecov_token", "Codecov token", ("codecov",), "[a-z0-9]{32}|" + UUID),
    Owner("newrelic_key", "New Relic insert key", ("new relic", "newrelic", "new_relic"), "[A-Za-z0-9_-]{32,40}", "high", 3.3),
    Owner("elastic_key", "Elastic API key", ("elastic",), "[A-Za-z0-9+/_-]{40,80}={0,2}", "high", 3.5),
    Owner("confluent_secret", "Confluent API secret", ("confluent", "kafka"), "[A-Za-z0-9+/]{64}", "high", 3.5),
    Owner("mongodb_atlas_key", "MongoDB Atlas private key", ("atlas",), UUID),
    Owner("alibaba_secret", "Alibaba Cloud access key secret", ("alibaba", "aliyun", "accesskeysecret", "access_key_secret"), "[A-Za-z0-9]{30}", "critical", 3.5),
    Owner("binance_key", "Binance key or secret", ("binance",), "[A-Za-z0-9]{64}", "critical", 3.5),
    Owner("coinbase_secret", "Coinbase key or secret", ("coinbase",), "[A-Za-z0-9_-]{16,64}={0,2}", "critical", 3.3),
    Owner("openweather_key", "OpenWeather key", ("openweather", "owm_"), "[0-9a-f]{32}", "medium"),
    Owner("ethereum_private_key", "Private key of a blockchain wallet", ("private_key", "private key", "privatekey", "wallet"), "(?:0x)?[0-9a-fA-F]{64}", "critical"),
)
"""First fit wins. Forms and names as in the providers' documentation."""

PASSWORD = Owner(
    "password", "Password assigned to a name", ("pass", "pwd", "pin code"), ".", "medium", rank=0
)
GENERIC = Owner(
    "generic_secret", "High-entropy value under a telling name", (), ".", "medium", rank=0
)


def classify(name: str, value: str) -> Owner:
    """Return whose secret a named value would be; `GENERIC` if the name tells no more."""
    for owner in OWNERS:
        if owner.owns(name, value):
            return owner
    tail = name[-40:]
    return PASSWORD if any(word in tail for word in PASSWORD.names) else GENERIC
