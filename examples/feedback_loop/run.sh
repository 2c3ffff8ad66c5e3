#!/bin/sh
# From production decisions to the next policy, by commands: about two minutes.
# Usage: examples/feedback_loop/run.sh [FOLDER]    files go to FOLDER, build/feedback_loop if unset.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=${1:-$root/build/feedback_loop}
guardrail=${GUARDRAIL:-$root/.venv/bin/guardrail}
python=${PYTHON:-$root/.venv/bin/python}

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
export GUARDRAIL_POLICIES=policies
export GUARDRAIL_DECISIONS_URL=sqlite:///decisions.db
export GUARDRAIL_DECISIONS_TEXTS=full GUARDRAIL_DECISIONS_KEYS_FILE=keys

echo "== 1. serve version 1, and keep decisions with encrypted texts"
(umask 077 && "$guardrail" decisions new-key > keys)
"$guardrail" policies add "$here/base.json" --why "shipped thresholds"
"$guardrail" policies promote support@1
"$guardrail" serve --uds service.sock > service.log 2>&1 &
service=$!
trap 'kill $service 2> service.end || true' EXIT
"$python" "$here/production.py" service.sock 0 200

echo "== 2. draw decisions with known probabilities; people label 50"
"$guardrail" decisions sample --flagged 15 --random 35 --viewer ann --out drawn
"$python" "$here/annotator.py" drawn
"$guardrail" decisions labels drawn

echo "== 3. fit thresholds that flag at most a fifth of good answers, surely to 90 %"
"$guardrail" calibrate fit drawn/lab.jsonl --labels drawn/labels.jsonl \
    --sample drawn/to_label.jsonl.sample.jsonl --base "$here/base.json" \
    --alpha 0.2 --delta 0.1 --out fitted.json

echo "== 4. what would it have decided? from the stored scores (3: too little can be replayed)"
"$guardrail" policies add fitted.json --name support --why "fitted on 50 labels"
"$guardrail" policies diff support@1 support@2 || [ $? -eq 1 ]
"$guardrail" replay "$GUARDRAIL_DECISIONS_URL" --policy support@2 --fail-over 60% --out replay.csv

echo "== 5. beside the old one, deciding nothing"
"$guardrail" policies shadow support 2
"$python" "$here/production.py" service.sock 200 40 --shadow

echo "== 6. make it live; rollback is one command as well"
"$guardrail" policies promote support@2 --why "replayed, and watched in the shadow"
"$guardrail" policies shadow support
"$python" "$here/production.py" service.sock 240 115 --version 2

echo "== 7. watch: shares by week, drift, and whether the promise is kept (1: somebody should look)"
"$guardrail" decisions sample --flagged 30 --random 60 --viewer ann --out watched
"$python" "$here/annotator.py" watched
"$guardrail" decisions labels watched
"$guardrail" decisions report --out report.html || [ $? -eq 1 ]
"$guardrail" decisions verify
