"""A script for H2O's client, call by call in the order of its manual, with our import only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline import h2o_client as eval_studio_client
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.hosts.server import Reply, Server, serving

ANSWER = "The museum opens at nine. Write to desk@example.com."


def talk(method: str, path: str, body: dict[str, Any]) -> Reply:
    """Reply as an OpenAI-compatible server with two models does."""
    if path.endswith("/models"):
        return Reply({"data": [{"id": "small"}, {"id": "large"}]})
    said = ANSWER if body["model"] == "large" else "I cannot say."
    return Reply({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]})


def test_the_calls_of_a_script_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Client, test, cases, documents, host, evaluators, evaluation, labs, clean-up."""
    monkeypatch.setenv("GUARDRAIL_CLIENT_FOLDER", str(tmp_path))
    monkeypatch.setenv("H2OGPTE_API_KEY", "k-of-the-environment")
    login = eval_studio_client.TokenProvider(
        refresh_token="<token>", client_id="platform", token_endpoint_url="https://login.invalid/"
    )
    client = eval_studio_client.Client(host="https://studio.invalid", token_provider=login)

    test = client.tests.create(name="Museum", description="Opening hours", documents=[])
    case = test.create_test_case(prompt="When does it open?", answer="At nine.", constraints=[])
    test.create_test_case(prompt="Whom do I ask?", answer="The desk.", constraints=[])
    assert (case.prompt, case.answer, case.constraints) == ("When does it open?", "At nine.", ())
    assert case.create_time == case.update_time

    document = test.create_document(name="Hours", url="https://example.com/hours.pdf")
    other = client.tests.create(name="Other")
    other.create_document(name="Prices", url="https://example.com/prices.pdf")
    docs = client.documents.list()
    doc = client.documents.get(docs[1].key)
    test.link_document(doc)
    assert [one.name for one in test.documents] == ["Hours", "Prices"]

    with serving(route=talk) as server:
        model = client.models.create_h2ogpte_model(
            name="First host",
            description="A host of models",
            is_rag=False,
            url=server.url,
            api_key="sk-written-into-a-script",
        )
        models = client.models.list()
        assert client.models.get(models[0].key) == model

        evaluators = client.evaluators.list()
        pii_key = [e.key for e in evaluators if "PII" in e.name][0]  # noqa: RUF015 - as scripts are written
        pii = client.evaluators.get(pii_key)
        base_llms = model.list_base_models()
        evaluation = model.evaluate(
            name="First", evaluators=[pii], test_suites=[test], base_models=base_llms
        )
        try:  # noqa: SIM105 - as above
            evaluation.wait_to_finish(timeout=0)
        except TimeoutError:
            pass
        evaluation.wait_to_finish(timeout=120, verbose=True)
        table = {row["model"]: row["model_passes"] for row in evaluation.get_table()}
        assert table == {"small": 1.0, "large": 0.0}
        assert evaluation.not_answered == {}
        _sent_and_kept(server, tmp_path)

    lab = client.test_labs.create("Lab", "Answers that were given")
    lab_model = lab.add_model(
        name="RAG",
        model_type=eval_studio_client.ModelType.h2ogpte,
        llm_model_name="llm-70b",
        documents=["https://example.com/hours.pdf"],
    )
    for said in ("At nine.", "At ten."):
        _ = lab_model.add_input(
            prompt="When does it open?",
            corpus=["https://example.com/hours.pdf"],
            context=["The museum opens at nine."],
            expected_output="At nine.",
            actual_output=said,
            output_condition='"nine"',
            actual_duration=8.28,
            cost=0.0037,
        )
    matching = [e for e in evaluators if "Text matching" in e.name][0]  # noqa: RUF015 - as above
    leaderboard = lab.evaluate(matching)
    leaderboard.wait_to_finish(120)
    assert leaderboard.get_table()[0]["model_passes"] == 0.5
    second = model.create_leaderboard_from_testlab(
        name="Imported", evaluator=matching, test_lab=lab.json()
    )
    assert second.get_table() == leaderboard.get_table()

    evaluation.delete()
    for d in test.documents:
        test.unlink_document(d.key)
    document.delete()
    for tc in test.test_cases:
        test.remove_test_case(tc.key)
    test.delete()
    lab_model.delete()
    model.delete()
    assert client.models.list() == []
    assert [one.name for one in client.tests.list()] == ["Other"]
    assert [one.name for one in client.evaluations.list()] == ["Lab", "Imported"]


def _sent_and_kept(server: Server, folder: Path) -> None:
    """Check that the key came from the environment, and that none is in any file."""
    sent = {headers.get("Authorization") for headers in server.headers}
    assert sent == {"Bearer k-of-the-environment"}
    for path in folder.rglob("*"):
        if path.is_file():
            assert b"sk-written" not in path.read_bytes()
            assert b"k-of-the-environment" not in path.read_bytes()


def test_a_host_that_refuses_a_key_stops_the_evaluation(tmp_path: Path) -> None:
    """Nothing is judged that nobody answered."""
    client = eval_studio_client.Client(folder=tmp_path)
    test = client.tests.create("T")
    test.create_test_case("Q?", "A.")
    with serving(Reply({}, status=401)) as server:
        model = client.models.create_model("m", server.url, base_models=["a"])
        evaluation = model.evaluate("E", "rouge", test)
        with pytest.raises(eval_studio_client.EvaluationFailed, match="401"):
            evaluation.wait_to_finish(120)


@pytest.mark.parametrize(
    ("make", "url", "rag", "variable"),
    [
        ("create_h2ogpte_model", "https://h.invalid/openai_api/v1", True, "H2OGPTE_API_KEY"),
        ("create_h2ogpt_model", "https://h.invalid/v1", False, "H2OGPT_API_KEY"),
        ("create_h2o_llmops_model", "https://h.invalid/v1", False, "H2O_LLMOPS_API_KEY"),
        ("create_openai_model", "assistants+https://h.invalid", True, "OPENAI_API_KEY"),
        ("create_azure_openai_model", "azure+https://h.invalid", False, "AZURE_OPENAI_API_KEY"),
        ("create_ollama_model", "ollama+https://h.invalid", False, "OLLAMA_API_KEY"),
    ],
)
def test_each_kind_of_host_knows_its_address_and_its_variable(
    tmp_path: Path, make: str, url: str, rag: bool, variable: str
) -> None:
    """`$NAME` in place of a key names another variable."""
    models = eval_studio_client.Client(folder=tmp_path).models
    with pytest.raises(KeyError):
        models.get_default_rag()
    given = {"is_rag": True} if make == "create_h2ogpte_model" else {}
    for key, expected in (("", variable), ("sk-secret", variable), ("$MY_KEY", "MY_KEY")):
        made = getattr(models, make)(
            name="m", description="", url="https://h.invalid", api_key=key, **given
        )
        assert (made.url, made.is_rag, made.api_key_env) == (url, rag, expected)
    default = models.get_default_rag() if rag else models.get_default_llm()
    assert default == models.list()[0]


def test_bedrock_has_its_keys_elsewhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Those that are given are dropped, which is said without them."""
    models = eval_studio_client.Client(folder=tmp_path).models
    made = models.create_amazon_bedrock_model("b", "", "AKIA1", "s3cr3t", "", "eu-west-1")
    assert (made.url, made.api_key_env) == ("bedrock:eu-west-1", None)
    assert "aws_secret_access_key is not kept" in caplog.text
    assert "s3cr3t" not in caplog.text
    with pytest.raises(ConfigurationError, match="base_models"):
        made.list_base_models()


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"address": "https://me:secret@h.invalid/v1"}, "a user name or password"),
        ({"address": "azure+https://me:secret@h.invalid"}, "a user name or password"),
        ({"model_parameters": '{"extra_headers": {"Api-Key": "x"}}'}, "found Api-Key"),
        ({"model_parameters": "[]"}, "a JSON object"),
    ],
)
def test_a_secret_is_refused_wherever_it_stands(
    tmp_path: Path, changed: dict[str, str], match: str
) -> None:
    """And it is not in the message."""
    models = eval_studio_client.Client(folder=tmp_path).models
    given: dict[str, Any] = {"name": "m", "address": "https://h.invalid/v1", **changed}
    with pytest.raises(ConfigurationError, match=match) as caught:
        models.create_model(**given)
    assert "secret" not in str(caught.value)
    assert models.list() == []
    assert "secret" not in json.dumps([p.read_text() for p in tmp_path.rglob("*.json")])
