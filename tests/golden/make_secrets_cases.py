"""Write secrets_cases.jsonl: made-up secrets of every kind in every surrounding, and innocents.

    python tests/golden/make_secrets_cases.py > tests/golden/secrets_cases.jsonl

The formats here are written down apart from the detector's patterns; those of `secret_forms` come
from its own tables and guard against regressions only. Every value is random from a fixed seed. The character `¦` cuts every secret into pieces,
so that the file holds no string a push scanner takes for a key; `secret_cases.load` joins them.
"""

# Cases are one per line, whatever their length.
# ruff: noqa: E501

from __future__ import annotations

import base64
import json
import random
import string
import sys
import uuid
from collections.abc import Iterator
from typing import Any

try:
    from tests.golden.secret_forms import FORMS
    from tests.golden.secret_forms import NAMED as FURTHER
except ModuleNotFoundError:  # run as a script
    from secret_forms import FORMS
    from secret_forms import NAMED as FURTHER

CUT = "¦"
ALPHABETS = {
    "w": string.ascii_letters + string.digits,
    "x": "0123456789abcdef",
    "X": "0123456789ABCDEF",
    "t": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
    "u": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "d": string.digits,
    "q": string.ascii_lowercase + "234567",
    "k": "BCDFGHJKMPQRTVWXY2346789",
    "z": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}

TOKENS = {
    "aws_access_key_id": ["AKIA{u16}", "ASIA{u16}"],
    "aws_bedrock_key": ["ABSK{b120}="],
    "aws_mws_key": ["amzn.mws.{uuid}"],
    "gcp_api_key": ["AIza{t34}w"],
    "gcp_oauth_client_secret": ["GOCSPX-{w28}"],
    "gcp_oauth_token": ["ya29.a0{w120}"],
    "gcp_oauth_refresh_token": ["1//0{w60}"],
    "azure_client_secret": ["{w3}8Q~{w34}"],
    "azure_api_key": ["{w52}JQQJ99{w26}"],
    "azure_devops_token": ["{w76}AZDO{w4}"],
    "alibaba_access_key_id": ["LTAI{w20}"],
    "tencent_secret_id": ["AKID{w32}"],
    "yandex_api_key": ["AQVN{w36}"],
    "digitalocean_token": ["dop_v1_{x64}", "doo_v1_{x64}"],
    "heroku_token": ["HRKU-AA{w58}"],
    "cloudflare_origin_ca_key": ["v1.0-{x24}-{x146}"],
    "netlify_token": ["nfp_{w36}"],
    "vercel_token": ["vcp_{w56}"],
    "fly_token": ["fo1_{w43}"],
    "supabase_token": ["sbp_{x40}"],
    "supabase_secret_key": ["sb_secret_{w31}"],
    "planetscale_credential": ["pscale_tkn_{w43}", "pscale_pw_{w43}"],
    "neon_token": ["napi_{l64}"],
    "vault_token": ["hvs.CAES{w90}", "hvb.{w120}"],
    "terraform_cloud_token": ["{w14}.atlasv1.{w67}"],
    "pulumi_token": ["pul-{x40}"],
    "doppler_token": ["dp.pt.{w43}", "dp.st.prd.{w43}"],
    "infracost_key": ["ico-{w32}"],
    "tailscale_key": ["tskey-auth-{w12}CNTRL-{w32}"],
    "openshift_token": ["sha256~{w43}"],
    "dynatrace_token": ["dt0c01.{u24}.{u64}"],
    "grafana_cloud_token": ["glc_{b80}="],
    "grafana_service_token": ["glsa_{w32}_{x8}"],
    "new_relic_key": ["NRAK-{u27}", "NRJS-{x19}"],
    "sentry_token": ["sntryu_{x64}", "sntrys_eyJ{b120}"],
    "databricks_token": ["dapi{x32}", "dapi{x32}-2"],
    "prefect_token": ["pnu_{w36}"],
    "harness_token": ["pat.{w22}.{x24}.{w20}"],
    "octopus_key": ["API-{u26}"],
    "onepassword_secret_key": ["A3-{u6}-{u11}-{u5}-{u5}-{u5}"],
    "github_token": ["ghp_{w36}", "gho_{w36}", "ghs_{w36}", "ghu_{w36}", "ghr_{w76}"],
    "github_fine_grained_token": ["github_pat_{w22}_{w59}"],
    "gitlab_token": ["glpat-{w20}", "gldt-{w20}", "glrt-{w20}", "glptt-{x40}", "glcbt-1a_{w20}"],
    "gitlab_runner_token": ["GR1348941{w20}"],
    "bitbucket_app_password": ["ATBB{w32}"],
    "atlassian_token": ["ATATT3xFfGF0{t172}w{X8}"],
    "npm_token": ["npm_{w36}"],
    "pypi_token": ["pypi-AgEIcHlwaS5vcmc{w150}"],
    "rubygems_key": ["rubygems_{x48}"],
    "crates_token": ["cio{w32}"],
    "nuget_key": ["oy2{l43}"],
    "clojars_token": ["CLOJARS_{l60}"],
    "docker_token": ["dckr_pat_{w27}"],
    "artifactory_key": ["AKCp{w69}", "cmVmd{w59}"],
    "circleci_token": ["CCIPAT_{w22}_{x40}"],
    "buildkite_token": ["bkua_{x40}"],
    "sonarqube_token": ["squ_{x40}", "sqp_{x40}"],
    "sourcegraph_token": ["sgp_{x16}_{x40}"],
    "readme_key": ["rdme_{l70}"],
    "postman_key": ["PMAK-{x24}-{x34}"],
    "rapidapi_key": ["{l10}msh{l15}p1{l6}jsn{l12}"],
    "launchdarkly_key": ["sdk-{uuid}"],
    "figma_token": ["figd_{w40}"],
    "linear_key": ["lin_api_{w40}"],
    "notion_token": ["secret_{w43}", "ntn_{d11}{w35}"],
    "airtable_token": ["pat{w14}.{x64}"],
    "asana_token": ["1/{d16}:{x32}"],
    "contentful_token": ["CFPAT-{w43}"],
    "typeform_token": ["tfp_{w59}"],
    "dropbox_token": ["sl.{w138}"],
    "frameio_token": ["fio-u-{w64}"],
    "adobe_client_secret": ["p8e-{w32}"],
    "shippo_token": ["shippo_live_{x40}"],
    "easypost_key": ["EZAK{w54}"],
    "duffel_token": ["duffel_live_{w43}"],
    "slack_token": ["xoxb-{d12}-{d13}-{w24}", "xoxp-{d11}-{d11}-{d12}-{x32}", "xoxe.xoxp-1-{w120}"],
    "slack_app_token": ["xapp-1-A{u10}-{d13}-{x64}"],
    "telegram_token": ["{d9}1:AA{w33}"],
    "twitch_token": ["oauth:{l30}"],
    "twitter_bearer": ["AAAAAAAAAAAAAAAAAAAAA{w80}"],
    "facebook_token": ["EAA{w160}"],
    "instagram_token": ["IGQ{w150}"],
    "hubspot_token": ["pat-na1-{uuid}"],
    "openai_api_key": [
        "sk-proj-{w48}",
        "sk-{w20}T3BlbkFJ{w20}",
        "sk-svcacct-{t80}w",
        "sk-admin-{w60}",
    ],
    "anthropic_api_key": ["sk-ant-api03-{t92}wAA", "sk-ant-admin01-{w93}AA"],
    "openrouter_key": ["sk-or-v1-{x64}"],
    "langfuse_key": ["sk-lf-{uuid}"],
    "sk_api_key": ["sk-{x32}", "sk-{w48}", "sk-{w22}"],
    "huggingface_token": ["hf_{w34}"],
    "groq_api_key": ["gsk_{w52}"],
    "xai_api_key": ["xai-{w80}"],
    "perplexity_api_key": ["pplx-{w48}"],
    "replicate_token": ["r8_{w37}"],
    "fireworks_api_key": ["fw_{w24}"],
    "cerebras_api_key": ["csk-{l48}"],
    "nvidia_api_key": ["nvapi-{w64}"],
    "langsmith_key": ["lsv2_pt_{x32}_{x10}"],
    "pinecone_key": ["pcsk_{w5}_{w63}"],
    "jina_api_key": ["jina_{x32}{w28}"],
    "tavily_key": ["tvly-dev-{w32}"],
    "elevenlabs_key": ["sk_{x48}"],
    "stripe_key": ["sk_live_{w24}", "rk_live_{w24}", "sk_test_{w99}"],
    "stripe_webhook_secret": ["whsec_{w32}"],
    "square_token": ["sq0atp-{w22}", "sq0csp-{w43}"],
    "paypal_braintree_token": ["access_token$production${l16}${x32}"],
    "razorpay_key": ["rzp_live_{w14}"],
    "flutterwave_key": ["FLWSECK_TEST-{x32}-X"],
    "plaid_token": ["access-production-{uuid}"],
    "shopify_token": ["shpat_{x32}", "shpss_{x32}"],
    "twilio_api_key": ["SK{x32}"],
    "sendgrid_key": ["SG.{w22}.{w43}"],
    "mailgun_key": ["key-{x32}", "{x32}-{x8}-{x8}"],
    "mailchimp_key": ["{x32}-us21"],
    "brevo_key": ["xkeysib-{x64}-{w16}"],
    "resend_key": ["re_{w8}_{w24}"],
    "maxmind_key": ["{w6}_{w29}_mmk"],
    "age_secret_key": ["AGE-SECRET-KEY-1{z58}"],
    "windows_activation_key": ["{k5}-{k5}-{k5}-{k5}-{k5}", "A0I1O-{u5}-{u5}-{u5}-{u5}"],
    "jwt": ["{jwt}"],
    "private_key": ["{pem}"],
}
"""Kind -> forms that stand alone."""

FRAMES = (
    "{}",
    "{} is the one to use.",
    "Please set it to {}",
    "I found this in the passage: {}, which should be rotated.",
    '{{"config": {{"value": "{}", "region": "eu"}}}}',
    "Run this:\n\n```bash\nexport SERVICE_VAR={}\ndeploy --all\n```\n",
    "DEBUG=1\nSERVICE_VAR={}\nPORT=8080\n",
    "https://api.service.test/v1/items?value={}&page=2",
    "| name | value |\n|---|---|\n| service | `{}` |",
    "The value (**{}**) belongs to the staging cluster.",
    "<value>{}</value>",
    "first line\\n{}\\nlast line",
    "値は{}です。",
    "The value:\n{}",
)
BLOCK_FRAMES = tuple(f for f in FRAMES if "?" not in f and "`" not in f and '{{"' not in f)

NAMED = {
    "aws_secret_access_key": ("aws_secret_access_key", "{b39}w"),
    "aws_session_token": ("aws_session_token", "{b200}"),
    "azure_storage_key": ("AZURE_STORAGE_ACCOUNT_KEY", "{b86}=="),
    "datadog_key": ("datadog_api_key", "{x32}"),
    "heroku_token": ("heroku_api_key", "{uuid}"),
    "cloudflare_key": ("cloudflare_api_token", "{w40}"),
    "twilio_auth_token": ("twilio_auth_token", "{x32}"),
    "h2o_api_key": ("h2ogpte_api_key", "sk-{w48}"),
    "okta_token": ("okta_api_token", "00{w40}"),
    "snyk_token": ("snyk_token", "{uuid}"),
    "algolia_key": ("algolia_admin_key", "{x32}"),
    "mistral_api_key": ("mistral_api_key", "{w32}"),
    "cohere_api_key": ("cohere_api_key", "{w40}"),
    "wandb_key": ("wandb_api_key", "{x40}"),
    "discord_client_secret": ("discord_client_secret", "{w32}"),
    "facebook_app_secret": ("facebook_app_secret", "{x32}"),
    "spotify_secret": ("spotify_client_secret", "{x32}"),
    "trello_token": ("trello_token", "{x64}"),
    "zendesk_token": ("zendesk_api_token", "{w40}"),
    "mailjet_key": ("mailjet_secret_key", "{x32}"),
    "confluent_secret": ("confluent_api_secret", "{b64}"),
    "ethereum_private_key": ("wallet_private_key", "0x{x64}"),
    "generic_secret": ("internal_api_key", "{w24}"),
    "password": ("db_password", "{w6}!{w5}7"),
}
"""Kind -> a name that gives it away and the form of the value."""

NAMED_FRAMES = (
    "{name}={value}",
    "export {NAME}='{value}'",
    '{{"{name}": "{value}"}}',
    "{name}: {value}\nregion: eu",
    "The {words} is {value}.",
    "Your **{words}**: `{value}`",
    'os.environ["{NAME}"] = "{value}"',
    "<{name}>{value}</{name}>",
)

PLACED = (
    ("connection_string", "", "postgres://app:{w14}@db.internal:5432/orders", ""),
    ("connection_string", "DATABASE_URL=", "mysql+pymysql://root:{w10}!@10.0.0.5/shop", ""),
    ("connection_string", "'", "mongodb+srv://svc:{w16}@cluster0.abcde.mongodb.net/?w=1", "'"),
    ("connection_string", "at ", "redis://:{w20}@cache:6379/0", "."),
    ("connection_string", "Use ", "amqp://worker:{w12}@mq:5672/vhost", " to connect."),
    (
        "connection_string",
        "",
        "Server=tcp:x.database.windows.net;User ID=sa;Password={w12}#;Encrypt=True",
        ";",
    ),
    ("connection_string", 'url="', "jdbc:sqlserver://h;user=sa;password={w12}", '"'),
    ("basic_auth_url", "", "https://deploy:{w16}@git.service.test/repo.git", ""),
    ("basic_auth_url", "Open ", "http://admin:{w8}9@192.168.1.1/", " in a browser"),
    ("basic_auth_url", "git clone ", "https://ci-bot:{w20}@host.test/x", ""),
    ("basic_auth_command", "curl -u admin:", "{w10}1", " https://service.test/v1"),
    ("basic_auth_command", "curl --user 'bob:", "{w10}1", "' https://service.test"),
    (
        "azure_storage_key",
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=",
        "{b86}==",
        ";EndpointSuffix=core.windows.net",
    ),
    (
        "azure_shared_access_key",
        "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=",
        "{b43}=",
        "",
    ),
    (
        "azure_sas_token",
        "https://x.blob.core.windows.net/c?sv=2022-11-02&ss=b&se=2030-01-01&sp=r&sig=",
        "{w43}%3D",
        "",
    ),
    ("azure_sas_token", "?sig=", "{w43}%3D", "&se=2030-01-01T00:00:00Z&sv=2020-08-04&sr=b"),
    ("slack_webhook", "https://", "hooks.slack.com/services/T{u8}/B{u8}/{w24}", ""),
    ("slack_webhook", "POST to https://", "hooks.slack.com/services/T{u10}/B{u10}/{w24}", "."),
    ("discord_webhook", "https://", "discord.com/api/webhooks/{d18}/{w68}", ""),
    ("bearer_token", "Authorization: Bearer ", "{w40}", ""),
    ("bearer_token", 'curl -H "Authorization: Bearer ', "{w64}", '" https://service.test'),
    ("basic_auth_header", "Authorization: Basic ", "{basic}", ""),
    ("docker_auth", '{"auths": {"r.test": {"auth": "', "{basic}", '"}}}'),
    ("npm_token", "//registry.service.test/:_authToken=", "{uuid}", ""),
    ("password", "psql --password ", "{w9}1", " -h db"),
    ("password", "machine git.test login bob password ", "{w10}2", ""),
    ("password", "The admin password for the printer is ", "{w6}#{w4}3", ". Keep it safe."),
    ("password", "| password | ", "{w8}$4", " |"),
    ("password", 'spring.datasource.password="', "{w4}&{w4}?5", '"'),
    ("generic_secret", "--api-key ", "{w32}", " run"),
    ("generic_secret", "https://api.test/v1?access_token=", "{w32}", "&x=1"),
    ("generic_secret", "SECRET_KEY = 'django-insecure-", "", ""),
    ("cloudinary_url", "cloudinary://123456789012345:", "{w27}", "@demo"),
    ("mapbox_secret_token", "", "sk.eyJ1Ijoi{w50}.{w22}", ""),
    (
        "teams_webhook",
        "https://",
        "acme.webhook.office.com/webhookb2/{uuid}@{uuid}/IncomingWebhook/{x32}/{uuid}",
        "",
    ),
)

PEM_KINDS = ("RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "", "PGP")

INNOCENT = (
    "We fit the model with sk-learn and sk-learn-intelex 2023.1; import sklearn.",
    "The task-runner calls disk-cleanup-2024 and risk-assessment-v2 every night.",
    '<div class="sk-toggleable__content sk-estimator-id-12 sk-parallel-item">',
    "ask-me-anything-2023 and desk-booking-system-v2 are packages.",
    "The request id is 3f2504e0-4f89-41d3-9a0c-0305e82c3301.",
    "session_id=3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    '{"id": "550e8400-e29b-41d4-a716-446655440000", "name": "x"}',
    "md5 of the file: 9e107d9d372bb6826bd81d3542a419d6",
    "sha1 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12 matches",
    "sha256:d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592",
    "commit 8f3b2c1d4e5f60718293a4b5c6d7e8f901234567 fixes the bug",
    "Merge 1a2b3c4 into main (see 9f8e7d6c5b4a39281706f5e4d3c2b1a098765432)",
    "password_hash = 5f4dcc3b5aa765d61d8327deb882cf99",
    "checksum: 0x8f14e45fceea167a5a36dedd4bea2543",
    '<script src="x.js" integrity="sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC"></script>',
    '"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg=="',
    "![logo](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==)",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\nRTESMBAGA1UEChMJQmFsdGltb3JlMRMwEQYDVQQLEwpDeWJlclRydXN0MSIwIAYD\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo\n-----END PUBLIC KEY-----",
    "-----BEGIN RSA PUBLIC KEY-----\nMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gunVTLw\n-----END RSA PUBLIC KEY-----",
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\nmQENBFzoFhMBCADNc5lVgEbXDoAhMPvwVkJNkcWcW2T6n4LE2sXr0Oa1bSGvhkBV\n-----END PGP PUBLIC KEY BLOCK-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8rY2vQ8cX0n6tq1bN4mVw7ZkLs5eHd3uGfPpRoTtYk bob@host",
    "A key file starts with -----BEGIN RSA PRIVATE KEY----- and ends with -----END RSA PRIVATE KEY-----.",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n<your key>\n-----END PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY----- is the first line of the file that ssh-keygen writes by default.",
    "api_key=<YOUR_API_KEY_1>",
    "api_key = 'YOUR_API_KEY'",
    "API_KEY=xxxxxxxxxxxxxxxxxxxxxxxx",
    "OPENAI_API_KEY=sk-¦xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx1",
    "OPENAI_API_KEY=sk-...",
    "token: ****************1234",
    "password: ********1",
    "client_secret: REPLACE_WITH_CLIENT_SECRET_1",
    "aws_access_key_id = AKIA¦IOSFODNN7EXAMPLE",
    "aws_secret_access_key = wJalr¦XUtnFEMI/K7¦MDENG/bPxRfiCYEXAMPLEKEY",
    "AKIA¦XXXXXXXXXXXXXXXX",
    "password: changeme123",
    "secret: <insert-secret-2>",
    "API_KEY=${API_KEY_2}",
    "password: {{ vault_db_password_1 }}",
    "token = os.environ['SERVICE_TOKEN_2']",
    'api_key=os.getenv("API_KEY_V2")',
    "const key = process.env.API_KEY_2;",
    "password = $(cat /run/secrets/db_password_1)",
    "secret_key: ${{ secrets.AWS_SECRET_1 }}",
    "password=%DB_PASSWORD1%",
    "password = getpass.getpass('Password 1: ')",
    "token = request.headers['X-Auth-Token-2']",
    "access_token = self.client.token_v2",
    "secret = config.secret_key_2",
    "token=new_token_2",
    "password = hash_password(user_input_1)",
    "password: must contain at least 8 characters, 1 digit and 1 symbol",
    "Password: 8-16 characters",
    "The password is case-sensitive and at least 12 characters long.",
    "Your token expires on 2024-01-01T00:00:00Z.",
    "token_count: 1234567890123456",
    "max_tokens=4096, temperature=0.7",
    "Token: 2019-10-12",
    "secret: /run/secrets/db_password_1",
    "The secret is https://service.test/docs/secret-1",
    "password reset link: https://service.test/reset/step2",
    "primary_key = 'a8f5f167f44f4964e6c998dee827110c'",
    "cache key: a8f5f167f44f4964e6c998dee827110c",
    "public_key: MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEv1a2b3c4d5e6f7",
    "key_id: 1234567890abcdef1234567890abcdef",
    'etag: "33a64df551425fcc55e4d42a148795d9f25f89d4"',
    "postgres://user:password@localhost:5432/db",
    "mysql://root:<password>@127.0.0.1/test",
    "mongodb://$USER:$PASSWORD@host/db",
    "https://user:pass@example.com/",
    "redis://localhost:6379/0",
    "https://service.test:8443/path@2x.png",
    "Authorization: Bearer <token>",
    "Authorization: Bearer YOUR_ACCESS_TOKEN",
    "Authorization: Basic dXNlcjpwYXNzd29yZA==",
    "curl -u user:password https://service.test",
    "The bearer bonds of 1923 were redeemed by the central bank.",
    "Basic training lasts ten weeks; basic understanding is assumed.",
    "The part number is 12345-67890-12345-67890-12345.",
    "HELLO-WORLD-THESE-WORDS-ABOUT",
    "ISBN 978-3-16-148410-0, order 4711-0815-2024-0001",
    "eyJust kidding: this is no token. eyJ stands for an encoded brace.",
    "SG. 1234 and SK 5678 are two bus lines in the city.",
    "hf_transfer and hf_hub_download are functions of the library.",
    "npm_config_registry and npm_lifecycle_event are set by npm.",
    "github_pat_ is the prefix of fine-grained tokens, ghp_ of classic ones.",
    "Set xoxb- tokens in the app settings; xapp- tokens are for sockets.",
    "glpat- tokens can be limited to a project and to an expiry date.",
    "The stripe publishable key is pk_live¦_51H8x2yKZvKYlo2CabcdEFGH and may be public.",
    "Account SID: AC¦0123456789abcdef0123456789abcdef",
    "Key features: a 12-hour battery and a 6.1-inch display.",
    "The key is 42, the answer is 7.",
    "The secret of his success was 10,000 hours of practice.",
    "Their secret: 3 cups of flour, 2 eggs, 1/2 cup of milk.",
    "He was the token 1990s character; token: 19th-century reference.",
    "The pass rate was 45.6% (password-protected files excluded).",
    "The passport number field accepts 9 characters.",
    "Access token lifetimes: 3600s for users, 86400s for services.",
    "The keyboard: ISO-8859-1 layout; keys: 104.",
    "Credentials: PhD (2004), M.D. (2009), FRCP (2015).",
    "Secretariat: 1970-1989; secretary: 2 terms.",
    "The access key is located at position 12B-34 of the rack.",
    "Version 1.2.3-beta.4+build.5678 of the token library.",
    "CVE-2021-44228 and GHSA-jfh8-c2jp-5v3q describe it.",
    "DOI 10.1038/s41586-020-2649-2, arXiv:1706.03762, PMID 32939066",
    "Bitcoin genesis block 000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f",
    "docker.io/library/nginx@sha256:0a399eb16751829e1af26fea27b20c3ec28d7ab1fb72182879dcae1cca21206a",
    "The gene BRCA1-185delAG and the cell line HEK293T-17-ACE2 were used.",
    "AKIA is the prefix of long-term keys, ASIA of temporary ones; ASIA includes 48 countries.",
    "i18n-l10n-a11y-k8s-o11y are numeronyms.",
    "base64 of nothing: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
    "token === undefined || token2 !== null",
    "if (password.length < 8) { return error1; }",
    "SELECT password, salt2 FROM users WHERE id = 12",
    "pip install huggingface-hub==0.23.4 openai==1.35.3 sk-video==1.1.10",
)

HARD = (
    ("password", "The password is ", "correct-horse-battery-staple", "."),
    ("windows_activation_key", "key ", "{klower}", " activates it"),
    ("generic_secret", "api key: ", "{uuid}", ""),
)
"""Known limits, reported with the rest and counted against recall."""


class Maker:
    """Fills forms with random characters from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - made-up values, the same every time

    def run(self, alphabet: str, length: int) -> str:
        """Return random characters with at least one digit, letter and so on where possible."""
        return "".join(self._random.choice(ALPHABETS[alphabet]) for _ in range(length))

    def fill(self, form: str) -> str:
        """Return a form such as `ghp_{w36}` with its runs filled."""
        out = ""
        while form:
            head, brace, form = form.partition("{")
            out += head
            if brace:
                name, _, form = form.partition("}")
                out += self._special(name) or self.run(name[0], int(name[1:]))
        return out

    def _special(self, name: str) -> str:
        if name == "uuid":
            return str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        if name == "jwt":
            parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": self.run("d", 10), "name": "x"})
            coded = [
                base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts
            ]
            return ".".join((*coded, self.run("w", 43)))
        if name == "basic":
            return base64.b64encode(f"bob:{self.run('w', 12)}".encode()).decode()
        if name == "klower":
            return "-".join(self.run("k", 5) for _ in range(5)).lower()
        return self._pem() if name == "pem" else ""

    def _pem(self) -> str:
        kind = self._random.choice(PEM_KINDS)
        label = "PGP PRIVATE KEY BLOCK" if kind == "PGP" else f"{kind}PRIVATE KEY"
        body = "\n".join(self.run("b", 64) for _ in range(4))
        return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----"


def case(before: str, secret: str, after: str, kind: str) -> dict[str, Any]:
    """Return one record; the secret is cut into pieces of at most five characters."""
    pieces = CUT.join(secret[i : i + 5] for i in range(0, len(secret), 5))
    start = len(before.replace(CUT, ""))
    span = {"start": start, "end": start + len(secret), "type": kind}
    return {"text": before + pieces + after, "spans": [span]}


def framed(frame: str, secret: str, kind: str) -> dict[str, Any]:
    """Return one record with the secret where the frame has its braces."""
    before, _, after = frame.format("\0").partition("\0")
    return case(before, secret, after, kind)


def cases() -> list[dict[str, Any]]:
    """Return every record, always the same."""
    maker, out, turn = Maker(20240607), [], 0
    for kind, forms in TOKENS.items():
        for index in range(max(2, len(forms))):
            frames = BLOCK_FRAMES if kind == "private_key" else FRAMES
            secret = maker.fill(forms[index % len(forms)])
            out.append(framed(frames[turn % len(frames)], secret, kind))
            turn += 1
    for frame in BLOCK_FRAMES:
        out.append(framed(frame, maker.fill("{pem}"), "private_key"))
    for number, (kind, (name, form)) in enumerate(NAMED.items()):
        for offset in (0, 3, 5):
            frame = NAMED_FRAMES[(number + offset) % len(NAMED_FRAMES)]
            names = {"name": name, "NAME": name.upper(), "words": name.replace("_", " ")}
            before, _, after = frame.format(value="\0", **names).partition("\0")
            out.append(case(before, maker.fill(form), after, kind))
    for kind, before, form, after in (*PLACED, *HARD):
        if form:
            out.append(case(before, maker.fill(form), after, kind))
    pair = case("", maker.fill("AKIA{u16}"), ",", "aws_access_key_id")
    key = case(pair["text"], maker.fill("{b39}w"), "\n", "aws_secret_access_key")
    out.append({"text": key["text"], "spans": [*pair["spans"], *key["spans"]]})
    out.extend({"text": text, "spans": []} for text in INNOCENT)
    return [*out, *further()]


def further() -> Iterator[dict[str, Any]]:
    """Yield a secret of each further kind, and beside each one something that only looks like it.

    The near miss of a form is its beginning, too short to open anything; that of a named value is
    the same value as a checksum.
    """
    maker = Maker(20261123)
    frames = [frame for frame in FRAMES if "\\n" not in frame]
    for turn, (kind, forms) in enumerate(FORMS.items()):
        for form in forms:
            yield framed(frames[turn % len(frames)], maker.fill(form), kind)
        head = forms[0].partition("{")[0]
        near = CUT.join((head[:4], head[4:], maker.run("x", 5)))
        yield {"text": f"Keys begin with {near} and so on.", "spans": []}
    for turn, (kind, (name, form)) in enumerate(FURTHER.items()):
        frame = NAMED_FRAMES[turn % len(NAMED_FRAMES)]
        value = maker.fill(form)
        names = {"name": name, "NAME": name.upper(), "words": name.replace("_", " ")}
        before, _, after = frame.format(value="\0", **names).partition("\0")
        yield case(before, value, after, kind)
        plain = case(f"The {names['words']} checksum is ", value, ".", kind)
        yield {"text": plain["text"], "spans": []}


if __name__ == "__main__":
    for record in cases():
        sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
