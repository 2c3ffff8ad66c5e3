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
"${pip[@]}" --no-deps -r requirements/peers.txt
"${pip[@]}" --no-deps --no-build-isolation -e guardrail_client -e . \
	-e service/guardrail_offline -e models/guardrail_models -e load_tests/guardrail_bench
[ "${1:-}" = --install-only ] && exit 0
exec "$venv/bin/python" models/build_embedding.py "$@"
