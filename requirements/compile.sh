#!/usr/bin/env bash
# Pins every environment anew, in the order in which they build on each other.
# A pin is kept where it still fits; `compile.sh --upgrade` takes the newest. `compile.sh --check` writes
# nothing and fails if a list is not what its .in file gives. uv is taken from the path, or installed for
# this run; packages come from where pip gets them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
check=false
[ "${1:-}" = --check ] && { check=true; shift; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! uv=$(command -v uv); then
	"${PYTHON:-python3}" -m venv "$work/venv"
	"$work/venv/bin/pip" install --quiet --disable-pip-version-check uv
	uv=$work/venv/bin/uv
fi
index=${UV_DEFAULT_INDEX:-$("${PYTHON:-python3}" -m pip config get global.index-url 2>/dev/null || true)}
[ -z "$index" ] || export UV_DEFAULT_INDEX=$index

cp ./*.in ./*.txt "$work"
cd "$work"
pin() {
	"$uv" pip compile --quiet --universal --python-version 3.11 --no-header \
		--no-emit-index-url --no-emit-find-links "$@" > log 2>&1 || { cat log; exit 1; }
}
for name in runtime demo dev grammar vendors litellm ray; do
	pin --excludes without.txt "$name.in" --output-file "$name.txt" "$@"
done
pin --excludes without.txt --overrides despite.txt adapters.in --output-file adapters.txt "$@"
for name in load browser databases pandas providers resolution suites wheels; do
	pin "$name.in" --output-file "$name.txt" "$@"
done
pin --excludes without-gpu.txt export.in --output-file export.txt "$@"
cd "$OLDPWD"

for list in *.txt; do
	if $check; then
		diff -u --label "$list" --label "$list, compiled" "$list" "$work/$list" || failed=true
	else
		cp "$work/$list" "$list"
	fi
done
[ -z "${failed:-}" ]
