"""`guardrail check`, `config check` and `models`: exit statuses, order, messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import guardrail, here

ROOT = Path(__file__).resolve().parents[2]
Options = tuple[str | Path, ...]
GOOD = {
    "answer": "Guests may stay for two weeks at most.",
    "contexts": ["Guests may stay for two weeks at most."],
}
BAD = {**GOOD, "detectors": {"text_matching": {"parameters": {"condition": '"never there"'}}}}


def lines_of(*bodies: Any) -> bytes:
    """Return bodies as JSON lines."""
    return b"".join(json.dumps(body).encode() + b"\n" for body in bodies)


def replies(output: bytes | str) -> list[dict[str, Any]]:
    """Return what was written, one object a line."""
    return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], Path]:
    """Write an input file."""

    def write_bytes(content: bytes) -> Path:
        path = tmp_path / "answers.jsonl"
        path.write_bytes(content)
        return path

    return write_bytes


@pytest.mark.parametrize(
    ("bodies", "status"),
    [
        ([GOOD, GOOD], 0),
        ([GOOD, BAD], 1),
        ([GOOD, BAD, {"answer": ""}], 2),
        ([{"answer": ""}], 2),
        ([], 0),
    ],
)
def test_the_exit_status_says_clean_flagged_or_in_error(
    bodies: list[Any], status: int, write: Callable[[bytes], Path], tiny_options: Options
) -> None:
    """0, 1 and 2; an error outweighs a flag, and no line is no fault."""
    ended = here("check", write(lines_of(*bodies)), *tiny_options)
    assert ended.exit_code == status
    assert len(replies(ended.stdout)) == len(bodies)
    assert ended.stderr == ""


@pytest.mark.parametrize("kept", [False, True])
def test_a_table_says_decision_action_and_summary_of_each_line(
    kept: bool, write: Callable[[bytes], Path], tmp_path: Path, tiny_options: Options
) -> None:
    """Readable rows in order; the replies themselves go where `--output` says, or nowhere."""
    output = tmp_path / "replies.jsonl"
    path = write(lines_of(GOOD, BAD, {"answer": ""}))
    options = ("--output", output) if kept else ()
    ended = here("check", path, "--table", *options, *tiny_options)
    assert ended.exit_code == 2
    rows = [[c.strip() for c in line.split("│")] for line in ended.stdout.splitlines()]
    cells = [[cell for cell in row if cell] for row in rows if row[0] == "" and len(row) > 4]
    assert [row[:3] for row in cells if row[0] in "123"] == [
        ["1", "pass", "allow"],
        ["2", "flag", cells[1][2]],
        ["3", "error", "-"],
    ]
    assert "text_matching" in cells[1][3]
    assert cells[2][3].startswith("invalid_input: answer: ")
    assert output.exists() == kept
    assert not kept or len(replies(output.read_text())) == 3


def test_standard_input_is_read_and_every_line_answered_in_order(tiny_options: Options) -> None:
    """As a process: blank, broken and refused lines get an error line of their own."""
    wrong = [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b'{"answer": NaN}',
        b'{"answer": "a", "deadline_ms": ' + b"1" * 5_000 + b"}",
        b"[" * 100_000,
        b'{"answer": "\\ud800"}',
        b'{"answer": "a", "policy": "other"}',
    ]
    content = b"\n".join([json.dumps({**GOOD, "id": "first"}).encode(), *wrong]) + b"\r\n"
    last = json.dumps({**GOOD, "id": "last"}).encode()
    ended = guardrail("check", "-", *tiny_options, stdin=content + last)
    assert ended.returncode == 2
    assert ended.stderr == b""
    found = replies(ended.stdout)
    assert len(found) == len(wrong) + 2
    assert (found[0]["id"], found[-1]["id"]) == ("first", "last")
    errors = [reply["error"] for reply in found[1:-1]]
    malformed = ["malformed_json"] * 2
    assert [error["code"] for error in errors] == [
        *malformed,
        "invalid_input",
        "invalid_input",
        *["malformed_json"] * 4,
        "invalid_input",
        "unknown_policy",
    ]
    numbers = [f"line-{number}" for number in range(1, len(found) + 1)]
    ids = [reply.get("error", reply)["request_id"] for reply in found]
    assert ids == numbers


def test_two_thousand_lines_come_back_in_order(
    write: Callable[[bytes], Path], tiny_options: Options, tmp_path: Path
) -> None:
    """However long each takes; with `--output`, nothing goes to standard output."""
    bodies = [{"id": str(n), "answer": "The pool opens. " * (1 + n % 7)} for n in range(2_000)]
    bodies[1_000] = {"answer": ""}
    output = tmp_path / "out.jsonl"
    ended = here("check", write(lines_of(*bodies)), *tiny_options, "--output", output)
    assert ended.exit_code == 2
    assert ended.stdout == ""
    found = replies(output.read_bytes())
    ids = [reply.get("id") for reply in found]
    assert ids == [str(n) if n != 1_000 else None for n in range(2_000)]


def test_a_short_queue_refuses_no_line(
    write: Callable[[bytes], Path], tiny_options: Options
) -> None:
    """The queue's limit is about callers; a file has one, and its verdicts depend on nothing."""
    passages = [f"The pool {n} opens at seven." for n in range(50)]
    content = lines_of(*[{**GOOD, "contexts": passages}] * 50)
    ended = here("check", write(content), *tiny_options, GUARDRAIL_MAX_QUEUED_ROWS="1")
    found = replies(ended.stdout)
    assert len(found) == 50
    assert all(reply["detectors"]["groundedness"]["state"] == "evaluated" for reply in found)


def test_no_deadline_applies_to_a_file(
    write: Callable[[bytes], Path], tiny: Path, tiny_config: Callable[..., Path]
) -> None:
    """Neither the policy's nor the line's, or verdicts would depend on the machine."""
    config = tiny_config(deadline_ms=1)
    content = lines_of({**GOOD, "contexts": GOOD["contexts"] * 100, "deadline_ms": 1})
    ended = here("check", write(content), "--pack", tiny, "--config", config)
    assert [reply["status"] for reply in replies(ended.stdout)] == ["complete"]


def test_the_policy_of_lines_that_name_none_is_chosen(
    write: Callable[[bytes], Path], tiny: Path, tiny_config: Callable[..., Path]
) -> None:
    """A line's own policy goes first."""
    configs = (tiny_config(), tiny_config("2", "other.json", "other"))
    options = ("--pack", tiny, "--config", configs[0], "--config", configs[1])
    file = write(lines_of(GOOD, {**GOOD, "policy": "tiny"}))
    ended = here("check", file, *options, "--policy", "other")
    assert [reply["policy"]["name"] for reply in replies(ended.stdout)] == ["other", "tiny"]


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_read_is_named(
    name: str, tmp_path: Path, tiny_options: Options
) -> None:
    """In one line, with status 2."""
    ended = here("check", tmp_path / name, *tiny_options)
    assert ended.exit_code == 2
    assert ended.stderr.startswith(f"error: {tmp_path / name}: found ")
    assert len(ended.stderr.splitlines()) == 1


def test_an_output_that_cannot_be_written_is_named_before_anything_is_judged(
    tmp_path: Path, write: Callable[[bytes], Path], tiny_options: Options
) -> None:
    """In one line, with status 2."""
    output = tmp_path / "missing" / "out.jsonl"
    ended = here("check", write(lines_of(GOOD)), *tiny_options, "--output", output)
    assert ended.exit_code == 2
    assert ended.stderr.startswith(f"error: {output}: found No such file")


def test_config_check_names_what_the_pack_cannot_serve(tiny: Path) -> None:
    """A pack without the roles of toxicity and bias cannot serve H2O's own example."""
    path = ROOT / "configs" / "h2o_example.json"
    ended = here("config", "check", path, "--pack", tiny)
    assert ended.exit_code == 1
    assert f"valid {path}" in ended.stdout
    for name in ("toxicity", "bias"):
        assert f"cannot serve {name}: model pack 'tiny' lacks role {name}" in ended.stdout
    report = json.loads(here("config", "check", path, "--json", "--pack", tiny).stdout)
    assert set(report[0]["unserved"]) == {"toxicity", "bias"}
    assert set(report[0]["policy"]["detectors"]) == {"pii"}
    assert report[0]["policy"]["name"] == "h2o_example"


@pytest.mark.parametrize("name", ["default", "strict", "observe", "h2o_example"])
def test_the_shipped_configurations_can_be_served(name: str) -> None:
    """By the shipped pack, whole."""
    ended = here("config", "check", ROOT / "configs" / f"{name}.json")
    assert ended.exit_code == 0, ended.stdout
    assert "cannot serve" not in ended.stdout


@pytest.mark.parametrize(
    ("damaged", "repaired"),
    [
        (
            "h20_sonar.evaluators.toxicity_evaluator.ToxicityEvaluator",
            "h2o_sonar.evaluators.toxicity_evaluator.ToxicityEvaluator",
        ),
        (
            "h2o_sonar.evaluators.pii_leakage_evaluator.PiileakageEvaluator",
            "h2o_sonar.evaluators.pii_leakage_evaluator.PiiLeakageEvaluator",
        ),
        ("groundednes", "groundedness"),
    ],
)
def test_a_damaged_spelling_is_refused_with_a_suggestion(
    damaged: str, repaired: str, write_config: Callable[..., Path]
) -> None:
    """Where it stands, and what was probably meant."""
    path = write_config(evaluator_ids=["looping", damaged])
    ended = here("config", "check", path)
    assert ended.exit_code == 2
    assert ended.stderr.startswith(f"error: {path}: evaluator_ids[1]: found unknown id")
    assert f"did you mean '{repaired}'?" in ended.stderr


def test_config_check_of_several_files_stops_at_the_wrong_one(
    write_config: Callable[..., Path],
) -> None:
    """A wrong file outweighs one that cannot be served."""
    wrong = write_config(evaluator_ids=[])
    ended = here("config", "check", ROOT / "configs" / "h2o_example.json", wrong)
    assert ended.exit_code == 2
    assert str(wrong) in ended.stderr


def test_models_list_shows_every_file_with_its_origin() -> None:
    """Name, role, licence and source, as a table and as JSON."""
    table = here("models", "list")
    assert table.exit_code == 0
    (pack,) = json.loads(here("models", "list", "--json").stdout)
    assert pack["name"] == "embedded"
    for model in pack["models"].values():
        assert model["source"]["license"] in table.stdout
        assert model["source"]["name"] in table.stdout


def test_models_verify_runs_the_golden_rows() -> None:
    """On this machine, with the largest difference found."""
    ended = here("models", "verify")
    assert ended.exit_code == 0
    assert "ok embedded/embedding: files match the manifest; " in ended.stdout
    report = json.loads(here("models", "verify", "--json").stdout)
    golden = report["golden"]["embedding"]
    assert report["pack"] == "embedded"
    assert golden["rows"] >= 50
    assert 0 <= golden["worst"] <= golden["tolerance"]
