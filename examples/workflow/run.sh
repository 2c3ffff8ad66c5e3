#!/usr/bin/env bash
# The nine steps over the handbook of this folder, without a judge. Usage: run.sh OUT [further options of init]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$1; shift
mkdir -p "$out"
export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH}
guardrail workflow init "$out/harbour" "$here/handbook" --name "Harbour handbook" --target python:harbour_rag:answer \
	--set generation.count=60 --set calibration.sample=60 --set calibration.alpha=0.2 --set calibration.delta=0.2 \
	--set 'evaluation.evaluators=["answer_correctness","groundedness","no_answer"]' \
	--set variations.cases=15 --set adversarial.count=24 --set adversarial.resamples=500 --set failures.trees=200 \
	--set topics.chunk_characters=400 "$@"
guardrail workflow run "$out/harbour"
python "$here/people.py" "$out/harbour" "$out/labels.csv"
guardrail workflow edit "$out/harbour" --labels "$out/labels.csv"
guardrail workflow status "$out/harbour"
guardrail workflow run "$out/harbour"
guardrail workflow report "$out/harbour"
guardrail workflow artefacts "$out/harbour"
guardrail workflow share "$out/harbour" --out "$out/harbour.zip"
