"""Token formats of cloud, hosting and infrastructure providers."""

from __future__ import annotations

from guardrail_service.detectors.secrets.kinds import UUID, alnum, base64, hexa, kind, word

_AWS_ID = "(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"
_AWS_IDS = ("akia", "asia", "abia", "acca")

# One row of the table per line, whatever its length.
# ruff: noqa: E501
# fmt: off
CLOUD = (
    kind("aws_access_key_id", "AWS access key id", _AWS_ID, *_AWS_IDS, severity="critical"),
    kind("aws_secret_access_key/pair", "AWS secret access key", _AWS_ID + r"""["']?[ \t]{0,2}[,:;|/\s]\s{0,2}["']?([A-Za-z0-9+/]{40})""", *_AWS_IDS, severity="critical", entropy=3.5, group=1),
    kind("aws_bedrock_key", "AWS Bedrock API key", "ABSK" + base64(109, 269) + "={0,2}"),
    kind("aws_bedrock_key/short", "AWS Bedrock API key", "bedrock-api-key-" + base64(40, 900)),
    kind("aws_mws_key", "Amazon MWS token", r"amzn\.mws\." + UUID, "amzn.mws."),
    kind("gcp_api_key", "Google API key", "AIza" + word(35), severity="critical"),
    kind("gcp_oauth_client_secret", "Google OAuth client secret", "GOCSPX-" + word(28)),
    kind("gcp_oauth_token", "Google OAuth access token", r"ya29\." + word(20, 500), "ya29."),
    kind("gcp_oauth_refresh_token", "Google OAuth refresh token", "1//0" + word(40, 120), "1//0"),
    kind("azure_storage_key", "Azure storage, Cosmos DB or Batch account key", r"(?i:AccountKey\s?=\s?)([A-Za-z0-9+/]{86}==)", "accountkey", severity="critical", group=1),
    kind("azure_storage_key/bare", "Azure storage, Cosmos DB or Batch account key", base64(76) + r"\+ASt[A-Za-z0-9+/]{6}==", "+ast", severity="critical"),
    kind("azure_shared_access_key", "Azure Service Bus, Event Hubs or IoT key", r"(?i:SharedAccessKey\s?=\s?)([A-Za-z0-9+/]{43}=)", "sharedaccesskey", severity="critical", group=1),
    kind("azure_sas_token", "Azure shared access signature", r"sig=([A-Za-z0-9%+/]{43,90}={0,2})", "sig=", group=1, check="sas", entropy=3.5),
    kind("azure_client_secret", "Microsoft Entra client secret", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}", "q~", severity="critical", entropy=3.0),
    kind("azure_api_key", "Azure AI services key", alnum(52) + "JQQJ99" + alnum(26), "jqqj99"),
    kind("azure_devops_token", "Azure DevOps token", alnum(76) + "AZDO" + alnum(4), "azdo"),
    kind("alibaba_access_key_id", "Alibaba Cloud access key id", "LTAI" + alnum(20)),
    kind("tencent_secret_id", "Tencent Cloud secret id", "AKID" + alnum(32), entropy=3.5),
    kind("yandex_api_key", "Yandex Cloud API key", "AQVN" + word(35, 38)),
    kind("yandex_iam_token", "Yandex Cloud IAM token", r"t1\.[A-Z0-9a-z_-]{20,400}\.[A-Za-z0-9_-]{86}", "t1."),
    kind("ibm_cloud_key", "IBM Cloud API key", "ApiKey-" + UUID),
    kind("digitalocean_token", "DigitalOcean token", "do[opr]_v1_" + hexa(64), "_v1_"),
    kind("heroku_token", "Heroku API token", "HRKU-AA" + word(50, 70)),
    kind("cloudflare_origin_ca_key", "Cloudflare origin CA key", r"v1\.0-" + hexa(24) + "-" + hexa(146), "v1.0-"),
    kind("netlify_token", "Netlify token", "nfp_" + alnum(36, 44)),
    kind("vercel_token", "Vercel token", "vc[piak]_" + alnum(24, 64), "vcp_", "vci_", "vca_", "vck_", entropy=3.5),
    kind("fly_token", "Fly.io token", "fo1_" + word(43)),
    kind("fly_token/macaroon", "Fly.io token", "fm[12][ar]?_[A-Za-z0-9+/]{100,900}={0,3}", "fm1", "fm2"),
    kind("supabase_token", "Supabase token", "sbp_" + hexa(40)),
    kind("supabase_secret_key", "Supabase secret key", "sb_secret_" + word(22, 50)),
    kind("planetscale_credential", "PlanetScale token or password", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}"),
    kind("neon_token", "Neon API key", "napi_" + alnum(60, 70)),
    kind("vault_token", "HashiCorp Vault token", r"hv[sbr]\.[A-Za-z0-9_-]{24,300}", "hvs.", "hvb.", "hvr.", entropy=3.0),
    kind("terraform_cloud_token", "Terraform Cloud token", alnum(14) + r"\.atlasv1\." + "[A-Za-z0-9_=-]{60,70}", ".atlasv1."),
    kind("pulumi_token", "Pulumi token", "pul-" + hexa(40)),
    kind("doppler_token", "Doppler token", r"dp\.(?:pt|ct|st|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}", "dp."),
    kind("infracost_key", "Infracost API key", "ico-" + alnum(32)),
    kind("tailscale_key", "Tailscale key", "tskey-[a-z]{2,12}-[A-Za-z0-9]{6,40}(?:-[A-Za-z0-9]{16,64})?"),
    kind("openshift_token", "OpenShift token", "sha256~" + word(43)),
    kind("dynatrace_token", "Dynatrace token", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}", "dt0"),
    kind("grafana_api_key", "Grafana API key", "eyJrIjoi[A-Za-z0-9+/]{60,500}={0,3}"),
    kind("grafana_cloud_token", "Grafana Cloud token", "glc_[A-Za-z0-9+/]{32,500}={0,3}"),
    kind("grafana_service_token", "Grafana service account token", "glsa_" + alnum(32) + "_[0-9A-Fa-f]{8}"),
    kind("new_relic_key", "New Relic user or insights key", "NR(?:AK|II|IQ|JS|RA|SP)-[A-Za-z0-9_-]{19,40}", "nrak-", "nrii-", "nriq-", "nrjs-", "nrra-", "nrsp-"),
    kind("new_relic_key/license", "New Relic user or insights key", hexa(36) + "NRAL", "nral"),
    kind("sentry_token", "Sentry token", "sntrys_eyJ[A-Za-z0-9+/=_-]{50,600}"),
    kind("sentry_token/user", "Sentry token", "sntryu_" + hexa(64)),
    kind("databricks_token", "Databricks token", "dapi" + hexa(32) + "(?:-[0-9])?", entropy=3.0),
    kind("databricks_token/secret", "Databricks token", "dose" + hexa(32), entropy=3.0),
    kind("snowflake_token", "Snowflake programmatic token", r"ver:[0-9]-hint:[0-9]{4,20}-" + base64(40, 500), "-hint:"),
    kind("prefect_token", "Prefect API key", "pn[bu]_" + alnum(36), "pnu_", "pnb_"),
    kind("scalingo_token", "Scalingo token", "tk-us-" + word(48)),
    kind("harness_token", "Harness token", r"(?:pat|sat)\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}", "pat.", "sat."),
    kind("octopus_key", "Octopus Deploy API key", "API-[A-Z0-9]{25,30}", entropy=3.0),
    kind("cloudinary_url", "Cloudinary URL with secret", r"cloudinary://[0-9]{12,18}:([A-Za-z0-9_-]{20,40})@", "cloudinary://", group=1, closed=False),
    kind("onepassword_token", "1Password service account token", "ops_eyJ[A-Za-z0-9+/_-]{200,1000}={0,3}", closed=False),
    kind("onepassword_secret_key", "1Password secret key", "A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}", "a3-"),
    kind("duo_secret", "Duo integration secret", "(?i:duo[a-z_ ]{0,20}secret[a-z_ ]{0,8}[=:] ?[\"']?)([A-Za-z0-9]{40})", "duo", group=1, entropy=3.5),
)
# fmt: on
"""One row per format, in the order of the providers' size; alphabets and lengths as documented."""
