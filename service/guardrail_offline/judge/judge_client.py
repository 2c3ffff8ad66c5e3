"""Asks a judge: one structured answer per question, kept, within limits, never an exception.

A question is sent with a JSON schema; where a server does not know that, as JSON; else as text. An
answer that does not follow the schema is asked for once more with what is wrong. Without one it is
a `parse_failure`, never a score.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from guardrail_offline.datasets.images import split_content
from guardrail_offline.hosts.chat import ChatHost, Completion
from guardrail_offline.hosts.endpoint import Patience
from guardrail_offline.hosts.errors import (
    BadReply,
    HostError,
    HostRefused,
    HostUnavailable,
    RateLimited,
    SchemaUnsupported,
    TimedOut,
)
from guardrail_offline.hosts.opening import HostChoice, open_chat
from guardrail_offline.judge.judge_replies import label_weights, parse
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.judge.judge_tasks import Task, answer_schema
from guardrail_offline.judge.limits import JudgeLimits, limits_of
from guardrail_offline.judge.results import FINAL, JudgeResult, JudgeStatus, TokenUsage
from guardrail_offline.judge.transcripts import REDACTED, TranscriptStore, key_of
from guardrail_service.errors import ServiceError

Rung = Literal["json_schema", "json_object", "text"]
RUNGS: tuple[Rung, ...] = ("json_schema", "json_object", "text")
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 60.0
TOP_LOGPROBS = 10
_LOGPROBS = ("logprobs", "top_logprobs")
_TOKENS_PER_IMAGE = 1600
"""Of a large picture at the large vendors, for the same guess."""
_LETTERS_PER_TOKEN = 3
"""English has about four; a guess that is too high lays aside too much, and never too little by
much. Used only before a call: what a call has cost is what the server says."""
_SHAPE_STATUSES = (400, 404, 415, 422, 501)
"""Statuses of servers that do not know a form of answer."""


class JudgeUnusable(ServiceError):
    """Nothing can be asked: a wrong key, an unknown model, nobody there."""

    code = "judge_unusable"


@dataclass
class _Tally:
    """Tokens, seconds and tries of one question."""

    usage: TokenUsage = field(default_factory=TokenUsage)
    seconds: float = 0.0
    attempts: int = 0


class _Failed(Exception):
    """No message came; carries the status and a word."""

    def __init__(self, status: JudgeStatus, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


@dataclass
class Judge:
    """A judge behind any chat host. Threads share it.

    Attributes:
        host: Who is asked.
        settings: Limits, mode and address.
        store: Transcripts; None keeps answers as long as this object lives.
        run: Whose budget is spent; several processes of one run share it.
        clock: Tells seconds.
        sleep: Waits.
        limits: Of pace and cost, where others ask as well; None for those of the settings alone.
    """

    host: ChatHost
    settings: JudgeSettings
    store: TranscriptStore | None = None
    run: str = ""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    limits: JudgeLimits | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Begin to count: time, cost and failures."""
        calls, usage = (0, TokenUsage())
        if self.store is not None and self.settings.mode != "replay":
            calls, usage = self.store.spent(self.run, self.settings.model)
        limits = self.limits or limits_of(self.settings, usage, self.clock, self.sleep)
        self.purse, self._requests, self._tokens, self._breaker = limits
        self.calls = calls
        self.unusable: str | None = None
        self.has_met_redacted = False
        self._began = self.clock()
        self._jitter = random.Random()  # noqa: S311 - spreads waits, no secrets
        self._lock = threading.Lock()
        self._asking: dict[str, Future[JudgeResult]] = {}
        self._memory: dict[str, JudgeResult] = {}
        self._rung_name = f"rung {self.settings.url} {self.settings.model}"
        noted = self.store.noted(self._rung_name) if self.store else None
        self._rung: Rung = next((rung for rung in RUNGS if rung == noted), RUNGS[0])

    def ask(
        self,
        task: Task,
        inputs: Mapping[str, Any],
        schema: Mapping[str, Any] | None = None,
        vote: int = 0,
    ) -> JudgeResult:
        """Return the judge's answer, or why there is none.

        Args:
            task: What is asked.
            inputs: The data, by name.
            schema: In the place of the task's.
            vote: Which of several answers to the same question; each is asked for by itself.
        """
        if schema is not None:
            task = task.with_(schema=schema)
        key = self.key(task, inputs, vote)
        with self._lock:
            waiting = self._asking.get(key)
            if waiting is None:
                mine: Future[JudgeResult] = Future()
                self._asking[key] = mine
        if waiting is not None:
            return replace(waiting.result(), cached=True)
        try:
            result = self._known_or_asked(key, task, inputs, vote)
            mine.set_result(result)
            return result
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._asking[key]

    def key(self, task: Task, inputs: Mapping[str, Any], vote: int = 0) -> str:
        """Return what the answer to a question is kept under; the mark is no part of it."""
        return key_of(
            {
                "model": self.settings.model,
                "base_url": self.settings.url,
                "messages": task.messages(inputs, "", marked=self.settings.marked),
                "schema": task.schema,
                "parameters": self._parameters(task, vote),
                "prompt": task.name,
                "vote": vote,
            }
        )

    @property
    def stopped(self) -> str | None:
        """Return why nobody is asked any more; None while somebody is."""
        if self.unusable is not None:
            return self.unusable
        return "nobody answers" if self._breaker.is_open else None

    @property
    def has_answered(self) -> bool:
        """Return whether any try was answered."""
        return self._breaker.succeeded

    def _known_or_asked(
        self, key: str, task: Task, inputs: Mapping[str, Any], vote: int
    ) -> JudgeResult:
        store, mode = self.store, self.settings.mode
        known = self._memory.get(key) if store is None else store.get(key)
        known = None if mode == "off" else known
        if mode == "replay":
            return known or self._not_there(key)
        again = self.settings.ask_again and known is not None and known.status != "ok"
        if known is not None and known.status in FINAL and not again:
            return known
        mark = store.mark(key) if store is not None else secrets.token_hex(4)
        messages = task.messages(inputs, mark, marked=self.settings.marked)
        result = self._asked(task, inputs, messages, mark, vote)
        if store is None and mode != "off":
            self._memory[key] = result
        if store is None or mode == "off":
            return result
        return store.put(key, task, messages, vote, result, again=again)

    def _not_there(self, key: str) -> JudgeResult:
        erased = self.store is not None and self.store.is_redacted(key)
        self.has_met_redacted |= erased
        detail = REDACTED if erased else "not_recorded"
        return JudgeResult("error", model=self.settings.model, detail=detail)

    def _asked(
        self,
        task: Task,
        inputs: Mapping[str, Any],
        messages: list[dict[str, Any]],
        mark: str,
        vote: int,
    ) -> JudgeResult:
        """Ask, and once more if the answer is none."""
        tally, deadline = _Tally(), self.clock() + self.settings.question_s
        said: Completion | None = None
        sent, tokens, why = list(messages), task.max_tokens, "error"
        for _ in range(2):
            options = self._parameters(task.with_(max_tokens=tokens), vote)
            try:
                said = self._completion(task, sent, options, tally, deadline)
            except _Failed as failed:
                return self._result(failed.status, tally, said, detail=failed.detail)
            if said.refused:
                return self._result("refused", tally, said, detail="declined")
            if said.finish == "length":
                why, tokens = "cut_off", 2 * tokens
                continue
            found = parse(said.text, task, inputs, mark if self.settings.marked else None)
            if found.why is None:
                weights = label_weights(said.text, said.logprobs, found.value, task)
                return replace(self._result("ok", tally, said), value=found.value, weights=weights)
            why = found.why
            again = f"That is no answer: {found.told}. Answer again, in the form of the schema."
            sent = [
                *messages,
                {"role": "assistant", "content": said.text[:4000]},
                {"role": "user", "content": again},
            ]
        return self._result("parse_failure", tally, said, detail=why)

    def _result(
        self, status: JudgeStatus, tally: _Tally, said: Completion | None, detail: str | None = None
    ) -> JudgeResult:
        return JudgeResult(
            status,
            raw=None if said is None else said.text,
            usage=tally.usage,
            latency=tally.seconds,
            attempts=tally.attempts,
            model=self.settings.model,
            fingerprint=None if said is None else said.fingerprint,
            detail=detail,
        )

    def _completion(
        self,
        task: Task,
        messages: Sequence[Mapping[str, Any]],
        options: Mapping[str, Any],
        tally: _Tally,
        deadline: float,
    ) -> Completion:
        """Return a message, in the first form of answer that the server knows."""
        rung, refused = self._rung, None
        for plain in (False, True) if "logprobs" in options else (True,):
            given = {name: value for name, value in options.items() if name not in _LOGPROBS}
            for candidate in RUNGS[RUNGS.index(rung) :]:
                asked = {**(given if plain else options), **self._form(task, candidate)}
                try:
                    said = self._tried(messages, asked, tally, deadline)
                except HostRefused as error:
                    refused = error
                    if not _is_about_the_form(error):
                        raise self._refused(error) from None
                    continue
                if candidate != rung:
                    self._remember(candidate)
                return said
        if refused is None:
            raise AssertionError("no form of answer was tried")
        raise self._refused(refused) from None

    def _refused(self, error: HostRefused) -> _Failed:
        if error.is_general:
            self.unusable = str(error)
        return _Failed("error", error.reason or f"status_{error.status}")

    def _remember(self, rung: Rung) -> None:
        self._rung = rung
        if self.store is not None:
            self.store.note(self._rung_name, rung)

    def _form(self, task: Task, rung: Rung) -> dict[str, Any]:
        if rung == "text":
            return {}
        if rung == "json_object":
            return {"response_format": {"type": "json_object"}}
        schema = answer_schema(task.schema, marked=self.settings.marked)
        named = {"name": task.id.replace(".", "_"), "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}

    def _parameters(self, task: Task, vote: int) -> dict[str, Any]:
        given: dict[str, Any] = {
            "temperature": task.temperature,
            "top_p": 1,
            "seed": 42 + vote,
            "max_tokens": task.max_tokens,
        }
        if task.logprobs:
            given |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        given |= dict(self.settings.options)
        return {name: value for name, value in given.items() if value is not None}

    def _tried(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: Mapping[str, Any],
        tally: _Tally,
        deadline: float,
    ) -> Completion:
        """Return a message; where nobody answers, or the judge is busy, ask again after a while.

        Raises:
            HostRefused: If the host refuses the request.
        """
        failed = _Failed("error", "not_asked")
        for attempt in range(self.settings.tries):
            self._may_ask(deadline)
            most = TokenUsage(tokens_in(messages), int(options.get("max_tokens") or 0))
            aside = self.purse.lay_aside(most)
            if aside is None:
                raise _Failed("budget", "budget")
            usage = TokenUsage()
            try:
                self._requests.take(1)
                self._tokens.take(most.prompt + most.completion)
                tally.attempts += 1
                said = self.host.chat(messages, **options)
                usage = _usage(said, most)
                tally.usage, tally.seconds = tally.usage + usage, tally.seconds + said.seconds
                self._breaker.note(answered=True)
                return said
            except HostRefused:
                self._breaker.note(answered=True)
                raise
            except HostError as error:
                self._breaker.note(answered=isinstance(error, BadReply))
                failed = _why(error)
                self._wait(attempt, error, failed, deadline)
            finally:
                self.purse.settle(aside, usage)
                self._spend(usage)
        raise failed

    def _spend(self, usage: TokenUsage) -> None:
        with self._lock:
            self.calls += 1
        if self.store is not None and self.settings.mode != "off":
            self.store.spend(self.run, self.settings.model, usage)

    def _may_ask(self, deadline: float) -> None:
        if self.unusable is not None:
            raise _Failed("error", "judge_unusable")
        if self._breaker.is_open:
            raise _Failed("error", "nobody_answers")
        now, limit = self.clock(), self.settings.run_s
        if limit is not None and now - self._began > limit:
            raise _Failed("timeout", "time_of_the_run")
        if now > deadline:
            raise _Failed("timeout", "time_of_the_question")

    def _wait(self, attempt: int, error: HostError, failed: _Failed, deadline: float) -> None:
        if attempt + 1 == self.settings.tries or self._breaker.is_open:
            return
        asked = error.wait_s if isinstance(error, HostUnavailable) else None
        most = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt)
        seconds = asked if asked is not None else self._jitter.uniform(0.0, most)
        if self.clock() + seconds > deadline:
            raise failed
        self.sleep(seconds)


def _is_about_the_form(error: HostRefused) -> bool:
    """Return whether another form of answer may be taken: the host says so, or does not say."""
    plain = type(error) is HostRefused and error.status in _SHAPE_STATUSES
    return plain or isinstance(error, SchemaUnsupported)


def _why(error: HostError) -> _Failed:
    if isinstance(error, TimedOut):
        return _Failed("timeout", "no_reply_in_time")
    if isinstance(error, RateLimited):
        return _Failed("rate_limited", "status_429")
    if isinstance(error, HostUnavailable) and error.status is not None:
        return _Failed("error", f"status_{error.status}")
    return _Failed("error", error.code)


def tokens_in(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return a guess of the tokens of some messages, rather too high."""
    texts, images = 0, 0
    for one in messages:
        text, shown = split_content(one["content"])
        texts, images = texts + len(text.encode("utf-8", "replace")), images + len(shown)
    return texts // _LETTERS_PER_TOKEN + 8 * len(messages) + _TOKENS_PER_IMAGE * images


def _usage(said: Completion, most: TokenUsage) -> TokenUsage:
    """Return the tokens of a call as the server counts them; the guess where it does not."""
    if said.tokens is None:
        return TokenUsage(most.prompt, max(1, len(said.text) // _LETTERS_PER_TOKEN))
    return TokenUsage(said.tokens[0], said.tokens[1], min(said.cached or 0, said.tokens[0]))


class _Nobody:
    """Stands where nobody is asked: in replay."""

    name = model = ""

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Completion:
        """Raise: there is nobody."""
        raise HostRefused("nobody")


def open_reader(settings: JudgeSettings) -> Judge:
    """Return what reads the transcripts of a judge and asks nobody.

    Raises:
        ConfigurationError: If there are none.
    """
    settings = replace(settings, mode="replay")
    return Judge(_Nobody(), settings, open_store(settings))


def open_store(settings: JudgeSettings) -> TranscriptStore | None:
    """Return the transcripts that the settings name; None if none are kept."""
    if settings.store is None:
        return None
    replay = settings.mode == "replay"
    return TranscriptStore(settings.store, read_only=replay, keep_texts=settings.keep_texts)


def open_judge(settings: JudgeSettings, run: str = "", host: ChatHost | None = None) -> Judge:
    """Return a judge on the host that the settings name, or on another.

    Raises:
        ConfigurationError: If the address, the key or the store cannot be used.
        MissingExtra: If it is Bedrock and boto3 is not installed.
    """
    return Judge(host or open_host(settings), settings, open_store(settings), run)


def open_host(settings: JudgeSettings) -> ChatHost:
    """Return who is asked, at the address that the settings name.

    Raises:
        ConfigurationError: If the address or the key cannot be used.
        MissingExtra: If it is Bedrock and boto3 is not installed.
    """
    limits = Patience(timeout_s=settings.timeout_s, retries=0)
    return open_chat(
        HostChoice(
            settings.url,
            settings.kind,
            settings.model,
            settings.key_variable,
            limits=limits,
            option="--judge",
        )
    )
