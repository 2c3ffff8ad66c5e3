"""The model card of an export: where it comes from, how it was made, what was measured."""

from __future__ import annotations

from guardrail_models.recipe import Recipe
from guardrail_models.verify import Verification
from guardrail_service.inference.pack import ModelFile

_SCORE = {
    "embedding": "cosines of all pairs of rows",
    "causal_lm": "mean log probabilities of the texts",
}


def card(name: str, recipe: Recipe, file: ModelFile, found: Verification) -> str:
    """Return the card as Markdown.

    Args:
        name: Of the model in the manifest.
        recipe: What was declared.
        file: Its manifest entry.
        found: How it compares with the original.
    """
    labels = ", ".join(f"`{ours}` = {theirs}" for ours, theirs in (recipe.labels or {}).items())
    languages = ", ".join(file.languages) if file.languages else "any"
    scores = _SCORE.get(recipe.role, "probabilities")
    return f"""# {name}

| | |
| --- | --- |
| role | {recipe.role} |
| source | {file.source.name} |
| revision | {file.source.revision} |
| licence | {file.source.license} |
| architecture | {file.architecture} |
| precision | {file.precision} |
| longest row | {file.max_tokens} tokens with special tokens; longer rows are refused, never cut |
| batch rule | {file.batch_rule} |
| languages | {languages} |
| activation | {file.activation or "none"} |
| labels | {labels or "none"} |
| pooling | {recipe.pooling or "none"} |
| template | {"see manifest" if recipe.template else "none"} |

Made by `guardrail models export`. The weights are the original's; only their precision and the end
of the graph are ours. What the original was trained on, and where it fails, its own card says.

## Compared with the original

{found.rows} rows of at most {found.longest} tokens, each alone, through the session that serves it.
Compared are {scores}: {found.scores} values.

| | |
| --- | --- |
| largest difference | {found.largest:.5f} |
| mean difference | {found.mean:.6f} |
| on the other side of {found.threshold:g} | {found.flips} of {found.scores} |
| largest change beside padded rows | {found.batch:.6f} |
| other side of {found.threshold:g} by that | {found.batch_flips} |

These are differences of arithmetic. They say nothing about how good the model is.
"""
