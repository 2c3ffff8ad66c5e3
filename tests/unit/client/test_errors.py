"""The error tree: every status has a class, and no class shows submitted text."""

from __future__ import annotations

import pickle

import pytest

from guardrail_client import _typed_errors as _failures
from guardrail_client import errors
from guardrail_client.errors import (
    APIError,
    AuthenticationFailed,
    BadRequest,
    GuardrailError,
    InvalidRequest,
    NotReady,
    Overloaded,
    PayloadTooLarge,
    PermissionDenied,
    ServerError,
    UnexpectedReply,
    error_class,
)

CLASSES = {
    400: BadRequest,
    401: AuthenticationFailed,
    403: PermissionDenied,
    404: APIError,
    405: APIError,
    413: PayloadTooLarge,
    422: InvalidRequest,
    429: Overloaded,
    500: ServerError,
    502: ServerError,
    503: NotReady,
    504: ServerError,
    302: UnexpectedReply,
}
SECRET = "Your card number is 4111 1111 1111 1111, dear Ms Example."


def every_error() -> list[type[GuardrailError]]:
    """Return each class of the tree."""
    found = [e for e in vars(errors).values() if isinstance(e, type)]
    return [e for e in found if issubclass(e, GuardrailError)]


@pytest.mark.parametrize(("status", "expected"), CLASSES.items())
def test_every_error_status_has_a_class(status: int, expected: type[APIError]) -> None:
    """A refusal is raised as the class of its status, carrying status and request id."""
    error = _failures.refusal(status, {}, b"", sent=None, request_id="r-1")
    assert type(error) is expected is error_class(status)
    assert (error.status, error.request_id, error.body) == (status, "r-1", b"")


def test_every_refusal_that_is_not_5xx_is_its_own_class() -> None:
    """A caller can tell all refusals of the contract apart by class alone."""
    named = {400, 401, 403, 413, 422, 429, 503}
    assert len({error_class(status) for status in named}) == len(named)


@pytest.mark.parametrize("cls", every_error())
def test_the_module_docstring_draws_every_class(cls: type[GuardrailError]) -> None:
    """The drawn tree is complete."""
    assert errors.__doc__ is not None
    assert cls.__name__ in errors.__doc__


def test_every_code_is_unique() -> None:
    """`code` identifies the class when the service sent none."""
    codes = [cls.code for cls in every_error()]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("cls", every_error())
def test_an_error_survives_pickling(cls: type[GuardrailError]) -> None:
    """Worker processes can hand errors to their parent."""
    error = cls("message", request_id="r-1")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is cls
    assert (str(copy), copy.request_id) == (str(error), "r-1")


def test_the_services_own_words_and_code_are_kept() -> None:
    """Code, message, request id and Retry-After of the reply reach the caller."""
    body = {"error": {"code": "limit_exceeded", "message": "contexts: 300", "request_id": "r-7"}}
    error = _failures.refusal(422, {"retry-after": "1.5"}, body, sent=None, request_id="ours")
    assert str(error) == "422 limit_exceeded: contexts: 300 (request r-7)"
    assert (error.code, error.retry_after, error.body) == ("limit_exceeded", 1.5, body)


@pytest.mark.parametrize(
    "body", [None, b"oops", [], {"error": "text"}, {"error": {"message": 3}}, {"detail": "x"}]
)
def test_a_foreign_error_body_falls_back_to_the_class(body: object) -> None:
    """A proxy's page gives the typed error, with our own words and our own request id."""
    error = _failures.refusal(429, {}, body, sent=None, request_id="r-1")
    assert str(error) == f"429 overloaded: {Overloaded.summary} (request r-1)"


@pytest.mark.parametrize("field", ["answer", "question", "contexts"])
@pytest.mark.parametrize("echo", [SECRET, SECRET[10:40], f"bad value {SECRET!r} at 3"])
def test_an_echoed_text_is_not_in_the_message(field: str, echo: str) -> None:
    """Even a server or proxy that repeats submitted text does not get it into `str()`."""
    sent = {"answer": "x" * 30, "question": "y" * 30, "contexts": []}
    sent[field] = [{"text": SECRET}] if field == "contexts" else SECRET
    body = {"error": {"code": SECRET, "message": echo, "request_id": SECRET}}
    headers = {"x-request-id": SECRET}
    for payload in (sent, {"items": [sent]}):
        error = _failures.refusal(422, headers, body, sent=payload, request_id="r-1")
        assert str(error) == f"422 invalid_input: {InvalidRequest.summary} (request r-1)"
        assert "4111" not in repr(error)


FOUND = "found 200001 characters; expected at most 200000"


@pytest.mark.parametrize(
    ("answer", "message", "said"),
    [
        ("a", f"answer: {FOUND}", f"answer: {FOUND}"),
        ("answer", f"answer: {FOUND}", f"answer: {FOUND}"),
        ("2", f"contexts[2]: {FOUND}", f"contexts[2]: {FOUND}"),
        ("at", f"answer: {FOUND}", "answer: found 200001 characters; expected [...] most 200000"),
        ("42", "answer 42 is wrong", "answer [...] is wrong"),
        ("lobster!", "xlobster!x", "x[...]x"),
        ("龙虾", "坏龙虾坏", "坏[...]坏"),
        ("Anna: no", "Anna: no is wrong", "[...] is wrong"),
    ],
)
def test_a_short_text_leaves_the_rest_of_the_message(answer: str, message: str, said: str) -> None:
    """Field and expectation arrive, although an answer may be one of their words."""
    body = {"error": {"code": "invalid_input", "message": message}}
    sent = {"answer": answer, "contexts": []}
    error = _failures.refusal(422, {}, body, sent=sent, request_id="r")
    assert error.message == said


def test_a_short_answer_is_not_in_the_message_either() -> None:
    """There is no length below which an answer may be repeated."""
    sent = {"answer": "42", "contexts": []}
    body = {"error": {"message": "answer 42 is wrong"}}
    assert "42 is" not in str(_failures.refusal(400, {}, body, sent=sent, request_id="r"))


def test_a_blank_answer_does_not_silence_the_service() -> None:
    """White space repeats nothing."""
    sent = {"answer": " ", "contexts": []}
    body = {"error": {"message": "answer: no visible character"}}
    error = _failures.refusal(422, {}, body, sent=sent, request_id="r")
    assert error.message == "answer: no visible character"


def test_a_message_is_cut() -> None:
    """A page of text does not become a line of a log."""
    body = {"error": {"message": "m" * 10_000}}
    assert len(str(_failures.refusal(400, {}, body, sent=None, request_id="r"))) < 600


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        *(("3", 3.0), ("0.5", 0.5), ("0", 0.0)),
        *(("-1", None), ("inf", None), ("nan", None), ("", None)),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_retry_after_is_a_number_of_seconds(header: str, seconds: float | None) -> None:
    """Anything that is not a sensible number of seconds counts as not said."""
    assert _failures.retry_after({"retry-after": header}) == seconds
