#!/usr/bin/env bash
# Pins every environment anew, in the order in which they build on each other. Needs uv on the path.
# A pin is kept where it still fits; `compile.sh --upgrade` takes the newest. export.txt is pinned apart:
# `pip freeze` in an environment with torch for processors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
pin() {
	uv pip compile --quiet --universal --python-version 3.11 --no-header \
		--no-emit-index-url --no-emit-find-links "$@"
}
for name in runtime demo dev vendors litellm; do
	pin --excludes without.txt "$name.in" --output-file "$name.txt" "$@"
done
for name in load browser wheels; do
	pin "$name.in" --output-file "$name.txt" "$@"
done
