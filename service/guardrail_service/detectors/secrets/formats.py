"""Secrets that a prefix and runs of one alphabet describe: one row per kind.

A form is text with runs in braces: `{x40}` is 40 lower-case hexadecimal digits, `{w30-40}` from 30
to 40 letters and digits; `ALPHABETS` has the letters.
"""

# One row of the table per line, whatever its length.
# ruff: noqa: E501

from __future__ import annotations

from guardrail_service.detectors.secrets.kinds import UUID, SecretKind, Severity
from guardrail_service.text.patterns.search import Pattern

ALPHABETS = {
    "w": "A-Za-z0-9",
    "t": "A-Za-z0-9_-",
    "b": "A-Za-z0-9+/",
    "p": "A-Za-z0-9._=-",
    "x": "0-9a-f",
    "h": "0-9A-Fa-f",
    "X": "0-9A-F",
    "u": "A-Z0-9",
    "l": "a-z0-9",
    "q": "a-z2-7",
    "d": "0-9",
}
"""Letters of a run: base 62, base64url, base64, dotted, hexadecimal, upper, lower, base 32, digits."""
_GATED = 8
"""Characters of a first run that the gate asks for; more would only cost it time to compile."""


def _pattern(name: str, form: str) -> Pattern:
    """Return the pattern of a form, its keyword and its gate."""
    head, *parts = form.split("{")
    if len(head) < 2 or not parts:
        raise ValueError(f"form of {name!r}: found no run behind a literal; expected both")
    regex = _literal(head)
    gate = regex + _run(parts[0].partition("}")[0], most=_GATED)
    for part in parts:
        run, _, text = part.partition("}")
        regex += _run(run) + _literal(text)
    return Pattern(name, regex, (head.lower(),), gate=gate)


def _literal(text: str) -> str:
    return "".join(c if c.isalnum() else f"[{c}]" if c != "^" else r"\^" for c in text)


def _run(run: str, most: int | None = None) -> str:
    """Return the expression of `x40`, `w30-40` or `uuid`; of the first `most` characters if given."""
    if run == "uuid":
        return UUID
    low, _, high = run[1:].partition("-")
    if most is not None:
        low, high = str(min(int(low), most)), ""
    return f"[{ALPHABETS[run[0]]}]{{{low}{',' + high if high else ''}}}"


def _kinds(name: str, what: str, *forms: str, severity: Severity = "high") -> list[SecretKind]:
    """Return the rows of one kind. A value has digits, or letters of both cases."""
    return [
        SecretKind(name, what, severity, _pattern(f"{name}/form{number}", form), 2.8, "jumbled")
        for number, form in enumerate(forms)
    ]


_TABLE = (
    # Clouds, networks and databases
    _kinds("scaleway_access_key_id", "Scaleway access key id", "SCW{u17}"),
    _kinds("upcloud_token", "UpCloud API token", "ucat_{u26}"),
    _kinds("exoscale_key", "Exoscale API key id", "EXO{x24}"),
    _kinds("volcengine_access_key_id", "Volcengine access key id", "AKLT{t40-60}"),
    _kinds("baidu_cloud_key", "Baidu Cloud or Qianfan key", "bce-v3/ALTAK-{w21}/{x40}", "ALTAK{w21}"),
    _kinds("alibaba_access_key_id", "Alibaba Cloud access key id", "STS.{w24-40}"),
    _kinds("yandex_oauth_token", "Yandex OAuth token", "y0_{t50-62}", "y1_{t50-62}", "y2_{t50-62}", "y3_{t50-62}"),
    _kinds("render_token", "Render API key", "rnd_{w28-32}"),
    _kinds("cloudflare_key", "Cloudflare API token or global key", "cfut_{w40-60}", "cfat_{w40-60}", "cfk_{w40-60}", severity="critical"),
    _kinds("gcp_api_key", "Google API key", "AQ.Ab8{t46-60}", severity="critical"),
    _kinds("gcp_oauth_code", "Google OAuth authorization code", "4/0A{t60-120}"),
    _kinds("netbird_token", "NetBird token", "nbp_{w36}"),
    _kinds("defined_networking_token", "Defined Networking token", "dnkey-{t26}-{t52}"),
    _kinds("clickhouse_cloud_secret", "ClickHouse Cloud key secret", "4b1d{w38}", severity="critical"),
    _kinds("aiven_password", "Aiven service password", "AVNS_{t19-24}", severity="critical"),
    _kinds("cockroach_token", "CockroachDB Cloud key", "CCDB1_{w22}_{w40}", severity="critical"),
    _kinds("mongodb_atlas_secret", "MongoDB Atlas service account secret", "mdb_sa_sk_{t40}", severity="critical"),
    _kinds("xata_key", "Xata API key", "xau_{w40-48}"),
    _kinds("influxdb_token", "InfluxDB token", "apiv3_{t86}"),
    _kinds("elastic_key", "Elastic API key", "essu_{b40-120}"),
    _kinds("dbt_token", "dbt Cloud token", "dbtc_{t40-60}", "dbts_{t40-60}", "dbtu_{t40-60}"),
    _kinds("docker_swarm_token", "Docker Swarm join token or unlock key", "SWMTKN-1-{l50}-{l25}", "SWMKEY-1-{b43}", severity="critical"),
    _kinds("portainer_token", "Portainer access token", "ptr_{b43}="),
    _kinds("depot_token", "Depot token", "depot_user_{x64}", "depot_project_{x64}", "depot_org_{x64}"),
    _kinds("infisical_token", "Infisical service token", "st.{x24}.{x32}.{x32}"),
    _kinds("bitwarden_token", "Bitwarden Secrets Manager access token", "0.{uuid}.{w30}:{b22}==", severity="critical"),
    # Watching and analysing
    _kinds("segment_token", "Segment public API token", "sgp_{w64}"),
    _kinds("posthog_key", "PostHog personal API key", "phx_{t43-60}"),
    _kinds("honeycomb_key", "Honeycomb ingest or management key", "hcaik_{l58}", "hcbik_{l58}", "hcxik_{l58}", "hcamk_{l58}"),
    _kinds("logfire_token", "Pydantic Logfire token", "pylf_v1_us_{w43}", "pylf_v1_eu_{w43}"),
    _kinds("axiom_token", "Axiom token", "xaat-{uuid}", "xapt-{uuid}"),
    _kinds("checkly_key", "Checkly API key", "cu_{x32}"),
    _kinds("coralogix_key", "Coralogix API key", "cxtp_{w30}", "cxup_{w30}"),
    _kinds("sentry_token", "Sentry token", "sntrya_{x64}", "sntryi_{x64}"),
    _kinds("uptimerobot_key", "UptimeRobot API key", "ur{d6-9}-{x24}"),
    # Building and testing software
    _kinds("jetbrains_token", "JetBrains Hub or YouTrack token", "perm:{p4-80}.{w30-60}", "perm-{p4-80}.{w30-60}"),
    _kinds("rancher_token", "Rancher token", "kubeconfig-u-{l5-16}:{l54}", "token-{l5}:{l54}", severity="critical"),
    _kinds("packagist_token", "Private Packagist token", "packagist_out_{x68}", "packagist_uut_{x68}", "packagist_oot_{x68}", "packagist_ort_{x68}"),
    _kinds("deno_token", "Deno Deploy token", "ddp_{w36}", "ddo_{w36}"),
    _kinds("percy_token", "Percy project token", "web_{x64}", "app_{x64}", "auto_{x64}", "vmw_{x64}"),
    _kinds("retool_token", "Retool access token", "retool_{l26-36}"),
    _kinds("n8n_key", "n8n API key", "n8n_api_{x80}"),
    _kinds("workato_token", "Workato API token", "wrkaus-{p60-400}", "wrkaeu-{p60-400}", "wrkajp-{p60-400}", "wrkaau-{p60-400}", "wrkasg-{p60-400}"),
    _kinds("bitbucket_data_center_token", "Bitbucket Data Center token", "BBDC-{b40-50}"),
    _kinds("trello_token", "Trello key or token", "ATTA{x64}{X8}"),
    _kinds("gitlab_session", "GitLab session cookie", "_gitlab_session={l32}"),
    _kinds("settlemint_token", "SettleMint access token", "sm_aat_{w16}", "sm_pat_{w16}", "sm_sat_{w16}"),
    _kinds("intra42_secret", "42 Intra client secret", "s-s4t2ud-{x64}", "s-s4t2af-{x64}"),
    _kinds("authress_key", "Authress service client key", "sc_{l5-30}.{l4-6}.acc_{t10-32}.{p30-120}", "ext_{l5-30}.{l4-6}.acc_{t10-32}.{p30-120}", "scauth_{l5-30}.{l4-6}.acc_{t10-32}.{p30-120}", "authress_{l5-30}.{l4-6}.acc_{t10-32}.{p30-120}"),
    _kinds("freemius_secret", "Freemius secret key", "sk_{w29}"),
    # Mail and messages
    _kinds("matrix_token", "Matrix (Synapse) access token", "syt_{t4-60}_{w20}_{w6}"),
    _kinds("pushbullet_token", "Pushbullet token", "o.{w32}"),
    _kinds("onesignal_key", "OneSignal API key", "os_v2_app_{q80-120}", "os_v2_org_{q80-120}"),
    _kinds("ntfy_token", "ntfy access token", "tk_{l29}"),
    _kinds("telnyx_key", "Telnyx API key", "KEY{X32}_{w22}"),
    _kinds("mandrill_key", "Mailchimp Transactional (Mandrill) key", "md-{t22}"),
    _kinds("mailersend_token", "MailerSend token", "mlsn.{x64}"),
    _kinds("smtp2go_key", "SMTP2GO API key", "api-{X32}"),
    _kinds("klaviyo_key", "Klaviyo private key", "pk_{x34}", "pk_{w6}_{x34}"),
    _kinds("kit_key", "Kit (ConvertKit) API key", "kit_{x32}"),
    _kinds("intercom_token", "Intercom token", "dG9rO{b55}"),
    _kinds("close_key", "Close API key", "api_{w20-24}.{w20-24}"),
    _kinds("firebase_messaging_key", "Firebase Cloud Messaging server key", "AAAA{t7}:APA91b{t134}"),
    _kinds("google_chat_webhook", "Google Chat webhook", "chat.googleapis.com/v1/spaces/{t6-20}/messages?key={t39}&token={t30-60}"),
    _kinds("lark_webhook", "Lark or Feishu webhook", "open.feishu.cn/open-apis/bot/v2/hook/{uuid}", "open.larksuite.com/open-apis/bot/v2/hook/{uuid}"),
    _kinds("dingtalk_webhook", "DingTalk webhook", "oapi.dingtalk.com/robot/send?access_token={x64}"),
    _kinds("wecom_webhook", "WeCom webhook", "qyapi.weixin.qq.com/cgi-bin/webhook/send?key={uuid}"),
    _kinds("make_webhook", "Make webhook", "hook.eu1.make.com/{l32}", "hook.eu2.make.com/{l32}", "hook.us1.make.com/{l32}", "hook.us2.make.com/{l32}"),
    _kinds("slack_token", "Slack bot, user, app or refresh token", "xoxc-{t20-300}", "xoxd-{t20-300}", severity="critical"),
    # Money and shops
    _kinds("checkout_key", "Checkout.com secret key", "sk_{q26}", "sk_sbox_{q26}", "sk_test_{uuid}", "sk_{uuid}", severity="critical"),
    _kinds("paddle_key", "Paddle API key", "pdl_live_apikey_{l26}_{w22}_{w3}", "pdl_sdbx_apikey_{l26}_{w22}_{w3}", severity="critical"),
    _kinds("polar_token", "Polar token", "polar_oat_{w40-60}", "polar_pat_{w40-60}"),
    _kinds("mollie_key", "Mollie API key", "live_{w30}", "test_{w30}", "access_{w30-40}", severity="critical"),
    _kinds("lob_key", "Lob API key", "live_{x35}", "test_{x35}"),
    _kinds("kickbox_key", "Kickbox API key", "live_{x64}", "test_{x64}"),
    _kinds("gocardless_token", "GoCardless token", "sandbox_{t40}"),
    _kinds("xendit_key", "Xendit secret key", "xnd_production_{w40-80}", "xnd_development_{w40-80}", severity="critical"),
    _kinds("midtrans_key", "Midtrans server key", "Mid-server-{t24}", severity="critical"),
    _kinds("omise_key", "Omise (Opn) secret key", "skey_{l19}", "skey_test_{l19}", severity="critical"),
    _kinds("mercadopago_token", "Mercado Pago access token", "APP_USR-{d12-19}-{d6}-{x32}-{d5-12}", "TEST-{d12-19}-{d6}-{x32}-{d5-12}", severity="critical"),
    _kinds("conekta_key", "Conekta private key", "key_{w22}"),
    _kinds("cashfree_key", "Cashfree secret key", "cfsk_ma_prod_{x32}_{x8}", "cfsk_ma_test_{x32}_{x8}", severity="critical"),
    _kinds("flutterwave_key", "Flutterwave secret key", "FLWSECK_TEST-{h12}"),
    _kinds("ramp_token", "Ramp client secret or token", "ramp_sec_{w48}", "ramp_tok_{w40-48}", "ramp_business_tok_{w40-48}", severity="critical"),
    _kinds("brex_token", "Brex token", "bxt_{w36-44}", severity="critical"),
    _kinds("mercury_token", "Mercury token", "mercury_production_{t40-100}_yrucrem", "mercury_sandbox_{t40-100}_yrucrem", severity="critical"),
    _kinds("iex_cloud_key", "IEX Cloud secret token", "sk_{x32}", "Tsk_{x32}"),
    _kinds("coingecko_key", "CoinGecko API key", "CG-{w24}"),
    _kinds("tatum_key", "Tatum API key", "t-{x24}-{x24}"),
    _kinds("blockfrost_key", "Blockfrost project id", "mainnet{w32}", "preprod{w32}", "preview{w32}"),
    _kinds("gemini_exchange_key", "Gemini exchange API key", "account-{w20}", "master-{w20}"),
    _kinds("shopify_token", "Shopify token or shared secret", "shpua_{h32}", "shptka_{h32}", "prtapi_{h32}"),
    _kinds("woocommerce_key", "WooCommerce consumer key or secret", "ck_{x40}", "cs_{x40}"),
    _kinds("ebay_credential", "eBay cert id", "PRD-{x12}-{x8}-{x4}-{x4}-{x4}", "SBX-{x12}-{x8}-{x4}-{x4}-{x4}"),
    _kinds("ebay_token", "eBay user token", "v^1.1#i^1#{b20-300}"),
    _kinds("amazon_oauth_secret", "Login with Amazon client secret", "amzn1.oa2-cs.v1.{x64}", severity="critical"),
    _kinds("amazon_oauth_token", "Login with Amazon access or refresh token", "Atza|{t80-1000}", "Atzr|{t80-1000}"),
    _kinds("wix_key", "Wix API key", "IST.{p60-900}"),
    _kinds("aftership_key", "AfterShip API key", "asat_{x32}"),
    # Offices and people
    _kinds("salesforce_token", "Salesforce access or refresh token", "00D{w12}!{p80-120}", "00D{w15}!{p80-120}", "5Aep861{p70-90}", severity="critical"),
    _kinds("zoho_token", "Zoho OAuth token", "1000.{x32}.{x32}"),
    _kinds("clickup_token", "ClickUp token", "pk_{d6-12}_{u32}"),
    _kinds("canva_secret", "Canva client secret", "cnvca{t40-60}"),
    _kinds("cal_com_key", "Cal.com API key", "cal_live_{x32}", "cal_{x32}"),
    _kinds("jumpcloud_key", "JumpCloud API key", "jca_{w36-48}", severity="critical"),
    _kinds("stytch_secret", "Stytch secret", "secret-live-{t30-50}", "secret-test-{t30-50}"),
    _kinds("samsara_token", "Samsara API token", "samsara_api_{w30}"),
    _kinds("censys_token", "Censys token", "censys_{w8}_{w24-48}"),
    _kinds("socket_key", "Socket API key", "sktsec_{t40-64}"),
    _kinds("veracode_key", "Veracode API id or key", "vera01ei-{x32}", "vera01es-{x128}"),
    _kinds("aikido_secret", "Aikido client secret", "AIK_SECRET_{w40-80}"),
    _kinds("linkedin_secret", "LinkedIn client secret", "WPL_AP1.{w16}.{b6}=="),
    _kinds("pinterest_token", "Pinterest token", "pina_{u80-160}"),
    _kinds("tiktok_token", "TikTok access token", "act.{w40-80}"),
    # Models, data and machines
    _kinds("openai_session", "OpenAI session key", "sess-{w40}", severity="critical"),
    _kinds("langsmith_key", "LangSmith key", "ls__{x32}"),
    _kinds("anyscale_key", "Anyscale key", "esecret_{l24-40}"),
    _kinds("modal_token", "Modal token", "ak-{w22}", "as-{w22}"),
    _kinds("runpod_key", "RunPod API key", "rpa_{w40-50}"),
    _kinds("helicone_key", "Helicone key", "sk-helicone-{l7}-{l7}-{l7}-{l7}"),
    _kinds("chroma_key", "Chroma Cloud key", "ck-{w44}"),
    _kinds("firecrawl_key", "Firecrawl API key", "fc-{x32}"),
    _kinds("browserbase_key", "Browserbase API key", "bb_live_{t27}"),
    _kinds("apify_token", "Apify token", "apify_api_{w34-42}"),
    _kinds("e2b_key", "E2B API key", "e2b_{x40}"),
    _kinds("daytona_key", "Daytona API key", "dtn_{x64}"),
    _kinds("cartesia_key", "Cartesia API key", "sk_car_{w20-24}"),
    _kinds("murf_key", "Murf API key", "ap2_{uuid}"),
    _kinds("luma_key", "Luma AI key", "luma-{uuid}"),
    _kinds("runway_key", "Runway API key", "key_{x128}"),
    _kinds("cursor_key", "Cursor API key", "key_{x64}", "crsr_{x64}"),
    _kinds("mem0_key", "Mem0 API key", "m0-{w40}"),
    _kinds("llamacloud_key", "LlamaCloud API key", "llx-{w48}"),
    _kinds("humanloop_key", "Humanloop API key", "hl_sk_{x48}"),
    _kinds("promptlayer_key", "PromptLayer API key", "pl_{x32}"),
    _kinds("nomic_key", "Nomic API key", "nk-{t43}"),
    _kinds("context7_key", "Context7 API key", "ctx7sk-{uuid}"),
    _kinds("sourcegraph_token", "Sourcegraph token", "slk_{x64}"),
    _kinds("kaggle_token", "Kaggle API token", "KGAT_{x32}"),
    _kinds("arcgis_key", "ArcGIS API key", "AAPK{t60-200}", "AAPT{t60-400}"),
    _kinds("adafruit_key", "Adafruit IO key", "aio_{w28}"),
    _kinds("ubidots_key", "Ubidots key or token", "BBFF-{w30-40}", "BBUS-{w30-40}"),
    _kinds("shippo_token", "Shippo token", "shippo_live_{h40}", "shippo_test_{h40}"),
)  # fmt: skip
FORMATS: tuple[SecretKind, ...] = tuple(row for rows in _TABLE for row in rows)
"""Alphabets and lengths as they are publicly known; only a few were checked on the issuers' pages."""
