"""Do the words between quotation marks stand in a passage? An evaluator; serving needs it not."""

from __future__ import annotations

from guardrail_offline import CaseView, Evaluator, EvaluatorSpec, NoParameters, State, Unavailable
from guardrail_service import MetricSpec


class Quotes(Evaluator[NoParameters]):
    """The share of quotations that are word for word."""

    spec = EvaluatorSpec(
        id="acme_quotes",
        name="Quotations",
        summary="Do the quotations of the answer stand in its passages?",
        metrics=(MetricSpec("quotes_found", threshold=1.0),),
        inputs=frozenset({"answer", "contexts"}),
        run_class="D",
        also=("acme:quotes",),
    )
    parameters = NoParameters

    def judge(self, view: CaseView, parameters: NoParameters) -> dict[str, float]:
        """Return the share, or that there is nothing to judge."""
        quoted = [part.strip() for part in view.answer.split('"')[1::2] if part.strip()]
        if not quoted:
            raise Unavailable(State.NOT_APPLICABLE, "no_quotation")
        found = sum(any(q in passage.text for passage in view.contexts) for q in quoted)
        return {"quotes_found": found / len(quoted)}
