#!/bin/sh
# Prepares, encodes, trains, exports and ships grounding branch and head; started again, it goes on.
# usage: train.sh --pairs FILE --dev FILE --work DIR [--qa FILE] [--written FOLDER] [--held-out FILE...]
#        [--start HEAD] [--start-branch BRANCH] [--start-weights RUN/best.pt]... [--subset N]
#        [--config FILE] [--pack DIR]
# environment: EXPORT_PYTHON, PYTHON
# --start and --start-branch take what was exported (ONNX) to begin from, --start-weights what runs
# kept (averaged); --subset N trains 20 steps on N pairs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
config="$here/base.json" pack="$root/models/embedded" work="" subset="" sources="" held="" start="" branch="" weights=""
while [ $# -gt 0 ]; do
    case "$1" in
        --config) config=$2; shift 2 ;;
        --pack) pack=$2; shift 2 ;;
        --work) work=$2; shift 2 ;;
        --subset) subset=$2; shift 2 ;;
        --start) start=$2; shift 2 ;;
        --start-branch) branch=$2; shift 2 ;;
        --start-weights) weights="$weights $2"; shift 2 ;;
        --pairs | --qa | --dev | --written) sources="$sources $1 $2"; shift 2 ;;
        --held-out)
            shift
            while [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; do held="$held $1"; shift; done ;;
        *) echo "unknown argument $1" >&2; exit 2 ;;
    esac
done
[ -n "$work" ] || { echo "--work DIR is missing: where the cache and checkpoints go" >&2; exit 2; }
torch=${EXPORT_PYTHON:-$root/.venv-export/bin/python}
serve=${PYTHON:-$root/.venv/bin/python}
export PYTHONPATH="$root/service:$here:$root/models/training:$root/models:$root/load_tests"
# shellcheck disable=SC2086 # lists of paths without blanks
"$torch" "$here/prepare.py" "$config" $sources ${held:+--held-out $held} \
    --out "$work/cache" --pack "$pack" ${subset:+--subset "$subset"}
# shellcheck disable=SC2086 # a list of paths without blanks
"$torch" "$here/train.py" "$config" --cache "$work/cache" --run "$work/run" --pack "$pack" \
    ${start:+--start "$start"} ${branch:+--start-branch "$branch"} \
    ${weights:+--start-weights $weights} ${subset:+--steps 20}
"$torch" "$here/export.py" "$config" --weights "$work/run/best.pt" --cache "$work/cache" \
    --pack "$pack"
"$serve" "$here/ship.py" "$pack" --texts "$root/models/thresholds/answers.jsonl" \
    --revision "$(basename "$config" .json)${subset:+, smoke}"
