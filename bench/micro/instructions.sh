#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# instructions.sh - how many instructions an allocation in the small lane is.
#
# Compiles functions that allocate a block of constant size and alignment, with gcc and clang at
# -O2, takes them apart with objdump and follows every path from the entry that does not end in
# ebb_region_alloc_slow. The longest one is what an allocation executes. Nothing is run, so the
# figures are exact and the same on every machine. One row a function and compiler:
#
#     micro  instructions  CC  fast_path.BYTES.ALIGN  N     without the `ret`: inline there is none
#
# Usage: instructions.sh [INCLUDE_FOLDER]; exit 1 if a fast path calls something or is not found.

set -eu
include=${1:-$(dirname "$0")/../../include}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/sample.c" <<'END'
#include <ebb/region.h>
void *fast_path_48_16(ebb_region region);
void *fast_path_192_64(ebb_region region);
void *fast_path_48_16(ebb_region region) { return ebb_region_alloc(region, 48, 16); }
void *fast_path_192_64(ebb_region region) { return ebb_region_alloc(region, 192, 64); }
END

# Reads objdump's lines of one function; prints the longest path to a `ret`, without it.
count_path() {
    awk '
    /^[[:space:]]*[0-9a-f]+:\t/ {
        address = $1; sub(":", "", address)
        place[address] = ++lines
        name[lines] = $2; target[lines] = $3
    }
    /R_[A-Z0-9_]+.*ebb_region_alloc_slow/ { slow[lines] = 1 }
    function longest(at,    other, next_one) {
        if (at > lines || slow[at] || name[at] ~ /^call/) return -100000
        if (name[at] ~ /^ret/) return 0
        if (name[at] ~ /^jmp/) return 1 + longest(place[target[at]])
        next_one = longest(at + 1)
        if (name[at] ~ /^j/) {
            other = longest(place[target[at]])
            if (other > next_one) next_one = other
        }
        return 1 + next_one
    }
    END { print lines == 0 ? -1 : longest(1) }'
}

failed=0
for compiler in gcc clang; do
    if ! command -v "$compiler" >/dev/null; then
        echo "LEFT OUT: instructions $compiler: not installed" >&2
        continue
    fi
    "$compiler" -std=c11 -O2 -ffunction-sections -I"$include" \
        -c "$scratch/sample.c" -o "$scratch/sample.o"
    for size in 48.16 192.64; do
        function=fast_path_$(echo "$size" | tr . _)
        count=$(objdump -dr --no-show-raw-insn -j ".text.$function" "$scratch/sample.o" |
            count_path)
        if [ "$count" -lt 1 ]; then
            echo "instructions $compiler: no fast path found in $function" >&2
            failed=1
            continue
        fi
        printf 'micro\tinstructions\t%s\tfast_path.%s\t%s\n' "$compiler" "$size" "$count"
    done
done
exit "$failed"
