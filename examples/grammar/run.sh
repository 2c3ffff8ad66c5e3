#!/bin/sh
# From a database to who is to blame, in about a minute.
# Usage: examples/grammar/run.sh [FOLDER]    results go to FOLDER, build/grammar if unset.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=${1:-$root/build/grammar}
guardrail=${GUARDRAIL:-$root/.venv/bin/guardrail}
python=${PYTHON:-$root/.venv/bin/python}

rm -rf "$folder"
"$python" "$here/make_company.py" "$folder"
cd "$folder"
export COMPANY="$folder" PYTHONPATH="$here"

echo "== what may questions be about?"
"$guardrail" grammar schema company.db --labels labels.json

echo "== SQL that has one answer, in six wordings"
"$guardrail" grammar templates company.db --labels labels.json --joins 0 --out templates.json

echo "== fill it"
"$guardrail" grammar generate company.db --labels labels.json --templates templates.json \
    --out lab.jsonl

for system in ask ask_with_wrong_chunks ask_with_a_guessing_reader ask_with_swapped_rows; do
    echo "== $system"
    "$guardrail" ask lab.jsonl --target "python:company_rag:$system" --concurrency 1 \
        --out "$system.json"
    "$guardrail" grammar score "$system.json" --out "$system"
done
