"""The error tree: one code and one status per class, and a drawing that is true."""

from __future__ import annotations

import re

import pytest

from guardrail_service import errors
from guardrail_service.errors import ServiceError
from guardrail_service.server.error_replies import STATUS, error_reply, error_response, status_of

MARK = "zq9"
DOCUMENTED = {
    "ServiceError": 500,
    "ConfigurationError": 500,
    "PluginError": 500,
    "PackError": 500,
    "MissingExtra": 500,
    "InputError": 422,
    "MalformedInput": 400,
    "LimitExceeded": 422,
    "BodyTooLarge": 413,
    "UnknownPolicy": 422,
    "StreamIncomplete": 422,
    "OverrideRefused": 422,
    "Unauthorized": 401,
    "KeyRevoked": 401,
    "KeyExpired": 401,
    "Forbidden": 403,
    "PolicyRefused": 403,
    "ReloadFailed": 409,
    "Overloaded": 429,
    "RateExceeded": 429,
    "RequestTimeout": 408,
    "NotReady": 503,
    "NotRecorded": 503,
    "OutOfTime": 500,
    "Cancelled": 499,
    "ScoringError": 500,
    "NotScorable": 500,
    "RowFailed": 500,
}


def family(cls: type[ServiceError]) -> list[type[ServiceError]]:
    """Return a class and everything under it, as the drawing has it."""
    return [cls, *(below for child in cls.__subclasses__() for below in family(child))]


FAMILY = [cls for cls in family(ServiceError) if cls.__module__ == errors.__name__]


def make(cls: type[ServiceError]) -> ServiceError:
    """Return an error whose message holds a marker."""
    if cls is errors.ConfigurationError:
        return errors.ConfigurationError("file: key", MARK, "something else")
    if cls is errors.PluginError:
        return errors.PluginError("mine", "rag_guardrail.detectors", MARK, "something else")
    if issubclass(cls, errors.Overloaded):
        return cls(MARK, 0.2)
    return cls(MARK)


def test_every_class_has_a_code_of_its_own() -> None:
    """Codes are part of the API and never mean two things."""
    codes = [cls.code for cls in FAMILY]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch("[a-z_]+", code) for code in codes)
    assert all("code" in vars(cls) for cls in FAMILY)


def test_the_drawing_in_the_module_is_the_tree() -> None:
    """Same classes, same places, same depth."""
    drawn = re.findall(r"^ {4}([│├└─ ]*)(\w+)", errors.__doc__ or "", re.MULTILINE)
    depth = {name: len(lead) // 4 for lead, name in drawn}
    assert list(depth) == [cls.__name__ for cls in FAMILY]
    for cls in FAMILY:
        assert depth[cls.__name__] == cls.__mro__.index(ServiceError)


def test_every_class_has_its_documented_status() -> None:
    """A new class gets a line here, in the drawing and in docs/api.md."""
    assert {cls.__name__: status_of(make(cls)) for cls in FAMILY} == DOCUMENTED


def test_a_class_unknown_to_the_table_is_a_500() -> None:
    """Whatever is raised from outside this package."""

    class Surprise(ServiceError):
        """Not in the table."""

    assert status_of(Surprise("x")) == 500
    assert ServiceError in STATUS


@pytest.mark.parametrize("cls", FAMILY, ids=lambda cls: cls.__name__)
def test_a_bug_shows_no_message_to_the_caller(cls: type[ServiceError]) -> None:
    """Only what is the caller's business is explained."""
    reply = error_reply(make(cls), "id-1").error
    is_explained = DOCUMENTED[cls.__name__] != 500
    assert (MARK in reply.message) is is_explained
    assert reply.message if is_explained else reply.message == "internal error"
    assert (reply.code, reply.request_id) == (cls.code, "id-1")


def test_headers_say_when_to_come_back_and_what_key_is_expected() -> None:
    """Whole seconds, at least one."""
    for seconds, header in ((0.0, "1"), (0.2, "1"), (1.0, "1"), (1.1, "2")):
        response = error_response(errors.Overloaded("full", seconds), "id")
        assert response.headers["Retry-After"] == header
    assert error_response(errors.Unauthorized("key"), "id").headers["WWW-Authenticate"] == "Bearer"
    assert "Retry-After" not in error_response(errors.NotReady("later"), "id").headers


def test_an_input_error_names_its_field_first() -> None:
    """So that a caller finds it without parsing."""
    assert str(errors.InputError("wrong", "answer")) == "answer: wrong"
    assert str(errors.InputError("wrong")) == "wrong"


def test_where_it_was_raised_is_told_without_the_message() -> None:
    """For logs, which must not quote submitted text."""
    with pytest.raises(ValueError, match=MARK) as caught:
        int(MARK)
    assert re.fullmatch(r"test_errors\.py:\d+", errors.raised_at(caught.value))
    assert errors.raised_at(ValueError(MARK)) == "unknown"


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("grondedness", ["groundedness", "looping"], "did you mean 'groundedness'?"),
        ("a1", ["a2", "a3", "a4", "a5"], "one of 4 known ids, such as a5, a4, a3"),
        ("word1", ["word2", "word3", "word4", "word5"], "did you mean 'word5' or 'word4' or"),
        ("far", ["looping", "bias"], "one of looping, bias"),
        ("far", [], "no id: none is known here"),
        ("x" * 1_000_000, ["looping"], "one of looping"),
    ],
)
def test_an_unknown_name_gets_at_most_three_suggestions(
    name: str, known: list[str], hint: str
) -> None:
    """However many there are, and however long the name is."""
    found = errors.choices(name, known, "id")
    assert hint in found
    assert sum(other in found for other in known) <= 3
