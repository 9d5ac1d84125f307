#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# archive.sh ARCHIVE AR NM OBJCOPY OBJECT... - an archive of the objects, all of whose names begin
# with ebb_.
#
# What is hidden in the shared library is seen by whoever links the archive: a function of theirs
# with a name of ebb's own would be a second one, or be called in its place. So those names get a
# prefix. An archive that would not do is none: objects that only a compiler reads have no names.

set -eu
archive=$1 ar=$2 nm=$3 objcopy=$4
shift 4
draft=$archive.draft names=$archive.names
trap 'rm -f "$draft" "$names"' EXIT

other_names() {
    "$nm" --defined-only --extern-only --format=posix "$draft" |
        awk 'NF >= 2 && $1 !~ /^ebb_/ && $1 !~ /:$/ { print $1 }' | sort -u
}

rm -f "$draft"
"$ar" cr "$draft" "$@"
other_names | sed 's/.*/& ebb__&/' >"$names"
"$objcopy" --redefine-syms="$names" "$draft"
"$ar" s "$draft"
index=$("$nm" --print-armap "$draft" | grep -c '^ebb_[a-z_]* in ') || true
if [ -n "$(other_names)" ] || [ "$index" = 0 ]; then
    echo "archive.sh: names of $archive cannot be changed: were its objects compiled by -flto?" >&2
    exit 1
fi
mv "$draft" "$archive"
