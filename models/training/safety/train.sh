#!/bin/sh
# Prepares, encodes, trains, exports and ships the safety branch; started again, it goes on.
# usage: train.sh --data FILE... --dev FILE... [--qa FILE] [--pairs FILE] [--held-out FILE...]
#        --source DIR --work DIR [--subset N] [--config FILE] [--start FILE] [--pack DIR]
# --start: an exported branch to go on from, such as models/embedded/safety/model.onnx
# --source: the original encoder's weights. environment: EXPORT_PYTHON (torch), PYTHON (the service's)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
config="$here/base.json" pack="$root/models/embedded" work="" subset="" source="" start="" data="" dev="" others="" held=""
while [ $# -gt 0 ]; do
    name=$1
    shift
    case "$name" in
        --config) config=$1; shift ;;
        --pack) pack=$1; shift ;;
        --work) work=$1; shift ;;
        --subset) subset=$1; shift ;;
        --source) source=$1; shift ;;
        --start) start=$1; shift ;;
        --qa | --pairs) others="$others $name $1"; shift ;;
        --data | --dev | --held-out)
            while [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; do
                case "$name" in
                    --data) data="$data $1" ;;
                    --dev) dev="$dev $1" ;;
                    *) held="$held $1" ;;
                esac
                shift
            done ;;
        *) echo "unknown argument $name" >&2; exit 2 ;;
    esac
done
[ -n "$work" ] || { echo "--work DIR is missing: where the cache and checkpoints go" >&2; exit 2; }
[ -n "$source" ] || { echo "--source DIR is missing: the original encoder's weights" >&2; exit 2; }
torch=${EXPORT_PYTHON:-$root/.venv-export/bin/python}
serve=${PYTHON:-$root/.venv/bin/python}
export PYTHONPATH="$root/service:$root/models:$root/load_tests:$root/models/training:$here"
mkdir -p "$work"
"$serve" "$here/written.py" --out "$work/written.jsonl" --dev "$work/written_dev.jsonl"
# shellcheck disable=SC2086 # lists of paths without blanks
"$serve" "$here/prepare.py" "$config" --data $data "$work/written.jsonl" \
    --dev $dev "$work/written_dev.jsonl" $others ${held:+--held-out $held} \
    --out "$work/cache" --pack "$pack" ${subset:+--subset "$subset"}
"$torch" "$here/train.py" "$config" --cache "$work/cache" --run "$work/run" --source "$source" \
    ${start:+--start "$start"} ${subset:+--steps 20}
"$torch" "$here/export.py" "$config" --weights "$work/run/best.pt" --cache "$work/cache" \
    --source "$source" --out "$pack/safety/model.onnx"
"$serve" "$here/ship.py" "$pack" --texts "$root/models/thresholds/safety_answers.jsonl" \
    --revision "$(basename "$config" .json)${subset:+, smoke}"
