#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# jemalloc.sh OUTPUT OBJCOPY CC... - one object of Debian's libjemalloc_pic.a that defines a few
# names only, prefixed ebb_jemalloc_, so that neither a program's malloc nor its own jemalloc is
# touched: those that are called, and those that malloc() and free() refer to (malloc/body.sh). What
# it asks of madvise() it asks of base/os.c. What it tells threads of now and then, to keep a
# maximum, malloc/swings.c hears where that is linked in. Compiler and objcopy are those of the
# machine that is built for.

set -eu

names='malloc calloc realloc aligned_alloc free malloc_usable_size mallocx dallocx mallctl
    malloc_conf'
inner='malloc_default free_default sz_size2index_tab sz_index2size_tab tsd_tls'
told='has_allocated has_freed'
output=$1 objcopy=$2
shift 2
archive=$("$@" -print-file-name=libjemalloc_pic.a)
if [ ! -e "$archive" ]; then
    echo "jemalloc.sh: libjemalloc_pic.a not found: install libjemalloc-dev" >&2
    exit 1
fi
"$@" -r -nostdlib $(printf ' -Wl,-u,%s' $names) -o "$output.all" "$archive"
"$objcopy" $(for name in $names; do printf ' --redefine-sym %s=ebb_jemalloc_%s' $name $name; done) \
    $(for name in $inner; do printf ' --redefine-sym je_%s=ebb_jemalloc_%s' $name $name; done) \
    --redefine-sym madvise=ebb_jemalloc_madvise \
    --redefine-sym je_peak_alloc_event_handler=ebb_jemalloc_has_allocated \
    --redefine-sym je_peak_dalloc_event_handler=ebb_jemalloc_has_freed "$output.all"
"$objcopy" $(printf ' --keep-global-symbol=ebb_jemalloc_%s' $names $inner $told) \
    $(printf ' --weaken-symbol=ebb_jemalloc_%s' $told) "$output.all" "$output"
rm -f "$output.all"
