#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# fetch.sh FOLDER - puts into FOLDER what the servers need: packages of npm, and models.
#
# Run again, it does what is left to do. Scripts of packages are not run: what they would download
# is in the packages, for the processor. Says what cannot be had, and fetches the rest; exit code 0.

set -u -o pipefail

unset CDPATH # cd would say where it goes
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:?fetch.sh FOLDER}
onnxruntime=1.30.0
llama=3.22.1
node=20.20.2 # node-llama-cpp asks for 20, and Debian 12 has 18

case $(uname -m) in
x86_64) machine=x64 ;;
aarch64) machine=arm64 ;;
*) machine=$(uname -m) ;;
esac

version_of() { # package
    sed -n 's/^  "version": "\(.*\)".*/\1/p' "$folder/node_modules/$1/package.json" 2>/dev/null
}

install() { # version wanted of the first package, packages with versions
    local wanted=$1 name=${2%@*}
    shift
    [ "$(version_of "$name")" = "$wanted" ] && return
    if ! command -v npm >/dev/null; then
        echo "serve: npm is not installed: $name is left out" >&2
        return
    fi
    echo "serve: fetching $*"
    npm install --prefix "$folder" --ignore-scripts --omit=optional --no-audit --no-fund \
        --fetch-retries=1 "$@" >"$folder/npm.log" 2>&1 ||
        echo "serve: npm cannot get $name: it is left out (log: $folder/npm.log)" >&2
}

mkdir -p "$folder"
[ -f "$folder/package.json" ] || echo '{ "private": true }' >"$folder/package.json"
install $onnxruntime "onnxruntime-node@$onnxruntime"
has_node=$(node --version 2>/dev/null | sed -n 's/^v\([0-9]*\)\..*/\1/p')
[ "${has_node:-0}" -ge ${node%%.*} ] || install $node "node-linux-$machine@$node"
install $llama "node-llama-cpp@$llama" "@node-llama-cpp/linux-$machine@$llama"
/usr/bin/python3 "$here/onnx_model.py" "$folder/model.onnx"
/usr/bin/python3 "$here/gguf_model.py" "$folder/model.gguf"
