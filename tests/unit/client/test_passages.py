"""Passages as applications hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from guardrail_client.passages import wire_passages


@dataclass
class LangChainDocument:
    """The fields of `langchain_core.documents.Document` 1.0."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass
class LlamaIndexNode:
    """The fields of `llama_index.core.schema.TextNode` 0.14 that are read."""

    text: str
    node_id: str = "n-1"

    def get_content(self, metadata_mode: str = "none") -> str:
        """Return the text."""
        return self.text


@dataclass
class LlamaIndexScored:
    """The fields of `llama_index.core.schema.NodeWithScore` 0.14 that are read."""

    node: LlamaIndexNode
    score: float

    @property
    def node_id(self) -> str:
        """Return the node's id."""
        return self.node.node_id

    def get_content(self, metadata_mode: str = "none") -> str:
        """Return the node's text."""
        return self.node.text


@dataclass
class HaystackDocument:
    """The fields of `haystack.Document` 2.20 that are read."""

    content: str | None
    id: str = "h-1"


@pytest.mark.parametrize(
    ("passage", "sent"),
    [
        ("p", "p"),
        ({"text": "p", "id": 7, "score": 0.5}, {"text": "p", "id": "7"}),
        ({"page_content": "p", "metadata": {}}, {"text": "p"}),
        (LangChainDocument("p"), {"text": "p"}),
        (LangChainDocument("p", id="d-1"), {"text": "p", "id": "d-1"}),
        ((LangChainDocument("p"), 0.7), {"text": "p"}),
        (LlamaIndexNode("p"), {"text": "p", "id": "n-1"}),
        (LlamaIndexScored(LlamaIndexNode("p"), 0.7), {"text": "p", "id": "n-1"}),
        (HaystackDocument("p"), {"text": "p", "id": "h-1"}),
    ],
)
def test_documents_of_other_libraries_are_passages(passage: Any, sent: Any) -> None:
    """Their text and id reach the service, nothing else of theirs does."""
    assert wire_passages([passage]) == [sent]
    assert wire_passages(iter([passage])) == [sent]


def test_no_passages() -> None:
    """None and an empty list are the same."""
    assert wire_passages(None) == wire_passages([]) == []


@pytest.mark.parametrize(
    "found", ["one text", [7], [{"body": "x"}], {"text": "x"}, [HaystackDocument(None)], b"x"]
)
def test_a_value_that_is_no_passage_is_an_error(found: Any) -> None:
    """To leave one out would change the verdict without a word."""
    with pytest.raises(TypeError, match="contexts"):
        wire_passages(found)
