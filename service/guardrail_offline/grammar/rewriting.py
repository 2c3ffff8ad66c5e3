"""Words a template's text anew by a judge; the templates check what comes back."""

from __future__ import annotations

from guardrail_offline.grammar.queries import PLACEHOLDER
from guardrail_offline.grammar.templates import Rewriter
from guardrail_offline.judge.judge_tasks import TEXT, Example, Task, an_object
from guardrail_offline.judge.results import Asks

REWORD = Task(
    "reword_question",
    1,
    """\
You word a question of a user anew. It asks for exactly the same, in other words and in the style \
that is named. What stands in square brackets, brackets included, is a placeholder: take over each \
of them letter by letter, and no other.""",
    an_object(text=TEXT),
    (
        Example(
            {
                "text": "What is the location of the project [Project.Name]?",
                "style": "casual",
                "placeholders": ["[Project.Name]"],
            },
            {"text": "Hey, where's [Project.Name] being built?"},
        ),
        Example(
            {
                "text": "Give me the industry of the client of the project [Project.Name].",
                "style": "directive",
                "placeholders": ["[Project.Name]"],
            },
            {"text": "Name the line of business of whoever ordered [Project.Name]."},
        ),
    ),
    max_tokens=256,
)


def rewriter_of(judge: Asks) -> Rewriter:
    """Return what asks a judge for one more wording; None comes back where it gives none."""

    def rewrite(text: str, style: str) -> str | None:
        names = sorted(set(PLACEHOLDER.findall(text)))
        found = judge.ask(REWORD, {"text": text, "style": style, "placeholders": names})
        return str(found.value["text"]) if found.status == "ok" else None

    return rewrite
