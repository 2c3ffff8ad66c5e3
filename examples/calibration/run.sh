#!/bin/sh
# From answers to a served configuration with a known error rate, in one go (about a minute).
# Usage: examples/calibration/run.sh [FOLDER]    results go to FOLDER, build/calibration if unset.
# The last step re-creates what docs/calibration.md quotes about real scores; skip it with FAST=1.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=${1:-$root/build/calibration}
guardrail=${GUARDRAIL:-$root/.venv/bin/guardrail}
python=${PYTHON:-$root/.venv/bin/python}

rm -rf "$folder"
"$python" "$here/make_lab.py" "$folder"
cd "$folder"

echo "== how many labels does it take?"
"$guardrail" calibrate plan --alpha 0.15 --good-share 0.6

echo "== evaluate"
"$guardrail" evaluate lab.json --out run \
    --evaluators hallucination,groundedness,answer_relevancy_sentence,looping,language_mismatch

echo "== draw 50 of 75 questions and label their answers"
"$guardrail" calibrate sample run --n 50 --whole-questions --out to_label.jsonl
"$python" "$here/make_lab.py" . --label to_label.jsonl.sample.jsonl

echo "== fit"
"$guardrail" calibrate fit run --labels labels.jsonl --sample to_label.jsonl.sample.jsonl \
    --base "$here/base.json" --alpha 0.15 --delta 0.10 --out policy.json --report report

echo "== is the promise kept on the other 25 questions? (1: broken, or scores have drifted)"
"$guardrail" calibrate check policy.json --lab run --labels check_labels.jsonl

echo "== serve: replies say calibrated, and make the next scored lab"
head -n 20 requests.jsonl > some.jsonl
head -n 20 bodies.jsonl | "$guardrail" check - --config policy.json --output replies.jsonl \
    || [ $? -eq 1 ]
"$python" - <<'PYTHON'
import json
replies = [json.loads(line) for line in open("replies.jsonl", encoding="utf-8")]
assert replies and all(reply["calibrated"] for reply in replies)
print(len(replies), "replies, all calibrated")
PYTHON
"$guardrail" calibrate lab some.jsonl replies.jsonl --config policy.json --out served_lab.jsonl

echo "== the whole lab under the new configuration, without scoring again"
"$guardrail" calibrate derive run --config policy.json --before "$here/base.json" \
    --labels labels.jsonl --out derived

if [ -z "${FAST:-}" ]; then
    echo "== what the promise is worth on these scores: 1000 labellings"
    cd "$root" && "$python" -m tests.simulation.study --real "$folder/run"
    for picture in scores reliability trade-off; do
        cp "$folder/report/$picture.png" "$root/docs/images/calibration/example-$picture.png"
    done
fi
