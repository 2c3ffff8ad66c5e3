#!/bin/sh
# Usage: check.sh ANSWERS.jsonl OUT. Evaluates answers, then compares them with those of main.
# Ends with 0 if all is well, 1 if answers are worse than they may be, 2 or 3 if that is not known.
set -eu
here=$(dirname "$0")
metrics=faithfulness,answer_semantic_similarity,rouge

guardrail evaluate "$here/main.jsonl" -e "$metrics" -o "$2/main"
guardrail evaluate "$1" -e "$metrics" -o "$2/change" \
  --fail-under faithfulness=.5 --min-coverage .9 \
  --junit "$2/bounds.xml" --summary "$2/bounds.md"
guardrail compare "$2/main" "$2/change" --metrics faithfulness,answer_semantic_similarity \
  --max-drop .02 --junit "$2/compared.xml" --summary "$2/compared.md"
