"""Token formats of AI, payment, mail and messaging services, of signed tokens and of key files."""

from __future__ import annotations

from guardrail_service.detectors.secrets.kinds import UUID, alnum, hexa, kind, word

# One row of the table per line, whatever its length.
# ruff: noqa: E501
# fmt: off
AI = (
    kind("openai_api_key", "OpenAI API key", "sk-(?:proj|svcacct|admin|None|service)-" + word(20, 250), "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-none-", "sk-service-", severity="critical", entropy=3.0, check="has_digit"),
    kind("openai_api_key/marked", "OpenAI API key", "sk-" + alnum(20) + "T3BlbkFJ" + alnum(20), "t3blbkfj", severity="critical"),
    kind("anthropic_api_key", "Anthropic API key", "sk-ant-[a-z]{3,8}[0-9]{2}-" + word(20, 250), "sk-ant-", severity="critical", entropy=3.0),
    kind("openrouter_key", "OpenRouter API key", "sk-or-(?:v[0-9]-)?" + hexa(64), "sk-or-"),
    kind("langfuse_key", "Langfuse secret key", "sk-lf-" + UUID),
    kind("sk_api_key", "API key of the sk- family (OpenAI, DeepSeek, h2oGPTe, LiteLLM, ...)", "sk-" + word(18, 200), entropy=3.0, check="sk", rank=1),
    kind("huggingface_token", "Hugging Face token", "hf_" + alnum(30, 40), entropy=3.3, check="mixed"),
    kind("huggingface_token/org", "Hugging Face token", "api_org_" + alnum(30, 40), entropy=3.3, check="mixed"),
    kind("groq_api_key", "Groq API key", "gsk_" + alnum(40, 60)),
    kind("xai_api_key", "xAI API key", "xai-" + alnum(70, 90)),
    kind("perplexity_api_key", "Perplexity API key", "pplx-" + alnum(40, 64)),
    kind("replicate_token", "Replicate token", "r8_" + alnum(36, 40), entropy=3.3),
    kind("fireworks_api_key", "Fireworks AI key", "fw_" + alnum(22, 40), entropy=3.3, check="mixed"),
    kind("together_api_key", "Together AI key", "tgp_v1_" + word(40, 60)),
    kind("cerebras_api_key", "Cerebras API key", "csk-[a-z0-9]{40,60}"),
    kind("nvidia_api_key", "NVIDIA API key", "nvapi-" + word(60, 70)),
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
    kind("square_token/eaaa", "Square access token or secret", "EAAA[A-Za-z0-9_-]{60}", entropy=4.0),
    kind("paypal_braintree_token", "PayPal Braintree token", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$" + hexa(32), "access_token$", severity="critical"),
    kind("adyen_key", "Adyen API key", "AQE[A-Za-z0-9]{3,8}[A-Za-z0-9+/=_-]{80,300}", entropy=4.0, closed=False),
    kind("razorpay_key", "Razorpay key", "rzp_(?:live|test)_" + alnum(14), check="has_digit"),
    kind("flutterwave_key", "Flutterwave secret key", "FLWSECK(?:_TEST)?-[0-9A-Za-z]{12,40}-X"),
    kind("plaid_token", "Plaid access token", "access-(?:sandbox|development|production)-" + UUID, severity="critical"),
    kind("gocardless_token", "GoCardless token", "live_" + word(40), entropy=3.7, check="mixed"),
    kind("shopify_token", "Shopify token or shared secret", "shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}", "shpat_", "shpca_", "shppa_", "shpss_"),
    kind("twilio_api_key", "Twilio API key", "SK" + hexa(32), "sk", entropy=3.0),
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
