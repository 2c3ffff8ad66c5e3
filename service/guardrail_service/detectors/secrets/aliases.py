"""Our kind of secret for the names that other tools and data sets use; nothing is detected here."""

from __future__ import annotations

from functools import cache

from guardrail_service.detectors.secrets.patterns import KINDS

_ALIASES = {
    "password": "basic_password db_password database_password passwd pwd credential credentials"
    " hardcoded_password password_assignment password_in_context netrc_password",
    "generic_secret": "generic_api_key api_key apikey secret token generic generic_key key"
    " high_entropy high_entropy_string high_entropy_assignment base64_high_entropy_string"
    " hex_high_entropy_string secret_key secret_keyword access_token generic_token"
    " generic_high_entropy generic_assignment entropy",
    "private_key": "pem pem_private_key pem_key rsa_private_key ec_private_key dsa_private_key"
    " openssh_private_key ssh_private_key encrypted_private_key pkcs8_private_key pgp_private_key"
    " pgp_private_key_block putty_private_key ssh_key",
    "aws_access_key_id": "aws aws_key aws_access_key aws_access_token aws_key_id",
    "aws_secret_access_key": "aws_secret aws_secret_key",
    "gcp_api_key": "google_api_key google_key gcp gcp_key google_maps_key firebase_key",
    "gcp_service_account_key": "gcp_service_account google_service_account service_account_key"
    " gcp_private_key gcp_service_account_private_key google_service_account_key",
    "azure_storage_key": "azure_storage_account_key azure_storage_connection_string azure"
    " azure_connection_string azure_account_key azure_storage",
    "azure_sas_token": "azure_sas sas_token",
    "azure_client_secret": "azure_ad_client_secret azure_secret entra_client_secret",
    "github_token": "github github_pat github_classic_token github_app_token github_oauth"
    " github_personal_access_token github_classic github_app github_oauth_token ghp"
    " github_refresh_token github_classic_pat",
    "github_fine_grained_token": "github_fine_grained_pat github_fine_grained github_finegrained",
    "gitlab_token": "gitlab gitlab_pat gitlab_personal_access_token gitlab_deploy_token",
    "slack_token": "slack slack_bot_token slack_user_token slack_oauth_token slack_access_token",
    "slack_webhook": "slack_webhook_url slack_incoming_webhook",
    "stripe_key": "stripe stripe_secret_key stripe_api_key stripe_access_token"
    " stripe_restricted_key stripe_live_key",
    "twilio_api_key": "twilio twilio_key twilio_api_key_sid",
    "twilio_auth_token": "twilio_token",
    "sendgrid_key": "sendgrid sendgrid_api_key sendgrid_token sendgrid_api_token",
    "openai_api_key": "openai openai_key openai_token openai_project_key",
    "sk_api_key": "sk_key",
    "anthropic_api_key": "anthropic anthropic_key claude_api_key anthropic_token",
    "h2o_api_key": "h2o h2oai h2o_ai h2o_key h2ogpte h2ogpte_api_key h2ogpte_key h2oai_api_key"
    " h2o_ai_api_key h2o_ai_key h2oai_key",
    "huggingface_token": "huggingface hf_token hugging_face_token hugging_face huggingface_api_key"
    " huggingface_access_token",
    "npm_token": "npm npm_access_token",
    "pypi_token": "pypi pypi_upload_token pypi_api_token",
    "docker_token": "docker docker_pat dockerhub_token docker_hub_token docker_access_token"
    " docker_hub_pat dockerhub_pat",
    "docker_auth": "docker_config_auth docker_config",
    "databricks_token": "databricks databricks_api_token databricks_pat",
    "atlassian_token": "atlassian atlassian_api_token jira_token confluence_token",
    "jwt": "json_web_token jwt_token",
    "connection_string": "connection_string_password database_url db_connection_string uri"
    " postgres_uri mongodb_uri database_connection_string connection_uri db_url dsn db_uri"
    " mongodb_connection_string postgres_connection_string mysql_connection_string",
    "basic_auth_url": "basic_auth url_credentials basic_auth_credentials url_basic_auth"
    " url_with_credentials url_password credentials_in_url",
    "basic_auth_header": "http_basic_auth authorization_basic",
    "bearer_token": "bearer http_bearer authorization_bearer",
    "windows_activation_key": "windows_key windows_product_key activation_key product_key"
    " microsoft_product_key windows_license_key",
    "digitalocean_token": "digitalocean_pat digitalocean_access_token",
    "discord_token": "discord_bot_token",
    "telegram_token": "telegram_bot_token telegram_bot_api_token",
    "terraform_cloud_token": "terraform_token tfc_token hashicorp_tf_api_token",
    "certificate": "public_certificate x509_certificate pem_certificate",
    "new_relic_key": "newrelic newrelic_token newrelic_license_key new_relic_user_api_key",
}
_GENERIC_WORDS = frozenset({
    "api", "key", "token", "secret", "access", "personal", "pat", "auth", "id", "credential",
    "client", "account", "bot", "app", "application", "service", "user", "live", "oauth", "ai",
})  # fmt: skip


def canonical(name: str) -> str | None:
    """Return our kind for any tool's name of a secret, or None where the table has no such kind.

    Case, blanks and hyphens do not matter. A name that is not listed is reduced to its provider
    (`Mailgun API token` -> `mailgun`) and taken if that leads to one kind.
    """
    plain = "_".join("".join(c if c.isalnum() else " " for c in name.casefold()).split())
    if plain in KINDS:
        return plain
    return _by_alias().get(plain) or _by_provider().get(_provider(plain))


def _provider(name: str) -> str:
    return "".join(word for word in name.split("_") if word not in _GENERIC_WORDS)


@cache
def _by_alias() -> dict[str, str]:
    return {alias: kind for kind, names in _ALIASES.items() for alias in names.split()}


@cache
def _by_provider() -> dict[str, str]:
    kinds: dict[str, list[str]] = {}
    for kind in KINDS:
        kinds.setdefault(_provider(kind), []).append(kind)
    return {provider: found[0] for provider, found in kinds.items() if provider and len(found) == 1}
