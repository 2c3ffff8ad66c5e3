"""Every kind of secret and the patterns that lead to it; nothing is decided here."""

# One row of the tables per line, whatever its length.
# ruff: noqa: E501

from __future__ import annotations

from guardrail_service.detectors.secrets.context import ASSIGNMENTS, GENERIC, PASSWORD
from guardrail_service.detectors.secrets.formats import FORMATS
from guardrail_service.detectors.secrets.kinds import (
    UUID,
    SecretKind,
    Severity,
    alnum,
    base64,
    hexa,
    kind,
    word,
)
from guardrail_service.detectors.secrets.owners import OWNERS
from guardrail_service.text.patterns.search import Pattern

_AWS_ID = "(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"
_AWS_IDS = ("akia", "asia", "abia", "acca")

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
    kind("yandex_static_key", "Yandex Cloud static access key", "YC[A-Za-z0-9_-]{38}", "yc", entropy=4.2, check="mixed"),
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
    kind("dynatrace_token", "Dynatrace token", r"dt0[a-z][0-9]{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}", "dt0"),
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
    kind("harness_token", "Harness token", r"(?:pat|sat)\.[A-Za-z0-9_-]{22}\.[0-9A-Za-z]{24}\.[A-Za-z0-9]{20}", "pat.", "sat."),
    kind("octopus_key", "Octopus Deploy API key", "API-[A-Z0-9]{25,30}", entropy=3.0),
    kind("cloudinary_url", "Cloudinary URL with secret", r"cloudinary://[0-9]{12,18}:([A-Za-z0-9_-]{20,40})@", "cloudinary://", group=1, closed=False),
    kind("onepassword_token", "1Password service account token", "ops_eyJ[A-Za-z0-9+/_-]{200,1000}={0,3}", closed=False),
    kind("onepassword_secret_key", "1Password secret key", "A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}", "a3-"),
    kind("duo_secret", "Duo integration secret", "(?i:duo[a-z_ ]{0,20}secret[a-z_ ]{0,8}[=:] ?[\"']?)([A-Za-z0-9]{40})", "duo", group=1, entropy=3.5),
)
# fmt: on
"""One row per format, in the order of the providers' size; alphabets and lengths as documented."""


# fmt: off
DEVELOPMENT = (
    kind("github_token", "GitHub token (classic, OAuth, user, app)", "gh[pousr]_" + alnum(36, 255), "ghp_", "gho_", "ghu_", "ghs_", "ghr_", severity="critical", entropy=3.0),
    kind("github_fine_grained_token", "GitHub fine-grained token", "github_pat_[A-Za-z0-9_]{82}", severity="critical"),
    kind("gitlab_token", "GitLab token (personal, deploy, runner, trigger, ...)", "gl(?:pat|dt|rt|rtr|ptt|cbt|imt|agent|oas|soat|ft|ffct|wt)-" + r"[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7})?", "glpat-", "gldt-", "glrt-", "glrtr-", "glptt-", "glcbt-", "glimt-", "glagent-", "gloas-", "glsoat-", "glft-", "glffct-", "glwt-", severity="critical", entropy=3.0),
    kind("gitlab_runner_token", "GitLab runner registration token", "GR1348941" + word(20)),
    kind("bitbucket_app_password", "Bitbucket app password", "ATBB" + alnum(24, 36), entropy=3.5),
    kind("atlassian_token", "Atlassian API token", "AT[AC]TT3[A-Za-z0-9_=-]{60,300}", "atatt3", "atctt3", closed=False),
    kind("npm_token", "npm access token", "npm_" + alnum(36), severity="critical", entropy=3.0),
    kind("npm_token/rc", "npm access token", r":_(?:authToken|auth)\s?=\s?[\"']?(" + UUID + "|" + base64(20, 200) + "={0,2})", ":_auth", severity="critical", group=1, entropy=3.0),
    kind("pypi_token", "PyPI or TestPyPI upload token", "pypi-Ag" + word(50, 400), severity="critical"),
    kind("rubygems_key", "RubyGems API key", "rubygems_" + hexa(48), severity="critical"),
    kind("crates_token", "crates.io token", "cio" + alnum(32), entropy=3.7),
    kind("nuget_key", "NuGet API key", "oy2[a-z0-9]{43}", severity="critical"),
    kind("clojars_token", "Clojars deploy token", "CLOJARS_[a-z0-9]{60}"),
    kind("docker_token", "Docker Hub access token", "dckr_(?:pat|oat)_" + word(27, 40), severity="critical"),
    kind("docker_auth", "Docker registry credentials", r"\"auth\"\s{0,3}:\s{0,3}\"([A-Za-z0-9+/]{12,400}={0,2})\"", "\"auth\"", severity="critical", group=1, entropy=0, check="basic"),
    kind("artifactory_key", "JFrog Artifactory key", "AKCp" + alnum(20, 80), entropy=3.7),
    kind("artifactory_key/reference", "JFrog Artifactory key", "cmVmd" + alnum(59), entropy=3.7),
    kind("circleci_token", "CircleCI token", "CCI(?:PAT|PRJ)_" + alnum(20, 24) + "_" + hexa(40), "ccipat_", "cciprj_"),
    kind("buildkite_token", "Buildkite token", "bk(?:ua|ct|pat|aj)_" + alnum(36, 64), "bkua_", "bkct_", "bkpat_", "bkaj_"),
    kind("sonarqube_token", "SonarQube token", "sq[apu]_" + hexa(40), "sqa_", "squ_", "sqp_"),
    kind("sourcegraph_token", "Sourcegraph token", "sgp_(?:[0-9a-fA-F]{16}_|local_)?[0-9a-fA-F]{40}"),
    kind("snyk_token", "Snyk token", "snyk_(?:uat|sat)\\.[a-z0-9]{8}\\.[A-Za-z0-9._-]{40,900}"),
    kind("readme_key", "ReadMe API key", "rdme_[a-z0-9]{70}"),
    kind("postman_key", "Postman API key", "PMAK-" + hexa(24) + "-" + hexa(34)),
    kind("rapidapi_key", "RapidAPI key", alnum(10) + "msh" + alnum(15) + "p1" + alnum(6) + "jsn" + alnum(12), "jsn"),
    kind("launchdarkly_key", "LaunchDarkly SDK or API key", "(?:sdk|api)-" + UUID, "sdk-", "api-"),
    kind("statsig_key", "Statsig secret key", "secret-" + alnum(42, 44), entropy=3.5),
    kind("figma_token", "Figma token", "fig[dou]r?_" + word(40, 52), "figd_", "figo_", "figu_", "figdr_", "figor_", "figur_"),
    kind("linear_key", "Linear API key", "lin_(?:api|oauth|wh)_" + alnum(32, 64)),
    kind("notion_token", "Notion integration token", "ntn_[0-9]{11}" + alnum(35)),
    kind("notion_token/legacy", "Notion integration token", "secret_" + alnum(43), entropy=3.5),
    kind("airtable_token", "Airtable token", "pat" + alnum(14) + r"\." + hexa(64)),
    kind("asana_token", "Asana token", "[12]/[0-9]{14,20}(?:/[0-9]{14,20})?:" + hexa(32), "1/", "2/"),
    kind("contentful_token", "Contentful management token", "CFPAT-" + word(43)),
    kind("typeform_token", "Typeform token", "tfp_[A-Za-z0-9_.-]{40,64}"),
    kind("dropbox_token", "Dropbox token", r"sl\.(?:u\.)?[A-Za-z0-9_-]{100,900}", "sl."),
    kind("frameio_token", "Frame.io token", "fio-u-" + word(64)),
    kind("adobe_client_secret", "Adobe client secret", "p8e-" + alnum(28, 36)),
    kind("shippo_token", "Shippo token", "shippo_(?:live|test)_" + hexa(40)),
    kind("easypost_key", "EasyPost key", "EZ[AT]K" + alnum(54), "ezak", "eztk"),
    kind("duffel_token", "Duffel token", "duffel_(?:test|live)_[A-Za-z0-9_=-]{43}"),
    kind("slack_token", "Slack bot, user, app or refresh token", "xox[abeoprs](?:[.-][A-Za-z0-9-]{10,300})", "xoxa", "xoxb", "xoxe", "xoxo", "xoxp", "xoxr", "xoxs", severity="critical", check="has_digit"),
    kind("slack_app_token", "Slack app-level token", "xapp-[0-9]-[A-Z0-9]{8,14}-[0-9]{8,16}-" + alnum(32, 80), severity="critical"),
    kind("slack_webhook", "Slack incoming webhook", r"hooks\.slack\.com/(?:services/T[A-Za-z0-9_]{6,14}/B[A-Za-z0-9_]{6,14}/[A-Za-z0-9_]{16,30}|(?:workflows|triggers)/[A-Za-z0-9/_]{30,80})", "hooks.slack.com"),
    kind("discord_token", "Discord bot token", r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}", ".", entropy=3.7, check="discord"),
    kind("webex_token", "Webex token", alnum(64) + "_P[A-Z0-9]{3}_" + UUID, "_p", gate="_P[A-Z0-9]{3}_[0-9a-f]{8}-"),
    kind("ghost_admin_key", "Ghost Admin API key", hexa(24) + ":" + hexa(64), ":", gate="[0-9a-f]:[0-9a-f]{24}", severity="critical"),
    kind("apollo_key", "Apollo GraphOS key", "(?:user|service):[A-Za-z0-9._-]{2,60}:[A-Za-z0-9_-]{22}", "user:", "service:", gate="(?:user|service):[A-Za-z0-9._-]+:[A-Za-z0-9_-]{8}", entropy=3.8, check="mixed"),
    kind("discord_webhook", "Discord webhook", r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,72}", "/api/webhooks/"),
    kind("teams_webhook", "Microsoft Teams webhook", r"[a-z0-9-]{1,40}\.webhook\.office\.com/webhookb2/[0-9a-f@-]{60,90}/IncomingWebhook/[0-9a-f]{32}/[0-9a-f-]{36}", "webhook.office.com"),
    kind("zapier_webhook", "Zapier webhook", r"hooks\.zapier\.com/hooks/catch/[0-9]{4,12}/[a-z0-9]{5,12}", "hooks.zapier.com"),
    kind("telegram_token", "Telegram bot token", "[0-9]{8,10}:AA" + word(33), ":aa", severity="critical", entropy=3.5),
    kind("twitch_token", "Twitch chat token", "oauth:[a-z0-9]{30}", entropy=3.3),
    kind("twitter_bearer", "X (Twitter) bearer token", "A{20,24}[A-Za-z0-9%]{40,120}", "a" * 20),
    kind("facebook_token", "Meta access token", "EAA[A-Za-z0-9]{80,400}", entropy=3.7),
    kind("facebook_app_token", "Meta app access token", r"[0-9]{15,16}(?:\||%7C)[A-Za-z0-9_-]{27,40}", "|", "%7c", entropy=3.5),
    kind("instagram_token", "Instagram token", "IGQ[A-Za-z0-9_-]{80,400}", entropy=3.7),
    kind("hubspot_token", "HubSpot private app token", "pat-(?:na|eu|ap)[0-9]-" + UUID, "pat-na", "pat-eu", "pat-ap"),
)
# fmt: on
"""One row per format; a prefix that only a secret has is what makes a row quiet."""


# fmt: off
AI = (
    kind("openai_api_key", "OpenAI API key", "sk-(?:proj|svcacct|admin|None|service)-" + word(20, 250), "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-none-", "sk-service-", severity="critical", entropy=3.0, check="has_digit"),
    kind("openai_api_key/marked", "OpenAI API key", "sk-" + alnum(20) + "T3BlbkFJ" + alnum(20), "t3blbkfj", severity="critical"),
    kind("anthropic_api_key", "Anthropic API key", "sk-ant-[a-z]{3,8}[0-9]{2}-" + word(20, 250), "sk-ant-", severity="critical", entropy=3.0),
    kind("openrouter_key", "OpenRouter API key", "sk-or-(?:v[0-9]-)?" + hexa(64), "sk-or-"),
    kind("langfuse_key", "Langfuse secret key", "sk-lf-" + UUID),
    kind("sk_api_key", "API key of the sk- family (OpenAI, DeepSeek, h2oGPTe, LiteLLM, ...)", "sk-" + word(18, 200), entropy=3.0, check="sk", rank=1),
    kind("huggingface_token", "Hugging Face token", "hf_" + alnum(30, 40), entropy=3.3, check="jumbled"),
    kind("huggingface_token/org", "Hugging Face token", "api_org_" + alnum(30, 40), entropy=3.3, check="jumbled"),
    kind("groq_api_key", "Groq API key", "gsk_" + alnum(40, 60)),
    kind("xai_api_key", "xAI API key", "xai-" + alnum(70, 90)),
    kind("perplexity_api_key", "Perplexity API key", "pplx-" + alnum(40, 64)),
    kind("replicate_token", "Replicate token", "r8_" + alnum(36, 40), entropy=3.3),
    kind("fireworks_api_key", "Fireworks AI key", "fw_" + alnum(22, 40), entropy=3.3, check="mixed"),
    kind("together_api_key", "Together AI key", "tgp_v1_" + word(40, 60)),
    kind("cerebras_api_key", "Cerebras API key", "csk-[a-z0-9]{40,60}"),
    kind("nvidia_api_key", "NVIDIA API key", "nvapi-" + word(60, 70)),
    kind("fal_key", "fal.ai key", UUID + ":" + hexa(32), "-", gate="-[0-9a-f]{12}:[0-9a-f]{8}"),
    kind("langsmith_key", "LangSmith key", "lsv2_(?:pt|sk)_" + hexa(32) + "_" + hexa(10)),
    kind("pinecone_key", "Pinecone API key", "pcsk_" + alnum(5, 6) + "_" + alnum(60, 66)),
    kind("jina_api_key", "Jina AI key", "jina_" + word(60, 64)),
    kind("tavily_key", "Tavily API key", "tvly-" + word(28, 48), entropy=3.3),
    kind("voyage_key", "Voyage AI key", "pa-" + word(43), "pa-", entropy=4.0, check="mixed"),
    kind("elevenlabs_key", "ElevenLabs key", "sk_" + hexa(48)),
    kind("wandb_key", "Weights & Biases key", "wandb_v1_" + word(60, 90)),
)

SERVICES = (
    kind("stripe_key", "Stripe secret or restricted key", "[sr]k_(?:live|test|prod)_" + alnum(10, 250), "k_live_", "k_test_", "k_prod_", severity="critical", check="has_digit"),
    kind("stripe_webhook_secret", "Stripe webhook secret", "whsec_[A-Za-z0-9+/]{24,64}={0,2}"),
    kind("square_token", "Square access token or secret", "sq0(?:atp|csp|idp)-" + word(22, 43), "sq0atp-", "sq0csp-", "sq0idp-", severity="critical"),
    kind("square_token/eaaa", "Square access token or secret", "EAAA[A-Za-z0-9_-]{22,60}", entropy=4.0, check="mixed"),
    kind("paypal_braintree_token", "PayPal Braintree token", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$" + hexa(32), "access_token$", severity="critical"),
    kind("adyen_key", "Adyen API key", "AQE[A-Za-z0-9]{3,8}[A-Za-z0-9+/=_-]{80,300}", entropy=4.0, closed=False),
    kind("razorpay_key", "Razorpay key", "rzp_(?:live|test)_" + alnum(14), check="has_digit"),
    kind("flutterwave_key", "Flutterwave secret key", "FLWSECK(?:_TEST)?-[0-9A-Za-z]{12,40}-X"),
    kind("plaid_token", "Plaid access token", "access-(?:sandbox|development|production)-" + UUID, severity="critical"),
    kind("gocardless_token", "GoCardless token", "live_" + word(40), entropy=3.7, check="mixed"),
    kind("shopify_token", "Shopify token or shared secret", "shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}", "shpat_", "shpca_", "shppa_", "shpss_"),
    kind("twilio_api_key", "Twilio API key", "SK[0-9A-Fa-f]{32}", "sk", entropy=3.0),
    kind("sendgrid_key", "SendGrid API key", r"SG\." + word(16, 24) + r"\." + word(38, 50), "sg.", severity="critical"),
    kind("mailgun_key", "Mailgun key", "key-" + hexa(32)),
    kind("mailgun_key/signing", "Mailgun key", hexa(32) + "-" + hexa(8) + "-" + hexa(8), "-", entropy=3.3),
    kind("mailchimp_key", "Mailchimp API key", hexa(32) + "-us[0-9]{1,2}", "-us", entropy=3.0),
    kind("brevo_key", "Brevo (Sendinblue) key", "x(?:keysib|smtpsib)-" + hexa(64) + "-" + alnum(16), "xkeysib-", "xsmtpsib-"),
    kind("resend_key", "Resend API key", "re_" + alnum(8) + "_" + alnum(24), entropy=3.5),
    kind("mapbox_secret_token", "Mapbox secret token", r"sk\.eyJ[A-Za-z0-9_-]{20,200}\.[A-Za-z0-9_-]{20,40}", "sk.eyj"),
    kind("maxmind_key", "MaxMind licence key", alnum(6) + "_" + alnum(29) + "_mmk", "_mmk"),
)

_BEGIN_PRIVATE = r"-{4,5} ?BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}"

KEY_FILES = (
    kind("gcp_service_account_key", "Private key of a Google service account", r"\"private_key\"\s{0,4}:\s{0,4}\"(" + _BEGIN_PRIVATE + ")", "private_key", severity="critical", entropy=0, check="google_pem", group=1, closed=False, rank=3),
    kind("private_key", "Private key: PKCS#1, PKCS#8, EC, DSA, OpenSSH, encrypted, PGP, SSH2", _BEGIN_PRIVATE, "private key", severity="critical", entropy=0, check="pem", closed=False),
    kind("private_key/putty", "Private key: PKCS#1, PKCS#8, EC, DSA, OpenSSH, encrypted, PGP, SSH2", "PuTTY-User-Key-File-[23]:", severity="critical", entropy=0, check="putty", closed=False),
    kind("age_secret_key", "age secret key", "AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}", severity="critical"),
    kind("certificate", "Certificate (only with flag_certificates)", "-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----", severity="medium", entropy=0, check="pem", closed=False),
    kind("jwt", "JSON Web Token", r"eyJ[A-Za-z0-9_-]{8,900}\.[A-Za-z0-9_-]{4,90}", entropy=0, check="jwt", closed=False),
    kind("windows_activation_key", "Windows or Office product key", "(?:[A-Z0-9]{5}-){4}[A-Z0-9]{5}|(?:[a-z0-9]{5}-){4}[a-z0-9]{5}", "-", severity="medium", check="product_key"),
)

_SCHEMES = "(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|oracle|clickhouse|cockroachdb|snowflake|kafka|nats|ldaps?|s?ftps?|smtps?|imaps?|mqtts?|cassandra|neo4j|bolt|couchdb|influxdb|elasticsearch|vertica|redshift|teradata|db2|trino|presto|hive|ssh|socks5)"

_USER = "[!#-&(-.0-9;=?A-~]"
_PRINTABLE = "[!#-&(-.0-;=?A-~]"
_ADDRESS_GATE = f"://{_USER}*:{_PRINTABLE}+@"
_SEMICOLON_FREE = "[!#-&(-:=?-~]"

CONTEXTUAL = (
    kind("connection_string", "Database or broker address with a password", "(?i:" + _SCHEMES + r"(?:\+[a-z0-9]{1,12})?)://" + _USER + "{0,64}:" + _PRINTABLE + "{1,128}@", "://", gate=_ADDRESS_GATE, severity="critical", entropy=0, check="address", closed=False, rank=1),
    kind("connection_string/pairs", "Database or broker address with a password", r";\s{0,2}(?:password|pwd)\s?=\s?(" + _SEMICOLON_FREE + "{3,128})", "password", "pwd", severity="critical", entropy=0, check="pairs", group=1, ignore_case=True, closed=False, rank=1),
    kind("basic_auth_url", "Web address with a password", "(?i:https?|git|svn)://" + _USER + "{1,64}:" + _PRINTABLE + r"{3,128}@[A-Za-z0-9\[]", "://", gate=_ADDRESS_GATE, entropy=0, check="address", closed=False, rank=1),
    kind("basic_auth_header", "HTTP basic credentials", r"(?i:\bbasic )([A-Za-z0-9+/]{8,400}={0,2})", "basic", entropy=0, check="basic", group=1, rank=1),
    kind("basic_auth_command", "Credentials on a command line", r" (?:-u|--user)[ =][\"']?[A-Za-z0-9._@+-]{1,64}:([!#-&(-~]{3,128})", "-u", "--user", entropy=0, check="curl", group=1, closed=False, rank=1),
    kind("bearer_token", "HTTP bearer token", r"(?i:\bbearer )([A-Za-z0-9._~+/-]{20,900}={0,2})", "bearer", entropy=3.5, check="mixed", group=1, rank=0),
)
# fmt: on


ROWS: tuple[SecretKind, ...] = (
    *CLOUD,
    *DEVELOPMENT,
    *AI,
    *SERVICES,
    *FORMATS,
    *KEY_FILES,
    *CONTEXTUAL,
    *ASSIGNMENTS,
)
PATTERNS: tuple[Pattern, ...] = tuple(row.pattern for row in ROWS)
"""The patterns the engine looks for; `guardrail bench patterns` measures them."""


def _kinds() -> dict[str, tuple[str, Severity]]:
    known: dict[str, tuple[str, Severity]] = {}
    for row in (*CLOUD, *DEVELOPMENT, *AI, *SERVICES, *FORMATS, *KEY_FILES, *CONTEXTUAL):
        known.setdefault(row.id, (row.what, row.severity))
    for owner in (*OWNERS, PASSWORD, GENERIC):
        known.setdefault(owner.kind, (owner.what, owner.severity))
    return known


KINDS: dict[str, tuple[str, Severity]] = _kinds()
"""Kind -> (what it is, severity): the published table."""
