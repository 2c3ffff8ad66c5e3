"""A marker sent as any text is nowhere on the disk unless it was redacted, hashed or encrypted."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail_decisions.keys import CannotDecrypt, Keys, new_key
from guardrail_decisions.texts import TextKeeper, TextMode, read, redacted
from guardrail_service.errors import ConfigurationError
from tests.unit.decisions.made_up import reader, record, store, word

EMAIL = "zanzibar.canary@example.com"
SECRET = "AKIAZQ3DRSTUVWXY2345"
CANARIES = (EMAIL, SECRET)
TOLD = f"Write to {EMAIL} and use {SECRET} for it."


def left_in(folder: Path, canaries: tuple[str, ...]) -> list[str]:
    """Return the files that hold one of some texts, in any encoding that could be theirs."""
    found = []
    for path in sorted(folder.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        for canary in canaries:
            forms = (canary.encode(), canary.encode("utf-16-le"), canary.encode().hex().encode())
            if any(form in data for form in forms):
                found.append(path.name)
    return found


@pytest.mark.parametrize("mode", ["none", "hashes", "redacted", "full"])
def test_no_file_has_a_canary(mode: TextMode, tmp_path: Path, keys_file: Path) -> None:
    """Not the database, not what lies beside it while it is open, not the spool."""
    url = f"sqlite:///{tmp_path / 'decisions.db'}"
    spool = tmp_path / "spool"
    given = record(0, question=TOLD, answer=TOLD, contexts=(TOLD, TOLD), redacted_answer=TOLD)
    with store(url, texts=mode, keys_file=keys_file, spool=spool) as opened:
        assert opened.offer(given)
        assert opened.add_feedback(word(0, "fail", comment=TOLD)) == "stored"
        assert left_in(tmp_path, CANARIES) == []
    assert left_in(tmp_path, CANARIES) == []
    with reader(url, keys_file) as stored:
        (found,) = stored.decisions(viewer="bob")
        viewed = [view.viewer for view in stored.views()]
        comment = found.feedback[0].comment
    if mode == "full":
        assert (found.record.answer, found.record.contexts, comment) == (TOLD, (TOLD, TOLD), TOLD)
    elif mode == "redacted":
        assert "[EMAIL]" in found.record.answer
        assert comment is not None
        assert "[EMAIL]" in comment
    else:
        assert (found.record.answer, comment) == ("", None)
    assert viewed == (["bob"] if mode in ("redacted", "full") else [])


def test_the_answer_is_kept_without_what_the_policy_withheld(tmp_path: Path) -> None:
    """Redacted texts: what the verdict replaced, and what is found besides."""
    url = f"sqlite:///{tmp_path / 'decisions.db'}"
    with store(url, texts="redacted") as opened:
        opened.offer(record(0, answer="Ann is a goat.", redacted_answer="Ann is a [WITHHELD]."))
    assert left_in(tmp_path, ("goat",)) == []


def test_redaction_leaves_the_rest_of_a_text() -> None:
    """Only what was found goes."""
    assert redacted(TOLD) == "Write to [EMAIL] and use [AWS_ACCESS_KEY_ID] for it."


def test_hashes_are_equal_for_equal_texts_and_keyed() -> None:
    """So that one text can be found again by whoever has the key."""
    one, other = Keys([new_key()]), Keys([new_key()])
    assert one.hashed("a") == one.hashed("a") != one.hashed("b")
    assert one.hashed("a").partition(":")[2] != other.hashed("a").partition(":")[2]


def test_an_encrypted_text_opens_only_where_it_belongs() -> None:
    """Not with another key, not in another record, not when a byte of it was changed."""
    keys = Keys([new_key()])
    kept = TextKeeper("full", keys).keep({"answer": "x"}, "one")
    assert read(kept, keys, "one") == {"answer": "x"}
    for wrong, place in ((Keys([new_key()]), "one"), (keys, "other"), (None, "one")):
        with pytest.raises(CannotDecrypt):
            read(kept, wrong, place)


def test_a_lone_surrogate_is_kept_like_any_other_text() -> None:
    """The service refuses it, a stored answer of a stream might have one."""
    keys = Keys([new_key()])
    odd = "a\ud800b\x00"
    assert read(TextKeeper("full", keys).keep({"t": odd}, "r"), keys, "r") == {"t": odd}
    assert len(keys.hashed(odd)) == 73


@pytest.mark.parametrize("line", ["", "short", "x" * 44, "ä" * 44], ids=["0", "5", "44", "odd"])
def test_a_line_that_is_no_key_is_refused_and_not_repeated(line: str, tmp_path: Path) -> None:
    """A key in an error message would be in a log."""
    path = tmp_path / "keys"
    path.write_text(line, "utf-8")
    with pytest.raises(ConfigurationError) as raised:
        Keys.of_file(path)
    assert not line or line not in str(raised.value)
