"""Token formats of source hosting, package registries, collaboration tools and build services."""

from __future__ import annotations

from guardrail_service.detectors.secrets.kinds import UUID, alnum, base64, hexa, kind, word

# One row of the table per line, whatever its length.
# ruff: noqa: E501
# fmt: off
DEVELOPMENT = (
    kind("github_token", "GitHub token (classic, OAuth, user, app)", "gh[pousr]_" + alnum(36, 255), "ghp_", "gho_", "ghu_", "ghs_", "ghr_", severity="critical", entropy=3.0),
    kind("github_fine_grained_token", "GitHub fine-grained token", "github_pat_" + alnum(22) + "_" + alnum(59), severity="critical"),
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
    kind("sourcegraph_token", "Sourcegraph token", "sgp_(?:[0-9a-f]{16}_|local_)?" + hexa(40)),
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
    kind("discord_webhook", "Discord webhook", r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,72}", "/api/webhooks/"),
    kind("teams_webhook", "Microsoft Teams webhook", r"[a-z0-9-]{1,40}\.webhook\.office\.com/webhookb2/[0-9a-f@-]{60,90}/IncomingWebhook/[0-9a-f]{32}/[0-9a-f-]{36}", "webhook.office.com"),
    kind("zapier_webhook", "Zapier webhook", r"hooks\.zapier\.com/hooks/catch/[0-9]{4,12}/[a-z0-9]{5,12}", "hooks.zapier.com"),
    kind("telegram_token", "Telegram bot token", "[0-9]{8,10}:AA" + word(33), ":aa", severity="critical", entropy=3.5),
    kind("twitch_token", "Twitch chat token", "oauth:[a-z0-9]{30}", entropy=3.3),
    kind("twitter_bearer", "X (Twitter) bearer token", "A{20,24}[A-Za-z0-9%]{40,120}", "a" * 20),
    kind("facebook_token", "Meta access token", "EAA[A-Za-z0-9]{80,400}", entropy=3.7),
    kind("facebook_app_token", "Meta app access token", r"[0-9]{15,16}\|[A-Za-z0-9_-]{27}", "|", entropy=3.5),
    kind("instagram_token", "Instagram token", "IGQ[A-Za-z0-9_-]{80,400}", entropy=3.7),
    kind("hubspot_token", "HubSpot private app token", "pat-(?:na|eu|ap)[0-9]-" + UUID, "pat-na", "pat-eu", "pat-ap"),
)
# fmt: on
"""One row per format; a prefix that only a secret has is what makes a row quiet."""
