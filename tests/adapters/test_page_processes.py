"""The pages about LiteLLM and `guardrail proxy` are true: processes started as they say."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from tests.adapters.adapter import HIDDEN, INVENTED, PASSAGES, QUESTION, TWIN
from tests.adapters.conftest import LITELLM, Ground, proxied
from tests.adapters.gateways import PAID, litellm_settings
from tests.adapters.test_pages import KNOWN, NOBODY, REDACTED, STOPPED, blocks, model_server
from tests.integration.conftest import PATIENCE_S
from tests.integration.hosts import serving
from tests.vendors.senders import KEY, litellm_proxy


def test_the_proxy_starts_as_its_page_says(ground: Ground, tmp_path: Path) -> None:
    """Before a server that says something invented; no key is in its log."""
    (code, _), *_ = blocks("proxy.md", "bash")
    (line,) = re.findall(r"^guardrail proxy (.*)$", code, re.MULTILINE)
    options = shlex.split(line)
    assert options[::2] == ["--upstream", "--port"]
    with (
        serving(model_server(INVENTED)) as model,
        proxied(model, ground.guard, ground.key, tmp_path) as url,
    ):
        reply = requests.post(f"{url}/v1/chat/completions", json=ASKED, timeout=PATIENCE_S)
        assert reply.json()["choices"][0]["message"]["content"] == STOPPED
        assert requests.get(f"{url}/healthz", timeout=PATIENCE_S).status_code == 200
        assert requests.get(f"{url}/v1/responses/r-1", timeout=PATIENCE_S).status_code == 404


ASKED = {
    "model": "card",
    "messages": [{"role": "system", "content": text} for text in KNOWN]
    + [{"role": "user", "content": PAID}],
}


def test_litellm_redacts_what_its_page_says(ground: Ground) -> None:
    """Its settings are those of the page; see gateways.py."""
    found = _completed(ground.litellm)
    assert found.json()["choices"][0]["message"]["content"] == REDACTED


def test_litellm_shows_nothing_while_the_guard_is_down(ground: Ground, tmp_path: Path) -> None:
    """An error, as the page says."""
    settings = litellm_settings(NOBODY, ground.key)
    with litellm_proxy(str(LITELLM), settings, tmp_path) as url:
        found = _completed(url)
    assert found.status_code >= 400
    assert "deposit" not in found.text


def _completed(url: str, path: str = "/v1/chat/completions", body: Any = None) -> requests.Response:
    headers = {"Authorization": f"Bearer {KEY}"}
    return requests.post(f"{url}{path}", json=body or ASKED, headers=headers, timeout=PATIENCE_S)


TOLD = "".join(f"<passage>{text}</passage>" for text in PASSAGES)
ELSEWHERE: dict[str, Any] = {
    "/v1/responses": {"input": QUESTION, "instructions": TOLD},
    "/v1/messages": {
        "messages": [{"role": "user", "content": QUESTION}], "system": TOLD, "max_tokens": 100},
}  # fmt: skip


@pytest.mark.parametrize("path", ELSEWHERE)
def test_litellm_stops_whole_replies_of_its_other_routes(path: str, ground: Ground) -> None:
    """By the passages of each."""
    good, invented = (
        _completed(ground.litellm, path, {**ELSEWHERE[path], "model": said})
        for said in ("good", "invented")
    )
    assert (good.status_code, invented.status_code) == (200, 400)
    assert TWIN in good.text
    assert HIDDEN not in invented.text


@pytest.mark.xfail(reason="LiteLLM holds back streams of chat completions only", strict=True)
def test_litellm_holds_back_streams_of_its_other_routes(ground: Ground) -> None:
    """When it does, its page and the table have a limit less."""
    asked = {"prompt": QUESTION, "model": "invented", "stream": True}
    reply = _completed(ground.litellm, "/v1/completions", asked)
    lines = [line[6:] for line in reply.text.splitlines() if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line).get("choices", [])]
    assert HIDDEN not in "".join(choice.get("text") or "" for choice in choices)


def test_the_rule_of_litellms_page_is_one(ground: Ground) -> None:
    """Tags of users count where it says so, and the named policy decides."""
    _, (code, _) = blocks("litellm.md", "yaml")
    own = yaml.safe_load(code)["additional_provider_specific_params"]
    call = {"litellm_call_id": "page", "additional_provider_specific_params": own}
    user = [{"role": "user", "content": f"<context>{PASSAGES[0]}</context> {QUESTION}"}]
    address = f"{ground.guard}/beta/litellm_basic_guardrail_api"
    for sent, action in (
        ({"input_type": "request", "structured_messages": user}, "NONE"),
        ({"input_type": "response", "texts": [TWIN]}, "NONE"),
        ({"input_type": "response", "texts": [INVENTED]}, "BLOCKED"),
    ):
        headers = {"x-api-key": ground.key}
        reply = requests.post(address, json=sent | call, headers=headers, timeout=PATIENCE_S)
        assert reply.json()["action"] == action, reply.text
