#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# instructions.sh - how many instructions is what ebb/region.h does inline.
#
# Compiles functions that allocate a block of constant size and alignment, or release one, with gcc
# and clang at -O2, takes them apart with objdump and follows every path from the entry that does
# not end in a slow one: the longest is what is executed. Paths of small blocks end as well where
# they look for what is due. Nothing is run, so the figures are exact and the same on every machine.
# One row a function and compiler, without the `ret`, for inline there is none:
#
#     micro  instructions  CC  fast_path.BYTES.ALIGN  N     bumped in the small lane
#     micro  instructions  CC  due.BYTES.ALIGN        N     a block of a plan that is due
#     micro  instructions  CC  due.release            N     its release, with the 0 that is returned
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
void *due_4096_64(ebb_region region);
int due_release(ebb_region region, void *block);
void *fast_path_48_16(ebb_region region) { return ebb_region_alloc(region, 48, 16); }
void *fast_path_192_64(ebb_region region) { return ebb_region_alloc(region, 192, 64); }
void *due_4096_64(ebb_region region) { return ebb_region_alloc(region, 4096, 64); }
int due_release(ebb_region region, void *block) { return ebb_region_release(region, block); }
END
due=40 # its offset in struct ebb_lane, which tests/abi/layout.c pins

# Reads objdump's lines of the function; prints the longest path to a `ret`, without it.
count_path() {
    case $1 in fast_path*) ends=$(printf '0x%x(' "$due") ;; *) ends= ;; esac
    awk -v ends="$ends" '
    /^[[:space:]]*[0-9a-f]+:\t/ {
        address = $1; sub(":", "", address)
        place[address] = ++lines
        name[lines] = $2; target[lines] = $3
    }
    /R_[A-Z0-9_]+.*ebb_region_(alloc|release)_slow/ { slow[lines] = 1 }
    ends != "" && index($0, ends) { slow[lines] = 1 }
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
    for row in fast_path.48.16 fast_path.192.64 due.4096.64 due.release; do
        function=$(echo "$row" | tr . _)
        count=$(objdump -dr --no-show-raw-insn -j ".text.$function" "$scratch/sample.o" |
            count_path "$function")
        if [ "$count" -lt 1 ]; then
            echo "instructions $compiler: no fast path found in $function" >&2
            failed=1
            continue
        fi
        printf 'micro\tinstructions\t%s\t%s\t%s\n' "$compiler" "$row" "$count"
    done
done
exit "$failed"
