"""Reads the records of other suites as the columns that `columns.py` knows; a turn is a record.

Formats as their projects publish them: DeepEval (`EvaluationDataset.save_as`), LangSmith (examples,
`ExperimentResults.to_pandas`), Ragas (`SingleTurnSample`, `MultiTurnSample`), Amazon Bedrock
(prompt datasets of RAG and model evaluations). RAGChecker and LlamaIndex have columns only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from guardrail_offline.datasets.cases import CONVERSATION, Case, question_group
from guardrail_offline.datasets.columns import NAMES, RowPlace, case_of
from guardrail_offline.datasets.literals import parsed
from guardrail_service.errors import ConfigurationError, choices

Record = Mapping[str, Any]
_TURNS = "conversationTurns"
_DOTTED = ("inputs.", "outputs.", "reference_outputs.", "reference.")
_USER, _ANSWERS, _TOOLS = ("user", "human"), ("assistant", "ai"), ("tool", "function")


class RecordReader:
    """Turns records into cases, and remembers the columns that nothing reads.

    Args:
        mapping: Column by field of a case, such as {"answer": "my_col"}; a dot enters an object.

    Raises:
        ConfigurationError: If a field is not known.
    """

    def __init__(self, mapping: Mapping[str, str] | None = None) -> None:
        self.ignored: set[str] = set()
        self.mapping = {_field(name): column for name, column in (mapping or {}).items()}
        self._met: set[str] = set()

    def cases(self, record: Record, place: RowPlace) -> Iterator[Case]:
        """Yield the case of a record, or one for each turn of a conversation."""
        for part in _parts(self._renamed(record), place):
            self.ignored |= _unread(part)
            yield case_of(part, place)

    def finish(self, file: str) -> None:
        """Raise ConfigurationError if a column of the mapping was in no record."""
        for field, column in self.mapping.items():
            if column not in self._met:
                where = f"{file}: --map {field}={column}"
                raise ConfigurationError(where, "no such column", "a column of the lab")

    def _renamed(self, record: Record) -> Record:
        if not self.mapping:
            return record
        found = dict(record)
        for field, column in self.mapping.items():
            value = _value(record, column)
            if value is _ABSENT:
                continue
            self._met.add(column)
            found.pop(column, None)
            for name in NAMES[field]:
                found.pop(name, None)
            found[NAMES[field][0]] = value
        return found


_ABSENT = object()


def mapping_of(options: Sequence[str]) -> dict[str, str]:
    """Return the mapping that options such as `answer=my_col` say.

    Raises:
        ConfigurationError: If one is no FIELD=COLUMN, or a field is not known or named twice.
    """
    found: dict[str, str] = {}
    for option in options:
        field, equals, column = option.partition("=")
        if not equals or not column.strip():
            raise ConfigurationError("--map", repr(option), "FIELD=COLUMN")
        if _field(field.strip()) in found:
            raise ConfigurationError("--map", f"{field.strip()} twice", "each field once")
        found[_field(field.strip())] = column.strip()
    return found


def _field(name: str) -> str:
    for field, names in NAMES.items():
        if name == field or name in names:
            return field
    raise ConfigurationError("--map", repr(name), choices(name, set(NAMES), "field"))


def _value(record: Record, column: str) -> Any:
    """Return a column's value; one with a dot that is no column enters an object."""
    if column in record:
        return record[column]
    value: Any = record
    for part in column.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _ABSENT
        value = value[part]
    return value


def _unread(record: Record) -> set[str]:
    """Return the columns of a record whose value reaches no case."""
    given = {name for name, value in record.items() if value is not None}
    read = {next((name for name in names if name in given), None) for names in NAMES.values()}
    return {str(name) for name in given - read}


def _parts(record: Record, place: RowPlace) -> Iterator[Record]:
    if isinstance(record.get(_TURNS), list):
        yield from _bedrock(record, place)
    elif isinstance(record.get("modelResponses"), list):
        yield from _bedrock_model(record, place)
    elif isinstance(record.get("inputs"), Mapping) or any(
        str(name).startswith(_DOTTED[0]) for name in record
    ):
        yield _langsmith(record)
    elif (found := _messages(record)) is not None:
        yield from _conversation(*found, record, place)
    elif "retrieval_context" in record:
        yield _deepeval(record)
    else:
        yield record


def _deepeval(record: Record) -> Record:
    """Return a test case of DeepEval: its `context` is what should have been retrieved."""
    found = dict(record)
    found["reference_contexts"] = found.pop("context", None)
    for name in ("retrieval_context", "reference_contexts"):
        value = found[name]
        if isinstance(value, str) and value.strip()[:1] not in ("[", "{"):
            # as save_as joins them in CSV and JSON lines
            found[name] = value.split("|") if value.strip() else None
    return found


def _langsmith(record: Record) -> Record:
    """Return an example, or a row of an experiment: {inputs, outputs, reference_outputs}.

    In an example of a dataset, which no system has answered, `outputs` are the reference.
    """
    parts: dict[str, dict[str, Any]] = {"inputs": {}, "outputs": {}, "reference_outputs": {}}
    found: dict[str, Any] = {}
    for name, value in record.items():
        head, dot, rest = str(name).partition(".")
        part = parts.get("reference_outputs" if head == "reference" else head)
        if part is None or not (dot or isinstance(value, Mapping | None)):
            found[name] = value
        elif dot:
            part[rest] = value
        else:
            part.update(value or {})
    asked, given, reference = parts.values()
    is_example = not any(str(name).startswith("reference") for name in record)
    if is_example:
        given, reference = {}, given
    found |= {name: value for name, value in asked.items() if name not in found}
    found |= {name: value for name, value in given.items() if name not in NAMES["question"]}
    question, answer = _only(asked, "question"), _only(given, "answer")
    expected = _only({**reference}, "answer", "expected")
    named = {"question": question, "answer": answer, "expected": expected}
    return found | {NAMES[k][0]: v for k, v in named.items() if v is not None} | _last_user(asked)


def _only(part: Record, *fields: str) -> Any:
    """Return the value of a field under one of its names, or a lone value."""
    for field in fields:
        for name in NAMES[field]:
            if part.get(name) is not None:
                return part[name]
    values = [value for value in part.values() if isinstance(value, str)]
    return values[0] if len(values) == 1 and len(part) == 1 else None


def _last_user(asked: Record) -> dict[str, Any]:
    messages = asked.get("messages")
    if not isinstance(messages, list):
        return {}
    said = [m.get("content") for m in messages if isinstance(m, Mapping) and _is(m, _USER)]
    return {NAMES["question"][0]: said[-1]} if said else {}


def _is(message: Record, roles: Sequence[str]) -> bool:
    return (message.get("role") or message.get("type")) in roles


def _messages(record: Record) -> tuple[str, list[Record]] | None:
    """Return the column of a conversation and its messages: Ragas', DeepEval's or OpenAI's."""
    for name in ("user_input", "turns", "messages"):
        value = record.get(name)
        if isinstance(value, str) and value.lstrip().startswith("[{"):
            try:
                value = parsed(value)
            except ValueError:
                continue
        if isinstance(value, list) and value and all(isinstance(m, Mapping) for m in value):
            return name, value
    return None


def _conversation(
    name: str, messages: Sequence[Record], record: Record, place: RowPlace
) -> Iterator[Record]:
    """Yield a record per answer; the reference of the conversation is that of the last one.

    Pictures that the user has shown so far belong to the question.

    Tools' outputs since the question are passages, and so is what the user said before; earlier
    answers of the system are not, for they would support themselves.
    """
    turns: list[dict[str, Any]] = []
    asked: list[str] = []
    passages: list[Any] = []
    images: list[str] = []
    for message in messages:
        content = message.get("content")
        if _is(message, _USER):
            asked.append(_text(content, name, place))
            passages = []
            images = [*images, *_images(content)]
        elif _is(message, _TOOLS):
            passages.append(_text(content, name, place))
        elif _is(message, _ANSWERS) and asked:
            if not content:  # a call of a tool
                continue
            own = message.get("retrieval_context") or []
            found = [*own, *passages] or None
            answer = {"answer": _text(content, name, place), "contexts": found, "images": images}
            turns.append({"question": asked[-1], "before": asked[:-1], **answer})
    if asked and (not turns or turns[-1]["question"] != asked[-1]):
        turns.append({"question": asked[-1], "before": asked[:-1], "images": images})
    if not turns:
        raise place.refuse(name, messages, "messages of user and assistant")
    rest = {k: v for k, v in record.items() if k != name}
    if "expected_outcome" in rest:
        rest["expected_output"] = rest.pop("expected_outcome")
    yield from _turn_records(turns, rest, place)


def _text(content: Any, name: str, place: RowPlace) -> str:
    if isinstance(content, list):  # parts, as OpenAI and Bedrock have them
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "\n".join(text for text in texts if isinstance(text, str))
    if not isinstance(content, str):
        raise place.refuse(name, content, "messages with a text")
    return content


def _images(content: Any) -> list[str]:
    """Return the pictures among the parts of a message, as OpenAI has them."""
    parts = content if isinstance(content, list) else []
    found = [part.get("image_url") for part in parts if isinstance(part, Mapping)]
    urls = [one.get("url") if isinstance(one, Mapping) else one for one in found]
    return [url for url in urls if isinstance(url, str)]


def _turn_records(
    turns: Sequence[Mapping[str, Any]], shared: Record, place: RowPlace
) -> Iterator[Record]:
    key = next((str(shared[n]) for n in NAMES["key"] if shared.get(n)), f"row-{place.row}")
    whole = question_group("\n".join(turn["question"] for turn in turns))
    expected = {name for name in NAMES["expected"] if name in shared}
    for number, turn in enumerate(turns, start=1):
        is_last = number == len(turns)
        record = {k: v for k, v in shared.items() if is_last or k not in expected}
        before = enumerate(turn["before"], start=1)
        record |= {NAMES["question"][0]: turn["question"], NAMES["answer"][0]: turn.get("answer")}
        record |= {k: turn[k] for k in ("expected_output", "reference_contexts") if k in turn}
        if turn.get("images"):
            record["images"] = turn["images"]
        if turn.get("contexts") is not None:  # else nothing is known about the passages
            said = [{"id": f"turn-{n}", "text": text} for n, text in before]
            record["retrieval_context"] = [*turn["contexts"], *said]
        if len(turns) > 1:
            link = {"type": CONVERSATION, "target": key, "target_type": CONVERSATION}
            record |= {"key": f"{key}@{number}", "relationships": [link]}
            record |= {"group": shared.get("group") or whole}
        yield record


def _bedrock(record: Record, place: RowPlace) -> Iterator[Record]:
    """Yield the turns of a prompt dataset of a RAG evaluation, with the system's own responses."""
    turns: list[dict[str, Any]] = []
    shared = {k: v for k, v in record.items() if k != _TURNS}
    for turn in record[_TURNS]:
        if not isinstance(turn, Mapping) or not isinstance(turn.get("prompt"), Mapping):
            raise place.refuse(_TURNS, turn, "turns with a prompt")
        output = turn.get("output") or {}
        question = _text(turn["prompt"].get("content"), _TURNS, place)
        found: dict[str, Any] = {"question": question, "before": [t["question"] for t in turns]}
        for name, theirs in (
            ("expected_output", "referenceResponses"), ("reference_contexts", "referenceContexts"),
        ):  # fmt: skip
            if turn.get(theirs):
                found[name] = [_text(one.get("content"), theirs, place) for one in turn[theirs]]
        if "text" in output:
            found["answer"] = output["text"]
        shared.setdefault("model", output.get("knowledgeBaseIdentifier"))
        results = output.get("retrievedPassages") or output.get("retrievedResults")
        if results is not None:
            found["contexts"] = [_bedrock_passage(one) for one in results["retrievalResults"]]
        turns.append(found)
    yield from _turn_records(turns, shared, place)


def _bedrock_passage(result: Record) -> dict[str, Any]:
    return {"text": result["content"]["text"], "id": result.get("name")}


def _bedrock_model(record: Record, place: RowPlace) -> Iterator[Record]:
    """Yield a record per response of a model evaluation."""
    shared = {k: v for k, v in record.items() if k != "modelResponses"}
    for one in record["modelResponses"]:
        if not isinstance(one, Mapping):
            raise place.refuse("modelResponses", one, "objects with response, modelIdentifier")
        yield {**shared, "response": one.get("response"), "model": one.get("modelIdentifier")}
